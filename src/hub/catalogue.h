/* SPDX-License-Identifier: MIT
 *
 * The models that `tern pull` knows by name: their repositories, their strengths, and the sizes
 * from which a machine's memory and speed can be estimated before anything is downloaded.
 *
 * catalogue_models.c contains only the rows.  An unknown fact is empty ("" or 0); a file without
 * SHA-256 is reported as unverified.  A row requires that this version of tern can convert and run
 * the file.
 */
#ifndef TN_CATALOGUE_H
#define TN_CATALOGUE_H

#include <stdbool.h>
#include <stdint.h>

struct tn_catalogue_model {
    const char *name;          /* the name that users type, and that of the .tern file; lower
                                * case */
    const char *repository;    /* "OWNER/REPO" on the hub */
    char revision[41];         /* commit, 40 hex digits; "": the newest */
    char file[48];             /* a .gguf file of the repository */
    char sha256[65];           /* of the file, 64 hex digits */
    uint64_t file_bytes;       /* exact size of the file */
    uint64_t about_bytes;      /* published with two digits; only if file_bytes is unknown */
    bool has_int8_inputs;      /* activations are rounded to int8; else to 16 bits */
    char pooling[8];           /* of an embedding model: "mean"; "": a generative model */
    char licence[24];          /* "MIT" */
    const char *licence_page;  /* the repository that states it; NULL: this one */
    const char *good_for;      /* a few words for users */
    uint32_t rank;             /* 1: the best answers; embedding models are ranked separately */
    uint32_t context;          /* positions */
    uint64_t tern_bytes;  /* of the converted file */
    uint64_t token_bytes; /* read to decode one token, at the sparsity of real text */
    uint64_t kv_bytes;    /* of the q8 cache, per position */
};

extern const struct tn_catalogue_model tn_catalogue_models[];
extern const uint32_t tn_n_catalogue_models;

/* The model with the name or the repository `typed`, case-insensitive.  NULL: none. */
const struct tn_catalogue_model *tn_catalogue_find(const char *typed);

/* Path on the hub of the page that states the licence. */
const char *tn_catalogue_licence_page(const struct tn_catalogue_model *model);

/* Bytes of the download: exact, or as published. */
uint64_t tn_catalogue_download_bytes(const struct tn_catalogue_model *model);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The models that `tern pull` knows by name: where they are published, what they are good for, and
 * the sizes from which a machine's memory and speed can be judged before anything is downloaded.
 *
 * catalogue_models.c holds the rows, and nothing else.  A fact that is not known stays empty ("" or
 * 0); a file whose SHA-256 is empty is called unverified.  A row appears here only if this version
 * of tern can convert and run the file.
 */
#ifndef TN_CATALOGUE_H
#define TN_CATALOGUE_H

#include <stddef.h>
#include <stdint.h>

struct tn_catalogue_model {
    const char *name;          /* what users type, and the name of the .tern file; lower case */
    const char *repository;    /* "OWNER/REPO" on the hub */
    const char *revision;      /* commit, 40 hex digits; "": the newest */
    const char *file;          /* a .gguf file of the repository */
    const char *sha256;        /* of the file, 64 hex digits */
    uint64_t file_bytes;       /* exact size of the file */
    uint64_t about_bytes;      /* published to two digits; only where file_bytes is unknown */
    const char *family;        /* "bitnet" */
    const char *inputs;        /* how activations are rounded: "int8" or "16 bits" */
    const char *pooling;       /* of an embedding model: "mean"; "": a generative model */
    const char *licence;       /* "MIT" */
    const char *licence_page;  /* path on the hub of the page that states it */
    const char *good_for;      /* a few words for people */
    const char *least_version; /* of tern: "0.1.0" */
    uint32_t rank;             /* 1: the best answers; embedding models have their own ranks */
    uint32_t context;          /* positions */
    uint64_t n_params;
    uint64_t tern_bytes;  /* of the converted file */
    uint64_t token_bytes; /* read to decode one token, at the sparsity of real text */
    uint64_t kv_bytes;    /* of the q8 cache, for each position */
};

extern const struct tn_catalogue_model tn_catalogue_models[];
extern const uint32_t tn_n_catalogue_models;

/* The model that a user means by `typed`: its name or its repository, in any case.  NULL: none. */
const struct tn_catalogue_model *tn_catalogue_find(const char *typed);

/* Bytes of the download: exact, or as published. */
uint64_t tn_catalogue_download_bytes(const struct tn_catalogue_model *model);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Checks names from users and from the hub: repositories, files of a repository, and the local name
 * of a model.  None of them is ever a path.
 */
#ifndef TN_REPOSITORY_NAMES_H
#define TN_REPOSITORY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

#define TN_MAX_REPOSITORY_BYTES 192u /* "OWNER/REPO"; the hub allows 96 for each */
#define TN_MAX_FILE_NAME_BYTES 200u

/* The components of "OWNER/REPO" or "OWNER/REPO:FILE". */
struct tn_repository_name {
    char repository[TN_MAX_REPOSITORY_BYTES + 1];
    char file[TN_MAX_FILE_NAME_BYTES + 1]; /* "": not given */
};

/* TERN_USAGE names the wrong component: letters, digits, '-', '_' and '.' are allowed. */
tern_status tn_repository_name_parse(struct tn_repository_name *out, const char *typed,
                                     struct tern_error *err);

/* The default name of the model: that of the repository without its owner and without "-gguf". */
void tn_repository_local_name(char out[TN_MAX_REPOSITORY_BYTES + 1], const char *repository);

/* Whether a file of this name can be created in a folder, on every system, without leaving it.
 * False: "", "..", separators, ':' and other characters that Windows refuses, control bytes, names
 * of devices, a blank or a dot at the end, more than TN_MAX_FILE_NAME_BYTES, not UTF-8. */
bool tn_file_name_is_harmless(const char *name);

/* The kind of a repository's file, by its name. */
enum tn_hub_file {
    TN_HUB_OTHER,
    TN_HUB_GGUF,        /* a model in one file, or a part of one */
    TN_HUB_SAFETENSORS, /* model.safetensors or a numbered part */
    TN_HUB_CONFIG,      /* config.json */
    TN_HUB_SMALL,       /* tokenizer, template, index, generation config */
    TN_HUB_VOCABULARY,  /* of GPT-2's tokenizer, for folders without tokenizer.json */
};
enum tn_hub_file tn_hub_file_kind(const char *name);

/* The part's number, from 1 on, and *n_parts, for "NAME-00002-of-00003.gguf".  0: not a part. */
uint32_t tn_gguf_part(const char *name, uint32_t *n_parts);
/* Whether both names, which may be equal, are parts of one model. */
bool tn_gguf_is_same_model(const char *a, const char *b);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Reads the description of a model (config_import.h) from the small files of a Hugging Face
 * directory: config.json, generation_config.json and the pooling of an embedding model.
 */
#ifndef TN_HF_CONFIG_H
#define TN_HF_CONFIG_H

#include "convert/config_import.h"

#define TN_CONFIG_FILE "config.json"
#define TN_GENERATION_FILE "generation_config.json"
#define TN_POOLING_FILE "1_Pooling/config.json"
#define TN_MAX_CONFIG_BYTES (1u << 20) /* of each; published files have a few KB */

/* Parses config.json and generation_config.json (may be NULL).  TERN_INPUT names the key, its value
 * and the limit; TERN_UNSUPPORTED the reason. */
tern_status tn_config_parse(struct tn_config_import *out, const char *json, size_t n_json,
                            const char *generation_json, size_t n_generation_json,
                            struct tern_error *err);

struct tn_source;

/* Infers from the tensors what config.json does not state: the scheme of the weights, the head. */
void tn_config_recognise(struct tn_config_import *import, const struct tn_source *source);

/* The pooling of an embedding model's directory: 1_Pooling/config.json, else the last token;
 * *has_file: that file exists. */
tern_status tn_config_read_pooling(struct tn_config_import *import, bool *has_file, const char *dir,
                                   struct tern_error *err);

/* The same from the files of a directory; *has_generation: generation_config.json exists. */
tern_status tn_config_read(struct tn_config_import *out, bool *has_generation, const char *dir,
                           struct tern_error *err);

/* Reads a text file of the directory; refuses Git-LFS pointers and more than max_bytes.  *text is
 * new memory, NUL-terminated; NULL (and TERN_OK) if the file does not exist. */
tern_status tn_dir_read_text(char **text, size_t *n_text, const char *dir, const char *name,
                             size_t max_bytes, struct tern_error *err);

#endif

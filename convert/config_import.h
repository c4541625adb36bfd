/* SPDX-License-Identifier: MIT
 *
 * The small files of a Hugging Face directory: config.json,
 * generation_config.json, and the chat template.
 *
 * Families are told apart by what the files say, never by a name alone.  This
 * release converts BitNet b1.58 as microsoft/bitnet-b1.58-2B-4T publishes it;
 * every other family is refused with its name and the reason.
 */
#ifndef TN_CONFIG_IMPORT_H
#define TN_CONFIG_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "tern/model_format.h"
#include "tern/status.h"
#include "tern/tokenizer.h"

enum tn_tie { TN_TIE_UNSAID, TN_TIE_NO, TN_TIE_YES };

/* quantization_config.quantization_mode */
enum tn_weight_form { TN_FORM_UNSAID, TN_FORM_LATENT, TN_FORM_PACKED };

struct tn_config_import {
    struct tern_file_config config; /* without flags, n_params, fingerprint and refs */
    enum tn_tie tie;
    enum tn_weight_form form; /* what the file says; the tensors decide */
};

/* Reads texts of config.json and (may be NULL) generation_config.json. TERN_INPUT names the key,
 * its value and the limit; TERN_UNSUPPORTED the reason. */
tern_status tn_config_parse(struct tn_config_import *out, const char *json, size_t n_json,
                            const char *generation_json, size_t n_generation_json,
                            struct tern_error *err);

/* The same from the files of a directory; *has_generation: generation_config.json is there. */
tern_status tn_config_read(struct tn_config_import *out, bool *has_generation, const char *dir,
                           struct tern_error *err);

/* The chat template of tokenizer_config.json's text: a text, or a list of {name, template} of
 * which "default" counts. *source is new memory (tn_free), NULL when there is none.
 * TERN_UNSUPPORTED: a list without "default", which must not pass for a model without template. */
tern_status tn_template_parse(char **source, size_t *n_source, const char *json, size_t n_json,
                              struct tern_error *err);

/* chat_template.jinja (empty: none), else tokenizer_config.json; *from is the name of the file that
 * was read, NULL when neither is there. */
tern_status tn_template_read(char **source, size_t *n_source, const char **from, const char *dir,
                             struct tern_error *err);

/* Adds the token that ends an answer in this template ("<|eot_id|>") to the stop ids, if the
 * tokenizer section knows it and generation_config.json forgot it. */
tern_status tn_template_add_stop_id(struct tern_file_config *config,
                                    const struct tern_chat_template *template,
                                    const void *tokenizer, size_t tokenizer_bytes,
                                    struct tern_error *err);

/* Reads a text file of the directory and refuses Git-LFS pointers and more than max_bytes. *text is
 * new memory, NUL-terminated; NULL (and TERN_OK) when the file is absent. */
tern_status tn_dir_read_text(char **text, size_t *n_text, const char *dir, const char *name,
                             size_t max_bytes, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The chat template of a directory, and the tokens with which the answers of a template end.
 */
#ifndef TN_TEMPLATE_IMPORT_H
#define TN_TEMPLATE_IMPORT_H

#include "convert/config_import.h"
#include "tern/chat.h"

/* The member chat_template of a JSON file: a text, or a list of {name, template} of which "default"
 * is used.  *source is new memory (tn_free), NULL if there is none.  TERN_UNSUPPORTED: a list
 * without "default", which must not be treated as a model without template.  Errors name `file`. */
tern_status tn_template_parse(char **source, size_t *n_source, const char *file, const char *json,
                              size_t n_json, struct tern_error *err);

/* TERN_INPUT: not a text of at most 1 MiB; `from` names its source. */
tern_status tn_template_check(const char *from, const char *text, size_t n, struct tern_error *err);

/* chat_template.jinja (empty: none), else the first of tokenizer_config.json and chat_template.json
 * that has one; *from is the name of the last file that was read, NULL if none exists. */
tern_status tn_template_read(char **source, size_t *n_source, const char **from, const char *dir,
                             struct tern_error *err);

/* Evidence of the tokens that end an answer, in addition to the ids that the source names. */
struct tn_answer_ends {
    const char *template; /* source of the chat template; NULL: none */
    size_t n_template;
    const struct tern_chat_template *known; /* the built-in one that it equals; NULL: none */
    bool is_gguf; /* without generation_config.json, which lists all of them */
};
/* Adds special tokens of a tokenizer section to the stop ids: ends of turns that the template
 * writes, and in a GGUF file the usual ends of texts.  `vocab`: the model's number of ids. */
tern_status tn_template_add_stop_ids(struct tn_stop_ids *stop_ids, uint32_t vocab,
                                     const struct tn_answer_ends *ends, const void *tokenizer,
                                     size_t tokenizer_bytes, struct tern_error *err);

#endif

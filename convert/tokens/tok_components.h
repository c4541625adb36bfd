/* SPDX-License-Identifier: MIT
 *
 * The parts of a tokenizer.json around its vocabulary.
 */
#ifndef TN_TOK_COMPONENTS_H
#define TN_TOK_COMPONENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "tern/model_format.h"
#include "tern/status.h"

#define TN_TOK_FILE "tokenizer.json"

static inline bool tn_json_is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

/* Reads normalizer, pre_tokenizer, post_processor, decoder and the options of the model: fills in
 * kind, splitter, flags, prefix and suffix.  *byte_fallback: what has no token is spelled by byte
 * tokens.  TERN_UNSUPPORTED, naming it, for everything that is not understood exactly. */
tern_status tn_tok_read_components(const json_t *root, struct tern_file_tokenizer *head,
                                   bool *byte_fallback, struct tern_error *err);

#endif

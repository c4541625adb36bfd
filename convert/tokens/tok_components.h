/* SPDX-License-Identifier: MIT
 *
 * Reads the components of a tokenizer.json other than its vocabulary, merges and added tokens,
 * which tok_import.c reads.
 */
#ifndef TN_TOK_COMPONENTS_H
#define TN_TOK_COMPONENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/json_load.h"
#include "convert/tokens/tok_import.h"
#include "tern/model_format.h"
#include "tern/status.h"

/* The TERN_ADDED_* flags of an added token; 0 if it is no object. */
uint32_t tn_tok_added_flags(const json_t *token);

/* Reads normalizer, pre_tokenizer, post_processor, decoder and the options of the model: fills in
 * kind, splitter, flags, prefix and suffix.  *byte_fallback: characters without a token are spelled
 * with byte tokens.  TERN_UNSUPPORTED, naming it, for everything that is not understood exactly. */
tern_status tn_tok_read_components(const json_t *root, struct tern_file_tokenizer *head,
                                   bool *byte_fallback, struct tern_error *err);

#endif

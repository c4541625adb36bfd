/* SPDX-License-Identifier: MIT
 *
 * The tables of a tokenizer section from the lists of tokenizer.json.
 */
#ifndef TN_TOK_TABLES_H
#define TN_TOK_TABLES_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "tern/model_format.h"
#include "tern/status.h"

/* Builds the section from model.vocab, model.merges and added_tokens.  *head comes with kind,
 * splitter, flags, prefix and suffix; the rest is filled in.  Errors as tn_tok_import. */
tern_status tn_tok_build(struct tern_file_tokenizer *head, const json_t *vocab,
                         const json_t *merges, const json_t *added, uint32_t model_vocab,
                         struct tn_buf *section, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Makes the tokenizer section of a model file (model_format.h) from tokenizer.json.  Everything
 * that affects ids is either understood exactly or refused by name: nothing is approximated.
 */
#ifndef TN_TOK_IMPORT_H
#define TN_TOK_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tern/status.h"

#define TN_TOK_FILE "tokenizer.json"

/* Reads a whole tokenizer.json and appends the section to the empty buffer *section, which stays
 * empty on failure.  `vocab` is the model's number of ids.  TERN_UNSUPPORTED: a component that tern
 * does not implement; TERN_INPUT: not JSON, holes, duplicate ids, ids beyond `vocab`, merges of
 * tokens that do not exist (all named); TERN_MEMORY.  Takes about 55 MB in addition to the text for
 * 128,000 tokens and 280,000 merges. */
tern_status tn_tok_import(const char *json, size_t n, uint32_t vocab, struct tn_buf *section,
                          struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The tokenizer behind include/tern/tokenizer.h: opening a section of a model
 * file, and what chat.c and the converter need of it.
 */
#ifndef TN_TOKENIZER_H
#define TN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/tokenizer.h"

/* Opens a tokenizer section (model_format.h).  The section is 8-byte aligned and stays mapped as
 * long as the tokenizer lives; its large tables are not copied, and may be written to by others
 * (file/model_file.h): ids stay in range then, and token bytes in bounds.  `vocab` is the model's
 * number of ids.  TERN_INPUT when sizes, offsets or ids are out of range, TERN_UNSUPPORTED for an
 * unknown kind, splitter or flag, TERN_MEMORY. */
tern_status tn_tokenizer_open(struct tern_tokenizer **out, const void *section, size_t n_bytes,
                              uint32_t vocab, struct tern_error *err);
void tn_tokenizer_close(struct tern_tokenizer *tokenizer);

/* Encodes a text of which user_map[i] is 1 for bytes that come from a user, 0 for others: special
 * tokens are found only where all bytes come from the template.  Otherwise as tern_tokenizer_encode
 * with TERN_ENCODE_PARSE_SPECIAL. */
tern_status tn_tokenizer_encode_mapped(const struct tern_tokenizer *tokenizer, const char *text,
                                       const unsigned char *user_map, size_t n_bytes,
                                       struct tern_ids *out, struct tern_error *err);

/* Puts the post-processor's ids (BOS) before out->ids[start], unless they are there already. */
tern_status tn_tokenizer_ensure_prefix(const struct tern_tokenizer *tokenizer,
                                       struct tern_ids *out, size_t start,
                                       struct tern_error *err);

/* The ids that the post-processor puts before a text. */
const uint32_t *tn_tokenizer_prefix(const struct tern_tokenizer *tokenizer, uint32_t *n_ids);

/* No token has more bytes than this, also when the file is written to. */
size_t tn_tokenizer_longest(const struct tern_tokenizer *tokenizer);

/* Appends n ids; false when memory is short: *out is as it was. */
bool tn_ids_append(struct tern_ids *out, const uint32_t *ids, size_t n);

/* The hash of vocab_slots. */
uint64_t tn_token_hash(const void *bytes, size_t n_bytes);

#endif

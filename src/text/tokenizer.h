/* SPDX-License-Identifier: MIT
 *
 * Internal interface of the tokenizer (public part: include/tern/tokenizer.h): opens a section of a
 * model file, and serves chat.c and the converter.
 */
#ifndef TN_TOKENIZER_H
#define TN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/tokenizer.h"

/* Opens a tokenizer section (model_format.h).  The section must be 8-byte aligned and stay mapped
 * while the tokenizer lives.  Its large tables are not copied; if another process changes them
 * (file/model_file.h), ids stay in range and token bytes in bounds.  `vocab` is the model's number
 * of ids.  TERN_INPUT: sizes, offsets or ids out of range; TERN_UNSUPPORTED: an unknown kind,
 * splitter or flag; TERN_MEMORY. */
tern_status tn_tokenizer_open(struct tern_tokenizer **out, const void *section, size_t n_bytes,
                              uint32_t vocab, struct tern_error *err);
void tn_tokenizer_close(struct tern_tokenizer *tokenizer);

/* Encodes a text with user_map[i] = 1 for user bytes: special tokens are recognised only where all
 * their bytes come from the template.  Otherwise as tern_tokenizer_encode with
 * TERN_ENCODE_PARSE_SPECIAL. */
tern_status tn_tokenizer_encode_mapped(const struct tern_tokenizer *tokenizer, const char *text,
                                       const unsigned char *user_map, size_t n_bytes,
                                       struct tern_ids *out, struct tern_error *err);

/* Inserts the post-processor's ids (BOS) before out->ids[start] unless they are already there. */
tern_status tn_tokenizer_ensure_prefix(const struct tern_tokenizer *tokenizer,
                                       struct tern_ids *out, size_t start,
                                       struct tern_error *err);

/* The ids that the post-processor puts before a text. */
const uint32_t *tn_tokenizer_prefix(const struct tern_tokenizer *tokenizer, uint32_t *n_ids);

/* The stated ids for fill-in-the-middle, as in struct tern_file_tokenizer. */
const uint32_t *tn_tokenizer_fim_ids(const struct tern_tokenizer *tokenizer);

/* Upper bound of a token's bytes, also if the file changes. */
size_t tn_tokenizer_longest(const struct tern_tokenizer *tokenizer);

/* Appends n ids.  false: out of memory, and *out is unchanged. */
bool tn_ids_append(struct tern_ids *out, const uint32_t *ids, size_t n);

/* The hash function of vocab_slots. */
uint64_t tn_token_hash(const void *bytes, size_t n_bytes);

#endif

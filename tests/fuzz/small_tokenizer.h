/* SPDX-License-Identifier: MIT
 *
 * A tokenizer.json of 300 tokens for the fuzz targets: the 256 bytes, some merges, the special
 * tokens of the built-in chat templates.
 */
#ifndef SMALL_TOKENIZER_H
#define SMALL_TOKENIZER_H

#include <stdbool.h>

#include "base/buf.h"
#include "text/tokenizer.h"

#define SMALL_VOCAB 320u

/* Appends the JSON text; `pairs`: merges as pairs instead of strings. */
void small_tokenizer_json(struct tn_buf *json, bool pairs);

/* A tokenizer of characters with space marks and byte tokens, in SMALL_N_MARKED styles: normaliser
 * with and without Prepend, Metaspace with its schemes. */
#define SMALL_N_MARKED 4u
void small_marked_tokenizer_json(struct tn_buf *json, unsigned style);

/* The section made from one of them (0: the first kind, from 1 on: marked), 64-byte aligned;
 * release with tn_free_aligned. */
void *small_tokenizer_section(unsigned kind, size_t *n_bytes);

/* The first kind, opened once per process. */
const struct tern_tokenizer *small_tokenizer(void);

/* Aborts unless the ids of small_tokenizer() represent the whole rendered text, except a BOS before
 * it, and no special id covers a user byte (map 1). */
void small_tokenizer_check_ids(const struct tern_ids *ids, const char *text,
                               const unsigned char *map, size_t n_text);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A tokenizer.json of 300 tokens, for the fuzz targets: the 256 bytes, some merges,
 * the special tokens of the built-in chat templates.
 */
#ifndef SMALL_TOKENIZER_H
#define SMALL_TOKENIZER_H

#include <stdbool.h>

#include "base/buf.h"
#include "text/tokenizer.h"

#define SMALL_VOCAB 320u

/* Appends the JSON text; `pairs` writes merges as pairs, not as strings. */
void small_tokenizer_json(struct tn_buf *json, bool pairs);

/* The section made of it, 64-byte aligned; release with tn_free_aligned. */
void *small_tokenizer_section(size_t *n_bytes);

#endif

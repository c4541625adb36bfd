/* SPDX-License-Identifier: MIT
 *
 * The normaliser of a tokenizer: NFC and space marks (SentencePiece's U+2581 for a space).
 *
 * Called by encode.c for each stretch of text, and by the converter for added tokens.
 */
#ifndef TN_NORMALIZE_H
#define TN_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TN_SPACE_MARK "\xE2\x96\x81" /* U+2581 */
#define TN_SPACE_MARK_BYTES 3

/* Buffers for normalised texts.  Zero-initialise; tn_normalize_room_fini frees them. */
struct tn_normalize_room {
    struct tn_buf composed;
    struct tn_buf marked;
};
void tn_normalize_room_fini(struct tn_normalize_room *room);

/* Applies the normaliser that `flags` (TERN_TOK_*) describe to *text, *n > 0, which afterwards may
 * point into `room`.  false: out of memory. */
bool tn_normalize(struct tn_normalize_room *room, uint32_t flags, const char **text, size_t *n);

/* Replaces space marks in *text by spaces and optionally prepends a space; *text may then point
 * into `room`. */
bool tn_put_spaces(struct tn_buf *room, const char **text, size_t *n, bool prepend);

#endif

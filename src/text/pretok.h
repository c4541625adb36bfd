/* SPDX-License-Identifier: MIT
 *
 * Pre-tokenizers: cut a text into the pieces inside which BPE merges.
 *
 * Hand-written state machines with the meaning of the published regular
 * expressions (pretok.c quotes them).  O(n) over a whole text, no recursion, no
 * memory.  Any bytes: one that is not UTF-8 is a character that is neither
 * letter, number nor space.
 */
#ifndef TN_PRETOK_H
#define TN_PRETOK_H

#include <stddef.h>
#include <stdint.h>

/* Length of the first piece of text[0..n), n > 0; the result is in 1..n. */
typedef size_t (*tn_split_fn)(const char *text, size_t n);

/* The function for an enum tern_splitter; NULL when it is not implemented. */
tn_split_fn tn_splitter_find(uint32_t splitter);

/* The enum tern_splitter that is exactly this regular expression, or 0. */
uint32_t tn_splitter_recognise(const char *pattern);

#endif

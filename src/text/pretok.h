/* SPDX-License-Identifier: MIT
 *
 * Pre-tokenizers: split a text into the pieces within which BPE merges.
 *
 * Hand-written state machines equivalent to the published regular expressions (pretok*.c quote
 * them, convert/tokens/tok_components.c recognises them).  O(n) over a whole text, without
 * recursion or allocation.  Any bytes are allowed: an invalid byte is a character that is neither
 * letter, number nor space.
 */
#ifndef TN_PRETOK_H
#define TN_PRETOK_H

#include <stddef.h>
#include <stdint.h>

/* Length of the first piece of text[0..n), n > 0; in 1..n. */
typedef size_t (*tn_split_fn)(const char *text, size_t n);

#define TN_MAX_SPLIT_STAGES 6

struct tn_splitter {
    uint32_t id; /* enum tern_splitter */
    /* NULL-terminated; each splits the pieces of the previous one. */
    tn_split_fn stages[TN_MAX_SPLIT_STAGES + 1];
};

/* The splitter with that number (enum tern_splitter); NULL: unknown. */
const struct tn_splitter *tn_splitter_find(uint32_t splitter);

#endif

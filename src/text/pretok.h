/* SPDX-License-Identifier: MIT
 *
 * Pre-tokenizers: cut a text into the pieces inside which BPE merges.
 *
 * Hand-written state machines with the meaning of the published regular
 * expressions (pretok*.c quote them, convert/tokens/tok_components.c recognises them).
 * O(n) over a whole text, no recursion, no memory.  Any bytes: one that is not
 * UTF-8 is a character that is neither letter, number nor space.
 */
#ifndef TN_PRETOK_H
#define TN_PRETOK_H

#include <stddef.h>
#include <stdint.h>

/* Length of the first piece of text[0..n), n > 0; the result is in 1..n. */
typedef size_t (*tn_split_fn)(const char *text, size_t n);

#define TN_MAX_SPLIT_STAGES 6

struct tn_splitter {
    uint32_t id; /* enum tern_splitter */
    /* Each cuts the pieces of the one before; NULL behind the last. */
    tn_split_fn stages[TN_MAX_SPLIT_STAGES + 1];
};

/* The splitter of an enum tern_splitter; NULL when there is none. */
const struct tn_splitter *tn_splitter_find(uint32_t splitter);

#endif

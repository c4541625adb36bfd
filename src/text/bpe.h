/* SPDX-License-Identifier: MIT
 *
 * Byte-pair merging within one piece of text.
 *
 * A piece starts as one symbol per byte or character (encode.c).  The adjacent pair with the lowest
 * rank is merged, the leftmost of equal ones, until no pair has a rank.
 */
#ifndef TN_BPE_H
#define TN_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "tern/model_format.h"

#define TN_NO_RANK 0xFFFFFFFFu

/* Views into the tokenizer section of a mapped file, which may change: values read from slots and
 * merges are loaded once and range-checked at use.  n_slots is a power of two. */
struct tn_bpe_tables {
    const struct tern_file_merge *merges;
    const uint32_t *slots;
    uint32_t n_merges;
    uint32_t n_slots;
    uint32_t n_tokens;
};

/* First slot of a pair in a table of n_slots (a power of two). */
static inline uint32_t tn_bpe_slot(uint32_t left, uint32_t right, uint32_t n_slots)
{
    uint64_t hash = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    return (uint32_t)((hash >> 32) * n_slots >> 32);
}

/* Work memory for long pieces, reused between the pieces of one text.  Zero-initialise. */
struct tn_bpe_work;
void tn_bpe_work_free(struct tn_bpe_work *work);

/* Merges n > 0 symbols in place, each < n_tokens.  Returns the number of ids that remain, or 0 when
 * out of memory.  O(n log n).  More than 96 symbols need *work (allocated on demand): 24 bytes per
 * symbol of the longest piece and up to 12 bytes of address space per merge of the vocabulary, of
 * which only touched pages become resident. */
size_t tn_bpe_merge(const struct tn_bpe_tables *tables, uint32_t *ids, size_t n,
                    struct tn_bpe_work **work);

#endif

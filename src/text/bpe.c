/* SPDX-License-Identifier: MIT
 *
 * Byte-pair merging: short pieces by scanning for the lowest rank.
 */
#include "text/bpe.h"

#include <string.h>

#include "base/alloc.h"

#define SHORT_PIECE 96

/* Rank of the pair, or TN_NO_RANK. */
static uint32_t pair_rank(const struct tn_bpe_tables *t, uint32_t left, uint32_t right)
{
    uint32_t slot = tn_bpe_slot(left, right, t->n_slots);
    for (uint32_t probes = 0; probes < t->n_slots; probes++) {
        uint32_t rank = t->slots[slot] - 1;
        if (rank >= t->n_merges) /* empty, or damaged */
            return TN_NO_RANK;
        const struct tern_file_merge *merge = &t->merges[rank];
        if (merge->left == left && merge->right == right)
            return merge->merged < t->n_tokens ? rank : TN_NO_RANK;
        slot = (slot + 1) & (t->n_slots - 1);
    }
    return TN_NO_RANK;
}

/* O(n^2), which for short pieces is faster than any queue.  ids: the symbols, replaced in place;
 * ranks[i]: rank of the pair (i, i + 1). */
static size_t merge_short(const struct tn_bpe_tables *t, uint32_t *ids, uint32_t *ranks, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = pair_rank(t, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == TN_NO_RANK)
            break;
        ids[best] = t->merges[ranks[best]].merged;
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        if (best + 1 < n)
            memmove(ranks + best, ranks + best + 1, (n - best - 1) * sizeof *ranks);
        if (best > 0)
            ranks[best - 1] = pair_rank(t, ids[best - 1], ids[best]);
        if (best + 1 < n)
            ranks[best] = pair_rank(t, ids[best], ids[best + 1]);
    }
    return n;
}

struct tn_bpe_work {
    uint32_t dummy;
};

void tn_bpe_work_free(struct tn_bpe_work *work)
{
    tn_free(work);
}

size_t tn_bpe_encode(const struct tn_bpe_tables *tables, const char *text, size_t n, uint32_t *out,
                     struct tn_bpe_work **work)
{
    (void)work;
    for (size_t i = 0; i < n; i++)
        out[i] = tables->byte_ids[(unsigned char)text[i]];
    if (n == 1)
        return 1;
    if (n <= SHORT_PIECE) {
        uint32_t ranks[SHORT_PIECE];
        return merge_short(tables, out, ranks, n);
    }
    uint32_t *ranks = tn_alloc(n * sizeof *ranks);
    if (!ranks)
        return 0;
    n = merge_short(tables, out, ranks, n);
    tn_free(ranks);
    return n;
}

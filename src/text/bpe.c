/* SPDX-License-Identifier: MIT
 *
 * Byte-pair merging.  Two algorithms with the same result:
 *
 * Short pieces (nearly all of real text): scan for the lowest rank, O(n^2).
 *
 * Long pieces: a priority queue of pairs ordered by (rank, position).  A pair is identified by its
 * left symbol; each symbol is in at most one list.
 *
 *   set of ranks    bucket per rank       symbols by position in the text
 *   (64-ary bits)   rank 7:  first -----> 3 <-> 9 <-> 14 ... <----- last
 *                   rank 90: first -----> 5 <-> 12
 *
 * Pairs mostly reach a bucket from left to right, so appending keeps it sorted; otherwise the
 * bucket is sorted once, when its rank becomes the lowest.  A pair that arrives after that and
 * cannot be appended goes to a heap (rare: merges must be out of rank order).  The total is O(n log
 * n), and a long run of one character is a sequential pass through memory.
 */
#include "text/bpe.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"

#define SHORT_PIECE 96
#define NIL 0xFFFFFFFFu
#define IN_HEAP 0xFFFFFFFEu /* symbol.before: the pair is in the heap, not in a bucket */
#define MAX_LEVELS 6        /* 64^6 > 2^32 */

struct symbol {
    uint32_t id;
    uint32_t prev, next;    /* neighbours in the text, or NIL */
    uint32_t rank;          /* of the pair (this, next), or TN_NO_RANK */
    uint32_t before, after; /* neighbours in the bucket of that rank, or NIL */
};

enum bucket_state {
    BUCKET_EMPTY, /* first and last are undefined */
    BUCKET_SORTED,
    BUCKET_UNSORTED,
    BUCKET_OPEN, /* sorted; pairs are being removed from the front */
};

struct bucket {
    uint32_t first, last;
    uint32_t state;
};

struct tn_bpe_work {
    struct symbol *symbols;
    size_t n_symbols; /* capacity */
    struct bucket *buckets;       /* [n_merges], all empty between pieces */
    /* levels[0]: a bit per bucket that is not empty; each further level: a bit per nonzero word
     * below */
    uint64_t *levels[MAX_LEVELS];
    unsigned n_levels;
    uint64_t *heap; /* min-heap of rank << 32 | position; may hold stale entries */
    size_t n_heap, heap_room;
    bool failed; /* out of memory */
};

/* Rank of the pair, or TN_NO_RANK. */
static uint32_t pair_rank(const struct tn_bpe_tables *t, uint32_t left, uint32_t right)
{
    uint32_t slot = tn_bpe_slot(left, right, t->n_slots);
    for (uint32_t probes = 0; probes < TERN_MAX_PROBES; probes++) {
        uint32_t rank = tn_load_once_u32(&t->slots[slot]) - 1;
        if (rank >= t->n_merges) /* empty slot, or a damaged file */
            return TN_NO_RANK;
        const struct tern_file_merge *merge = &t->merges[rank];
        if (merge->left == left && merge->right == right)
            return tn_load_once_u32(&merge->merged) < t->n_tokens ? rank : TN_NO_RANK;
        slot = (slot + 1) & (t->n_slots - 1);
    }
    return TN_NO_RANK;
}

/* The id that a pair of this rank becomes.  Checked again although pair_rank saw an id in range:
 * another process may have written to the mapped file since; then any valid id will do. */
static uint32_t merged_id(const struct tn_bpe_tables *t, uint32_t rank)
{
    const uint32_t id = tn_load_once_u32(&t->merges[rank].merged);
    return id < t->n_tokens ? id : 0;
}

/* ---- short pieces ---- */

/* Merges ids in place; ranks[i] is the rank of the pair (i, i + 1). */
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
        ids[best] = merged_id(t, ranks[best]);
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        memmove(ranks + best, ranks + best + 1, (n - best - 1) * sizeof *ranks);
        if (best > 0)
            ranks[best - 1] = pair_rank(t, ids[best - 1], ids[best]);
        if (best + 1 < n)
            ranks[best] = pair_rank(t, ids[best], ids[best + 1]);
    }
    return n;
}

/* ---- the set of ranks whose bucket is not empty ---- */

static void rank_set_add(struct tn_bpe_work *w, uint32_t rank)
{
    for (unsigned i = 0; i < w->n_levels; i++, rank /= 64)
        w->levels[i][rank / 64] |= 1ull << rank % 64;
}

static void rank_set_remove(struct tn_bpe_work *w, uint32_t rank)
{
    for (unsigned i = 0; i < w->n_levels; i++, rank /= 64) {
        w->levels[i][rank / 64] &= ~(1ull << rank % 64);
        if (w->levels[i][rank / 64])
            break;
    }
}

static uint32_t rank_set_lowest(const struct tn_bpe_work *w)
{
    if (w->levels[w->n_levels - 1][0] == 0)
        return TN_NO_RANK;
    uint32_t rank = 0;
    for (unsigned i = w->n_levels; i-- > 0;)
        rank = rank * 64 + (uint32_t)__builtin_ctzll(w->levels[i][rank]);
    return rank;
}

/* ---- the heap ---- */

static void heap_push(struct tn_bpe_work *w, uint64_t key)
{
    uint64_t *heap = tn_grow(w->heap, sizeof *heap, w->n_heap, &w->heap_room);
    if (!heap) {
        w->failed = true;
        return;
    }
    w->heap = heap;
    size_t i = w->n_heap++;
    for (; i > 0 && w->heap[(i - 1) / 2] > key; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = key;
}

static void heap_pop(struct tn_bpe_work *w)
{
    uint64_t key = w->heap[--w->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
        if (child + 1 < w->n_heap && w->heap[child + 1] < w->heap[child])
            child++;
        if (w->heap[child] >= key)
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = key;
}

/* The smallest key that is not stale, or UINT64_MAX. */
static uint64_t heap_lowest(struct tn_bpe_work *w)
{
    while (w->n_heap > 0) {
        uint64_t key = w->heap[0];
        const struct symbol *s = &w->symbols[(uint32_t)key];
        if (s->rank == key >> 32 && s->before == IN_HEAP)
            return key;
        heap_pop(w);
    }
    return UINT64_MAX;
}

/* ---- buckets ---- */

static void bucket_add(struct tn_bpe_work *w, uint32_t at)
{
    struct symbol *s = &w->symbols[at];
    struct bucket *b = &w->buckets[s->rank];
    s->after = NIL;
    if (b->state == BUCKET_EMPTY) {
        s->before = NIL;
        *b = (struct bucket){at, at, BUCKET_SORTED};
        rank_set_add(w, s->rank);
        return;
    }
    if (at < b->last) {
        if (b->state == BUCKET_OPEN) {
            s->before = IN_HEAP;
            heap_push(w, (uint64_t)s->rank << 32 | at);
            return;
        }
        b->state = BUCKET_UNSORTED;
    }
    s->before = b->last;
    w->symbols[b->last].after = at;
    b->last = at;
}

static void bucket_remove(struct tn_bpe_work *w, uint32_t at)
{
    struct symbol *s = &w->symbols[at];
    struct bucket *b = &w->buckets[s->rank];
    if (s->before != NIL)
        w->symbols[s->before].after = s->after;
    else
        b->first = s->after;
    if (s->after != NIL)
        w->symbols[s->after].before = s->before;
    else
        b->last = s->before;
    if (b->first == NIL) {
        b->state = BUCKET_EMPTY;
        rank_set_remove(w, s->rank);
    }
}

/* Merges two lists linked by `after`, both ascending. */
static uint32_t merge_lists(struct symbol *symbols, uint32_t a, uint32_t b)
{
    uint32_t first = NIL, *link = &first;
    while (a != NIL && b != NIL) {
        uint32_t *lower = a < b ? &a : &b;
        *link = *lower;
        link = &symbols[*lower].after;
        *lower = *link;
    }
    *link = a != NIL ? a : b;
    return first;
}

/* Merge sort of ascending runs, like a binary counter: runs[k] holds 2^k of them. */
static void bucket_sort(struct symbol *symbols, struct bucket *b)
{
    uint32_t runs[33], rest = b->first;
    memset(runs, 0xFF, sizeof runs);
    while (rest != NIL) {
        uint32_t run = rest, end = rest;
        while (symbols[end].after != NIL && symbols[end].after > end)
            end = symbols[end].after;
        rest = symbols[end].after;
        symbols[end].after = NIL;
        size_t k = 0;
        for (; runs[k] != NIL; k++) {
            run = merge_lists(symbols, runs[k], run);
            runs[k] = NIL;
        }
        runs[k] = run;
    }
    uint32_t sorted = NIL;
    for (size_t k = 0; k < TN_COUNT_OF(runs); k++)
        sorted = merge_lists(symbols, runs[k], sorted);
    b->first = sorted;
    b->last = NIL;
    for (uint32_t i = sorted; i != NIL; i = symbols[i].after) {
        symbols[i].before = b->last;
        b->last = i;
    }
}

/* ---- long pieces ---- */

/* Removes a symbol's pair from the queue. */
static void unqueue(struct tn_bpe_work *w, uint32_t at)
{
    struct symbol *s = &w->symbols[at];
    if (s->rank != TN_NO_RANK && s->before != IN_HEAP)
        bucket_remove(w, at);
    s->rank = TN_NO_RANK;
}

/* Looks up a symbol's pair again and queues it. */
static void requeue(struct tn_bpe_work *w, const struct tn_bpe_tables *t, uint32_t at)
{
    unqueue(w, at);
    struct symbol *s = &w->symbols[at];
    if (s->next == NIL)
        return;
    s->rank = pair_rank(t, s->id, w->symbols[s->next].id);
    if (s->rank != TN_NO_RANK)
        bucket_add(w, at);
}

/* The left symbol of the lowest, leftmost pair, or NIL. */
static uint32_t queue_lowest(struct tn_bpe_work *w)
{
    uint32_t rank = rank_set_lowest(w);
    uint64_t heap_key = heap_lowest(w), key = UINT64_MAX;
    if (rank != TN_NO_RANK) {
        struct bucket *b = &w->buckets[rank];
        if (b->state == BUCKET_UNSORTED)
            bucket_sort(w->symbols, b);
        b->state = BUCKET_OPEN;
        key = (uint64_t)rank << 32 | b->first;
    }
    return (uint32_t)TN_MIN(key, heap_key);
}

static void merge_long(struct tn_bpe_work *w, const struct tn_bpe_tables *t)
{
    for (uint32_t at; (at = queue_lowest(w)) != NIL;) {
        struct symbol *s = &w->symbols[at];
        uint32_t merged = merged_id(t, s->rank), gone = s->next;
        unqueue(w, gone);
        s->id = merged;
        s->next = w->symbols[gone].next;
        if (s->next != NIL)
            w->symbols[s->next].prev = at;
        requeue(w, t, at);
        if (s->prev != NIL)
            requeue(w, t, s->prev);
    }
}

static bool work_create(struct tn_bpe_work **work, uint32_t n_merges)
{
    struct tn_bpe_work *w = *work = tn_alloc_zeroed(1, sizeof *w);
    if (!w)
        return false;
    w->buckets = tn_alloc_zeroed(n_merges, sizeof *w->buckets);
    size_t n_words = n_merges;
    do {
        n_words = n_words / 64 + 1;
        w->levels[w->n_levels] = tn_alloc_zeroed(n_words, sizeof(uint64_t));
        if (!w->levels[w->n_levels++])
            return false;
    } while (n_words > 1);
    return w->buckets != NULL;
}

static bool work_reserve(struct tn_bpe_work *w, size_t n)
{
    if (n <= w->n_symbols)
        return true;
    if (n >= IN_HEAP || n > SIZE_MAX / sizeof *w->symbols)
        return false;
    tn_free(w->symbols);
    w->n_symbols = 0;
    w->symbols = tn_alloc(n * sizeof *w->symbols);
    if (!w->symbols)
        return false;
    w->n_symbols = n;
    return true;
}

void tn_bpe_work_free(struct tn_bpe_work *work)
{
    if (!work)
        return;
    tn_free(work->symbols);
    tn_free(work->buckets);
    for (unsigned i = 0; i < work->n_levels; i++)
        tn_free(work->levels[i]);
    tn_free(work->heap);
    tn_free(work);
}

static size_t merge_long_piece(const struct tn_bpe_tables *t, uint32_t *ids, size_t n,
                               struct tn_bpe_work **work)
{
    if ((!*work && !work_create(work, t->n_merges)) || !work_reserve(*work, n))
        return 0;
    struct tn_bpe_work *w = *work;
    for (uint32_t i = 0; i < n; i++)
        w->symbols[i] = (struct symbol){ids[i], i ? i - 1 : NIL, i + 1 < n ? i + 1 : NIL,
                                        TN_NO_RANK, NIL, NIL};
    for (uint32_t i = 0; i < n; i++)
        requeue(w, t, i);
    merge_long(w, t);
    if (w->failed)
        return 0;
    size_t n_ids = 0;
    for (uint32_t i = 0; i != NIL; i = w->symbols[i].next)
        ids[n_ids++] = w->symbols[i].id;
    return n_ids;
}

size_t tn_bpe_merge(const struct tn_bpe_tables *tables, uint32_t *ids, size_t n,
                    struct tn_bpe_work **work)
{
    if (n > SHORT_PIECE)
        return merge_long_piece(tables, ids, n, work);
    uint32_t ranks[SHORT_PIECE];
    return merge_short(tables, ids, ranks, n);
}

/* SPDX-License-Identifier: MIT
 *
 * The head in planes: finds every row that can be among the n_best largest logits without reading
 * all bits of all rows, and computes exactly the logits that gemv_q8_f32 would for them.
 *
 *   stage 0     the first planes of every row          survivors: upper bound >= threshold
 *   stage 1...  one more plane of the survivors each   threshold: a lower bound of the n_best-th
 *   last stage  the remaining rows again, in f32         largest logit
 *               and lane order
 *
 * Rows without unread bits are known and are not read again before the last stage.
 */

/* The threshold.  Rows are cut into groups; the n_best-th largest of the groups' best lower bounds
 * is a threshold.  After each stage the most promising row of each of these n_best groups is
 * computed exactly, which turns its lower bound into its logit: for a few rows, the threshold rises
 * by about the width of a bound.
 *
 * The bound.  A row is q = v + m, with m the offsets of the columns or zero.  Let v - e be the
 * middle of the values that the unread bits leave open, x the hidden state, y = x rounded to x16 *
 * unit, d = x - y.  Then v . x = (v - e) . y + (v - e) . d + e . x; the first term is known, and
 *
 *   |(v - e) . d| <= (|v| + |e|) |d|
 *   |e . x| <= |e| |x|
 *   |e . x| <= sum over |x_c| >= t of h (|x_c| - t / 2) + sum over the others of h x_c^2 / (2 t)
 *              + |e|^2 t / (2 h)
 *
 * by Cauchy and Schwarz and, because |e_c| <= h, half of the range of the open bits, by the maximum
 * of e_c x_c - e_c^2 t / (2 h), for every t > 0; the search uses the best t for an e of the size
 * that uniformly distributed bits have.  |v| and |e| are in the file, the rest is computed in
 * double.  The logit is an f32 sum: it differs from q . x by at most (cols / 16 + 16) 2^-24 sum
 * |q_c x_c|, which is at most 127 sqrt(cols) |x| times that factor.  The bound is the sum of all
 * terms, widened by 10^-6 for the rounding errors of the estimate.  It holds for every x, not only
 * with some probability.
 *
 * The result is a full row of logits for the sampler: survivors and `always` exact, all others
 * minus infinity.  With greedy choice (n_best 1) or top-k (n_best k, ties included) the choice is
 * that of the full product.  Ids whose logits change before the choice (penalties) go into
 * `always`: they are exact, and they do not count for the threshold. */
#ifndef TN_HEAD_H
#define TN_HEAD_H

#include <stdbool.h>

#include "kern/bit_planes.h"

#define TN_HEAD_ITEM_ROWS TERN_PLANE_BLOCK_ROWS /* rows per parallel item */
#define TN_HEAD_GROUP_ROWS 64u /* rows that share an entry of group_best */
#define TN_HEAD_UNPACK_ROWS 8u /* rows unpacked together */
#define TN_HEAD_MAX_STAGES (TN_MAX_PLANES + 1)
#define TN_HEAD_MAX_BEST 256u
#define TN_HEAD_MAX_SEARCHES 72u /* searches at the same time */
#define TN_HEAD_FORMS 16u /* values of TERN_PLANE_SHIFT and TERN_PLANE_CENTRED */

/* Which logits have to be exact.  With n_best 0 all are.  Else the n_best largest (ties included)
 * of those outside `always`, and all in `always`, are exact and the others may be minus infinity: a
 * head in planes then reads far fewer bytes.  If the choice is restricted, rows whose bit is not
 * set may have any value and do not count as the largest; if few are set, `only` lists them: then
 * these are exact, and n_best and `always` are ignored. */
struct tn_head_need {
    uint32_t n_best;
    uint32_t n_allowed;     /* rows from here on are never chosen */
    const uint32_t *always; /* [n_always] ascending */
    uint32_t n_always;
    const uint64_t *bits;   /* [n_allowed bits] the rows that may be chosen; NULL: all */
    const uint32_t *only;   /* [n_only] ascending */
    uint32_t n_only;        /* 0: no list */
};

/* The method for a need; rows of a batch are sorted by it. */
enum tn_head_way { TN_HEAD_ALL, TN_HEAD_SEARCH, TN_HEAD_LIST, TN_N_HEAD_WAYS };

static inline enum tn_head_way tn_head_way(const struct tn_head_need *need)
{
    return need->n_only > 0 ? TN_HEAD_LIST : need->n_best > 0 ? TN_HEAD_SEARCH : TN_HEAD_ALL;
}

/* A row whose logits are wanted. */
struct tn_logits_row {
    uint32_t row;
    struct tn_head_need need;
};

/* Rows of an item in the current stage. */
struct tn_head_count {
    uint32_t n_alive;
    uint32_t n_read;
};

struct tn_head_search {
    /* set by the caller */
    const struct tn_bit_planes *w;
    const struct tn_kernels *kernels;
    const float *x;         /* [cols] */
    uint32_t n_best;        /* 1 ... TN_HEAD_MAX_BEST */
    uint32_t n_first;       /* planes that stage 0 reads, 1 ... w->n_planes */
    uint32_t n_allowed;     /* rows from here on get minus infinity; at most w->rows */
    const uint32_t *always; /* [n_always] ascending row numbers */
    uint32_t n_always;
    const uint64_t *bits;   /* rows that count; NULL: all */
    float *logits;          /* [rows] result; upper bounds in between */
    /* memory of the caller */
    int16_t *x16;           /* [cols padded to TN_PLANE_COLS] */
    double *sums;           /* [rows] exact integer sums of the bits read so far */
    float *group_best;      /* [rows / TN_HEAD_GROUP_ROWS, rounded up] lower bounds */
    struct tn_head_count *counts; /* [items] */
    /* result */
    uint64_t n_rows[TN_HEAD_MAX_STAGES]; /* read in each stage */
    /* private */
    struct tn_bound_terms terms[TN_MAX_PLANES][TN_HEAD_FORMS];
    float threshold;
};

/* Memory of a thread. */
struct tn_head_scratch {
    int8_t *unpacked; /* [TN_HEAD_UNPACK_ROWS][cols] */
    void *kernel;     /* [64] TN_PLANE_SCRATCH_BYTES */
};

/* Prepares stage 0.  False if the bounds would not hold (x is not finite or so large that f32 sums
 * may overflow) or n_best is too large for the number of groups: then the caller runs only the last
 * stage, which computes every row. */
bool tn_head_search_begin(struct tn_head_search *s);
/* A stage has the number of the plane that it reads; the exact one follows the planes. */
static inline uint32_t tn_head_n_stages(const struct tn_head_search *s)
{
    return s->w->n_planes + 1;
}
/* The next stage; stage 0 covers n_first planes. */
static inline uint32_t tn_head_next_stage(const struct tn_head_search *s, uint32_t stage)
{
    return stage == 0 ? s->n_first : stage + 1;
}
/* Runs items [0, ceil(n_allowed / TN_HEAD_ITEM_ROWS)) of a stage of n searches, in any order, on
 * any thread; does nothing for items beyond n_allowed of a search.  The searches have the same
 * matrix and n_first, so that the first planes are read once for up to TN_PLANE_MAX_X of them. */
void tn_head_search_items(struct tn_head_search *const *s, uint32_t n, uint32_t stage,
                          uint32_t i_item, const struct tn_head_scratch *scratch);
/* Called after all items of a stage, on one thread; unpacked as in struct tn_head_scratch. */
void tn_head_search_end(struct tn_head_search *s, uint32_t stage, int8_t *unpacked);

/* The exact logits of n rows, relative to `begin`; needs only w, kernels and x.
 *   unpacked  as in struct tn_head_scratch */
void tn_head_score(const struct tn_head_search *s, uint32_t begin, const uint32_t *rows, uint32_t n,
                   int8_t *unpacked);

/* The bounds of a row after all planes up to `stage`, given the sum of its bits. */
void tn_head_bounds(const struct tn_head_search *s, uint32_t stage, uint32_t row, double sum,
                    float *low, float *high);

#endif

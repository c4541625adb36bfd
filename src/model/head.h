/* SPDX-License-Identifier: MIT
 *
 * The head in planes: finds every row that can be among the n_best largest logits without reading
 * all bits of all rows, and gives exactly the logits that gemv_q8_f32 would give for them.
 *
 *   stage 0     4 high bits of every row            survivors: upper bound >= threshold
 *   stage 1, 2  2 more bits of the survivors each   threshold: a lower bound of the n_best-th
 *   last stage  the remaining rows again, in f32      largest logit
 *               and lane order
 *
 * The bound.  Let w be a row of q8 values, e what the bits read so far leave open around the
 * middle w - e, x the hidden state, y = x rounded to x16 * unit, d = x - y.  Then
 *   |w . x - (w - e) . y| <= |e . x| + |(w - e) . d| <= |e| |x| + 128 sqrt(cols) |d|
 * (128: the largest |q| + 1, less for fewer bits)
 * by Cauchy and Schwarz; |e| is in the file, |x| and |d| are computed in double.  The logit is an
 * f32 sum: it differs from w . x by at most (cols / 16 + 16) 2^-24 sum |w_c x_c|, which is at most
 * 127 sqrt(cols) |x| times that factor.  Both are added, and the whole is widened by 10^-6 for the
 * roundings of the estimate itself.  The bound holds for every x; none is left to probability.
 *
 * The result is a full row of logits for the sampler: survivors and `always` exact, all others
 * minus infinity.  With greedy choice (n_best 1) or top-k (n_best k, ties included) the choice is
 * that of the plain head; ids whose logits change before the choice (penalties) go into `always`:
 * they are exact, and they do not count for the threshold.
 */
#ifndef TN_HEAD_H
#define TN_HEAD_H

#include <stdbool.h>

#include "kern/planes.h"

#define TN_HEAD_ITEM_ROWS TERN_PLANE_BLOCK_ROWS /* rows of a parallel item */
#define TN_HEAD_GROUP_ROWS 64u /* rows that share an entry of group_best */
#define TN_HEAD_MAX_STAGES (TN_MAX_PLANES + 1)
#define TN_HEAD_MAX_BEST 256u

struct tn_head_search {
    /* set by the caller */
    const struct tn_planes *w;
    const struct tn_kernels *kernels;
    const float *x;         /* [cols] */
    uint32_t n_best;        /* 1 ... TN_HEAD_MAX_BEST */
    uint32_t n_allowed;     /* rows from here on get minus infinity; at most w->rows */
    const uint32_t *always; /* [n_always] ascending row numbers */
    uint32_t n_always;
    float *logits;          /* [rows] result; upper bounds in between */
    /* memory of the caller */
    int16_t *x16;           /* [cols padded to TN_PLANE_COLS] */
    double *sums;           /* [rows] what the bits so far give: integers, exact */
    float *group_best;      /* [rows / TN_HEAD_GROUP_ROWS, rounded up] lower bounds */
    uint32_t *n_read;       /* [items] */
    /* result */
    uint64_t n_rows[TN_HEAD_MAX_STAGES]; /* read in each stage */
    /* private */
    double unit, sum_x16, norm_x, slack;
    float threshold;
};

/* Prepares stage 0.  False when the bounds would not hold (x is not finite or so large that f32
 * sums may overflow) or n_best is too large for the number of groups: then the caller runs the last
 * stage alone, which computes every row. */
bool tn_head_search_begin(struct tn_head_search *s);
/* One stage per plane, and the exact one. */
static inline uint32_t tn_head_n_stages(const struct tn_head_search *s)
{
    return s->w->n_planes + 1;
}
/* Items [0, ceil(n_allowed / TN_HEAD_ITEM_ROWS)) of a stage, in any order, on any thread.
 *   row  [cols] int8 of the thread; last stage only */
void tn_head_search_item(struct tn_head_search *s, uint32_t stage, uint32_t i_item, int8_t *row);
/* After all items of a stage, on one thread. */
void tn_head_search_end(struct tn_head_search *s, uint32_t stage);

/* What a stage but the last knows of a row whose bits so far give `sum`. */
void tn_head_bounds(const struct tn_head_search *s, uint32_t stage, uint32_t row, double sum,
                    float *low, float *high);

#endif

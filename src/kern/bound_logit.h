/* SPDX-License-Identifier: MIT
 *
 * The bound of one logit (model/head.h), and the loops over rows.  Plain C that compilers
 * vectorise: each file that includes this compiles the loops for its level.  Every operation is one
 * IEEE operation, so all levels return the same bits.
 */
#ifndef TN_BOUND_LOGIT_H
#define TN_BOUND_LOGIT_H

#include <math.h>

#include "kern/kern.h"

static TN_ALWAYS_INLINE void tn_bound_logit(float *low, float *high, double sum, double scale,
                                            double norm, double open,
                                            const struct tn_bound_terms *t)
{
    double estimate = (t->factor * sum + t->add) * scale;
    double around = TN_MIN(open * t->norm_x, t->base + t->slope * open * open);
    double wide = scale * (around + (norm + open) * t->lost + t->slack);
    wide += (fabs(estimate) + wide) * 1e-6 + 1e-37;
    *low = (float)(estimate - wide);
    *high = (float)(estimate + wide);
}

static TN_ALWAYS_INLINE void bound_logits(float *restrict low, float *restrict high,
                                          const double *restrict sums, uint32_t n,
                                          const struct tn_bound_rows *rows,
                                          const struct tn_bound_terms *terms)
{
    const struct tn_bound_terms t = *terms;
    const float *restrict scales = rows->scales, *restrict norms = rows->norms;
    const float *restrict open = rows->open;
    for (uint32_t i = 0; open && i < n; i++)
        tn_bound_logit(&low[i], &high[i], sums[i], (double)scales[i], (double)norms[i],
                       (double)open[i], &t);
    for (uint32_t i = 0; !open && i < n; i++)
        tn_bound_logit(&low[i], &high[i], sums[i], (double)scales[i], (double)norms[i], 0.0, &t);
}

/* Defines tn_add_i32_f64_<isa> and tn_bound_logits_<isa>. */
#define BOUND_LOGITS_DEFINE(isa)                                                                   \
    void tn_add_i32_f64_##isa(double *restrict dst, const int32_t *restrict src, uint32_t n,       \
                              double factor)                                                       \
    {                                                                                              \
        for (uint32_t k = 0; k < n; k++)                                                           \
            dst[k] += (double)src[k] * factor;                                                     \
    }                                                                                              \
    void tn_bound_logits_##isa(float *low, float *high, const double *sums, uint32_t n,            \
                               const struct tn_bound_rows *rows,                                   \
                               const struct tn_bound_terms *terms)                                 \
    {                                                                                              \
        bound_logits(low, high, sums, n, rows, terms);                                             \
    }

#endif

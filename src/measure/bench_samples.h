/* SPDX-License-Identifier: MIT
 *
 * Repeats of one measurement, kept sorted; the reported rate is their median, with best and spread.
 *
 * Used by every file of the benchmark.
 */
#ifndef TN_BENCH_SAMPLES_H
#define TN_BENCH_SAMPLES_H

#include "tern/measure.h"

#define TN_BENCH_MAX_REPEATS 32u

struct tn_samples {
    double v[TN_BENCH_MAX_REPEATS]; /* ascending */
    uint32_t n;
};

static inline void tn_samples_add(struct tn_samples *s, double v)
{
    uint32_t i = s->n++;
    for (; i > 0 && s->v[i - 1] > v; i--)
        s->v[i] = s->v[i - 1];
    s->v[i] = v;
}

static inline struct tern_bench_rate tn_samples_rate(const struct tn_samples *s)
{
    if (s->n == 0)
        return (struct tern_bench_rate){0};
    double worst = s->v[0], best = s->v[s->n - 1];
    double median = (s->v[(s->n - 1) / 2] + s->v[s->n / 2]) / 2;
    return (struct tern_bench_rate){.median = median, .best = best,
                                    .spread = (best - worst) / median};
}

#endif

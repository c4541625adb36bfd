/* SPDX-License-Identifier: MIT
 *
 * Tries prefetch patterns of one kernel.  Only in bench_sweep, whose kernels read their distances
 * from variables.  That costs them a little in the cache, but only patterns are compared.  Every
 * round measures all patterns, so that a change of the machine's speed affects all of them.
 */
#include "bench/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bench/report.h"
#include "kern/prefetch.h"

#define N_ROUNDS 3u

struct tn_prefetch tn_prefetch_tuned[TN_N_PREFETCHES];

/* The columns of the table in kern/prefetch.h. */
static const struct tn_prefetch columns[3][TN_N_PREFETCHES] = {
#define AVX512(name, af, a2, a1, ...) {af, a2, a1},
    {TN_PREFETCH_LIST(AVX512)},
#define AVX2(name, af, a2, a1, bf, b2, b1, ...) {bf, b2, b1},
    {TN_PREFETCH_LIST(AVX2)},
#define OTHERS(name, af, a2, a1, bf, b2, b1, cf, c2, c1) {cf, c2, c1},
    {TN_PREFETCH_LIST(OTHERS)},
};

static void take_column(const char *isa)
{
    const bool is_avx512 = strcmp(isa, "avx512") == 0 || strcmp(isa, "amx") == 0;
    const int i = is_avx512 ? 0 : strncmp(isa, "avx", 3) == 0 ? 1 : 2;
    memcpy(tn_prefetch_tuned, columns[i], sizeof tn_prefetch_tuned);
}

static const struct {
    const char *op;
    enum tn_prefetch_name name;
} swept[] = {
    {"gemv_t2_i8", TN_PREFETCH_T2_I8},   {"gemv_t2_x16", TN_PREFETCH_T2_X16},
    {"gemv_t2_x8", TN_PREFETCH_T2_X8},   {"gemm_t2_i8", TN_PREFETCH_T2_FEW},
    {"gemv_r2_i8", TN_PREFETCH_R2},      {"few_r2_i8", TN_PREFETCH_R2_FEW},
    {"gemv_c2_i8", TN_PREFETCH_C2},      {"dot_u5_i16", TN_PREFETCH_PLANES},
    {"dot_u4_i16", TN_PREFETCH_PLANES},  {"dot_u2_i16", TN_PREFETCH_PLANES},
    {"dot_u1_i16", TN_PREFETCH_PLANES},  {"attn_qk_q8", TN_PREFETCH_KEYS},
    {"attn_pv_q8", TN_PREFETCH_VALUES},  {"gemv_blocks_x8", TN_PREFETCH_BLOCKS},
    {"gemv_blocks_x16", TN_PREFETCH_BLOCKS},
};

/* Distances to combine. */
struct choices {
    uint32_t far[3], l2[8], l1[6];
    uint32_t n_far, n_l2, n_l1;
    bool is_single; /* either l2 or l1 */
};

static const struct choices streams = {{0, 12288, 16384}, {0, 4096, 8192, 12288, 16384, 24576},
                                       {0, 512, 1024, 2048, 4096, 8192}, 3, 6, 6, false};
static const struct choices lists = {{0}, {0, 4096, 8192, 10240, 12288, 16384, 24576},
                                     {0, 1024, 2048, 4096, 6144}, 1, 7, 5, false};
static const struct choices batches = {{0}, {0, 2, 3}, {0, 1}, 1, 3, 2, false};
static const struct choices rows = {{0}, {0, 2048, 4096, 8192, 16384, 24576},
                                    {0, 2048, 4096, 8192, 16384}, 1, 6, 5, true};

static const struct choices *choices_of(enum tn_prefetch_name name)
{
    switch (name) {
    case TN_PREFETCH_R2:
    case TN_PREFETCH_R2_FEW:
        return &lists;
    case TN_PREFETCH_C2:
        return &batches;
    case TN_PREFETCH_VALUES:
        return &rows;
    default:
        return &streams;
    }
}

struct trial {
    struct tn_prefetch pattern;
    double gb_s[N_ROUNDS][TN_BENCH_MAX_RATES];
    double median[TN_BENCH_MAX_RATES];
    double mean; /* of the medians */
};

#define MAX_TRIALS (8u * 3u * 6u)

/* A later request has a smaller distance; the far one requests the same lines as l2. */
static bool is_pattern(const struct tn_prefetch *p, bool is_single)
{
    return (!p->far || (p->l2 && p->l2 < p->far)) && (!p->l2 || p->l1 < p->l2) &&
           !(is_single && p->l2 && p->l1);
}

static uint32_t list_trials(struct trial *trials, const struct choices *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_far; i++)
        for (uint32_t j = 0; j < c->n_l2; j++)
            for (uint32_t k = 0; k < c->n_l1; k++) {
                const struct tn_prefetch p = {c->far[i], c->l2[j], c->l1[k]};
                if (is_pattern(&p, c->is_single))
                    trials[n++] = (struct trial){.pattern = p};
            }
    return n;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_mean(const void *a, const void *b)
{
    return -by_value(&((const struct trial *)a)->mean, &((const struct trial *)b)->mean);
}

static void finish_trial(struct trial *t, uint32_t n_rates)
{
    for (uint32_t k = 0; k < n_rates; k++) {
        double v[N_ROUNDS];
        for (uint32_t r = 0; r < N_ROUNDS; r++)
            v[r] = t->gb_s[r][k];
        qsort(v, N_ROUNDS, sizeof v[0], by_value);
        t->median[k] = v[N_ROUNDS / 2];
        t->mean += t->median[k] / n_rates;
    }
}

static void print(const struct trial *trials, uint32_t n, uint32_t n_rates, double stream_gbs)
{
    printf("     far     l2     l1   GB/s");
    printf("%*s of the stream\n", (int)(7 * (n_rates - 1)), "");
    for (uint32_t i = 0; i < n; i++) {
        const struct trial *t = &trials[i];
        printf("  %6u %6u %6u", t->pattern.far, t->pattern.l2, t->pattern.l1);
        for (uint32_t k = 0; k < n_rates; k++)
            printf(" %6.2f", t->median[k]);
        printf("  %4.0f %%\n", t->mean / stream_gbs * 100);
    }
}

static void sweep(const struct choices *choices, enum tn_prefetch_name name,
                  void (*run)(void *arg), void *arg, double stream_gbs)
{
    static struct trial trials[MAX_TRIALS];
    const uint32_t n = list_trials(trials, choices);
    for (uint32_t r = 0; r < N_ROUNDS; r++)
        for (uint32_t i = 0; i < n; i++) {
            tn_prefetch_tuned[name] = trials[i].pattern;
            tn_bench_report.n = 0;
            run(arg);
            memcpy(trials[i].gb_s[r], tn_bench_report.gb_s, sizeof trials[i].gb_s[r]);
        }
    for (uint32_t i = 0; i < n; i++)
        finish_trial(&trials[i], tn_bench_report.n);
    qsort(trials, n, sizeof trials[0], by_mean);
    print(trials, n, tn_bench_report.n, stream_gbs);
}

void tn_sweep(const char *op, const char *isa, void (*run)(void *arg), void *arg,
              double stream_gbs)
{
    for (size_t i = 0; i < TN_COUNT_OF(swept); i++)
        if (strcmp(swept[i].op, op) == 0) {
            printf("%s %s, medians of %u rounds, distances in bytes, stream %.1f GB/s\n", op, isa,
                   N_ROUNDS, stream_gbs);
            take_column(isa);
            sweep(choices_of(swept[i].name), swept[i].name, run, arg, stream_gbs);
        }
}

/* SPDX-License-Identifier: MIT
 *
 * What the kernel benchmarks measure, and the destination of a rate: a line of text, or the table
 * of a sweep (sweep.c).
 */
#ifndef TN_BENCH_REPORT_H
#define TN_BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define TN_BENCH_MAX_RATES 8u /* rates from memory that one kernel reports */

struct tn_bench_report {
    bool only_memory; /* skip measurements from the cache */
    bool is_sweep;    /* collect rates and print nothing */
    double gb_s[TN_BENCH_MAX_RATES]; /* [n] from memory, in the order of measurement */
    uint32_t n;
};

extern struct tn_bench_report tn_bench_report;

/* 0: from the cache, then from memory; 1: from memory only. */
static inline int tn_bench_first_place(void)
{
    return tn_bench_report.only_memory;
}

/* A rate from memory.  True when a line is to be printed as well. */
static inline bool tn_bench_add_rate(double gb_s)
{
    if (tn_bench_report.n < TN_BENCH_MAX_RATES)
        tn_bench_report.gb_s[tn_bench_report.n++] = gb_s;
    return !tn_bench_report.is_sweep;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * bench_kern [--only OP] [--level LEVEL] [--memory] [--sweep] [FILTER]: measures every kernel of
 * kern_list.h that this CPU supports, on one thread.
 *
 * Decode kernels and bit planes: GB/s of needed weights, from the second-level cache and from
 * memory, as a share of the stream rate measured at that moment.  If rows or columns are skipped,
 * that rate is out of reach, and a plain loop that skips as often is measured for comparison.
 * gemm: multiply-adds per second from cache, as a share of the instruction's peak.  Median of the
 * runs, interquartile range relative to it, and the best.  FILTER is a substring of "op_isa".
 * --sweep tries prefetch patterns (kern/prefetch.h) and prints a table, the best first.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef _WIN32
#include <unistd.h>
#endif

#include "bench/bench_blocks.h"
#include "bench/bench_float.h"
#include "bench/bench_ternary.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/sweep.h"
#include "plat/plat.h"

struct tn_bench_report tn_bench_report;

enum {
#define OP_NUMBER(op) OP_##op,
    TN_KERN_OPS(OP_NUMBER)
#undef OP_NUMBER
    N_OPS
};
static_assert(TN_BENCH_N_TERNARY + TN_BENCH_N_FLOAT + TN_BENCH_N_BLOCKS == N_OPS,
              "every operation is measured");

/* bench_sweep is the same program with kernels that read their distances from variables. */
#ifdef TN_PREFETCH_TUNABLE
#define TUNABLE true
#else
#define TUNABLE false
#define tn_sweep(op, isa, run, arg, stream_gbs) ((void)0)
#endif

static int run_bench_sweep(char **argv)
{
    char path[4096];
    char *folder = tn_path_of_executable_dir();
    snprintf(path, sizeof path, "%s/bench_sweep", folder ? folder : ".");
    free(folder);
#ifndef _WIN32
    execv(path, argv);
#else
    (void)argv;
#endif
    fprintf(stderr, "bench_kern: sweeps are made by %s, which cannot be started from here\n", path);
    return 2;
}

struct run {
    const struct tn_kernel_row *row;
    double stream_gbs;
};

static void run_row(void *arg)
{
    const struct run *r = arg;
    tn_bench_ternary(r->row);
    tn_bench_float(r->row, r->stream_gbs);
    tn_bench_blocks(r->row, r->stream_gbs);
}

int main(int argc, char **argv)
{
    struct tn_bench_options options;
    if (!tn_bench_take_options(&options, argc, argv)) {
        fputs("usage: bench_kern [--only OP] [--level LEVEL] [--memory] [--sweep] [FILTER]\n",
              stderr);
        return 2;
    }
    if (options.is_sweep && !TUNABLE)
        return run_bench_sweep(argv);
    struct run run = {.stream_gbs = tn_bench_ternary_init()};
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        run.row = &tn_kernel_rows[i];
        if (!tn_bench_is_selected(&options, run.row))
            continue;
        if (options.is_sweep)
            tn_sweep(run.row->op, run.row->isa, run_row, &run, run.stream_gbs);
        else
            run_row(&run);
        fflush(stdout);
    }
    return 0;
}

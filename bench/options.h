/* SPDX-License-Identifier: MIT
 *
 * Options of bench_kern: which kernels it runs, and whether it prints their rates or collects them
 * for a sweep.
 */
#ifndef TN_BENCH_OPTIONS_H
#define TN_BENCH_OPTIONS_H

#include <stdbool.h>

#include "kern/kern.h"

struct tn_bench_options {
    const char *filter;     /* a substring of "op_isa" */
    const char *op, *level; /* NULL: all */
    bool is_sweep;
};

/* False: an option is unknown or incomplete.  Also sets tn_bench_report. */
bool tn_bench_take_options(struct tn_bench_options *o, int argc, char **argv);
/* Whether this CPU runs the kernel and the options select it. */
bool tn_bench_is_selected(const struct tn_bench_options *o, const struct tn_kernel_row *row);

#endif

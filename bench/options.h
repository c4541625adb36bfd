/* SPDX-License-Identifier: MIT
 *
 * Options of bench_kern.
 */
#ifndef TN_BENCH_OPTIONS_H
#define TN_BENCH_OPTIONS_H

#include <stdbool.h>

#include "kern/kern.h"

struct tn_bench_options {
    const char *filter;     /* a part of "op_isa" */
    const char *op, *level; /* NULL: every one */
    bool is_sweep;
};

/* False: unknown or incomplete.  Also sets tn_bench_report. */
bool tn_bench_take_options(struct tn_bench_options *o, int argc, char **argv);
/* Whether this CPU runs the kernel and the options select it. */
bool tn_bench_is_selected(const struct tn_bench_options *o, const struct tn_kernel_row *row);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The part of bench_kern that measures the float kernels; bench_kern.c calls it for every row of
 * kern_list.h.
 */
#ifndef TN_BENCH_FLOAT_H
#define TN_BENCH_FLOAT_H

#include "measure/kernel_calls.h"

/* Operations measured here: those of the table, and bound_logits. */
#define TN_BENCH_N_FLOAT (TN_N_CALL_OPS + 1u)

/* Prints the lines of one row of kern_list.h; nothing for a kernel that is not a float kernel.
 * stream_gbs is the rate at which one thread reads memory. */
void tn_bench_float(const struct tn_kernel_row *row, double stream_gbs);

#endif

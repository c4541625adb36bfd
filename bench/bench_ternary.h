/* SPDX-License-Identifier: MIT
 *
 * The part of bench_kern that measures the kernels of ternary matrices and of the head's bit
 * planes; bench_kern.c calls it for every row of kern_list.h.
 */
#ifndef TN_BENCH_TERNARY_H
#define TN_BENCH_TERNARY_H

#include "kern/kern.h"

#define TN_BENCH_N_TERNARY 21u /* operations measured here */

/* Allocates inputs and weights (1 GiB), and prints what plain loops reach.  Returns the rate at
 * which one thread reads memory, in GB/s.  Called once, before tn_bench_ternary. */
double tn_bench_ternary_init(void);

/* Prints the lines of one row of kern_list.h; nothing for a kernel of another kind. */
void tn_bench_ternary(const struct tn_kernel_row *row);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The part of bench_kern that measures the float kernels.
 */
#ifndef TN_BENCH_FLOAT_H
#define TN_BENCH_FLOAT_H

#include "kern/kern.h"

#define TN_BENCH_N_FLOAT 32u /* operations that are measured here */

/* Prints the lines of one row of kern_list.h; nothing for a kernel that is not a float kernel.
 * stream_gbs is what one thread reads from memory. */
void tn_bench_float(const struct tn_kernel_row *row, double stream_gbs);

#endif

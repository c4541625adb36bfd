/* SPDX-License-Identifier: MIT
 *
 * The part of bench_kern that measures products of matrices in blocks; bench_kern.c calls it for
 * every row of kern_list.h.
 */
#ifndef TN_BENCH_BLOCKS_H
#define TN_BENCH_BLOCKS_H

#include "kern/kern.h"

#define TN_BENCH_N_BLOCKS 5u /* operations measured here */

/* Prints the lines of one row of kern_list.h, a line for each layout; nothing for a kernel of
 * another kind.  stream_gbs is the rate at which one thread reads memory. */
void tn_bench_blocks(const struct tn_kernel_row *row, double stream_gbs);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Limits of this machine, measured: the rates that the best possible kernel could reach.
 * bench_kern prints shares of them.
 */
#ifndef TN_BENCH_PEAK_H
#define TN_BENCH_PEAK_H

#include <stddef.h>
#include <stdint.h>

/* Reads n_bytes of memory n_runs times on one thread; returns GB/s.  n_bytes must be much larger
 * than the caches. */
double tn_peak_stream(const void *data, size_t n_bytes, unsigned n_runs);

/* The same for rows of row_bytes (a multiple of 64), each of which is read with probability
 * `density`: approximately the cost of skipping without computing.  Kernels whose prefetches have
 * more time can be slightly faster. */
double tn_peak_rows(const void *data, size_t n_bytes, size_t row_bytes, double density,
                    unsigned n_runs);

/* int8 multiply-adds per second (1e9) of the instruction that the gemm kernels of `isa` use, on
 * registers only: the upper bound for those kernels.  The CPU must have the instruction; 0 if there
 * is no such measurement. */
double tn_peak_macs(const char *isa);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Ceilings of this machine, measured: what the best possible kernel could do.
 */
#ifndef TN_BENCH_PEAK_H
#define TN_BENCH_PEAK_H

#include <stddef.h>
#include <stdint.h>

/* One thread reading n_bytes of memory n_runs times; returns GB/s. n_bytes must be far more than
 * the caches hold. */
double tn_peak_stream(const void *data, size_t n_bytes, unsigned n_runs);

/* The same for rows of row_bytes (a multiple of 64) of which each is read with probability
 * `density`: about what skipping costs when nothing is computed.  Kernels that leave their
 * prefetches more time get some more. */
double tn_peak_rows(const void *data, size_t n_bytes, size_t row_bytes, double density,
                    unsigned n_runs);

/* int8 multiply-adds per second (1e9) of the instruction that the gemm kernels of `isa` use, from
 * registers only: what those kernels could reach at best. The CPU must have the instruction; 0
 * when there is no such measurement. */
double tn_peak_macs(const char *isa);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Ceilings of this machine, measured: what the best possible kernel could do.
 */
#ifndef TN_BENCH_PEAK_H
#define TN_BENCH_PEAK_H

#include <stddef.h>
#include <stdint.h>

/* One thread reading n_bytes of memory once; returns GB/s, the best of `n_runs`. */
double tn_peak_stream(const void *data, size_t n_bytes, unsigned n_runs);

/* int8 multiply-adds per second (1e9) of the instruction that the gemm kernels of `isa` use, from
 * registers only: what those kernels could reach at best. 0 when there is no such measurement. The CPU must have
 * the instruction. */
double tn_peak_macs(const char *isa);

#endif

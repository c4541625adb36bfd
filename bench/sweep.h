/* SPDX-License-Identifier: MIT
 *
 * Tries prefetch patterns of one kernel and prints the fastest ones, for the table in
 * kern/prefetch.h.
 */
#ifndef TN_BENCH_SWEEP_H
#define TN_BENCH_SWEEP_H

/* Measures a kernel with every pattern and prints a table, the best first; `run` adds its rates
 * from memory to tn_bench_report.  A kernel without a row in kern/prefetch.h prints nothing.
 *   op          as in kern_list.h
 *   stream_gbs  the rate at which one thread reads memory */
void tn_sweep(const char *op, const char *isa, void (*run)(void *arg), void *arg,
              double stream_gbs);

#endif

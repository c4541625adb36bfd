/* SPDX-License-Identifier: MIT
 *
 * The part of bench_kern that measures the overhead of a parallel loop (par/team.h), which decode
 * pays several times per layer.
 */
#ifndef TN_BENCH_LOOP_COST_H
#define TN_BENCH_LOOP_COST_H

#include <stdint.h>

/* Prints the time of an empty loop over n_threads threads; prints nothing if the machine has fewer
 * processors. */
void tn_bench_loop_cost(uint32_t n_threads);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What a parallel loop costs.
 */
#ifndef TN_BENCH_LOOP_COST_H
#define TN_BENCH_LOOP_COST_H

#include <stdint.h>

/* Prints the time of an empty loop over n_threads threads; nothing where the machine has fewer
 * processors. */
void tn_bench_loop_cost(uint32_t n_threads);

#endif

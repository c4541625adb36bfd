/* SPDX-License-Identifier: MIT
 *
 * The parts of tern_bench that look below the session: memory and kernels.
 */
#ifndef TN_BENCH_H
#define TN_BENCH_H

#include "run/engine.h"
#include "tern/measure.h"

/* Whether the memory that tn_bench_stream takes is there. */
tern_status tn_bench_check_memory(const struct tern_model *model, struct tern_error *err);

/* GB/s of plain reading with each of threads[n], from the model's own data where it is larger than
 * the caches, else from memory taken for it. */
tern_status tn_bench_stream(double *gb_s, const struct tern_model *model, const uint32_t *threads,
                            uint32_t n, struct tern_error *err);

/* Every weight-reading kernel of this CPU on the model's matrices, one thread.  Shares refer to a
 * stream rate of one thread that is measured here. */
tern_status tn_bench_kernels(struct tern_bench_result *result, const struct tern_model *model,
                             struct tern_error *err);

#endif

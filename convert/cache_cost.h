/* SPDX-License-Identifier: MIT
 *
 * Measures the error that a smaller key/value cache causes, on the finished part file, and derives
 * the model's cache type from it.
 *
 * The measure is the mean Kullback-Leibler divergence of the next token's distribution from that
 * of an f32 cache, in nats, over the last 8 of at most 32 ids.  For models whose inputs are int8,
 * f16 alone costs 0.0003 to 0.0009 nats and q8 one to three times that; with unrounded inputs q8
 * costs 0.0001 to 0.0003.  Keys whose channels differ 50-fold (because of a norm or a bias before
 * the rotation) share one scale per 64 channels, and q8 then costs 0.02 nats; with the biases of
 * Qwen2.5 0.5B it costs 0.4.
 */
#ifndef TN_CONVERT_CACHE_COST_H
#define TN_CONVERT_CACHE_COST_H

#include "tern/tern.h"

struct tn_cache_cost {
    double f16_nats, q8_nats;
};

/* The model must have a head.  Deterministic: the same bits at every kernel level.  Takes the
 * memory of a session, and at most 16 MiB for logits (more only if a row exceeds 8 MiB).
 * TERN_INTERRUPTED: should_stop; TERN_MEMORY. */
tern_status tn_cache_cost_measure(struct tn_cache_cost *out, struct tern_engine *engine,
                                  const struct tern_model *model, bool (*should_stop)(void *arg),
                                  void *arg, struct tern_error *err);

/* Whether q8 costs too much. */
bool tn_cache_cost_is_too_high(const struct tn_cache_cost *cost);

#endif

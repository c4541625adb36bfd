/* SPDX-License-Identifier: MIT
 *
 * What a smaller key/value cache costs a model, measured on the finished part file, and the cache
 * type that follows from it.
 *
 * The yardstick is the mean Kullback-Leibler divergence of the next token's distribution from that
 * of an f32 cache, in nats, over TN_CACHE_COST_IDS ids.  Models whose inputs are int8 show f16
 * itself at 0.0003 to 0.0009 nats and q8 at one to three times that; models with unrounded inputs
 * show q8 at 0.0001 to 0.0003.  Keys whose channels differ 50-fold (a norm or a bias in front of
 * the rotation can make them so) share one scale per 64 channels and bring q8 to 0.02 nats.
 */
#ifndef TN_CONVERT_CACHE_COST_H
#define TN_CONVERT_CACHE_COST_H

#include "tern/tern.h"

#define TN_CACHE_COST_IDS 32u
/* q8 may cost at most this many times what f16 costs, ... */
#define TN_CACHE_COST_FACTOR 3.0
/* ... where f16 counts as at least this: less cannot be told from rounding. */
#define TN_CACHE_COST_LEAST 0.0005

struct tn_cache_cost {
    double f16_nats, q8_nats;
};

/* The model has a head. Deterministic: the same bits at every kernel level. Takes the scratch of
 * three sessions and at most 16 MiB for logits. TERN_INTERRUPTED: should_stop; TERN_MEMORY. */
tern_status tn_cache_cost_measure(struct tn_cache_cost *out, struct tern_engine *engine,
                                  const struct tern_model *model, bool (*should_stop)(void *arg),
                                  void *arg, struct tern_error *err);

/* Does q8 cost too much? */
bool tn_cache_cost_is_too_high(const struct tn_cache_cost *cost);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The sampler's random numbers: xoshiro256** 1.0 (Blackman and Vigna), seeded by splitmix64.  The
 * same sequence on every machine.
 */
#ifndef TN_RNG_H
#define TN_RNG_H

#include <stdint.h>

struct tn_rng {
    uint64_t s[4];
};

/* Starts the sequence of `seed`; every value is a good seed. */
void tn_rng_seed(struct tn_rng *rng, uint64_t seed);
/* The next 64 bits. */
uint64_t tn_rng_next(struct tn_rng *rng);
/* Uniform in [0, 1): (x >> 40) * 2^-24, exact in f32. */
float tn_rng_f32(struct tn_rng *rng);

#endif

/* SPDX-License-Identifier: MIT
 *
 * xoshiro256** 1.0, a public-domain algorithm by David Blackman and Sebastiano Vigna, seeded with
 * splitmix64 as its authors recommend.
 */
#include "base/rng.h"

static uint64_t rotate_left(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void tn_rng_seed(struct tn_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rng->s[i] = splitmix64(&seed);
}

uint64_t tn_rng_next(struct tn_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

float tn_rng_f32(struct tn_rng *rng)
{
    return (float)(tn_rng_next(rng) >> 40) * 0x1p-24f;
}

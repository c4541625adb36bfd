/* SPDX-License-Identifier: MIT
 *
 * The fast Walsh-Hadamard transform, written once for all instruction sets: the order of the
 * butterflies is fixed, so every width of vectors gives the same bits.  A kernel file defines its
 * vectors before HADAMARD_DEFINE:
 *
 *   vec_t, LANES, load, store, add, sub, mul, splat
 *   lanes(v)   the butterflies of halves 1, 2 ... LANES / 2 inside a vector
 */
#ifndef TN_HADAMARD_H
#define TN_HADAMARD_H

#include <stdint.h>

#include "base/compiler.h"

/* block^-1/2, the nearest f32: exact for even powers of two. */
static inline float tn_hadamard_scale(uint32_t block)
{
    float scale = 1;
    for (; block >= 4; block /= 4)
        scale *= 0.5f;
    return block == 2 ? scale * 0.70710678f : scale;
}

/* One block: butterflies of distance 1, 2, 4 ... block / 2, then the scale. */
static inline void tn_hadamard_block(float *x, uint32_t block, float scale)
{
    for (uint32_t half = 1; half < block; half *= 2)
        for (uint32_t i = 0; i < block; i += 2 * half)
            for (uint32_t j = i; j < i + half; j++) {
                const float a = x[j], b = x[j + half];
                x[j] = a + b;
                x[j + half] = a - b;
            }
    for (uint32_t i = 0; i < block; i++)
        x[i] *= scale;
}

#define HADAMARD_DEFINE(isa)                                                                       \
    /* Distances `half` and 2 * half in one pass. */                                               \
    static void butterflies_4(float *x, uint32_t block, uint32_t half)                             \
    {                                                                                              \
        for (uint32_t i = 0; i < block; i += 4 * half)                                             \
            for (uint32_t j = i; j < i + half; j += LANES) {                                       \
                const vec_t v0 = load(x + j), v1 = load(x + j + half);                             \
                const vec_t v2 = load(x + j + 2 * half), v3 = load(x + j + 3 * half);              \
                const vec_t a = add(v0, v1), b = sub(v0, v1), c = add(v2, v3), d = sub(v2, v3);    \
                store(x + j, add(a, c));                                                           \
                store(x + j + half, add(b, d));                                                    \
                store(x + j + 2 * half, sub(a, c));                                                \
                store(x + j + 3 * half, sub(b, d));                                                \
            }                                                                                      \
    }                                                                                              \
    static void butterflies_2(float *x, uint32_t block, uint32_t half)                             \
    {                                                                                              \
        for (uint32_t i = 0; i < block; i += 2 * half)                                             \
            for (uint32_t j = i; j < i + half; j += LANES) {                                       \
                const vec_t a = load(x + j), b = load(x + j + half);                               \
                store(x + j, add(a, b));                                                           \
                store(x + j + half, sub(a, b));                                                    \
            }                                                                                      \
    }                                                                                              \
    static void transform(float *x, uint32_t block, float scale)                                   \
    {                                                                                              \
        uint32_t half = LANES;                                                                     \
        for (uint32_t i = 0; i < block; i += LANES)                                                \
            store(x + i, lanes(load(x + i)));                                                      \
        for (; 2 * half < block; half *= 4)                                                        \
            butterflies_4(x, block, half);                                                         \
        if (half < block)                                                                          \
            butterflies_2(x, block, half);                                                         \
        for (uint32_t i = 0; i < block; i += LANES)                                                \
            store(x + i, mul(load(x + i), splat(scale)));                                          \
    }                                                                                              \
    void tn_hadamard_f32_##isa(float *x, uint32_t n, uint32_t block)                               \
    {                                                                                              \
        const float scale = tn_hadamard_scale(block);                                              \
        for (uint32_t i = 0; i < n; i += block) {                                                  \
            if (block < LANES)                                                                     \
                tn_hadamard_block(x + i, block, scale);                                            \
            else                                                                                   \
                transform(x + i, block, scale);                                                    \
        }                                                                                          \
    }

#endif

/* SPDX-License-Identifier: MIT
 *
 * Blocks in the encodings of GGUF files, generated for tests and benchmarks.
 *
 * One row per type: its layout, its sizes, and the offsets of its scales.
 */
#ifndef TN_TEST_BLOCKS_SOURCE_H
#define TN_TEST_BLOCKS_SOURCE_H

#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "kern/blocks.h"

struct blocks_type {
    const char *name;
    uint32_t layout, block, n_bytes;
    uint32_t n_scales, scale[2]; /* offsets of its f16 scales */
    bool has_known_answers;
};

static const struct blocks_type blocks_types[] = {
    {"Q8_0", TERN_LAYOUT_Q8_0, 32, 34, 1, {0, 0}, true},
    {"Q4_0", TERN_LAYOUT_Q4_0, 32, 18, 1, {0, 0}, true},
    {"Q4_1", TERN_LAYOUT_Q4_1, 32, 20, 2, {0, 2}, false},
    {"Q5_0", TERN_LAYOUT_Q5_0, 32, 22, 1, {0, 0}, true},
    {"Q5_1", TERN_LAYOUT_Q5_1, 32, 24, 2, {0, 2}, false},
    {"IQ4_NL", TERN_LAYOUT_IQ4_NL, 32, 18, 1, {0, 0}, true},
    {"IQ4_XS", TERN_LAYOUT_IQ4_XS, 256, 136, 1, {0, 0}, true},
    {"Q2_K", TERN_LAYOUT_Q2_K, 256, 84, 2, {80, 82}, true},
    {"Q3_K", TERN_LAYOUT_Q3_K, 256, 110, 1, {108, 0}, true},
    {"Q4_K", TERN_LAYOUT_Q4_K, 256, 144, 2, {0, 2}, true},
    {"Q5_K", TERN_LAYOUT_Q5_K, 256, 176, 2, {0, 2}, true},
    {"Q6_K", TERN_LAYOUT_Q6_K, 256, 210, 1, {208, 0}, true},
    {"IQ2_S", TERN_LAYOUT_IQ2_S, 256, 266, 1, {0, 0}, false},
    {"IQ3_XXS", TERN_LAYOUT_IQ3_XXS, 256, 262, 1, {0, 0}, false},
    {"IQ3_S", TERN_LAYOUT_IQ3_S, 256, 262, 1, {0, 0}, false},
};
#define N_BLOCKS_TYPES (sizeof blocks_types / sizeof blocks_types[0])

static inline const struct blocks_type *blocks_type_of(uint32_t layout)
{
    return &blocks_types[layout - TERN_LAYOUT_Q8_0];
}

enum blocks_fill {
    FILL_BLOCKS_RANDOM,
    FILL_BLOCKS_ONES,  /* all bits except the scales are set: the largest codes; -1 for Q8_0 */
    FILL_BLOCKS_ZEROS, /* the smallest codes */
    FILL_BLOCKS_LEAST, /* -128 for Q8_0 */
    N_BLOCKS_FILLS
};

/* Mostly ordinary scales; also zeros of both signs, the smallest and the largest ones. */
static inline uint16_t blocks_random_scale(struct tn_rng *rng)
{
    static const uint16_t edges[] = {0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF};
    const uint64_t v = tn_rng_next(rng);
    if (v % 16 == 0)
        return edges[v / 16 % 8];
    return tn_f32_to_f16((tn_rng_f32(rng) - 0.3f) * (v / 16 % 2 ? 0.05f : 0.001f));
}

static inline void blocks_fill(uint8_t *dst, const struct blocks_type *type, size_t n,
                               enum blocks_fill fill, struct tn_rng *rng)
{
    for (size_t i = 0; i < n; i++, dst += type->n_bytes) {
        for (uint32_t k = 0; k < type->n_bytes; k++)
            dst[k] = fill == FILL_BLOCKS_RANDOM  ? (uint8_t)tn_rng_next(rng)
                     : fill == FILL_BLOCKS_ONES  ? 255
                     : fill == FILL_BLOCKS_LEAST ? 128
                                                 : 0;
        for (uint32_t k = 0; k < type->n_scales; k++) {
            const uint16_t scale = blocks_random_scale(rng);
            memcpy(dst + type->scale[k], &scale, 2);
        }
    }
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * bf16 and f16 from and to f32, in integer arithmetic, so that every machine returns the same bits.
 * Rounding is to nearest, ties to even; NaN stays NaN (quiet).
 */
#ifndef TN_HALF_H
#define TN_HALF_H

#include "base/bits.h"

static inline float tn_bf16_to_f32(uint16_t h)
{
    return tn_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t tn_f32_to_bf16(float f)
{
    uint32_t x = tn_f32_to_bits(f);
    if ((x & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(x >> 16 | 0x40u);
    return (uint16_t)((x + 0x7FFFu + (x >> 16 & 1u)) >> 16);
}

/* Computes all three cases and selects one by masks, so that loops vectorise. */
static inline float tn_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, shifted = (h & 0x7FFFu) << 13;
    const uint32_t is_special = 0u - (uint32_t)((h & 0x7C00u) == 0x7C00u);
    const uint32_t is_small = 0u - (uint32_t)((h & 0x7C00u) == 0);
    const uint32_t is_nan = 0u - (uint32_t)((h & 0x7FFFu) > 0x7C00u);
    const uint32_t normal = shifted + (112u << 23);
    /* Zero or subnormal: (2^-14 + mantissa * 2^-24) - 2^-14, exact in f32. */
    const uint32_t small =
        tn_f32_to_bits(tn_f32_from_bits(shifted + (113u << 23)) - tn_f32_from_bits(113u << 23));
    const uint32_t special = 0x7F800000u | shifted | (is_nan & 0x400000u);
    return tn_f32_from_bits(sign | (small & is_small) | (special & is_special) |
                            (normal & ~(is_small | is_special)));
}

/* Values that round beyond 65504 become infinity, as the conversion instructions do. */
static inline uint16_t tn_f32_to_f16(float f)
{
    uint32_t x = tn_f32_to_bits(f);
    uint32_t sign = x >> 16 & 0x8000u;
    uint32_t a = x & 0x7FFFFFFFu;
    if (a > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u | (a >> 13 & 0x3FFu));
    if (a >= 0x47800000u) /* 65536 and above, or infinity */
        return (uint16_t)(sign | 0x7C00u);
    if (a >= 0x38800000u) { /* normal */
        uint32_t rounded = a + 0xFFFu + (a >> 13 & 1u);
        return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
    }
    /* Subnormal: adding 0.5 makes the f32 adder round to multiples of 2^-24. */
    float shifted = tn_f32_from_bits(a) + 0.5f;
    return (uint16_t)(sign | (tn_f32_to_bits(shifted) - 0x3F000000u));
}

#endif

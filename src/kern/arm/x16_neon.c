/* SPDX-License-Identifier: MIT
 *
 * Ternary products of few 16-bit inputs for NEON.
 *
 * Lanes are rows: a field of 16 bytes is a column of 16 rows, and `smlal` multiplies 8 of its codes
 * (0, 1, 2) with one input of 8 bits, once for each digit.  Per 16 rows x 4 columns 7 instructions
 * to unpack, 16 to multiply and to add: 0.36 per weight, and loads.
 *
 *   A product is -2 * 128 = -256 to 254; a run adds 128 of them: -32,768 to 32,512 fits int16.
 */
#include <arm_neon.h>

#define T5_WORD_BYTES 16

#include "kern/tiles.h"
#include "kern/x16.h"

/* The digits in column order, unchanged. */
struct digits {
    const int8_t *high, *low;
};

static TN_ALWAYS_INLINE void take_digits(struct digits *d, const int8_t *high, const int8_t *low,
                                         uint32_t n_cols)
{
    (void)n_cols;
    d->high = high;
    d->low = low;
}

/* Sums of 16 rows. */
struct sums {
    int16x8_t high[2], low[2];
};

static TN_ALWAYS_INLINE void add_column(struct sums *s, int8x16_t codes, int8x8_t high,
                                        int8x16_t high2, int8x8_t low, int8x16_t low2)
{
    s->high[0] = vmlal_s8(s->high[0], vget_low_s8(codes), high);
    s->high[1] = vmlal_high_s8(s->high[1], codes, high2);
    s->low[0] = vmlal_s8(s->low[0], vget_low_s8(codes), low);
    s->low[1] = vmlal_high_s8(s->low[1], codes, low2);
}

/* 4 columns of 32 rows. */
static TN_ALWAYS_INLINE void add_group(struct sums s[2], const uint8_t *group, const int8_t *high,
                                       const int8_t *low)
{
    const uint8x16_t v[2] = {vld1q_u8(group), vld1q_u8(group + 16)};
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) {
        const int8x16_t h = vld1q_dup_s8(high + q), l = vld1q_dup_s8(low + q);
        for (int i = 0; i < 2; i++) {
            const uint8x16_t field = vshlq_u8(v[i], vdupq_n_s8((int8_t)(-2 * q)));
            const int8x16_t codes = vreinterpretq_s8_u8(vandq_u8(field, vdupq_n_u8(3)));
            add_column(&s[i], codes, vget_low_s8(h), h, vget_low_s8(l), l);
        }
    }
}

/* 256 * high + low of 16 rows. */
static TN_ALWAYS_INLINE void store_sums(int32_t *dst, const struct sums *s)
{
    for (int i = 0; i < 2; i++, dst += 8) {
        const int32x4_t h0 = vshll_n_s16(vget_low_s16(s->high[i]), 8);
        const int32x4_t h1 = vshll_n_s16(vget_high_s16(s->high[i]), 8);
        vst1q_s32(dst, vaddw_s16(h0, vget_low_s16(s->low[i])));
        vst1q_s32(dst + 4, vaddw_s16(h1, vget_high_s16(s->low[i])));
    }
}

static TN_ALWAYS_INLINE void sum_tile(int32_t *sum, const uint8_t *tile, uint32_t n_groups,
                                      const struct digits *d, struct lines lines)
{
    for (uint32_t half = 0; half < 2; half++, tile += 32, sum += 32) {
        struct sums s[2];
        for (int i = 0; i < 2; i++)
            s[i].high[0] = s[i].high[1] = s[i].low[0] = s[i].low[1] = vdupq_n_s16(0);
        for (uint32_t g = 0; g < n_groups; g++) {
            if (g % 2 == half)
                request_line(lines, g);
            add_group(s, tile + 64 * g, d->high + 4 * g, d->low + 4 * g);
        }
        store_sums(sum, &s[0]);
        store_sums(sum + 16, &s[1]);
    }
}

X16_TILE_BY_TILE

#include "kern/x16_gemv.h"
TILES_GEMV_DEFINE(x16, neon)
X16_INPUTS_DEFINE(neon)

/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks for NEON: a vector is 4 rows, a quarter of a tile.
 *
 * `smlal` adds products in int16, and each lane holds the sum of 8 columns: for codes below 16 at
 * most 8 * 15 * 128 = 15360, below 32 31744.  Sums of codes below 64 are widened after 4 columns
 * (4 * 63 * 128 = 32256), products of codes of 7 and 8 bits immediately.
 */
#include <arm_neon.h>

#include "base/bits.h"
#include "base/compiler.h"

#define LANES 4
#define HAS_SIGNED_CODES 1
#define HAS_PANEL8 0
#define HAS_WIDE_PANEL 0
#define HAS_FUSED 0
#define TILE_VECTORS 2
#define TILE_INPUTS_8 4
#define TILE_INPUTS_16 2
#define TILE_SWITCH_8 SWITCH_4
#define TILE_SWITCH_16 SWITCH_2
#define GEMV_VECTORS 2
#define FEW_VECTORS 1
#define FEW_INPUTS_8 4
#define FEW_INPUTS_16 4

typedef int8x16_t vec;
typedef uint8x16_t table;

/* For two rows each: sums of every fourth column, and the widened sums. */
struct sum {
    int16x8_t low, high;
    int32x4_t total_low, total_high;
};

static TN_ALWAYS_INLINE void sum_zero(struct sum *s)
{
    s->low = s->high = vdupq_n_s16(0);
    s->total_low = s->total_high = vdupq_n_s32(0);
}

static TN_ALWAYS_INLINE void sum_widen(struct sum *s)
{
    s->total_low = vpadalq_s16(s->total_low, s->low);
    s->total_high = vpadalq_s16(s->total_high, s->high);
    s->low = s->high = vdupq_n_s16(0);
}

static TN_ALWAYS_INLINE void sum_add(struct sum *s, int8x16_t codes, const int8_t *at,
                                     const uint32_t bits, const uint32_t g, bool is_digit)
{
    (void)is_digit;
    const int8x16_t x = vreinterpretq_s8_u32(vdupq_n_u32(tn_load_u32(at)));
    if (bits >= 7) {
        s->total_low = vpadalq_s16(s->total_low, vmull_s8(vget_low_s8(codes), vget_low_s8(x)));
        s->total_high = vpadalq_s16(s->total_high, vmull_high_s8(codes, x));
    } else {
        if (bits == 6 && g == 4)
            sum_widen(s);
        s->low = vmlal_s8(s->low, vget_low_s8(codes), vget_low_s8(x));
        s->high = vmlal_high_s8(s->high, codes, x);
    }
}

static TN_ALWAYS_INLINE int8x16_t sum_end(const struct sum *s, const uint32_t bits)
{
    struct sum sum = *s;
    if (bits < 7)
        sum_widen(&sum);
    return vreinterpretq_s8_s32(vpaddq_s32(sum.total_low, sum.total_high));
}

static TN_ALWAYS_INLINE int8x16_t table_of(int8x16_t codes, uint8x16_t entries)
{
    return vreinterpretq_s8_u8(vqtbl1q_u8(entries, vreinterpretq_u8_s8(codes)));
}

static TN_ALWAYS_INLINE float32x4_t floats_of_halves(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(const void *)p)));
}

#include "kern/blocks_loop.h"
BLOCKS_DEFINE(neon)

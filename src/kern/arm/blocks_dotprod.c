/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks for the dot-product extension of Armv8.2: like blocks_neon.c, but
 * `sdot` adds four columns of 4 rows at once.
 */
#include <arm_neon.h>

#include "base/bits.h"
#include "base/compiler.h"

#define LANES 4
#define HAS_SIGNED_CODES 1
#define HAS_PANEL8 0
#define HAS_WIDE_PANEL 0
#define HAS_FUSED 0
#define TILE_VECTORS 4
#define TILE_INPUTS_8 4
#define TILE_INPUTS_16 2
#define TILE_SWITCH_8 SWITCH_4
#define TILE_SWITCH_16 SWITCH_2
#define GEMV_VECTORS 4
#define FEW_VECTORS 2
#define FEW_INPUTS_8 4
#define FEW_INPUTS_16 4

typedef int8x16_t vec;
typedef uint8x16_t table;

struct sum {
    int32x4_t v;
};

static TN_ALWAYS_INLINE void sum_zero(struct sum *s)
{
    s->v = vdupq_n_s32(0);
}

static TN_ALWAYS_INLINE void sum_add(struct sum *s, int8x16_t codes, const int8_t *x, uint32_t bits,
                                     uint32_t g, bool is_digit)
{
    (void)bits, (void)g, (void)is_digit;
    s->v = vdotq_s32(s->v, codes, vreinterpretq_s8_u32(vdupq_n_u32(tn_load_u32(x))));
}

static TN_ALWAYS_INLINE int8x16_t sum_end(const struct sum *s, uint32_t bits)
{
    (void)bits;
    return vreinterpretq_s8_s32(s->v);
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
BLOCKS_DEFINE(dotprod)

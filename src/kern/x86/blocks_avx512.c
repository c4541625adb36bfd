/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks for AVX-512 VNNI: a vector is a tile's 16 rows, and `vpdpbusd`
 * adds four columns of each.
 */
#include <immintrin.h>

#include "kern/x86/dots_avx512.h"

#define LANES 16
#define HAS_SIGNED_CODES 0
#define HAS_PANEL8 1
#define HAS_WIDE_PANEL 0
#define HAS_FUSED 1
#define PANEL_IN_PLACE 1
/* Registers for sums, 4 codes and an input: 64 rows and 6 inputs; with y 2 inputs of two digits. */
#define TILE_VECTORS 4
#define TILE_INPUTS_8 6
#define TILE_INPUTS_16 2
#define TILE_SWITCH_8 SWITCH_6
#define TILE_SWITCH_16 SWITCH_2
#define GEMV_VECTORS 1
#define FEW_VECTORS 1
#define FEW_INPUTS_8 4
#define FEW_INPUTS_16 4

#include "base/bits.h"

typedef __m512i vec;
typedef __m128i table;

struct sum {
    __m512i v;
};

static TN_ALWAYS_INLINE void sum_zero(struct sum *s)
{
    s->v = _mm512_setzero_si512();
}

static TN_ALWAYS_INLINE void sum_add(struct sum *s, __m512i codes, const int8_t *x, uint32_t bits,
                                     uint32_t g, bool is_digit)
{
    (void)bits, (void)g, (void)is_digit;
    s->v = add_dots(s->v, codes, _mm512_set1_epi32((int)tn_load_u32(x)));
}

static TN_ALWAYS_INLINE __m512i sum_end(const struct sum *s, uint32_t bits)
{
    (void)bits;
    return s->v;
}

static TN_ALWAYS_INLINE __m512i table_of(__m512i codes, __m128i entries)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), codes);
}

static TN_ALWAYS_INLINE __m512 floats_of_halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const void *)p));
}

static TN_ALWAYS_INLINE __m512i in_register(__m512i v)
{
    __asm__("" : "+v"(v));
    return v;
}

static TN_ALWAYS_INLINE void sum_start(struct sum *s, int32_t start)
{
    s->v = _mm512_set1_epi32(start);
}

static TN_ALWAYS_INLINE __m512 sum_scaled(const struct sum *s, uint32_t bits, __m512 scale,
                                          __m512 bias)
{
    (void)bits;
    return _mm512_fmadd_ps(_mm512_castsi512_ps(s->v), scale, bias);
}

#include "kern/blocks_loop.h"
BLOCKS_DEFINE(avx512)

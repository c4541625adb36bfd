/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks for AVX-VNNI: a vector is 8 rows, half a tile, and `vpdpbusd` adds
 * four columns of each.
 */
#include <immintrin.h>

#include "base/bits.h"
#include "base/compiler.h"

#define LANES 8
#define HAS_SIGNED_CODES 0
#define HAS_PANEL8 1
#define HAS_WIDE_PANEL 0
#define HAS_FUSED 1
#define PANEL_IN_PLACE 0
#define TILE_VECTORS 2
#define TILE_INPUTS_8 5
#define TILE_INPUTS_16 2
#define TILE_SWITCH_8 SWITCH_5
#define TILE_SWITCH_16 SWITCH_2
#define GEMV_VECTORS 2
#define FEW_VECTORS 1
#define FEW_INPUTS_8 4
#define FEW_INPUTS_16 3

typedef __m256i vec;
typedef __m128i table;

struct sum {
    __m256i v;
};

static TN_ALWAYS_INLINE void sum_zero(struct sum *s)
{
    s->v = _mm256_setzero_si256();
}

static TN_ALWAYS_INLINE void sum_add(struct sum *s, __m256i codes, const int8_t *x, uint32_t bits,
                                     uint32_t g, bool is_digit)
{
    (void)bits, (void)g, (void)is_digit;
    s->v = _mm256_dpbusd_avx_epi32(s->v, codes, _mm256_set1_epi32((int)tn_load_u32(x)));
}

static TN_ALWAYS_INLINE __m256i sum_end(const struct sum *s, uint32_t bits)
{
    (void)bits;
    return s->v;
}

static TN_ALWAYS_INLINE __m256i table_of(__m256i codes, __m128i entries)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), codes);
}

static TN_ALWAYS_INLINE __m256 floats_of_halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_load_si128((const void *)p));
}

static TN_ALWAYS_INLINE __m256i in_register(__m256i v)
{
    __asm__("" : "+x"(v));
    return v;
}

static TN_ALWAYS_INLINE void sum_start(struct sum *s, int32_t start)
{
    s->v = _mm256_set1_epi32(start);
}

static TN_ALWAYS_INLINE __m256 sum_scaled(const struct sum *s, uint32_t bits, __m256 scale,
                                          __m256 bias)
{
    (void)bits;
    return _mm256_fmadd_ps(_mm256_castsi256_ps(s->v), scale, bias);
}

#include "kern/blocks_loop.h"
BLOCKS_DEFINE(avxvnni)

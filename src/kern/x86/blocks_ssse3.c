/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks for SSSE3: the method of blocks_avx2.c with vectors of 4 rows, a
 * quarter of a tile.
 */
#include <tmmintrin.h>

#include "base/bits.h"
#include "kern/x86/dots_ssse3.h"

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
#define FEW_INPUTS_16 3

typedef __m128i vec;
typedef __m128i table;

/* Sums in 16 bits, two per row, and the widened sums. */
struct sum {
    __m128i pairs, total;
};

static TN_ALWAYS_INLINE void sum_zero(struct sum *s)
{
    s->pairs = s->total = _mm_setzero_si128();
}

static TN_ALWAYS_INLINE __m128i widened(__m128i total, __m128i pairs)
{
    return _mm_add_epi32(total, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
}

/* Bytes 0 and 2 of each dword, and 1 and 3, as int16. */
static TN_ALWAYS_INLINE __m128i even_bytes(__m128i v)
{
    return _mm_srai_epi16(_mm_slli_epi16(v, 8), 8);
}

static TN_ALWAYS_INLINE __m128i odd_bytes(__m128i v)
{
    return _mm_srai_epi16(v, 8);
}

static TN_ALWAYS_INLINE void sum_add(struct sum *s, __m128i codes, const int8_t *at,
                                     const uint32_t bits, const uint32_t g, const bool is_digit)
{
    const __m128i x = _mm_set1_epi32((int)tn_load_u32(at));
    const uint32_t n_groups = bits <= 4 ? 8 : bits == 5 ? 4 : bits == 6 ? 2 : 1;
    if (bits == 8 && is_digit) {
        s->total = _mm_add_epi32(s->total, _mm_madd_epi16(even_bytes(codes), even_bytes(x)));
        s->total = _mm_add_epi32(s->total, _mm_madd_epi16(odd_bytes(codes), odd_bytes(x)));
    } else if (bits == 8) {
        s->total = widened(s->total,
                           _mm_maddubs_epi16(_mm_abs_epi8(codes), _mm_sign_epi8(x, codes)));
    } else if (g % n_groups) {
        s->pairs = _mm_add_epi16(s->pairs, _mm_maddubs_epi16(codes, x));
    } else {
        if (g)
            s->total = widened(s->total, s->pairs);
        s->pairs = _mm_maddubs_epi16(codes, x);
    }
}

static TN_ALWAYS_INLINE __m128i sum_end(const struct sum *s, const uint32_t bits)
{
    return bits == 8 ? s->total : widened(s->total, s->pairs);
}

static TN_ALWAYS_INLINE __m128i table_of(__m128i codes, __m128i entries)
{
    return _mm_shuffle_epi8(entries, codes);
}

/* One multiplication corrects the exponent, whose range f16 does not share. */
static TN_ALWAYS_INLINE __m128 floats_of_halves(const uint8_t *p)
{
    const __m128i h = _mm_unpacklo_epi16(_mm_loadl_epi64((const void *)p), _mm_setzero_si128());
    const __m128i value = _mm_slli_epi32(_mm_and_si128(h, _mm_set1_epi32(0x7FFF)), 13);
    const __m128i sign = _mm_slli_epi32(_mm_and_si128(h, _mm_set1_epi32(0x8000)), 16);
    return _mm_or_ps(_mm_mul_ps(_mm_castsi128_ps(value), _mm_set1_ps(0x1p112f)),
                     _mm_castsi128_ps(sign));
}

#include "kern/blocks_loop.h"
BLOCKS_DEFINE(ssse3)

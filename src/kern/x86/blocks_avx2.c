/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks for AVX2: a vector is 8 rows, half a tile.
 *
 * `vpmaddubsw` multiplies unsigned codes and adds pairs.  16 bits hold the sums of several groups
 * of 4 columns: 8 groups for codes below 16 (8 * 2 * 15 * 128 = 30720), 4 below 32 (31744), 2 below
 * 64 (32256), 1 below 128 (32512).  Codes of 8 bits are signed: their magnitude is multiplied by
 * the input with its sign changed where the code is negative (128 * 127 * 2 = 32512).  A digit of
 * -128 cannot change its sign; digits are multiplied by such codes in 16 bits, with `vpmaddwd`.  So
 * are the codes of a panel, which are widened once for all its inputs: two instructions for 16
 * products, not four for 32, but without a change of signs, which few units can do.
 */
#include <immintrin.h>

#include "base/bits.h"
#include "kern/x86/dots_avx2.h"

#define LANES 8
#define HAS_SIGNED_CODES 1
#define HAS_PANEL8 1
#define HAS_WIDE_PANEL 1
#define HAS_FUSED 0
#define PANEL_IN_PLACE 0
#define TILE_VECTORS 2
#define TILE_INPUTS_8 3
#define TILE_INPUTS_16 2
#define TILE_SWITCH_8 SWITCH_3
#define TILE_SWITCH_16 SWITCH_2
#define GEMV_VECTORS 2
#define FEW_VECTORS 1
#define FEW_INPUTS_8 4
#define FEW_INPUTS_16 3

typedef __m256i vec;
typedef __m128i table;

/* Sums in 16 bits, two per row, and the widened sums. */
struct sum {
    __m256i pairs, total;
};

static TN_ALWAYS_INLINE void sum_zero(struct sum *s)
{
    s->pairs = s->total = _mm256_setzero_si256();
}

static TN_ALWAYS_INLINE __m256i widened(__m256i total, __m256i pairs)
{
    return _mm256_add_epi32(total, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

static TN_ALWAYS_INLINE __m256i in_register(__m256i v)
{
    __asm__("" : "+x"(v));
    return v;
}

/* Bytes 0 and 2 of each dword, and 1 and 3, as int16. */
static TN_ALWAYS_INLINE __m256i even_bytes(__m256i v)
{
    return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8);
}

static TN_ALWAYS_INLINE __m256i odd_bytes(__m256i v)
{
    return _mm256_srai_epi16(v, 8);
}

static TN_ALWAYS_INLINE void sum_add(struct sum *s, __m256i codes, const int8_t *at,
                                     const uint32_t bits, const uint32_t g, const bool is_digit)
{
    const __m256i x = _mm256_set1_epi32((int)tn_load_u32(at));
    const uint32_t n_groups = bits <= 4 ? 8 : bits == 5 ? 4 : bits == 6 ? 2 : 1;
    if (bits == 8 && is_digit) {
        s->total = _mm256_add_epi32(s->total, _mm256_madd_epi16(even_bytes(codes), even_bytes(x)));
        s->total = _mm256_add_epi32(s->total, _mm256_madd_epi16(odd_bytes(codes), odd_bytes(x)));
    } else if (bits == 8) {
        s->total = widened(s->total, _mm256_maddubs_epi16(_mm256_abs_epi8(codes),
                                                          _mm256_sign_epi8(x, codes)));
    } else if (g % n_groups) {
        s->pairs = add_pairs(s->pairs, codes, x);
    } else {
        if (g)
            s->total = widened(s->total, s->pairs);
        s->pairs = _mm256_maddubs_epi16(codes, x);
    }
}

static TN_ALWAYS_INLINE void sum_add_wide(struct sum *s, __m256i codes, const uint32_t *x)
{
    const __m256i products = _mm256_madd_epi16(codes, _mm256_set1_epi32((int)*x));
    s->total = in_register(_mm256_add_epi32(s->total, products));
}

static TN_ALWAYS_INLINE __m256i sum_end(const struct sum *s, const uint32_t bits)
{
    return bits == 8 ? s->total : widened(s->total, s->pairs);
}

static TN_ALWAYS_INLINE __m256i table_of(__m256i codes, __m128i entries)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), codes);
}

static TN_ALWAYS_INLINE __m256 floats_of_halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_load_si128((const void *)p));
}

static TN_ALWAYS_INLINE void sum_start(struct sum *s, int32_t start)
{
    s->pairs = _mm256_setzero_si256();
    s->total = _mm256_set1_epi32(start);
}

static TN_ALWAYS_INLINE __m256 sum_scaled(const struct sum *s, uint32_t bits, __m256 scale,
                                          __m256 bias)
{
    (void)bias;
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sum_end(s, bits)), scale);
}

#include "kern/blocks_loop.h"
BLOCKS_DEFINE(avx2)

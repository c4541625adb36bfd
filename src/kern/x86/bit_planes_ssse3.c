/* SPDX-License-Identifier: MIT
 *
 * Bit planes, SSSE3: as bit_planes_avx2.c, 16 codes at a time.  Per 128 columns 34 instructions for
 * any number of bits: 8 load and shift codes, 8 mask, 8 multiply, 10 add and widen.
 *
 *   |x| <= 32639 makes |high| <= 127; -128 <= low.  A lane of int16 adds eight sums of two products
 *   of 4-bit codes, at most 8 * 2 * 15 * 128 = 30,720, before it is widened.  Sums that are then
 *   multiplied by 256 may wrap, as may the sums of chunks: the result fits.
 */
#include <tmmintrin.h>

#include "kern/plane_unpack.h"
#include "kern/x86/bit_planes_digits.h"

/* Splits 16 activations; returns whether one has a high digit. */
static inline bool split_16(int8_t *low, int8_t *high, const int16_t *x)
{
    __m128i l[2], h[2];
    for (int i = 0; i < 2; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(x + 8 * i));
        h[i] = _mm_srai_epi16(_mm_add_epi16(v, _mm_set1_epi16(128)), 8);
        l[i] = _mm_sub_epi16(v, _mm_slli_epi16(h[i], 8));
    }
    __m128i all_high = _mm_packs_epi16(h[0], h[1]);
    _mm_store_si128((__m128i *)low, _mm_packs_epi16(l[0], l[1]));
    _mm_store_si128((__m128i *)high, all_high);
    return _mm_movemask_epi8(_mm_cmpeq_epi8(all_high, _mm_setzero_si128())) != 0xFFFF;
}

/* Sums of pairs of products: codes (field `shift` of 16 bytes) times activations. */
static TN_ALWAYS_INLINE __m128i products(__m128i bytes, int shift, int mask, const int8_t *x)
{
    __m128i codes = _mm_and_si128(_mm_srli_epi16(bytes, shift), _mm_set1_epi8((char)mask));
    return _mm_maddubs_epi16(codes, _mm_load_si128((const __m128i *)x));
}

static TN_ALWAYS_INLINE __m128i add_wide(__m128i sum, __m128i pairs)
{
    return _mm_add_epi32(sum, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
}

/* Adds 128 columns, eight sums of pairs at a time. */
static TN_ALWAYS_INLINE __m128i add_group(__m128i sum, uint32_t bits, const uint8_t *p,
                                          const int8_t *x)
{
    const uint32_t n_bytes = TN_PLANE_COLS / 8 * bits;
    __m128i pairs = _mm_setzero_si128();
    for (uint32_t j = 0; j < n_bytes; j += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(p + j));
        for (uint32_t field = 0; field < 8 / bits; field++)
            pairs = _mm_add_epi16(pairs, products(bytes, (int)(field * bits), (1 << bits) - 1,
                                                  x + field * n_bytes + j));
    }
    return add_wide(sum, pairs);
}

/* Four partial sums of the row. */
static TN_ALWAYS_INLINE __m128i input_sums(uint32_t bits, const uint8_t *row,
                                           const struct plane_lines *lines, const struct digits *x)
{
    const uint32_t line = TN_PLANE_COLS * bits / 8;
    __m128i low = _mm_setzero_si128(), high = low;
    for (uint32_t g = 0; g < x->n_groups; g++) {
        request_lines(lines, g * line, TN_PREFETCH_OF(PLANES));
        low = add_group(low, bits, row + g * line, x->low + g * TN_PLANE_COLS);
    }
    for (uint32_t i = 0; i < x->n_wide; i++)
        high = add_group(high, bits, row + x->wide[i] * line, x->high + i * TN_PLANE_COLS);
    return _mm_add_epi32(low, _mm_slli_epi32(high, 8));
}

static inline int32_t total(__m128i v)
{
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xB1)));
}

/* One input at a time, one plane. */
static TN_ALWAYS_INLINE void row_sums(int32_t *sums, uint32_t bits, const struct row_at *at,
                                      const struct digits *x, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct plane_lines lines[2] = {k == 0 ? at->lines[0] : no_lines(at->row[0]),
                                             k == 0 ? at->lines[1] : no_lines(at->row[1])};
        sums[k] = total(input_sums(plane_bits(bits, 0), at->row[0], &lines[0], &x[k]));
        if (bits == 5)
            sums[k] = 2 * sums[k] + total(input_sums(1, at->row[1], &lines[1], &x[k]));
    }
}

PLANE_DIGITS_DEFINE(ssse3, split_16, row_sums)
PLANE_UNPACK_DEFINE(ssse3)

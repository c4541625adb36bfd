/* SPDX-License-Identifier: MIT
 *
 * Bit planes, AVX2: codes stay bytes, and activations are split into two signed digits, x = 256 *
 * high + low, so that vpmaddubsw multiplies 32 codes at once.  Groups of columns whose high digits
 * are all zero (most groups, thanks to the caller) are multiplied once.  Per 256 columns 33
 * instructions (single bits: 35): 8 (10) load and shift codes, 8 mask, 8 multiply, 9 add and widen.
 * Several inputs repeat only the last 17, except in groups with high digits.  Codes of 5 bits are
 * combined from two planes by 40 instructions, and widened twice as often.
 *
 *   |x| <= 32639 makes |high| <= 127; -128 <= low.  A lane of int16 adds eight sums of two products
 *   of 4-bit codes, at most 8 * 2 * 15 * 128 = 30,720, or four of 5-bit codes, at most
 *   4 * 2 * 31 * 128 = 31,744, before it is widened.  Sums that are multiplied by 256 may wrap,
 *   as may the sums of chunks: the result fits.
 */
#include <immintrin.h>

#include "kern/bound_logit.h"
#include "kern/x86/bit_planes_digits.h"

/* Splits 16 activations; returns whether one has a high digit. */
static inline bool split_16(int8_t *low, int8_t *high, const int16_t *x)
{
    __m256i v = _mm256_loadu_si256((const __m256i *)x);
    __m256i h = _mm256_srai_epi16(_mm256_add_epi16(v, _mm256_set1_epi16(128)), 8);
    __m256i l = _mm256_sub_epi16(v, _mm256_slli_epi16(h, 8));
    __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(l, h), 0xD8);
    _mm_store_si128((__m128i *)low, _mm256_castsi256_si128(both));
    _mm_store_si128((__m128i *)high, _mm256_extracti128_si256(both, 1));
    return !_mm256_testz_si256(h, h);
}

/* Bits [shift, shift + 8) of bytes, masked by `mask`. */
static TN_ALWAYS_INLINE __m256i field(__m256i bytes, int shift, int mask)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, shift), _mm256_set1_epi8((char)mask));
}

/* Sums of pairs of products. */
static TN_ALWAYS_INLINE __m256i multiply(__m256i codes, const int8_t *x)
{
    return _mm256_maddubs_epi16(codes, _mm256_load_si256((const __m256i *)(const void *)x));
}

static TN_ALWAYS_INLINE __m256i products(__m256i bytes, int shift, int mask, const int8_t *x)
{
    return multiply(field(bytes, shift, mask), x);
}

/* group() for single bits: the lower lane takes a byte's even bits, the upper one its odd bits. */
static TN_ALWAYS_INLINE __m256i group_u1(const uint8_t *p, const int8_t *x)
{
    __m256i a = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    a = _mm256_srlv_epi64(a, _mm256_set_epi64x(1, 1, 0, 0));
    return _mm256_add_epi16(_mm256_add_epi16(products(a, 0, 1, x), products(a, 2, 1, x + 32)),
                            _mm256_add_epi16(products(a, 4, 1, x + 64), products(a, 6, 1, x + 96)));
}

/* 128 columns: each lane is four sums of pairs. */
static TN_ALWAYS_INLINE __m256i group(uint32_t bits, const uint8_t *p, const int8_t *x)
{
    if (bits == 1)
        return group_u1(p, x);
    __m256i a = _mm256_loadu_si256((const __m256i *)p);
    if (bits == 2)
        return _mm256_add_epi16(
            _mm256_add_epi16(products(a, 0, 3, x), products(a, 2, 3, x + 32)),
            _mm256_add_epi16(products(a, 4, 3, x + 64), products(a, 6, 3, x + 96)));
    __m256i b = _mm256_loadu_si256((const __m256i *)(p + 32));
    return _mm256_add_epi16(
        _mm256_add_epi16(products(a, 0, 15, x), products(b, 0, 15, x + 32)),
        _mm256_add_epi16(products(a, 4, 15, x + 64), products(b, 4, 15, x + 96)));
}

static TN_ALWAYS_INLINE __m256i add_wide(__m256i sum, __m256i pairs)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* Eight partial sums of the row for one input. */
static TN_ALWAYS_INLINE __m256i low_sums(uint32_t bits, const uint8_t *row,
                                         const struct plane_lines *lines, const struct digits *x)
{
    const uint32_t line = TN_PLANE_COLS * bits / 8;
    __m256i low = _mm256_setzero_si256();
    uint32_t g = 0;
    for (; g + 2 <= x->n_groups; g += 2) {
        for (uint32_t i = 0; i < 2 * line; i += 64)
            request_lines(lines, g * line + i, TN_PREFETCH_OF(PLANES));
        const int8_t *values = x->low + g * TN_PLANE_COLS;
        low = add_wide(low, _mm256_add_epi16(
                                group(bits, row + g * line, values),
                                group(bits, row + (g + 1) * line, values + TN_PLANE_COLS)));
    }
    if (g < x->n_groups)
        low = add_wide(low, group(bits, row + g * line, x->low + g * TN_PLANE_COLS));
    return low;
}

/* ---- several inputs, or codes of two planes: codes are extracted once ---- */

/* Bytes of n groups in one plane. */
static TN_ALWAYS_INLINE uint32_t group_bytes(uint32_t bits, uint32_t i_plane, uint32_t n)
{
    return n * (TN_PLANE_COLS / 8) * plane_bits(bits, i_plane);
}

/* The bits of vector i < 4 of a group of single bits. */
static TN_ALWAYS_INLINE __m256i bits_of(const uint8_t *p, int i)
{
    const __m256i a = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    return field(_mm256_srlv_epi64(a, _mm256_set_epi64x(1, 1, 0, 0)), 2 * i, 1);
}

/* Vector i < 4 of the codes of group g. */
static TN_ALWAYS_INLINE __m256i codes_of(uint32_t bits, const struct row_at *at, uint32_t g, int i)
{
    const uint8_t *p = at->row[0] + group_bytes(bits, 0, g);
    if (bits == 1)
        return bits_of(p, i);
    if (bits == 2)
        return field(_mm256_loadu_si256((const __m256i *)p), 2 * i, 3);
    const __m256i v = _mm256_loadu_si256((const __m256i *)(p + i % 2 * 32));
    if (bits == 4)
        return field(v, i / 2 * 4, 15);
    const __m256i high = _mm256_and_si256(i < 2 ? _mm256_slli_epi16(v, 1) : _mm256_srli_epi16(v, 3),
                                          _mm256_set1_epi8(30));
    return _mm256_or_si256(high, bits_of(at->row[1] + group_bytes(5, 1, g), i));
}

/* sums[k] += n_groups (1; also 2 for codes below 5 bits) groups from g on of n inputs, whose values
 * begin at x and are `step` bytes apart; all but g are constants. */
static TN_ALWAYS_INLINE void add_groups(__m256i *sums, uint32_t bits, const struct row_at *at,
                                        uint32_t g, const int n_groups, const int8_t *x,
                                        size_t step, const uint32_t n)
{
    __m256i pairs[PLANES_TOGETHER];
#pragma GCC unroll 8
    for (int i = 0; i < 4 * n_groups; i++) {
        const __m256i codes = codes_of(bits, at, g + (uint32_t)i / 4, i % 4);
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n; k++) {
            const __m256i v = multiply(codes, x + k * step + 32 * i);
            pairs[k] = i == 0 ? v : _mm256_add_epi16(pairs[k], v);
            __asm__("" : "+x"(pairs[k])); /* otherwise gcc computes all products first and spills */
        }
    }
#pragma GCC unroll 4
    for (uint32_t k = 0; k < n; k++)
        sums[k] = add_wide(sums[k], pairs[k]);
}

static TN_ALWAYS_INLINE void few_low_sums(__m256i *sums, uint32_t bits, const struct row_at *at,
                                          const struct digits *x, const uint32_t n)
{
    const uint32_t n_groups = x->n_groups;
    const int together = bits == 5 ? 1 : 2;
    uint32_t g = 0;
#pragma GCC unroll 4
    for (uint32_t k = 0; k < n; k++)
        sums[k] = _mm256_setzero_si256();
    for (; g + 2 <= n_groups; g += 2) {
        for (uint32_t plane = 0; plane < (bits == 5 ? 2u : 1u); plane++)
            for (uint32_t i = 0; i < group_bytes(bits, plane, 2); i += 64)
                request_lines(&at->lines[plane], group_bytes(bits, plane, g) + i,
                              TN_PREFETCH_OF(PLANES));
        const int8_t *values = x->low + g * TN_PLANE_COLS;
        add_groups(sums, bits, at, g, together, values, sizeof *x, n);
        if (together == 1)
            add_groups(sums, bits, at, g + 1, 1, values + TN_PLANE_COLS, sizeof *x, n);
    }
    if (g < n_groups)
        add_groups(sums, bits, at, g, 1, x->low + g * TN_PLANE_COLS, sizeof *x, n);
}

/* ---- rows ---- */

static inline int32_t total(__m256i v)
{
    __m128i a = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(a, _mm_shuffle_epi32(a, 0xB1)));
}

static TN_ALWAYS_INLINE void row_sums(int32_t *sums, uint32_t bits, const struct row_at *at,
                                      const struct digits *x, const uint32_t n)
{
    __m256i low[PLANES_TOGETHER];
    if (n == 1 && bits != 5)
        low[0] = low_sums(bits, at->row[0], &at->lines[0], x);
    else
        few_low_sums(low, bits, at, x, n);
#pragma GCC unroll 4
    for (uint32_t k = 0; k < n; k++) {
        __m256i high = _mm256_setzero_si256();
        for (uint32_t i = 0; i < x[k].n_wide; i++)
            add_groups(&high, bits, at, x[k].wide[i], 1, x[k].high + i * TN_PLANE_COLS, 0, 1);
        sums[k] = total(_mm256_add_epi32(low[k], _mm256_slli_epi32(high, 8)));
    }
}

PLANE_DIGITS_DEFINE(avx2, split_16, row_sums)
BOUND_LOGITS_DEFINE(avx2)

/* SPDX-License-Identifier: MIT
 *
 * Planes of the head, AVX2: codes are widened to int16, vpmaddwd adds two products in each of 8
 * lanes.  Per 128 columns: 8 vpmaddwd, 8 vpaddd and 14 to 18 instructions that unpack.
 */
#include "kern/kern.h"
#include "kern/x86/lanes_avx2.h"

#define PREFETCH_BYTES 2048u

static inline __m256i add_products(__m256i sum, __m256i codes, const int16_t *x)
{
    __m256i values = _mm256_loadu_si256((const __m256i *)x);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(codes, values));
}

static inline int32_t total(__m256i a, __m256i b)
{
    __m256i all = _mm256_add_epi32(a, b);
    __m128i v = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xB1)));
}

static inline __m256i load_words(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

static int32_t dot_u4(const uint8_t *row, uint32_t cols, const int16_t *x)
{
    const __m256i nibble = _mm256_set1_epi16(15);
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, row += 64) {
        TN_PREFETCH(row + PREFETCH_BYTES);
        for (uint32_t j = 0; j < 64; j += 16) {
            __m256i words = load_words(row + j);
            sum[0] = add_products(sum[0], _mm256_and_si256(words, nibble), x + c + j);
            sum[1] = add_products(sum[1], _mm256_srli_epi16(words, 4), x + c + 64 + j);
        }
    }
    return total(sum[0], sum[1]);
}

static int32_t dot_u2(const uint8_t *row, uint32_t cols, const int16_t *x)
{
    const __m256i three = _mm256_set1_epi16(3);
    __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, row += 32) {
        TN_PREFETCH(row + PREFETCH_BYTES);
        for (int field = 0; field < 4; field++) {
            for (uint32_t j = 0; j < 32; j += 16) {
                __m256i words = _mm256_srli_epi16(load_words(row + j), 2 * field);
                sum[j / 16] = add_products(sum[j / 16], _mm256_and_si256(words, three),
                                           x + c + 32 * (uint32_t)field + j);
            }
        }
    }
    return total(sum[0], sum[1]);
}

void tn_dot_u4_i16_avx2(int32_t *dst, const uint8_t *plane, const uint32_t *rows, uint32_t n_rows,
                        uint32_t cols, const int16_t *x)
{
    const size_t row_bytes = tn_plane_row_bytes(cols, 4);
    for (uint32_t i = 0; i < n_rows; i++)
        dst[i] = dot_u4(plane + (rows ? rows[i] : i) * row_bytes, cols, x);
}

void tn_dot_u2_i16_avx2(int32_t *dst, const uint8_t *plane, const uint32_t *rows, uint32_t n_rows,
                        uint32_t cols, const int16_t *x)
{
    const size_t row_bytes = tn_plane_row_bytes(cols, 2);
    for (uint32_t i = 0; i < n_rows; i++)
        dst[i] = dot_u2(plane + (rows ? rows[i] : i) * row_bytes, cols, x);
}

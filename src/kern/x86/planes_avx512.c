/* SPDX-License-Identifier: MIT
 *
 * Planes of the head, AVX-512 with VNNI: codes stay bytes, and the activations are split into two
 * signed bytes, x = 256 * high + low, so that vpdpbusd multiplies 64 codes at once with each half.
 * Per 128 columns: 4 bits 7 instructions and 5 loads; 2 bits 7.5 and 4.5.
 *
 *   |x| <= 32639 makes |high| <= 127.  A lane's sum of `high` products stays below
 *   15 * 127 * 4 * (CHUNK_COLS / 64) = 487,680, times 256 below 2^27.
 */
#include "kern/kern.h"
#include "kern/x86/lanes_avx512.h"

#define PREFETCH_BYTES 2048u
/* Columns whose split activations are kept at a time; a multiple of 256. */
#define CHUNK_COLS 4096u

struct split {
    _Alignas(64) int8_t high[CHUNK_COLS];
    _Alignas(64) int8_t low[CHUNK_COLS];
};

/* 32 activations to place `at`. */
static inline void split_32(struct split *s, uint32_t at, const int16_t *x)
{
    __m512i v = _mm512_loadu_si512(x);
    __m512i high = _mm512_srai_epi16(_mm512_add_epi16(v, _mm512_set1_epi16(128)), 8);
    __m512i low = _mm512_sub_epi16(v, _mm512_slli_epi16(high, 8));
    _mm256_store_si256((__m256i *)(s->high + at), _mm512_cvtepi16_epi8(high));
    _mm256_store_si256((__m256i *)(s->low + at), _mm512_cvtepi16_epi8(low));
}

/* n columns (a multiple of 128) in their order. */
static void split_u4(struct split *s, const int16_t *x, uint32_t n)
{
    for (uint32_t c = 0; c < n; c += 32)
        split_32(s, c, x + c);
}

/* The same in the order of two groups of 2-bit codes that are read together: field after field,
 * 32 columns of the one group, then of the other; zeros for a group that is not there. */
static void split_u2(struct split *s, const int16_t *x, uint32_t n)
{
    static const int16_t zeros[32];
    for (uint32_t c = 0; c < n; c += 256)
        for (uint32_t field = 0; field < 4; field++)
            for (uint32_t half = 0; half < 2; half++) {
                uint32_t from = c + 128 * half + 32 * field;
                split_32(s, c + 64 * field + 32 * half, from < n ? x + from : zeros);
            }
}

struct sums {
    __m512i high, low;
};

static inline void add_products(struct sums *sum, __m512i codes, const struct split *x,
                                uint32_t at)
{
    sum->high = _mm512_dpbusd_epi32(sum->high, codes, _mm512_load_si512(x->high + at));
    sum->low = _mm512_dpbusd_epi32(sum->low, codes, _mm512_load_si512(x->low + at));
}

static inline int32_t total(const struct sums *a, const struct sums *b)
{
    __m512i high = _mm512_add_epi32(a->high, b->high);
    __m512i low = _mm512_add_epi32(a->low, b->low);
    return _mm512_reduce_add_epi32(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
}

static int32_t dot_u4(const uint8_t *row, uint32_t cols, const struct split *x)
{
    const __m512i nibble = _mm512_set1_epi8(15), zero = _mm512_setzero_si512();
    struct sums a = {zero, zero}, b = {zero, zero};
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS, row += 64) {
        TN_PREFETCH(row + PREFETCH_BYTES);
        __m512i bytes = _mm512_loadu_si512(row);
        add_products(&a, _mm512_and_si512(bytes, nibble), x, c);
        add_products(&b, _mm512_and_si512(_mm512_srli_epi16(bytes, 4), nibble), x, c + 64);
    }
    return total(&a, &b);
}

static int32_t dot_u2(const uint8_t *row, uint32_t cols, const struct split *x)
{
    const __m512i three = _mm512_set1_epi8(3), zero = _mm512_setzero_si512();
    struct sums a = {zero, zero}, b = {zero, zero};
    for (uint32_t c = 0; c < cols; c += 2 * TN_PLANE_COLS, row += 64) {
        TN_PREFETCH(row + PREFETCH_BYTES);
        __mmask64 present = cols - c > TN_PLANE_COLS ? ~(__mmask64)0 : 0xFFFFFFFFu;
        __m512i bytes = _mm512_maskz_loadu_epi8(present, row);
        add_products(&a, _mm512_and_si512(bytes, three), x, c);
        add_products(&b, _mm512_and_si512(_mm512_srli_epi16(bytes, 2), three), x, c + 64);
        add_products(&a, _mm512_and_si512(_mm512_srli_epi16(bytes, 4), three), x, c + 128);
        add_products(&b, _mm512_and_si512(_mm512_srli_epi16(bytes, 6), three), x, c + 192);
    }
    return total(&a, &b);
}

void tn_dot_u4_i16_avx512(int32_t *dst, const uint8_t *plane, const uint32_t *rows, uint32_t n_rows,
                          uint32_t cols, const int16_t *x)
{
    const size_t row_bytes = tn_plane_row_bytes(cols, 4);
    const uint32_t padded = (uint32_t)tn_plane_row_bytes(cols, 8);
    struct split s;
    for (uint32_t c = 0; c < padded; c += CHUNK_COLS) {
        uint32_t n = TN_MIN(CHUNK_COLS, padded - c);
        split_u4(&s, x + c, n);
        for (uint32_t i = 0; i < n_rows; i++) {
            int32_t sum = dot_u4(plane + (rows ? rows[i] : i) * row_bytes + c / 2, n, &s);
            dst[i] = c ? dst[i] + sum : sum;
        }
    }
}

void tn_dot_u2_i16_avx512(int32_t *dst, const uint8_t *plane, const uint32_t *rows, uint32_t n_rows,
                          uint32_t cols, const int16_t *x)
{
    const size_t row_bytes = tn_plane_row_bytes(cols, 2);
    const uint32_t padded = (uint32_t)tn_plane_row_bytes(cols, 8);
    struct split s;
    for (uint32_t c = 0; c < padded; c += CHUNK_COLS) {
        uint32_t n = TN_MIN(CHUNK_COLS, padded - c);
        split_u2(&s, x + c, n);
        for (uint32_t i = 0; i < n_rows; i++) {
            int32_t sum = dot_u2(plane + (rows ? rows[i] : i) * row_bytes + c / 4, n, &s);
            dst[i] = c ? dst[i] + sum : sum;
        }
    }
}

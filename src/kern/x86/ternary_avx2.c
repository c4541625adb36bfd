/* SPDX-License-Identifier: MIT
 *
 * Ternary decode kernels for AVX2: no multiplication.  tests/hygiene/check_disasm.py verifies that
 * on the object file.  The loops of T2 and C2 are in pair_tables.h.
 */

/* T2 and C2: `vpshufb` looks 32 rows up in a table of 16 bytes; an index of four bits is a pair:
 * the codes of two columns.  A sum of two inputs, biased by 256, is in 2..510; its table has two
 * planes of bytes:
 *
 *     t + 256 = 16 * high + low,   high in 0..31,   low in 0..15
 *
 * Eight pairs (a batch) are added in bytes: 8 * 31 = 248 fits.  Then the bytes are widened.  A
 * 16-bit lane holds the bytes of rows 2i and 2i+1; instead of unpacking, `raw` adds whole lanes
 * (even + 256 * odd, modulo 2^16) and `odd` adds the upper bytes; the even sum is raw - 256 * odd
 * modulo 2^16.
 *
 * T2: a batch is 4 groups: 16 columns x 32 rows take 12 instructions for indices, 16 look-ups, 14 +
 * 6 additions: 0.094 per weight, and loads.
 *
 * C2: the bytes of two columns give four indices (4 x 32 rows): 14 instructions; with 8 look-ups
 * and 8 additions 0.12 per weight.
 *
 * R2: 32 columns of a row are one vector: the code, moved to the top of its byte, is the sign
 * operand of `vpsignb`, `vpsadbw` adds the biased bytes: 6 instructions, 0.19 per weight. */
#include <immintrin.h>

#include "kern/ternary_layout.h"

#define BATCH_PAIRS 8u
#define PAIR_BYTES 32u /* table of a pair: 16 low bytes, 16 high bytes */
#define BATCH_BYTES (BATCH_PAIRS * PAIR_BYTES)

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline __m256i twice(const uint8_t *table)
{
    return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(const void *)table));
}

/* The table of a pair: entry i is 256 + (c0 - 1) a + (c1 - 1) b with the codes c0, c1 in bits 0-1
 * and 2-3 of i. */
static inline void build_table(uint8_t *table, int8_t a, int8_t b)
{
    const __m256i a_sign = _mm256_setr_epi16(-1, 0, 1, 0, -1, 0, 1, 0, -1, 0, 1, 0, -1, 0, 1, 0);
    const __m256i b_sign = _mm256_setr_epi16(-1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0);
    const __m256i t = _mm256_add_epi16(
        _mm256_set1_epi16(256), _mm256_add_epi16(_mm256_sign_epi16(_mm256_set1_epi16(a), a_sign),
                                                 _mm256_sign_epi16(_mm256_set1_epi16(b), b_sign)));
    const __m256i low = _mm256_and_si256(t, _mm256_set1_epi16(15));
    const __m256i both = _mm256_packus_epi16(low, _mm256_srli_epi16(t, 4));
    _mm256_store_si256((void *)table, _mm256_permute4x64_epi64(both, 0xD8));
}

/* Byte sums of up to eight pairs. */
struct planes {
    __m256i low, high;
};

static TN_ALWAYS_INLINE void add_pair(struct planes *p, __m256i index, const uint8_t *table)
{
    p->low = _mm256_add_epi8(p->low, _mm256_shuffle_epi8(twice(table), index));
    p->high = _mm256_add_epi8(p->high, _mm256_shuffle_epi8(twice(table + 16), index));
}

/* 16-bit sums of 32 rows over up to WIDE_BATCHES batches: 264 * 248 = 65472 < 65536, so the even
 * and the odd sums are exact as unsigned numbers. */
struct wide {
    __m256i low_raw, low_odd, high_raw, high_odd;
};
#define WIDE_BATCHES 264u

static TN_ALWAYS_INLINE void widen(struct wide *s, const struct planes *p)
{
    s->low_raw = _mm256_add_epi16(s->low_raw, p->low);
    s->low_odd = _mm256_add_epi16(s->low_odd, _mm256_srli_epi16(p->low, 8));
    s->high_raw = _mm256_add_epi16(s->high_raw, p->high);
    s->high_odd = _mm256_add_epi16(s->high_odd, _mm256_srli_epi16(p->high, 8));
}

/* dst[0..7] += low + 16 * high - bias. */
static inline void add_8(int32_t *dst, __m128i low, __m128i high, __m256i bias)
{
    const __m256i sum = _mm256_add_epi32(_mm256_cvtepu16_epi32(low),
                                         _mm256_slli_epi32(_mm256_cvtepu16_epi32(high), 4));
    _mm256_store_si256((void *)dst, _mm256_add_epi32(load(dst), _mm256_sub_epi32(sum, bias)));
}

/* Adds the 32 sums of n_batches batches to dst, in natural order. */
static void flush(int32_t *dst, const struct wide *s, uint32_t n_batches)
{
    const __m256i low_even = _mm256_sub_epi16(s->low_raw, _mm256_slli_epi16(s->low_odd, 8));
    const __m256i high_even = _mm256_sub_epi16(s->high_raw, _mm256_slli_epi16(s->high_odd, 8));
    const __m256i bias = _mm256_set1_epi32((int)(n_batches << 11)); /* 8 * 256 per batch */
    const __m256i low0 = _mm256_unpacklo_epi16(low_even, s->low_odd);
    const __m256i low1 = _mm256_unpackhi_epi16(low_even, s->low_odd);
    const __m256i high0 = _mm256_unpacklo_epi16(high_even, s->high_odd);
    const __m256i high1 = _mm256_unpackhi_epi16(high_even, s->high_odd);
    add_8(dst, _mm256_castsi256_si128(low0), _mm256_castsi256_si128(high0), bias);
    add_8(dst + 8, _mm256_castsi256_si128(low1), _mm256_castsi256_si128(high1), bias);
    add_8(dst + 16, _mm256_extracti128_si256(low0, 1), _mm256_extracti128_si256(high0, 1), bias);
    add_8(dst + 24, _mm256_extracti128_si256(low1, 1), _mm256_extracti128_si256(high1, 1), bias);
}

/* T2: 16 columns of 32 rows of one tile. */
static TN_ALWAYS_INLINE void t2_batch(struct wide *s, const uint8_t *group, const uint8_t *table)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    struct planes p = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        const __m256i codes = load(group + 64 * i);
        add_pair(&p, _mm256_and_si256(codes, nibble), table + 2 * PAIR_BYTES * i);
        add_pair(&p, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble),
                 table + 2 * PAIR_BYTES * i + PAIR_BYTES);
    }
    widen(s, &p);
}

/* C2: the codes of two columns, 4 x 32 rows, as four indices. */
static TN_ALWAYS_INLINE void add_columns(struct planes p[4], const uint8_t *col_a,
                                         const uint8_t *col_b, const uint8_t *table)
{
    const __m256i a = load(col_a), b = load(col_b);
    const __m256i m33 = _mm256_set1_epi8(0x33), mcc = _mm256_set1_epi8((char)0xCC);
    const __m256i nibble = _mm256_set1_epi8(15);
    /* Fields 0 and 2 of both, then fields 1 and 3. */
    const __m256i f02 = _mm256_or_si256(_mm256_and_si256(a, m33),
                                        _mm256_and_si256(_mm256_slli_epi16(b, 2), mcc));
    const __m256i f13 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(a, 2), m33),
                                        _mm256_and_si256(b, mcc));
    const __m256i indices[4] = {f02, f13, _mm256_srli_epi16(f02, 4), _mm256_srli_epi16(f13, 4)};
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) {
        add_pair(&p[q], _mm256_and_si256(indices[q], nibble), table);
        /* Pins each sum to a register: otherwise gcc copies all of them every time and spills. */
        __asm__("" : "+x"(p[q].low), "+x"(p[q].high));
    }
}

#define PART_ROWS 32u
#include "kern/pair_tables.h"
PAIR_TABLES_DEFINE(avx2)

/* ---- R2 ---- */

/* -x: the code 2 (weight +1) becomes a negative sign operand. */
void tn_prep_r2_avx2(void *prep, const int8_t *x, uint32_t cols)
{
    int8_t *p = prep;
    for (uint32_t c = 0; c < tn_kern_pad(cols); c += 32)
        _mm256_store_si256((void *)(p + c), _mm256_sub_epi8(_mm256_setzero_si256(), load(x + c)));
}

/* Adds 32 columns whose codes, xored with 1, are in the two upper bits of `signs`: 0 became 1
 * (positive), 1 became 0, 2 became 3 (negative). */
static TN_ALWAYS_INLINE __m256i r2_add(__m256i sum, __m256i signs, __m256i minus_x)
{
    const __m256i top = _mm256_set1_epi8((char)0xC0), bias = _mm256_set1_epi8((char)0x80);
    const __m256i v = _mm256_sign_epi8(minus_x, _mm256_and_si256(signs, top));
    return _mm256_add_epi64(sum, _mm256_sad_epu8(_mm256_xor_si256(v, bias),
                                                 _mm256_setzero_si256()));
}

static inline int64_t add_lanes(__m256i sum)
{
    __m128i s = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi64(s, _mm_unpackhi_epi64(s, s));
    return _mm_cvtsi128_si64(s);
}

static int32_t r2_sum_row(const uint8_t *row, const uint8_t *near, const uint8_t *far,
                          uint32_t n_blocks, const int8_t *x)
{
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t i = 0; i < n_blocks * 64; i += 64, x += 256) {
        tn_request_l2(far + i, TN_PREFETCH_OF(R2));
        tn_request_l1(near + i, TN_PREFETCH_OF(R2));
        for (uint32_t j = 0; j < 64; j += 32) {
            const __m256i codes = _mm256_xor_si256(load(row + i + j), _mm256_set1_epi8(0x55));
            sum = r2_add(sum, _mm256_slli_epi16(codes, 6), load(x + j));
            sum = r2_add(sum, _mm256_slli_epi16(codes, 4), load(x + j + 64));
            sum = r2_add(sum, _mm256_slli_epi16(codes, 2), load(x + j + 128));
            sum = r2_add(sum, codes, load(x + j + 192));
        }
    }
    /* Each of the 256 * n_blocks bytes was biased by 128. */
    return (int32_t)(add_lanes(sum) - ((int64_t)n_blocks << 15));
}

void tn_gemv_r2_i8_avx2(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                        uint32_t n_rows, const void *prep)
{
    r2_sum_rows(dst, w, rows, n_rows, prep, r2_sum_row);
}

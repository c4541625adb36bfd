/* SPDX-License-Identifier: MIT
 *
 * Ternary decode kernels for SSSE3: no multiplication.
 *
 * T2 and C2 as in ternary_avx2.c with vectors of 16 rows: `pshufb` looks pairs of columns up in two
 * planes of 16 bytes, t + 256 = 16 * high + low, high in 0..31, low in 0..15; eight pairs (a batch)
 * are added in bytes (8 * 31 = 248), then widened: `raw` adds whole 16-bit lanes (even + 256 * odd,
 * modulo 2^16), `odd` the upper bytes; the even sum is raw - 256 * odd.  T2 takes 0.19 instructions
 * per weight, C2 0.24.
 *
 * R2: 16 columns of a row are one vector: the code, moved to the top of its byte, is the sign
 * operand of `psignb`, `psadbw` adds the biased bytes: 0.4 per weight.
 */
#include <tmmintrin.h>

#include "kern/ternary_layout.h"

#define BATCH_PAIRS 8u
#define PAIR_BYTES 32u /* table of a pair: 16 low bytes, 16 high bytes */
#define BATCH_BYTES (BATCH_PAIRS * PAIR_BYTES)

static inline __m128i load(const void *p)
{
    return _mm_load_si128(p);
}

/* Stores the entries 0..7 and 8..15 of a table: see build_table. */
static inline void store_planes(uint8_t *table, __m128i t0, __m128i t1)
{
    const __m128i low = _mm_set1_epi16(15);
    _mm_store_si128((void *)table,
                    _mm_packus_epi16(_mm_and_si128(t0, low), _mm_and_si128(t1, low)));
    _mm_store_si128((void *)(table + 16),
                    _mm_packus_epi16(_mm_srli_epi16(t0, 4), _mm_srli_epi16(t1, 4)));
}

/* The table of a pair: entry i is 256 + (c0 - 1) a + (c1 - 1) b with the codes c0, c1 in bits 0-1
 * and 2-3 of i. */
static inline void build_table(uint8_t *table, int8_t a, int8_t b)
{
    const __m128i a_sign = _mm_setr_epi16(-1, 0, 1, 0, -1, 0, 1, 0);
    const __m128i b_sign0 = _mm_setr_epi16(-1, -1, -1, -1, 0, 0, 0, 0);
    const __m128i b_sign1 = _mm_setr_epi16(1, 1, 1, 1, 0, 0, 0, 0);
    const __m128i vb = _mm_set1_epi16(b);
    const __m128i t = _mm_add_epi16(_mm_set1_epi16(256), _mm_sign_epi16(_mm_set1_epi16(a), a_sign));
    store_planes(table, _mm_add_epi16(t, _mm_sign_epi16(vb, b_sign0)),
                 _mm_add_epi16(t, _mm_sign_epi16(vb, b_sign1)));
}

/* Byte sums of up to eight pairs. */
struct planes {
    __m128i low, high;
};

static TN_ALWAYS_INLINE void add_pair(struct planes *p, __m128i index, const uint8_t *table)
{
    p->low = _mm_add_epi8(p->low, _mm_shuffle_epi8(load(table), index));
    p->high = _mm_add_epi8(p->high, _mm_shuffle_epi8(load(table + 16), index));
}

/* 16-bit sums of 16 rows over up to WIDE_BATCHES batches: 264 * 248 = 65472 < 65536, so the even
 * and the odd sums are exact as unsigned numbers. */
struct wide {
    __m128i low_raw, low_odd, high_raw, high_odd;
};
#define WIDE_BATCHES 264u

static TN_ALWAYS_INLINE void widen(struct wide *s, const struct planes *p)
{
    s->low_raw = _mm_add_epi16(s->low_raw, p->low);
    s->low_odd = _mm_add_epi16(s->low_odd, _mm_srli_epi16(p->low, 8));
    s->high_raw = _mm_add_epi16(s->high_raw, p->high);
    s->high_odd = _mm_add_epi16(s->high_odd, _mm_srli_epi16(p->high, 8));
}

/* dst[0..7] += low + 16 * high - bias. */
static inline void add_8(int32_t *dst, __m128i low, __m128i high, __m128i bias)
{
    const __m128i zero = _mm_setzero_si128();
    const __m128i sum0 = _mm_add_epi32(_mm_unpacklo_epi16(low, zero),
                                       _mm_slli_epi32(_mm_unpacklo_epi16(high, zero), 4));
    const __m128i sum1 = _mm_add_epi32(_mm_unpackhi_epi16(low, zero),
                                       _mm_slli_epi32(_mm_unpackhi_epi16(high, zero), 4));
    _mm_store_si128((void *)dst, _mm_add_epi32(load(dst), _mm_sub_epi32(sum0, bias)));
    _mm_store_si128((void *)(dst + 4), _mm_add_epi32(load(dst + 4), _mm_sub_epi32(sum1, bias)));
}

/* Adds the 16 sums of n_batches batches to dst, in natural order. */
static void flush(int32_t *dst, const struct wide *s, uint32_t n_batches)
{
    const __m128i low_even = _mm_sub_epi16(s->low_raw, _mm_slli_epi16(s->low_odd, 8));
    const __m128i high_even = _mm_sub_epi16(s->high_raw, _mm_slli_epi16(s->high_odd, 8));
    const __m128i bias = _mm_set1_epi32((int)(n_batches << 11)); /* 8 * 256 per batch */
    add_8(dst, _mm_unpacklo_epi16(low_even, s->low_odd), _mm_unpacklo_epi16(high_even, s->high_odd),
          bias);
    add_8(dst + 8, _mm_unpackhi_epi16(low_even, s->low_odd),
          _mm_unpackhi_epi16(high_even, s->high_odd), bias);
}

/* T2: 16 columns of 16 rows of one tile. */
static TN_ALWAYS_INLINE void t2_batch(struct wide *s, const uint8_t *group, const uint8_t *table)
{
    const __m128i nibble = _mm_set1_epi8(15);
    struct planes p = {_mm_setzero_si128(), _mm_setzero_si128()};
    for (uint32_t i = 0; i < 4; i++) {
        const __m128i codes = load(group + 64 * i);
        add_pair(&p, _mm_and_si128(codes, nibble), table + 2 * PAIR_BYTES * i);
        add_pair(&p, _mm_and_si128(_mm_srli_epi16(codes, 4), nibble),
                 table + 2 * PAIR_BYTES * i + PAIR_BYTES);
    }
    widen(s, &p);
}

/* C2: the codes of two columns, 4 x 16 rows, as four indices. */
static TN_ALWAYS_INLINE void add_columns(struct planes p[4], const uint8_t *col_a,
                                         const uint8_t *col_b, const uint8_t *table)
{
    const __m128i a = load(col_a), b = load(col_b);
    const __m128i m33 = _mm_set1_epi8(0x33), mcc = _mm_set1_epi8((char)0xCC);
    const __m128i nibble = _mm_set1_epi8(15);
    /* Fields 0 and 2 of both, then fields 1 and 3. */
    const __m128i f02 =
        _mm_or_si128(_mm_and_si128(a, m33), _mm_and_si128(_mm_slli_epi16(b, 2), mcc));
    const __m128i f13 =
        _mm_or_si128(_mm_and_si128(_mm_srli_epi16(a, 2), m33), _mm_and_si128(b, mcc));
    add_pair(&p[0], _mm_and_si128(f02, nibble), table);
    add_pair(&p[1], _mm_and_si128(f13, nibble), table);
    add_pair(&p[2], _mm_and_si128(_mm_srli_epi16(f02, 4), nibble), table);
    add_pair(&p[3], _mm_and_si128(_mm_srli_epi16(f13, 4), nibble), table);
}

#define PART_ROWS 16u
#include "kern/pair_tables.h"
PAIR_TABLES_DEFINE(ssse3)

/* ---- R2 ---- */

/* -x: the code 2 (weight +1) becomes a negative sign operand. */
void tn_prep_r2_ssse3(void *prep, const int8_t *x, uint32_t cols)
{
    int8_t *p = prep;
    for (uint32_t c = 0; c < tn_kern_pad(cols); c += 16)
        _mm_store_si128((void *)(p + c), _mm_sub_epi8(_mm_setzero_si128(), load(x + c)));
}

/* Adds 16 columns whose codes, xored with 1, are in the two upper bits of `signs`: 0 became 1
 * (positive), 1 became 0, 2 became 3 (negative). */
static TN_ALWAYS_INLINE __m128i r2_add(__m128i sum, __m128i signs, __m128i minus_x)
{
    const __m128i top = _mm_set1_epi8((char)0xC0), bias = _mm_set1_epi8((char)0x80);
    const __m128i v = _mm_sign_epi8(minus_x, _mm_and_si128(signs, top));
    return _mm_add_epi64(sum, _mm_sad_epu8(_mm_xor_si128(v, bias), _mm_setzero_si128()));
}

static int32_t r2_sum_row(const uint8_t *row, const uint8_t *near, const uint8_t *far,
                          uint32_t n_blocks, const int8_t *x)
{
    __m128i sum = _mm_setzero_si128();
    for (uint32_t i = 0; i < n_blocks * 64; i += 64, x += 256) {
        tn_request_l2(far + i, TN_PREFETCH_OF(R2));
        tn_request_l1(near + i, TN_PREFETCH_OF(R2));
        for (uint32_t j = 0; j < 64; j += 16) {
            const __m128i codes = _mm_xor_si128(load(row + i + j), _mm_set1_epi8(0x55));
            sum = r2_add(sum, _mm_slli_epi16(codes, 6), load(x + j));
            sum = r2_add(sum, _mm_slli_epi16(codes, 4), load(x + j + 64));
            sum = r2_add(sum, _mm_slli_epi16(codes, 2), load(x + j + 128));
            sum = r2_add(sum, codes, load(x + j + 192));
        }
    }
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    /* Each of the 256 * n_blocks bytes was biased by 128. */
    return (int32_t)(_mm_cvtsi128_si64(sum) - ((int64_t)n_blocks << 15));
}

void tn_gemv_r2_i8_ssse3(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                         uint32_t n_rows, const void *prep)
{
    r2_sum_rows(dst, w, rows, n_rows, prep, r2_sum_row);
}

/* SPDX-License-Identifier: MIT
 *
 * Ternary decode kernels for AVX-512 (F, BW, VL, DQ, VBMI): no multiplication.
 *
 * T2 and C2: `vpermb` looks 64 rows up in a table of 64 bytes, so an index of six bits is a
 * triple: the codes of three columns.  A sum of three inputs, biased by 384, lies in 3..765; its
 * table has two planes of bytes:
 *
 *     t + 384 = 32 * high + low,   high in 0..23,   low in 0..31
 *
 * Eight triples (a batch) are added in bytes: 8 * 31 = 248 and 8 * 23 = 184 fit.  Then the bytes
 * are widened.  A 16-bit lane holds the bytes of rows 2i and 2i+1; instead of unpacking, `raw`
 * adds whole lanes (even + 256 * odd, modulo 2^16) and `odd` adds the upper bytes; the even sum is
 * raw - 256 * odd modulo 2^16.
 *
 * T2: in a byte (4 columns) the lower three codes are an index as they are (vpermb ignores the
 * upper two bits); the fourth codes of three groups make one more index.  So 6 groups are a batch:
 * 24 columns x 64 rows take 10 instructions for indices, 16 look-ups, 14 + 6 additions, 6 loads:
 * 0.034 instructions per weight.  The tables of a run (128 columns, 5.4 KB) stay in the first-level
 * cache for the 4 tiles of a band: a table that had to come from the second level would queue
 * behind the weights that are on their way from memory.
 *
 * C2: the bytes of three columns give four indices (4 x 64 rows).  A batch is 24 columns; per 64
 * rows 34 instructions for indices, 16 look-ups, 14 additions, 8 to widen, 6 loads: 0.051.
 *
 * R2: 64 columns of a row are one vector: starting from 128, lanes with code 2 take x + 128, lanes
 * with code 0 take 128 - x (masks tested straight from the packed byte), and `vpsadbw` adds the
 * bytes: 6 instructions for 64 weights, 0.1 per weight.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kern/ternary_layout.h"

#define BIAS 384           /* of one triple; a multiple of 32 above 3 * 127 */
#define BATCH_TRIPLES 8u
#define BATCH_BYTES 1024u  /* tables of one batch: 8 x (64 low + 64 high) */

static inline __m512i load(const void *p)
{
    return _mm512_loadu_si512(p);
}

static inline __m512i lookup(__m512i index, const uint8_t *table)
{
    return _mm512_permutexvar_epi8(index, _mm512_load_si512(table));
}

/* The table of a triple: entry i is BIAS + (c0 - 1) a + (c1 - 1) b + (c2 - 1) c with the codes
 * c0, c1, c2 in bits 0-1, 2-3, 4-5 of i. */
static inline void build_table(uint8_t *table, int8_t a, int8_t b, int8_t c)
{
    /* Bit i of a mask is entry i. */
    const __mmask32 a_minus = 0x11111111, a_plus = 0x44444444;
    const __mmask32 b_minus = 0x000F000F, b_plus = 0x0F000F00;
    const __mmask32 c_minus_low = 0x0000FFFF, c_plus_high = 0x0000FFFF;
    const __m512i va = _mm512_set1_epi16(a), vb = _mm512_set1_epi16(b), vc = _mm512_set1_epi16(c);
    __m512i ab = _mm512_set1_epi16(BIAS);
    ab = _mm512_mask_sub_epi16(ab, a_minus, ab, va);
    ab = _mm512_mask_add_epi16(ab, a_plus, ab, va);
    ab = _mm512_mask_sub_epi16(ab, b_minus, ab, vb);
    ab = _mm512_mask_add_epi16(ab, b_plus, ab, vb);
    const __m512i t0 = _mm512_mask_sub_epi16(ab, c_minus_low, ab, vc);  /* entries 0..31 */
    const __m512i t1 = _mm512_mask_add_epi16(ab, c_plus_high, ab, vc); /* entries 32..63 */
    const __m512i low = _mm512_set1_epi16(31);
    _mm256_store_si256((void *)table, _mm512_cvtepi16_epi8(_mm512_and_si512(t0, low)));
    _mm256_store_si256((void *)(table + 32), _mm512_cvtepi16_epi8(_mm512_and_si512(t1, low)));
    _mm256_store_si256((void *)(table + 64), _mm512_cvtepi16_epi8(_mm512_srli_epi16(t0, 5)));
    _mm256_store_si256((void *)(table + 96), _mm512_cvtepi16_epi8(_mm512_srli_epi16(t1, 5)));
}

/* Byte sums of up to eight triples. */
struct planes {
    __m512i low, high;
};

static TN_ALWAYS_INLINE void add_triple(struct planes *p, __m512i index, const uint8_t *table)
{
    p->low = _mm512_add_epi8(p->low, lookup(index, table));
    p->high = _mm512_add_epi8(p->high, lookup(index, table + 64));
}

/* 16-bit sums of 64 rows over up to WIDE_BATCHES batches: 264 * 248 = 65472 < 65536, so the even
 * and the odd sums are exact without sign. */
struct wide {
    __m512i low_raw, low_odd, high_raw, high_odd;
};
#define WIDE_BATCHES 264u

static TN_ALWAYS_INLINE void widen(struct wide *s, const struct planes *p)
{
    s->low_raw = _mm512_add_epi16(s->low_raw, p->low);
    s->low_odd = _mm512_add_epi16(s->low_odd, _mm512_srli_epi16(p->low, 8));
    s->high_raw = _mm512_add_epi16(s->high_raw, p->high);
    s->high_odd = _mm512_add_epi16(s->high_odd, _mm512_srli_epi16(p->high, 8));
}

/* Adds the 64 sums to dst, in natural order; bias_sum is that of all their triples. */
static void flush(int32_t *dst, const struct wide *s, uint32_t bias_sum)
{
    static const uint16_t order[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                       37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                       11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __m512i low_even = _mm512_sub_epi16(s->low_raw, _mm512_slli_epi16(s->low_odd, 8));
    const __m512i high_even = _mm512_sub_epi16(s->high_raw, _mm512_slli_epi16(s->high_odd, 8));
    const __m512i bias = _mm512_set1_epi32((int)bias_sum);
    for (int half = 0; half < 2; half++) {
        const __m512i mix = _mm512_add_epi16(load(order), _mm512_set1_epi16((short)(16 * half)));
        const __m512i low = _mm512_permutex2var_epi16(low_even, mix, s->low_odd);
        const __m512i high = _mm512_permutex2var_epi16(high_even, mix, s->high_odd);
        for (int quarter = 0; quarter < 2; quarter++, dst += 16) {
            const __m256i l = quarter ? _mm512_extracti64x4_epi64(low, 1)
                                      : _mm512_castsi512_si256(low);
            const __m256i h = quarter ? _mm512_extracti64x4_epi64(high, 1)
                                      : _mm512_castsi512_si256(high);
            const __m512i sum = _mm512_add_epi32(_mm512_cvtepu16_epi32(l),
                                                 _mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 5));
            _mm512_store_si512(dst, _mm512_add_epi32(_mm512_load_si512(dst),
                                                     _mm512_sub_epi32(sum, bias)));
        }
    }
}

/* ---- T2 ---- */

/* Tables in the order of use: of every 12 columns 0-2, 4-6, 8-10, then 3 7 11; at the end of a run
 * 8 columns are left: 0-2, 4-6, then 3 7. */
#define RUN_TABLE_BYTES (43u * 128u)

void tn_lut_t2_avx512(void *lut, const int8_t *x, uint32_t cols)
{
    uint8_t *table = lut;
    for (uint32_t run = 0; run < cols; run += TERN_T2_COL_ALIGN, x += TERN_T2_COL_ALIGN) {
        const int8_t *v = x;
        for (uint32_t i = 0; i < 10; i++, v += 12, table += 512) {
            build_table(table, v[0], v[1], v[2]);
            build_table(table + 128, v[4], v[5], v[6]);
            build_table(table + 256, v[8], v[9], v[10]);
            build_table(table + 384, v[3], v[7], v[11]);
        }
        build_table(table, v[0], v[1], v[2]);
        build_table(table + 128, v[4], v[5], v[6]);
        build_table(table + 256, v[3], v[7], 0);
        table += 384;
    }
}

/* The index of the fourth codes of three groups. */
static TN_ALWAYS_INLINE __m512i fourth_codes(__m512i a, __m512i b, __m512i c)
{
    const __m512i m03 = _mm512_set1_epi8(0x03), m0f = _mm512_set1_epi8(0x0F);
    /* 0xCA: first operand selects the second where 1, the third where 0. */
    __m512i ab = _mm512_ternarylogic_epi64(m03, _mm512_srli_epi16(a, 6), _mm512_srli_epi16(b, 4),
                                           0xCA);
    return _mm512_ternarylogic_epi64(m0f, ab, _mm512_srli_epi16(c, 2), 0xCA);
}

/* Adds 3 groups = 12 columns of a tile to the byte sums. */
static TN_ALWAYS_INLINE void add_groups(struct planes *p, __m512i a, __m512i b, __m512i c,
                                        const uint8_t *table)
{
    add_triple(p, a, table);
    add_triple(p, b, table + 128);
    add_triple(p, c, table + 256);
    add_triple(p, fourth_codes(a, b, c), table + 384);
}

/* Bytes ahead of the weights in use; measured. */
#define PREFETCH_BYTES 8192

/* 128 columns of one tile: 5 batches of 6 groups, then 2 groups. */
static TN_ALWAYS_INLINE void t2_add_run(struct wide *sum, const uint8_t *group,
                                        const uint8_t *table)
{
    struct wide s = *sum;
    for (uint32_t b = 0; b < 5; b++, group += 6 * 64, table += BATCH_BYTES) {
        struct planes p = {_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 6
        for (uint32_t line = 0; line < 6; line++)
            TN_PREFETCH(group + line * 64 + PREFETCH_BYTES);
        add_groups(&p, load(group), load(group + 64), load(group + 128), table);
        add_groups(&p, load(group + 192), load(group + 256), load(group + 320),
                   table + BATCH_BYTES / 2);
        widen(&s, &p);
    }
    struct planes p = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    TN_PREFETCH(group + PREFETCH_BYTES);
    TN_PREFETCH(group + 64 + PREFETCH_BYTES);
    const __m512i a = load(group), b = load(group + 64);
    add_triple(&p, a, table);
    add_triple(&p, b, table + 128);
    add_triple(&p, fourth_codes(a, b, _mm512_setzero_si512()), table + 256);
    widen(&s, &p);
    *sum = s;
}

/* A run widens 6 times; 44 of them are WIDE_BATCHES. Its 43 triples are biased by 43 * 384 =
 * 2^14 + 2^7. */
#define WIDE_RUNS 44u
_Static_assert(WIDE_RUNS * 6 <= WIDE_BATCHES && 43 * BIAS == (1 << 14) + (1 << 7), "see above");

static inline uint32_t bias_of_runs(uint32_t n)
{
    uint32_t bias = n << 7;
    __asm__("" : "+r"(bias)); /* shifts stay shifts */
    return (bias << 7) + bias;
}

static void t2_band(int32_t *dst, const uint8_t *run, uint32_t n_tiles, uint32_t n_runs,
                    const uint8_t *lut)
{
    memset(dst, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *dst);
    for (uint32_t n; n_runs > 0; n_runs -= n) {
        struct wide s[TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS];
        memset(s, 0, sizeof s);
        n = TN_MIN(n_runs, WIDE_RUNS);
        for (uint32_t i = 0; i < n; i++, lut += RUN_TABLE_BYTES)
            for (uint32_t t = 0; t < n_tiles; t++, run += T2_RUN_BYTES)
                t2_add_run(&s[t], run, lut);
        for (uint32_t t = 0; t < n_tiles; t++)
            flush(dst + TERN_T2_TILE_ROWS * t, &s[t], bias_of_runs(n));
    }
}

void tn_gemv_t2_i8_avx512(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,
                          uint32_t row_end, const void *lut)
{
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_BAND_ROWS)
        t2_band(dst + (row - row_begin), t2_run(w, row, 0), t2_band_tiles(w, row), t2_runs(w), lut);
}

/* ---- C2 ---- */

#define C2_BATCH_COLS 24u
#define C2_MAX_VECTORS (TN_C2_MAX_ROWS / 64)

/* The codes of three columns, 4 x 64 rows, as four indices. */
static TN_ALWAYS_INLINE void add_columns(struct planes p[4], __m512i a, __m512i b, __m512i c,
                                         const uint8_t *table)
{
    const __m512i m03 = _mm512_set1_epi8(0x03), m0f = _mm512_set1_epi8(0x0F);
#define PICK(mask, x, y) _mm512_ternarylogic_epi64(mask, x, y, 0xCA) /* mask ? x : y */
    add_triple(&p[0],
               PICK(m0f, PICK(m03, a, _mm512_slli_epi16(b, 2)), _mm512_slli_epi16(c, 4)), table);
    add_triple(&p[1],
               PICK(m0f, PICK(m03, _mm512_srli_epi16(a, 2), b), _mm512_slli_epi16(c, 2)), table);
    add_triple(&p[2],
               PICK(m0f, PICK(m03, _mm512_srli_epi16(a, 4), _mm512_srli_epi16(b, 2)), c), table);
    add_triple(&p[3],
               PICK(m0f, PICK(m03, _mm512_srli_epi16(a, 6), _mm512_srli_epi16(b, 4)),
                    _mm512_srli_epi16(c, 2)),
               table);
#undef PICK
}

static void c2_add_batch(struct wide *sums, uint32_t n_blocks, const uint8_t *const *col,
                         const uint8_t *const *next, const uint8_t *tables)
{
    for (uint32_t b = 0; b < n_blocks; b++) {
        struct planes p[4];
        memset(p, 0, sizeof p);
        for (uint32_t k = 0; k < C2_BATCH_COLS; k += 3) {
            for (uint32_t i = 0; i < 3; i++)
                TN_PREFETCH(next[k + i] + b * 64);
            add_columns(p, load(col[k] + b * 64), load(col[k + 1] + b * 64),
                        load(col[k + 2] + b * 64), tables + k / 3 * 128);
        }
        for (uint32_t q = 0; q < 4; q++)
            widen(&sums[4 * b + q], &p[q]);
    }
}

void tn_gemv_c2_i8_avx512(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,
                          uint32_t row_end, const uint32_t *cols, const int8_t *x, uint32_t n_cols)
{
    const size_t col_bytes = c2_col_bytes(w);
    const uint8_t *data = w->data + row_begin / 4;
    const uint32_t n_blocks = (row_end - row_begin) / 256;
    struct wide sums[C2_MAX_VECTORS];
    uint8_t tables[BATCH_BYTES] __attribute__((aligned(64)));
    const uint8_t *col[2][C2_BATCH_COLS];
    int8_t inputs[2][C2_BATCH_COLS];

    memset(dst, 0, (row_end - row_begin) * sizeof *dst);
    if (n_cols)
        c2_take_columns(col[0], inputs[0], C2_BATCH_COLS, data, col_bytes, cols, x, 0, n_cols);
    uint32_t n_batches = 0;
    for (uint32_t i = 0, now = 0; i < n_cols; i += C2_BATCH_COLS, now ^= 1) {
        if (n_batches == 0)
            memset(sums, 0, n_blocks * 4 * sizeof *sums);
        const bool is_last = n_cols - i <= C2_BATCH_COLS;
        c2_take_columns(col[now ^ 1], inputs[now ^ 1], C2_BATCH_COLS, data, col_bytes, cols, x,
                        i + C2_BATCH_COLS, n_cols);
        for (uint32_t t = 0; t < BATCH_TRIPLES; t++)
            build_table(tables + 128 * t, inputs[now][3 * t], inputs[now][3 * t + 1],
                        inputs[now][3 * t + 2]);
        c2_add_batch(sums, n_blocks, col[now], col[now ^ 1], tables);
        if (++n_batches == WIDE_BATCHES || is_last) { /* biased by 8 * 384 = 2^10 + 2^11 each */
            for (uint32_t v = 0; v < n_blocks * 4; v++)
                flush(dst + 64 * v, &sums[v], (n_batches << 10) + (n_batches << 11));
            n_batches = 0;
        }
    }
}

/* ---- R2 ---- */

/* Per 64 columns: 64 bytes x + 128, then 64 bytes 128 - x. */
void tn_prep_r2_avx512(void *prep, const int8_t *x, uint32_t cols)
{
    const __m512i bias = _mm512_set1_epi8((char)0x80);
    uint8_t *p = prep;
    for (uint32_t c = 0; c < tn_kern_pad(cols); c += 64, p += 128) {
        _mm512_store_si512(p, _mm512_add_epi8(load(x + c), bias));
        _mm512_store_si512(p + 64, _mm512_sub_epi8(bias, load(x + c)));
    }
}

static TN_ALWAYS_INLINE __m512i r2_add(__m512i sum, __m512i packed, int q, const uint8_t *prep)
{
    const __m512i bias = _mm512_set1_epi8((char)0x80);
    const __mmask64 plus = _mm512_test_epi8_mask(packed, _mm512_set1_epi8((char)(2 << 2 * q)));
    const __mmask64 minus = _mm512_testn_epi8_mask(packed, _mm512_set1_epi8((char)(3 << 2 * q)));
    __m512i v = _mm512_mask_mov_epi8(bias, plus, _mm512_load_si512(prep + 128 * q));
    v = _mm512_mask_mov_epi8(v, minus, _mm512_load_si512(prep + 128 * q + 64));
    return _mm512_add_epi64(sum, _mm512_sad_epu8(v, _mm512_setzero_si512()));
}

/* n (a constant) rows at once; next[i] is prefetched in step. */
static TN_ALWAYS_INLINE void r2_rows(int32_t *dst, const uint8_t *const *row,
                                     const uint8_t *const *next, uint32_t n_blocks,
                                     const uint8_t *prep, const uint32_t n)
{
    __m512i sum[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                      _mm512_setzero_si512()};
    for (uint32_t b = 0; b < n_blocks; b++, prep += 512)
        for (uint32_t i = 0; i < n; i++) {
            const __m512i packed = load(row[i] + 64 * b);
            TN_PREFETCH(next[i] + 64 * b);
            sum[i] = r2_add(sum[i], packed, 0, prep);
            sum[i] = r2_add(sum[i], packed, 1, prep);
            sum[i] = r2_add(sum[i], packed, 2, prep);
            sum[i] = r2_add(sum[i], packed, 3, prep);
        }
    /* Each of the 256 * n_blocks lanes began at 128. */
    for (uint32_t i = 0; i < n; i++)
        dst[i] = (int32_t)(_mm512_reduce_add_epi64(sum[i]) - ((int64_t)n_blocks << 15));
}

void tn_gemv_r2_i8_avx512(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                          uint32_t n_rows, const void *prep)
{
    const uint32_t n_blocks = r2_blocks(w);
    const size_t row_bytes = (size_t)n_blocks * 64;
    for (uint32_t i = 0; i < n_rows; i += 4) {
        const uint32_t n = TN_MIN(n_rows - i, 4u);
        const uint8_t *row[4], *next[4];
        for (uint32_t k = 0; k < 4; k++) {
            row[k] = w->data + rows[TN_MIN(i + k, n_rows - 1)] * row_bytes;
            next[k] = w->data + rows[TN_MIN(i + 4 + k, n_rows - 1)] * row_bytes;
        }
        if (n == 4)
            r2_rows(dst + i, row, next, n_blocks, prep, 4);
        else
            for (uint32_t k = 0; k < n; k++)
                r2_rows(dst + i + k, row + k, next + k, n_blocks, prep, 1);
    }
}

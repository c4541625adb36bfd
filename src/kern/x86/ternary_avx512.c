/* SPDX-License-Identifier: MIT
 *
 * Ternary decode kernels for AVX-512 (F, BW, VL, DQ, VBMI): no multiplication.
 * tests/hygiene/check_disasm.py verifies that on the object file.
 */

/* T2 and C2: `vpermb` looks 64 rows up in a table of 64 bytes, so an index of six bits is a triple:
 * the codes of three columns.  A sum of three inputs, biased by 384, is in 3..765; its table has
 * two planes of bytes:
 *
 *     t + 384 = 32 * high + low,   high in 0..23,   low in 0..31
 *
 * Eight triples (a batch) are added in bytes: 8 * 31 = 248 and 8 * 23 = 184 fit.  Then the bytes
 * are widened.  A 16-bit lane holds the bytes of rows 2i and 2i+1; instead of unpacking, `raw` adds
 * whole lanes (even + 256 * odd, modulo 2^16) and `odd` adds the upper bytes; the even sum is raw -
 * 256 * odd modulo 2^16.
 *
 * T2: in a byte (4 columns) the lower three codes are an index without any shift (vpermb ignores
 * the upper two bits); the fourth codes of three groups make one more index.  So 6 groups are a
 * batch: 24 columns x 64 rows take 10 instructions for indices, 16 look-ups, 14 + 6 additions, 6
 * loads: 0.034 instructions per weight (not counting, here and below, prefetches and register
 * copies).  The tables of a run (128 columns, 5.4 KB) stay in the first-level cache for the 4 tiles
 * of a band: loading a table from the second level would queue after the weights on their way from
 * memory.
 *
 * C2: the bytes of three columns give four indices (4 x 64 rows).  A batch is 12 columns; per 64
 * rows 17 instructions for indices, 8 look-ups, 6 additions, 10 to widen, 3 loads: 0.057.
 *
 * R2: `vpermb` looks single codes up: 16 columns of 4 rows are one vector, an index is a code and
 * the number of its column, its table has 128 + (code - 1) x, `vpsadbw` adds the bytes: per 256
 * weights 2 instructions to gather rows, 5 for indices, 4 look-ups, 8 to add, 2 to copy: 0.08 per
 * weight. */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define T5_WORD_BYTES 64

#include "kern/tiles.h"

#define BIAS 384           /* bias of one triple; a multiple of 32 above 3 * 127 */
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
 * c0, c1, c2 in bits 0-1, 2-3, 4-5 of i.  In words, each lane of 16 bytes has one c2 and eight
 * entries, c1 = 0 and 1 in one vector, 2 and 3 in the other: packing puts them in order.  Entries
 * of code 3 are never looked up. */
static inline void build_table(uint8_t *table, int8_t a, int8_t b, int8_t c)
{
    const __mmask32 a_minus = 0x11111111, a_plus = 0x44444444, b_used = 0x0F0F0F0F;
    const __mmask32 c_minus = 0x000000FF, c_plus = 0x00FF0000;
    const __m512i va = _mm512_set1_epi16(a), vb = _mm512_set1_epi16(b), vc = _mm512_set1_epi16(c);
    __m512i ac = _mm512_set1_epi16(BIAS);
    ac = _mm512_mask_sub_epi16(ac, a_minus, ac, va);
    ac = _mm512_mask_add_epi16(ac, a_plus, ac, va);
    ac = _mm512_mask_sub_epi16(ac, c_minus, ac, vc);
    ac = _mm512_mask_add_epi16(ac, c_plus, ac, vc);
    const __m512i t0 = _mm512_mask_sub_epi16(ac, b_used, ac, vb);
    const __m512i t1 = _mm512_mask_add_epi16(ac, b_used, ac, vb);
    const __m512i low = _mm512_set1_epi16(31);
    _mm512_store_si512(table, _mm512_packus_epi16(_mm512_and_si512(t0, low),
                                                  _mm512_and_si512(t1, low)));
    _mm512_store_si512(table + 64, _mm512_packus_epi16(_mm512_srli_epi16(t0, 5),
                                                       _mm512_srli_epi16(t1, 5)));
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
 * and the odd sums are exact as unsigned numbers. */
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

/* Adds the 64 sums to dst, in natural order; bias_sum is the bias of all their triples. */
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

/* Tables in the order of use: of every 12 columns 0-2, 4-6, 8-10, then 3 7 11; of the last 8
 * columns of a run 0-2, 4-6, then 3 7. */
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

/* The index made of the fourth codes of three groups. */
static TN_ALWAYS_INLINE __m512i fourth_codes(__m512i a, __m512i b, __m512i c)
{
    const __m512i m03 = _mm512_set1_epi8(0x03), m0f = _mm512_set1_epi8(0x0F);
    /* 0xCA: where the first operand is 1 the second, else the third. */
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

/* 128 columns of one tile: 5 batches of 6 groups, then 2 groups.  Requests a line for each
 * group. */
static TN_ALWAYS_INLINE void t2_add_run(struct wide *sum, const uint8_t *group,
                                        const uint8_t *table, struct lines lines)
{
    struct wide s = *sum;
    for (uint32_t b = 0; b < 5;
         b++, group += 6 * 64, table += BATCH_BYTES, lines = lines_from(lines, 6)) {
        struct planes p = {_mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 6
        for (uint32_t line = 0; line < 6; line++)
            request_line(lines, line);
        add_groups(&p, load(group), load(group + 64), load(group + 128), table);
        add_groups(&p, load(group + 192), load(group + 256), load(group + 320),
                   table + BATCH_BYTES / 2);
        widen(&s, &p);
    }
    struct planes p = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    request_line(lines, 0);
    request_line(lines, 1);
    const __m512i a = load(group), b = load(group + 64);
    add_triple(&p, a, table);
    add_triple(&p, b, table + 128);
    add_triple(&p, fourth_codes(a, b, _mm512_setzero_si512()), table + 256);
    widen(&s, &p);
    *sum = s;
}

/* A run widens 6 times; 44 runs are at most WIDE_BATCHES.  The 43 triples of a run are biased by 43
 * * 384 = 2^14 + 2^7. */
#define WIDE_RUNS 44u
_Static_assert(WIDE_RUNS * 6 <= WIDE_BATCHES && 43 * BIAS == (1 << 14) + (1 << 7), "see above");

static inline uint32_t bias_of_runs(uint32_t n)
{
    uint32_t bias = n << 7;
    __asm__("" : "+r"(bias)); /* keeps gcc from turning shifts into a multiplication */
    return (bias << 7) + bias;
}

static TN_ALWAYS_INLINE void t2_band(int32_t *dst, const struct tn_ternary *w, uint32_t row,
                                     const uint8_t *lut, uint8_t *unpacked)
{
    const uint32_t n_tiles = t2_band_tiles(w, row), n_runs = t2_runs(w);
    struct tiles tiles = tiles_at(w, row, 0, TN_PREFETCH_OF(T2_I8), unpacked);
    memset(dst, 0, n_tiles * TERN_T2_TILE_ROWS * sizeof *dst);
    for (uint32_t i = 0, n; i < n_runs; i += n) {
        struct wide s[TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS];
        memset(s, 0, sizeof s);
        n = TN_MIN(n_runs - i, WIDE_RUNS);
        for (uint32_t k = 0; k < n; k++, next_run(&tiles, n_tiles)) {
            for (uint32_t t = 0; t < n_tiles; t++) {
                const struct tile tile = tile_at(&tiles, t);
                t2_add_run(&s[t], tile.codes, lut, tile.lines);
            }
            lut += RUN_TABLE_BYTES;
        }
        for (uint32_t t = 0; t < n_tiles; t++)
            flush(dst + TERN_T2_TILE_ROWS * t, &s[t], bias_of_runs(n));
    }
}

TILES_GEMV_I8_DEFINE(avx512)

/* ---- C2 ---- */

/* Half of the columns that fit the byte sums, so that two batches and the sums fit the
 * first-level cache. */
#define C2_BATCH_COLS 12u
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

/* The i-th of n lines of a column, from the middle outwards: a processor that detects a stream
 * fetches lines past its end, which would be wasted. */
static inline uint32_t c2_from_middle(uint32_t i, uint32_t n)
{
    return (n - 1) / 2 + (i % 2 ? (i + 1) / 2 : 0u - i / 2);
}

/* Lines in the order of memory, which delivers neighbours sooner; n_bytes: of a column. */
static TN_ALWAYS_INLINE struct c2_line c2_next_line(struct c2_line *next, uint32_t n_bytes)
{
    const struct c2_line line = *next;
    const bool is_last = line.offset + 64 == n_bytes;
    next->col += is_last;
    next->offset = is_last ? 0 : line.offset + 64;
    __asm__("" : "+r"(next->col), "+r"(next->offset)); /* no branches */
    return line;
}

/* Adds the first batch and requests the lines of the others at the same pace. */
static void c2_add_batch(struct wide *sums, uint32_t n_blocks,
                         const struct c2_batch batches[C2_BATCHES], const uint8_t *tables)
{
    const uint8_t *const *col = batches[0].col;
    struct c2_line next = {0, 0};
    for (uint32_t i_block = 0; i_block < n_blocks; i_block++) {
        const uint32_t b = c2_from_middle(i_block, n_blocks);
        struct planes p[4];
        memset(p, 0, sizeof p);
        for (uint32_t k = 0; k < C2_BATCH_COLS; k += 3) {
            for (uint32_t i = k; i < k + 3; i++)
                c2_request(batches, c2_next_line(&next, n_blocks * 64),
                           (struct c2_line){i, b * 64});
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
    const struct c2_list list = {w->data + row_begin / 4, c2_col_bytes(w), cols, x, n_cols};
    const uint32_t n_blocks = (row_end - row_begin) / 256;
    struct wide sums[C2_MAX_VECTORS];
    uint8_t tables[C2_BATCH_COLS / 3 * 128] __attribute__((aligned(64)));
    struct c2_batch batches[C2_BATCHES];

    memset(dst, 0, (row_end - row_begin) * sizeof *dst);
    c2_first_batches(batches, &list, C2_BATCH_COLS, n_blocks * 64);
    uint32_t n_batches = 0;
    for (uint32_t i = 0; i < n_cols; i += C2_BATCH_COLS) {
        if (n_batches == 0)
            memset(sums, 0, n_blocks * 4 * sizeof *sums);
        const int8_t *v = batches[0].x;
        for (uint32_t k = 0; k < C2_BATCH_COLS; k += 3)
            build_table(tables + k / 3 * 128, v[k], v[k + 1], v[k + 2]);
        c2_add_batch(sums, n_blocks, batches, tables);
        c2_next_batches(batches, &list, C2_BATCH_COLS, i);
        if (++n_batches == WIDE_BATCHES || n_cols - i <= C2_BATCH_COLS) {
            for (uint32_t q = 0; q < n_blocks * 4; q++) /* 4 * 384 = 2^9 + 2^10 */
                flush(dst + 64 * q, &sums[q], (n_batches << 9) + (n_batches << 10));
            n_batches = 0;
        }
    }
}

/* ---- R2 ---- */

/* A step: up to R2_STEP_BLOCKS blocks of 4 rows.  They are first copied into a buffer, row after
 * row, then added from there: reading several rows at once makes the processor fetch lines that are
 * never used.  The lines of a later step are requested while adding, a few per block: a core keeps
 * only about two dozen lines in flight, so requests in a burst during the copy would wait for each
 * other, and the copy for them. */
#define R2_STEP_ROWS 4u
#define R2_STEP_BLOCKS 16u
#define R2_STAGE_ROW (R2_STEP_BLOCKS * 64u) /* bytes of the buffer */

struct r2_step {
    uint32_t row;      /* index in the list of the step's first row */
    uint32_t block;    /* the step's first block */
    uint32_t n_blocks; /* per step; the last step of a row may have fewer */
};

static inline struct r2_step r2_first_step(const struct tn_ternary *w)
{
    const uint32_t n = r2_blocks(w);
    return (struct r2_step){0, 0, tn_div_ceil_u32(n, tn_div_ceil_u32(n, R2_STEP_BLOCKS))};
}

static inline void r2_next_step(struct r2_step *step, const struct tn_ternary *w)
{
    step->block += step->n_blocks;
    if (step->block >= r2_blocks(w)) {
        step->block = 0;
        step->row += R2_STEP_ROWS;
    }
}

/* The step whose lines are requested during the first step. */
static inline struct r2_step r2_first_requested(struct r2_step step, const struct tn_ternary *w)
{
    const uint32_t step_bytes = R2_STEP_ROWS * step.n_blocks * 64;
    for (uint32_t n = TN_MAX(TN_PREFETCH_OF(R2).l2 / step_bytes, 1u); n > 0; n--)
        r2_next_step(&step, w);
    return step;
}

/* The start of row k of a step; past the end of the list, of the last row. */
static inline const uint8_t *r2_step_row(const struct tn_ternary *w, const uint32_t *rows,
                                         uint32_t n_rows, const struct r2_step *step, uint32_t k)
{
    return r2_row(w, rows, n_rows, step->row + k) + step->block * 64;
}

static inline void r2_step_rows(const uint8_t *out[R2_STEP_ROWS], const struct tn_ternary *w,
                                const uint32_t *rows, uint32_t n_rows, const struct r2_step *step)
{
    for (uint32_t k = 0; k < R2_STEP_ROWS; k++)
        out[k] = r2_step_row(w, rows, n_rows, step, k);
}

#define R2_BLOCK_TABLES 1024u /* bytes: 4 parts of 16 bytes x 4 fields x 64 */

static const uint8_t r2_count[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* The bits 0-1 of each byte of `low`, the others of `high`. */
static TN_ALWAYS_INLINE __m512i r2_join(__m512i low, __m512i high)
{
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8(3), low, high, 0xCA);
}

/* A table of 16 columns: entry i is 128 + (code - 1) x; `column` selects the column of each
 * entry. */
static TN_ALWAYS_INLINE void r2_build_table(uint8_t *table, const int8_t *x, __m512i column,
                                            __mmask64 minus, __mmask64 plus)
{
    const __m512i bias = _mm512_set1_epi8((char)0x80);
    const __m512i v = _mm512_permutexvar_epi8(
        column, _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)x)));
    const __m512i t = _mm512_mask_sub_epi8(bias, minus, bias, v);
    _mm512_store_si512(table, _mm512_mask_add_epi8(t, plus, bias, v));
}

/* One table of 16 columns per block of 256 columns, part of 16 bytes and field of the bytes.  The
 * code has the same bits in the index as the field in its byte (field 3: as field 2); the column
 * number takes the other four bits. */
void tn_prep_r2_avx512(void *prep, const int8_t *x, uint32_t cols)
{
    const __m512i i = load(r2_count), m0f = _mm512_set1_epi8(15);
    const __m512i column0 = _mm512_and_si512(_mm512_srli_epi16(i, 2), m0f);
    const __m512i column1 = _mm512_and_si512(r2_join(i, _mm512_srli_epi16(i, 2)), m0f);
    const __m512i column2 = _mm512_and_si512(i, m0f);
    uint8_t *t = prep;
    for (uint32_t block = 0; block < tn_kern_pad(cols); block += 256)
        for (uint32_t part = 0; part < 64; part += 16, t += 256) {
            const int8_t *v = x + block + part;
            r2_build_table(t, v, column0, 0x1111111111111111, 0x4444444444444444);
            r2_build_table(t + 64, v + 64, column1, 0x000F000F000F000F, 0x0F000F000F000F00);
            r2_build_table(t + 128, v + 128, column2, 0x000000000000FFFF, 0x0000FFFF00000000);
            r2_build_table(t + 192, v + 192, column2, 0x000000000000FFFF, 0x0000FFFF00000000);
        }
}

/* The numbers of the 16 columns of each quarter of a vector, in the index bits of field q. */
struct r2_columns {
    __m512i field0, field1, field2;
};

static TN_ALWAYS_INLINE struct r2_columns r2_make_columns(void)
{
    const __m512i i = _mm512_and_si512(load(r2_count), _mm512_set1_epi8(15));
    const __m512i high = _mm512_and_si512(_mm512_slli_epi16(i, 2), _mm512_set1_epi8(0x30));
    return (struct r2_columns){_mm512_slli_epi16(i, 2), r2_join(i, high), i};
}

static TN_ALWAYS_INLINE __m512i r2_field(__m512i codes, char mask, __m512i columns,
                                         const uint8_t *table)
{
    const __m512i index = _mm512_ternarylogic_epi64(_mm512_set1_epi8(mask), codes, columns, 0xCA);
    return _mm512_sad_epu8(lookup(index, table), _mm512_setzero_si512());
}

/* Adds the same 16 bytes of each of four rows. */
static TN_ALWAYS_INLINE __m512i r2_add_part(__m512i sum, __m512i codes, const struct r2_columns *c,
                                            const uint8_t *table)
{
    const __m512i s0 = r2_field(codes, 0x03, c->field0, table);
    const __m512i s1 = r2_field(codes, 0x0C, c->field1, table + 64);
    const __m512i s2 = r2_field(codes, 0x30, c->field2, table + 128);
    const __m512i s3 = r2_field(_mm512_srli_epi16(codes, 2), 0x30, c->field2, table + 192);
    return _mm512_add_epi64(sum, _mm512_add_epi64(_mm512_add_epi64(s0, s1),
                                                  _mm512_add_epi64(s2, s3)));
}

/* Adds n_blocks blocks of the four rows in the buffer; sums of row k in quarter k.  Requests the
 * same blocks of the rows in `later`. */
static TN_ALWAYS_INLINE __m512i r2_add_blocks(__m512i sum, const uint8_t *stage, uint32_t n_blocks,
                                              const uint8_t *table,
                                              const uint8_t *const later[R2_STEP_ROWS])
{
    const struct r2_columns columns = r2_make_columns();
    for (uint32_t b = 0; b < n_blocks; b++, stage += 64, table += R2_BLOCK_TABLES) {
        for (uint32_t k = 0; k < R2_STEP_ROWS; k++)
            tn_request_l2(later[k] + b * 64, TN_PREFETCH_OF(R2));
        const __m512i r0 = load(stage), r1 = load(stage + R2_STAGE_ROW);
        const __m512i r2 = load(stage + 2 * R2_STAGE_ROW), r3 = load(stage + 3 * R2_STAGE_ROW);
        const __m512i low01 = _mm512_shuffle_i64x2(r0, r1, 0x44);
        const __m512i low23 = _mm512_shuffle_i64x2(r2, r3, 0x44);
        const __m512i high01 = _mm512_shuffle_i64x2(r0, r1, 0xEE);
        const __m512i high23 = _mm512_shuffle_i64x2(r2, r3, 0xEE);
        sum = r2_add_part(sum, _mm512_shuffle_i64x2(low01, low23, 0x88), &columns, table);
        sum = r2_add_part(sum, _mm512_shuffle_i64x2(low01, low23, 0xDD), &columns, table + 256);
        sum = r2_add_part(sum, _mm512_shuffle_i64x2(high01, high23, 0x88), &columns, table + 512);
        sum = r2_add_part(sum, _mm512_shuffle_i64x2(high01, high23, 0xDD), &columns, table + 768);
    }
    return sum;
}

static TN_ALWAYS_INLINE void r2_copy(uint8_t *stage, const uint8_t *const row[R2_STEP_ROWS],
                                     uint32_t n_blocks)
{
    for (uint32_t k = 0; k < R2_STEP_ROWS; k++, stage += R2_STAGE_ROW)
        for (uint32_t i = 0; i < n_blocks * 64; i += 64)
            _mm512_store_si512(stage + i, load(row[k] + i));
}

/* The sums of up to four rows; each of the 256 n_blocks bytes of a row was biased by 128. */
static void r2_finish(int32_t *dst, __m512i sum, uint32_t n_rows, uint32_t n_blocks)
{
    int64_t s[8];
    _mm512_storeu_si512(s, sum);
    for (uint32_t k = 0; k < TN_MIN(n_rows, R2_STEP_ROWS); k++)
        dst[k] = (int32_t)(s[2 * k] + s[2 * k + 1] - ((int64_t)n_blocks << 15));
}

void tn_gemv_r2_i8_avx512(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                          uint32_t n_rows, const void *prep)
{
    uint8_t stage[R2_STEP_ROWS * R2_STAGE_ROW] __attribute__((aligned(64)));
    struct r2_step step = r2_first_step(w), later = r2_first_requested(step, w);
    __m512i sum = _mm512_setzero_si512();
    while (step.row < n_rows) {
        const uint32_t n_blocks = TN_MIN(step.n_blocks, r2_blocks(w) - step.block);
        const uint8_t *now[R2_STEP_ROWS], *requested[R2_STEP_ROWS];
        r2_step_rows(now, w, rows, n_rows, &step);
        r2_step_rows(requested, w, rows, n_rows, &later);
        r2_copy(stage, now, n_blocks);
        sum = r2_add_blocks(sum, stage, n_blocks,
                            (const uint8_t *)prep + step.block * R2_BLOCK_TABLES, requested);
        const uint32_t row = step.row;
        r2_next_step(&step, w);
        r2_next_step(&later, w);
        if (step.row != row) {
            r2_finish(dst + row, sum, n_rows - row, r2_blocks(w));
            sum = _mm512_setzero_si512();
        }
    }
}

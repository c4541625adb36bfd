/* SPDX-License-Identifier: MIT
 *
 * Bit planes, AVX-512 with VNNI: codes stay bytes, and activations are split into two signed
 * digits, x = 256 * high + low, so that vpdpbusd multiplies 64 codes at once.  Groups of columns
 * whose high digits are all zero (most groups, thanks to the caller) are multiplied once.  For one
 * input codes are not shifted down: fields that are 4 bits higher have sums that are 16 times
 * larger.  For several inputs, and for 5 bits from two planes, they are shifted once for all
 * inputs. Per 64 columns 2 instructions, a load (1 bit: 1/4), and 1/2 (4 bits, 1 bit) or 1/4 load
 * of codes.
 *
 *   |x| <= 32639 makes |high| <= 127.  A lane adds at most 255 * 128 * 4 for 64 columns, below 2^23
 *   for CHUNK_COLS; sums that are then multiplied by 256 may wrap, as may the sums of chunks: the
 *   result fits.
 */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kern/bound_logit.h"
#include "kern/kern.h"
#include "kern/plane_rows.h"
#include "kern/switch.h"

/* Columns whose digits are stored at a time; a multiple of 256. */
#define CHUNK_COLS 4096u
/* Columns that get high digits together: one load of 2-bit codes. */
#define GROUP_COLS 256u
/* Rows whose sums are stored together. */
#define ROWS 4u
/* Rows that share the loads of activations: for single bits these loads are half of the work;
 * planes of more bits are faster as one stream. */
#define TOGETHER(bits) ((bits) == 1 ? ROWS : 1u)

struct digits {
    _Alignas(64) int8_t low[CHUNK_COLS];
    _Alignas(64) int8_t high[CHUNK_COLS]; /* of the wide groups, consecutive */
    uint32_t wide[CHUNK_COLS / GROUP_COLS]; /* first columns of the groups with high digits */
    uint32_t n_wide;
    uint32_t cols;
};

/* Splits 32 activations to offset `at` of their group; returns whether one has a high digit. */
static inline uint32_t split_32(int8_t *low, int8_t *high, uint32_t at, const int16_t *x)
{
    __m512i v = _mm512_loadu_si512(x);
    __m512i h = _mm512_srai_epi16(_mm512_add_epi16(v, _mm512_set1_epi16(128)), 8);
    __m512i l = _mm512_sub_epi16(v, _mm512_slli_epi16(h, 8));
    _mm256_store_si256((__m256i *)(low + at), _mm512_cvtepi16_epi8(l));
    _mm256_store_si256((__m256i *)(high + at), _mm512_cvtepi16_epi8(h));
    return _mm512_test_epi16_mask(h, h);
}

/* Splits n columns (a multiple of 128, followed by zeros) in the order of the kernel: unchanged for
 * 4 bits and 1 bit; for 2-bit codes two groups of 128 columns field after field, 32 columns
 * each. */
static void split(struct digits *s, uint32_t bits, const int16_t *x, uint32_t n)
{
    static const int16_t zeros[32];
    s->n_wide = 0;
    s->cols = n;
    for (uint32_t c = 0; c < n; c += GROUP_COLS) {
        int8_t *high = s->high + GROUP_COLS * s->n_wide;
        uint32_t is_wide = 0;
        for (uint32_t j = 0; j < GROUP_COLS; j += 32) {
            uint32_t from = c + (bits != 2 ? j : j / 64 * 32 + j % 64 / 32 * 128);
            is_wide |= split_32(s->low + c, high, j, from < n ? x + from : zeros);
        }
        s->wide[s->n_wide] = c;
        s->n_wide += is_wide != 0;
    }
}

/* Sums of a row for each field of a byte, or for two fields with the same shift, not shifted
 * down. */
struct fields {
    __m512i f[4];
};

static TN_ALWAYS_INLINE __m512i mask_of(int byte)
{
    return _mm512_set1_epi8((char)byte);
}

/* The masks of the lower and the upper fields in bytes of 4-bit codes, or of single bits, where
 * each quarter of a vector takes two bits of the same 16 bytes. */
struct masks {
    __m512i low, high;
};

static TN_ALWAYS_INLINE struct masks masks_of(uint32_t bits)
{
    const long long one = 0x0101010101010101;
    const __m512i u1 =
        _mm512_set_epi64(8 * one, 8 * one, 4 * one, 4 * one, 2 * one, 2 * one, one, one);
    const __m512i low = bits == 1 ? u1 : mask_of(15);
    return (struct masks){low, _mm512_slli_epi16(low, 4)};
}

static TN_ALWAYS_INLINE __m512i product(__m512i sum, __m512i bytes, __m512i mask, __m512i x)
{
    return _mm512_dpbusd_epi32(sum, _mm512_and_si512(bytes, mask), x);
}

/* Adds 128 columns of 4-bit codes at `row[k] + at`. */
static TN_ALWAYS_INLINE void add_u4(struct fields *sum, uint32_t n_rows,
                                    const uint8_t *const *row, uint32_t at, const int8_t *x)
{
    __m512i x0 = _mm512_load_si512(x), x1 = _mm512_load_si512(x + 64);
    for (uint32_t k = 0; k < n_rows; k++) {
        __m512i bytes = _mm512_loadu_si512(row[k] + at);
        sum[k].f[0] = product(sum[k].f[0], bytes, mask_of(15), x0);
        sum[k].f[1] = product(sum[k].f[1], bytes, mask_of(240), x1);
    }
}

/* Adds 256 columns of 2-bit codes, or the last 128. */
static TN_ALWAYS_INLINE void add_u2(struct fields *sum, uint32_t n_rows,
                                    const uint8_t *const *row, uint32_t at, bool is_whole,
                                    const int8_t *x)
{
    const __mmask64 present = is_whole ? ~(__mmask64)0 : 0xFFFFFFFFu;
    for (uint32_t k = 0; k < n_rows; k++) {
        __m512i bytes = _mm512_maskz_loadu_epi8(present, row[k] + at);
        for (uint32_t i = 0; i < 4; i++)
            sum[k].f[i] = product(sum[k].f[i], bytes, mask_of(3 << 2 * i),
                                  _mm512_load_si512(x + 64 * i));
    }
}

/* Adds 128 columns of single bits: 16 bytes, of which each lane of 16 takes two bits. */
static TN_ALWAYS_INLINE void add_u1(struct fields *sum, uint32_t n_rows,
                                    const uint8_t *const *row, uint32_t at, const int8_t *x)
{
    const struct masks m = masks_of(1);
    __m512i x0 = _mm512_load_si512(x), x1 = _mm512_load_si512(x + 64);
    for (uint32_t k = 0; k < n_rows; k++) {
        __m512i bytes =
            _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(row[k] + at)));
        sum[k].f[0] = product(sum[k].f[0], bytes, m.low, x0);
        sum[k].f[1] = product(sum[k].f[1], bytes, m.high, x1);
    }
}

/* Adds 256 columns, or the last 128 if no more exist. */
static TN_ALWAYS_INLINE void add_columns(struct fields *sum, uint32_t n_rows, uint32_t bits,
                                         const uint8_t *const *row, uint32_t at,
                                         bool is_whole, const int8_t *x)
{
    if (bits == 2) {
        add_u2(sum, n_rows, row, at, is_whole, x);
        return;
    }
    (bits == 4 ? add_u4 : add_u1)(sum, n_rows, row, at, x);
    if (is_whole)
        (bits == 4 ? add_u4 : add_u1)(sum, n_rows, row, at + 16 * bits, x + 128);
}

/* The sum of a row's fields, shifted down. */
static TN_ALWAYS_INLINE __m512i total(const struct fields *sum, uint32_t bits)
{
    const __m512i lane = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    __m512i all = sum->f[0];
    for (uint32_t i = 1; i < (bits == 2 ? 4u : 2u); i++)
        all = _mm512_add_epi32(all, _mm512_srai_epi32(sum->f[i], bits == 2 ? 2 * i : 4));
    return bits == 1 ? _mm512_srav_epi32(all, lane) : all;
}

/* v[k]: 16 partial sums of row k. */
static TN_ALWAYS_INLINE void row_sums(__m512i *v, uint32_t n_rows, uint32_t bits,
                                      const uint8_t *const *row,
                                      const struct plane_lines *lines, const struct digits *x)
{
    const uint32_t line = GROUP_COLS * bits / 8;
    struct fields low[ROWS], high[ROWS];
    for (uint32_t k = 0; k < n_rows; k++)
        for (uint32_t i = 0; i < 4; i++)
            low[k].f[i] = high[k].f[i] = _mm512_setzero_si512();
    const uint32_t n_whole = x->cols / GROUP_COLS * GROUP_COLS;
    if (n_whole < x->cols)
        add_columns(low, n_rows, bits, row, n_whole / GROUP_COLS * line, false, x->low + n_whole);
    for (uint32_t c = 0; c < n_whole; c += GROUP_COLS) {
        const uint32_t at = c / GROUP_COLS * line;
        for (uint32_t k = 0; k < n_rows; k++)
            for (uint32_t i = 0; i < line; i += 64)
                request_lines(&lines[k], at + i, TN_PREFETCH_OF(PLANES));
        add_columns(low, n_rows, bits, row, at, true, x->low + c);
    }
    for (uint32_t k = 0; k < n_rows; k++)
        v[k] = total(&low[k], bits);
    if (x->n_wide == 0)
        return;
    for (uint32_t i = 0; i < x->n_wide; i++)
        add_columns(high, n_rows, bits, row, x->wide[i] / GROUP_COLS * line,
                    x->wide[i] + GROUP_COLS <= x->cols, x->high + GROUP_COLS * i);
    for (uint32_t k = 0; k < n_rows; k++)
        v[k] = _mm512_add_epi32(v[k], _mm512_slli_epi32(total(&high[k], bits), 8));
}

/* The totals of four registers. */
static TN_ALWAYS_INLINE __m128i totals(const __m512i v[ROWS])
{
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]),
                                  _mm512_unpackhi_epi32(v[0], v[1]));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]),
                                  _mm512_unpackhi_epi32(v[2], v[3]));
    __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* Adds v, the totals of rows [i, i + ROWS) that exist, to dst, or stores it for the first
 * columns. */
static TN_ALWAYS_INLINE void store_totals(int32_t *dst, const __m512i v[ROWS], uint32_t i,
                                          uint32_t n_rows, bool is_first)
{
    const __mmask8 present = (__mmask8)((1u << TN_MIN(ROWS, n_rows - i)) - 1);
    const __m128i before =
        is_first ? _mm_setzero_si128() : _mm_maskz_loadu_epi32(present, dst + i);
    _mm_mask_storeu_epi32(dst + i, present, _mm_add_epi32(before, totals(v)));
}

/* Rows [i, i + ROWS); past the end, the last row. */
static TN_ALWAYS_INLINE void find_rows(const uint8_t *row[ROWS], const struct tn_plane_rows *p,
                                       uint32_t bits, uint32_t i_plane, uint32_t i)
{
    for (uint32_t k = 0; k < ROWS; k++)
        row[k] = plane_row(p, bits, i_plane, TN_MIN(i + k, p->n_rows - 1));
}

static TN_ALWAYS_INLINE void dot_plane(int32_t *dst, uint32_t bits, struct tn_plane_rows p,
                                       const int16_t *x, struct digits *s)
{
    const uint32_t padded = (uint32_t)tn_plane_row_bytes(p.cols, 8);
    for (uint32_t c = 0; c < padded; c += CHUNK_COLS, plane_skip(&p, bits, CHUNK_COLS)) {
        split(s, bits, x + c, TN_MIN(CHUNK_COLS, padded - c));
        for (uint32_t i = 0; i < p.n_rows; i += ROWS) {
            __m512i v[ROWS];
            const uint8_t *row[ROWS];
            struct plane_lines lines[ROWS];
            find_rows(row, &p, bits, 0, i);
            for (uint32_t k = 0; k < ROWS; k++)
                lines[k] = plane_lines(&p, bits, 0, TN_MIN(i + k, p.n_rows - 1),
                                       s->cols * bits / 8, TN_PREFETCH_OF(PLANES));
            for (uint32_t k = 0; k < ROWS; k += TOGETHER(bits))
                row_sums(v + k, TOGETHER(bits), bits, row + k, lines + k, s);
            store_totals(dst, v, i, p.n_rows, c == 0);
        }
    }
}

/* ---- several inputs, or codes of two planes ---- */

/* Columns of one input before those of the next. */
#define STEP_COLS TN_PLANE_COLS
#define MAX_STEPS (CHUNK_COLS / STEP_COLS)

struct few_digits {
    _Alignas(64) int8_t low[TN_PLANE_MAX_X * CHUNK_COLS]; /* [n_steps][n][STEP_COLS] */
    _Alignas(64) int8_t high[TN_PLANE_MAX_X * CHUNK_COLS]; /* [n_wide][STEP_COLS] */
    struct {
        uint8_t step, input;
    } wide[TN_PLANE_MAX_X * MAX_STEPS]; /* [n_wide] ascending: the groups with high digits */
    uint32_t n, n_steps, n_wide;
};
_Static_assert(sizeof(struct few_digits) <= TN_PLANE_SCRATCH_BYTES &&
                   sizeof(struct digits) <= TN_PLANE_SCRATCH_BYTES,
               "the digits fit the scratch memory");

/* Splits columns [c, c + n_cols) of all inputs. */
static inline void split_few(struct few_digits *s, const struct plane_inputs *in, uint32_t c,
                             uint32_t n_cols)
{
    int8_t *low = s->low;
    s->n = in->n_x;
    s->n_steps = n_cols / STEP_COLS;
    s->n_wide = 0;
    for (uint32_t i = 0; i < s->n_steps; i++, c += STEP_COLS)
        for (uint32_t t = 0; t < s->n; t++, low += STEP_COLS) {
            uint32_t is_wide = 0;
            for (uint32_t j = 0; j < STEP_COLS; j += 32)
                is_wide |= split_32(low, s->high + STEP_COLS * s->n_wide, j, in->x[t] + c + j);
            s->wide[s->n_wide].step = (uint8_t)i;
            s->wide[s->n_wide].input = (uint8_t)t;
            s->n_wide += is_wide != 0;
        }
}

/* Codes of STEP_COLS columns; `ones` holds the single bits (all, or the lowest of 5). */
static TN_ALWAYS_INLINE void load_codes(__m512i codes[2], uint32_t bits, const uint8_t *row,
                                        const uint8_t *ones)
{
    const __m512i one = mask_of(1), mask = mask_of((1 << bits) - 1);
    /* Each quarter of a vector takes two bits of the same 16 bytes. */
    const __m512i quarter = _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
    __m512i bytes = _mm512_setzero_si512(), bit[2] = {bytes, bytes};
    if (bits != 1)
        bytes = _mm512_loadu_si512(row);
    if (bits != 4) {
        const __m512i all = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)ones));
        bit[0] = _mm512_srlv_epi64(all, quarter);
        bit[1] = _mm512_srlv_epi64(all, _mm512_add_epi64(quarter, _mm512_set1_epi64(4)));
    }
    if (bits == 1) {
        codes[0] = bit[0];
        codes[1] = bit[1];
    } else if (bits == 4) {
        codes[0] = bytes;
        codes[1] = _mm512_srli_epi16(bytes, 4);
    } else { /* 0xCA: where the first operand is 1 the second, else the third */
        codes[0] = _mm512_ternarylogic_epi64(one, bit[0], _mm512_add_epi8(bytes, bytes), 0xCA);
        codes[1] = _mm512_ternarylogic_epi64(one, bit[1], _mm512_srli_epi16(bytes, 3), 0xCA);
    }
    codes[0] = _mm512_and_si512(codes[0], mask);
    codes[1] = _mm512_and_si512(codes[1], mask);
}

/* Rows in the planes of 4 bits and of 1 bit, and the lines to request meanwhile, in memory order
 * rather than in order of use, because the following rows are stored in memory order. */
struct few_lines {
    const uint8_t *codes[ROWS], *ones[ROWS];
    struct plane_lines next_codes, next_ones;
};

static TN_ALWAYS_INLINE void find_lines(struct few_lines *l, const struct tn_plane_rows *p,
                                        uint32_t bits, uint32_t i, uint32_t n_cols)
{
    const bool is_dense = !p->rows && n_cols >= p->cols;
    find_rows(l->codes, p, bits, 0, i);
    find_rows(l->ones, p, bits, bits == 5, i);
    l->next_codes = no_lines(l->codes[0]);
    l->next_ones = no_lines(l->ones[0]);
    if (is_dense && bits != 1)
        l->next_codes = plane_lines(p, bits, 0, i, n_cols / 2, TN_PREFETCH_OF(PLANES));
    if (is_dense && bits != 4)
        l->next_ones = plane_lines(p, bits, bits == 5, i, n_cols / (bits == 5 ? 2 : 8),
                                   TN_PREFETCH_OF(PLANES));
}

/* v[t][k]: 16 partial sums of row k and the low digits of input t, for n_rows rows from k on and n
 * inputs, both constants. */
static TN_ALWAYS_INLINE void row_sums_few(__m512i v[][ROWS], uint32_t bits,
                                          const struct few_lines *l, const struct few_digits *s,
                                          uint32_t first, const uint32_t n_rows, const uint32_t n)
{
    const int8_t *x = s->low;
    const uint32_t first_step = first * s->n_steps;
    struct tn_prefetch ahead = TN_PREFETCH_OF(PLANES);
    if (n > 2) /* more products: the instructions of more requests would cost more */
        ahead.far = ahead.l1 = 0;
    __m512i sum[TN_PLANE_MAX_X][ROWS];
#pragma GCC unroll 8
    for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n_rows; k++)
            sum[t][k] = _mm512_setzero_si512();
    for (uint32_t i = 0; i < s->n_steps; i++, x += n * STEP_COLS) {
        __m512i codes[ROWS][2];
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n_rows; k++) {
            if (bits != 1)
                request_lines(&l->next_codes, 64 * (first_step + n_rows * i + k), ahead);
            if (bits != 4 && k == 0 && (n_rows * i) % 4 == 0)
                request_lines(&l->next_ones, 16 * (first_step + n_rows * i), ahead);
            load_codes(codes[k], bits, l->codes[first + k] + 64 * i, l->ones[first + k] + 16 * i);
        }
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 2
            for (uint32_t half = 0; half < 2; half++) {
                __m512i xt = _mm512_load_si512(x + STEP_COLS * t + 64 * half);
                __asm__("" : "+v"(xt)); /* one load for all rows */
#pragma GCC unroll 4
                for (uint32_t k = 0; k < n_rows; k++)
                    sum[t][k] = _mm512_dpbusd_epi32(sum[t][k], codes[k][half], xt);
            }
    }
#pragma GCC unroll 8
    for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
        for (uint32_t k = 0; k < n_rows; k++)
            v[t][first + k] = sum[t][k];
}

/* n is a constant.  The sums of more than four inputs fit the registers only for half of the
 * rows. */
static TN_ALWAYS_INLINE void row_sums_halves(__m512i v[][ROWS], uint32_t bits,
                                             const struct few_lines *l, const struct few_digits *s,
                                             const uint32_t n)
{
    const uint32_t n_rows = n > 4 ? ROWS / 2 : ROWS;
#pragma GCC unroll 2
    for (uint32_t first = 0; first < ROWS; first += n_rows)
        row_sums_few(v, bits, l, s, first, n_rows, n);
}

static TN_ALWAYS_INLINE void low_digits(__m512i v[][ROWS], uint32_t bits, const struct few_lines *l,
                                        const struct few_digits *s)
{
#define SUMS(n) row_sums_halves(v, bits, l, s, n)
    SWITCH_8(s->n, SUMS)
#undef SUMS
}

/* v += 256 times the sums of the high digits. */
static TN_ALWAYS_INLINE void high_digits(__m512i v[][ROWS], uint32_t bits,
                                         const struct few_lines *l, const struct few_digits *s)
{
    for (uint32_t i = 0; i < s->n_wide;) {
        const uint32_t step = s->wide[i].step;
        __m512i codes[ROWS][2];
#pragma GCC unroll 4
        for (uint32_t k = 0; k < ROWS; k++)
            load_codes(codes[k], bits, l->codes[k] + 64 * step, l->ones[k] + 16 * step);
        for (; i < s->n_wide && s->wide[i].step == step; i++) {
            const int8_t *x = s->high + STEP_COLS * i;
            const __m512i x0 = _mm512_load_si512(x), x1 = _mm512_load_si512(x + 64);
            __m512i *sum = v[s->wide[i].input];
#pragma GCC unroll 4
            for (uint32_t k = 0; k < ROWS; k++) {
                __m512i high = _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes[k][0], x0);
                high = _mm512_dpbusd_epi32(high, codes[k][1], x1);
                sum[k] = _mm512_add_epi32(sum[k], _mm512_slli_epi32(high, 8));
            }
        }
    }
}

static TN_ALWAYS_INLINE void dot_few(uint32_t bits, struct tn_plane_rows p,
                                     const struct plane_inputs *in)
{
    const uint32_t padded = (uint32_t)tn_plane_row_bytes(p.cols, 8);
    struct few_digits *s = in->scratch;
    for (uint32_t c = 0; c < padded; c += CHUNK_COLS, plane_skip(&p, bits, CHUNK_COLS)) {
        const uint32_t n_cols = TN_MIN(CHUNK_COLS, padded - c);
        split_few(s, in, c, n_cols);
        for (uint32_t i = 0; i < p.n_rows; i += ROWS) {
            __m512i v[TN_PLANE_MAX_X][ROWS];
            struct few_lines l;
            find_lines(&l, &p, bits, i, n_cols);
            low_digits(v, bits, &l, s);
            high_digits(v, bits, &l, s);
            for (uint32_t t = 0; t < in->n_x; t++)
                store_totals(in->dst + t * in->dst_stride, v[t], i, p.n_rows, c == 0);
        }
    }
}

/* 2 bits: one input at a time. */
static TN_ALWAYS_INLINE void dot_planes(uint32_t bits, struct tn_plane_rows p,
                                        const struct plane_inputs *in)
{
    if (bits == 5 || (in->n_x > 1 && bits != 2)) {
        dot_few(bits, p, in);
        return;
    }
    for (uint32_t t = 0; t < in->n_x; t++)
        dot_plane(in->dst + t * in->dst_stride, bits, p, in->x[t], in->scratch);
}

PLANE_ROWS_DEFINE_FEW(avx512)
BOUND_LOGITS_DEFINE(avx512)

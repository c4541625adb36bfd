/* SPDX-License-Identifier: MIT
 *
 * Ternary products of 16-bit inputs: the code that all levels share.  Private to x16_<isa>.c and
 * gemm_<isa>.c; each compiles its own copy with its own flags.  The loops over values and rows are
 * plain C that compilers vectorise, and no level can differ in a bit.
 *
 * A level supplies
 *   gemv: struct digits, take_digits (loads the digits of a run of columns in the level's order),
 *         sum_tile (64 rows of a run) and sum_tiles (the same for several inputs)
 *   gemm: the unpacking and multiplying of gemm_panel.h, for which the two digits of an input are
 *         two inputs
 */
#ifndef TN_X16_H
#define TN_X16_H

#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "kern/pack.h"
#include "kern/ternary_layout.h"
#ifdef __F16C__
#include "kern/x86/halves_f16c.h"
#endif

/* ---- an input ---- */

struct x16 {
    const int8_t *high, *low; /* [tn_kern_pad(cols)] */
    const float *factors;     /* of blocks of TN_X16_BLOCK columns */
    const int32_t *sums;      /* of 64 columns each */
};

static TN_ALWAYS_INLINE struct x16 x16_of(const void *memory, uint32_t cols)
{
    const uint8_t *high = memory, *low = high + tn_x16_half(cols);
    const uint32_t padded = tn_kern_pad(cols);
    return (struct x16){(const int8_t *)high, (const int8_t *)low,
                        (const float *)(const void *)(high + padded),
                        (const int32_t *)(const void *)(low + padded)};
}

/* The sum of q over a run of 64 or 128 columns. */
static TN_ALWAYS_INLINE int32_t x16_sum(const struct x16 *x, uint32_t col, uint32_t n_cols)
{
    return x->sums[col / 64] + (n_cols == 128 ? x->sums[col / 64 + 1] : 0);
}

/* Adding 1.5 * 2^23 rounds to the nearest even integer and leaves it in the low bits. */
#define X16_ROUND 12582912.0f

/* The largest |x| of n values that is not NaN: magnitudes compare like their bits. */
static TN_ALWAYS_INLINE float x16_largest(const float *x, uint32_t n)
{
    int32_t largest = 0;
    for (uint32_t k = 0; k < n; k++) {
        int32_t bits = (int32_t)(tn_f32_to_bits(x[k]) & 0x7FFFFFFFu);
        bits = bits > 0x7F800000 ? 0 : bits;
        largest = bits > largest ? bits : largest;
    }
    return tn_f32_from_bits((uint32_t)largest);
}

/* rne(v) of |v| < 32639.5; NaN gives `most`. */
static TN_ALWAYS_INLINE int32_t x16_round(float v, int32_t most)
{
    const int32_t q = (int32_t)(tn_f32_to_bits(v + X16_ROUND) - tn_f32_to_bits(X16_ROUND));
    /* All bits set for NaN: compilers vectorise this, but not a branch. */
    const int32_t nan = (int32_t)(0x7F800000u - (tn_f32_to_bits(v) & 0x7FFFFFFFu)) >> 31;
    return (q & ~nan) | (most & nan);
}

/* dst [n] = the sums of pairs of values [2 * n]. */
static TN_ALWAYS_INLINE void x16_add_pairs(int32_t *restrict dst, const int32_t *restrict values,
                                           uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        dst[i] = values[2 * i] + values[2 * i + 1];
}

/* minus_16 [TN_X16_BLOCK / 16] = minus the sums of 16 values of q [TN_X16_BLOCK].  Compilers
 * vectorise sums of pairs, but not a sum of 16. */
static TN_ALWAYS_INLINE void x16_minus_sums(int32_t *restrict minus_16, const int32_t *restrict q)
{
    int32_t of_2[TN_X16_BLOCK / 2], of_4[TN_X16_BLOCK / 4], of_8[TN_X16_BLOCK / 8];
    x16_add_pairs(of_2, q, TN_X16_BLOCK / 2);
    x16_add_pairs(of_4, of_2, TN_X16_BLOCK / 4);
    x16_add_pairs(of_8, of_4, TN_X16_BLOCK / 8);
    for (uint32_t i = 0; i < TN_X16_BLOCK / 16; i++)
        minus_16[i] = -of_8[2 * i] - of_8[2 * i + 1];
}

/* The block of x [n] from k on; if it is not whole, `last` with zeros past the end. */
static TN_ALWAYS_INLINE const float *x16_block(float *last, const float *x, uint32_t k, uint32_t n)
{
    if (k + TN_X16_BLOCK <= n)
        return x + k;
    const uint32_t left = n > k ? n - k : 0;
    memcpy(last, x + (left ? k : 0), left * sizeof *x);
    memset(last + left, 0, (TN_X16_BLOCK - left) * sizeof *x);
    return last;
}

/* x [TN_X16_BLOCK]; returns the factor.  Rounding, splitting and summing are separate loops: with
 * a sum of 16 columns inside, compilers do not vectorise the rounding. */
static TN_ALWAYS_INLINE float quant_x16_block(int8_t *restrict high, int8_t *restrict low,
                                              int32_t *restrict minus_16, const float *restrict x)
{
    const float largest = x16_largest(x, TN_X16_BLOCK), a = largest > 1e-30f ? largest : 1e-30f;
    const float s = (float)TN_I16_MAX / a;
    int32_t q[TN_X16_BLOCK];
    for (uint32_t k = 0; k < TN_X16_BLOCK; k++)
        q[k] = x16_round(x[k] * s, TN_I16_MAX);
    for (uint32_t k = 0; k < TN_X16_BLOCK; k++) {
        const int32_t h = (q[k] + 128) >> 8;
        high[k] = (int8_t)h;
        low[k] = (int8_t)(q[k] - h * 256);
    }
    x16_minus_sums(minus_16, q);
    return a / (float)TN_I16_MAX;
}

static TN_ALWAYS_INLINE void quant_x16(void *memory, const float *x, uint32_t n)
{
    const uint32_t padded = tn_kern_pad(n);
    int8_t *high = memory, *low = high + tn_x16_half(n);
    float *factors = (float *)(void *)(high + padded);
    int32_t *of_64 = (int32_t *)(void *)(low + padded);
    int32_t *minus_32 = (int32_t *)(void *)(high + padded / 32 * 33);
    int32_t *minus_16 = (int32_t *)(void *)(low + padded / 16 * 17);
    float last[TN_X16_BLOCK];
    for (uint32_t k = 0; k < padded; k += TN_X16_BLOCK)
        *factors++ = quant_x16_block(high + k, low + k, minus_16 + k / 16,
                                     x16_block(last, x, k, n));
    x16_add_pairs(minus_32, minus_16, padded / 32);
    for (uint32_t i = 0; i < padded / 64; i++)
        of_64[i] = -minus_32[2 * i] - minus_32[2 * i + 1];
}

/* ---- scales and sums of 64 rows ---- */

/* Converts finite f16; one multiplication corrects the exponent. */
static TN_ALWAYS_INLINE float x16_scale_f16(uint16_t h)
{
    const float v = tn_f32_from_bits((h & 0x7FFFu) << 13) * 0x1p112f;
    return tn_f32_from_bits(tn_f32_to_bits(v) | (h & 0x8000u) << 16);
}

/* The index of the first scale of 64 rows, from `row` on, at a column. */
static TN_ALWAYS_INLINE size_t x16_scale_index(const struct tn_scaled_ternary *m, uint32_t row,
                                               uint32_t col)
{
    return tn_scale_index(m->w.rows, m->w.cols, m->group, row, col / m->group);
}

/* The address of scale number `at`. */
static TN_ALWAYS_INLINE const uint8_t *x16_scale_at(const struct tn_scaled_ternary *m, size_t at)
{
    return (const uint8_t *)m->scales + at * (m->is_f16 ? 2 : 4);
}

/* The scales of 64 rows, from number `at` on. */
static TN_ALWAYS_INLINE void x16_scales(float *restrict dst, const struct tn_scaled_ternary *m,
                                        size_t at)
{
    if (!m->is_f16) {
        memcpy(dst, (const float *)m->scales + at, 64 * sizeof *dst);
        return;
    }
    const uint16_t *h = (const uint16_t *)m->scales + at;
#ifdef __F16C__
    halves_64(dst, h);
#else
    for (uint32_t i = 0; i < 64; i++)
        dst[i] = x16_scale_f16(h[i]);
#endif
}

/* y += (sums of codes * q - sum of q) * scale: codes are the weights plus one. */
static TN_ALWAYS_INLINE void x16_add(float *restrict y, const int32_t *restrict sum, int32_t x_sum,
                                     const float *restrict scales, float factor)
{
    for (uint32_t i = 0; i < 64; i++)
        y[i] += ((float)(sum[i] - x_sum) * scales[i]) * factor;
}

/* sum_tiles of x16_gemv.h for levels where several inputs gain only from the cached weights. */
#define X16_TILE_BY_TILE                                                                           \
    static TN_ALWAYS_INLINE void sum_tiles(int32_t (*sum)[64], const uint8_t *tile,                \
                                           uint32_t n_groups, const struct digits *d, uint32_t n,  \
                                           struct lines lines)                                     \
    {                                                                                              \
        for (uint32_t t = 0; t < n; t++)                                                           \
            sum_tile(sum[t], tile, n_groups, &d[t], lines);                                        \
    }

/* ---- inputs in f32 ---- */

/* y of a tile += a run of n_cols columns from col on. */
static TN_ALWAYS_INLINE void x16_tile_f32(float *restrict y, const struct tn_scaled_ternary *m,
                                          uint32_t row, uint32_t col, uint32_t n_cols,
                                          const float *x)
{
    const uint8_t *group =
        t2_run(&m->w, row, col / TERN_T2_COL_ALIGN) + col % TERN_T2_COL_ALIGN / 4 * 64;
    float sum[64], scales[64];
    for (uint32_t i = 0; i < 64; i++)
        sum[i] = 0.0f;
    for (uint32_t c = 0; c < n_cols; c += 4, group += 64)
        for (uint32_t q = 0; q < 4; q++)
            for (uint32_t i = 0; i < 64; i++)
                sum[i] += (float)((group[i] >> 2 * q & 3) - 1) * x[c + q];
    x16_scales(scales, m, x16_scale_index(m, row, col));
    for (uint32_t i = 0; i < 64; i++)
        y[i] += sum[i] * scales[i];
}

static TN_ALWAYS_INLINE void x16_gemv_f32(float *dst, const struct tn_scaled_ternary *m,
                                          uint32_t row_begin, uint32_t row_end, const float *x)
{
    const uint32_t run = tn_x16_run(m);
    for (uint32_t row = row_begin; row < row_end; row += TERN_T2_TILE_ROWS) {
        float *y = dst + (row - row_begin);
        memset(y, 0, TERN_T2_TILE_ROWS * sizeof *y);
        for (uint32_t col = 0; col < m->w.cols; col += run)
            x16_tile_f32(y, m, row, col, run, x + col);
    }
}

/* ---- the residual ---- */

static TN_ALWAYS_INLINE void x16_add_scaled(float *restrict dst, const float *restrict src,
                                            uint32_t n, float scale)
{
    for (uint32_t k = 0; k < n; k++)
        dst[k] += src[k] * scale;
}

#define X16_INPUTS_DEFINE(isa)                                                                     \
    void tn_quant_x16_##isa(void *x16, const float *x, uint32_t n)                                 \
    {                                                                                              \
        quant_x16(x16, x, n);                                                                      \
    }                                                                                              \
    void tn_gemv_t2_f32_##isa(float *dst, const struct tn_scaled_ternary *m, uint32_t row_begin,   \
                              uint32_t row_end, const float *x)                                    \
    {                                                                                              \
        x16_gemv_f32(dst, m, row_begin, row_end, x);                                               \
    }                                                                                              \
    void tn_add_scaled_f32_##isa(float *restrict dst, const float *restrict src, uint32_t n,       \
                                 float scale)                                                      \
    {                                                                                              \
        x16_add_scaled(dst, src, n, scale);                                                        \
    }

#endif

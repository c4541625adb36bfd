/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for AVX-512 VNNI.
 *
 * The panels of gemm_panel.h have the order that `vpdpbusd` takes: 4 vectors of 16 rows per group.
 * 4 vectors x up to 6 tokens are 24 accumulators; per group 4 + 6 loads feed 24 dot products of 64
 * multiply-adds.
 *
 * Unpacking costs per vector of 64 codes: T2 3 instructions, R2 3, C2 4.5.
 */
#include <immintrin.h>

#include "kern/gemm_panel.h"
#include "kern/x16_gemm.h"
#include "kern/x86/dots_avx512.h"
#include "kern/x86/gemm_few_avx512.h"
#include "kern/x8_gemm.h"

/* ---- unpacking ---- */

/* Turns one byte per row with 4 codes into 4 bytes per row. */
static TN_ALWAYS_INLINE void unpack_group(uint8_t *panel, __m512i packed)
{
    /* Bit offsets inside a quadword: of bytes 0 1, 2 3, 4 5, 6 7 in turn. */
    const __m512i shifts = _mm512_set_epi64(0x3E3C3A3836343230, 0x2E2C2A2826242220,
                                            0x1E1C1A1816141210, 0x0E0C0A0806040200,
                                            0x3E3C3A3836343230, 0x2E2C2A2826242220,
                                            0x1E1C1A1816141210, 0x0E0C0A0806040200);
    const __m512i code = _mm512_set1_epi8(3);
    const __m512i index = _mm512_set_epi64(1, 1, 1, 1, 0, 0, 0, 0);
    for (int i = 0; i < 4; i++) {
        const __m512i from = _mm512_add_epi64(index, _mm512_set1_epi64(2 * i));
        const __m512i v = _mm512_permutexvar_epi64(from, packed);
        _mm512_store_si512(panel + 64 * i,
                           _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, v), code));
    }
}

static void unpack_t2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    for (uint32_t begin = 0; begin < n_groups; begin += T2_RUN_GROUPS) {
        const uint8_t *run = t2_run(w, row, (col / 4 + begin) / T2_RUN_GROUPS);
        for (uint32_t g = 0; g < T2_RUN_GROUPS; g++)
            unpack_group(panel + 256 * (begin + g), _mm512_load_si512(run + 64 * g));
    }
}

/* v[i] holds dwords 0..15 of row i; afterwards v[d] holds dword d of rows 0..15. */
static TN_ALWAYS_INLINE void transpose_16x16(__m512i v[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* v[4 k + j], lane l: dword 4 l + j of rows 4 k .. 4 k + 3. */
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(v[j], v[4 + j], 0x88);
        t[4 + j] = _mm512_shuffle_i32x4(v[j], v[4 + j], 0xDD);
        t[8 + j] = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0xDD);
    }
    for (int j = 0; j < 4; j++) {
        v[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
        v[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xDD);
        v[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88);
        v[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xDD);
    }
}

/* Dword d of a block holds columns 4 d .. 4 d + 3, and the same + 64, + 128, + 192 in the bit
 * positions 2, 4 and 6: groups d, 16 + d, 32 + d, 48 + d. */
static void unpack_r2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t row_bytes = (size_t)r2_blocks(w) * 64;
    const __m512i code = _mm512_set1_epi8(3);
    for (uint32_t part = 0; part < GEMM_PANEL_ROWS; part += 16)
        for (uint32_t block = 0; block < n_groups / 64; block++) {
            __m512i v[16];
            for (uint32_t i = 0; i < 16; i++) {
                const uint32_t r = row + part + i;
                v[i] = r < w->rows ? _mm512_load_si512(w->data + r * row_bytes + col / 4 +
                                                       block * 64)
                                   : _mm512_set1_epi8(0x55);
            }
            transpose_16x16(v);
            uint8_t *out = panel + block * (64 * 256) + part * 4;
            for (uint32_t d = 0; d < 16; d++, out += 256) {
                _mm512_store_si512(out, _mm512_and_si512(v[d], code));
                _mm512_store_si512(out + 16 * 256,
                                   _mm512_and_si512(_mm512_srli_epi16(v[d], 2), code));
                _mm512_store_si512(out + 32 * 256,
                                   _mm512_and_si512(_mm512_srli_epi16(v[d], 4), code));
                _mm512_store_si512(out + 48 * 256,
                                   _mm512_and_si512(_mm512_srli_epi16(v[d], 6), code));
            }
        }
}

/* Gathers field q of four columns into the four fields of a byte. */
static TN_ALWAYS_INLINE __m512i gather_field(const __m512i v[4], const int q)
{
    __m512i moved[4];
    for (int i = 0; i < 4; i++)
        moved[i] = i >= q ? _mm512_slli_epi16(v[i], (unsigned)(2 * (i - q)))
                          : _mm512_srli_epi16(v[i], (unsigned)(2 * (q - i)));
    /* 0xCA: where the first operand is 1 the second, else the third. */
    const __m512i low = _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x03), moved[0], moved[1], 0xCA);
    const __m512i high =
        _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x30), moved[2], moved[3], 0xCA);
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x0F), low, high, 0xCA);
}

static TN_ALWAYS_INLINE void unpack_c2_field(uint8_t *panel, const struct tn_ternary *w,
                                             uint32_t row, uint32_t col, uint32_t n_groups,
                                             const int q)
{
    const size_t col_bytes = c2_col_bytes(w);
    const uint8_t *block = w->data + row / 256 * 64 + col * col_bytes;
    for (uint32_t g = 0; g < n_groups; g++, col += 4) {
        __m512i v[4];
        for (uint32_t i = 0; i < 4; i++, block += col_bytes)
            v[i] = col + i < w->cols ? _mm512_load_si512(block) : _mm512_set1_epi8(0x55);
        unpack_group(panel + 256 * g, gather_field(v, q));
    }
}

static void unpack_c2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    switch (row / 64 % 4) {
    case 0:
        unpack_c2_field(panel, w, row, col, n_groups, 0);
        break;
    case 1:
        unpack_c2_field(panel, w, row, col, n_groups, 1);
        break;
    case 2:
        unpack_c2_field(panel, w, row, col, n_groups, 2);
        break;
    default:
        unpack_c2_field(panel, w, row, col, n_groups, 3);
        break;
    }
}

/* ---- multiplying ---- */

#define TILE_TOKENS 6u

int32_t tn_sum_i8_avx512(const int8_t *x, uint32_t n)
{
    const __m512i one = _mm512_set1_epi8(1);
    __m512i sum = _mm512_setzero_si512();
    for (uint32_t i = 0; i < n; i += 64)
        sum = _mm512_dpbusd_epi32(sum, one, _mm512_load_si512(x + i));
    return _mm512_reduce_add_epi32(sum);
}

/* Loads four columns of 64 rows and keeps them in registers: gcc would load them again for each
 * input, and the loads would take longer than the products. */
static TN_ALWAYS_INLINE void load_group(__m512i w[4], const uint8_t *panel)
{
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        w[i] = _mm512_load_si512(panel + 64 * i);
        __asm__("" : "+v"(w[i]));
    }
}

/* Sums of 64 rows += a group times the input's four columns at x. */
static TN_ALWAYS_INLINE void multiply_group(__m512i sum[4], const __m512i w[4], const int8_t *x)
{
    const __m512i v = _mm512_set1_epi32((int)tn_load_u32(x));
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++)
        sum[i] = add_dots(sum[i], w[i], v);
}

/* n (a constant) tokens x 64 rows; x_sum NULL: the sums continue from dst. */
static TN_ALWAYS_INLINE void multiply_tile(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, const uint32_t n)
{
    __m512i sum[TILE_TOKENS][4];
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; i++)
            sum[t][i] = x_sum ? _mm512_set1_epi32(-x_sum[t])
                              : _mm512_load_si512(dst + t * dst_stride + 16 * i);
    for (uint32_t g = 0; g < n_groups; g++, panel += 256, x += 4) {
        __m512i w[4];
        load_group(w, panel);
#pragma GCC unroll 6
        for (uint32_t t = 0; t < n; t++)
            multiply_group(sum[t], w, x + t * x_stride);
    }
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; i++)
            _mm512_store_si512(dst + t * dst_stride + 16 * i, sum[t][i]);
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define TILE(n) multiply_tile(dst, dst_stride, panel, n_groups, x, x_stride, x_sum, n)
    SWITCH_6(n_tokens, TILE)
#undef TILE
}

static const struct gemm_level level = {512, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL_FEW(avx512, FEW_TOKENS)

/* ---- inputs in 16 bits ---- */

/* 16 sums (two digits of two inputs) and 5 operands fit in registers. */
#define X16_TILE_TOKENS 2u

/* y of 16 rows += ((256 * high + low) * scales) * factor. */
static TN_ALWAYS_INLINE void x16_store(float *y, __m512i high, __m512i low, const float *scales,
                                       __m512 factor)
{
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
    const __m512 v = _mm512_mul_ps(_mm512_mul_ps(sum, _mm512_load_ps(scales)), factor);
    _mm512_store_ps(y, _mm512_add_ps(_mm512_load_ps(y), v));
}

/* n (a constant) inputs. */
static TN_ALWAYS_INLINE void x16_inputs(const struct scaled_batch *b, const uint8_t *run,
                                        uint32_t col, uint32_t n_cols, const float *scales,
                                        const uint32_t n)
{
    __m512i high[X16_TILE_TOKENS][4], low[X16_TILE_TOKENS][4];
    struct x16 x[X16_TILE_TOKENS];
#pragma GCC unroll 2
    for (uint32_t i = 0; i < n; i++) {
        x[i] = x16_of(b->inputs + i * b->input_bytes, b->cols);
        high[i][0] = high[i][1] = high[i][2] = high[i][3] = _mm512_setzero_si512();
        low[i][0] = low[i][1] = low[i][2] = low[i][3] =
            _mm512_set1_epi32(-x16_sum(&x[i], col, n_cols));
    }
    for (uint32_t c = col; c < col + n_cols; c += 4, run += 256) {
        __m512i w[4];
        load_group(w, run);
#pragma GCC unroll 2
        for (uint32_t i = 0; i < n; i++) {
            multiply_group(high[i], w, x[i].high + c);
            multiply_group(low[i], w, x[i].low + c);
        }
    }
#pragma GCC unroll 2
    for (uint32_t i = 0; i < n; i++) {
        const __m512 factor = _mm512_set1_ps(x[i].factors[col / TN_X16_BLOCK]);
        float *y = b->dst + i * b->dst_stride;
#pragma GCC unroll 4
        for (uint32_t j = 0; j < 4; j++)
            x16_store(y + 16 * j, high[i][j], low[i][j], scales + 16 * j, factor);
    }
}

static void x16_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col,
                     uint32_t n_cols, const float *scales, uint32_t n)
{
    if (n == 1)
        x16_inputs(b, run, col, n_cols, scales, 1);
    else
        x16_inputs(b, run, col, n_cols, scales, 2);
}

X16_GEMM_DEFINE_TILE(avx512, x16_tile, X16_TILE_TOKENS)

/* ---- inputs in 8 bits ---- */

/* 12 sums in int32, 12 in f32 and 5 operands fit in registers. */
#define X8_TILE_TOKENS 3u

/* n (a constant) inputs. */
static TN_ALWAYS_INLINE void x8_inputs(const struct scaled_batch *b, const uint8_t *run,
                                       uint32_t col, uint32_t n_cols, const float *scales,
                                       const uint32_t n)
{
    const size_t x_bytes = b->input_bytes;
    const struct x8 first = x8_of(b->inputs, b->cols, col);
    __m512 y[X8_TILE_TOKENS][4];
#pragma GCC unroll 3
    for (uint32_t i = 0; i < n; i++)
        y[i][0] = y[i][1] = y[i][2] = y[i][3] = _mm512_setzero_ps();
    for (uint32_t k = 0; k < n_cols / TN_X8_BLOCK; k++) {
        __m512i sum[X8_TILE_TOKENS][4];
        const int8_t *q = first.q + k * TN_X8_BLOCK;
#pragma GCC unroll 3
        for (uint32_t i = 0; i < n; i++)
            sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] =
                _mm512_set1_epi32(x8_next(&first, x_bytes, i).starts[k]);
#pragma GCC unroll 8
        for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g++, run += 256, q += 4) {
            __m512i w[4];
            load_group(w, run);
#pragma GCC unroll 3
            for (uint32_t i = 0; i < n; i++)
                multiply_group(sum[i], w, q + i * x_bytes);
        }
#pragma GCC unroll 3
        for (uint32_t i = 0; i < n; i++) {
            const __m512 f = _mm512_set1_ps(x8_next(&first, x_bytes, i).factors[k]);
#pragma GCC unroll 4
            for (uint32_t j = 0; j < 4; j++)
                y[i][j] = _mm512_add_ps(y[i][j], _mm512_mul_ps(_mm512_cvtepi32_ps(sum[i][j]), f));
        }
    }
#pragma GCC unroll 3
    for (uint32_t i = 0; i < n; i++)
#pragma GCC unroll 4
        for (uint32_t j = 0; j < 4; j++) {
            float *out = b->dst + i * b->dst_stride + 16 * j;
            const __m512 scaled = _mm512_mul_ps(y[i][j], _mm512_load_ps(scales + 16 * j));
            _mm512_store_ps(out, _mm512_add_ps(_mm512_load_ps(out), scaled));
        }
}

static void x8_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col, uint32_t n_cols,
                    const float *scales, uint32_t n)
{
    if (n == 1)
        x8_inputs(b, run, col, n_cols, scales, 1);
    else if (n == 2)
        x8_inputs(b, run, col, n_cols, scales, 2);
    else
        x8_inputs(b, run, col, n_cols, scales, 3);
}

X8_GEMM_DEFINE_TILE(avx512, x8_tile, X8_TILE_TOKENS)

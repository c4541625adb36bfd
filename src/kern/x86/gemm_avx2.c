/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for AVX2.
 *
 * `vpmaddubsw` multiplies 32 codes (0, 1, 2) with 32 inputs and adds pairs: at most
 * 2 * 2 * 127 = 508 in magnitude.  Those are added in int16 over the 64 groups of a panel,
 * 64 * 508 = 32512 < 32768, then `vpmaddwd` with ones widens them.  2 vectors of 8 rows x up to 4
 * tokens: two instructions for 32 multiply-adds, per group 2 + 4 loads (a fifth token would spill).
 */
#include "kern/x86/gemm_few_avx2.h"
#include "kern/x86/gemm_unpack_avx2.h"
#include "kern/x16_gemm.h"
#include "kern/x8_gemm.h"

#define PANEL_COLS 256u
_Static_assert(PANEL_COLS / 4 * 508 <= 32767, "a panel's pair sums fit int16");
#define TILE_TOKENS 4u

int32_t tn_sum_i8_avx2(const int8_t *x, uint32_t n)
{
    const __m256i bias = _mm256_set1_epi8((char)0x80);
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t i = 0; i < n; i += 32) {
        const __m256i v = _mm256_xor_si256(_mm256_load_si256((const void *)(x + i)), bias);
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(v, _mm256_setzero_si256()));
    }
    __m128i s = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi64(s, _mm_unpackhi_epi64(s, s));
    return (int32_t)(_mm_cvtsi128_si64(s) - (int64_t)n * 128);
}

/* n (a constant) tokens x 16 rows. */
static TN_ALWAYS_INLINE void multiply_rows(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const int8_t *x, size_t x_stride,
                                           const int32_t *x_sum, const uint32_t n)
{
    __m256i sum[TILE_TOKENS][2];
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++)
        sum[t][0] = sum[t][1] = _mm256_setzero_si256();
    for (uint32_t g = 0; g < n_groups; g++, panel += 256, x += 4) {
        const __m256i w0 = _mm256_load_si256((const void *)panel);
        const __m256i w1 = _mm256_load_si256((const void *)(panel + 32));
#pragma GCC unroll 4
        for (uint32_t t = 0; t < n; t++) {
            const __m256i v = _mm256_set1_epi32((int)tn_load_u32(x + t * x_stride));
            sum[t][0] = _mm256_add_epi16(sum[t][0], _mm256_maddubs_epi16(w0, v));
            sum[t][1] = _mm256_add_epi16(sum[t][1], _mm256_maddubs_epi16(w1, v));
            /* One register for each sum: otherwise gcc copies all of them every time. */
            __asm__("" : "+x"(sum[t][0]), "+x"(sum[t][1]));
        }
    }
    const __m256i one = _mm256_set1_epi16(1);
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < 2; i++) {
            __m256i *out = (__m256i *)(void *)(dst + t * dst_stride + 8 * i);
            const __m256i first = x_sum ? _mm256_set1_epi32(-x_sum[t]) : _mm256_load_si256(out);
            _mm256_store_si256(out, _mm256_add_epi32(first, _mm256_madd_epi16(sum[t][i], one)));
        }
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
#define ROWS(n)                                                                                    \
    multiply_rows(dst + r, dst_stride, panel + 4 * r, n_groups, x, x_stride, x_sum, n)
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 16)
        SWITCH_4(n_tokens, ROWS)
#undef ROWS
}

static const struct gemm_level level = {PANEL_COLS, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL_FEW(avx2, FEW_TOKENS)
X16_GEMM_DEFINE(avx2)

/* ---- inputs in 8 bits ---- */

/* One block of 16 rows times n (a constant) inputs: t += sums * factor.  The 8 groups of a block
 * and its start are within 8 * 508 + 4064 = 8128 in int16. */
static TN_ALWAYS_INLINE void x8_block(float t[][GEMM_PANEL_ROWS], const uint8_t *panel,
                                      const struct x8 *x, size_t x_bytes, uint32_t k,
                                      const uint32_t n)
{
    const __m256i one = _mm256_set1_epi16(1);
    const int8_t *q = x->q + k * TN_X8_BLOCK;
    __m256i sum[TILE_TOKENS][2];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < n; i++) /* in one of the two sums of a row */
        sum[i][0] = sum[i][1] = _mm256_set1_epi32(x8_next(x, x_bytes, i).starts[k] & 0xFFFF);
    for (uint32_t g = 0; g < X8_BLOCK_GROUPS; g++, panel += 256, q += 4) {
        const __m256i w0 = _mm256_load_si256((const void *)panel);
        const __m256i w1 = _mm256_load_si256((const void *)(panel + 32));
#pragma GCC unroll 4
        for (uint32_t i = 0; i < n; i++) {
            const __m256i v = _mm256_set1_epi32((int)tn_load_u32(q + i * x_bytes));
            sum[i][0] = _mm256_add_epi16(sum[i][0], _mm256_maddubs_epi16(w0, v));
            sum[i][1] = _mm256_add_epi16(sum[i][1], _mm256_maddubs_epi16(w1, v));
            /* One register for each sum: otherwise gcc copies all of them every time. */
            __asm__("" : "+x"(sum[i][0]), "+x"(sum[i][1]));
        }
    }
#pragma GCC unroll 4
    for (uint32_t i = 0; i < n; i++) {
        const __m256 f = _mm256_set1_ps(x8_next(x, x_bytes, i).factors[k]);
        for (uint32_t j = 0; j < 2; j++) {
            const __m256 v = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum[i][j], one));
            float *out = t[i] + 8 * j;
            _mm256_store_ps(out, _mm256_add_ps(_mm256_load_ps(out), _mm256_mul_ps(v, f)));
        }
    }
}

static void x8_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col, uint32_t n_cols,
                    const float *scales, uint32_t n)
{
    _Alignas(64) float y[TILE_TOKENS][GEMM_PANEL_ROWS] = {{0}};
    const struct x8 x = x8_of(b->inputs, b->cols, col);
    for (uint32_t k = 0; k < n_cols / TN_X8_BLOCK; k++)
        for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 16) {
            float(*rows)[GEMM_PANEL_ROWS] = (void *)&y[0][r];
            const uint8_t *part = run + k * TN_X8_BLOCK * GEMM_PANEL_ROWS + 4 * r;
#define BLOCK(n) x8_block(rows, part, &x, b->input_bytes, k, n)
            SWITCH_4(n, BLOCK)
#undef BLOCK
        }
    for (uint32_t i = 0; i < n; i++)
        x8_add(b->dst + i * b->dst_stride, y[i], scales);
}

X8_GEMM_DEFINE_TILE(avx2, x8_tile, TILE_TOKENS)

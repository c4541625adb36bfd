/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for SSSE3.
 *
 * `pmaddubsw` multiplies 16 codes (0, 1, 2) with 16 inputs and adds pairs: at most
 * 2 * 2 * 127 = 508 in magnitude.  Those are added in int16 over the 64 groups of a panel,
 * 64 * 508 = 32512 < 32768, then `pmaddwd` with ones widens them.  2 vectors of 4 rows x up to 6
 * tokens: per group 2 loads, and 6 instructions for each token's 32 multiply-adds (two of them
 * copies, since `pmaddubsw` overwrites the codes).
 */
#include <tmmintrin.h>

#include "kern/gemm_panel.h"
#include "kern/x16_gemm.h"
#include "kern/x86/dots_ssse3.h"
#include "kern/x8_gemm.h"

#define PANEL_COLS 256u
_Static_assert(PANEL_COLS / 4 * 508 <= 32767, "a panel's pair sums fit int16");
#define TILE_TOKENS 6u

/* ---- unpacking ---- */

static TN_ALWAYS_INLINE __m128i load(const void *p)
{
    return _mm_load_si128(p);
}

static TN_ALWAYS_INLINE __m128i field(__m128i v, int q)
{
    return _mm_and_si128(_mm_srli_epi16(v, 2 * q), _mm_set1_epi8(3));
}

/* codes[c]: column c of 16 rows.  Stores 16 rows of 4 columns. */
static TN_ALWAYS_INLINE void interleave_columns(uint8_t *panel, const __m128i codes[4])
{
    const __m128i lo01 = _mm_unpacklo_epi8(codes[0], codes[1]);
    const __m128i hi01 = _mm_unpackhi_epi8(codes[0], codes[1]);
    const __m128i lo23 = _mm_unpacklo_epi8(codes[2], codes[3]);
    const __m128i hi23 = _mm_unpackhi_epi8(codes[2], codes[3]);
    _mm_store_si128((void *)panel, _mm_unpacklo_epi16(lo01, lo23));
    _mm_store_si128((void *)(panel + 16), _mm_unpackhi_epi16(lo01, lo23));
    _mm_store_si128((void *)(panel + 32), _mm_unpacklo_epi16(hi01, hi23));
    _mm_store_si128((void *)(panel + 48), _mm_unpackhi_epi16(hi01, hi23));
}

static void unpack_t2_run(uint8_t *panel, const uint8_t *group)
{
    for (uint32_t i = 0; i < T2_RUN_GROUPS * 4u; i++) {
        const __m128i v = load(group + 16 * i);
        const __m128i codes[4] = {field(v, 0), field(v, 1), field(v, 2), field(v, 3)};
        interleave_columns(panel + 64 * i, codes);
    }
}

static void unpack_t2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    for (uint32_t g = 0; g < n_groups; g += T2_RUN_GROUPS)
        unpack_t2_run(panel + 256 * g, t2_run(w, row, (col / 4 + g) / T2_RUN_GROUPS));
}

/* Dword d of a block holds columns 4 d .. 4 d + 3, and the same + 64, + 128, + 192 in the bit
 * positions 2, 4 and 6: groups d, 16 + d, 32 + d, 48 + d.  v[i]: dwords d .. d + 3 of row i of
 * four. */
static TN_ALWAYS_INLINE void unpack_r2_part(uint8_t *panel, const __m128i v[4])
{
    const __m128i lo01 = _mm_unpacklo_epi32(v[0], v[1]), hi01 = _mm_unpackhi_epi32(v[0], v[1]);
    const __m128i lo23 = _mm_unpacklo_epi32(v[2], v[3]), hi23 = _mm_unpackhi_epi32(v[2], v[3]);
    const __m128i dword[4] = {_mm_unpacklo_epi64(lo01, lo23), _mm_unpackhi_epi64(lo01, lo23),
                              _mm_unpacklo_epi64(hi01, hi23), _mm_unpackhi_epi64(hi01, hi23)};
    for (uint32_t d = 0; d < 4; d++)
        for (int q = 0; q < 4; q++)
            _mm_store_si128((void *)(panel + (16u * (unsigned)q + d) * 256), field(dword[d], q));
}

static void unpack_r2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t row_bytes = (size_t)r2_blocks(w) * 64;
    for (uint32_t part = 0; part < GEMM_PANEL_ROWS; part += 4)
        for (uint32_t k = 0; k < n_groups / 16; k++) {
            __m128i v[4];
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t r = row + part + i;
                v[i] = r < w->rows ? load(w->data + r * row_bytes + col / 4 + k * 16)
                                   : _mm_set1_epi8(0x55);
            }
            unpack_r2_part(panel + (k / 4 * 64 + k % 4 * 4) * 256 + part * 4, v);
        }
}

static void unpack_c2(uint8_t *panel, const struct tn_ternary *w, uint32_t row, uint32_t col,
                      uint32_t n_groups)
{
    const size_t col_bytes = c2_col_bytes(w);
    const __m128i shift = _mm_cvtsi32_si128((int)(row / 64 % 4 * 2));
    const uint8_t *block = w->data + row / 256 * 64 + col * col_bytes;
    for (uint32_t g = 0; g < n_groups; g++, col += 4, block += 4 * col_bytes)
        for (uint32_t part = 0; part < 64; part += 16) {
            __m128i codes[4];
            for (uint32_t i = 0; i < 4; i++) {
                const __m128i v = col + i < w->cols ? load(block + i * col_bytes + part)
                                                    : _mm_set1_epi8(0x55);
                codes[i] = _mm_and_si128(_mm_srl_epi16(v, shift), _mm_set1_epi8(3));
            }
            interleave_columns(panel + 256 * g + 4 * part, codes);
        }
}

/* ---- multiplying ---- */

int32_t tn_sum_i8_ssse3(const int8_t *x, uint32_t n)
{
    const __m128i bias = _mm_set1_epi8((char)0x80);
    __m128i sum = _mm_setzero_si128();
    for (uint32_t i = 0; i < n; i += 16)
        sum = _mm_add_epi64(sum, _mm_sad_epu8(_mm_xor_si128(load(x + i), bias),
                                              _mm_setzero_si128()));
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    return (int32_t)(_mm_cvtsi128_si64(sum) - (int64_t)n * 128);
}

/* Inputs of a tile, [n_groups][TILE_TOKENS]: the four inputs of a group, repeated four times.
 * Stored, because all 64 rows use them and SSSE3 takes two instructions to make one. */
struct spread {
    __m128i v[PANEL_COLS / 4][TILE_TOKENS];
};

static TN_ALWAYS_INLINE void spread_inputs(struct spread *spread, uint32_t n_groups,
                                           const int8_t *x, size_t x_stride, uint32_t n)
{
    for (uint32_t g = 0; g < n_groups; g++)
        for (uint32_t t = 0; t < n; t++)
            spread->v[g][t] = _mm_set1_epi32((int)tn_load_u32(x + t * x_stride + 4 * g));
}

/* n (a constant) tokens x 8 rows. */
static TN_ALWAYS_INLINE void multiply_rows(int32_t *dst, size_t dst_stride, const uint8_t *panel,
                                           uint32_t n_groups, const struct spread *x,
                                           const int32_t *x_sum, const uint32_t n)
{
    __m128i sum[TILE_TOKENS][2];
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
        sum[t][0] = sum[t][1] = _mm_setzero_si128();
    for (uint32_t g = 0; g < n_groups; g++, panel += 256) {
        const __m128i w0 = load(panel), w1 = load(panel + 16);
#pragma GCC unroll 6
        for (uint32_t t = 0; t < n; t++) {
            sum[t][0] = add_pairs(sum[t][0], w0, x->v[g][t]);
            sum[t][1] = add_pairs(sum[t][1], w1, x->v[g][t]);
        }
    }
    const __m128i one = _mm_set1_epi16(1);
#pragma GCC unroll 6
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < 2; i++) {
            __m128i *out = (__m128i *)(void *)(dst + t * dst_stride + 4 * i);
            const __m128i first = x_sum ? _mm_set1_epi32(-x_sum[t]) : load(out);
            _mm_store_si128(out, _mm_add_epi32(first, _mm_madd_epi16(sum[t][i], one)));
        }
}

static void multiply(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                     const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
    struct spread spread;
#define TILE(n)                                                                                    \
    spread_inputs(&spread, n_groups, x, x_stride, n);                                              \
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 8)                                              \
        multiply_rows(dst + r, dst_stride, panel + 4 * r, n_groups, &spread, x_sum, n)
    SWITCH_6(n_tokens, TILE)
#undef TILE
}

static const struct gemm_level level = {PANEL_COLS, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL(ssse3)
X16_GEMM_DEFINE(ssse3)
X8_GEMM_DEFINE(ssse3)

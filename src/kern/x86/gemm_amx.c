/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 or x16 vectors for AMX: 16 inputs x 64 rows of a panel at a time.
 * The bytes of a panel are the weights -1, 0, 1.  For 64 columns one tile of inputs and four of
 * weights are loaded, 5 x 8 cycles, and multiplied, 4 x 16 cycles.
 *
 * Products with a factor for every 32 columns, such as x8 and matrices in blocks, stay with
 * AVX-512: sums leave tiles only through memory, which takes longer than 32 columns take to
 * multiply (bench/README.md has the figures).
 */
#include <immintrin.h>

#define GEMM_WHOLE_TILES 1

#include "kern/scaled_gemm.h"
#include "kern/x86/tiles_amx.h"

static TN_ALWAYS_INLINE __m512i panel_bytes(__m512i codes)
{
    return _mm512_sub_epi8(codes, _mm512_set1_epi8(1));
}

#include "kern/x86/gemm_unpack_avx512.h"

/* Up to this many inputs take less time with AVX-512. */
#define MAX_FEW_INPUTS 8u

/* ---- inputs in int8 ---- */

/* dst of a tile of inputs = or, unless is_first, += a panel times x. */
static void multiply_tile(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                          const int8_t *x, size_t x_stride, bool is_first)
{
    const size_t stride = dst_stride * sizeof *dst;
    tiles_see_memory();
    if (is_first) {
        tiles_clear_sums();
    } else {
        _tile_loadd(0, dst, stride);
        _tile_loadd(1, dst + 16, stride);
        _tile_loadd(2, dst + 32, stride);
        _tile_loadd(3, dst + 48, stride);
    }
    for (uint32_t g = 0; g < n_groups; g += TILE_GROUPS) {
        _tile_loadd(4, x, x_stride);
        _tile_loadd(6, panel, PANEL_GROUP_BYTES);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(7, panel + 64, PANEL_GROUP_BYTES);
        _tile_dpbssd(1, 4, 7);
        _tile_loadd(6, panel + 128, PANEL_GROUP_BYTES);
        _tile_dpbssd(2, 4, 6);
        _tile_loadd(7, panel + 192, PANEL_GROUP_BYTES);
        _tile_dpbssd(3, 4, 7);
        x += TILE_COLS;
        panel += TILE_WEIGHTS_BYTES;
    }
    _tile_stored(0, dst, stride);
    _tile_stored(1, dst + 16, stride);
    _tile_stored(2, dst + 32, stride);
    _tile_stored(3, dst + 48, stride);
}

/* All inputs, at most 16. */
static void multiply_only(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                          const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
    (void)n_tokens;
    multiply_tile(dst, dst_stride, panel, n_groups, x, x_stride, x_sum != NULL);
}

/* 16 inputs, or those that are left after 16 or more: their tile overlaps the one before, which is
 * whole. */
_Static_assert(GEMM_WHOLE_TILES, "at least 16 inputs precede those that are left");
static void multiply_next(int32_t *dst, size_t dst_stride, const uint8_t *panel, uint32_t n_groups,
                          const int8_t *x, size_t x_stride, const int32_t *x_sum, uint32_t n_tokens)
{
    const bool is_first = x_sum != NULL;
    const uint32_t skip = TILE_INPUTS - n_tokens;
    if (skip == 0) {
        multiply_tile(dst, dst_stride, panel, n_groups, x, x_stride, is_first);
        return;
    }
    _Alignas(64) int32_t sums[TILE_INPUTS][GEMM_PANEL_ROWS];
    multiply_tile(sums[0], GEMM_PANEL_ROWS, panel, n_groups, x - skip * x_stride, x_stride, true);
    for (uint32_t t = 0; t < n_tokens; t++, dst += dst_stride)
        for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r++)
            dst[r] = (is_first ? 0 : dst[r]) + sums[skip + t][r];
}

static const struct gemm_level only_tile = {512, TILE_INPUTS, multiply_only};
static const struct gemm_level many_tiles = {512, TILE_INPUTS, multiply_next};

#define GEMM_DEFINE_AMX(layout, col_align)                                                         \
    void tn_gemm_##layout##_i8_amx(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,    \
                                   uint32_t row_begin, uint32_t row_end, const int8_t *x,          \
                                   size_t x_stride, const int32_t *x_sum, uint32_t n_tokens,       \
                                   void *scratch)                                                  \
    {                                                                                              \
        if (n_tokens <= MAX_FEW_INPUTS) {                                                          \
            tn_gemm_##layout##_i8_avx512(dst, dst_stride, w, row_begin, row_end, x, x_stride,      \
                                         x_sum, n_tokens, scratch);                                \
            return;                                                                                \
        }                                                                                          \
        tiles_begin(n_tokens);                                                                     \
        gemm_panels(n_tokens <= TILE_INPUTS ? &only_tile : &many_tiles, unpack_##layout,           \
                    col_align, dst, dst_stride, w, row_begin, row_end, x, x_stride, x_sum,         \
                    n_tokens, scratch);                                                            \
        tiles_end();                                                                               \
    }
GEMM_DEFINE_AMX(t2, TERN_T2_COL_ALIGN)
GEMM_DEFINE_AMX(r2, TERN_R2_COL_ALIGN)
GEMM_DEFINE_AMX(c2, TILE_COLS)

/* ---- inputs in 16 bits ---- */

/* A run of inputs.  Their tile begins `skip` inputs before the first one; the sums of those are
 * ignored. */
struct x16_inputs {
    const int8_t *high, *low; /* of the tile */
    size_t stride;            /* bytes from one input to the next */
    const float *factor;      /* of the first input */
    uint32_t n, skip;
};

/* Sums of a tile of inputs x 16 rows. */
struct x16_sums {
    _Alignas(64) int32_t high[TILE_INPUTS][TILE_ROWS], low[TILE_INPUTS][TILE_ROWS];
};

/* Sums of 32 rows of a run of n_cols columns. */
static TN_ALWAYS_INLINE void x16_multiply(struct x16_sums s[2], const struct x16_inputs *x,
                                          const uint8_t *run, uint32_t n_cols)
{
    tiles_see_memory();
    tiles_clear_sums();
    for (uint32_t c = 0; c < n_cols; c += TILE_COLS, run += TILE_WEIGHTS_BYTES) {
        _tile_loadd(4, x->high + c, x->stride);
        _tile_loadd(6, run, PANEL_GROUP_BYTES);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(7, run + 64, PANEL_GROUP_BYTES);
        _tile_dpbssd(1, 4, 7);
        _tile_loadd(5, x->low + c, x->stride);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_stored(0, s[0].high, 64);
    _tile_stored(1, s[1].high, 64);
    _tile_stored(2, s[0].low, 64);
    _tile_stored(3, s[1].low, 64);
}

/* y of 16 rows += ((256 * high + low) * scales) * factor. */
static TN_ALWAYS_INLINE void x16_add_tile(float *y, size_t y_stride, const struct x16_sums *s,
                                          const struct x16_inputs *x, const float *scales)
{
    const __m512 scale = _mm512_load_ps(scales);
    const float *factor = x->factor;
#pragma GCC unroll 4
    for (uint32_t t = x->skip; t < x->skip + x->n; t++) {
        const __m512i high = _mm512_slli_epi32(_mm512_load_si512(s->high[t]), 8);
        const __m512i sum = _mm512_add_epi32(high, _mm512_load_si512(s->low[t]));
        const __m512 v = _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale),
                                       _mm512_set1_ps(*factor));
        _mm512_store_ps(y, _mm512_add_ps(_mm512_load_ps(y), v));
        y += y_stride;
        factor += x->stride / sizeof *factor;
    }
}

static TN_ALWAYS_INLINE void x16_tile(const struct scaled_batch *b, const uint8_t *run,
                                      uint32_t col, uint32_t n_cols, const float *scales,
                                      uint32_t n, uint32_t skip)
{
    const struct x16 first = x16_of(b->inputs, b->cols);
    const size_t back = skip * b->input_bytes;
    const struct x16_inputs x = {first.high + col - back,
                                 first.low + col - back,
                                 b->input_bytes,
                                 first.factors + col / TN_X16_BLOCK,
                                 n,
                                 skip};
    for (uint32_t r = 0; r < GEMM_PANEL_ROWS; r += 2 * TILE_ROWS) {
        struct x16_sums s[2];
        x16_multiply(s, &x, run + 4 * r, n_cols);
        for (uint32_t i = 0; i < 2; i++, scales += TILE_ROWS)
            x16_add_tile(b->dst + r + i * TILE_ROWS, b->dst_stride, &s[i], &x, scales);
    }
}

static void x16_only_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col,
                          uint32_t n_cols, const float *scales, uint32_t n)
{
    x16_tile(b, run, col, n_cols, scales, n, 0);
}

static void x16_next_tile(const struct scaled_batch *b, const uint8_t *run, uint32_t col,
                          uint32_t n_cols, const float *scales, uint32_t n)
{
    x16_tile(b, run, col, n_cols, scales, n, TILE_INPUTS - n);
}

void tn_gemm_t2_x16_amx(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                        uint32_t row_begin, uint32_t row_end, const void *x16, uint32_t n_tokens,
                        void *scratch)
{
    if (n_tokens <= MAX_FEW_INPUTS) {
        tn_gemm_t2_x16_avx512(dst, dst_stride, m, row_begin, row_end, x16, n_tokens, scratch);
        return;
    }
    const struct scaled_batch b = {x16,       TN_X16_BYTES(m->w.cols), n_tokens,
                                   m->w.cols, dst,                     dst_stride};
    tiles_begin(n_tokens);
    scaled_gemm(n_tokens <= TILE_INPUTS ? x16_only_tile : x16_next_tile, TILE_INPUTS, unpack_t2, b,
                m, row_begin, row_end, scratch);
    tiles_end();
}

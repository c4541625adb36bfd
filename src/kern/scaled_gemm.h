/* SPDX-License-Identifier: MIT
 *
 * The loop of gemm_t2_x16 and gemm_t2_x8.  Private to gemm_<isa>.c: panel by panel as gemm_panel.h
 * does, but run by run of 64 or 128 columns, which share a scale; what a run gives is scaled and
 * added while it is in the first-level cache.
 */
#ifndef TN_SCALED_GEMM_H
#define TN_SCALED_GEMM_H

#include "kern/gemm_panel.h"
#include "kern/x16.h"

/* Inputs, and what is added to. */
struct scaled_batch {
    const uint8_t *inputs;
    size_t input_bytes; /* of one */
    uint32_t n_tokens, cols;
    float *dst;
    size_t dst_stride;
};

/* Adds to y of the first n tokens a run of n_cols columns from col on, unpacked. */
typedef void scaled_tile_fn(const struct scaled_batch *b, const uint8_t *run, uint32_t col,
                            uint32_t n_cols, const float *scales, uint32_t n);

/* Rows [row, row + 64) and columns [col, col + 4 * n_groups). */
static TN_ALWAYS_INLINE void scaled_panel(scaled_tile_fn *tile, uint32_t tile_tokens,
                                          const struct scaled_batch *b,
                                          const struct tn_scaled_ternary *m, const uint8_t *panel,
                                          uint32_t row, uint32_t col, uint32_t n_groups,
                                          struct gemm_fetch *fetch)
{
    const uint32_t n_cols = tn_x16_run(m), end = TN_MIN(col + 4 * n_groups, m->w.cols);
    for (; col < end; col += n_cols, panel += (size_t)n_cols * GEMM_PANEL_ROWS) {
        _Alignas(64) float scales[GEMM_PANEL_ROWS];
        x16_scales(scales, m,
                   tn_scale_index(m->w.rows, m->w.cols, m->group, row, col / m->group));
        struct scaled_batch rest = *b;
        while (rest.n_tokens) {
            const uint32_t n = TN_MIN(tile_tokens, rest.n_tokens);
            gemm_fetch_part(fetch);
            tile(&rest, panel, col, n_cols, scales, n);
            rest.inputs += n * rest.input_bytes;
            rest.dst += n * rest.dst_stride;
            rest.n_tokens -= n;
        }
    }
}

static TN_ALWAYS_INLINE void scaled_gemm(const struct gemm_level *level, scaled_tile_fn *tile,
                                         uint32_t tile_tokens, gemm_unpack_fn *unpack,
                                         struct scaled_batch b, const struct tn_scaled_ternary *m,
                                         uint32_t row_begin, uint32_t row_end, uint8_t *panel)
{
    const struct tn_ternary *w = &m->w;
    const uint32_t padded = tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN) * TERN_T2_COL_ALIGN;
    float *const dst = b.dst;
    row_end = TN_MIN(row_end, w->rows);
    for (uint32_t col = 0; col < padded; col += level->panel_cols) {
        const uint32_t n_groups = TN_MIN(padded - col, level->panel_cols) / 4;
        for (uint32_t row = row_begin; row < row_end; row += GEMM_PANEL_ROWS) {
            struct gemm_fetch fetch =
                gemm_fetch_next(level, w, padded, row_begin, row_end, row, col);
            b.dst = dst + (row - row_begin);
            for (uint32_t t = 0; col == 0 && t < b.n_tokens; t++)
                memset(b.dst + t * b.dst_stride, 0, GEMM_PANEL_ROWS * sizeof *dst);
            unpack(panel, w, row, col, n_groups);
            scaled_panel(tile, tile_tokens, &b, m, panel, row, col, n_groups, &fetch);
        }
    }
}

/* Defines tn_gemm_t2_<form>_<isa>, form being x16 or x8, from `level` and unpack_t2. */
#define SCALED_GEMM_DEFINE(isa, form, input_bytes, tile, tile_tokens)                              \
    void tn_gemm_t2_##form##_##isa(float *dst, size_t dst_stride,                                  \
                                   const struct tn_scaled_ternary *m, uint32_t row_begin,          \
                                   uint32_t row_end, const void *inputs, uint32_t n_tokens,        \
                                   void *scratch)                                                  \
    {                                                                                              \
        const struct scaled_batch b = {inputs,    input_bytes(m->w.cols), n_tokens,                \
                                       m->w.cols, dst,                    dst_stride};             \
        scaled_gemm(&level, tile, tile_tokens, unpack_t2, b, m, row_begin, row_end, scratch);      \
    }

#endif

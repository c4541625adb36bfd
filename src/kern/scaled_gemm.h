/* SPDX-License-Identifier: MIT
 *
 * The loop of gemm_t2_x16 and gemm_t2_x8.  Private to gemm_<isa>.c: panel by panel like
 * gemm_panel.h, but inside a panel run by run of 64 or 128 columns that share a scale; the sums of
 * a run are scaled and added.  Few inputs take all runs of a panel at once, so that their y stays
 * in the first-level cache.
 */
#ifndef TN_SCALED_GEMM_H
#define TN_SCALED_GEMM_H

#include "kern/gemm_panel.h"
#include "kern/x16.h"

/* At most half of the first-level cache, so that inputs and y do not evict codes. */
#define SCALED_PANEL_COLS 256u
_Static_assert(SCALED_PANEL_COLS <= GEMM_PANEL_COLS_MAX, "a panel fits the scratch memory");

/* Inputs, and the y to add to. */
struct scaled_batch {
    const uint8_t *inputs;
    size_t input_bytes; /* of one */
    uint32_t n_tokens, cols;
    float *dst;
    size_t dst_stride;
};

/* Columns [col, end) of 64 rows in runs of run_cols; the last run may end in padding. */
struct scaled_panel {
    const uint8_t *codes; /* as in gemm_panel.h */
    uint32_t col, end, run_cols;
    _Alignas(64) float scales[SCALED_PANEL_COLS / 64][GEMM_PANEL_ROWS]; /* of the runs */
};

/* Adds an unpacked run of n_cols columns from col on to y of the first n inputs. */
typedef void scaled_tile_fn(const struct scaled_batch *b, const uint8_t *run, uint32_t col,
                            uint32_t n_cols, const float *scales, uint32_t n);

static TN_ALWAYS_INLINE void scaled_take_scales(struct scaled_panel *p,
                                                const struct tn_scaled_ternary *m, uint32_t row)
{
    float(*scales)[GEMM_PANEL_ROWS] = p->scales;
    for (uint32_t col = p->col; col < p->end; col += p->run_cols)
        x16_scales(*scales++, m, x16_scale_index(m, row, col));
}

/* Prefetches the scales of the panel that is being fetched. */
static TN_ALWAYS_INLINE void scaled_fetch_scales(const struct gemm_fetch *fetch,
                                                 const struct tn_scaled_ternary *m)
{
    if (fetch->line == fetch->end)
        return;
    const uint32_t end = TN_MIN(fetch->col + SCALED_PANEL_COLS, m->w.cols);
    for (uint32_t col = fetch->col; col < end; col += tn_x16_run(m)) {
        const size_t at = x16_scale_index(m, fetch->row, col);
        const uint8_t *scales_end = x16_scale_at(m, at + GEMM_PANEL_ROWS);
        for (const uint8_t *p = x16_scale_at(m, at); p < scales_end; p += 64)
            __builtin_prefetch(p, 0, 2);
    }
}

/* Multiplies the first n inputs by all runs. */
static TN_ALWAYS_INLINE void scaled_runs(scaled_tile_fn *tile, const struct scaled_batch *b,
                                         const struct scaled_panel *p, uint32_t n)
{
    const uint8_t *run = p->codes;
    const float(*scales)[GEMM_PANEL_ROWS] = p->scales;
    for (uint32_t t = 0; p->col == 0 && t < n; t++)
        memset(b->dst + t * b->dst_stride, 0, GEMM_PANEL_ROWS * sizeof *b->dst);
    for (uint32_t col = p->col; col < p->end; col += p->run_cols) {
        tile(b, run, col, p->run_cols, *scales++, n);
        run += p->run_cols * GEMM_PANEL_ROWS;
    }
}

static TN_ALWAYS_INLINE void scaled_one_panel(scaled_tile_fn *tile, uint32_t tile_tokens,
                                              struct scaled_batch b, const struct scaled_panel *p,
                                              struct gemm_fetch *fetch)
{
    uint32_t n_tiles = tn_div_ceil_u32(b.n_tokens, tile_tokens);
    const uint32_t n_parts = gemm_fetch_parts(fetch, n_tiles);
    for (; n_tiles; n_tiles--) {
        const uint32_t n = gemm_next_tile(b.n_tokens, n_tiles, tile_tokens);
        gemm_fetch_some(fetch, n_parts);
        scaled_runs(tile, &b, p, n);
        b.inputs += n * b.input_bytes;
        b.dst += n * b.dst_stride;
        b.n_tokens -= n;
    }
}

static TN_ALWAYS_INLINE void scaled_gemm(scaled_tile_fn *tile, uint32_t tile_tokens,
                                         gemm_unpack_fn *unpack, struct scaled_batch b,
                                         const struct tn_scaled_ternary *m, uint32_t row_begin,
                                         uint32_t row_end, uint8_t *codes)
{
    const struct tn_ternary *w = &m->w;
    const uint32_t padded = tn_div_ceil_u32(w->cols, TERN_T2_COL_ALIGN) * TERN_T2_COL_ALIGN;
    struct scaled_panel p = {.codes = codes, .run_cols = tn_x16_run(m)};
    float *const dst = b.dst;
    row_end = TN_MIN(row_end, w->rows);
    for (; p.col < padded; p.col += SCALED_PANEL_COLS) {
        const uint32_t n_cols = TN_MIN(padded - p.col, SCALED_PANEL_COLS);
        p.end = TN_MIN(p.col + n_cols, w->cols);
        for (uint32_t row = row_begin; row < row_end; row += GEMM_PANEL_ROWS) {
            struct gemm_fetch fetch =
                gemm_fetch_next(SCALED_PANEL_COLS, w, padded, row_begin, row_end, row, p.col);
            b.dst = dst + (row - row_begin);
            scaled_take_scales(&p, m, row);
            scaled_fetch_scales(&fetch, m);
            unpack(codes, w, row, p.col, n_cols / 4);
            scaled_one_panel(tile, tile_tokens, b, &p, &fetch);
        }
    }
}

/* Defines tn_gemm_t2_<form>_<isa> from unpack_t2; form is x16 or x8. */
#define SCALED_GEMM_DEFINE(isa, form, input_bytes, tile, tile_tokens)                              \
    void tn_gemm_t2_##form##_##isa(float *dst, size_t dst_stride,                                  \
                                   const struct tn_scaled_ternary *m, uint32_t row_begin,          \
                                   uint32_t row_end, const void *inputs, uint32_t n_tokens,        \
                                   void *scratch)                                                  \
    {                                                                                              \
        const struct scaled_batch b = {inputs,    input_bytes(m->w.cols), n_tokens,                \
                                       m->w.cols, dst,                    dst_stride};             \
        scaled_gemm(tile, tile_tokens, unpack_t2, b, m, row_begin, row_end, scratch);              \
    }

#endif

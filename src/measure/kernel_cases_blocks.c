/* SPDX-License-Identifier: MIT
 *
 * The kernel cases of matrices in blocks: the tables and the first layer's matrices that the model
 * has in such layouts, then a stand-in, one buffer that is read in every layout.
 */
#include "base/bits.h"
#include "measure/kernel_case_work.h"

/* Matrix i of the model in a block layout; beyond those the stand-in in each layout. */
static bool take_matrix(struct tn_blocks *out, const struct tn_case_work *w, uint32_t i)
{
    const struct tn_weights *weights = &w->model->weights;
    const uint32_t n_own = 2 + TN_N_MATRICES;
    if (i >= n_own) {
        *out = (struct tn_blocks){w->blocks, TN_CASE_BLOCKS_ROWS, TN_CASE_BLOCKS_COLS,
                                  TERN_LAYOUT_Q8_0 + (i - n_own)};
        return w->size.with_stand_ins && tn_is_blocks(out->layout);
    }
    const struct tn_matrix *m = i == 0   ? &weights->embed
                                : i == 1 ? &weights->head
                                         : &weights->layers[0].matrices[i - 2];
    *out = (struct tn_blocks){m->t.w.data, m->t.w.rows, m->t.w.cols, m->t.w.layout};
    return m->format && tn_is_blocks(out->layout) && tn_kern_pad(out->cols) <= w->widest;
}

#define N_CASES (2 + TN_N_MATRICES + 12)

/* How a case prepares its inputs and multiplies. */
struct product {
    tn_quant_x8_fn *quant; /* NULL: f32 */
    size_t (*x_bytes)(uint32_t cols);
    tn_gemv_blocks_fn *gemv;
    tn_gemm_blocks_fn *gemm;
    tn_gemv_blocks_f32_fn *gemv_f32;
};

/* Multiplies rows [row, row + 256) of w. */
static void multiply(struct tn_case_work *w, const struct product *p, const struct tn_blocks *m,
                     uint32_t row)
{
    const uint32_t n_tokens = p->gemm ? TN_MIN(w->size.n_tokens, 3u) : 1;
    const uint32_t n = TN_MIN(m->rows - row, TN_GEMM_ROWS);
    const uint32_t end = row + (uint32_t)tn_align_up(n, TN_TILE_ROWS);
    float *dst = (float *)w->ints;
    if (p->gemm)
        p->gemm(dst, TN_GEMM_ROWS, m, row, row + TN_GEMM_ROWS, w->prepared, n_tokens, w->scratch);
    else if (p->gemv)
        p->gemv(dst, m, row, end, w->prepared);
    else
        p->gemv_f32(dst, m, row, end, w->xf);
    for (uint32_t t = 0; t < n_tokens; t++)
        tn_case_note(w, dst + t * TN_GEMM_ROWS, n * sizeof *dst);
}

static uint64_t run(struct tn_case_work *w, const struct product *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < N_CASES; i++) {
        struct tn_blocks m;
        if (!take_matrix(&m, w, i))
            continue;
        for (uint32_t t = 0; t < 3 && p->quant; t++)
            p->quant((char *)w->prepared + t * p->x_bytes(m.cols), t % 2 ? w->yf : w->xf, m.cols);
        const uint32_t n = TN_MIN(m.rows, p->gemm ? TN_GEMM_ROWS : w->size.n_rows);
        for (uint32_t row = 0; row < n; row += TN_GEMM_ROWS) {
            if (tn_case_is_stopped(w))
                return bytes;
            multiply(w, p, &m, row);
        }
        bytes += tn_blocks_bytes(m.layout, n, m.cols);
    }
    return bytes;
}

#define ROUNDED_CASE(op, form, member)                                                             \
    TN_CASE_DEFINE(op, run(w, &(struct product){.quant = k->quant_##form,                          \
                                                .x_bytes = tn_case_##form##_bytes,                 \
                                                .member = k->op}))
ROUNDED_CASE(gemv_blocks_x8, x8, gemv)
ROUNDED_CASE(gemm_blocks_x8, x8, gemm)
ROUNDED_CASE(gemv_blocks_x16, x16, gemv)
ROUNDED_CASE(gemm_blocks_x16, x16, gemm)
#undef ROUNDED_CASE
TN_CASE_DEFINE(gemv_blocks_f32, run(w, &(struct product){.gemv_f32 = k->gemv_blocks_f32}))

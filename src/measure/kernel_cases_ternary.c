/* SPDX-License-Identifier: MIT
 *
 * The kernel cases of ternary products: one token, several tokens, and scales per row or group.
 *
 * All work on the model's own matrices where it has them.
 */
#include <string.h>

#include "base/bits.h"
#include "kern/pack.h"
#include "measure/kernel_case_work.h"

/* Matrix i of a layer, i < TN_N_MATRICES. */
static const struct tn_ternary *matrix_of(const struct tn_case_work *w, uint32_t i_layer,
                                          uint32_t i)
{
    return &w->model->weights.layers[i_layer].matrices[i].t.w;
}

/* Sets the input of a matrix, with zeros beyond its columns. */
static void set_input(struct tn_case_work *w, uint32_t cols)
{
    if (w->x_cols == cols)
        return;
    memset(w->x, 0, (size_t)w->size.n_tokens * w->widest);
    for (uint32_t t = 0; t < w->size.n_tokens; t++)
        memcpy(w->x + (size_t)t * w->widest, w->random + (size_t)t * w->widest, cols);
    w->x_cols = cols;
}

typedef uint64_t matrix_fn(struct tn_case_work *w, const struct tn_kernels *k,
                           const struct tn_ternary *m);

/* Runs fn on every matrix of that layout in the first layers. */
static uint64_t each_matrix(struct tn_case_work *w, const struct tn_kernels *k, uint32_t layout,
                            uint32_t n_layers, matrix_fn *fn)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < TN_MIN(n_layers, tn_case_config(w)->n_layer); i++)
        for (uint32_t j = 0; j < TN_N_MATRICES; j++) {
            const struct tn_ternary *m = matrix_of(w, i, j);
            if (tn_case_is_stopped(w))
                return bytes;
            if (m->layout != layout)
                continue;
            set_input(w, m->cols);
            bytes += fn(w, k, m);
        }
    return bytes;
}

static uint64_t weight_bytes(const struct tn_ternary *m, uint32_t n_rows)
{
    return (uint64_t)n_rows * m->cols / 4;
}

uint64_t tn_case_lut_t2(struct tn_case_work *w, const struct tn_kernels *k)
{
    set_input(w, tn_case_config(w)->hidden);
    /* the table's format is private to the level */
    k->lut_t2(w->prepared, w->x, tn_case_config(w)->hidden);
    return tn_case_config(w)->hidden + TN_LUT_BYTES(tn_case_config(w)->hidden);
}

static uint64_t gemv_t2(struct tn_case_work *w, const struct tn_kernels *k,
                        const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    k->lut_t2(w->prepared, w->x, m->cols);
    k->gemv_t2_i8(w->ints, m, 0, (uint32_t)tn_align_up(n, TERN_T2_TILE_ROWS), w->prepared);
    tn_case_note(w, w->ints, n * sizeof(int32_t));
    return weight_bytes(m, n);
}

TN_CASE_DEFINE(gemv_t2_i8, each_matrix(w, k, TERN_LAYOUT_T2, w->size.n_layers, gemv_t2))

uint64_t tn_case_prep_r2(struct tn_case_work *w, const struct tn_kernels *k)
{
    set_input(w, tn_case_config(w)->hidden);
    k->prep_r2(w->prepared, w->x, tn_case_config(w)->hidden);
    return tn_case_config(w)->hidden + TN_PREP_R2_BYTES(tn_case_config(w)->hidden);
}

static uint64_t gemv_r2(struct tn_case_work *w, const struct tn_kernels *k,
                        const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    k->prep_r2(w->prepared, w->x, m->cols);
    k->gemv_r2_i8(w->ints, m, w->index, n, w->prepared);
    tn_case_note(w, w->ints, n * sizeof(int32_t));
    return weight_bytes(m, n);
}

TN_CASE_DEFINE(gemv_r2_i8, each_matrix(w, k, TERN_LAYOUT_R2, w->size.n_layers, gemv_r2))

/* Two inputs; rows use the first, the second or both in turn. */
static uint64_t few_r2(struct tn_case_work *w, const struct tn_kernels *k,
                       const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    uint8_t takers[TN_GEMM_ROWS];
    for (uint32_t i = 0; i < TN_GEMM_ROWS; i++)
        takers[i] = (uint8_t)(1 + i % 3);
    for (uint32_t t = 0; t < 2; t++)
        w->x_sum[t] = k->sum_i8(w->x + (size_t)t * w->widest, tn_kern_pad(m->cols));
    for (uint32_t row = 0; row < n && !tn_case_is_stopped(w); row += TN_GEMM_ROWS) {
        memset(w->ints, 0, 2 * TN_GEMM_ROWS * sizeof(int32_t));
        k->few_r2_i8(w->ints, TN_GEMM_ROWS, m, w->index + row, takers,
                     TN_MIN(TN_GEMM_ROWS, n - row), w->x, w->widest, w->x_sum);
        tn_case_note(w, w->ints, 2 * TN_GEMM_ROWS * sizeof(int32_t));
    }
    return weight_bytes(m, n);
}

TN_CASE_DEFINE(few_r2_i8, each_matrix(w, k, TERN_LAYOUT_R2, w->size.n_layers, few_r2))

static uint64_t gemv_c2(struct tn_case_work *w, const struct tn_kernels *k,
                        const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    const uint32_t end = (uint32_t)tn_align_up(n, TERN_C2_ROW_ALIGN);
    for (uint32_t row = 0; row < end; row += TN_C2_MAX_ROWS) {
        k->gemv_c2_i8(w->ints, m, row, TN_MIN(row + TN_C2_MAX_ROWS, end), w->index, w->x, m->cols);
        tn_case_note(w, w->ints, TN_MIN(TN_C2_MAX_ROWS, n - row) * sizeof(int32_t));
    }
    return weight_bytes(m, n);
}

TN_CASE_DEFINE(gemv_c2_i8, each_matrix(w, k, TERN_LAYOUT_C2, w->size.n_layers, gemv_c2))

uint64_t tn_case_sum_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const int32_t sum = k->sum_i8(w->random, w->widest);
    tn_case_note(w, &sum, sizeof sum);
    return w->widest;
}

static uint64_t gemm(struct tn_case_work *w, const struct tn_kernels *k, const struct tn_ternary *m)
{
    tn_gemm_i8_fn *fn = m->layout == TERN_LAYOUT_T2   ? k->gemm_t2_i8
                        : m->layout == TERN_LAYOUT_R2 ? k->gemm_r2_i8
                                                      : k->gemm_c2_i8;
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    for (uint32_t t = 0; t < w->size.n_tokens; t++)
        w->x_sum[t] = k->sum_i8(w->x + (size_t)t * w->widest, tn_kern_pad(m->cols));
    for (uint32_t row = 0; row < n && !tn_case_is_stopped(w); row += TN_GEMM_ROWS) {
        fn(w->ints, TN_GEMM_ROWS, m, row, row + TN_GEMM_ROWS, w->x, w->widest, w->x_sum,
           w->size.n_tokens, w->scratch);
        for (uint32_t t = 0; t < w->size.n_tokens; t++)
            tn_case_note(w, w->ints + t * TN_GEMM_ROWS,
                         TN_MIN(TN_GEMM_ROWS, n - row) * sizeof(int32_t));
    }
    return weight_bytes(m, n);
}

TN_CASE_DEFINE(gemm_t2_i8, each_matrix(w, k, TERN_LAYOUT_T2, w->size.n_gemm, gemm))
TN_CASE_DEFINE(gemm_r2_i8, each_matrix(w, k, TERN_LAYOUT_R2, w->size.n_gemm, gemm))
TN_CASE_DEFINE(gemm_c2_i8, each_matrix(w, k, TERN_LAYOUT_C2, w->size.n_gemm, gemm))

/* ---- scales per row and group ---- */

/* The model's first matrix with scales per group; else the first in layout T2 with an invented
 * scale per row; false if stand-ins are disabled. */
static bool scaled_matrix(struct tn_case_work *w, struct tn_scaled_ternary *out)
{
    *out = w->model->weights.layers[0].matrices[0].t;
    if (out->scales && out->w.layout == TERN_LAYOUT_T2)
        return true;
    for (uint32_t j = 0; j < TN_N_MATRICES && w->size.with_stand_ins; j++) {
        const struct tn_ternary *m = matrix_of(w, 0, j);
        if (m->layout != TERN_LAYOUT_T2 || tn_n_scales(m->rows, m->cols, m->cols) > w->widest)
            continue;
        *out = (struct tn_scaled_ternary){.w = *m, .scales = w->yf, .group = m->cols};
        return true;
    }
    return false;
}

/* What rounded inputs of 8 and 16 bits share; the functions of x8 have the types of those of x16.
 */
struct rounded {
    size_t (*bytes)(uint32_t cols); /* bytes of one input */
    tn_quant_x16_fn *quant;
};

static void round_inputs(struct tn_case_work *w, const struct rounded *form, uint32_t cols,
                         uint32_t n_tokens)
{
    for (uint32_t t = 0; t < n_tokens; t++)
        form->quant((char *)w->prepared + t * form->bytes(cols), t % 2 ? w->yf : w->xf, cols);
}

/* One token is timed on all rows; several tokens are compared on some rows only. */
static uint64_t run_scaled_gemv(struct tn_case_work *w, const struct rounded *form,
                                tn_gemv_t2_x16_fn *multiply)
{
    struct tn_scaled_ternary m;
    if (!scaled_matrix(w, &m))
        return 0;
    const uint32_t n = TN_MIN(m.w.rows, w->size.n_rows);
    const uint32_t n_tokens = n > TN_GEMM_ROWS ? 1 : TN_MIN(w->size.n_tokens, 3u);
    round_inputs(w, form, m.w.cols, n_tokens);
    multiply((float *)w->ints, TN_GEMM_ROWS, &m, 0, (uint32_t)tn_align_up(n, TERN_T2_TILE_ROWS),
             w->prepared, n_tokens);
    for (uint32_t t = 0; t < n_tokens; t++)
        tn_case_note(w, w->ints + t * TN_GEMM_ROWS, n * sizeof(float));
    return weight_bytes(&m.w, n);
}

static uint64_t run_scaled_gemm(struct tn_case_work *w, const struct rounded *form,
                                tn_gemm_t2_x16_fn *multiply)
{
    struct tn_scaled_ternary m;
    if (!scaled_matrix(w, &m))
        return 0;
    const uint32_t n_tokens = w->size.n_tokens, n = TN_MIN(m.w.rows, TN_GEMM_ROWS);
    round_inputs(w, form, m.w.cols, n_tokens);
    multiply((float *)w->ints, TN_GEMM_ROWS, &m, 0, TN_GEMM_ROWS, w->prepared, n_tokens,
             w->scratch);
    for (uint32_t t = 0; t < n_tokens; t++)
        tn_case_note(w, w->ints + t * TN_GEMM_ROWS, n * sizeof(float));
    return weight_bytes(&m.w, n);
}

#define ROUNDED_CASE(op, form, run)                                                                \
    TN_CASE_DEFINE(                                                                                \
        op, run(w, &(struct rounded){tn_case_##form##_bytes, k->quant_##form}, k->op))
ROUNDED_CASE(gemv_t2_x16, x16, run_scaled_gemv)
ROUNDED_CASE(gemm_t2_x16, x16, run_scaled_gemm)
ROUNDED_CASE(gemv_t2_x8, x8, run_scaled_gemv)
ROUNDED_CASE(gemm_t2_x8, x8, run_scaled_gemm)
#undef ROUNDED_CASE

uint64_t tn_case_gemv_t2_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    struct tn_scaled_ternary m;
    if (!scaled_matrix(w, &m))
        return 0;
    const uint32_t n = TN_MIN(m.w.rows, w->size.n_rows);
    memset(w->floats, 0, tn_kern_pad(m.w.cols) * sizeof(float));
    memcpy(w->floats, w->xf, m.w.cols * sizeof(float));
    k->gemv_t2_f32((float *)w->ints, &m, 0, (uint32_t)tn_align_up(n, TERN_T2_TILE_ROWS),
                   w->floats);
    tn_case_note(w, w->ints, n * sizeof(float));
    return weight_bytes(&m.w, n);
}

/* Runs that fit into w->scratch. */
#define SCRATCH_RUNS (TN_KERNEL_SCRATCH_BYTES / TERN_T2_RUN_BYTES)

static void unpack_runs(struct tn_case_work *w, const struct tn_kernels *k, const uint8_t *src,
                        size_t n_runs)
{
    for (size_t i = 0; i < n_runs && !tn_case_is_stopped(w); i += SCRATCH_RUNS) {
        const uint32_t n = (uint32_t)TN_MIN(SCRATCH_RUNS, n_runs - i);
        k->unpack_t5(w->scratch, TERN_T2_RUN_BYTES, src + i * TERN_T5_RUN_BYTES, n);
        tn_case_note(w, w->scratch, n * (size_t)TERN_T2_RUN_BYTES);
    }
}

static uint64_t unpack_t5(struct tn_case_work *w, const struct tn_kernels *k,
                          const struct tn_ternary *m)
{
    const uint32_t n = (uint32_t)tn_align_up(TN_MIN(m->rows, w->size.n_rows), TERN_T2_TILE_ROWS);
    const uint64_t n_bytes = tn_layout_size(TERN_LAYOUT_T5, n, m->cols);
    unpack_runs(w, k, m->data, (size_t)n_bytes / TERN_T5_RUN_BYTES);
    return n_bytes;
}

/* Random bytes if stand-ins are enabled, then the model's matrices. */
uint64_t tn_case_unpack_t5(struct tn_case_work *w, const struct tn_kernels *k)
{
    if (w->size.with_stand_ins)
        unpack_runs(w, k, w->blocks, TN_CASE_BLOCKS_BYTES / TERN_T5_RUN_BYTES);
    return each_matrix(w, k, TERN_LAYOUT_T5, w->size.n_layers, unpack_t5);
}

/* SPDX-License-Identifier: MIT
 *
 * The cases: one function per operation.  Matrices, tables and norms are the file's; activations
 * and cache are pseudo-random, always the same.
 */
#define XXH_INLINE_ALL
#include "measure/kernel_cases.h"

#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"
#include "kern/pack.h"
#include "measure/kernel_cases_blocks.h"
#include "model/kvcache.h"

#define STAND_IN_ROWS 8u
#define TABLE_ROWS 1024u /* between two looks at should_stop */

/* ---- what the model has ---- */

static const struct tern_file_config *config_of(const struct tn_case_work *w)
{
    return w->model->file.spec.config;
}

/* Matrix i of a layer, i < N_MATRICES. */
#define N_MATRICES TN_N_MATRICES

static const struct tn_ternary *matrix_of(const struct tn_case_work *w, uint32_t i_layer,
                                          uint32_t i)
{
    return &w->model->weights.layers[i_layer].matrices[i].t.w;
}

static uint32_t cache_dim(const struct tn_case_work *w)
{
    return tn_kv_dim(config_of(w)->head_dim);
}

/* Query heads that share a key head. */
static uint32_t queries_of(const struct tn_case_work *w)
{
    return config_of(w)->n_head / config_of(w)->n_kv_head;
}

static uint32_t q_dim(const struct tn_case_work *w)
{
    return config_of(w)->n_head * config_of(w)->head_dim;
}

/* ---- results ---- */

static void note(struct tn_case_work *w, const void *result, size_t n_bytes)
{
    if (w->hashes)
        w->hash = XXH3_64bits_withSeed(result, n_bytes, w->hash);
}

static bool is_stopped(const struct tn_case_work *w)
{
    return w->should_stop && w->should_stop(w->arg);
}

/* The input of a matrix: zeros behind its columns. */
static void set_input(struct tn_case_work *w, uint32_t cols)
{
    if (w->x_cols == cols)
        return;
    memset(w->x, 0, (size_t)w->size.n_tokens * w->widest);
    for (uint32_t t = 0; t < w->size.n_tokens; t++)
        memcpy(w->x + (size_t)t * w->widest, w->random + (size_t)t * w->widest, cols);
    w->x_cols = cols;
}

/* ---- ternary products ---- */

typedef uint64_t matrix_fn(struct tn_case_work *w, const struct tn_kernels *k,
                           const struct tn_ternary *m);

/* Every matrix of that layout in the first layers. */
static uint64_t each_matrix(struct tn_case_work *w, const struct tn_kernels *k, uint32_t layout,
                            uint32_t n_layers, matrix_fn *fn)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < TN_MIN(n_layers, config_of(w)->n_layer); i++)
        for (uint32_t j = 0; j < N_MATRICES; j++) {
            const struct tn_ternary *m = matrix_of(w, i, j);
            if (is_stopped(w))
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

static uint64_t run_lut_t2(struct tn_case_work *w, const struct tn_kernels *k)
{
    set_input(w, config_of(w)->hidden);
    k->lut_t2(w->prepared, w->x, config_of(w)->hidden); /* private to the level */
    return config_of(w)->hidden + TN_LUT_BYTES(config_of(w)->hidden);
}

static uint64_t gemv_t2(struct tn_case_work *w, const struct tn_kernels *k,
                        const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    k->lut_t2(w->prepared, w->x, m->cols);
    k->gemv_t2_i8(w->ints, m, 0, (uint32_t)tn_align_up(n, TERN_T2_TILE_ROWS), w->prepared);
    note(w, w->ints, n * sizeof(int32_t));
    return weight_bytes(m, n);
}

static uint64_t run_gemv_t2_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return each_matrix(w, k, TERN_LAYOUT_T2, w->size.n_layers, gemv_t2);
}

static uint64_t run_prep_r2(struct tn_case_work *w, const struct tn_kernels *k)
{
    set_input(w, config_of(w)->hidden);
    k->prep_r2(w->prepared, w->x, config_of(w)->hidden);
    return config_of(w)->hidden + TN_PREP_R2_BYTES(config_of(w)->hidden);
}

static uint64_t gemv_r2(struct tn_case_work *w, const struct tn_kernels *k,
                        const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    k->prep_r2(w->prepared, w->x, m->cols);
    k->gemv_r2_i8(w->ints, m, w->index, n, w->prepared);
    note(w, w->ints, n * sizeof(int32_t));
    return weight_bytes(m, n);
}

static uint64_t run_gemv_r2_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return each_matrix(w, k, TERN_LAYOUT_R2, w->size.n_layers, gemv_r2);
}

/* Two inputs; rows take the first, the second or both in turn. */
static uint64_t few_r2(struct tn_case_work *w, const struct tn_kernels *k,
                       const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    uint8_t takers[TN_GEMM_ROWS];
    for (uint32_t i = 0; i < TN_GEMM_ROWS; i++)
        takers[i] = (uint8_t)(1 + i % 3);
    for (uint32_t t = 0; t < 2; t++)
        w->x_sum[t] = k->sum_i8(w->x + (size_t)t * w->widest, tn_kern_pad(m->cols));
    for (uint32_t row = 0; row < n && !is_stopped(w); row += TN_GEMM_ROWS) {
        memset(w->ints, 0, 2 * TN_GEMM_ROWS * sizeof(int32_t));
        k->few_r2_i8(w->ints, TN_GEMM_ROWS, m, w->index + row, takers,
                     TN_MIN(TN_GEMM_ROWS, n - row), w->x, w->widest, w->x_sum);
        note(w, w->ints, 2 * TN_GEMM_ROWS * sizeof(int32_t));
    }
    return weight_bytes(m, n);
}

static uint64_t run_few_r2_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return each_matrix(w, k, TERN_LAYOUT_R2, w->size.n_layers, few_r2);
}

static uint64_t gemv_c2(struct tn_case_work *w, const struct tn_kernels *k,
                        const struct tn_ternary *m)
{
    const uint32_t n = TN_MIN(m->rows, w->size.n_rows);
    const uint32_t end = (uint32_t)tn_align_up(n, TERN_C2_ROW_ALIGN);
    for (uint32_t row = 0; row < end; row += TN_C2_MAX_ROWS) {
        k->gemv_c2_i8(w->ints, m, row, TN_MIN(row + TN_C2_MAX_ROWS, end), w->index, w->x, m->cols);
        note(w, w->ints, TN_MIN(TN_C2_MAX_ROWS, n - row) * sizeof(int32_t));
    }
    return weight_bytes(m, n);
}

static uint64_t run_gemv_c2_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return each_matrix(w, k, TERN_LAYOUT_C2, w->size.n_layers, gemv_c2);
}

static uint64_t run_sum_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const int32_t sum = k->sum_i8(w->random, w->widest);
    note(w, &sum, sizeof sum);
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
    for (uint32_t row = 0; row < n && !is_stopped(w); row += TN_GEMM_ROWS) {
        fn(w->ints, TN_GEMM_ROWS, m, row, row + TN_GEMM_ROWS, w->x, w->widest, w->x_sum,
           w->size.n_tokens, w->scratch);
        for (uint32_t t = 0; t < w->size.n_tokens; t++)
            note(w, w->ints + t * TN_GEMM_ROWS, TN_MIN(TN_GEMM_ROWS, n - row) * sizeof(int32_t));
    }
    return weight_bytes(m, n);
}

static uint64_t run_gemm_t2_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return each_matrix(w, k, TERN_LAYOUT_T2, w->size.n_gemm, gemm);
}

static uint64_t run_gemm_r2_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return each_matrix(w, k, TERN_LAYOUT_R2, w->size.n_gemm, gemm);
}

static uint64_t run_gemm_c2_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return each_matrix(w, k, TERN_LAYOUT_C2, w->size.n_gemm, gemm);
}

/* ---- ternary products with scales per row and group ---- */

/* The model's first matrix with scales per group; else the first one in layout T2 with a scale for
 * each row that a stand-in makes up, or false where stand-ins are not asked for. */
static bool scaled_matrix(struct tn_case_work *w, struct tn_scaled_ternary *out)
{
    *out = w->model->weights.layers[0].matrices[0].t;
    if (out->scales)
        return true;
    for (uint32_t j = 0; j < N_MATRICES && w->size.with_stand_ins; j++) {
        const struct tn_ternary *m = matrix_of(w, 0, j);
        if (m->layout != TERN_LAYOUT_T2 || tn_n_scales(m->rows, m->cols, m->cols) > w->widest)
            continue;
        *out = (struct tn_scaled_ternary){.w = *m, .scales = w->yf, .group = m->cols};
        return true;
    }
    return false;
}

static uint64_t run_quant_x16(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->hidden;
    memset(w->prepared, 0, TN_X16_BYTES(n)); /* between its parts nothing is written */
    k->quant_x16(w->prepared, w->xf, n);
    note(w, w->prepared, TN_X16_BYTES(n));
    return n * sizeof(float) + TN_X16_BYTES(n);
}

/* What the forms of rounded inputs share; the functions of x8 have the types of those of x16. */
struct rounded {
    size_t (*bytes)(uint32_t cols); /* of one input */
    tn_quant_x16_fn *quant;
};

static void round_inputs(struct tn_case_work *w, const struct rounded *form, uint32_t cols,
                         uint32_t n_tokens)
{
    for (uint32_t t = 0; t < n_tokens; t++)
        form->quant((char *)w->prepared + t * form->bytes(cols), t % 2 ? w->yf : w->xf, cols);
}

/* All rows are timed, as for one token; of a part several tokens are compared. */
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
        note(w, w->ints + t * TN_GEMM_ROWS, n * sizeof(float));
    return weight_bytes(&m.w, n);
}

static uint64_t run_scaled_gemm(struct tn_case_work *w, const struct rounded *form,
                                tn_gemm_t2_x16_fn *multiply)
{
    struct tn_scaled_ternary m;
    if (!scaled_matrix(w, &m))
        return 0;
    const uint32_t n_tokens = TN_MIN(w->size.n_tokens, 3u), n = TN_MIN(m.w.rows, TN_GEMM_ROWS);
    round_inputs(w, form, m.w.cols, n_tokens);
    multiply((float *)w->ints, TN_GEMM_ROWS, &m, 0, TN_GEMM_ROWS, w->prepared, n_tokens,
             w->scratch);
    for (uint32_t t = 0; t < n_tokens; t++)
        note(w, w->ints + t * TN_GEMM_ROWS, n * sizeof(float));
    return weight_bytes(&m.w, n);
}

static size_t x16_bytes(uint32_t cols)
{
    return TN_X16_BYTES(cols);
}

static uint64_t run_gemv_t2_x16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_scaled_gemv(w, &(struct rounded){x16_bytes, k->quant_x16}, k->gemv_t2_x16);
}

static uint64_t run_gemm_t2_x16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_scaled_gemm(w, &(struct rounded){x16_bytes, k->quant_x16}, k->gemm_t2_x16);
}

static uint64_t run_quant_x8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->hidden;
    k->quant_x8(w->prepared, w->xf, n);
    note(w, w->prepared, TN_X8_BYTES(n));
    return n * sizeof(float) + TN_X8_BYTES(n);
}

static size_t x8_bytes(uint32_t cols)
{
    return TN_X8_BYTES(cols);
}

static uint64_t run_gemv_t2_x8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_scaled_gemv(w, &(struct rounded){x8_bytes, k->quant_x8}, k->gemv_t2_x8);
}

static uint64_t run_gemm_t2_x8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_scaled_gemm(w, &(struct rounded){x8_bytes, k->quant_x8}, k->gemm_t2_x8);
}

static uint64_t run_gemv_t2_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    struct tn_scaled_ternary m;
    if (!scaled_matrix(w, &m))
        return 0;
    const uint32_t n = TN_MIN(m.w.rows, w->size.n_rows);
    memset(w->floats, 0, tn_kern_pad(m.w.cols) * sizeof(float));
    memcpy(w->floats, w->xf, m.w.cols * sizeof(float));
    k->gemv_t2_f32((float *)w->ints, &m, 0, (uint32_t)tn_align_up(n, TERN_T2_TILE_ROWS),
                   w->floats);
    note(w, w->ints, n * sizeof(float));
    return weight_bytes(&m.w, n);
}

static uint64_t run_add_scaled_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->hidden;
    memcpy(w->floats, w->xf, n * sizeof(float));
    k->add_scaled_f32(w->floats, w->yf, n, 0.37f);
    note(w, w->floats, n * sizeof(float));
    return n * 3 * sizeof(float);
}

/* kernel_cases_blocks.c */
#define run_gemv_blocks_x8 tn_case_gemv_blocks_x8
#define run_gemm_blocks_x8 tn_case_gemm_blocks_x8
#define run_gemv_blocks_x16 tn_case_gemv_blocks_x16
#define run_gemm_blocks_x16 tn_case_gemm_blocks_x16
#define run_gemv_blocks_f32 tn_case_gemv_blocks_f32

/* ---- activations ---- */

static uint64_t run_quant_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->ffn;
    const float factor = k->quant_i8(w->bytes, w->xf, n);
    note(w, w->bytes, n);
    note(w, &factor, sizeof factor);
    return n * (sizeof(float) + 1);
}

static uint64_t run_rms_norm_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->hidden;
    k->rms_norm_f32(w->floats, w->xf, w->model->weights.final_norm, n, config_of(w)->rms_eps);
    note(w, w->floats, n * sizeof(float));
    return n * 3 * sizeof(float);
}

/* States in blocks of the largest power of two that divides their width. */
static uint64_t run_hadamard_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->hidden & ~1u, block = n & (~n + 1u);
    if (n == 0)
        return 0;
    memcpy(w->floats, w->xf, n * sizeof(float));
    k->hadamard_f32(w->floats, n, block);
    note(w, w->floats, n * sizeof(float));
    return n * 2 * sizeof(float);
}

static uint64_t run_rms_norm_quant(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->hidden;
    const float factor = k->rms_norm_quant(w->bytes, w->xf, w->model->weights.final_norm, n,
                                           config_of(w)->rms_eps);
    note(w, w->bytes, n);
    note(w, &factor, sizeof factor);
    return n * (2 * sizeof(float) + 1);
}

static uint64_t run_scale_i32_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->ffn;
    k->scale_i32_f32(w->floats, (const int32_t *)w->index, n, 0.37f);
    note(w, w->floats, n * sizeof(float));
    return n * 2 * sizeof(float);
}

static uint64_t run_add_i32_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->hidden;
    memcpy(w->floats, w->xf, n * sizeof(float));
    k->add_i32_f32(w->floats, (const int32_t *)w->index, n, 0.37f);
    note(w, w->floats, n * sizeof(float));
    return n * 3 * sizeof(float);
}

static uint64_t run_gate(struct tn_case_work *w, tn_relu2_mul_f32_fn *gate_mul)
{
    const uint32_t n = config_of(w)->ffn;
    gate_mul(w->floats, w->xf, w->yf, n);
    note(w, w->floats, n * sizeof(float));
    return n * 3 * sizeof(float);
}

static uint64_t run_relu2_mul_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_gate(w, k->relu2_mul_f32);
}

static uint64_t run_silu_mul_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_gate(w, k->silu_mul_f32);
}

static uint64_t run_gelu_mul_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return run_gate(w, k->gelu_mul_f32);
}

static uint64_t run_rope_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const struct tern_file_config *c = config_of(w);
    memcpy(w->floats, w->xf, q_dim(w) * sizeof(float));
    k->rope_f32(w->floats, w->yf, w->yf + c->head_dim / 2, c->n_head, c->head_dim, c->head_dim);
    note(w, w->floats, q_dim(w) * sizeof(float));
    return q_dim(w) * 2 * sizeof(float);
}

static uint64_t run_list_positive_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->ffn;
    memcpy(w->floats, w->xf, n * sizeof(float));
    const uint32_t n_found = k->list_positive_f32((uint32_t *)w->ints, w->floats, n);
    note(w, w->ints, n_found * sizeof(uint32_t));
    note(w, w->floats, n * sizeof(float));
    return n * 2 * sizeof(float);
}

static uint64_t run_list_nonzero_i8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n = config_of(w)->ffn;
    const uint32_t n_found = k->list_nonzero_i8((uint32_t *)w->ints, w->random, n);
    note(w, w->ints, n_found * sizeof(uint32_t));
    return n + n_found * sizeof(uint32_t);
}

/* ---- head ---- */

/* Rows [0, n) of a table that is not in planes, a thousand at a time. */
static uint64_t table_rows(struct tn_case_work *w, const struct tn_kernels *k,
                           const struct tn_matrix *t)
{
    const uint32_t n = TN_MIN(t->rows, w->size.n_rows), cols = t->cols;
    const size_t row_bytes = (size_t)tn_layout_weight_bytes(t->layout, cols);
    for (uint32_t row = 0; row < n && !is_stopped(w); row += TABLE_ROWS) {
        const uint32_t n_now = TN_MIN(TABLE_ROWS, n - row);
        const void *data = (const char *)t->data + row * row_bytes;
        float *dst = (float *)w->ints;
        if (t->layout == TERN_LAYOUT_Q8)
            k->gemv_q8_f32(dst, n_now, data, (const float *)t->scales + row, n_now, cols, w->xf,
                           cols, 1);
        else if (t->layout == TERN_LAYOUT_F32)
            k->gemv_f32_f32(dst, n_now, data, n_now, cols, w->xf, cols, 1);
        else
            (t->layout == TERN_LAYOUT_F16 ? k->gemv_f16_f32 : k->gemv_bf16_f32)(
                dst, n_now, data, n_now, cols, w->xf, cols, 1);
        note(w, dst, n_now * sizeof(float));
    }
    return n * row_bytes;
}

/* The model's head where it has that layout, else a row of random values. */
static uint64_t table(struct tn_case_work *w, const struct tn_kernels *k, uint32_t layout)
{
    const struct tn_matrix *head = &w->model->weights.head;
    const void *random = layout == TERN_LAYOUT_Q8    ? (const void *)w->random
                         : layout == TERN_LAYOUT_F32 ? (const void *)w->yf
                                                     : (const void *)w->halves;
    const struct tn_matrix stand_in = {
        .data = random, .rows = 1, .cols = config_of(w)->hidden, .layout = layout,
        .scales = w->yf};
    if (head->layout == layout)
        return table_rows(w, k, head);
    return w->size.with_stand_ins ? table_rows(w, k, &stand_in) : 0;
}

static uint64_t run_gemv_q8_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return table(w, k, TERN_LAYOUT_Q8);
}

static uint64_t run_gemv_f32_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return table(w, k, TERN_LAYOUT_F32);
}

static uint64_t run_gemv_f16_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return table(w, k, TERN_LAYOUT_F16);
}

static uint64_t run_gemv_bf16_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return table(w, k, TERN_LAYOUT_BF16);
}

/* The head in planes if it has more than i_plane; else the stand-in, or NULL. */
static const struct tn_bit_planes *planes_of(const struct tn_case_work *w, uint32_t i_plane)
{
    const struct tn_bit_planes *head = &w->model->weights.head.planes;
    return head->n_planes > i_plane ? head : w->size.with_stand_ins ? &w->planes : NULL;
}

/* n_planes planes from i_plane on. */
static uint64_t dot_planes(struct tn_case_work *w, tn_dot_plane_fn *dot, uint32_t i_plane,
                           uint32_t n_planes)
{
    const struct tn_bit_planes *m = planes_of(w, i_plane + n_planes - 1);
    const uint32_t n = m ? TN_MIN(m->rows, w->size.n_rows) : 0;
    const int16_t *const x[] = {w->x16, w->x16};
    const uint32_t n_x = w->hashes ? TN_COUNT_OF(x) : 1; /* the kernels for several are others */
    uint64_t n_bytes = 0;
    for (uint32_t row = 0; row < n && !is_stopped(w); row += TERN_PLANE_BLOCK_ROWS) {
        struct tn_plane_rows p = {.n_rows = TN_MIN(TERN_PLANE_BLOCK_ROWS, n - row),
                                  .cols = m->cols};
        for (uint32_t k = 0; k < n_planes; k++)
            p.plane[k] = tn_bit_planes_block(m, row, i_plane + k);
        dot(w->ints, p.n_rows, &p, x, n_x, w->scratch);
        note(w, w->ints, n_x * p.n_rows * sizeof(int32_t));
    }
    for (uint32_t k = 0; k < n_planes && m; k++)
        n_bytes += n * (uint64_t)tn_plane_row(m->cols, i_plane + k);
    return n_bytes;
}

static uint64_t run_dot_u5_i16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return dot_planes(w, k->dot_u5_i16, 0, 2);
}

static uint64_t run_dot_u4_i16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return dot_planes(w, k->dot_u4_i16, 0, 1);
}

static uint64_t run_dot_u1_i16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return dot_planes(w, k->dot_u1_i16, 1, 1);
}

static uint64_t run_dot_u2_i16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return dot_planes(w, k->dot_u2_i16, 3, 1);
}

static uint64_t run_add_i32_f64(struct tn_case_work *w, const struct tn_kernels *k)
{
    double dst[TERN_PLANE_BLOCK_ROWS];
    memcpy(dst, w->sums, sizeof dst);
    k->add_i32_f64(dst, (const int32_t *)w->index, TN_MIN(TERN_PLANE_BLOCK_ROWS, w->widest), 16.0);
    note(w, dst, sizeof dst);
    return sizeof dst * 2 + sizeof dst / 2;
}

static uint64_t run_bound_logits(struct tn_case_work *w, const struct tn_kernels *k)
{
    static const struct tn_bound_terms terms = {.factor = 0.25, .add = 1.5, .base = 2.0,
                                                .slope = 0.01, .norm_x = 30.0, .lost = 0.5,
                                                .slack = 0.001};
    const struct tn_bit_planes *m = planes_of(w, 0);
    if (!m)
        return 0;
    const struct tn_bound_rows rows = {m->scales, m->norms, m->n_planes > 1 ? m->open : NULL};
    const uint32_t n = TN_MIN(m->rows, TERN_PLANE_BLOCK_ROWS);
    float *low = w->floats, *high = w->floats + TERN_PLANE_BLOCK_ROWS;
    k->bound_logits(low, high, w->sums, n, &rows, &terms);
    note(w, low, n * sizeof(float));
    note(w, high, n * sizeof(float));
    return n * (sizeof(double) + 5 * sizeof(float));
}

static uint64_t run_unpack_planes(struct tn_case_work *w, const struct tn_kernels *k)
{
    const struct tn_bit_planes *m = planes_of(w, 0);
    const uint32_t n = m ? TN_MIN(m->rows, TERN_PLANE_BLOCK_ROWS) : 0;
    for (uint32_t row = 0; row < n; row++) {
        k->unpack_planes(w->bytes, m, row);
        note(w, w->bytes, m->cols);
    }
    return m ? (uint64_t)n * m->cols * (tn_bit_planes_bits(m->n_planes) + 8) / 8 : 0;
}

/* ---- attention ---- */

/* The blocks of keys or values of one type that fit into the cache, one after the other. */
#define EACH_BLOCK(w, at, block_bytes)                                                             \
    for (size_t at = 0; (at == 0 || at + (block_bytes) <= (w)->size.cache_bytes) &&                \
                        !is_stopped(w);                                                            \
         at += (block_bytes))

static size_t block_bytes(const struct tn_case_work *w, size_t value_bytes)
{
    return TN_KV_BLOCK * value_bytes * cache_dim(w);
}

static size_t total_bytes(const struct tn_case_work *w, size_t value_bytes)
{
    const size_t block = block_bytes(w, value_bytes);
    return TN_MAX(w->size.cache_bytes / block, (size_t)1) * block;
}

static uint64_t qk(struct tn_case_work *w, tn_attn_qk_fn *fn, size_t value_bytes)
{
    const uint32_t n_q = queries_of(w);
    EACH_BLOCK(w, at, block_bytes(w, value_bytes)) {
        fn(w->s, TN_KV_BLOCK, w->q, n_q, w->cache + at, w->size.n_pos, cache_dim(w), 0.125f);
        for (uint32_t i = 0; i < n_q; i++)
            note(w, w->s + i * TN_KV_BLOCK, w->size.n_pos * sizeof(float));
    }
    return total_bytes(w, value_bytes);
}

static uint64_t pv(struct tn_case_work *w, tn_attn_pv_fn *fn, size_t value_bytes)
{
    const uint32_t n_q = queries_of(w), dim = cache_dim(w);
    EACH_BLOCK(w, at, block_bytes(w, value_bytes)) {
        fn(w->o, w->p, TN_KV_BLOCK, n_q, w->cache + at, w->size.n_pos, dim);
        note(w, w->o, (size_t)n_q * dim * sizeof(float));
    }
    return total_bytes(w, value_bytes);
}

static uint64_t run_attn_qk_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return qk(w, k->attn_qk_f32, sizeof(float));
}

static uint64_t run_attn_qk_f16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return qk(w, k->attn_qk_f16, sizeof(uint16_t));
}

static uint64_t run_attn_pv_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return pv(w, k->attn_pv_f32, sizeof(float));
}

static uint64_t run_attn_pv_f16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return pv(w, k->attn_pv_f16, sizeof(uint16_t));
}

static uint64_t run_attn_qk_q8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n_q = queries_of(w), dim = cache_dim(w);
    EACH_BLOCK(w, at, block_bytes(w, 1)) {
        k->attn_qk_q8(w->s, TN_KV_BLOCK, w->random, w->halves, n_q, w->cache + at, w->halves,
                      w->size.n_pos, dim, 0.125f);
        for (uint32_t i = 0; i < n_q; i++)
            note(w, w->s + i * TN_KV_BLOCK, w->size.n_pos * sizeof(float));
    }
    return total_bytes(w, 1);
}

static uint64_t run_attn_pv_q8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n_q = queries_of(w), dim = cache_dim(w);
    EACH_BLOCK(w, at, block_bytes(w, 1)) {
        k->attn_pv_q8(w->o, w->p, TN_KV_BLOCK, n_q, w->cache + at, w->halves, w->size.n_pos, dim,
                      NULL);
        note(w, w->o, (size_t)n_q * dim * sizeof(float));
    }
    return total_bytes(w, 1);
}

static uint64_t run_max_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const float max = k->max_f32(w->p, TN_KV_BLOCK);
    note(w, &max, sizeof max);
    return TN_KV_BLOCK * sizeof(float);
}

static uint64_t run_exp_sum_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    memcpy(w->floats, w->p, TN_KV_BLOCK * sizeof(float));
    const float sum = k->exp_sum_f32(w->floats, TN_KV_BLOCK, 1.0f);
    note(w, w->floats, TN_KV_BLOCK * sizeof(float));
    note(w, &sum, sizeof sum);
    return TN_KV_BLOCK * 2 * sizeof(float);
}

static uint64_t store(struct tn_case_work *w, tn_kv_store_fn *fn, size_t value_bytes,
                      uint32_t n_scales)
{
    uint16_t *scales = (uint16_t *)w->ints;
    const uint32_t dim = cache_dim(w);
    fn(w->bytes, scales, w->q, dim);
    note(w, w->bytes, dim * value_bytes);
    note(w, scales, n_scales * sizeof(uint16_t));
    return dim * (sizeof(float) + value_bytes) + n_scales * sizeof(uint16_t);
}

static uint64_t run_kv_store_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return store(w, k->kv_store_f32, sizeof(float), 0);
}

static uint64_t run_kv_store_f16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return store(w, k->kv_store_f16, sizeof(uint16_t), 0);
}

static uint64_t run_kv_store_q8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return store(w, k->kv_store_q8, 1, tn_kv_q8_scales(cache_dim(w)));
}

const struct tn_kernel_case tn_kernel_cases[] = {
#define TN_CASE(op) {#op, run_##op},
    TN_KERN_OPS(TN_CASE)
#undef TN_CASE
};
const uint32_t tn_n_kernel_cases = TN_COUNT_OF(tn_kernel_cases);

/* ---- memory ---- */

static void fill(struct tn_case_work *w)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    for (size_t i = 0; i < (size_t)w->size.n_tokens * w->widest; i++)
        w->random[i] = (int8_t)((int)(tn_rng_next(&rng) % 255) - 127);
    for (uint32_t i = 0; i < w->widest; i++) {
        w->xf[i] = 8.0f * (tn_rng_f32(&rng) - 0.5f);
        w->yf[i] = tn_rng_f32(&rng) - 0.25f;
        w->x16[i] = (int16_t)(i < config_of(w)->hidden ? w->random[i] : 0);
        w->halves[i] = tn_f32_to_f16(tn_rng_f32(&rng));
        w->index[i] = i;
    }
    for (uint32_t i = 0; i < TERN_PLANE_BLOCK_ROWS; i++)
        w->sums[i] = 100.0 * (tn_rng_f32(&rng) - 0.5f);
    for (uint32_t i = 0; i < queries_of(w) * cache_dim(w); i++)
        w->q[i] = tn_rng_f32(&rng) - 0.5f;
    for (uint32_t i = 0; i < queries_of(w) * TN_KV_BLOCK; i++)
        w->p[i] = tn_rng_f32(&rng);
    /* Halves of about 1/8 to 1, either sign; as floats they are small. */
    for (size_t i = 0; i + 1 < w->size.cache_bytes; i += 2) {
        const uint64_t x = tn_rng_next(&rng);
        w->cache[i] = (unsigned char)(x | 1);
        w->cache[i + 1] = (unsigned char)((0x30 + (x >> 8) % 12) | (x >> 16 & 0x80));
    }
}

/* A small table of four planes, for kernels that the model's own head does not need. */
static bool make_planes(struct tn_case_work *w)
{
    const uint32_t rows = STAND_IN_ROWS, cols = config_of(w)->hidden;
    const size_t n_scales = (size_t)tn_layout_scale_bytes(TERN_LAYOUT_Q8_PLANES, rows, cols);
    int8_t *q = tn_alloc((size_t)rows * cols);
    w->planes_data = tn_alloc_aligned(tn_bit_planes_block_bytes(rows, cols, TN_MAX_PLANES), 64);
    w->planes_scales = tn_alloc_aligned(tn_align_up(n_scales, 64), 64);
    if (q && w->planes_data && w->planes_scales) {
        for (uint32_t i = 0; i < rows; i++) {
            ((float *)w->planes_scales)[i] = 0.01f;
            for (uint32_t j = 0; j < cols; j++)
                q[(size_t)i * cols + j] = w->random[(i * 131 + j) % w->widest];
        }
        tn_bit_planes_offsets(tn_bit_planes_place_offsets(w->planes_scales, rows, TN_MAX_PLANES), q,
                              rows, cols);
        tn_bit_planes_pack(w->planes_data, w->planes_scales, q, 0, rows, rows, cols, TN_MAX_PLANES);
        w->planes = tn_bit_planes_view(w->planes_data, w->planes_scales, rows, cols, TN_MAX_PLANES);
    }
    tn_free(q);
    return w->planes.n_planes > 0;
}

static bool allocate(struct tn_case_work *w)
{
    const size_t widest = w->widest, n_q = queries_of(w), n_tokens = w->size.n_tokens;
    const size_t ints = TN_MAX(TN_MAX(n_tokens * TN_GEMM_ROWS, widest), (size_t)TN_C2_MAX_ROWS);
    const struct {
        void *slot; /* of a pointer */
        size_t n_bytes;
    } list[] = {
        {&w->random, n_tokens * widest},
        {&w->x, n_tokens * widest},
        {&w->x_sum, n_tokens * sizeof(int32_t)},
        {&w->xf, widest * sizeof(float)},
        {&w->yf, widest * sizeof(float)},
        {&w->x16, widest * sizeof(int16_t)},
        {&w->halves, widest * sizeof(uint16_t)},
        {&w->index, widest * sizeof(uint32_t)},
        {&w->sums, TERN_PLANE_BLOCK_ROWS * sizeof(double)},
        {&w->prepared, TN_LUT_BYTES(w->widest)},
        {&w->scratch, TN_KERNEL_SCRATCH_BYTES},
        {&w->ints, ints * sizeof(int32_t)},
        {&w->floats, TN_MAX(widest, (size_t)TERN_PLANE_BLOCK_ROWS * 2) * sizeof(float)},
        {&w->bytes, 4 * widest},
        {&w->q, n_q * cache_dim(w) * sizeof(float)},
        {&w->p, n_q * TN_KV_BLOCK * sizeof(float)},
        {&w->s, n_q * TN_KV_BLOCK * sizeof(float)},
        {&w->o, n_q * cache_dim(w) * sizeof(float)},
        {&w->cache, w->size.cache_bytes},
        {&w->blocks, TN_CASE_BLOCKS_BYTES},
    };
    bool good = true;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        void *memory = tn_alloc_aligned(tn_align_up(list[i].n_bytes, 64), 64);
        memcpy(list[i].slot, &memory, sizeof memory);
        good = good && memory;
    }
    return good;
}

tern_status tn_case_work_init(struct tn_case_work *out, const struct tern_model *model,
                              const struct tn_case_size *size, struct tern_error *err)
{
    *out = (struct tn_case_work){.model = model, .size = *size};
    const struct tern_file_config *c = config_of(out);
    const uint32_t dim = cache_dim(out);
    uint32_t widest = TN_MAX(TN_MAX(c->hidden, c->ffn), TN_MAX(q_dim(out), queries_of(out) * dim));
    widest = TN_MAX(widest, tn_kv_q8_scales(dim) * TN_KV_BLOCK); /* scales of a block */
    widest = TN_MAX(widest, TABLE_ROWS);                         /* results of a table */
    out->widest = tn_kern_pad(widest);
    out->size.cache_bytes = TN_MAX(size->cache_bytes, block_bytes(out, sizeof(float)));
    bool good = allocate(out);
    if (good) {
        fill(out);
        tn_case_fill_blocks(out);
        good = !size->with_stand_ins || make_planes(out);
    }
    if (good)
        return TERN_OK;
    tn_case_work_fini(out);
    return tn_fail(err, TERN_MEMORY, "no memory to try the kernels");
}

void tn_case_work_fini(struct tn_case_work *w)
{
    void *const list[] = {w->random, w->x,    w->x_sum,    w->xf,   w->yf,    w->x16, w->halves,
                          w->index,  w->sums, w->prepared, w->scratch, w->ints,  w->floats,
                          w->bytes,  w->q,    w->p,        w->s,    w->o,     w->cache,
                          w->planes_data, w->planes_scales, w->blocks};
    for (size_t i = 0; i < TN_COUNT_OF(list); i++)
        tn_free_aligned(list[i]);
    *w = (struct tn_case_work){0};
}

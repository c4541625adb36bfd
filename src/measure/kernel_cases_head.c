/* SPDX-License-Identifier: MIT
 *
 * The kernel cases of the head: tables of rows, and bit planes.
 *
 * Use the model's own head where it has the layout, else a stand-in.
 */
#include "measure/kernel_case_work.h"

/* Multiplies rows [0, n) of a table that is not in planes, a thousand at a time. */
static uint64_t table_rows(struct tn_case_work *w, enum tn_call_op op, void (*fn)(void),
                           const struct tn_matrix *t)
{
    const uint32_t n = TN_MIN(t->rows, w->size.n_rows);
    const size_t row_bytes = (size_t)tn_layout_weight_bytes(t->layout, t->cols);
    for (uint32_t row = 0; row < n && !tn_case_is_stopped(w); row += TN_CASE_TABLE_ROWS) {
        const uint32_t n_now = TN_MIN(TN_CASE_TABLE_ROWS, n - row);
        struct tn_kernel_call c = {.dims = {.n = t->cols, .n_rows = n_now, .n_tokens = 1}};
        tn_case_describe(w, &c, op);
        c.operands[1].data = (void *)((uintptr_t)t->data + row * row_bytes);
        if (op == TN_CALL_gemv_q8_f32)
            c.operands[2].data = (void *)((uintptr_t)t->scales + row * sizeof(float));
        tn_case_call(w, &c, op, fn);
    }
    return n * row_bytes;
}

/* The model's head if it has that layout, else a row of random values. */
static uint64_t table(struct tn_case_work *w, enum tn_call_op op, void (*fn)(void),
                      uint32_t layout)
{
    const struct tn_matrix *head = &w->model->weights.head;
    const void *random = layout == TERN_LAYOUT_Q8    ? (const void *)w->random
                         : layout == TERN_LAYOUT_F32 ? (const void *)w->yf
                                                     : (const void *)w->halves;
    const struct tn_matrix stand_in = {
        .data = random, .rows = 1, .cols = tn_case_config(w)->hidden, .layout = layout,
        .scales = w->yf};
    if (head->layout == layout)
        return table_rows(w, op, fn, head);
    return w->size.with_stand_ins ? table_rows(w, op, fn, &stand_in) : 0;
}

#define TABLE_CASE(op, layout)                                                                     \
    TN_CASE_DEFINE(op, table(w, TN_CALL_##op, (void (*)(void))k->op, layout))
TABLE_CASE(gemv_q8_f32, TERN_LAYOUT_Q8)
TABLE_CASE(gemv_f32_f32, TERN_LAYOUT_F32)
TABLE_CASE(gemv_f16_f32, TERN_LAYOUT_F16)
TABLE_CASE(gemv_bf16_f32, TERN_LAYOUT_BF16)
#undef TABLE_CASE

/* The head in planes if it has more than i_plane; else the stand-in, or NULL. */
static const struct tn_bit_planes *planes_of(const struct tn_case_work *w, uint32_t i_plane)
{
    const struct tn_bit_planes *head = &w->model->weights.head.planes;
    return head->n_planes > i_plane ? head : w->size.with_stand_ins ? &w->planes : NULL;
}

/* Multiplies n_planes planes from i_plane on. */
static uint64_t dot_planes(struct tn_case_work *w, tn_dot_plane_fn *dot, uint32_t i_plane,
                           uint32_t n_planes)
{
    const struct tn_bit_planes *m = planes_of(w, i_plane + n_planes - 1);
    const uint32_t n = m ? TN_MIN(m->rows, w->size.n_rows) : 0;
    const int16_t *const x[] = {w->x16, w->x16};
    /* kernels for several inputs are separate functions */
    const uint32_t n_x = w->hashes ? TN_COUNT_OF(x) : 1;
    uint64_t n_bytes = 0;
    for (uint32_t row = 0; row < n && !tn_case_is_stopped(w); row += TERN_PLANE_BLOCK_ROWS) {
        struct tn_plane_rows p = {.n_rows = TN_MIN(TERN_PLANE_BLOCK_ROWS, n - row),
                                  .cols = m->cols};
        for (uint32_t k = 0; k < n_planes; k++)
            p.plane[k] = tn_bit_planes_block(m, row, i_plane + k);
        dot(w->ints, p.n_rows, &p, x, n_x, w->scratch);
        tn_case_note(w, w->ints, n_x * p.n_rows * sizeof(int32_t));
    }
    for (uint32_t k = 0; k < n_planes && m; k++)
        n_bytes += n * (uint64_t)tn_plane_row(m->cols, i_plane + k);
    return n_bytes;
}

TN_CASE_DEFINE(dot_u5_i16, dot_planes(w, k->dot_u5_i16, 0, 2))
TN_CASE_DEFINE(dot_u4_i16, dot_planes(w, k->dot_u4_i16, 0, 1))
TN_CASE_DEFINE(dot_u1_i16, dot_planes(w, k->dot_u1_i16, 1, 1))
TN_CASE_DEFINE(dot_u2_i16, dot_planes(w, k->dot_u2_i16, 3, 1))

uint64_t tn_case_bound_logits(struct tn_case_work *w, const struct tn_kernels *k)
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
    tn_case_note(w, low, n * sizeof(float));
    tn_case_note(w, high, n * sizeof(float));
    return n * (sizeof(double) + 5 * sizeof(float));
}

uint64_t tn_case_unpack_planes(struct tn_case_work *w, const struct tn_kernels *k)
{
    const struct tn_bit_planes *m = planes_of(w, 0);
    const uint32_t n = m ? TN_MIN(m->rows, TERN_PLANE_BLOCK_ROWS) : 0;
    for (uint32_t row = 0; row < n; row++) {
        k->unpack_planes(w->bytes, m, row);
        tn_case_note(w, w->bytes, m->cols);
    }
    return m ? (uint64_t)n * m->cols * (tn_bit_planes_bits(m->n_planes) + 8) / 8 : 0;
}

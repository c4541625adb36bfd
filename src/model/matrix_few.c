/* SPDX-License-Identifier: MIT
 *
 * Products that skip, for a few tokens.  Each token has its own list of rows or
 * columns.  An item is a part of the matrix that stays in a second-level cache:
 * its tokens take it one after the other, so what two of them need comes from
 * memory once.
 */
#include "model/matrix_few.h"

#include "base/bits.h"
#include "model/activation.h"
#include "model/acts.h"

/* 160 KB of `up` at 2B-4T size, of which about a quarter is read for each token. */
#define ROWS_PER_ITEM 256u
/* 320 KB of `down`: each call of the kernel begins and ends with the sums of all rows. */
#define COLS_PER_ITEM 512u

void tn_add_sums(int32_t *sum, const int32_t *part, uint32_t n)
{
    typedef int32_t vec __attribute__((vector_size(16), may_alias));
    for (uint32_t i = 0; i < n; i += 4)
        *(vec *)(sum + i) += *(const vec *)(part + i);
}

/* ---- rows ---- */

struct rows_task {
    struct tn_forward *f;
    const struct tn_matrix *up;
    float *gate;
};

/* Rows [first, first + n) for one token; gate is that of row `first`. */
static void rows_of_token(const struct rows_task *task, float *gate, uint32_t first, uint32_t n,
                          uint32_t i_token, const struct tn_worker *worker)
{
    const struct tn_kernels *k = worker->kernels;
    uint32_t active[ROWS_PER_ITEM], rows[ROWS_PER_ITEM];
    float gates[ROWS_PER_ITEM];
    const uint32_t n_active = k->list_positive_f32(active, gate, n);
    for (uint32_t i = 0; i < n_active; i++) {
        rows[i] = first + active[i];
        gates[i] = gate[active[i]];
    }
    if (n_active == 0)
        return;
    float *up = (float *)worker->scratch->sum;
    task->up->format->mul_rows(up, task->up, rows, n_active, &task->f->s.in, i_token, worker);
    tn_activate(k, TERN_ACT_RELU2, gates, up, n_active);
    for (uint32_t i = 0; i < n_active; i++)
        gate[active[i]] = gates[i];
}

static void rows_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct rows_task *task = arg;
    const struct tn_worker worker = tn_worker_of(task->f, i_thread);
    const uint32_t rows = task->up->t.w.rows, first = i_item * ROWS_PER_ITEM;
    const uint32_t n = TN_MIN(ROWS_PER_ITEM, rows - first);
    for (uint32_t t = 0; t < task->f->n_tokens; t++)
        rows_of_token(task, task->gate + (size_t)t * rows + first, first, n, t, &worker);
}

void tn_multiply_rows_few(struct tn_forward *f, const struct tn_matrix *up, float *gate)
{
    struct rows_task task = {f, up, gate};
    tn_acts_derive(&f->s.in, TN_ACT_PREP, f->kernels, f->team);
    tn_team_for(f->team, tn_div_ceil_u32(up->t.w.rows, ROWS_PER_ITEM), rows_item, &task);
}

/* ---- columns ---- */

struct cols_task {
    struct tn_forward *f;
    const struct tn_matrix *w;
    uint32_t padded; /* rows */
};

/* sum [padded] = or += the n columns. */
static void add_columns(const struct cols_task *task, int32_t *sum, bool is_first,
                        const uint32_t *cols, const int8_t *x, uint32_t n,
                        const struct tn_worker *worker)
{
    for (uint32_t row = 0; row < task->padded; row += TN_C2_MAX_ROWS) {
        const uint32_t row_end = TN_MIN(row + TN_C2_MAX_ROWS, task->padded);
        int32_t *dst = is_first ? sum + row : worker->scratch->sum;
        task->w->format->mul_cols(dst, task->w, row, row_end, cols, x, n, worker);
        if (!is_first)
            tn_add_sums(sum + row, dst, row_end - row);
    }
}

static void cols_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct cols_task *task = arg;
    const struct tn_forward *f = task->f;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const bool is_first = *worker.scratch->col_sum_of != f->n_col_sums; /* of this thread */
    const uint32_t first = i_item * COLS_PER_ITEM;
    const uint32_t n = TN_MIN(COLS_PER_ITEM, task->w->t.w.cols - first);
    uint32_t cols[COLS_PER_ITEM];
    int8_t x[COLS_PER_ITEM];
    for (uint32_t t = 0; t < f->n_tokens; t++) {
        const int8_t *from = f->s.in.i8 + t * f->s.in.i8_stride + first;
        const uint32_t n_active = f->kernels->list_nonzero_i8(cols, from, n);
        for (uint32_t i = 0; i < n_active; i++) {
            x[i] = from[cols[i]];
            cols[i] += first;
        }
        if (is_first || n_active > 0)
            add_columns(task, worker.scratch->col_sum + (size_t)t * task->padded, is_first, cols, x,
                        n_active, &worker);
    }
    *worker.scratch->col_sum_of = f->n_col_sums;
}

void tn_finish_cols(struct tn_forward *f, const struct tn_product *p, uint32_t padded)
{
    const uint32_t rows = p->w->t.w.rows;
    int32_t *sum = NULL;
    for (uint32_t i = 0; i < tn_team_n_threads(f->team); i++) {
        const struct tn_thread_scratch *scratch = &f->s.threads[i];
        if (*scratch->col_sum_of != f->n_col_sums)
            continue; /* it took nothing */
        if (sum)
            tn_add_sums(sum, scratch->col_sum, f->n_tokens * padded);
        else
            sum = scratch->col_sum;
    }
    for (uint32_t t = 0; t < f->n_tokens; t++) {
        const float scale = p->w->scale * f->s.in.i8_scale[t];
        float *dst = p->dst + (size_t)t * rows;
        if (p->add != 0)
            f->kernels->add_i32_f32(dst, sum + (size_t)t * padded, rows, p->add * scale);
        else
            f->kernels->scale_i32_f32(dst, sum + (size_t)t * padded, rows, scale);
    }
}

void tn_multiply_cols_few(struct tn_forward *f, const struct tn_product *p)
{
    const struct tn_ternary *w = &p->w->t.w;
    const uint32_t padded = tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * TERN_C2_ROW_ALIGN;
    struct cols_task task = {f, p->w, padded};
    f->n_col_sums++;
    tn_team_for(f->team, tn_div_ceil_u32(w->cols, COLS_PER_ITEM), cols_item, &task);
    tn_finish_cols(f, p, padded);
}

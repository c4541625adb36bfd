/* SPDX-License-Identifier: MIT
 *
 * Products that skip zeros, for 2 to TN_FEW_TOKENS tokens.  Rows that any of the tokens needs are
 * read once, and multiplied only for the tokens that need them.  Columns have a list for each
 * token: the tokens process an item, a range of columns that fits a cache, one after the other, so
 * that columns which several tokens need come from memory once.
 */
#include "model/matrix_few.h"

#include "base/bits.h"
#include "model/activation.h"
#include "model/acts.h"

/* 160 KB of `up` for the dimensions of 2B-4T. */
#define ROWS_PER_ITEM 256u
/* Bytes of an item's columns; a few tokens need about half of them.  Larger than the second-level
 * cache: each kernel call begins with nothing prefetched, and loads and stores all rows' sums. */
#define MOST_ITEM_BYTES (5u << 19)
/* More than one, so that a busy core may take fewer. */
#define COL_ITEMS_PER_THREAD 2u

/* sum += part; n a multiple of 4. */
static void add_sums(int32_t *sum, const int32_t *part, uint32_t n)
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

/* The rows of an item that some token needs, and the tokens that need them. */
struct active_rows {
    uint32_t rows[ROWS_PER_ITEM]; /* of the matrix, [n] ascending */
    uint8_t takers[ROWS_PER_ITEM]; /* [n] a bit for each token */
    uint32_t n;
    uint32_t list_index[ROWS_PER_ITEM]; /* [ROWS_PER_ITEM] index of a row in `rows` */
    uint32_t of_token[TN_FEW_TOKENS][ROWS_PER_ITEM]; /* per token, rows of the item, ascending */
    uint32_t n_of_token[TN_FEW_TOKENS];
};

/* Lists rows [first, first + n); gate [n_tokens][rows] is that of row `first`.  Gates that no token
 * needs become the zero that their product would be. */
static void list_active(struct active_rows *a, const struct tn_kernels *k, float *gate,
                        uint32_t rows, uint32_t n_tokens, uint32_t first, uint32_t n)
{
    uint8_t takers[ROWS_PER_ITEM] = {0};
    for (uint32_t t = 0; t < n_tokens; t++) {
        a->n_of_token[t] = k->list_positive_f32(a->of_token[t], gate + (size_t)t * rows, n);
        for (uint32_t i = 0; i < a->n_of_token[t]; i++)
            takers[a->of_token[t][i]] |= (uint8_t)(1u << t);
    }
    a->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        a->rows[a->n] = first + i;
        a->takers[a->n] = takers[i];
        a->list_index[i] = a->n;
        a->n += takers[i] != 0;
    }
}

/* act(gate) * up for the rows that token t needs; sum has those of all listed rows. */
static void activate_token(const struct active_rows *a, const struct rows_task *task, float *gate,
                           const int32_t *sum, uint32_t t)
{
    const struct tn_forward *f = task->f;
    const uint32_t *active = a->of_token[t], n = a->n_of_token[t];
    int32_t sums[ROWS_PER_ITEM];
    float gates[ROWS_PER_ITEM], up[ROWS_PER_ITEM];
    for (uint32_t i = 0; i < n; i++) {
        sums[i] = sum[a->list_index[active[i]]];
        gates[i] = gate[active[i]];
    }
    f->kernels->scale_i32_f32(up, sums, n, task->up->scale * f->s.in.i8_scale[t]);
    tn_activate(f->kernels, TERN_ACT_RELU2, gates, up, n);
    for (uint32_t i = 0; i < n; i++)
        gate[active[i]] = gates[i];
}

static void rows_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct rows_task *task = arg;
    const struct tn_forward *f = task->f;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t rows = task->up->rows, first = i_item * ROWS_PER_ITEM;
    int32_t *sum = worker.scratch->sum;
    float *gate = task->gate + first;
    struct active_rows a;
    list_active(&a, f->kernels, gate, rows, f->n_tokens, first,
                TN_MIN(ROWS_PER_ITEM, rows - first));
    task->up->format->mul_rows_few(sum, TN_SUM_STRIDE, task->up, a.rows, a.takers, a.n, &f->s.in,
                                   &worker);
    for (uint32_t t = 0; t < f->n_tokens; t++)
        activate_token(&a, task, gate + (size_t)t * rows, sum + (size_t)t * TN_SUM_STRIDE, t);
}

void tn_multiply_rows_few(struct tn_forward *f, const struct tn_matrix *up, float *gate)
{
    struct rows_task task = {f, up, gate};
    tn_acts_derive(&f->s.in, TN_ACT_I8, f->kernels, f->team);
    tn_team_for(f->team, tn_div_ceil_u32(up->rows, ROWS_PER_ITEM), rows_item, &task);
}

/* ---- columns ---- */

struct cols_task {
    struct tn_forward *f;
    const struct tn_matrix *w;
    uint32_t padded; /* rows */
    uint32_t cols_per_item;
};

void tn_add_columns(int32_t *sum, bool is_first, const struct tn_matrix *w, uint32_t padded,
                    const uint32_t *cols, const int8_t *x, uint32_t n,
                    const struct tn_worker *worker)
{
    for (uint32_t row = 0; row < padded; row += TN_C2_MAX_ROWS) {
        const uint32_t row_end = TN_MIN(row + TN_C2_MAX_ROWS, padded);
        int32_t *dst = is_first ? sum + row : worker->scratch->sum;
        w->format->mul_cols(dst, w, row, row_end, cols, x, n, worker);
        if (!is_first)
            add_sums(sum + row, dst, row_end - row);
    }
}

static void cols_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct cols_task *task = arg;
    const struct tn_forward *f = task->f;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const bool is_first = *worker.scratch->col_sum_of != f->n_col_sums; /* for this thread */
    const uint32_t first = i_item * task->cols_per_item;
    const uint32_t n = TN_MIN(task->cols_per_item, task->w->cols - first);
    uint32_t *cols = f->s.active + first;
    int8_t *x = f->s.active_x + first;
    for (uint32_t t = 0; t < f->n_tokens; t++) {
        const int8_t *from = f->s.in.i8 + t * f->s.in.i8_stride + first;
        const uint32_t n_active = f->kernels->list_nonzero_i8(cols, from, n);
        for (uint32_t i = 0; i < n_active; i++) {
            x[i] = from[cols[i]];
            cols[i] += first;
        }
        if (is_first || n_active > 0)
            tn_add_columns(worker.scratch->col_sum + (size_t)t * task->padded, is_first, task->w,
                           task->padded, cols, x, n_active, &worker);
    }
    *worker.scratch->col_sum_of = f->n_col_sums;
}

void tn_finish_cols(struct tn_forward *f, const struct tn_product *p, uint32_t padded)
{
    const uint32_t rows = p->w->rows;
    int32_t *sum = NULL;
    for (uint32_t i = 0; i < tn_team_n_threads(f->team); i++) {
        const struct tn_thread_scratch *scratch = &f->s.threads[i];
        if (*scratch->col_sum_of != f->n_col_sums)
            continue; /* this thread had no items */
        if (sum)
            add_sums(sum, scratch->col_sum, f->n_tokens * padded);
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

/* The minimum number of items, as many for each thread; items are whole lines of inputs. */
static uint32_t choose_cols_per_item(const struct tn_forward *f, uint32_t n_cols, uint32_t padded)
{
    const uint32_t n_threads = tn_team_n_threads(f->team);
    const uint32_t least = n_threads == 1 ? 1 : COL_ITEMS_PER_THREAD;
    const uint32_t most = TN_MAX(MOST_ITEM_BYTES / (padded / 4), 1u);
    const uint32_t per_thread = tn_div_ceil_u32(tn_div_ceil_u32(n_cols, most), n_threads);
    const uint32_t n = tn_div_ceil_u32(n_cols, TN_MAX(per_thread, least) * n_threads);
    return (uint32_t)tn_align_up(n, 64);
}

void tn_multiply_cols_few(struct tn_forward *f, const struct tn_product *p)
{
    const struct tn_matrix *w = p->w;
    const uint32_t padded = tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * TERN_C2_ROW_ALIGN;
    const uint32_t per_item = choose_cols_per_item(f, w->cols, padded);
    struct cols_task task = {f, p->w, padded, per_item};
    f->n_col_sums++;
    tn_team_for(f->team, tn_div_ceil_u32(w->cols, per_item), cols_item, &task);
    tn_finish_cols(f, p, padded);
}

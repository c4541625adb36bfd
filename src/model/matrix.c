/* SPDX-License-Identifier: MIT
 *
 * Products with matrices.  The rows of a matrix are cut into blocks; runs of blocks are the items
 * of parallel work.  Each thread sums into its own small buffer and writes the scaled result, so no
 * int32 matrix ever exists as a whole.
 */
#include "model/matrix.h"

#include "base/bits.h"
#include "model/activation.h"
#include "model/acts.h"
#include "model/counters.h"
#include "model/matrix_few.h"

static void derive(struct tn_forward *f, enum tn_act form)
{
    tn_acts_derive(&f->s.in, form, f->kernels, f->team);
}

/* ---- dense products ---- */

/* Rows per block: as many as a call takes if few tokens read each weight once; else fewer, so that
 * no thread waits long for the last block of another. */
static uint32_t block_rows(const struct tn_forward *f)
{
    return f->n_tokens <= TN_FEW_TOKENS ? TN_GEMM_ROWS : TN_GEMM_ROW_ALIGN;
}

struct multiply_task {
    struct tn_forward *f;
    const struct tn_product *products;
    uint32_t first_block[TN_MAX_PRODUCTS + 1]; /* index of each product's first block; then the
                                                * total */
};

static void multiply_rows(struct tn_forward *f, const struct tn_product *p, uint32_t row,
                          uint32_t n_rows, const struct tn_worker *worker)
{
    const uint32_t rows = p->w->rows;
    float *dst = p->dst + row, *up = (float *)worker->scratch->sum;
    const struct tn_matrix *w_up = p->is_up ? p->w : p->up;
    struct tn_mul m = {dst, rows, p->add, p->w, row, n_rows, &f->s.in, worker};
    if (!p->is_up)
        tn_format_mul(tn_matrix_format(f, p->w), &m);
    if (!w_up)
        return;
    /* While the gates of these rows are still in the first-level cache. */
    m = (struct tn_mul){up, TN_SUM_STRIDE, 0, w_up, row, n_rows, &f->s.in, worker};
    tn_format_mul(tn_matrix_format(f, w_up), &m);
    for (uint32_t t = 0; t < f->n_tokens; t++)
        tn_activate(f->kernels, f->activation, dst + (size_t)t * rows,
                    up + (size_t)t * TN_SUM_STRIDE, n_rows);
}

/* Multiplies blocks [begin, end), as many rows per call as a kernel takes. */
static void multiply_blocks(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    const struct multiply_task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t rows = block_rows(f), most = TN_GEMM_ROWS / rows;
    uint32_t i = 0;
    for (uint32_t n; begin < end && !tn_forward_should_stop(f, i_thread); begin += n) {
        while (begin >= task->first_block[i + 1])
            i++;
        const struct tn_product *p = &task->products[i];
        uint32_t block = begin - task->first_block[i];
        n = TN_MIN(TN_MIN(end, task->first_block[i + 1]) - begin, most - block % most);
        multiply_rows(f, p, block * rows, TN_MIN(n * rows, p->w->rows - block * rows), &worker);
    }
}

static void count_weights(struct tn_forward *f, const struct tn_matrix *w, uint64_t n_weights)
{
    tn_count_bytes(f, tn_layout_weight_bytes(w->layout, n_weights));
}

static void count_matrix(struct tn_forward *f, const struct tn_matrix *w)
{
    count_weights(f, w, (uint64_t)w->rows * w->cols);
}

static void multiply_dense(struct tn_forward *f, const struct tn_product *products, uint32_t n)
{
    struct multiply_task task = {.f = f, .products = products};
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct tn_product *p = &products[i];
        derive(f, tn_matrix_format(f, p->w)->act);
        count_matrix(f, p->w);
        if (p->up) {
            derive(f, tn_matrix_format(f, p->up)->act);
            count_matrix(f, p->up);
        }
        n_blocks += tn_div_ceil_u32(p->w->rows, block_rows(f));
        task.first_block[i + 1] = n_blocks;
    }
    tn_team_for_runs(f->team, n_blocks, TN_GEMM_ROWS / block_rows(f), multiply_blocks, &task);
}

void tn_multiply_up(struct tn_forward *f, const struct tn_matrix *up, float *gate)
{
    const struct tn_product product = {.w = up, .dst = gate, .is_up = true};
    multiply_dense(f, &product, 1);
}

/* ---- products that skip zeros ---- */

/* Few items per thread, because each begins with nothing prefetched (rows) or with empty sums
 * (columns); more than one, so that a busy core may take fewer. */
#define SPARSE_ITEMS_PER_THREAD 2u
#define MIN_ACTIVE_PER_ITEM 96u

static uint32_t active_per_item(const struct tn_forward *f, uint32_t n_active)
{
    uint32_t n_threads = tn_team_n_threads(f->team);
    uint32_t n_items = n_threads == 1 ? 1 : n_threads * SPARSE_ITEMS_PER_THREAD;
    return TN_MAX(tn_div_ceil_u32(n_active, n_items), MIN_ACTIVE_PER_ITEM);
}

struct rows_task {
    struct tn_forward *f;
    const struct tn_matrix *up;
    float *gate;
    const uint32_t *rows;
    uint32_t n_active;
    uint32_t rows_per_item;
};

/* Computes rows of up, and act(gate) * up while they are in the cache. */
static void rows_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct rows_task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    uint32_t first = i_item * task->rows_per_item;
    uint32_t n = TN_MIN(task->rows_per_item, task->n_active - first);
    const uint32_t *rows = task->rows + first;
    float *up = (float *)worker.scratch->sum, *gate = f->s.active_gate + first;
    task->up->format->mul_rows(up, task->up, rows, n, &f->s.in, &worker);
    for (uint32_t i = 0; i < n; i++)
        gate[i] = task->gate[rows[i]];
    tn_activate(f->kernels, f->activation, gate, up, n);
    for (uint32_t i = 0; i < n; i++)
        task->gate[rows[i]] = gate[i];
}

void tn_multiply_rows(struct tn_forward *f, const struct tn_matrix *up, float *gate,
                      const uint32_t *rows, uint32_t n_active)
{
    /* The sums of an item are in scratch->sum, which has room for TN_C2_MAX_ROWS. */
    uint32_t per_item = TN_MIN(active_per_item(f, n_active), TN_C2_MAX_ROWS);
    struct rows_task task = {f, up, gate, rows, n_active, per_item};
    count_weights(f, up, (uint64_t)n_active * up->cols);
    derive(f, TN_ACT_PREP);
    tn_team_for(f->team, tn_div_ceil_u32(n_active, per_item), rows_item, &task);
}

/* Whole columns are spread over threads, because a column is only some cache lines long and is read
 * at once.  Every thread sums its columns separately; integers may be added in any order. */
struct cols_task {
    struct tn_forward *f;
    const struct tn_matrix *w;
    const uint32_t *cols;
    const int8_t *x;
    uint32_t n_active;
    uint32_t cols_per_item;
    uint32_t padded_rows;
};

static void cols_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct cols_task *task = arg;
    const struct tn_forward *f = task->f;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const struct tn_thread_scratch *scratch = worker.scratch;
    const bool is_first = *scratch->col_sum_of != f->n_col_sums; /* for this thread */
    const uint32_t first = i_item * task->cols_per_item;
    const uint32_t n = TN_MIN(task->cols_per_item, task->n_active - first);
    tn_add_columns(scratch->col_sum, is_first, task->w, task->padded_rows, task->cols + first,
                   task->x + first, n, &worker);
    *scratch->col_sum_of = f->n_col_sums;
}

/* Skips the columns whose input is zero. */
static void multiply_cols(struct tn_forward *f, const struct tn_product *p)
{
    const struct tn_matrix *w = p->w;
    uint32_t *cols = f->s.active;
    int8_t *x = f->s.active_x;
    uint32_t n_active = f->kernels->list_nonzero_i8(cols, f->s.in.i8, w->cols);
    for (uint32_t i = 0; i < n_active; i++)
        x[i] = f->s.in.i8[cols[i]];
    uint32_t padded = tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * TERN_C2_ROW_ALIGN;
    uint32_t per_item = active_per_item(f, n_active);
    struct cols_task task = {f, p->w, cols, x, n_active, per_item, padded};
    count_weights(f, p->w, (uint64_t)n_active * w->rows);
    f->counters.down_active += n_active;
    f->counters.down_cols += w->cols;
    f->n_col_sums++;
    /* At least one item, which writes zeros if there are no columns. */
    tn_team_for(f->team, TN_MAX(tn_div_ceil_u32(n_active, per_item), 1u), cols_item, &task);
    tn_finish_cols(f, p, padded);
}

/* ---- norms, biases, residuals ---- */

struct norm_task {
    const struct tn_forward *f;
    float *dst;
    const float *x, *norm;
    float eps;
    uint32_t cols;
};

static void norm_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct norm_task *task = arg;
    const size_t at = (size_t)t * task->cols;
    task->f->kernels->rms_norm_f32(task->dst + at, task->x + at, task->norm, task->cols, task->eps);
}

void tn_norm_rows(struct tn_forward *f, float *dst, const float *x, const float *norm, float eps,
                  uint32_t cols)
{
    struct norm_task task = {f, dst, x, norm, eps, cols};
    tn_team_for(f->team, f->n_tokens, norm_item, &task);
}

void tn_add_bias(float *dst, const float *bias, uint32_t n, uint32_t cols)
{
    for (uint32_t t = 0; t < n && bias; t++, dst += cols)
        for (uint32_t i = 0; i < cols; i++)
            dst[i] += bias[i];
}

static void multiply_input(struct tn_forward *f, const float *x, const float *norm, float eps,
                           uint32_t cols, const struct tn_product *products, uint32_t n)
{
    tn_acts_set(&f->s.in, x, norm, eps, f->n_tokens, cols);
    f->s.in.rotation = products[0].w->rotation;
    if (n == 1 && f->n_tokens <= TN_FEW_TOKENS && products[0].w->format->mul_cols) {
        derive(f, TN_ACT_I8);
        if (f->n_tokens == 1)
            multiply_cols(f, &products[0]);
        else
            tn_multiply_cols_few(f, &products[0]);
    } else {
        multiply_dense(f, products, n);
    }
}

/* Products whose inputs have the same norm: those with a rotation share one input, the others
 * another. */
static void multiply_shared(struct tn_forward *f, const float *x, const float *norm, uint32_t cols,
                            const struct tn_product *products, uint32_t n)
{
    struct tn_product part[TN_MAX_PRODUCTS];
    for (int rotated = 0; rotated < 2; rotated++) {
        uint32_t n_part = 0;
        for (uint32_t i = 0; i < n; i++)
            if ((products[i].w->rotation != NULL) == rotated)
                part[n_part++] = products[i];
        if (n_part > 0)
            multiply_input(f, x, norm, f->weights->config->rms_eps, cols, part, n_part);
    }
}

void tn_multiply(struct tn_forward *f, float *x, const float *norm, uint32_t cols,
                 const struct tn_product *products, uint32_t n)
{
    const struct tern_file_config *c = f->weights->config;
    bool has_own_norms = false;
    for (uint32_t i = 0; i < n; i++)
        has_own_norms = has_own_norms || products[i].in_norm;
    if (!has_own_norms) {
        multiply_shared(f, x, norm, cols, products, n);
        return;
    }
    if (norm) { /* the norms of the products follow it */
        float *normed = x == f->s.h ? f->s.x : x;
        tn_norm_rows(f, normed, x, norm, c->rms_eps, cols);
        x = normed;
    }
    for (uint32_t i = 0; i < n; i++)
        multiply_input(f, x, products[i].in_norm, c->in_norm_eps, cols, &products[i], 1);
}

void tn_add_branch(struct tn_forward *f, float *x, uint32_t cols, const struct tn_branch *branch)
{
    const struct tern_file_config *c = f->weights->config;
    struct tn_product product = {.w = branch->w, .in_norm = branch->in_norm, .dst = f->s.h,
                                 .add = c->residual_scale};
    if (!branch->bias && !branch->post_norm) {
        tn_multiply(f, x, branch->norm, cols, &product, 1);
        return;
    }
    product.dst = f->s.x;
    product.add = 0;
    tn_multiply(f, x, branch->norm, cols, &product, 1);
    tn_add_bias(f->s.x, branch->bias, f->n_tokens, c->hidden);
    if (branch->post_norm)
        tn_norm_rows(f, f->s.x, f->s.x, branch->post_norm, c->rms_eps, c->hidden);
    for (uint32_t t = 0; t < f->n_tokens; t++)
        f->kernels->add_scaled_f32(f->s.h + (size_t)t * c->hidden,
                                   f->s.x + (size_t)t * c->hidden, c->hidden, c->residual_scale);
}

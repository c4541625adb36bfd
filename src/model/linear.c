/* SPDX-License-Identifier: MIT
 *
 * Ternary projections: y = (W . q) * (w_scale * x_scale).
 *
 * The rows of a matrix are cut into blocks; runs of blocks are the items of parallel work.  Each
 * thread sums into its own small buffer and writes the scaled result, so no int32 matrix ever
 * exists as a whole.  One token takes the multiplication-free gemv kernels, several take gemm;
 * both give the same int32 sums.
 */
#include <assert.h>

#include "base/bits.h"
#include "model/forward.h"

#define MAX_PROJECTIONS 3

/* ---- rounding ---- */

struct round_task {
    struct tn_forward *f;
    const float *x;
    const float *norm;
    uint32_t cols;
};

static void round_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    struct round_task *task = arg;
    struct tn_forward *f = task->f;
    const float *x = task->x + (size_t)t * task->cols;
    int8_t *q = f->s.xq + t * f->s.xq_stride;
    f->s.xs[t] = task->norm ? f->kernels->rms_norm_quant(q, x, task->norm, task->cols,
                                                         f->weights->config->rms_eps)
                            : f->kernels->quant_i8(q, x, task->cols);
    if (f->n_tokens > 1) /* for gemm */
        f->s.x_sum[t] = f->kernels->sum_i8(q, tn_kern_pad(task->cols));
}

void tn_round_input(struct tn_forward *f, const float *x, const float *norm, uint32_t cols)
{
    struct round_task task = {f, x, norm, cols};
    f->n_inputs++;
    tn_team_for(f->team, f->n_tokens, round_item, &task);
}

/* ---- dense projections ---- */

/* Rows of a block: all that a gemm call takes when one token is decoded, which reads each weight
 * once; else fewer, so that no thread waits long for the last block of another. */
static uint32_t block_rows(const struct tn_forward *f)
{
    return f->n_tokens == 1 ? TN_GEMM_ROWS : TN_GEMM_ROW_ALIGN;
}

struct project_task {
    struct tn_forward *f;
    const struct tn_projection *projections;
    uint32_t first_block[MAX_PROJECTIONS + 1]; /* numbers of the first blocks; then of the end */
};

/* The look-up tables of the rounded input, once for each thread: making them takes 2 us, fetching
 * 100 KB of them from another core's cache takes longer. */
static void prepare_lut(const struct tn_forward *f, uint32_t cols,
                        struct tn_thread_scratch *scratch)
{
    if (*scratch->lut_input == f->n_inputs)
        return;
    f->kernels->lut_t2(scratch->lut, f->s.xq, cols);
    *scratch->lut_input = f->n_inputs;
}

/* int32 sums of up to TN_GEMM_ROWS rows for all tokens, [n_tokens][TN_SUM_STRIDE]. */
static void sum_rows(struct tn_forward *f, const struct tn_ternary *w, uint32_t row,
                     uint32_t n_rows, struct tn_thread_scratch *scratch)
{
    const struct tn_kernels *k = f->kernels;
    if (f->n_tokens == 1) {
        assert(w->layout == TERN_LAYOUT_T2 && "one token takes other layouts from lists");
        uint32_t padded = tn_div_ceil_u32(n_rows, TERN_T2_TILE_ROWS) * TERN_T2_TILE_ROWS;
        prepare_lut(f, w->cols, scratch);
        k->gemv_t2_i8(scratch->sum, w, row, row + padded, scratch->lut);
        return;
    }
    tn_gemm_i8_fn *gemm = w->layout == TERN_LAYOUT_T2   ? k->gemm_t2_i8
                          : w->layout == TERN_LAYOUT_R2 ? k->gemm_r2_i8
                                                        : k->gemm_c2_i8;
    uint32_t padded = tn_div_ceil_u32(n_rows, TN_GEMM_ROW_ALIGN) * TN_GEMM_ROW_ALIGN;
    gemm(scratch->sum, TN_SUM_STRIDE, w, row, row + padded, f->s.xq, f->s.xq_stride, f->s.x_sum,
         f->n_tokens, scratch->gemm);
}

static void project_rows(struct tn_forward *f, const struct tn_projection *p, uint32_t row,
                         uint32_t n_rows, struct tn_thread_scratch *scratch)
{
    const struct tn_kernels *k = f->kernels;
    uint32_t rows = p->linear->w.rows;
    sum_rows(f, &p->linear->w, row, n_rows, scratch);
    for (uint32_t t = 0; t < f->n_tokens; t++) {
        const int32_t *sum = scratch->sum + (size_t)t * TN_SUM_STRIDE;
        float *dst = p->dst + (size_t)t * rows + row;
        (p->add ? k->add_i32_f32 : k->scale_i32_f32)(dst, sum, n_rows,
                                                     p->linear->scale * f->s.xs[t]);
    }
    if (!p->up)
        return;
    /* While the gates of these rows are still in the cache. */
    sum_rows(f, &p->up->w, row, n_rows, scratch);
    for (uint32_t t = 0; t < f->n_tokens; t++) {
        int32_t *sum = scratch->sum + (size_t)t * TN_SUM_STRIDE;
        float *up = (float *)sum;
        k->scale_i32_f32(up, sum, n_rows, p->up->scale * f->s.xs[t]);
        tn_activate(f, p->dst + (size_t)t * rows + row, up, n_rows);
    }
}

/* Blocks [begin, end), by as many rows of a matrix as a gemm call takes. */
static void project_blocks(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    const struct project_task *task = arg;
    struct tn_forward *f = task->f;
    const uint32_t rows = block_rows(f), most = TN_GEMM_ROWS / rows;
    uint32_t i = 0;
    for (uint32_t n; begin < end; begin += n) {
        while (begin >= task->first_block[i + 1])
            i++;
        const struct tn_projection *p = &task->projections[i];
        uint32_t block = begin - task->first_block[i];
        n = TN_MIN(TN_MIN(end, task->first_block[i + 1]) - begin, most - block % most);
        project_rows(f, p, block * rows, TN_MIN(n * rows, p->linear->w.rows - block * rows),
                     &f->s.threads[i_thread]);
    }
}

static void count_weights(struct tn_forward *f, uint64_t n_weights)
{
    if (f->n_tokens == 1)
        f->counters.decode_weight_bytes += n_weights / 4;
}

void tn_project(struct tn_forward *f, const struct tn_projection *projections, uint32_t n)
{
    assert(n >= 1 && n <= MAX_PROJECTIONS);
    struct project_task task = {.f = f, .projections = projections};
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct tn_ternary *w = &projections[i].linear->w;
        n_blocks += tn_div_ceil_u32(w->rows, block_rows(f));
        task.first_block[i + 1] = n_blocks;
        count_weights(f, (uint64_t)w->rows * w->cols * (projections[i].up ? 2 : 1));
    }
    tn_team_for_runs(f->team, n_blocks, TN_GEMM_ROWS / block_rows(f), project_blocks, &task);
}

/* ---- projections that skip ---- */

/* Few items, because each begins with nothing prefetched (rows) or with empty sums (columns); more
 * than threads, so that a busy core may take fewer. */
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
    const struct tn_linear *up;
    float *gate;
    const uint32_t *rows;
    uint32_t n_active;
    uint32_t rows_per_item;
};

/* Computes rows of up, and act(gate) * up while they are at hand. */
static void rows_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct rows_task *task = arg;
    struct tn_forward *f = task->f;
    uint32_t first = i_item * task->rows_per_item;
    uint32_t n = TN_MIN(task->rows_per_item, task->n_active - first);
    const uint32_t *rows = task->rows + first;
    int32_t *sum = f->s.threads[i_thread].sum;
    float *up = (float *)sum, *gate = f->s.active_gate + first;
    f->kernels->gemv_r2_i8(sum, &task->up->w, rows, n, f->s.prep);
    f->kernels->scale_i32_f32(up, sum, n, task->up->scale * f->s.xs[0]);
    for (uint32_t i = 0; i < n; i++)
        gate[i] = task->gate[rows[i]];
    tn_activate(f, gate, up, n);
    for (uint32_t i = 0; i < n; i++)
        task->gate[rows[i]] = gate[i];
}

void tn_project_up(struct tn_forward *f, const struct tn_linear *up, float *gate,
                   const uint32_t *rows, uint32_t n_active)
{
    /* The sums of an item stand in sum, which has room for TN_C2_MAX_ROWS. */
    uint32_t per_item = TN_MIN(active_per_item(f, n_active), TN_C2_MAX_ROWS);
    struct rows_task task = {f, up, gate, rows, n_active, per_item};
    count_weights(f, (uint64_t)n_active * up->w.cols);
    f->kernels->prep_r2(f->s.prep, f->s.xq, up->w.cols);
    tn_team_for(f->team, tn_div_ceil_u32(n_active, per_item), rows_item, &task);
}

/* Columns of down are spread over threads whole, since a column is only some cache lines long and
 * those are read together; every thread sums its columns apart, and integers may be added in any
 * order. */
struct cols_task {
    struct tn_forward *f;
    const struct tn_linear *linear;
    const uint32_t *cols;
    const int8_t *x;
    uint32_t n_active;
    uint32_t cols_per_item;
    uint32_t padded_rows;
};

/* n a multiple of 4; in vectors, since one thread does it while the others wait. */
static void add_sums(int32_t *sum, const int32_t *part, uint32_t n)
{
    typedef int32_t vec __attribute__((vector_size(16), may_alias));
    for (uint32_t i = 0; i < n; i += 4)
        *(vec *)(sum + i) += *(const vec *)(part + i);
}

static void cols_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct cols_task *task = arg;
    const struct tn_forward *f = task->f;
    const struct tn_thread_scratch *scratch = &f->s.threads[i_thread];
    const bool is_first = *scratch->col_sum_of != f->n_col_sums; /* of this thread */
    uint32_t first = i_item * task->cols_per_item;
    uint32_t n = TN_MIN(task->cols_per_item, task->n_active - first);
    for (uint32_t row = 0; row < task->padded_rows; row += TN_C2_MAX_ROWS) {
        uint32_t row_end = TN_MIN(row + TN_C2_MAX_ROWS, task->padded_rows);
        int32_t *dst = is_first ? scratch->col_sum + row : scratch->sum;
        f->kernels->gemv_c2_i8(dst, &task->linear->w, row, row_end, task->cols + first,
                               task->x + first, n);
        if (!is_first)
            add_sums(scratch->col_sum + row, dst, row_end - row);
    }
    *scratch->col_sum_of = f->n_col_sums;
}

void tn_project_cols(struct tn_forward *f, const struct tn_linear *linear, const uint32_t *cols,
                     const int8_t *x, uint32_t n_active, float *dst)
{
    const struct tn_ternary *w = &linear->w;
    uint32_t padded = tn_div_ceil_u32(w->rows, TERN_C2_ROW_ALIGN) * TERN_C2_ROW_ALIGN;
    uint32_t per_item = active_per_item(f, n_active);
    struct cols_task task = {f, linear, cols, x, n_active, per_item, padded};
    count_weights(f, (uint64_t)n_active * w->rows);
    f->n_col_sums++;
    /* At least one item: without any column the sums are zeros. */
    tn_team_for(f->team, TN_MAX(tn_div_ceil_u32(n_active, per_item), 1u), cols_item, &task);
    int32_t *sum = NULL;
    for (uint32_t t = 0; t < tn_team_n_threads(f->team); t++) {
        const struct tn_thread_scratch *scratch = &f->s.threads[t];
        if (*scratch->col_sum_of != f->n_col_sums)
            continue; /* it took nothing */
        if (sum)
            add_sums(sum, scratch->col_sum, padded);
        else
            sum = scratch->col_sum;
    }
    f->kernels->add_i32_f32(dst, sum, w->rows, linear->scale * f->s.xs[0]);
}

/* SPDX-License-Identifier: MIT
 *
 * Listed rows of the head: in planes row by row, in other layouts the blocks of TN_GEMM_ROWS that
 * contain them.
 */
#include "model/head_list.h"

#include <math.h>

#include "base/bits.h"
#include "model/acts.h"
#include "model/counters.h"
#include "model/head.h"

/* Listed rows per parallel item. */
#define LISTED_PER_ITEM 32u

struct list_task {
    struct tn_forward *f;
    const struct tn_head_need *need;
    const struct tn_format *format;
    const struct tn_head_search *search; /* for planes only */
    float *logits;
};

void tn_release_head_rows(const struct tn_forward *f, uint32_t row, uint32_t n)
{
    const struct tn_matrix *w = &f->weights->head;
    uint64_t begin = 0, end = 0;
    if (!f->after_head_rows || (row > 0 && !tn_layout_bytes(w->layout, row, w->cols, &begin)) ||
        !tn_layout_bytes(w->layout, row + n, w->cols, &end))
        return;
    f->after_head_rows(f->after_layer_arg, w->data + begin, (size_t)(end - begin));
}

/* ---- planes ---- */

/* The end of the listed rows from i on that are in the same block, at most `end`. */
static uint32_t block_end(const uint32_t *rows, uint32_t i, uint32_t end, uint32_t block_rows)
{
    const uint32_t block = rows[i] / block_rows;
    while (i < end && rows[i] / block_rows == block)
        i++;
    return i;
}

static void score_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct list_task *task = arg;
    struct tn_forward *f = task->f;
    const uint32_t *rows = task->need->only, n_rows = f->weights->head.rows;
    const uint32_t end = TN_MIN((i_item + 1) * LISTED_PER_ITEM, task->need->n_only);
    for (uint32_t i = i_item * LISTED_PER_ITEM, next; i < end; i = next) {
        const uint32_t first = rows[i] / TN_HEAD_ITEM_ROWS * TN_HEAD_ITEM_ROWS;
        next = block_end(rows, i, end, TN_HEAD_ITEM_ROWS);
        tn_head_score(task->search, 0, rows + i, next - i, f->s.threads[i_thread].unpacked);
        tn_release_head_rows(f, first, TN_MIN(TN_HEAD_ITEM_ROWS, n_rows - first));
    }
}

static void list_planes(struct tn_forward *f, const struct tn_head_need *need, const float *x,
                        float *logits)
{
    const struct tn_bit_planes *w = &f->weights->head.planes;
    const struct tn_head_search search = {
        .w = w, .kernels = f->kernels, .x = x, .logits = logits};
    struct list_task task = {.f = f, .need = need, .search = &search};
    tn_team_for(f->team, tn_div_ceil_u32(need->n_only, LISTED_PER_ITEM), score_item, &task);
    tn_count_bytes(f,
                   need->n_only * tn_plane_row_bytes(w->cols, tn_bit_planes_bits(w->n_planes)));
    f->counters.head_rows += w->rows;
    f->counters.head_exact += need->n_only;
}

/* ---- other layouts ---- */

/* The block of listed row i_item, if that is its first listed row. */
static void block_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct list_task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const struct tn_matrix *head = &f->weights->head;
    const uint32_t *rows = task->need->only, block = rows[i_item] / TN_GEMM_ROWS;
    if (i_item > 0 && rows[i_item - 1] / TN_GEMM_ROWS == block)
        return;
    const uint32_t first = block * TN_GEMM_ROWS;
    const uint32_t n = TN_MIN(TN_GEMM_ROWS, head->rows - first);
    float *dst = task->logits + first;
    const struct tn_mul m = {dst, head->rows, 0, head, first, n, &f->s.in, &worker};
    tn_format_mul(task->format, &m);
    tn_release_head_rows(f, first, n);
}

static void list_blocks(struct tn_forward *f, const struct tn_head_need *need, float *x,
                        float *logits)
{
    const struct tern_file_config *c = f->weights->config;
    const struct tn_matrix *head = &f->weights->head;
    struct list_task task = {.f = f, .need = need, .logits = logits,
                             .format = tn_format_of_head(head->format, f->inputs)};
    tn_acts_set(&f->s.in, x, f->weights->head_in_norm, c->in_norm_eps, 1, head->cols);
    tn_acts_derive(&f->s.in, task.format->act, f->kernels, f->team);
    tn_team_for(f->team, need->n_only, block_item, &task);
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < need->n_only; n_blocks++)
        i = block_end(need->only, i, need->n_only, TN_GEMM_ROWS);
    tn_count_bytes(f, tn_layout_weight_bytes(head->layout,
                                             (uint64_t)n_blocks * TN_GEMM_ROWS * head->cols));
}

void tn_list_head(struct tn_forward *f, const struct tn_head_need *need, float *x, float *logits)
{
    for (uint32_t i = 0; i < f->weights->head.rows; i++)
        logits[i] = -INFINITY;
    if (f->weights->head.format->is_searchable)
        list_planes(f, need, x, logits);
    else
        list_blocks(f, need, x, logits);
}

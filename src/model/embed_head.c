/* SPDX-License-Identifier: MIT
 *
 * The two ends of the model: from token ids to hidden states, and from the last
 * hidden states to logits.
 */
#include "base/bits.h"
#include "base/half.h"
#include "file/mfile.h"
#include "model/forward.h"
#include "model/head.h"

/* ---- embedding ---- */

/* Row `id` of the embedding as f32.  q: room for a row of integers. */
static void embed_row(float *dst, const struct tn_table *table, uint32_t id,
                      const struct tn_kernels *kernels, int8_t *q)
{
    size_t at = (size_t)id * table->cols;
    const int8_t *integers = (const int8_t *)table->data + at;
    if (table->planes.n_planes) {
        kernels->unpack_planes(q, &table->planes, id);
        integers = q;
    }
    for (uint32_t i = 0; i < table->cols; i++) {
        if (table->layout == TERN_LAYOUT_F16)
            dst[i] = tn_f16_to_f32(((const uint16_t *)table->data)[at + i]);
        else if (table->layout == TERN_LAYOUT_BF16)
            dst[i] = tn_bf16_to_f32(((const uint16_t *)table->data)[at + i]);
        else
            dst[i] = (float)integers[i] * table->scales[id];
    }
}

void tn_embed(struct tn_forward *f, const uint32_t *ids)
{
    uint32_t hidden = f->weights->config->hidden;
    for (uint32_t t = 0; t < f->n_tokens; t++)
        embed_row(f->s.h + (size_t)t * hidden, &f->weights->embed, ids[t], f->kernels,
                  f->s.threads[0].head_rows);
}

/* ---- head: all rows ---- */

/* Rows of the head per parallel item: about 1.3 MB of q8 at 2B-4T size. */
#define HEAD_ROWS_PER_ITEM 512u

struct head_task {
    struct tn_forward *f;
    const float *x; /* [n_tokens][hidden] normed hidden states */
    float *logits;  /* [n_tokens][vocab] */
    uint32_t n_tokens;
};

/* Rows [row, row + n) of a head in planes, some at a time. */
static void planes_rows(const struct head_task *task, uint32_t row, uint32_t n, int8_t *unpacked)
{
    const struct tn_table *head = &task->f->weights->head;
    const struct tn_kernels *kernels = task->f->kernels;
    for (uint32_t i = 0; i < n; i += TN_HEAD_UNPACK_ROWS) {
        uint32_t m = TN_MIN(TN_HEAD_UNPACK_ROWS, n - i);
        for (uint32_t k = 0; k < m; k++)
            kernels->unpack_planes(unpacked + (size_t)k * head->cols, &head->planes, row + i + k);
        kernels->gemv_q8_f32(task->logits + row + i, head->rows, unpacked, head->scales + row + i,
                             m, head->cols, task->x, head->cols, task->n_tokens);
    }
}

/* Rows [row, row + n) are not needed any more; items hold whole blocks of planes. */
static void leave_rows(const struct tn_forward *f, uint32_t row, uint32_t n)
{
    const struct tn_table *head = &f->weights->head;
    size_t row_bytes =
        head->planes.n_planes
            ? tn_plane_row_bytes(head->cols, tn_planes_bits(head->planes.n_planes))
            : head->cols * (head->layout == TERN_LAYOUT_Q8 ? (size_t)1 : (size_t)2);
    if (f->after_head_rows)
        f->after_head_rows(f->after_layer_arg, (const char *)head->data + row * row_bytes,
                           n * row_bytes);
}

static void head_item(const struct head_task *task, uint32_t i_item, uint32_t i_thread)
{
    const struct tn_kernels *k = task->f->kernels;
    const struct tn_table *head = &task->f->weights->head;
    uint32_t row = i_item * HEAD_ROWS_PER_ITEM;
    uint32_t n = TN_MIN(HEAD_ROWS_PER_ITEM, head->rows - row);
    size_t at = (size_t)row * head->cols;
    float *dst = task->logits + row;
    if (head->planes.n_planes)
        planes_rows(task, row, n, task->f->s.threads[i_thread].head_rows);
    else if (head->layout == TERN_LAYOUT_Q8)
        k->gemv_q8_f32(dst, head->rows, (const int8_t *)head->data + at, head->scales + row, n,
                       head->cols, task->x, head->cols, task->n_tokens);
    else if (head->layout == TERN_LAYOUT_F16)
        k->gemv_f16_f32(dst, head->rows, (const uint16_t *)head->data + at, n, head->cols, task->x,
                        head->cols, task->n_tokens);
    else
        k->gemv_bf16_f32(dst, head->rows, (const uint16_t *)head->data + at, n, head->cols,
                         task->x, head->cols, task->n_tokens);
    leave_rows(task->f, row, n);
}

static void head_run(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    for (uint32_t i = begin; i < end; i++)
        head_item(arg, i, i_thread);
}

/* ---- head: the best rows ---- */

struct search_task {
    struct tn_forward *f;
    struct tn_head_search search;
    uint32_t stage;
};

static void search_run(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    struct search_task *task = arg;
    const uint32_t n_rows = task->f->weights->head.rows;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t row = i * TN_HEAD_ITEM_ROWS;
        tn_head_search_item(&task->search, task->stage, i, task->f->s.threads[i_thread].head_rows);
        /* Also where a later stage reads some of them again: until the last one, the pages of the
         * first planes alone, with what the system maps around them, would be nearly all of the
         * head. */
        if (task->search.counts[i].n_read > 0)
            leave_rows(task->f, row, TN_MIN(TN_HEAD_ITEM_ROWS, n_rows - row));
    }
}

/* Bytes of weights that the stages of a search read. */
static uint64_t search_bytes(const struct tn_head_search *s)
{
    uint32_t last = tn_head_n_stages(s) - 1;
    uint64_t bytes =
        s->n_rows[last] * tn_plane_row_bytes(s->w->cols, tn_planes_bits(s->w->n_planes));
    for (uint32_t i = 0; i < last; i++)
        bytes += s->n_rows[i] * tn_plane_row(s->w->cols, i);
    return bytes;
}

/* Reading a plane of all rows with those before it is right where these do not rule out three
 * quarters: rows here and there take three to four times as long.  That depends on the model, so it
 * is tried again now and then. */
#define TOKENS_TOGETHER 31u

static uint32_t choose_first(const struct tn_forward *f)
{
    return f->n_head_together > 0 ? f->n_head_first : 1;
}

static void learn_first(struct tn_forward *f, const struct tn_head_search *s)
{
    if (f->n_head_together > 0) {
        f->n_head_together--;
        return;
    }
    uint32_t n = 1;
    while (n < s->w->n_planes && s->n_rows[n] > s->n_allowed / 4)
        n++;
    f->n_head_first = n;
    f->n_head_together = n > 1 ? TOKENS_TOGETHER : 0;
}

static void search_head(struct tn_forward *f, float *logits)
{
    struct search_task task = {
        .f = f,
        .search = {.w = &f->weights->head.planes, .kernels = f->kernels, .x = f->s.x,
                   .n_best = f->need.n_best, .n_first = choose_first(f),
                   .n_allowed = f->need.n_allowed,
                   .always = f->need.always, .n_always = f->need.n_always, .logits = logits,
                   .x16 = f->s.head_x16, .sums = f->s.head_sums,
                   .group_best = f->s.head_group_best, .counts = f->s.head_counts},
    };
    struct tn_head_search *s = &task.search;
    uint32_t n_stages = tn_head_n_stages(s);
    uint32_t n_items = tn_div_ceil_u32(s->n_allowed, TN_HEAD_ITEM_ROWS);
    for (task.stage = tn_head_search_begin(s) ? 0 : n_stages - 1; task.stage < n_stages;
         task.stage = tn_head_next_stage(s, task.stage)) {
        tn_team_for_runs(f->team, n_items, 1, search_run, &task);
        tn_head_search_end(s, task.stage, f->s.threads[0].head_rows);
    }
    learn_first(f, s);
    if (f->n_tokens == 1)
        f->counters.decode_weight_bytes += search_bytes(s);
    f->counters.head_rows += s->w->rows;
    f->counters.head_exact += s->n_rows[n_stages - 1];
}

void tn_head(struct tn_forward *f, float *logits, bool all_rows)
{
    const struct tern_file_config *c = f->weights->config;
    const struct tn_table *head = &f->weights->head;
    uint32_t first = all_rows ? 0 : f->n_tokens - 1;
    for (uint32_t t = first; t < f->n_tokens; t++)
        f->kernels->rms_norm_f32(f->s.x + (size_t)(t - first) * c->hidden,
                                 f->s.h + (size_t)t * c->hidden, f->weights->final_norm, c->hidden,
                                 c->rms_eps);
    if (!all_rows && f->need.n_best && head->planes.n_planes) {
        search_head(f, logits);
        return;
    }
    struct head_task task = {f, f->s.x, logits, f->n_tokens - first};
    tn_team_for_runs(f->team, tn_div_ceil_u32(c->vocab, HEAD_ROWS_PER_ITEM), 1, head_run, &task);
    if (f->n_tokens == 1)
        f->counters.decode_weight_bytes +=
            (uint64_t)c->vocab * c->hidden * tn_layout_bits(head->layout) / 8;
}

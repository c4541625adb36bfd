/* SPDX-License-Identifier: MIT
 *
 * The two ends of the model: from token ids to hidden states, and from the last
 * hidden states to logits.
 */
#include "base/bits.h"
#include "base/half.h"
#include "model/forward.h"

/* Row `id` of the embedding as f32. */
static void embed_row(float *dst, const struct tn_table *table, uint32_t id)
{
    size_t at = (size_t)id * table->cols;
    for (uint32_t i = 0; i < table->cols; i++) {
        if (table->layout == TERN_LAYOUT_Q8)
            dst[i] = (float)((const int8_t *)table->data)[at + i] * table->scales[id];
        else if (table->layout == TERN_LAYOUT_F16)
            dst[i] = tn_f16_to_f32(((const uint16_t *)table->data)[at + i]);
        else
            dst[i] = tn_bf16_to_f32(((const uint16_t *)table->data)[at + i]);
    }
}

void tn_embed(struct tn_forward *f, const uint32_t *ids)
{
    uint32_t hidden = f->weights->config->hidden;
    for (uint32_t t = 0; t < f->n_tokens; t++)
        embed_row(f->s.h + (size_t)t * hidden, &f->weights->embed, ids[t]);
}

/* Rows of the head per parallel item: about 1.3 MB of q8 at 2B-4T size. */
#define HEAD_ROWS_PER_ITEM 512u

struct head_task {
    struct tn_forward *f;
    const float *x; /* [n_rows][hidden] normed hidden states */
    float *logits;  /* [n_rows][vocab] */
    uint32_t n_rows;
};

static void head_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    (void)i_thread;
    struct head_task *task = arg;
    const struct tn_kernels *k = task->f->kernels;
    const struct tn_table *head = &task->f->weights->head;
    uint32_t row = i_item * HEAD_ROWS_PER_ITEM;
    uint32_t n = TN_MIN(HEAD_ROWS_PER_ITEM, head->rows - row);
    size_t at = (size_t)row * head->cols;
    size_t value_bytes = head->layout == TERN_LAYOUT_Q8 ? 1 : 2;
    float *dst = task->logits + row;
    if (head->layout == TERN_LAYOUT_Q8)
        k->gemv_q8_f32(dst, head->rows, (const int8_t *)head->data + at, head->scales + row, n,
                       head->cols, task->x, head->cols, task->n_rows);
    else if (head->layout == TERN_LAYOUT_F16)
        k->gemv_f16_f32(dst, head->rows, (const uint16_t *)head->data + at, n, head->cols, task->x,
                        head->cols, task->n_rows);
    else
        k->gemv_bf16_f32(dst, head->rows, (const uint16_t *)head->data + at, n, head->cols,
                         task->x, head->cols, task->n_rows);
    if (task->f->after_head_rows)
        task->f->after_head_rows(task->f->after_layer_arg,
                                 (const char *)head->data + at * value_bytes,
                                 (size_t)n * head->cols * value_bytes);
}

void tn_head(struct tn_forward *f, float *logits, bool all_rows)
{
    const struct tern_file_config *c = f->weights->config;
    uint32_t first = all_rows ? 0 : f->n_tokens - 1;
    struct head_task task = {f, f->s.x, logits, f->n_tokens - first};
    for (uint32_t t = first; t < f->n_tokens; t++)
        f->kernels->rms_norm_f32(f->s.x + (size_t)(t - first) * c->hidden,
                                 f->s.h + (size_t)t * c->hidden, f->weights->final_norm, c->hidden,
                                 c->rms_eps);
    tn_team_for(f->team, tn_div_ceil_u32(c->vocab, HEAD_ROWS_PER_ITEM), head_item, &task);
    if (f->n_tokens == 1)
        f->counters.decode_weight_bytes +=
            (uint64_t)c->vocab * c->hidden * (f->weights->head.layout == TERN_LAYOUT_Q8 ? 1 : 2);
}

/* SPDX-License-Identifier: MIT
 *
 * The two ends of the model: from token ids to hidden states, and from the last
 * hidden states to logits.
 */
#include "model/embed_head.h"

#include <assert.h>
#include <math.h>

#include "base/bits.h"
#include "model/acts.h"
#include "model/counters.h"
#include "model/head.h"
#include "model/head_list.h"
#include "model/matrix.h"
#include "model/norm.h"

/* ---- embedding ---- */

/* h += positions[position] */
static void add_positions(struct tn_forward *f)
{
    const struct tn_matrix *w = &f->weights->positions;
    const struct tn_worker worker = tn_worker_of(f, 0);
    for (uint32_t k = 0; k < f->batch->n_spans && w->format; k++) {
        const struct tn_span *span = &f->batch->spans[k];
        for (uint32_t t = 0; t < span->n_rows; t++) {
            float *h = f->s.h + ((size_t)span->row + t) * w->cols;
            assert(span->position + t < w->rows && "sequences are as long as the context");
            w->format->unpack_row(f->s.x, w, span->position + t, &worker);
            for (uint32_t i = 0; i < w->cols; i++)
                h[i] += f->s.x[i];
        }
    }
}

void tn_embed(struct tn_forward *f, const uint32_t *ids)
{
    const float scale = f->weights->config->embedding_scale;
    const struct tn_matrix *w = &f->weights->embed, *in = &f->weights->embed_in;
    const struct tn_worker worker = tn_worker_of(f, 0);
    float *rows = in->format ? f->s.x : f->s.h;
    for (uint32_t t = 0; t < f->n_tokens; t++) {
        float *row = rows + (size_t)t * w->cols;
        w->format->unpack_row(row, w, ids[t], &worker);
        if (w->rotation)
            tn_rotate_back(row, w->rotation, f->kernels);
        for (uint32_t i = 0; i < w->cols && scale != 1; i++)
            row[i] *= scale;
    }
    const struct tn_product product = {.w = in, .dst = f->s.h};
    if (in->format)
        tn_multiply(f, rows, NULL, w->cols, &product, 1);
    add_positions(f);
}

/* ---- head: full product ---- */

/* dst [n][w->rows]: rows [row, end) of W x for the n inputs in f->s.in. */
static void multiply_rows(struct tn_forward *f, const struct tn_format *format,
                          const struct tn_matrix *w, float *dst, uint32_t row, uint32_t end,
                          const struct tn_worker *worker)
{
    for (; row < end; row += TN_GEMM_ROWS) {
        const uint32_t n = TN_MIN(TN_GEMM_ROWS, end - row);
        const struct tn_mul m = {dst + row, w->rows, 0, w, row, n, &f->s.in, worker};
        tn_format_mul(format, &m);
    }
}

/* Rows of the head per parallel item: about 1.3 MB of q8 at 2B-4T size. */
#define HEAD_ROWS_PER_ITEM 512u

struct head_task {
    struct tn_forward *f;
    const struct tn_format *format;
    float *logits; /* [tokens of f->s.in][vocab] */
};

static void head_run(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    const struct head_task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_matrix *head = &f->weights->head;
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    for (uint32_t i = begin; i < end && !tn_forward_should_stop(f, i_thread); i++) {
        const uint32_t first = i * HEAD_ROWS_PER_ITEM;
        const uint32_t last = TN_MIN(first + HEAD_ROWS_PER_ITEM, f->n_head_rows);
        multiply_rows(f, task->format, head, task->logits, first, last, &worker);
        tn_release_head_rows(f, first, last - first);
    }
}

/* The first n_head_rows logits of the inputs in f->s.in. */
static void multiply_head(struct tn_forward *f, float *logits)
{
    const struct tn_matrix *head = &f->weights->head;
    const struct tn_format *format = tn_format_of_head(head->format, f->inputs);
    struct head_task task = {f, format, logits};
    tn_acts_derive(&f->s.in, format->act, f->kernels, f->team);
    tn_team_for_runs(f->team, tn_div_ceil_u32(f->n_head_rows, HEAD_ROWS_PER_ITEM), 1, head_run,
                     &task);
    tn_count_bytes(f, tn_layout_weight_bytes(head->layout, (uint64_t)head->rows * head->cols));
}

/* ---- head: search for the best rows ---- */

/* Several rows of the batch search the head together, so that each block of it is read once. */
struct search_task {
    struct tn_forward *f;
    uint32_t n;
    uint32_t stage;
    bool has_begun[TN_HEAD_MAX_SEARCHES]; /* false: only the last stage runs, which computes every
                                           * row */
};

static bool takes_part(const struct search_task *task, uint32_t i)
{
    return task->has_begun[i] || task->stage + 1 == tn_head_n_stages(&task->f->s.searches[i]);
}

static void search_run(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    const struct search_task *task = arg;
    struct tn_forward *f = task->f;
    const uint32_t n_rows = f->weights->head.rows;
    struct tn_head_search *parts[TN_HEAD_MAX_SEARCHES];
    const struct tn_thread_scratch *thread = &f->s.threads[i_thread];
    const struct tn_head_scratch scratch = {thread->unpacked, thread->kernel};
    uint32_t n_parts = 0;
    for (uint32_t k = 0; k < task->n; k++)
        if (takes_part(task, k))
            parts[n_parts++] = &f->s.searches[k];
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t row = i * TN_HEAD_ITEM_ROWS;
        uint32_t n_read = 0;
        tn_head_search_items(parts, n_parts, task->stage, i, &scratch);
        for (uint32_t k = 0; k < n_parts; k++)
            n_read += row < parts[k]->n_allowed ? parts[k]->counts[i].n_read : 0;
        /* Reported also if a later stage reads some of these rows again: until the last stage, the
         * pages of the first planes, with the neighbouring pages that the system maps, would be
         * nearly all of the head. */
        if (n_read > 0)
            tn_release_head_rows(f, row, TN_MIN(TN_HEAD_ITEM_ROWS, n_rows - row));
    }
}

/* Bytes of weights read by the stages of a search. */
static uint64_t search_bytes(const struct tn_head_search *s)
{
    uint32_t last = tn_head_n_stages(s) - 1;
    uint64_t bytes =
        s->n_rows[last] * tn_plane_row_bytes(s->w->cols, tn_bit_planes_bits(s->w->n_planes));
    for (uint32_t i = 0; i < last; i++)
        bytes += s->n_rows[i] * tn_plane_row(s->w->cols, i);
    return bytes;
}

/* Reading one more plane of all rows together with the first planes is faster if the first planes
 * rule out less than three quarters of the rows: scattered rows take three to four times as long.
 * The share depends on the model, so it is measured again from time to time. */
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

/* Resets a search for new inputs; its memory stays. */
static void prepare_search(const struct tn_forward *f, struct tn_head_search *s,
                           const struct tn_head_need *need, const float *x, float *logits)
{
    s->w = &f->weights->head.planes;
    s->kernels = f->kernels;
    s->x = x;
    s->n_best = need->n_best;
    s->n_first = choose_first(f);
    s->n_allowed = need->n_allowed;
    s->always = need->always;
    s->n_always = need->n_always;
    s->bits = need->bits;
    s->logits = logits;
}

/* Searches for n rows; x [n][hidden], logits [n][vocab]. */
static void search_head(struct tn_forward *f, const struct tn_logits_row *wanted, uint32_t n,
                        const float *x, float *logits)
{
    const struct tn_matrix *head = &f->weights->head;
    struct search_task task = {.f = f, .n = n};
    struct tn_head_search *s = f->s.searches;
    uint32_t n_allowed = 0;
    for (uint32_t i = 0; i < n; i++) {
        prepare_search(f, &s[i], &wanted[i].need, x + (size_t)i * head->cols,
                       logits + (size_t)i * head->rows);
        task.has_begun[i] = tn_head_search_begin(&s[i]);
        n_allowed = TN_MAX(n_allowed, s[i].n_allowed);
    }
    const uint32_t n_stages = tn_head_n_stages(s);
    for (task.stage = 0; task.stage < n_stages; task.stage = tn_head_next_stage(s, task.stage)) {
        tn_team_for_runs(f->team, tn_div_ceil_u32(n_allowed, TN_HEAD_ITEM_ROWS), 1, search_run,
                         &task);
        for (uint32_t i = 0; i < n; i++)
            if (takes_part(&task, i))
                tn_head_search_end(&s[i], task.stage, f->s.threads[0].unpacked);
    }
    learn_first(f, &s[0]);
    for (uint32_t i = 0; i < n; i++) {
        tn_count_bytes(f, search_bytes(&s[i]));
        f->counters.head_rows += s[i].w->rows;
        f->counters.head_exact += s[i].n_rows[n_stages - 1];
    }
}

/* ---- both ways ---- */

/* dst [hidden]: the state of row t, as input of the head. */
static void finish_state(const struct tn_forward *f, float *dst, uint32_t t)
{
    const struct tern_file_config *c = f->weights->config;
    tn_norm_state(f, dst, f->s.h + (size_t)t * c->hidden, f->final_norm);
    for (uint32_t i = 0; i < c->hidden && c->logit_scale != 1; i++)
        dst[i] *= c->logit_scale;
}

static enum tn_head_way way_of(const struct tn_forward *f, uint32_t i)
{
    const enum tn_head_way way = tn_head_way(&f->batch->wanted[i].need);
    return way == TN_HEAD_SEARCH && !tn_head_is_searchable(f->weights) ? TN_HEAD_ALL : way;
}

/* Number of rows that need all logits or cannot be searched. */
static uint32_t count_dense(const struct tn_forward *f)
{
    const struct tn_batch *b = f->batch;
    uint32_t n = 0;
    while (n < b->n_wanted && way_of(f, n) == TN_HEAD_ALL)
        n++;
    return n;
}

struct finish_task {
    const struct tn_forward *f;
    float *logits; /* [rows][vocab] */
    uint32_t n_parts; /* per row, each of HEAD_ROWS_PER_ITEM logits */
};

/* Unlisted logits stay minus infinity. */
static void cap_logits(const struct tn_kernels *kernels, float *logits, uint32_t n, float cap)
{
    for (uint32_t i = 0, end; i < n; i = end + 1) {
        end = i;
        while (end < n && logits[end] != -INFINITY)
            end++;
        kernels->cap_f32(logits + i, end - i, cap);
    }
}

static void finish_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct finish_task *task = arg;
    const struct tern_file_config *c = task->f->weights->config;
    const float *bias = task->f->weights->head_bias;
    float *logits = task->logits + (size_t)(i_item / task->n_parts) * c->vocab;
    const uint32_t begin = i_item % task->n_parts * HEAD_ROWS_PER_ITEM;
    const uint32_t end = TN_MIN(begin + HEAD_ROWS_PER_ITEM, c->vocab);
    (void)i_thread;
    for (uint32_t i = begin; i < end && bias; i++)
        logits[i] += bias[i];
    if (c->logit_cap > 0)
        cap_logits(task->f->kernels, logits + begin, end - begin, c->logit_cap);
}

/* Adds bias and cap to n rows of logits that were not searched. */
static void finish_logits(struct tn_forward *f, float *logits, uint32_t n)
{
    const struct tern_file_config *c = f->weights->config;
    struct finish_task task = {f, logits, tn_div_ceil_u32(c->vocab, HEAD_ROWS_PER_ITEM)};
    if (c->logit_cap != 0 || f->weights->head_bias)
        tn_team_for(f->team, n * task.n_parts, finish_item, &task);
}

static void rotate_rows(const struct tn_forward *f, float *x, uint32_t n, const struct tn_matrix *w)
{
    for (uint32_t i = 0; i < n && w->rotation; i++)
        tn_rotate(x + (size_t)i * w->cols, w->rotation, f->kernels);
}

/* dst [n][rows of embed_out] = embed_out x; overwrites x. */
static void narrow(struct tn_forward *f, float *dst, float *x, uint32_t n)
{
    const struct tn_matrix *w = &f->weights->embed_out;
    const struct tn_worker worker = tn_worker_of(f, 0);
    rotate_rows(f, x, n, w);
    const struct tn_format *format = tn_matrix_format(f, w);
    tn_acts_set(&f->s.in, x, NULL, 0, n, w->cols);
    tn_acts_derive(&f->s.in, format->act, f->kernels, f->team);
    multiply_rows(f, format, w, dst, 0, w->rows, &worker);
}

/* The inputs of the head for the wanted rows, [n_wanted][columns of head].  Narrower inputs
 * overwrite the states of the batch, which are no longer needed. */
static float *head_inputs(struct tn_forward *f)
{
    const uint32_t hidden = f->weights->config->hidden, n = f->batch->n_wanted;
    const bool is_narrow = f->weights->embed_out.format != NULL;
    float *x = is_narrow ? f->s.h : f->s.x;
    for (uint32_t i = 0; i < n; i++)
        finish_state(f, f->s.x + (size_t)i * hidden, f->batch->wanted[i].row);
    if (is_narrow)
        narrow(f, x, f->s.x, n);
    rotate_rows(f, x, n, &f->weights->head);
    return x;
}

void tn_output(struct tn_forward *f)
{
    const struct tern_file_config *c = f->weights->config;
    const struct tn_batch *b = f->batch;
    for (uint32_t t = 0; t < f->n_tokens && b->states; t++)
        finish_state(f, b->states + (size_t)t * c->hidden, t);
    if (b->n_wanted == 0)
        return;
    const uint32_t n = count_dense(f), width = f->weights->head.cols;
    float *x = head_inputs(f);
    if (n > 0) {
        tn_acts_set(&f->s.in, x, f->weights->head_in_norm, c->in_norm_eps, n, width);
        multiply_head(f, b->logits);
        finish_logits(f, b->logits, n);
    }
    uint32_t end = n;
    while (end < b->n_wanted && way_of(f, end) == TN_HEAD_SEARCH)
        end++;
    if (end > n)
        search_head(f, b->wanted + n, end - n, x + (size_t)n * width,
                    b->logits + (size_t)n * c->vocab);
    for (uint32_t i = end; i < b->n_wanted; i++)
        tn_list_head(f, &b->wanted[i].need, x + (size_t)i * width,
                     b->logits + (size_t)i * c->vocab);
    finish_logits(f, b->logits + (size_t)end * c->vocab, b->n_wanted - end);
}

/* SPDX-License-Identifier: MIT
 *
 * Grouped-query attention over the block cache.  The positions of a query are processed block by
 * block (TN_KV_BLOCK).  A block gives a partial result (largest score m, sum l of exp(s - m),
 * values o weighted by exp(s - m)); partial results are merged in ascending order:
 *
 *   M = max(m, m');  o = o * exp(m - M) + o' * exp(m' - M);  the same for l
 *
 * and att = o / l at the end.  Blocks are cut by absolute position, so the bits do not depend on
 * threads or batches.  A single row spreads runs of (block, key head) pairs over threads and merges
 * afterwards, or key heads while there are few blocks; several rows spread (key head, group of
 * tokens of one span).  In a layer with a window, a query sees a fixed number of positions
 * including itself; earlier blocks are not read, and the layer may keep its last positions in a
 * ring (mixers/attention_state.h).
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "kern/exp.h"
#include "model/attn.h"
#include "model/counters.h"
#include "model/mixers/attention_state.h"

struct attn_task {
    struct tn_forward *f;
    const struct tn_layer *layer;
    struct tn_attn_scratch *s;
    struct tn_kvcache kv;  /* of the layer */
    const struct tn_state_layer *at; /* its bytes of the blocks, or its ring */
    uint32_t per_kv;       /* query heads that share a key head */
    uint32_t tokens_per_group; /* for several rows */
    uint32_t first_block, n_pairs, n_items; /* for one row */
};

static struct attn_task task_of(struct tn_forward *f, uint32_t i_layer)
{
    const struct tn_layer *layer = &f->weights->layers[i_layer];
    return (struct attn_task){.f = f,
                              .layer = layer,
                              .s = f->s.mixers[TERN_MIXER_ATTENTION],
                              .kv = tn_kvcache_of(&layer->dims, f->kv_type),
                              .at = &f->states->layers[i_layer],
                              .per_kv = layer->dims.n_head / layer->dims.n_kv_head};
}

uint32_t tn_attn_group(const struct tn_layer_dims *dims)
{
    const uint32_t per_token = dims->n_head / dims->n_kv_head;
    return per_token * TN_MAX(1u, TN_ATTN_QUERIES / per_token);
}

/* ---- rotate and store ---- */

/* Copies n_heads heads of head_dim values to heads of dim values, zero-padded.  dst may be src if
 * no padding is needed. */
static void pad_heads(float *dst, const float *src, uint32_t n_heads, uint32_t head_dim,
                      uint32_t dim)
{
    if (dst == src)
        return;
    for (uint32_t i = 0; i < n_heads; i++) {
        memcpy(dst + (size_t)i * dim, src + (size_t)i * head_dim, head_dim * sizeof(float));
        memset(dst + (size_t)i * dim + head_dim, 0, (dim - head_dim) * sizeof(float));
    }
}

/* The rows of a key head in block i of a sequence. */
static struct tn_kv_rows rows_of(const struct attn_task *task, const struct tn_span *span,
                                 uint32_t i, uint32_t i_kv_head)
{
    const struct tn_state_layer *at = task->at;
    if (tn_has_ring(at))
        return tn_kvcache_rows(&task->kv, tn_ring_block(at, span->state + at->at.sequence, i),
                               i_kv_head);
    assert(span->blocks[i] && "callers make blocks usable before they evaluate");
    return tn_kvcache_rows(&task->kv, span->blocks[i] + at->at.block, i_kv_head);
}

static void store_row(const struct attn_task *task, const struct tn_span *span, uint32_t i_kv_head,
                      uint32_t position, const float *key, const float *value)
{
    const struct tn_kv_rows rows = rows_of(task, span, position / TN_KV_BLOCK, i_kv_head);
    tn_kvcache_store(&task->kv, task->f->kernels, &rows, position % TN_KV_BLOCK, key, value);
}

/* The query rows from i on. */
static struct tn_queries queries_from(const struct attn_task *task, const struct tn_queries *q,
                                      size_t i)
{
    uint32_t dim = task->kv.dim;
    if (task->kv.type == TN_KV_Q8)
        return (struct tn_queries){(int8_t *)q->rows + i * dim,
                                   q->scales + i * tn_kv_q8_scales(dim)};
    return (struct tn_queries){(float *)q->rows + i * dim, NULL};
}

/* The position of the only row of the batch. */
static uint32_t only_position(const struct tn_forward *f)
{
    return f->batch->spans[0].position;
}

/* RMSNorm of each of n_heads heads. */
static void norm_heads(const struct attn_task *task, float *x, const float *norm, uint32_t n_heads)
{
    const float eps = task->f->weights->config->rms_eps;
    for (uint32_t i = 0; i < n_heads && norm; i++, x += task->kv.dim)
        task->f->kernels->rms_norm_f32(x, x, norm, task->layer->dims.head_dim, eps);
}

static void rotate(const struct attn_task *task, float *heads, uint32_t t, uint32_t n)
{
    const struct tn_forward *f = task->f;
    const size_t at = tn_rope_at(f, task->layer->i_rope, t);
    if (task->layer->spec->rope != TERN_ROPE_NONE)
        f->kernels->rope_f32(heads, f->s.cos + at, f->s.sin + at, n, task->layer->spec->rope_dims,
                             task->kv.dim);
}

/* Norms and rotates the queries of key head g of token t and its key, and stores key and value in
 * the cache. */
static void rotate_and_store(const struct attn_task *task, uint32_t t, uint32_t g,
                             uint32_t i_thread)
{
    struct tn_forward *f = task->f;
    const struct tn_layer *layer = task->layer;
    const struct tn_layer_dims *c = &layer->dims;
    const struct tn_attn_scratch *s = task->s;
    const uint32_t per_kv = task->per_kv, dim = task->kv.dim;

    const size_t first = (size_t)t * c->n_head + (size_t)g * per_kv; /* number of the first query
                                                                      * head */
    float *q = s->q_rot + first * dim;
    pad_heads(q, s->q + first * c->head_dim, per_kv, c->head_dim, dim);
    norm_heads(task, q, layer->vectors[TERN_ROLE_Q_NORM], per_kv);
    rotate(task, q, t, per_kv);
    for (uint32_t i = 0; i < per_kv && task->kv.type == TN_KV_Q8; i++) {
        struct tn_queries to = queries_from(task, &s->queries, first + i);
        f->kernels->kv_store_q8(to.rows, to.scales, q + (size_t)i * dim, dim);
    }

    size_t from = ((size_t)t * c->n_kv_head + g) * c->head_dim;
    float *key = s->threads[i_thread].kv_row, *value = key + dim;
    pad_heads(key, s->k + from, 1, c->head_dim, dim);
    norm_heads(task, key, layer->vectors[TERN_ROLE_K_NORM], 1);
    rotate(task, key, t, 1);
    pad_heads(value, s->v + from, 1, c->head_dim, dim);
    const struct tn_span *span = tn_span_of(f, t);
    store_row(task, span, g, span->position + t - span->row, key, value);
}

static void rotate_token_item(void *arg, uint32_t t, uint32_t i_thread)
{
    const struct attn_task *task = arg;
    for (uint32_t g = 0; g < task->layer->dims.n_kv_head; g++)
        rotate_and_store(task, t, g, i_thread);
}

/* ---- one block ---- */

struct query_group {
    struct tn_kv_rows rows;  /* of the queries' sequence */
    struct tn_queries q;     /* [n] */
    const uint32_t *n_valid; /* [n] each query sees the positions of this block below n_valid */
    const uint32_t *n_before; /* [n] and not below n_before: they precede its window */
    uint32_t n;
    const void *next; /* the memory read after this block, for prefetching, or NULL */
};

/* Memory is idle between the products with keys and with values.  Prefetches what it can deliver
 * meanwhile, starting after the bytes that attn_qk has already prefetched; attn_pv continues from
 * there. */
#define PREFETCHED_BY_QK 8192u
#define PREFETCHED_PER_QUERY 2048u

static void prefetch(const void *p, uint32_t n_bytes)
{
    for (uint32_t i = 0; i < n_bytes; i += 64)
        TN_PREFETCH((const char *)p + i);
}

/* Writes scores [n][TN_KV_BLOCK] of the first n_pos positions. */
static void score_block(const struct attn_task *task, const struct query_group *group,
                        uint32_t n_pos, float *score)
{
    const struct tn_kernels *k = task->f->kernels;
    const struct tn_kv_rows *rows = &group->rows;
    const struct tn_queries *q = &group->q;
    const float factor = task->layer->spec->score_scale;
    uint32_t dim = task->kv.dim;
    if (task->kv.type == TN_KV_Q8)
        k->attn_qk_q8(score, TN_KV_BLOCK, q->rows, q->scales, group->n, rows->k, rows->k_scales,
                      n_pos, dim, factor);
    else
        (task->kv.type == TN_KV_F32 ? k->attn_qk_f32 : k->attn_qk_f16)(
            score, TN_KV_BLOCK, q->rows, group->n, rows->k, n_pos, dim, factor);
}

static void cap_scores(const struct tn_forward *f, const struct query_group *group, float *score)
{
    const float cap = f->weights->config->score_cap;
    for (uint32_t i = 0; i < group->n && cap > 0; i++)
        f->kernels->cap_f32(score + (size_t)i * TN_KV_BLOCK + group->n_before[i],
                            group->n_valid[i] - group->n_before[i], cap);
}

/* out [n][dim]: weighted sum of the values of the first n_pos positions. */
static void weigh_block(const struct attn_task *task, const struct query_group *group,
                        const float *weight, uint32_t n_pos, float *out)
{
    const struct tn_kernels *k = task->f->kernels;
    const struct tn_kv_rows *rows = &group->rows;
    uint32_t dim = task->kv.dim;
    if (task->kv.type == TN_KV_Q8)
        k->attn_pv_q8(out, weight, TN_KV_BLOCK, group->n, rows->v, rows->v_scales, n_pos, dim,
                      group->next);
    else
        (task->kv.type == TN_KV_F32 ? k->attn_pv_f32 : k->attn_pv_f16)(
            out, weight, TN_KV_BLOCK, group->n, rows->v, n_pos, dim);
}

static void attend_block(const struct attn_task *task, const struct query_group *group,
                         float *score, struct tn_attn_state *out)
{
    const struct tn_forward *f = task->f;
    const struct tn_kernels *k = f->kernels;
    uint32_t n_pos = 0;
    for (uint32_t i = 0; i < group->n; i++)
        n_pos = TN_MAX(n_pos, group->n_valid[i]);

    score_block(task, group, n_pos, score);
    cap_scores(f, group, score);
    /* All maxima first: computing one hides the latency of the others. */
    for (uint32_t i = 0; i < group->n; i++)
        if (group->n_valid[i])
            out->max[i] = k->max_f32(score + (size_t)i * TN_KV_BLOCK + group->n_before[i],
                                     group->n_valid[i] - group->n_before[i]);
    for (uint32_t i = 0; i < group->n; i++) {
        float *s = score + (size_t)i * TN_KV_BLOCK;
        uint32_t n = group->n_valid[i], before = group->n_before[i];
        if (f->n_tokens == 1 && n_pos == TN_KV_BLOCK)
            prefetch((const char *)group->rows.v + PREFETCHED_BY_QK + i * PREFETCHED_PER_QUERY,
                    PREFETCHED_PER_QUERY);
        if (n)
            out->sum[i] = k->exp_sum_f32(s + before, n - before, out->max[i]);
        /* Positions that this query may not see get weight +0, which changes no bit of a sum. */
        memset(s, 0, before * sizeof(float));
        memset(s + n, 0, (n_pos - n) * sizeof(float));
    }
    weigh_block(task, group, score, n_pos, out->out);
}

/* max - common.  One of the two merged maxima is the common one, and its weight exactly 1: returns
 * 0 also if both are infinite. */
static float distance(float max, float common)
{
    return max == common ? 0.0f : max - common;
}

/* o[d] = o[d] * weight[0] + p[0][d] * weight[1], then with p[1] and the next two, and so on.
 * Rows of p are p_stride apart, dim is a multiple of 16. */
static void merge_rows(float *restrict o, const float *restrict p, size_t p_stride, uint32_t n,
                       uint32_t dim, const float *restrict weight)
{
    for (uint32_t d = 0; d < dim; d += 16) {
        float sum[16]; /* registers */
        for (uint32_t j = 0; j < 16; j++)
            sum[j] = o[d + j];
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < 16; j++)
                sum[j] = sum[j] * weight[2 * i] + p[i * p_stride + d + j] * weight[2 * i + 1];
        for (uint32_t j = 0; j < 16; j++)
            o[d + j] = sum[j];
    }
}

/* Merges the partial results of two ranges of positions into total[i]; `from` is the later one. */
static void merge(struct tn_attn_state *total, uint32_t i, const struct tn_attn_state *from,
                  size_t j, uint32_t dim)
{
    float max = TN_MAX(total->max[i], from->max[j]);
    const float weight[2] = {tn_exp_f32(distance(total->max[i], max)),
                             tn_exp_f32(distance(from->max[j], max))};
    total->max[i] = max;
    total->sum[i] = total->sum[i] * weight[0] + from->sum[j] * weight[1];
    merge_rows(total->out + (size_t)i * dim, from->out + j * dim, 0, 1, dim, weight);
}

/* Writes att of head i_head of token t: o / l. */
static void finish_head(const struct attn_task *task, uint32_t t, uint32_t i_head,
                        const struct tn_attn_state *state, size_t i)
{
    const struct tn_layer_dims *c = &task->layer->dims;
    const float *restrict o = state->out + i * task->kv.dim;
    float *restrict att = task->s->att + ((size_t)t * c->n_head + i_head) * c->head_dim;
    float inverse = 1.0f / state->sum[i];
    for (uint32_t d = 0; d < c->head_dim; d++)
        att[d] = o[d] * inverse;
}

/* ---- one row: runs of (block, key head) pairs ---- */

/* Pairs are numbered in memory order, and an item is a run of them, so that a thread reads long
 * stretches; several items per thread, so that a busy core may take fewer. */
#define DECODE_ITEMS_PER_THREAD 4u

/* The address at which reading a pair begins. */
static const void *pair_begin(const struct attn_task *task, uint32_t i_pair)
{
    const uint32_t n_kv_head = task->layer->dims.n_kv_head;
    return rows_of(task, &task->f->batch->spans[0], task->first_block + i_pair / n_kv_head,
                   i_pair % n_kv_head).k_scales;
}

static void decode_pair(const struct attn_task *task, uint32_t i_pair, const void *next,
                        uint32_t i_thread)
{
    struct tn_forward *f = task->f;
    struct tn_attn_thread *scratch = &task->s->threads[i_thread];
    const struct tn_attn_state *blocks = &task->s->blocks;
    const struct tn_layer_dims *c = &task->layer->dims;
    uint32_t i_block = task->first_block + i_pair / c->n_kv_head, g = i_pair % c->n_kv_head;
    uint32_t per_kv = task->per_kv, dim = task->kv.dim, begin = i_block * TN_KV_BLOCK;
    uint32_t n_pos = TN_MIN(TN_KV_BLOCK, only_position(f) + 1 - begin);
    uint32_t first = tn_first_seen(task->layer, only_position(f));
    for (uint32_t i = 0; i < per_kv; i++) {
        scratch->n_valid[i] = n_pos;
        scratch->n_before[i] = first > begin ? first - begin : 0;
    }
    struct query_group group = {rows_of(task, &f->batch->spans[0], i_block, g),
                                queries_from(task, &task->s->queries, (size_t)g * per_kv),
                                scratch->n_valid, scratch->n_before, per_kv, next};
    size_t at = (size_t)i_block * c->n_head + (size_t)g * per_kv;
    struct tn_attn_state out = {blocks->max + at, blocks->sum + at, blocks->out + at * dim};
    attend_block(task, &group, scratch->score, &out);
}

/* Every step-th pair of [begin, end). */
static void decode_pairs(const struct attn_task *task, uint32_t begin, uint32_t end, uint32_t step,
                         uint32_t i_thread)
{
    for (uint32_t i = begin; i < end; i += step)
        decode_pair(task, i, i + step < end ? pair_begin(task, i + step) : NULL, i_thread);
}

static void decode_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct attn_task *task = arg;
    uint32_t begin = (uint32_t)((uint64_t)task->n_pairs * i_item / task->n_items);
    uint32_t end = (uint32_t)((uint64_t)task->n_pairs * (i_item + 1) / task->n_items);
    decode_pairs(task, begin, end, 1, i_thread);
}

/* Partial results merged at once, with one call for their exponentials. */
#define MERGED_TOGETHER 32u

/* The first block's entry becomes the total: equals `merge` of one block after the other. */
static void merge_item(void *arg, uint32_t i_head, uint32_t i_thread)
{
    (void)i_thread;
    struct attn_task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_attn_state *s = &task->s->blocks;
    const uint32_t n_head = task->layer->dims.n_head, dim = task->kv.dim;
    const uint32_t end = only_position(f) / TN_KV_BLOCK + 1;
    const size_t total = (size_t)task->first_block * n_head + i_head;
    float max = s->max[total], sum = s->sum[total];
    for (uint32_t first = task->first_block + 1, n; first < end; first += n) {
        float weight[2 * MERGED_TOGETHER]; /* of the total so far, and of the next result */
        const size_t at = (size_t)first * n_head + i_head;
        n = TN_MIN(end - first, MERGED_TOGETHER);
        for (uint32_t i = 0; i < n; i++) {
            float block_max = s->max[at + (size_t)i * n_head];
            float common = TN_MAX(max, block_max);
            weight[2 * i] = distance(max, common);
            weight[2 * i + 1] = distance(block_max, common);
            max = common;
        }
        f->kernels->exp_sum_f32(weight, 2 * n, 0.0f);
        for (uint32_t i = 0; i < n; i++)
            sum = sum * weight[2 * i] + s->sum[at + (size_t)i * n_head] * weight[2 * i + 1];
        merge_rows(s->out + total * dim, s->out + at * dim, (size_t)n_head * dim, n, dim, weight);
    }
    s->max[total] = max;
    s->sum[total] = sum;
    finish_head(task, 0, i_head, s, total);
}

/* Up to this many blocks a thread processes a key head from its rotation to the end: synchronising
 * threads in between would cost more than an uneven split of heads. */
#define SHALLOW_BLOCKS 2u

static void shallow_item(void *arg, uint32_t g, uint32_t i_thread)
{
    const struct attn_task *task = arg;
    const uint32_t per_kv = task->per_kv;
    rotate_and_store(task, 0, g, i_thread);
    decode_pairs(task, g, task->n_pairs, task->layer->dims.n_kv_head, i_thread);
    for (uint32_t i = g * per_kv; i < (g + 1) * per_kv; i++)
        merge_item(arg, i, i_thread);
}

static void attend_one(struct attn_task *task)
{
    struct tn_forward *f = task->f;
    const struct tn_layer_dims *c = &task->layer->dims;
    task->first_block = tn_first_seen(task->layer, only_position(f)) / TN_KV_BLOCK;
    const uint32_t n_blocks = only_position(f) / TN_KV_BLOCK + 1 - task->first_block;
    const uint32_t n_threads = tn_team_n_threads(f->team);
    task->n_pairs = n_blocks * c->n_kv_head;
    if (n_threads > 1 && n_blocks <= SHALLOW_BLOCKS) {
        tn_team_for(f->team, c->n_kv_head, shallow_item, task);
        return;
    }
    task->n_items = TN_MIN(task->n_pairs, n_threads * DECODE_ITEMS_PER_THREAD);
    rotate_token_item(task, 0, 0);
    tn_team_for(f->team, task->n_items, decode_item, task);
    tn_team_for(f->team, c->n_head, merge_item, task);
}

/* ---- several rows: (key head, group of tokens) pairs ---- */

/* Copies the queries of tokens [t, t + n_tokens) for key head g next to each other. */
static void gather_queries(const struct attn_task *task, uint32_t g, uint32_t t, uint32_t n_tokens,
                           const struct tn_queries *dst)
{
    const uint32_t per_kv = task->per_kv, dim = task->kv.dim, n_head = task->layer->dims.n_head;
    bool is_q8 = task->kv.type == TN_KV_Q8;
    size_t n_bytes = (size_t)per_kv * dim * (is_q8 ? sizeof(int8_t) : sizeof(float));
    size_t n_scale_bytes = per_kv * tn_kv_q8_scales(dim) * sizeof(uint16_t);
    for (uint32_t i = 0; i < n_tokens; i++) {
        struct tn_queries to = queries_from(task, dst, (size_t)i * per_kv);
        struct tn_queries from = queries_from(task, &task->s->queries,
                                              (size_t)(t + i) * n_head + (size_t)g * per_kv);
        memcpy(to.rows, from.rows, n_bytes);
        if (is_q8)
            memcpy(to.scales, from.scales, n_scale_bytes);
    }
}

/* Computes which positions of block b each of n queries, of tokens from a position on, sees.
 * Returns true if it is the first block for all of them. */
static bool see_block(const struct attn_task *task, uint32_t b, uint32_t position_of_first,
                      uint32_t n, struct tn_attn_thread *scratch)
{
    const uint32_t per_kv = task->per_kv, begin = b * TN_KV_BLOCK;
    bool is_first = true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t position = position_of_first + i / per_kv;
        const uint32_t first = tn_first_seen(task->layer, position), end = position + 1;
        const bool sees = end > begin && first < begin + TN_KV_BLOCK;
        scratch->n_valid[i] = sees ? TN_MIN(TN_KV_BLOCK, end - begin) : 0;
        scratch->n_before[i] = sees && first > begin ? first - begin : 0;
        scratch->is_first[i] = first / TN_KV_BLOCK == b;
        is_first = is_first && scratch->is_first[i];
    }
    return is_first;
}

static void copy_state(struct tn_attn_state *to, const struct tn_attn_state *from, uint32_t i,
                       uint32_t dim)
{
    to->max[i] = from->max[i];
    to->sum[i] = from->sum[i];
    memcpy(to->out + (size_t)i * dim, from->out + (size_t)i * dim, dim * sizeof(float));
}

static uint32_t n_groups(const struct attn_task *task, const struct tn_span *span)
{
    return tn_div_ceil_u32(span->n_rows, task->tokens_per_group);
}

/* Tokens [t, t + n_tokens) of a span, for key head g. */
static void attend_group(const struct attn_task *task, const struct tn_span *span, uint32_t t,
                         uint32_t n_tokens, uint32_t g, struct tn_attn_thread *scratch)
{
    const uint32_t per_kv = task->per_kv, dim = task->kv.dim;
    const uint32_t position = span->position + t, last = position + n_tokens - 1;
    struct query_group group = {{0}, scratch->queries, scratch->n_valid, scratch->n_before,
                                n_tokens * per_kv, NULL};
    gather_queries(task, g, span->row + t, n_tokens, &scratch->queries);
    const uint32_t first = tn_first_seen(task->layer, position) / TN_KV_BLOCK;
    for (uint32_t b = first; b * TN_KV_BLOCK <= last; b++) {
        /* Usually every query sees positions of the first block: its result becomes the total. */
        const bool is_first = see_block(task, b, position, group.n, scratch);
        group.rows = rows_of(task, span, b, g);
        attend_block(task, &group, scratch->score, is_first ? &scratch->total : &scratch->part);
        for (uint32_t i = 0; i < group.n && !is_first; i++)
            if (scratch->n_valid[i] && scratch->is_first[i])
                copy_state(&scratch->total, &scratch->part, i, dim);
            else if (scratch->n_valid[i])
                merge(&scratch->total, i, &scratch->part, i, dim);
    }
    for (uint32_t i = 0; i < group.n; i++)
        finish_head(task, span->row + t + i / per_kv, g * per_kv + i % per_kv, &scratch->total, i);
}

static void group_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct attn_task *task = arg;
    struct tn_forward *f = task->f;
    const uint32_t n_kv_head = task->layer->dims.n_kv_head, g = i_item % n_kv_head;
    const struct tn_span *span = f->batch->spans;
    uint32_t i_group = i_item / n_kv_head;
    for (uint32_t n; i_group >= (n = n_groups(task, span)); span++)
        i_group -= n;
    const uint32_t t = i_group * task->tokens_per_group;
    if (!tn_forward_should_stop(f, i_thread))
        attend_group(task, span, t, TN_MIN(task->tokens_per_group, span->n_rows - t), g,
                     &task->s->threads[i_thread]);
}

static void attend_several(struct attn_task *task)
{
    struct tn_forward *f = task->f;
    uint32_t n = 0;
    tn_team_for(f->team, f->n_tokens, rotate_token_item, task);
    task->tokens_per_group = tn_attn_group(&task->layer->dims) / task->per_kv;
    for (uint32_t i = 0; i < f->batch->n_spans; i++)
        n += n_groups(task, &f->batch->spans[i]);
    tn_team_for(f->team, n * task->layer->dims.n_kv_head, group_item, task);
}

void tn_attention(struct tn_forward *f, uint32_t i_layer)
{
    struct attn_task task = task_of(f, i_layer);
    for (uint32_t i = 0; i < f->batch->n_spans && tn_has_ring(task.at); i++) {
        const struct tn_span *span = &f->batch->spans[i];
        tn_ring_append(task.at, span->state + task.at->at.sequence, span->position, span->n_rows);
    }
    if (f->n_tokens == 1)
        attend_one(&task);
    else
        attend_several(&task);
}

void tn_kv_store_row(struct tn_forward *f, const struct tn_span *span, uint32_t i_layer,
                     uint32_t i_kv_head, uint32_t position, const float *key, const float *value)
{
    const struct attn_task task = task_of(f, i_layer);
    store_row(&task, span, i_kv_head, position, key, value);
}

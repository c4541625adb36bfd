/* SPDX-License-Identifier: MIT
 *
 * Grouped-query attention over the block cache.
 *
 * The positions of a query are taken block by block (TN_KV_BLOCK).  A block
 * gives a partial result (largest score m, sum l of exp(s - m), values o
 * weighted by exp(s - m)); partial results are merged in ascending order:
 *
 *   M = max(m, m');  o = o * exp(m - M) + o' * exp(m' - M);  the same for l
 *
 * and att = o / l at the end.  Blocks are cut by absolute position, so the bits
 * do not depend on threads or batches.  Decoding spreads runs of (block, key
 * head) pairs over threads and merges afterwards, or key heads while there are
 * few blocks; prefill spreads (key head, group of tokens) and each item walks its
 * blocks.
 */
#include <string.h>

#include "base/bits.h"
#include "kern/exp.h"
#include "model/forward.h"

/* 1 / sqrt(head_dim): sqrt and division are IEEE, so every machine agrees. */
static float score_factor(uint32_t head_dim)
{
    return 1.0f / __builtin_sqrtf((float)head_dim);
}

/* ---- rotate and store ---- */

/* Copies n_heads heads of head_dim values to heads of dim values, zero-padded. dst may be src where
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

/* One row to its place among the tiles; `is_key` says in which kind. */
static void store_row_q8(const struct tn_forward *f, uint8_t *tiles, uint16_t *scales, uint32_t row,
                         bool is_key, const float *x)
{
    uint32_t dim = f->kv->dim;
    for (uint32_t start = 0; start < dim; start += TN_KV_SCALE_VALUES, scales += TN_KV_BLOCK) {
        int8_t q[TN_KV_SCALE_VALUES];
        uint32_t n = TN_MIN(dim - start, TN_KV_SCALE_VALUES);
        f->kernels->kv_store_q8(q, &scales[row], x + start, n);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t d = start + i;
            size_t at =
                is_key ? tn_kv_q8_key_at(row, d, dim) : tn_kv_q8_value_at(row, d, dim);
            tiles[at] = (uint8_t)(q[i] + 128);
        }
    }
}

void tn_kv_store_row(const struct tn_forward *f, uint32_t layer, uint32_t i_kv_head,
                     uint32_t position, const float *key, const float *value)
{
    const struct tn_kvcache *kv = f->kv;
    struct tn_kv_rows rows = tn_kvcache_rows(kv, layer, i_kv_head, position / TN_KV_BLOCK);
    uint32_t row = position % TN_KV_BLOCK;
    if (kv->type == TN_KV_Q8) {
        store_row_q8(f, rows.k, rows.k_scales, row, true, key);
        store_row_q8(f, rows.v, rows.v_scales, row, false, value);
        return;
    }
    tn_kv_store_fn *store =
        kv->type == TN_KV_F32 ? f->kernels->kv_store_f32 : f->kernels->kv_store_f16;
    store((unsigned char *)rows.k + row * kv->row_bytes, NULL, key, kv->dim);
    store((unsigned char *)rows.v + row * kv->row_bytes, NULL, value, kv->dim);
}

/* Rows from i on. */
static struct tn_queries queries_from(const struct tn_forward *f, const struct tn_queries *q,
                                      size_t i)
{
    uint32_t dim = f->kv->dim;
    if (f->kv->type == TN_KV_Q8)
        return (struct tn_queries){(int8_t *)q->rows + i * dim,
                                   q->scales + i * tn_kv_q8_scales(dim)};
    return (struct tn_queries){(float *)q->rows + i * dim, NULL};
}

struct attn_task {
    struct tn_forward *f;
    uint32_t layer;
    uint32_t tokens_per_group; /* prefill */
    uint32_t n_pairs, n_items; /* decode */
};

/* Rotates what belongs to key head g of token t: its queries, and the key, which goes into the
 * cache with its value. */
static void rotate_and_store(const struct attn_task *task, uint32_t t, uint32_t g,
                             uint32_t i_thread)
{
    struct tn_forward *f = task->f;
    const struct tern_file_config *c = f->weights->config;
    const uint32_t per_kv = c->n_head / c->n_kv_head, dim = f->kv->dim, half = c->head_dim / 2;
    const float *cosines = f->s.cos + (size_t)t * half, *sines = f->s.sin + (size_t)t * half;

    const size_t first = (size_t)t * c->n_head + (size_t)g * per_kv; /* query */
    float *q = f->s.q_rot + first * dim;
    pad_heads(q, f->s.q + first * c->head_dim, per_kv, c->head_dim, dim);
    f->kernels->rope_f32(q, cosines, sines, per_kv, c->head_dim, dim);
    for (uint32_t i = 0; i < per_kv && f->kv->type == TN_KV_Q8; i++) {
        struct tn_queries to = queries_from(f, &f->s.queries, first + i);
        f->kernels->kv_store_q8(to.rows, to.scales, q + (size_t)i * dim, dim);
    }

    size_t from = ((size_t)t * c->n_kv_head + g) * c->head_dim;
    float *key = f->s.threads[i_thread].kv_row, *value = key + dim;
    pad_heads(key, f->s.k + from, 1, c->head_dim, dim);
    f->kernels->rope_f32(key, cosines, sines, 1, c->head_dim, dim);
    pad_heads(value, f->s.v + from, 1, c->head_dim, dim);
    tn_kv_store_row(f, task->layer, g, f->position + t, key, value);
}

static void rotate_token_item(void *arg, uint32_t t, uint32_t i_thread)
{
    const struct attn_task *task = arg;
    for (uint32_t g = 0; g < task->f->weights->config->n_kv_head; g++)
        rotate_and_store(task, t, g, i_thread);
}

/* ---- one block ---- */

struct query_group {
    struct tn_queries q;     /* [n] */
    const uint32_t *n_valid; /* [n] positions of this block that each query may see */
    uint32_t n;
    const void *next; /* what is read after this block, or NULL */
};

/* Memory rests between the products with keys and with values.  It is asked for more there, as much
 * as it delivers meanwhile, behind what attn_qk has already asked for; attn_pv goes on behind. */
#define ASKED_BY_QK 8192u
#define ASKED_PER_QUERY 2048u

static void ask_for(const void *p, uint32_t n_bytes)
{
    for (uint32_t i = 0; i < n_bytes; i += 64)
        TN_PREFETCH((const char *)p + i);
}

/* score [n][TN_KV_BLOCK] of the first n_pos positions. */
static void score_block(const struct tn_forward *f, const struct tn_kv_rows *rows,
                        const struct query_group *group, uint32_t n_pos, float *score)
{
    const struct tn_kernels *k = f->kernels;
    const struct tn_queries *q = &group->q;
    uint32_t dim = f->kv->dim;
    float factor = score_factor(f->weights->config->head_dim);
    if (f->kv->type == TN_KV_Q8)
        k->attn_qk_q8(score, TN_KV_BLOCK, q->rows, q->scales, group->n, rows->k, rows->k_scales,
                      n_pos, dim, factor);
    else
        (f->kv->type == TN_KV_F32 ? k->attn_qk_f32 : k->attn_qk_f16)(
            score, TN_KV_BLOCK, q->rows, group->n, rows->k, n_pos, dim, factor);
}

/* out [n][dim]: values of the first n_pos positions, weighted. */
static void weigh_block(const struct tn_forward *f, const struct tn_kv_rows *rows,
                        const struct query_group *group, const float *weight, uint32_t n_pos,
                        float *out)
{
    const struct tn_kernels *k = f->kernels;
    uint32_t dim = f->kv->dim;
    if (f->kv->type == TN_KV_Q8)
        k->attn_pv_q8(out, weight, TN_KV_BLOCK, group->n, rows->v, rows->v_scales, n_pos, dim,
                      group->next);
    else
        (f->kv->type == TN_KV_F32 ? k->attn_pv_f32 : k->attn_pv_f16)(
            out, weight, TN_KV_BLOCK, group->n, rows->v, n_pos, dim);
}

static void attend_block(const struct tn_forward *f, uint32_t layer, uint32_t i_kv_head,
                         uint32_t i_block, const struct query_group *group, float *score,
                         struct tn_attn_state *out)
{
    const struct tn_kernels *k = f->kernels;
    struct tn_kv_rows rows = tn_kvcache_rows(f->kv, layer, i_kv_head, i_block);
    uint32_t n_pos = 0;
    for (uint32_t i = 0; i < group->n; i++)
        n_pos = TN_MAX(n_pos, group->n_valid[i]);

    score_block(f, &rows, group, n_pos, score);
    /* All maxima first: what waits for one hides behind the others. */
    for (uint32_t i = 0; i < group->n; i++)
        if (group->n_valid[i])
            out->max[i] = k->max_f32(score + (size_t)i * TN_KV_BLOCK, group->n_valid[i]);
    for (uint32_t i = 0; i < group->n; i++) {
        float *s = score + (size_t)i * TN_KV_BLOCK;
        uint32_t n = group->n_valid[i];
        if (f->n_tokens == 1 && n_pos == TN_KV_BLOCK)
            ask_for((const char *)rows.v + ASKED_BY_QK + i * ASKED_PER_QUERY, ASKED_PER_QUERY);
        if (n)
            out->sum[i] = k->exp_sum_f32(s, n, out->max[i]);
        /* Positions that this query may not see weigh +0, which changes no bit of a sum. */
        memset(s + n, 0, (n_pos - n) * sizeof(float));
    }
    weigh_block(f, &rows, group, score, n_pos, out->out);
}

/* max - common.  One of the two that meet is the common maximum, and its weight exactly 1: 0 also
 * where both are infinite. */
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

/* total[i] becomes the partial result over both stretches; from is the later one. */
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

/* att of head i_head of token t = o / l. */
static void finish_head(struct tn_forward *f, uint32_t t, uint32_t i_head,
                        const struct tn_attn_state *state, uint32_t i)
{
    const struct tern_file_config *c = f->weights->config;
    const float *restrict o = state->out + (size_t)i * f->kv->dim;
    float *restrict att = f->s.att + ((size_t)t * c->n_head + i_head) * c->head_dim;
    float inverse = 1.0f / state->sum[i];
    for (uint32_t d = 0; d < c->head_dim; d++)
        att[d] = o[d] * inverse;
}

/* ---- decode: runs of (block, key head) pairs ---- */

/* Pairs are numbered as they lie in memory, and an item is a run of them, so that a thread reads
 * long stretches; several items for each, so that a busy core may take fewer. */
#define DECODE_ITEMS_PER_THREAD 4u

/* Where reading a pair begins. */
static const void *pair_begin(const struct attn_task *task, uint32_t i_pair)
{
    const uint32_t n_kv_head = task->f->weights->config->n_kv_head;
    return tn_kvcache_rows(task->f->kv, task->layer, i_pair % n_kv_head, i_pair / n_kv_head)
        .k_scales;
}

static void decode_pair(const struct attn_task *task, uint32_t i_pair, const void *next,
                        uint32_t i_thread)
{
    struct tn_forward *f = task->f;
    struct tn_thread_scratch *scratch = &f->s.threads[i_thread];
    const struct tern_file_config *c = f->weights->config;
    uint32_t i_block = i_pair / c->n_kv_head, g = i_pair % c->n_kv_head;
    uint32_t per_kv = c->n_head / c->n_kv_head, dim = f->kv->dim;
    uint32_t n_pos = TN_MIN(TN_KV_BLOCK, f->position + 1 - i_block * TN_KV_BLOCK);
    for (uint32_t i = 0; i < per_kv; i++)
        scratch->n_valid[i] = n_pos;
    struct query_group group = {queries_from(f, &f->s.queries, (size_t)g * per_kv),
                                scratch->n_valid, per_kv, next};
    size_t at = (size_t)i_block * c->n_head + (size_t)g * per_kv;
    struct tn_attn_state out = {f->s.blocks.max + at, f->s.blocks.sum + at,
                                f->s.blocks.out + at * dim};
    attend_block(f, task->layer, g, i_block, &group, scratch->score, &out);
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

/* Partial results that are merged at once: their exponentials in one call. */
#define MERGED_TOGETHER 32u

/* The first block's entry becomes the total: `merge` of one block after the other. */
static void merge_item(void *arg, uint32_t i_head, uint32_t i_thread)
{
    (void)i_thread;
    struct attn_task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_attn_state *s = &f->s.blocks;
    const uint32_t n_head = f->weights->config->n_head, dim = f->kv->dim;
    const uint32_t n_blocks = f->position / TN_KV_BLOCK + 1;
    float max = s->max[i_head], sum = s->sum[i_head];
    for (uint32_t first = 1, n; first < n_blocks; first += n) {
        float weight[2 * MERGED_TOGETHER]; /* of what there is, and of the next */
        const size_t at = (size_t)first * n_head + i_head;
        n = TN_MIN(n_blocks - first, MERGED_TOGETHER);
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
        merge_rows(s->out + (size_t)i_head * dim, s->out + at * dim, (size_t)n_head * dim, n, dim,
                   weight);
    }
    s->max[i_head] = max;
    s->sum[i_head] = sum;
    finish_head(f, 0, i_head, s, i_head);
}

/* Up to so many blocks a thread takes a key head from its rotation to the end: meeting the others
 * in between would cost more than heads that do not divide evenly. */
#define SHALLOW_BLOCKS 2u

static void shallow_item(void *arg, uint32_t g, uint32_t i_thread)
{
    const struct attn_task *task = arg;
    const struct tern_file_config *c = task->f->weights->config;
    const uint32_t per_kv = c->n_head / c->n_kv_head;
    rotate_and_store(task, 0, g, i_thread);
    decode_pairs(task, g, task->n_pairs, c->n_kv_head, i_thread);
    for (uint32_t i = g * per_kv; i < (g + 1) * per_kv; i++)
        merge_item(arg, i, i_thread);
}

static void decode(struct attn_task *task)
{
    struct tn_forward *f = task->f;
    const struct tern_file_config *c = f->weights->config;
    const uint32_t n_blocks = f->position / TN_KV_BLOCK + 1;
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

/* ---- prefill: (key head, group of tokens) pairs ---- */

/* Queries of tokens [t, t + n_tokens) under key head g, side by side. */
static void gather_queries(const struct tn_forward *f, uint32_t g, uint32_t t, uint32_t n_tokens,
                           const struct tn_queries *dst)
{
    const struct tern_file_config *c = f->weights->config;
    uint32_t per_kv = c->n_head / c->n_kv_head;
    bool is_q8 = f->kv->type == TN_KV_Q8;
    size_t n_bytes = (size_t)per_kv * f->kv->dim * (is_q8 ? sizeof(int8_t) : sizeof(float));
    size_t n_scale_bytes = per_kv * tn_kv_q8_scales(f->kv->dim) * sizeof(uint16_t);
    for (uint32_t i = 0; i < n_tokens; i++) {
        struct tn_queries to = queries_from(f, dst, (size_t)i * per_kv);
        struct tn_queries from =
            queries_from(f, &f->s.queries, (size_t)(t + i) * c->n_head + (size_t)g * per_kv);
        memcpy(to.rows, from.rows, n_bytes);
        if (is_q8)
            memcpy(to.scales, from.scales, n_scale_bytes);
    }
}

static void prefill_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    struct attn_task *task = arg;
    struct tn_forward *f = task->f;
    const struct tern_file_config *c = f->weights->config;
    struct tn_thread_scratch *scratch = &f->s.threads[i_thread];
    uint32_t per_kv = c->n_head / c->n_kv_head, dim = f->kv->dim;
    uint32_t g = i_item % c->n_kv_head;
    uint32_t t = i_item / c->n_kv_head * task->tokens_per_group;
    uint32_t n_tokens = TN_MIN(task->tokens_per_group, f->n_tokens - t);
    uint32_t *n_valid = scratch->n_valid;
    struct query_group group = {scratch->queries, n_valid, n_tokens * per_kv, NULL};

    gather_queries(f, g, t, n_tokens, &scratch->queries);
    uint32_t last = f->position + t + n_tokens - 1;
    for (uint32_t b = 0; b * TN_KV_BLOCK <= last; b++) {
        for (uint32_t i = 0; i < group.n; i++) {
            uint32_t n_seen = f->position + t + i / per_kv + 1; /* positions this token sees */
            uint32_t before = b * TN_KV_BLOCK;
            n_valid[i] = n_seen <= before ? 0 : TN_MIN(TN_KV_BLOCK, n_seen - before);
        }
        /* Everybody sees positions of the first block: its result becomes the total. */
        attend_block(f, task->layer, g, b, &group, scratch->score,
                     b == 0 ? &scratch->total : &scratch->part);
        for (uint32_t i = 0; i < group.n; i++)
            if (b > 0 && n_valid[i])
                merge(&scratch->total, i, &scratch->part, i, dim);
    }
    for (uint32_t i = 0; i < group.n; i++)
        finish_head(f, t + i / per_kv, g * per_kv + i % per_kv, &scratch->total, i);
}

static void prefill(struct attn_task *task)
{
    struct tn_forward *f = task->f;
    const struct tern_file_config *c = f->weights->config;
    tn_team_for(f->team, f->n_tokens, rotate_token_item, task);
    task->tokens_per_group = tn_attn_group(c) / (c->n_head / c->n_kv_head);
    uint32_t n_groups = tn_div_ceil_u32(f->n_tokens, task->tokens_per_group);
    tn_team_for(f->team, n_groups * c->n_kv_head, prefill_item, task);
}

void tn_attention(struct tn_forward *f, uint32_t layer)
{
    struct attn_task task = {.f = f, .layer = layer};
    if (f->n_tokens == 1)
        decode(&task);
    else
        prefill(&task);
}

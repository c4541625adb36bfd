/* SPDX-License-Identifier: MIT
 *
 * Mixture of experts: each row of the batch takes the few experts that a router chooses.
 *
 *   1. router(x) for all rows; softmax, the largest ones, their weights
 *   2. the pairs (row, expert), sorted by expert, in groups of one expert: each expert's weights
 *      are read for all its rows together, and those of experts without rows not at all
 *   3. act(gate x) * up x of all groups, spread over (group, block of rows of the matrix)
 *   4. down of all groups likewise
 *   5. for each row the sum of its experts' results, in ascending order of experts
 *
 * Products give the same bits for one input as for many, and the order of sums is fixed: what a row
 * gives does not depend on the rows beside it.
 */
#include "base/bits.h"
#include "kern/exp.h"
#include "model/activation.h"
#include "model/acts.h"
#include "model/counters.h"
#include "model/ffn.h"
#include "model/matrix_few.h"

#define ROUTER_ROWS 16u /* of an item of parallel work */
#define GROUP_ROWS 64u  /* rows of the batch, at most, that a group gathers */

struct group {
    uint32_t expert;
    uint32_t first, n; /* pairs */
};

struct thread {
    struct tn_acts gathered; /* rows of the input, of a group */
};

struct scratch {
    float *router;     /* [n_batch][n_experts] logits, then probabilities */
    uint32_t *experts; /* [n_batch][n_used] chosen, ascending */
    float *weights;    /* [n_batch][n_used] of these */
    uint32_t *pairs;   /* [n_batch][n_used] their numbers among all pairs, which are sorted by
                          expert, then row */
    uint32_t *rows;    /* [pairs] */
    uint32_t *ends;    /* [n_experts] end of an expert's pairs */
    struct group *groups;
    float *gate;         /* [pairs][expert_ffn] */
    struct tn_acts down; /* [pairs] input of down */
    float *out;          /* [pairs][hidden] */
    struct thread threads[];
};

struct task {
    struct tn_forward *f;
    const struct tn_layer *layer;
    struct scratch *s;
    uint32_t n_groups;
};

/* ---- which experts ---- */

static void router_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_matrix *w = tn_matrix_of(task->layer, TERN_ROLE_ROUTER);
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t row = i_item * ROUTER_ROWS, n = TN_MIN(ROUTER_ROWS, w->rows - row);
    tn_format_mul(w->format, f->n_tokens)(task->s->router + row, w->rows, 0, w, row, n, &f->s.in,
                                          &worker);
}

/* The largest of p that is not negative, of equal ones the first; NaN only where nothing else is
 * left. */
static uint32_t find_largest(const float *p, uint32_t n)
{
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if (!(p[i] < 0) && (best == n || p[i] > p[best] || p[best] != p[best]))
            best = i;
    return best;
}

/* Inserts an expert and its weight into the first n of a list that ascends by expert. */
static void insert(uint32_t *experts, float *weights, uint32_t n, uint32_t expert, float weight)
{
    for (; n > 0 && experts[n - 1] > expert; n--) {
        experts[n] = experts[n - 1];
        weights[n] = weights[n - 1];
    }
    experts[n] = expert;
    weights[n] = weight;
}

static void renormalise(float *weights, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += weights[i];
    for (uint32_t i = 0; i < n; i++)
        weights[i] /= sum;
}

static void choose_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct task *task = arg;
    const struct tern_file_config *c = task->f->weights->config;
    const uint32_t n = c->n_experts, n_used = c->n_experts_used;
    float *p = task->s->router + (size_t)t * n, *weights = task->s->weights + (size_t)t * n_used;
    uint32_t *experts = task->s->experts + (size_t)t * n_used;
    float max = p[0];
    for (uint32_t i = 1; i < n; i++)
        max = p[i] > max ? p[i] : max;
    const float sum = task->f->kernels->exp_sum_f32(p, n, max);
    for (uint32_t i = 0; i < n; i++)
        p[i] /= sum;
    for (uint32_t i = 0; i < n_used; i++) {
        const uint32_t best = find_largest(p, n);
        insert(experts, weights, i, best, p[best]);
        p[best] = -1;
    }
    if (c->expert_flags & TERN_EXPERTS_RENORMALISED)
        renormalise(weights, n_used);
}

static void choose(struct task *task)
{
    struct tn_forward *f = task->f;
    const struct tern_file_config *c = f->weights->config;
    tn_acts_set(&f->s.in, f->s.h, task->layer->vectors[TERN_ROLE_FFN_NORM], c->rms_eps,
                f->n_tokens, c->hidden);
    tn_acts_derive(&f->s.in, TN_ACT_F32, f->kernels, f->team);
    tn_team_for(f->team, tn_div_ceil_u32(c->n_experts, ROUTER_ROWS), router_item, task);
    tn_team_for(f->team, f->n_tokens, choose_item, task);
}

/* ---- pairs and groups ---- */

/* Sorts the pairs by expert and row: counts, ends, places. */
static void sort_pairs(struct task *task)
{
    struct scratch *s = task->s;
    const struct tern_file_config *c = task->f->weights->config;
    const uint32_t n_used = c->n_experts_used, n_pairs = task->f->n_tokens * n_used;
    for (uint32_t e = 0; e < c->n_experts; e++)
        s->ends[e] = 0;
    for (uint32_t i = 0; i < n_pairs; i++)
        s->ends[s->experts[i]]++;
    for (uint32_t e = 0, end = 0; e < c->n_experts; e++) {
        const uint32_t n = s->ends[e];
        s->ends[e] = end; /* its beginning, until its pairs have places */
        end += n;
    }
    for (uint32_t i = 0; i < n_pairs; i++) {
        s->pairs[i] = s->ends[s->experts[i]]++;
        s->rows[s->pairs[i]] = i / n_used;
    }
}

static void make_groups(struct task *task)
{
    const uint32_t n_experts = task->f->weights->config->n_experts;
    struct scratch *s = task->s;
    uint32_t at = 0;
    task->n_groups = 0;
    for (uint32_t e = 0; e < n_experts; e++)
        while (at < s->ends[e]) {
            const uint32_t n = TN_MIN(GROUP_ROWS, s->ends[e] - at);
            s->groups[task->n_groups++] = (struct group){e, at, n};
            at += n;
        }
}

/* ---- products ---- */

static const struct tn_format *format_of(const struct tn_forward *f, const struct tn_matrix *w)
{
    return tn_format_with(w->format, f->inputs);
}

/* dst [x->n][stride]: rows [row, row + n_rows) of W x. */
static void multiply(const struct tn_forward *f, float *dst, size_t stride,
                     const struct tn_matrix *w, uint32_t row, uint32_t n_rows,
                     const struct tn_acts *x, const struct tn_worker *worker)
{
    tn_format_mul(format_of(f, w), x->n)(dst, stride, 0, w, row, n_rows, x, worker);
}

static void count_weights(struct tn_forward *f, const struct tn_matrix *w)
{
    if (f->is_decode)
        f->counters.decode_weight_bytes +=
            tn_layout_weight_bytes(w->layout, (uint64_t)w->rows * w->cols);
}

static void clamp(float *gate, float *up, uint32_t n, float limit)
{
    for (uint32_t i = 0; i < n; i++) { /* NaN stays */
        gate[i] = gate[i] > limit ? limit : gate[i];
        up[i] = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
    }
}

/* The input of a group: rows of that of all. */
static struct tn_acts input_of(const struct task *task, const struct group *g, uint32_t i_thread)
{
    const struct tn_forward *f = task->f;
    const struct tn_expert *e = &task->layer->experts[g->expert];
    struct tn_acts *gathered = &task->s->threads[i_thread].gathered;
    if (g->n == 1)
        return tn_acts_rows(&f->s.in, task->s->rows[g->first], 1);
    tn_acts_gather(gathered, &f->s.in, task->s->rows + g->first, g->n,
                   1u << format_of(f, &e->gate)->act | 1u << format_of(f, &e->up)->act);
    return *gathered;
}

/* A block of rows of gate and up for a group. */
static void gate_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    struct tn_forward *f = task->f;
    const struct tern_file_config *c = f->weights->config;
    const uint32_t rows = c->expert_ffn, n_blocks = tn_div_ceil_u32(rows, TN_GEMM_ROWS);
    const struct group *g = &task->s->groups[i_item / n_blocks];
    const struct tn_expert *e = &task->layer->experts[g->expert];
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t row = i_item % n_blocks * TN_GEMM_ROWS, n = TN_MIN(TN_GEMM_ROWS, rows - row);
    float *gate = task->s->gate + (size_t)g->first * rows + row;
    float *up = (float *)worker.scratch->sum;
    if (tn_forward_should_stop(f, i_thread))
        return;
    const struct tn_acts x = input_of(task, g, i_thread);
    multiply(f, gate, rows, &e->gate, row, n, &x, &worker);
    multiply(f, up, TN_SUM_STRIDE, &e->up, row, n, &x, &worker);
    for (uint32_t t = 0; t < g->n; t++, gate += rows, up += TN_SUM_STRIDE) {
        if (c->expert_limit > 0)
            clamp(gate, up, n, c->expert_limit);
        tn_activate(f->kernels, f->activation, gate, up, n);
    }
}

static void down_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    struct tn_forward *f = task->f;
    const uint32_t rows = f->weights->config->hidden;
    const uint32_t n_blocks = tn_div_ceil_u32(rows, TN_GEMM_ROWS);
    const struct group *g = &task->s->groups[i_item / n_blocks];
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t row = i_item % n_blocks * TN_GEMM_ROWS, n = TN_MIN(TN_GEMM_ROWS, rows - row);
    if (tn_forward_should_stop(f, i_thread))
        return;
    const struct tn_acts x = tn_acts_rows(&task->s->down, g->first, g->n);
    multiply(f, task->s->out + (size_t)g->first * rows + row, rows,
             &task->layer->experts[g->expert].down, row, n, &x, &worker);
}

static void gate_and_up(struct task *task)
{
    struct tn_forward *f = task->f;
    for (uint32_t i = 0; i < task->n_groups; i++) {
        const struct tn_expert *e = &task->layer->experts[task->s->groups[i].expert];
        tn_acts_derive(&f->s.in, format_of(f, &e->gate)->act, f->kernels, f->team);
        tn_acts_derive(&f->s.in, format_of(f, &e->up)->act, f->kernels, f->team);
        count_weights(f, &e->gate);
        count_weights(f, &e->up);
    }
    const uint32_t n_blocks = tn_div_ceil_u32(f->weights->config->expert_ffn, TN_GEMM_ROWS);
    tn_team_for(f->team, task->n_groups * n_blocks, gate_item, task);
}

static void down(struct task *task)
{
    struct tn_forward *f = task->f;
    struct scratch *s = task->s;
    const struct tern_file_config *c = f->weights->config;
    tn_acts_follow(&s->down, &f->s.in);
    tn_acts_set(&s->down, s->gate, NULL, 0, f->n_tokens * c->n_experts_used, c->expert_ffn);
    for (uint32_t i = 0; i < task->n_groups; i++) {
        const struct tn_matrix *w = &task->layer->experts[s->groups[i].expert].down;
        tn_acts_derive(&s->down, format_of(f, w)->act, f->kernels, f->team);
        count_weights(f, w);
    }
    tn_team_for(f->team, task->n_groups * tn_div_ceil_u32(c->hidden, TN_GEMM_ROWS), down_item,
                task);
    tn_acts_follow(&f->s.in, &s->down);
}

/* ---- sums ---- */

static void sum_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct task *task = arg;
    struct tn_forward *f = task->f;
    const struct tern_file_config *c = f->weights->config;
    const size_t first = (size_t)t * c->n_experts_used;
    const float *norm = task->layer->vectors[TERN_ROLE_FFN_POST_NORM];
    float *sum = f->s.x + (size_t)t * c->hidden;
    for (uint32_t i = 0; i < c->hidden; i++)
        sum[i] = 0;
    for (uint32_t i = 0; i < c->n_experts_used; i++)
        f->kernels->add_scaled_f32(
            sum, task->s->out + (size_t)task->s->pairs[first + i] * c->hidden, c->hidden,
            task->s->weights[first + i]);
    if (norm)
        f->kernels->rms_norm_f32(sum, sum, norm, c->hidden, c->rms_eps);
    f->kernels->add_scaled_f32(f->s.h + (size_t)t * c->hidden, sum, c->hidden, c->residual_scale);
}

static void run(struct tn_forward *f, const struct tn_layer *layer)
{
    uint64_t start = f->now_ns();
    struct task task = {.f = f, .layer = layer, .s = f->s.ffns[TERN_FFN_EXPERTS]};
    f->activation = layer->spec->activation;
    choose(&task);
    sort_pairs(&task);
    make_groups(&task);
    gate_and_up(&task);
    tn_region_end(f, TN_REGION_GATE, &start);
    down(&task);
    tn_team_for(f->team, f->n_tokens, sum_item, &task);
    tn_region_end(f, TN_REGION_DOWN, &start);
}

/* ---- memory ---- */

static void layout(void *out, struct tn_arena *arena, const struct tn_weights *weights,
                   const struct tn_workspace_input *input)
{
    const struct tern_file_config *c = weights->config;
    const size_t n = input->n_batch, n_pairs = n * c->n_experts_used;
    struct scratch s = {
        .router = tn_arena_take(arena, n * c->n_experts * sizeof(float)),
        .experts = tn_arena_take(arena, n_pairs * sizeof(uint32_t)),
        .weights = tn_arena_take(arena, n_pairs * sizeof(float)),
        .pairs = tn_arena_take(arena, n_pairs * sizeof(uint32_t)),
        .rows = tn_arena_take(arena, n_pairs * sizeof(uint32_t)),
        .ends = tn_arena_take(arena, c->n_experts * sizeof(uint32_t)),
        .groups = tn_arena_take(arena, (TN_MIN(n_pairs, (size_t)c->n_experts) +
                                        n_pairs / GROUP_ROWS) * sizeof(struct group)),
        .gate = tn_arena_take(arena, n_pairs * c->expert_ffn * sizeof(float)),
        .out = tn_arena_take(arena, n_pairs * c->hidden * sizeof(float)),
    };
    tn_acts_layout(&s.down, arena, weights->down_widths, input->inputs, n_pairs);
    struct scratch *scratch = out;
    if (scratch)
        *scratch = s;
    for (uint32_t i = 0; i < input->n_threads; i++) {
        struct tn_acts gathered;
        tn_acts_layout(&gathered, arena, weights->expert_widths, input->inputs,
                       TN_MIN(n, (size_t)GROUP_ROWS));
        if (scratch)
            scratch->threads[i].gathered = gathered;
    }
}

const struct tn_ffn tn_ffn_experts = {
    .name = "experts",
    .run = run,
    .scratch_bytes = sizeof(struct scratch),
    .thread_bytes = sizeof(struct thread),
    .layout = layout,
};

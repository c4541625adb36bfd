/* SPDX-License-Identifier: MIT
 *
 * Mixture of experts: a router chooses a few experts for each row of the batch.
 *
 *   1. router(x) for all rows; softmax, the largest ones, their weights
 *   2. the pairs (row, expert), sorted by expert, in groups of one expert: each expert's weights
 *      are read once for all its rows; experts without rows are not read
 *   3. act(gate x) * up x of all groups, spread over (group, block of rows of the matrix)
 *   4. down of all groups likewise
 *   5. for each row the sum of its experts' results, in ascending order of experts, then that of
 *   the shared expert, which processes all rows in steps 1, 3 and 4
 *
 * Products give the same bits for one input as for many, and the order of sums is fixed, so the
 * result of a row does not depend on the other rows.
 */
#include "base/bits.h"
#include "base/compiler.h"
#include "kern/exp.h"
#include "model/activation.h"
#include "model/acts.h"
#include "model/counters.h"
#include "model/ffn.h"
#include "model/matrix.h"

#define ROUTER_ROWS 16u /* rows per item of parallel work */
#define GROUP_ROWS 64u  /* maximum rows of the batch that a group gathers */

struct group {
    uint32_t expert;
    uint32_t first, n; /* pairs */
};

struct thread {
    struct tn_acts gathered; /* rows of the input that a group takes */
};

struct scratch {
    float *router;     /* [n_batch][n_experts] logits, then probabilities */
    uint32_t *experts; /* [n_batch][n_used] chosen, ascending */
    float *weights;    /* [n_batch][n_used] weights of these */
    uint32_t *pairs;   /* [n_batch][n_used] their numbers among all pairs, which are sorted by
                        * expert, then row */
    uint32_t *rows;    /* [pairs] */
    uint32_t *ends;    /* [n_experts] end of an expert's pairs */
    struct group *groups;
    float *gate;         /* [pairs][expert_ffn] */
    struct tn_acts down; /* [pairs] input of down */
    float *out;          /* [pairs][hidden] */
    /* The same three for the shared expert and all rows, and the logits of its weights. */
    float *shared_gate; /* [n_batch][shared_ffn] */
    struct tn_acts shared_down;
    float *shared_out;    /* [n_batch][hidden] */
    float *shared_router; /* [n_batch] */
    struct thread threads[];
};

/* The matrices of a feed-forward: stacks, or those of the shared expert. */
struct matrices {
    const struct tn_matrix *gate, *up, *down;
};

struct task {
    struct tn_forward *f;
    const struct tn_layer *layer;
    struct scratch *s;
    struct matrices stacks, shared;
    bool has_shared;
    uint32_t n_groups;
};

/* ---- routing ---- */

static void router_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    struct tn_forward *f = task->f;
    const struct tn_matrix *w = tn_matrix_of(task->layer, TERN_ROLE_ROUTER);
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t row = i_item * ROUTER_ROWS, n = TN_MIN(ROUTER_ROWS, w->rows - row);
    struct tn_mul m = {task->s->router + row, w->rows, 0, w, row, n, &f->s.in, &worker};
    tn_format_mul(w->format, &m);
    if (i_item > 0 || !task->has_shared)
        return;
    w = tn_matrix_of(task->layer, TERN_ROLE_SHARED_ROUTER);
    m = (struct tn_mul){task->s->shared_router, 1, 0, w, 0, 1, &f->s.in, &worker};
    tn_format_mul(w->format, &m);
}

/* The largest of p that is not negative, the first of equal ones; NaN only if no other is left. */
static uint32_t find_largest(const float *p, uint32_t n)
{
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if (!(p[i] < 0) && (best == n || p[i] > p[best] || p[best] != p[best]))
            best = i;
    return best;
}

/* Inserts an expert and its weight into the first n entries of a list sorted by expert. */
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
    tn_acts_set(&f->s.in, f->input, f->input_norm, c->rms_eps, f->n_tokens, c->hidden);
    tn_acts_derive(&f->s.in, TN_ACT_F32, f->kernels, f->team);
    tn_team_for(f->team, tn_div_ceil_u32(c->n_experts, ROUTER_ROWS), router_item, task);
    tn_team_for(f->team, f->n_tokens, choose_item, task);
}

/* ---- pairs and groups ---- */

/* Counting sort of the pairs by expert and row. */
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
        s->ends[e] = end; /* the beginning, until its pairs are placed */
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

/* Announces the matrices of all chosen experts, so that a disk can read them in parallel. */
static void announce(const struct task *task)
{
    const struct tn_forward *f = task->f;
    const struct tn_matrix *const stacks[] = {task->stacks.gate, task->stacks.up,
                                              task->stacks.down};
    for (uint32_t i = 0; f->before_expert && i < task->n_groups; i++)
        for (uint32_t k = 0; k < TN_COUNT_OF(stacks); k++) {
            struct tn_matrix w;
            tn_matrix_slice(&w, stacks[k], task->s->groups[i].expert);
            f->before_expert(f->after_layer_arg, w.data,
                             (size_t)tn_layout_size(w.layout, w.rows, w.cols));
        }
}

/* ---- products ---- */

/* A product with the expert's matrix of the stack m.w, or with the only matrix. */
static void multiply(const struct tn_forward *f, uint32_t expert, struct tn_mul m)
{
    struct tn_matrix w;
    tn_matrix_slice(&w, m.w, expert);
    m.w = &w;
    tn_format_mul(tn_matrix_format(f, &w), &m);
}

static void clamp(float *gate, float *up, uint32_t n, float limit)
{
    for (uint32_t i = 0; i < n; i++) { /* NaN stays NaN */
        gate[i] = gate[i] > limit ? limit : gate[i];
        up[i] = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
    }
}

/* Block i of the rows of gate and up: dst [x->n][rows of gate] = act(gate x) * up x. */
static void gate_block(struct tn_forward *f, float *dst, const struct matrices *m, uint32_t expert,
                       uint32_t i, const struct tn_acts *x, float limit, uint32_t i_thread)
{
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t rows = m->gate->rows, row = i * TN_GEMM_ROWS;
    const uint32_t n = TN_MIN(TN_GEMM_ROWS, rows - row);
    float *gate = dst + row, *up = (float *)worker.scratch->sum;
    multiply(f, expert, (struct tn_mul){gate, rows, 0, m->gate, row, n, x, &worker});
    multiply(f, expert, (struct tn_mul){up, TN_SUM_STRIDE, 0, m->up, row, n, x, &worker});
    for (uint32_t t = 0; t < x->n; t++, gate += rows, up += TN_SUM_STRIDE) {
        if (limit > 0)
            clamp(gate, up, n, limit);
        tn_activate(f->kernels, f->activation, gate, up, n);
    }
}

/* Block i of the rows of down: dst [x->n][hidden]. */
static void down_block(struct tn_forward *f, float *dst, const struct matrices *m, uint32_t expert,
                       uint32_t i, const struct tn_acts *x, uint32_t i_thread)
{
    const struct tn_worker worker = tn_worker_of(f, i_thread);
    const uint32_t rows = m->down->rows, row = i * TN_GEMM_ROWS;
    const uint32_t n = TN_MIN(TN_GEMM_ROWS, rows - row);
    multiply(f, expert, (struct tn_mul){dst + row, rows, 0, m->down, row, n, x, &worker});
}

static uint32_t blocks_of(const struct tn_matrix *w)
{
    return tn_div_ceil_u32(w->rows, TN_GEMM_ROWS);
}

/* Blocks of the shared expert, which are the first items of a region; 0 if there is none. */
static uint32_t shared_blocks(const struct task *task, const struct tn_matrix *w)
{
    return task->has_shared ? blocks_of(w) : 0;
}

/* The input of a group: the group's rows of the whole input. */
static struct tn_acts input_of(const struct task *task, const struct group *g, uint32_t i_thread)
{
    const struct tn_forward *f = task->f;
    struct tn_acts *gathered = &task->s->threads[i_thread].gathered;
    if (g->n == 1)
        return tn_acts_rows(&f->s.in, task->s->rows[g->first], 1);
    tn_acts_gather(gathered, &f->s.in, task->s->rows + g->first, g->n,
                   1u << tn_matrix_format(f, task->stacks.gate)->act |
                       1u << tn_matrix_format(f, task->stacks.up)->act);
    return *gathered;
}

static void gate_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    struct tn_forward *f = task->f;
    const uint32_t n_shared = shared_blocks(task, task->shared.gate);
    const uint32_t n_blocks = blocks_of(task->stacks.gate);
    if (tn_forward_should_stop(f, i_thread))
        return;
    if (i_item < n_shared) {
        gate_block(f, task->s->shared_gate, &task->shared, 0, i_item, &f->s.in, 0, i_thread);
        return;
    }
    const struct group *g = &task->s->groups[(i_item - n_shared) / n_blocks];
    const struct tn_acts x = input_of(task, g, i_thread);
    gate_block(f, task->s->gate + (size_t)g->first * task->stacks.gate->rows, &task->stacks,
               g->expert, (i_item - n_shared) % n_blocks, &x, f->weights->config->expert_limit,
               i_thread);
}

static void down_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct task *task = arg;
    struct tn_forward *f = task->f;
    const uint32_t n_shared = shared_blocks(task, task->shared.down);
    const uint32_t n_blocks = blocks_of(task->stacks.down);
    if (tn_forward_should_stop(f, i_thread))
        return;
    if (i_item < n_shared) {
        down_block(f, task->s->shared_out, &task->shared, 0, i_item, &task->s->shared_down,
                   i_thread);
        return;
    }
    const struct group *g = &task->s->groups[(i_item - n_shared) / n_blocks];
    const struct tn_acts x = tn_acts_rows(&task->s->down, g->first, g->n);
    down_block(f, task->s->out + (size_t)g->first * task->stacks.down->rows, &task->stacks,
               g->expert, (i_item - n_shared) % n_blocks, &x, i_thread);
}

/* Makes the input format that a matrix takes, and counts n matrices of its stack. */
static void prepare(struct tn_forward *f, struct tn_acts *x, const struct tn_matrix *w, uint32_t n)
{
    tn_acts_derive(x, tn_matrix_format(f, w)->act, f->kernels, f->team);
    tn_count_bytes(f, n * tn_layout_weight_bytes(w->layout, (uint64_t)w->rows * w->cols));
}

static void gate_and_up(struct task *task)
{
    struct tn_forward *f = task->f;
    f->counters.n_experts_read += f->is_decode ? task->n_groups : 0;
    prepare(f, &f->s.in, task->stacks.gate, task->n_groups);
    prepare(f, &f->s.in, task->stacks.up, task->n_groups);
    if (task->has_shared) {
        prepare(f, &f->s.in, task->shared.gate, 1);
        prepare(f, &f->s.in, task->shared.up, 1);
    }
    tn_team_for(f->team,
                shared_blocks(task, task->shared.gate) +
                    task->n_groups * blocks_of(task->stacks.gate),
                gate_item, task);
}

static void down(struct task *task)
{
    struct tn_forward *f = task->f;
    struct scratch *s = task->s;
    const struct tern_file_config *c = f->weights->config;
    tn_acts_follow(&s->down, &f->s.in);
    tn_acts_set(&s->down, s->gate, NULL, 0, f->n_tokens * c->n_experts_used, c->expert_ffn);
    prepare(f, &s->down, task->stacks.down, task->n_groups);
    tn_acts_follow(&s->shared_down, &s->down);
    if (task->has_shared) {
        tn_acts_set(&s->shared_down, s->shared_gate, NULL, 0, f->n_tokens, c->shared_ffn);
        prepare(f, &s->shared_down, task->shared.down, 1);
    }
    tn_team_for(f->team,
                shared_blocks(task, task->shared.down) +
                    task->n_groups * blocks_of(task->stacks.down),
                down_item, task);
    tn_acts_follow(&f->s.in, &s->shared_down);
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
    if (task->has_shared)
        f->kernels->add_scaled_f32(sum, task->s->shared_out + (size_t)t * c->hidden, c->hidden,
                                   1.0f / (1.0f + tn_exp_f32(-task->s->shared_router[t])));
    if (norm)
        f->kernels->rms_norm_f32(sum, sum, norm, c->hidden, c->rms_eps);
    f->kernels->add_scaled_f32(f->s.h + (size_t)t * c->hidden, sum, c->hidden, c->residual_scale);
}

static void run(struct tn_forward *f, const struct tn_layer *layer)
{
    uint64_t start = f->now_ns();
    struct task task = {.f = f,
                        .layer = layer,
                        .s = f->s.ffns[TERN_FFN_EXPERTS],
                        .stacks = {tn_matrix_of(layer, TERN_ROLE_EXPERT_GATE),
                                   tn_matrix_of(layer, TERN_ROLE_EXPERT_UP),
                                   tn_matrix_of(layer, TERN_ROLE_EXPERT_DOWN)},
                        .shared = {tn_matrix_of(layer, TERN_ROLE_SHARED_GATE),
                                   tn_matrix_of(layer, TERN_ROLE_SHARED_UP),
                                   tn_matrix_of(layer, TERN_ROLE_SHARED_DOWN)},
                        .has_shared = f->weights->config->shared_ffn > 0};
    f->activation = layer->spec->activation;
    choose(&task);
    sort_pairs(&task);
    make_groups(&task);
    announce(&task);
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
        .router = tn_take_f32(arena, n * c->n_experts),
        .experts = tn_arena_take(arena, n_pairs * sizeof(uint32_t)),
        .weights = tn_take_f32(arena, n_pairs),
        .pairs = tn_arena_take(arena, n_pairs * sizeof(uint32_t)),
        .rows = tn_arena_take(arena, n_pairs * sizeof(uint32_t)),
        .ends = tn_arena_take(arena, c->n_experts * sizeof(uint32_t)),
        .groups = tn_arena_take(arena, (TN_MIN(n_pairs, (size_t)c->n_experts) +
                                        n_pairs / GROUP_ROWS) * sizeof(struct group)),
        .gate = tn_take_f32(arena, n_pairs * c->expert_ffn),
        .out = tn_take_f32(arena, n_pairs * c->hidden),
    };
    tn_acts_layout(&s.down, arena, weights->down_widths, input->inputs, n_pairs);
    if (c->shared_ffn > 0) {
        s.shared_gate = tn_take_f32(arena, n * c->shared_ffn);
        s.shared_out = tn_take_f32(arena, n * c->hidden);
        s.shared_router = tn_take_f32(arena, n);
        tn_acts_layout(&s.shared_down, arena, weights->shared_widths, input->inputs, n);
    }
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

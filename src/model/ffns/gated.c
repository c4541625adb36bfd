/* SPDX-License-Identifier: MIT
 *
 * The gated feed-forward, down(act(gate(x)) * up(x)), and the products that squared ReLU lets it
 * skip.  relu(g)^2 * u is zero wherever g <= 0, and after the sub-norm many values round to the
 * int8 zero.  So when one token is decoded and the layouts allow it (up in rows, down in columns):
 *
 *   1. gate for all rows
 *   2. up only for the rows with gate > 0
 *   3. down only for the columns whose int8 input is not zero
 *
 * Skipped terms would have added an exact zero: the bits are those of the dense path.  With a full
 * list the same kernels are the dense path.
 */
#include "model/activation.h"
#include "model/counters.h"
#include "model/ffn.h"
#include "model/matrix_few.h"

struct scratch {
    float *gate; /* [n_batch][ffn]; then the product act(gate) * up */
    float *up;   /* [n_batch][ffn], if keeps_up */
};

static const struct scratch *scratch_of(const struct tn_forward *f)
{
    return f->s.ffns[TERN_FFN_GATED];
}

/* Whether gate and up are computed separately: they have biases, or they do not share an input,
 * because each has a norm or only one is rotated. */
static bool keeps_up(const struct tn_layer *layer)
{
    const float *const *v = layer->vectors;
    return v[TERN_ROLE_GATE_IN_NORM] || v[TERN_ROLE_UP_IN_NORM] || v[TERN_ROLE_GATE_BIAS] ||
           v[TERN_ROLE_UP_BIAS] ||
           tn_matrix_of(layer, TERN_ROLE_GATE)->rotation !=
               tn_matrix_of(layer, TERN_ROLE_UP)->rotation;
}

/* Lists the needed rows of up: gate > 0, or all if the activation has no zeros.  Other gates become
 * the zero that their product would be. */
static uint32_t list_active_rows(const struct tn_forward *f, uint32_t n_ffn, uint32_t *rows)
{
    if (f->activation == TERN_ACT_RELU2)
        return f->kernels->list_positive_f32(rows, scratch_of(f)->gate, n_ffn);
    for (uint32_t i = 0; i < n_ffn; i++)
        rows[i] = i;
    return n_ffn;
}

/* From this share of positive gates on, all rows of up together are faster than a few tokens'
 * lists. */
#define MAX_DENSITY_FEW 0.4
/* Gates per token from which the share is estimated. */
#define SAMPLE_GATES 512u

static bool is_sparse(const struct tn_forward *f, const float *gate, uint32_t n_ffn)
{
    const uint32_t n = TN_MIN(n_ffn, SAMPLE_GATES);
    uint32_t n_positive = 0;
    for (uint32_t t = 0; t < f->n_tokens; t++)
        for (uint32_t i = 0; i < n; i++)
            n_positive += gate[(size_t)t * n_ffn + i] > 0;
    return n_positive <= MAX_DENSITY_FEW * n * f->n_tokens;
}

/* Gate for all rows, then up for the needed ones; for a few tokens all rows of up if gates are
 * mostly positive. */
static void gate_then_up(struct tn_forward *f, const struct tn_layer *layer, uint64_t *start)
{
    const uint32_t n_ffn = layer->dims.ffn;
    const struct tn_matrix *up = tn_matrix_of(layer, TERN_ROLE_UP);
    const struct tn_product gate = {.w = tn_matrix_of(layer, TERN_ROLE_GATE),
                                    .dst = scratch_of(f)->gate};
    tn_multiply(f, f->input, f->input_norm, f->weights->config->hidden, &gate, 1);
    tn_region_end(f, TN_REGION_GATE, start);
    if (f->n_tokens == 1) {
        const uint32_t n = list_active_rows(f, n_ffn, f->s.active);
        tn_multiply_rows(f, up, gate.dst, f->s.active, n);
        f->counters.up_active += n;
        f->counters.up_rows += n_ffn;
    } else if (is_sparse(f, gate.dst, n_ffn)) {
        tn_multiply_rows_few(f, up, gate.dst);
    } else {
        tn_multiply_up(f, up, gate.dst);
    }
    tn_region_end(f, TN_REGION_UP, start);
}

struct activate_task {
    struct tn_forward *f;
    uint32_t n; /* values per token */
};

static void activate_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct activate_task *task = arg;
    const struct scratch *s = scratch_of(task->f);
    const size_t at = (size_t)t * task->n;
    tn_activate(task->f->kernels, task->f->activation, s->gate + at, s->up + at, task->n);
}

static void gate_and_up(struct tn_forward *f, const struct tn_layer *layer)
{
    const struct scratch *s = scratch_of(f);
    const struct tn_product products[] = {
        {.w = tn_matrix_of(layer, TERN_ROLE_GATE),
         .in_norm = layer->vectors[TERN_ROLE_GATE_IN_NORM], .dst = s->gate},
        {.w = tn_matrix_of(layer, TERN_ROLE_UP),
         .in_norm = layer->vectors[TERN_ROLE_UP_IN_NORM], .dst = s->up},
    };
    struct activate_task task = {f, layer->dims.ffn};
    tn_multiply(f, f->input, f->input_norm, f->weights->config->hidden, products, 2);
    tn_add_bias(s->gate, layer->vectors[TERN_ROLE_GATE_BIAS], f->n_tokens, layer->dims.ffn);
    tn_add_bias(s->up, layer->vectors[TERN_ROLE_UP_BIAS], f->n_tokens, layer->dims.ffn);
    tn_team_for(f->team, f->n_tokens, activate_item, &task);
}

static void run(struct tn_forward *f, const struct tn_layer *layer)
{
    uint64_t start = f->now_ns();
    const struct tn_matrix *up = tn_matrix_of(layer, TERN_ROLE_UP);
    f->activation = layer->spec->activation;
    const bool may_skip = f->n_tokens == 1 || (f->n_tokens <= TN_FEW_TOKENS &&
                                               f->activation == TERN_ACT_RELU2);
    if (keeps_up(layer)) {
        gate_and_up(f, layer);
        tn_region_end(f, TN_REGION_GATE, &start);
    } else if (up->format->mul_rows && may_skip) {
        gate_then_up(f, layer, &start);
    } else {
        const struct tn_product gated = {.w = tn_matrix_of(layer, TERN_ROLE_GATE),
                                         .dst = scratch_of(f)->gate, .up = up};
        tn_multiply(f, f->input, f->input_norm, f->weights->config->hidden, &gated, 1);
        tn_region_end(f, TN_REGION_GATE, &start);
    }
    const struct tn_branch down = {
        .w = tn_matrix_of(layer, TERN_ROLE_DOWN),
        .norm = layer->vectors[TERN_ROLE_FFN_SUB_NORM],
        .in_norm = layer->vectors[TERN_ROLE_DOWN_IN_NORM],
        .bias = layer->vectors[TERN_ROLE_DOWN_BIAS],
        .post_norm = layer->vectors[TERN_ROLE_FFN_POST_NORM],
    };
    tn_add_branch(f, scratch_of(f)->gate, layer->dims.ffn, &down);
    tn_region_end(f, TN_REGION_DOWN, &start);
}

static void layout(void *out, struct tn_arena *arena, const struct tn_weights *weights,
                   const struct tn_workspace_input *input)
{
    size_t n_gate = 0, n_up = 0;
    for (uint32_t i = 0; i < tn_n_all_layers(weights->config); i++) {
        const struct tn_layer *l = &weights->layers[i];
        const size_t n = l->spec->ffn == TERN_FFN_GATED ? l->dims.ffn : 0;
        n_gate = TN_MAX(n_gate, n);
        if (keeps_up(l))
            n_up = TN_MAX(n_up, n);
    }
    const struct scratch s = {
        .gate = tn_take_f32(arena, input->n_batch * n_gate),
        .up = tn_take_f32(arena, input->n_batch * n_up),
    };
    if (out)
        *(struct scratch *)out = s;
}

const struct tn_ffn tn_ffn_gated = {
    .name = "gated", .run = run, .scratch_bytes = sizeof(struct scratch), .layout = layout};

/* SPDX-License-Identifier: MIT
 *
 * The feed-forward without a gate, down(act(up(x))), with biases where the model has them.  Nothing
 * is skipped.
 */
#include "model/activation.h"
#include "model/counters.h"
#include "model/ffn.h"
#include "model/matrix.h"

struct scratch {
    float *up; /* [n_batch][ffn] */
};

struct activate_task {
    struct tn_forward *f;
    float *x;
    uint32_t n; /* values per token */
};

static void activate_item(void *arg, uint32_t t, uint32_t i_thread)
{
    const struct activate_task *task = arg;
    (void)i_thread;
    tn_activate_plain(task->f->kernels, task->f->activation, task->x + (size_t)t * task->n,
                      task->n);
}

static void run(struct tn_forward *f, const struct tn_layer *layer)
{
    uint64_t start = f->now_ns();
    const struct scratch *s = f->s.ffns[TERN_FFN_PLAIN];
    const struct tn_product up = {.w = tn_matrix_of(layer, TERN_ROLE_UP), .dst = s->up};
    struct activate_task task = {f, s->up, layer->dims.ffn};
    f->activation = layer->spec->activation;
    tn_multiply(f, f->input, f->input_norm, f->weights->config->hidden, &up, 1);
    tn_add_bias(s->up, layer->vectors[TERN_ROLE_UP_BIAS], f->n_tokens, layer->dims.ffn);
    tn_team_for(f->team, f->n_tokens, activate_item, &task);
    tn_region_end(f, TN_REGION_UP, &start);
    const struct tn_branch down = {
        .w = tn_matrix_of(layer, TERN_ROLE_DOWN),
        .bias = layer->vectors[TERN_ROLE_DOWN_BIAS],
        .post_norm = layer->vectors[TERN_ROLE_FFN_POST_NORM],
    };
    tn_add_branch(f, s->up, layer->dims.ffn, &down);
    tn_region_end(f, TN_REGION_DOWN, &start);
}

static void layout(void *out, struct tn_arena *arena, const struct tn_weights *weights,
                   const struct tn_workspace_input *input)
{
    size_t n = 0;
    for (uint32_t i = 0; i < tn_n_all_layers(weights->config); i++)
        if (weights->layers[i].spec->ffn == TERN_FFN_PLAIN)
            n = TN_MAX(n, (size_t)weights->layers[i].dims.ffn);
    const struct scratch s = {.up = tn_take_f32(arena, input->n_batch * n)};
    if (out)
        *(struct scratch *)out = s;
}

const struct tn_ffn tn_ffn_plain = {
    .name = "plain", .run = run, .scratch_bytes = sizeof(struct scratch), .layout = layout};

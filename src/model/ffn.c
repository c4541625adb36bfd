/* SPDX-License-Identifier: MIT
 *
 * The feed-forward block, and what squared ReLU lets it skip.
 *
 * relu(g)^2 * u is zero wherever g <= 0, and after the sub-norm many values
 * round to the int8 zero.  So when one token is decoded and the layouts allow
 * it (up in rows, down in columns):
 *
 *   1. gate for all rows
 *   2. up only for the rows with gate > 0
 *   3. down only for the columns whose int8 input is not zero
 *
 * What is skipped would have added an exact zero: the bits are those of the
 * dense path.  With a full list the same kernels are the dense path.
 */
#include "kern/exp.h"
#include "model/forward.h"

void tn_activate(const struct tn_forward *f, float *gate, const float *up, uint32_t n)
{
    if (f->weights->config->activation == TERN_ACT_RELU2) {
        f->kernels->relu2_mul_f32(gate, gate, up, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        gate[i] = gate[i] / (1.0f + tn_exp_f32(-gate[i])) * up[i];
}

/* Numbers of the rows of up that matter: gate > 0, or all when the activation has no zeros.  What
 * does not matter becomes the zero that it would give. */
static uint32_t list_active_rows(const struct tn_forward *f, uint32_t *rows)
{
    uint32_t n_ffn = f->weights->config->ffn;
    if (f->weights->config->activation == TERN_ACT_RELU2)
        return f->kernels->list_positive_f32(rows, f->s.gate, n_ffn);
    for (uint32_t i = 0; i < n_ffn; i++)
        rows[i] = i;
    return n_ffn;
}

/* Step 2: s.gate becomes act(gate) * up, computed for the active rows only. */
static void up_active(struct tn_forward *f, const struct tn_layer *layer)
{
    uint32_t n = list_active_rows(f, f->s.active);
    tn_project_up(f, &layer->up, f->s.gate, f->s.active, n);
    f->counters.up_active += n;
    f->counters.up_rows += f->weights->config->ffn;
}

/* Step 3: h += down of the rounded input in s.xq, columns with a zero input left out. */
static void down_active(struct tn_forward *f, const struct tn_layer *layer)
{
    uint32_t n_ffn = f->weights->config->ffn;
    uint32_t *cols = f->s.active;
    int8_t *x = f->s.active_x;
    uint32_t n = f->kernels->list_nonzero_i8(cols, f->s.xq, n_ffn);
    for (uint32_t i = 0; i < n; i++)
        x[i] = f->s.xq[cols[i]];
    tn_project_cols(f, &layer->down, cols, x, n, f->s.h);
    f->counters.down_active += n;
    f->counters.down_cols += n_ffn;
}

void tn_ffn(struct tn_forward *f, const struct tn_layer *layer)
{
    uint64_t start = f->now_ns();
    bool decoding = f->n_tokens == 1;
    if (decoding && layer->up.w.layout == TERN_LAYOUT_R2) {
        tn_project(f, &(struct tn_projection){.linear = &layer->gate, .dst = f->s.gate}, 1);
        tn_region_end(f, TN_REGION_GATE, &start);
        up_active(f, layer);
        tn_region_end(f, TN_REGION_UP, &start);
    } else {
        const struct tn_projection gated = {
            .linear = &layer->gate, .dst = f->s.gate, .up = &layer->up};
        tn_project(f, &gated, 1);
        tn_region_end(f, TN_REGION_GATE, &start);
    }
    tn_round_input(f, f->s.gate, layer->ffn_sub_norm, f->weights->config->ffn);
    if (decoding && layer->down.w.layout == TERN_LAYOUT_C2)
        down_active(f, layer);
    else
        tn_project(f, &(struct tn_projection){.linear = &layer->down, .dst = f->s.h, .add = true},
                   1);
    tn_region_end(f, TN_REGION_DOWN, &start);
}

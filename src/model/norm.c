/* SPDX-License-Identifier: MIT
 *
 * RMSNorm and LayerNorm of hidden states (norm.h), token by token, with the order of additions that
 * the kernels use.
 */
#include "model/norm.h"

#include <string.h>

#include "base/bits.h"

typedef void norm_fn(const struct tn_kernels *kernels, float *dst, const float *x,
                     const struct tn_norm *norm, uint32_t n, float eps);

static void rms_norm(const struct tn_kernels *kernels, float *dst, const float *x,
                     const struct tn_norm *norm, uint32_t n, float eps)
{
    kernels->rms_norm_f32(dst, x, norm->weights, n, eps);
}

/* The mean, from 16 partial sums in lane order, as in kernels. */
static float mean_of(const float *x, uint32_t n)
{
    float lane[16] = {0};
    uint32_t k = 0;
    for (; k + 16 <= n; k += 16)
        for (uint32_t j = 0; j < 16; j++)
            lane[j] += x[k + j];
    for (uint32_t j = 0; k + j < n; j++)
        lane[j] += x[k + j];
    return tn_tree_sum_f32(lane) / (float)n;
}

/* LayerNorm as the RMSNorm of x - mean(x), whose mean square is the variance of x. */
static void layer_norm(const struct tn_kernels *kernels, float *dst, const float *x,
                       const struct tn_norm *norm, uint32_t n, float eps)
{
    const float mean = mean_of(x, n);
    for (uint32_t k = 0; k < n; k++)
        dst[k] = x[k] - mean;
    kernels->rms_norm_f32(dst, dst, norm->weights, n, eps);
    for (uint32_t k = 0; k < n && norm->bias; k++)
        dst[k] += norm->bias[k];
}

/* By number, enum tern_norm. */
static norm_fn *const kinds[TERN_NORM_END] = {
    [TERN_NORM_RMS] = rms_norm,
    [TERN_NORM_LAYER] = layer_norm,
};

void tn_norm_state(const struct tn_forward *f, float *dst, const float *x,
                   const struct tn_norm *norm)
{
    const struct tern_file_config *c = f->weights->config;
    if (norm->weights)
        kinds[c->norm](f->kernels, dst, x, norm, c->hidden, c->rms_eps);
    else if (dst != x)
        memcpy(dst, x, c->hidden * sizeof *dst);
}

struct task {
    const struct tn_forward *f;
    float *dst;
    const struct tn_norm *norm;
};

static void norm_item(void *arg, uint32_t t, uint32_t i_thread)
{
    const struct task *task = arg;
    const size_t at = (size_t)t * task->f->weights->config->hidden;
    (void)i_thread;
    tn_norm_state(task->f, task->dst + at, task->f->s.h + at, task->norm);
}

void tn_norm_states(struct tn_forward *f, float *dst, const struct tn_norm *norm)
{
    struct task task = {f, dst, norm};
    tn_team_for(f->team, f->n_tokens, norm_item, &task);
}

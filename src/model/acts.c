/* SPDX-License-Identifier: MIT
 *
 * Forms of an input: norms and rounding, a token to each item of parallel work.
 */
#include "model/acts.h"

#include <assert.h>
#include <string.h>

#include "base/compiler.h"

void tn_acts_set(struct tn_acts *acts, const float *x, const float *norm, float eps, uint32_t n,
                 uint32_t cols)
{
    acts->x = x;
    acts->norm = norm;
    acts->eps = eps;
    acts->n = n;
    acts->cols = cols;
    acts->made = 0;
    acts->number++;
}

struct derive_task {
    struct tn_acts *acts;
    const struct tn_kernels *kernels;
};

static void i8_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct derive_task *task = arg;
    struct tn_acts *a = task->acts;
    const struct tn_kernels *k = task->kernels;
    const float *x = a->x + (size_t)t * a->cols;
    int8_t *q = a->i8 + t * a->i8_stride;
    a->i8_scale[t] = a->norm ? k->rms_norm_quant(q, x, a->norm, a->cols, a->eps)
                             : k->quant_i8(q, x, a->cols);
    a->i8_sum[t] = k->sum_i8(q, tn_kern_pad(a->cols));
}

static void f32_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct derive_task *task = arg;
    struct tn_acts *a = task->acts;
    const float *x = a->x + (size_t)t * a->cols;
    float *dst = a->f32_own + t * a->f32_stride;
    if (a->norm)
        task->kernels->rms_norm_f32(dst, x, a->norm, a->cols, a->eps);
    else
        memcpy(dst, x, a->cols * sizeof *x);
    memset(dst + a->cols, 0, (a->f32_stride - a->cols) * sizeof *dst);
}

static void x16_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct derive_task *task = arg;
    struct tn_acts *a = task->acts;
    task->kernels->quant_x16((char *)a->x16 + t * TN_X16_BYTES(a->cols),
                             a->f32 + t * a->f32_stride, a->cols);
}

static void x8_item(void *arg, uint32_t t, uint32_t i_thread)
{
    (void)i_thread;
    const struct derive_task *task = arg;
    struct tn_acts *a = task->acts;
    task->kernels->quant_x8((char *)a->x8 + t * TN_X8_BYTES(a->cols),
                            a->f32 + t * a->f32_stride, a->cols);
}

static void derive_f32(struct derive_task *task, struct tn_team *team)
{
    struct tn_acts *a = task->acts;
    a->f32_stride = tn_kern_pad(a->cols);
    a->f32 = a->f32_own;
    if (!a->norm && a->cols == a->f32_stride)
        a->f32 = a->x;
    else
        tn_team_for(team, a->n, f32_item, task);
}

void tn_acts_derive(struct tn_acts *acts, enum tn_act form, const struct tn_kernels *kernels,
                    struct tn_team *team)
{
    struct derive_task task = {acts, kernels};
    if (acts->made >> form & 1)
        return;
    acts->made |= 1u << form;
    switch (form) {
    case TN_ACT_F32:
        derive_f32(&task, team);
        break;
    case TN_ACT_I8:
        tn_team_for(team, acts->n, i8_item, &task);
        break;
    case TN_ACT_PREP:
        assert(acts->n == 1 && "several tokens multiply");
        tn_acts_derive(acts, TN_ACT_I8, kernels, team);
        kernels->prep_r2(acts->prep, acts->i8, acts->cols);
        break;
    default:
        tn_acts_derive(acts, TN_ACT_F32, kernels, team);
        tn_team_for(team, acts->n, form == TN_ACT_X8 ? x8_item : x16_item, &task);
    }
}

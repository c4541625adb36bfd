/* SPDX-License-Identifier: MIT
 *
 * Prepares the formats of an input (acts.h): applies norms and rotations and rounds, in parallel,
 * one token per item of work.
 */
#include "model/acts.h"

#include <assert.h>
#include <string.h>

void tn_acts_set(struct tn_acts *acts, const float *x, const float *norm, float eps, uint32_t n,
                 uint32_t cols)
{
    acts->number += acts->n + 1; /* rows had numbers, too */
    acts->x = x;
    acts->norm = norm;
    acts->eps = eps;
    acts->rotation = NULL;
    acts->n = n;
    acts->cols = cols;
    acts->made = 0;
}

void tn_acts_follow(struct tn_acts *acts, const struct tn_acts *before)
{
    acts->number = before->number;
    acts->n = before->n;
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
    const float *x = a->rotation ? a->f32 + t * a->f32_stride : a->x + (size_t)t * a->cols;
    int8_t *q = a->i8 + t * a->i8_stride;
    a->i8_scale[t] = a->norm && !a->rotation
                         ? k->rms_norm_quant(q, x, a->norm, a->cols, a->eps)
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
    if (a->rotation)
        tn_rotate(dst, a->rotation, task->kernels);
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
    if (!a->norm && !a->rotation && a->cols == a->f32_stride)
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
        if (acts->rotation)
            tn_acts_derive(acts, TN_ACT_F32, kernels, team);
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

/* ---- subsets of rows ---- */

struct tn_acts tn_acts_rows(const struct tn_acts *acts, uint32_t row, uint32_t n)
{
    struct tn_acts rows = *acts;
    const size_t at = row;
    rows.n = n;
    if (n == 1 && acts->n > 1)
        rows.number += 1 + row;
    rows.x += at * acts->cols;
    if (acts->f32)
        rows.f32 += at * acts->f32_stride;
    if (acts->i8) {
        rows.i8 += at * acts->i8_stride;
        rows.i8_scale += row;
        rows.i8_sum += row;
    }
    if (acts->x16)
        rows.x16 = (char *)acts->x16 + at * TN_X16_BYTES(acts->cols);
    if (acts->x8)
        rows.x8 = (char *)acts->x8 + at * TN_X8_BYTES(acts->cols);
    return rows;
}

static void copy_row(struct tn_acts *to, uint32_t i, const struct tn_acts *from, uint32_t row)
{
    const struct tn_acts one = tn_acts_rows(from, row, 1);
    if (to->made >> TN_ACT_F32 & 1)
        memcpy(to->f32_own + i * to->f32_stride, one.f32, to->f32_stride * sizeof(float));
    if (to->made >> TN_ACT_I8 & 1) {
        memcpy(to->i8 + i * to->i8_stride, one.i8, tn_kern_pad(to->cols));
        to->i8_scale[i] = one.i8_scale[0];
        to->i8_sum[i] = one.i8_sum[0];
    }
    if (to->made >> TN_ACT_X16 & 1)
        memcpy((char *)to->x16 + i * TN_X16_BYTES(to->cols), one.x16, TN_X16_BYTES(to->cols));
    if (to->made >> TN_ACT_X8 & 1)
        memcpy((char *)to->x8 + i * TN_X8_BYTES(to->cols), one.x8, TN_X8_BYTES(to->cols));
}

void tn_acts_gather(struct tn_acts *to, const struct tn_acts *from, const uint32_t *rows,
                    uint32_t n, uint32_t forms)
{
    to->n = n;
    to->cols = from->cols;
    to->made = forms;
    to->f32 = to->f32_own;
    to->f32_stride = tn_kern_pad(from->cols);
    for (uint32_t i = 0; i < n; i++)
        copy_row(to, i, from, rows[i]);
}

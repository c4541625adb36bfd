/* SPDX-License-Identifier: MIT
 *
 * Chooses the layouts and kinds of scales for the tensors of a plan, after the survey has read what
 * only the data reveal.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "convert/tensor_plan.h"
#include "kern/blocks.h"

/* Columns that share a scale in both of two tilings; `cols`: whole rows. */
static uint32_t common_group(uint32_t a, uint32_t b, uint32_t cols)
{
    if (a == cols || b == cols)
        return a == cols ? b : a;
    while (b != 0) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Gives the n matrices of a stack, in floats of any type, one layout. */
static void share_layout(struct tn_tensor_plan_row *t, uint32_t n)
{
    uint32_t layout = t[0].file.layout;
    for (uint32_t i = 1; i < n; i++)
        if (t[i].file.layout != layout)
            layout = TERN_LAYOUT_F32;
    for (uint32_t i = 0; i < n; i++)
        t[i].file.layout = layout;
}

/* Gives the n matrices of a stack one kind of scales. */
static void share_scales(struct tn_tensor_plan_row *t, uint32_t n)
{
    struct tn_scale_facts facts = t[0].scales;
    for (uint32_t i = 1; i < n; i++) {
        facts.group = common_group(facts.group, t[i].scales.group, t->file.cols);
        facts.are_f16 = facts.are_f16 && t[i].scales.are_f16;
        facts.is_one = facts.is_one && t[i].scales.is_one && t[i].scales.value == facts.value;
    }
    for (uint32_t i = 0; i < n; i++) {
        facts.value = t[i].scales.value;
        t[i].scales = facts;
    }
}

static void settle_matrix(struct tn_tensor_plan_row *t, const struct tn_config_import *import)
{
    const struct tn_slot *slot = tn_slot_of(t->file.role);
    const uint32_t activation =
        t->file.layer == TERN_NO_LAYER ? 0 : import->layers[t->file.layer].activation;
    t->file.layout = tn_slot_ternary_layout(slot, import->config.inputs, activation);
    t->file.scale_kind = TERN_SCALE_TENSOR;
    if (import->config.inputs == TERN_INPUTS_I8_TOKEN)
        return;
    /* With unrounded inputs there is at least one scale per row. */
    t->file.scale_kind = t->scales.are_f16 ? TERN_SCALE_COL_GROUP_F16 : TERN_SCALE_COL_GROUP;
    t->file.scale_group = t->scales.group;
}

const struct tn_tensor_plan_row *
tn_tensor_plan_many_scales(const struct tn_tensor_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_tensors; i++)
        if (tn_tensor_is_ternary(&plan->tensors[i]) && !plan->tensors[i].scales.is_one)
            return &plan->tensors[i];
    return NULL;
}

bool tn_tensor_plan_has_ternary(const struct tn_tensor_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_tensors; i++)
        if (tn_tensor_is_ternary(&plan->tensors[i]))
            return true;
    return false;
}

static uint32_t choose_inputs(const struct tn_tensor_plan *plan,
                              const struct tn_config_import *import, enum tern_activations wanted)
{
    if (!tn_tensor_plan_has_ternary(plan))
        return TERN_INPUTS_FLOAT;
    bool is_int8 = import->inputs_said == TN_INPUTS_INT8 ||
                   (import->inputs_said == TN_INPUTS_UNSAID && !tn_tensor_plan_many_scales(plan));
    if (wanted != TERN_ACTIVATIONS_AUTO)
        is_int8 = wanted == TERN_ACTIVATIONS_INT8;
    return is_int8 ? TERN_INPUTS_I8_TOKEN : TERN_INPUTS_FLOAT;
}

static tern_status fail_many_scales(const struct tn_tensor_plan_row *t,
                                    enum tern_activations wanted, struct tern_error *err)
{
    if (wanted == TERN_ACTIVATIONS_INT8)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "tensor \"%s\" has several scales: inputs in int8 need one for each whole "
                       "matrix; leave --activations out",
                       t->weight->name);
    return tn_fail(err, TERN_UNSUPPORTED,
                   "tensor \"%s\" has several scales, but this family has one for each whole "
                   "matrix, which its int8 inputs require: was the file made from weights before "
                   "they became ternary?",
                   t->weight->name);
}

/* The layout that preserves floats of the source; for encoded ones f16 is close. */
static uint32_t layout_of_floats(const struct tn_tensor_plan_row *t)
{
    if (t->weight->dtype == TN_DTYPE_F32)
        return t->narrow_layout ? t->narrow_layout : TERN_LAYOUT_F32;
    return t->weight->dtype == TN_DTYPE_BF16 ? TERN_LAYOUT_BF16 : TERN_LAYOUT_F16;
}

/* keeps_values: the model is not ternary, so that a rounded table would not make it much smaller;
 * or its vectors would show the rounding: with q8 their cosine with the reference is 0.9993 to
 * 0.9997, with f16 at least 0.99999. */
static uint32_t table_layout(const struct tn_tensor_plan_row *t, enum tern_head_type wanted,
                             bool keeps_values)
{
    static const uint32_t layouts[] = {
        [TERN_HEAD_Q8] = TERN_LAYOUT_Q8_PLANES, [TERN_HEAD_Q6] = TERN_LAYOUT_Q6,
        [TERN_HEAD_Q4] = TERN_LAYOUT_Q4,        [TERN_HEAD_F16] = TERN_LAYOUT_F16,
        [TERN_HEAD_BF16] = TERN_LAYOUT_BF16,    [TERN_HEAD_F32] = TERN_LAYOUT_F32,
    };
    if (wanted != TERN_HEAD_AUTO)
        return layouts[wanted];
    if (t->weight->encoding && t->weight->encoding->layout)
        return t->weight->encoding->layout;
    return keeps_values ? layout_of_floats(t) : TERN_LAYOUT_Q8_PLANES;
}

/* The layout of tensors that are not ternary. */
static uint32_t choose_layout(const struct tn_tensor_plan_row *t, enum tern_head_type wanted,
                              bool keeps_tables)
{
    switch (t->kind) {
    case TN_TENSOR_TABLE:
        return table_layout(t, wanted, keeps_tables);
    case TN_TENSOR_BLOCKS:
        return t->weight->encoding->layout;
    case TN_TENSOR_FLOATS:
        return layout_of_floats(t);
    default:
        return TERN_LAYOUT_F32;
    }
}

/* For each stack: one kind of scales, or one layout. */
static void share_in_stacks(struct tn_tensor_plan *plan,
                            void (*share)(struct tn_tensor_plan_row *t, uint32_t n))
{
    for (uint32_t i = 0, n; i < plan->n_tensors; i += TN_MAX(n, 1u)) {
        n = plan->tensors[i].file.n_stacked;
        if (n > 0)
            share(&plan->tensors[i], n);
    }
}

tern_status tn_tensor_plan_settle(struct tn_tensor_plan *plan, struct tn_config_import *import,
                                  const struct tern_convert_params *params,
                                  struct tern_error *err)
{
    const bool keeps_tables =
        (import->config.flags & TERN_MODEL_NO_HEAD) || !tn_tensor_plan_has_ternary(plan);
    share_in_stacks(plan, share_scales);
    import->config.inputs = choose_inputs(plan, import, params->activations);
    for (uint32_t i = 0; i < plan->n_tensors; i++) {
        struct tn_tensor_plan_row *t = &plan->tensors[i];
        if (tn_tensor_is_ternary(t)) {
            if (import->config.inputs == TERN_INPUTS_I8_TOKEN && !t->scales.is_one)
                return fail_many_scales(t, params->activations, err);
            settle_matrix(t, import);
            plan->n_ternary += (uint64_t)t->file.rows * t->file.cols;
            continue;
        }
        t->file.layout = choose_layout(t, params->head, keeps_tables);
        if (tn_is_blocks(t->file.layout))
            t->kind = TN_TENSOR_BLOCKS;
        t->file.scale_kind =
            tn_layout_scales(t->file.layout) ? TERN_SCALE_ROW : TERN_SCALE_NONE;
    }
    share_in_stacks(plan, share_layout);
    return TERN_OK;
}

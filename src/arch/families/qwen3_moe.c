/* SPDX-License-Identifier: MIT
 *
 * Qwen3-30B-A3B: Qwen3 with experts in every layer.
 */
#include <math.h>

#include "arch/family.h"

/* No published model has layers without experts. */
static tern_status check_all_have_experts(const struct tn_values *v)
{
    static const struct tn_value step_value = {"decoder_sparse_step", NULL, 1, 1};
    uint32_t step = 1;
    double first = NAN;
    tern_status status = tn_values_integer(v, &step, &step_value, false);
    if (status == TERN_OK && !v->is_gguf)
        status = v->element(v, &first, "mlp_only_layers", 0);
    if (status == TERN_OK && !isnan(first))
        status = tn_values_refuse(v, "\"mlp_only_layers\" that is not empty");
    return status;
}

static tern_status qwen3_moe_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    bool renormalises = v->is_gguf; /* what the absence of the key means */
    tern_status status = check_all_have_experts(v);
    if (status == TERN_OK)
        status = tn_values_truth(v, &renormalises, "norm_topk_prob", "expert_weights_norm");
    return status == TERN_OK ? tn_spec_experts(s, v, renormalises) : status;
}

const struct tn_family tn_family_qwen3_moe = {
    .name = "qwen3_moe",
    .model_types = {"qwen3_moe"},
    .gguf = {{"qwen3moe", TERN_ACT_SILU}},
    .needs = {TERN_ROLE_Q_NORM, TERN_ROLE_K_NORM},
    .spec = qwen3_moe_spec,
};

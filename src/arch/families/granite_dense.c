/* SPDX-License-Identifier: MIT
 *
 * Granite 4 without H: the graph of Granite 3.  Folders have the names and keys of the hybrids with
 * experts, GGUF files the architecture granite.
 */
#include "arch/families/granite.h"

static const struct tn_family_name names[] = {
    {TERN_ROLE_DOWN, "shared_mlp.output_linear", NULL},
    {0, NULL, NULL},
};

static const struct tn_fused fused[] = {
    {"shared_mlp.input_linear", NULL, {TERN_ROLE_GATE, TERN_ROLE_UP}, TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

static const struct tn_family_key keys[] = {
    {"intermediate_size", "shared_intermediate_size"}, {NULL, NULL}};

/* Refuses experts, and layers that are not attention. */
static tern_status granite_dense_spec(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value count = {"num_local_experts", NULL, 0, TERN_MAX_DIM};
    uint32_t n_experts = 0;
    tern_status status = tn_values_integer(v, &n_experts, &count, false);
    if (status == TERN_OK && n_experts != 0)
        status = tn_values_refuse(v, "\"num_local_experts\" above 0");
    for (uint32_t i = 0; i < s->config->n_layer && status == TERN_OK; i++) {
        enum tn_layer_kind kind;
        status = v->layer_kind(v, &kind, i);
    }
    return status == TERN_OK ? tn_granite_spec(s, v) : status;
}

const struct tn_family tn_family_granite_dense = {
    .name = "granite",
    .model_types = {"granitemoehybrid"},
    .names = names,
    .fused = fused,
    .keys = keys,
    .names_positions = true,
    .spec = granite_dense_spec,
};

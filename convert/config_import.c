/* SPDX-License-Identifier: MIT
 *
 * Parts of a model's description for both kinds of source: memory, stop ids, and applying a row of
 * arch/family.h.
 */
#include "convert/config_import.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

bool tn_stop_ids_add(struct tn_stop_ids *stop_ids, uint32_t id)
{
    for (uint32_t i = 0; i < stop_ids->n; i++)
        if (stop_ids->ids[i] == id)
            return true;
    if (stop_ids->n == TN_MAX_STOP_IDS)
        return false;
    stop_ids->ids[stop_ids->n++] = id;
    return true;
}

void tn_config_import_fini(struct tn_config_import *import)
{
    tn_free(import->layers);
    tn_free(import->rope_factors);
    import->layers = NULL;
    import->rope_factors = NULL;
    tn_rotation_import_fini(&import->rotation);
}

bool tn_config_is_local(const struct tn_config_import *import, uint32_t layer)
{
    return import->family->has_local_layers && import->layers[layer].window != 0;
}

void tn_config_need(struct tn_config_import *out, const uint8_t *roles, size_t n)
{
    for (size_t i = 0; i < n && roles[i]; i++)
        out->needs[roles[i]] = true;
}

void tn_config_apply_family(struct tn_config_import *out)
{
    const struct tn_family *f = out->family;
    out->family_name = f->name;
    if (f->inputs != TN_INPUTS_UNSAID)
        out->inputs_said = f->inputs;
    out->says_ternary = f->is_ternary;
    out->config.norm = f->norm;
    out->config.order = f->order;
    tn_config_need(out, f->needs, TN_COUNT_OF(f->needs));
}

void tn_config_apply_scheme(struct tn_config_import *out, const struct tn_scheme *scheme)
{
    out->family_name = scheme->name;
    out->inputs_said = scheme->inputs;
    out->says_ternary = true;
    if (scheme->in_norms_share_eps)
        out->config.in_norm_eps = out->config.rms_eps;
    tn_config_need(out, scheme->needs, TN_COUNT_OF(scheme->needs));
}

tern_status tn_config_make_layers(struct tn_config_import *out, struct tern_error *err)
{
    const uint32_t n = out->config.n_layer;
    out->layers = tn_alloc_zeroed((size_t)n + 1, sizeof *out->layers);
    return out->layers ? TERN_OK : tn_fail(err, TERN_MEMORY, "no memory for %u layers", n);
}

void tn_config_fill_layers(struct tn_config_import *out, uint32_t activation, double theta)
{
    for (uint32_t i = 0; i < out->config.n_layer; i++) {
        struct tern_file_layer *layer = &out->layers[i];
        *layer = tn_layer_default(out->config.head_dim, activation, theta);
        layer->rope_dims = out->rope_dims;
        layer->ffn = out->family->ffn ? out->family->ffn : layer->ffn;
        layer->rope = out->family->has_positions ? TERN_ROPE_NONE : layer->rope;
    }
}

void tn_list_add(char *dst, size_t n_dst, size_t k, size_t n, const char *name)
{
    const char *link = k == 0 ? "" : k + 1 == n ? " and " : ", ";
    const size_t at = strlen(dst);
    snprintf(dst + at, n_dst - at, "%s%s", link, name);
}

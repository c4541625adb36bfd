/* SPDX-License-Identifier: MIT
 *
 * Which family a Hugging Face directory is of: a row of evidence each, from
 * config.json here and from tensors in tn_config_recognise.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "config_values.h"
#include "source.h"

#define CONFIG TN_CONFIG_FILE

/* ---- quantization_config ---- */

static tern_status check_excluded_modules(const json_t *quant, struct tern_error *err)
{
    const json_t *modules = json_object_get(quant, "modules_to_not_convert");
    for (size_t i = 0; i < json_array_size(modules); i++) {
        const char *name = json_string_value(json_array_get(modules, i));
        if (!name || strcmp(name, "lm_head") != 0)
            return tn_fail(err, TERN_UNSUPPORTED,
                           CONFIG ": \"modules_to_not_convert\" holds \"%s\"; only \"lm_head\" is "
                                  "supported",
                           name ? name : "(no text)");
    }
    return TERN_OK;
}

/* Linear layers of transformers' bitnet.py: AutoBitLinear multiplies by weight_scale, BitLinear,
 * which is meant where nothing is said, divides by it. */
static tern_status parse_quantization(struct tn_config_import *out, const json_t *root,
                                      const json_t *quant, struct tern_error *err)
{
    const char *name = tn_config_architecture(root);
    const char *method = tn_config_text(quant, "quant_method", "(none)");
    if (strcmp(method, "bitnet") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: quant_method \"%s\" is not ternary; tern runs ternary models", name,
                       method);
    const char *linear = tn_config_text(quant, "linear_class", "bitlinear");
    if (strcmp(linear, "autobitlinear") != 0 && strcmp(linear, "bitlinear") != 0)
        return tn_fail(err, TERN_UNSUPPORTED, "%s: linear_class \"%s\" is unknown", name, linear);
    const char *mode = tn_config_text(quant, "quantization_mode", "");
    out->form = strcmp(mode, "online") == 0    ? TN_FORM_LATENT
                : strcmp(mode, "offline") == 0 ? TN_FORM_PACKED
                                               : TN_FORM_UNSAID;
    if (mode[0] != '\0' && out->form == TN_FORM_UNSAID)
        return tn_fail(err, TERN_UNSUPPORTED, CONFIG ": quantization_mode \"%s\" is unknown",
                       mode);
    out->rule = strcmp(linear, "autobitlinear") == 0 ? TN_WEIGHTS_MULTIPLIED : TN_WEIGHTS_DIVIDED;
    out->inputs_said = TN_INPUTS_INT8;
    if (json_is_true(json_object_get(quant, "use_rms_norm"))) {
        double eps = 1e-6;
        const json_t *value = json_object_get(quant, "rms_norm_eps");
        tern_status status =
            value ? tn_config_number(&eps, "rms_norm_eps", value, 1e-30, 1, err) : TERN_OK;
        if (status != TERN_OK)
            return status;
        out->needs_in_norms = true;
        out->config.in_norm_eps = (float)eps;
    }
    return check_excluded_modules(quant, err);
}

/* ---- graphs ---- */

/* Scales of MiniCPM's states; see its modeling_minicpm.py. */
static tern_status parse_minicpm(struct tern_file_config *c, const json_t *root,
                                 struct tern_error *err)
{
    double embedding, depth, base;
    tern_status status = tn_config_number(&embedding, "scale_emb",
                                          json_object_get(root, "scale_emb"), 1e-6, 1e6, err);
    if (status == TERN_OK)
        status = tn_config_number(&depth, "scale_depth", json_object_get(root, "scale_depth"),
                                  1e-6, 1e6, err);
    if (status == TERN_OK)
        status = tn_config_number(&base, "dim_model_base",
                                  json_object_get(root, "dim_model_base"), 1, 1e9, err);
    if (status != TERN_OK)
        return status;
    c->embedding_scale = (float)embedding;
    c->residual_scale = (float)(depth / sqrt((double)c->n_layer));
    c->logit_scale = (float)(base / (double)c->hidden);
    return TERN_OK;
}

/* The graphs that the engine has, by model_type; what a class is called does not matter. */
static const struct graph {
    const char *model_type;
    const char *family;
    bool needs_qk_norms, is_gemma, is_minicpm;
} graphs[] = {
    {.model_type = "llama", .family = "llama"},
    {.model_type = "bitnet", .family = "bitnet"},
    {.model_type = "qwen3", .family = "qwen3", .needs_qk_norms = true},
    {.model_type = "gemma3_text", .family = "gemma3", .needs_qk_norms = true, .is_gemma = true},
    {.model_type = "minicpm", .family = "minicpm", .is_minicpm = true},
};

static tern_status find_graph(const struct graph **out, const json_t *root, struct tern_error *err)
{
    const char *type = tn_config_text(root, "model_type", "");
    char known[200] = "";
    for (size_t i = 0; i < TN_COUNT_OF(graphs); i++) {
        *out = &graphs[i];
        if (strcmp(type, graphs[i].model_type) == 0)
            return TERN_OK;
        tn_list_add(known, sizeof known, i, TN_COUNT_OF(graphs), graphs[i].model_type);
    }
    return tn_fail(err, TERN_UNSUPPORTED,
                   "%s: the architecture of model_type \"%s\" is not supported; tern has those of "
                   "%s",
                   tn_config_architecture(root), type, known);
}

static tern_status parse_graph(struct tn_config_import *out, const struct graph *graph,
                               const json_t *root, struct tern_error *err)
{
    out->needs_qk_norms = graph->needs_qk_norms;
    out->is_gemma = out->adds_one_to_norms = graph->is_gemma;
    if (graph->is_gemma)
        out->config.embedding_scale = sqrtf((float)out->config.hidden);
    return graph->is_minicpm ? parse_minicpm(&out->config, root, err) : TERN_OK;
}

static bool is_embedding_class(const json_t *root)
{
    const char *name = tn_config_architecture(root);
    return strstr(name, "Model") && !strstr(name, "For");
}

tern_status tn_config_family(struct tn_config_import *out, const json_t *root,
                             struct tern_error *err)
{
    const json_t *quant = json_object_get(root, "quantization_config");
    const struct graph *graph;
    tern_status status = TERN_OK;
    if (quant && !json_is_null(quant))
        status = parse_quantization(out, root, quant, err);
    if (status == TERN_OK)
        status = find_graph(&graph, root, err);
    if (status != TERN_OK)
        return status;
    out->family = graph->family;
    if (quant && !json_is_null(quant)) {
        out->needs_sub_norms = strcmp(graph->model_type, "bitnet") == 0;
    } else if (json_object_get(root, "weight_bits") && json_object_get(root, "input_bits")) {
        out->family = "bitnet"; /* 1bitLLM: BitNet's graph with SiLU, and latent weights */
        out->rule = TN_WEIGHTS_MULTIPLIED;
        out->inputs_said = TN_INPUTS_INT8;
        out->needs_sub_norms = true;
    } else if (json_object_get(root, "pretraining_model_parallel")) {
        out->family = "trilm";
        out->inputs_said = TN_INPUTS_FLOAT;
    }
    if (is_embedding_class(root))
        out->config.flags |= TERN_MODEL_NO_HEAD;
    return parse_graph(out, graph, root, err);
}

/* ---- what tensors say ---- */

static bool has_tensor(const struct tn_source *source, const char *ending)
{
    static const char *const prefixes[] = {"model.", ""};
    for (size_t i = 0; i < TN_COUNT_OF(prefixes); i++) {
        char name[128];
        snprintf(name, sizeof name, "%slayers.0.self_attn.q_proj.%s", prefixes[i], ending);
        if (tn_source_find(source, name))
            return true;
    }
    return false;
}

tern_status tn_config_recognise(struct tn_config_import *import, const struct tn_source *source,
                                struct tern_error *err)
{
    (void)err;
    const bool has_head = tn_source_find(source, "lm_head.weight") != NULL;
    if (import->rule == TN_WEIGHTS_FOUND && has_tensor(source, "norm.weight")) {
        /* BitNet embeddings: latent weights behind a norm each, inputs in int8. */
        import->family = "bitnet-embedding";
        import->rule = TN_WEIGHTS_MULTIPLIED;
        import->inputs_said = TN_INPUTS_INT8;
        import->needs_in_norms = true;
        import->config.in_norm_eps = import->config.rms_eps;
    } else if (import->rule == TN_WEIGHTS_FOUND && has_tensor(source, "scales")) {
        import->family = "deepgrove";
        import->rule = TN_WEIGHTS_ROUNDED;
        import->inputs_said = TN_INPUTS_FLOAT;
    }
    if (has_head && import->tie != TN_TIE_YES)
        import->config.flags &= ~TERN_MODEL_NO_HEAD;
    if (import->config.flags & TERN_MODEL_NO_HEAD)
        return TERN_OK;
    if (import->tie == TN_TIE_YES || (import->tie == TN_TIE_UNSAID && !has_head))
        import->config.flags |= TERN_MODEL_TIED_HEAD;
    return TERN_OK;
}

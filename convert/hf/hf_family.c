/* SPDX-License-Identifier: MIT
 *
 * Determines the family of a Hugging Face directory and how its weights are stored: from
 * config.json first, and from the tensors in tn_config_recognise.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"
#include "base/json_object.h"
#include "convert/hf/config_values.h"
#include "convert/hf/hf_config.h"
#include "convert/tensor_find.h"
#include "convert/source.h"

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
 * the default, divides by it. */
static tern_status parse_quantization(struct tn_config_import *out, const json_t *root,
                                      const json_t *quant, struct tern_error *err)
{
    const char *name = tn_config_architecture(root);
    const bool is_mlx = json_object_get(quant, "group_size") && json_object_get(quant, "bits");
    const char *method = tn_config_text(quant, "quant_method", is_mlx ? "mlx" : "(none)");
    if (strcmp(method, "bitnet") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: quant_method \"%s\" is not supported; take the folder that is not "
                       "quantized, or a GGUF file", name, method);
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
        static const uint8_t in_norms[] = {
            TERN_ROLE_Q_IN_NORM,    TERN_ROLE_K_IN_NORM,  TERN_ROLE_V_IN_NORM, TERN_ROLE_O_IN_NORM,
            TERN_ROLE_GATE_IN_NORM, TERN_ROLE_UP_IN_NORM, TERN_ROLE_DOWN_IN_NORM};
        double eps = 1e-6;
        const json_t *value = json_object_get(quant, "rms_norm_eps");
        tern_status status =
            value ? tn_config_number(&eps, "rms_norm_eps", value, 1e-30, 1, err) : TERN_OK;
        if (status != TERN_OK)
            return status;
        tn_config_need(out, in_norms, TN_COUNT_OF(in_norms));
        out->config.in_norm_eps = (float)eps;
    }
    return check_excluded_modules(quant, err);
}

/* ---- family and scheme ---- */

static tern_status fail_model_type(const json_t *root, const char *type, struct tern_error *err)
{
    char known[400] = "";
    size_t n = 0, k = 0;
    for (const struct tn_family *const *f = tn_families; *f; f++)
        for (const char *const *name = (*f)->model_types; *name; name++)
            n++;
    for (const struct tn_family *const *f = tn_families; *f; f++)
        for (const char *const *name = (*f)->model_types; *name; name++)
            tn_list_add(known, sizeof known, k++, n, *name);
    return tn_fail(err, TERN_UNSUPPORTED,
                   "%s: the architecture of model_type \"%s\" is not supported; tern has those of "
                   "%s",
                   tn_config_architecture(root), type, known);
}

static const struct tn_family *family_of(const json_t *config)
{
    return tn_family_of_model_type(tn_config_text(config, "model_type", ""));
}

/* transformers 5 writes the default of its class into the text model's configuration, whatever the
 * one around it states.  If they differ, the tensors decide.  False: no memory. */
static bool drop_doubtful_tie(json_t *text, const json_t *root)
{
    static const char key[] = "tie_word_embeddings";
    const json_t *inner = json_object_get(text, key), *outer = json_object_get(root, key);
    if (!json_is_boolean(inner) || !json_is_boolean(outer) || json_equal(inner, outer))
        return true;
    return json_object_set_new(text, key, json_null()) == 0;
}

tern_status tn_config_text_model(json_t **root, struct tern_error *err)
{
    json_t *text = json_object_get(*root, "text_config"), *defaults;
    const struct tn_family *outer = family_of(*root), *family = family_of(text);
    bool ok = true;
    if (!outer && family && family->prefixes[0]) {
        json_t *whole = json_object();
        ok = tn_json_add_missing(whole, text) && drop_doubtful_tie(whole, *root) &&
             tn_json_add_missing(whole, *root);
        json_decref(*root);
        *root = whole;
    } else {
        family = outer;
    }
    if (family && family->defaults && ok) {
        tern_status status = tn_json_load(&defaults, "defaults", family->defaults,
                                          strlen(family->defaults), JSON_DECODE_INT_AS_REAL, err);
        if (status != TERN_OK)
            return status;
        ok = tn_json_add_missing(*root, defaults);
        json_decref(defaults);
    }
    return ok ? TERN_OK : tn_fail(err, TERN_MEMORY, CONFIG ": no memory for its text model");
}

/* quantization_config, or evidence found before, takes precedence. */
static void find_scheme(struct tn_config_import *out, const json_t *root,
                        const struct tn_source *source)
{
    struct tn_hf_values values;
    tn_hf_values_init(&values, out->family, root, source, NULL);
    const struct tn_scheme *scheme =
        out->rule == TN_WEIGHTS_FOUND ? tn_scheme_find(&values.values) : NULL;
    if (!scheme)
        return;
    tn_config_apply_scheme(out, scheme);
    out->rule = scheme->rule;
}

static bool is_embedding_class(const json_t *root)
{
    const char *name = tn_config_architecture(root);
    return strstr(name, "Model") && !strstr(name, "For") && !strstr(name, "LMHead");
}

/* true: the first n_needed biases must exist, which all models with the key have; false: none must,
 * even if the family usually has it. */
static void find_biases(struct tn_config_import *out, const json_t *root)
{
    static const struct {
        const char *usual;
        uint8_t roles[4];
        size_t n_needed;
    } keys[] = {
        {"attention_bias",
         {TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS, TERN_ROLE_O_BIAS},
         3},
        {"mlp_bias", {TERN_ROLE_GATE_BIAS, TERN_ROLE_UP_BIAS, TERN_ROLE_DOWN_BIAS}, 3},
    };
    for (size_t i = 0; i < TN_COUNT_OF(keys); i++) {
        const json_t *value = json_object_get(root, tn_family_key(out->family, keys[i].usual));
        if (json_is_true(value))
            tn_config_need(out, keys[i].roles, keys[i].n_needed);
        for (size_t k = 0; k < TN_COUNT_OF(keys[i].roles) && json_is_false(value); k++)
            out->needs[keys[i].roles[k]] = false; /* role 0 ends the list and is none */
    }
}

tern_status tn_config_family(struct tn_config_import *out, const json_t *root,
                             struct tern_error *err)
{
    const json_t *quant = json_object_get(root, "quantization_config");
    const char *type = tn_config_text(root, "model_type", "");
    tern_status status = TERN_OK;
    if (!tn_json_is_absent(quant))
        status = parse_quantization(out, root, quant, err);
    if (status != TERN_OK)
        return status;
    out->family = tn_family_of_model_type(type);
    if (!out->family)
        return fail_model_type(root, type, err);
    out->fixups = out->family->folder_fixups;
    tn_config_apply_family(out);
    find_scheme(out, root, NULL);
    find_biases(out, root);
    if (is_embedding_class(root))
        out->config.flags |= TERN_MODEL_NO_HEAD;
    return TERN_OK;
}

/* ---- evidence from tensors ---- */

void tn_config_recognise(struct tn_config_import *import, const struct tn_source *source)
{
    struct tn_match head;
    tn_tensor_find(&head, import, source, tn_slot_of(TERN_ROLE_HEAD), TERN_NO_LAYER, 0);
    const bool has_head = head.weight != NULL;
    find_scheme(import, NULL, source);
    if (has_head && import->tie != TN_TIE_YES)
        import->config.flags &= ~TERN_MODEL_NO_HEAD;
    if (import->config.flags & TERN_MODEL_NO_HEAD)
        return;
    if (import->tie == TN_TIE_YES || (import->tie == TN_TIE_UNSAID && !has_head))
        import->config.flags |= TERN_MODEL_TIED_HEAD;
}

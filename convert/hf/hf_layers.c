/* SPDX-License-Identifier: MIT
 *
 * Reads a record for each layer from config.json: activation, rotation, window.
 *
 * Scaled rotations divide their frequencies by factors: those of LLaMA 3.1 and YaRN are computed
 * from four numbers, those of longrope are in the file.
 */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"
#include "convert/hf/config_values.h"
#include "convert/hf/hf_config.h"
#include "convert/rope_scaling.h"

#define CONFIG TN_CONFIG_FILE

/* ---- scaled rotations ---- */

struct rotation {
    double theta;
    double magnitude; /* factor of rotated queries and keys */
};

/* A member with a default, which null also means. */
static tern_status number_or(double *out, const char *key, const json_t *object, double usual,
                             double min, double max, struct tern_error *err)
{
    const json_t *value = json_object_get(object, key);
    *out = usual;
    if (tn_json_is_absent(value))
        return TERN_OK;
    return tn_config_number(out, key, value, min, max, err);
}

static const char original_key[] = "original_max_position_embeddings";

/* The positions of training.  Those of the whole file replace those of the rope object, as in
 * transformers. */
static const json_t *find_original(const json_t *root, const json_t *rope)
{
    const json_t *of_file = json_object_get(root, original_key);
    return tn_json_is_absent(of_file) ? json_object_get(rope, original_key) : of_file;
}

/* The same as a number; the context where neither states them. */
static tern_status read_original(double *out, const struct tern_file_config *config,
                                 const json_t *root, const json_t *rope, struct tern_error *err)
{
    const json_t *original = find_original(root, rope);
    *out = config->context;
    return tn_json_is_absent(original)
               ? TERN_OK
               : tn_config_number(out, original_key, original, 1, TERN_MAX_CONTEXT, err);
}

static tern_status llama3_factors(struct tn_config_import *out, const json_t *root,
                                  const json_t *rope, double theta, struct tern_error *err)
{
    struct tn_llama3 l;
    tern_status status =
        tn_config_number(&l.factor, "factor", json_object_get(rope, "factor"), 1, 1e6, err);
    if (status == TERN_OK)
        status = tn_config_number(&l.low, "low_freq_factor",
                                  json_object_get(rope, "low_freq_factor"), 1e-3, 1e6, err);
    if (status == TERN_OK)
        status = tn_config_number(&l.high, "high_freq_factor",
                                  json_object_get(rope, "high_freq_factor"), 1e-3, 1e6, err);
    if (status == TERN_OK)
        status = read_original(&l.original, &out->config, root, rope, err);
    if (status == TERN_OK && l.high <= l.low)
        status = tn_fail(err, TERN_INPUT,
                         CONFIG ": \"high_freq_factor\" %g is not above \"low_freq_factor\" %g",
                         l.high, l.low);
    return status == TERN_OK ? tn_llama3_factors(out, &l, theta, err) : status;
}

/* Longrope: one list up to the original context, another beyond it. */
static tern_status longrope_factors(struct tn_config_import *out, struct rotation *rotation,
                                    const json_t *root, const json_t *rope, struct tern_error *err)
{
    const json_t *list = json_object_get(rope, "short_factor");
    const uint32_t n = out->rope_dims / 2;
    double stretch;
    if (json_array_size(list) != n)
        return tn_fail(err, TERN_INPUT, CONFIG ": \"short_factor\" holds %zu numbers, not %u",
                       json_array_size(list), n);
    tern_status status =
        tn_config_integer(&out->original_context, original_key, find_original(root, rope), 2,
                          TERN_MAX_CONTEXT, err);
    if (status == TERN_OK)
        status = tn_rope_factors_alloc(out, err);
    for (uint32_t j = 0; j < n && status == TERN_OK; j++) {
        double factor = 0;
        status = tn_config_number(&factor, "short_factor", json_array_get(list, j),
                                  (double)TERN_MIN_ROPE_FACTOR, 1e6, err);
        out->rope_factors[j] = (float)factor;
    }
    if (status == TERN_OK)
        status = number_or(&stretch, "factor", rope,
                           (double)out->config.context / out->original_context, 1e-3, 1e6, err);
    if (status != TERN_OK)
        return status;
    const double usual =
        stretch > 1 ? sqrt(1 + log(stretch) / log((double)out->original_context)) : 1;
    return number_or(&rotation->magnitude, "attention_factor", rope, usual, 1e-3, 1e3, err);
}

/* The factor of rotated queries and keys: stated, or the quotient of two, or the usual one. */
static tern_status yarn_magnitude(double *out, double factor, const json_t *rope,
                                  struct tern_error *err)
{
    double above, below;
    tern_status status = number_or(&above, "mscale", rope, 0, 0, 1e3, err);
    if (status == TERN_OK)
        status = number_or(&below, "mscale_all_dim", rope, 0, 0, 1e3, err);
    if (status != TERN_OK)
        return status;
    const double usual = above != 0 && below != 0
                             ? tn_yarn_magnitude(factor, above) / tn_yarn_magnitude(factor, below)
                             : tn_yarn_magnitude(factor, 1);
    return number_or(out, "attention_factor", rope, usual, 1e-3, 1e3, err);
}

static tern_status yarn_factors(struct tn_config_import *out, struct rotation *rotation,
                                const json_t *root, const json_t *rope, struct tern_error *err)
{
    struct tn_yarn yarn = {.is_exact = json_is_false(json_object_get(rope, "truncate"))};
    tern_status status =
        tn_config_number(&yarn.factor, "factor", json_object_get(rope, "factor"), 1, 1e6, err);
    if (status == TERN_OK)
        status = read_original(&yarn.original, &out->config, root, rope, err);
    if (status == TERN_OK)
        status = number_or(&yarn.beta_fast, "beta_fast", rope, 32, 1e-3, 1e6, err);
    if (status == TERN_OK)
        status = number_or(&yarn.beta_slow, "beta_slow", rope, 1, 1e-3, 1e6, err);
    if (status == TERN_OK)
        status = yarn_magnitude(&rotation->magnitude, yarn.factor, rope, err);
    return status == TERN_OK ? tn_yarn_factors(out, &yarn, rotation->theta, err) : status;
}

/* ---- rotations ---- */

/* The rotated values of a head, if the object states them: members of rope objects replace those of
 * the whole file. */
static tern_status parse_partial(struct tn_config_import *out, const json_t *object,
                                 struct tern_error *err)
{
    static const char *const keys[] = {"partial_rotary_factor", "rotary_pct"};
    for (size_t i = 0; i < TN_COUNT_OF(keys); i++) {
        const json_t *partial = json_object_get(object, keys[i]);
        if (tn_json_is_absent(partial))
            continue;
        if (!json_is_number(partial))
            return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is not a number", keys[i]);
        const double share = json_number_value(partial);
        const double dims = floor(share * out->config.head_dim);
        if (share != 1 && !out->family->rotates_partly)
            return tn_fail(err, TERN_UNSUPPORTED, CONFIG ": \"%s\" is %g, only 1 is supported",
                           keys[i], share);
        if (!(dims >= 2 && dims <= out->config.head_dim) || fmod(dims, 2) != 0)
            return tn_fail(err, TERN_INPUT,
                           CONFIG ": \"%s\" is %g, which rotates %g of the %u values of a head: "
                                  "it must be an even number of them",
                           keys[i], share, dims, out->config.head_dim);
        out->rope_dims = (uint32_t)dims;
    }
    return TERN_OK;
}

/* The rotation type of a rope object, NULL if it is unknown.  An object without a type is the
 * default one only if it has no members except the two that all types have. */
static const char *rope_type(const json_t *rope)
{
    const json_t *type = json_object_get(rope, "rope_type");
    type = type ? type : json_object_get(rope, "type");
    if (type)
        return json_string_value(type);
    const size_t n_common = (json_object_get(rope, "rope_theta") != NULL) +
                            (json_object_get(rope, "partial_rotary_factor") != NULL);
    return json_is_object(rope) && json_object_size(rope) == n_common ? "default" : NULL;
}

static tern_status parse_linear(struct tn_config_import *out, const json_t *rope,
                                struct tern_error *err)
{
    double factor = 1;
    tern_status status =
        tn_config_number(&factor, "factor", json_object_get(rope, "factor"), 1, 1e6, err);
    return status == TERN_OK ? tn_linear_factors(out, factor, err) : status;
}

/* Dynamic NTK scaling raises rope_theta with the length of the text; up to the original context it
 * has no effect. */
static tern_status parse_dynamic(struct tn_config_import *out, const json_t *rope,
                                 struct tern_error *err)
{
    const json_t *original = json_object_get(rope, original_key);
    double factor;
    out->is_dynamic = true;
    out->original_context = out->config.context;
    if (!tn_json_is_absent(json_object_get(rope, "alpha")))
        return tn_fail(err, TERN_UNSUPPORTED,
                       CONFIG ": rope scaling of type \"dynamic\" with \"alpha\" is not supported");
    tern_status status =
        tn_config_number(&factor, "factor", json_object_get(rope, "factor"), 1, 1e6, err);
    return status == TERN_OK && !tn_json_is_absent(original)
               ? tn_config_integer(&out->original_context, original_key, original, 1,
                                   TERN_MAX_CONTEXT, err)
               : status;
}

/* The object that scales the rotation. */
static tern_status parse_scaling(struct tn_config_import *out, struct rotation *rotation,
                                 const json_t *root, const json_t *rope, const char *key,
                                 struct tern_error *err)
{
    const char *type = rope_type(rope);
    if (type && strcmp(type, "linear") == 0)
        return parse_linear(out, rope, err);
    if (type && strcmp(type, "default") == 0)
        return TERN_OK;
    if (type && strcmp(type, "dynamic") == 0)
        return parse_dynamic(out, rope, err);
    if (type && strcmp(type, "llama3") == 0)
        return llama3_factors(out, root, rope, rotation->theta, err);
    if (type && strcmp(type, "yarn") == 0)
        return yarn_factors(out, rotation, root, rope, err);
    /* "su": early files of Phi-3 */
    if (type && (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0))
        return longrope_factors(out, rotation, root, rope, err);
    return tn_fail(err, TERN_UNSUPPORTED,
                   CONFIG ": \"%s\" of type \"%s\": this rope scaling is not supported", key,
                   type ? type : "?");
}

static tern_status refuse_scaling(struct tn_config_import *out, const json_t *rope,
                                  struct tern_error *err)
{
    if (tn_json_is_absent(rope))
        return TERN_OK;
    const char *type = rope_type(rope);
    if (!type || strcmp(type, "default") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       CONFIG ": rope scaling of type \"%s\" is not supported here",
                       type ? type : "?");
    return parse_partial(out, rope, err);
}

/* In an object of rotations by kind of layer, selects that of layers without a window; else keeps
 * the object. */
static tern_status pick_full(struct tn_config_import *out, const json_t **rope,
                             struct tern_error *err)
{
    const json_t *full = json_object_get(*rope, "full_attention");
    const json_t *sliding = json_object_get(*rope, "sliding_attention");
    *rope = full || sliding ? full : *rope;
    return refuse_scaling(out, sliding, err);
}

/* The value of rope_theta; without one, the default of transformers, on which published files
 * rely. */
static tern_status read_theta(double *out, const struct tn_family *family, const json_t *theta,
                              struct tern_error *err)
{
    *out = family->rope_theta != 0 ? family->rope_theta : 10000;
    if (tn_json_is_absent(theta))
        return TERN_OK;
    /* Below 1 the angles would grow with the dimension. */
    return tn_config_number(out, "rope_theta", theta, 1, 1e12, err);
}

/* Reads rope_theta, also in newer and older spellings, and the scaling. */
static tern_status parse_rope(struct tn_config_import *out, struct rotation *rotation,
                              const json_t *root, struct tern_error *err)
{
    static const char *const keys[] = {"rope_parameters", "rope_scaling"};
    const json_t *theta = json_object_get(root, "rope_theta");
    if (tn_json_is_absent(theta))
        theta = json_object_get(root, "rotary_emb_base");
    tern_status status = read_theta(&rotation->theta, out->family, theta, err);
    const json_t *share =
        json_object_get(json_object_get(root, keys[0]), "partial_rotary_factor");
    if (status == TERN_OK && tn_json_is_absent(share)) /* else it may be a default of the family */
        status = parse_partial(out, root, err);
    for (size_t i = 0; i < TN_COUNT_OF(keys) && status == TERN_OK; i++) {
        const json_t *rope = json_object_get(root, keys[i]);
        if (out->family->has_local_layers)
            status = pick_full(out, &rope, err);
        if (tn_json_is_absent(rope) || status != TERN_OK)
            continue;
        const json_t *other = json_object_get(rope, "rope_theta");
        if (tn_json_is_absent(theta))
            theta = other;
        else if (json_is_number(other) && !json_equal(other, theta))
            return tn_fail(err, TERN_INPUT,
                           CONFIG ": \"rope_theta\" is %.15g, but %.15g in \"%s\"",
                           json_number_value(theta), json_number_value(other), keys[i]);
        status = read_theta(&rotation->theta, out->family, theta, err);
        if (status == TERN_OK)
            status = parse_partial(out, rope, err);
        if (status == TERN_OK)
            status = parse_scaling(out, rotation, root, rope, keys[i], err);
    }
    return status;
}

/* ---- activation ---- */

static tern_status parse_activation(uint32_t *activation, const json_t *root,
                                    const struct tn_family *family, struct tern_error *err)
{
    const char *key = "hidden_activation";
    const char *act = tn_config_text(root, key, NULL);
    static const struct {
        const char *name;
        uint32_t activation;
    } known[] = {{"relu2", TERN_ACT_RELU2},
                 {"silu", TERN_ACT_SILU},
                 {"swish", TERN_ACT_SILU},
                 {"relu", TERN_ACT_RELU},
                 {"gelu_pytorch_tanh", TERN_ACT_GELU_TANH},
                 {"gelu_new", TERN_ACT_GELU_TANH},
                 {"gelu_fast", TERN_ACT_GELU_TANH},
                 {"gelu", TERN_ACT_GELU_ERF}};
    if (!act) {
        key = tn_family_key(family, "hidden_act");
        act = tn_config_text(root, key, NULL);
    }
    if (!act)
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is missing or not a text", key);
    for (size_t i = 0; i < TN_COUNT_OF(known); i++)
        if (strcmp(act, known[i].name) == 0) {
            *activation = known[i].activation;
            return TERN_OK;
        }
    return tn_fail(err, TERN_UNSUPPORTED,
                   CONFIG ": %s \"%s\" is not supported (relu, relu2, silu, gelu and "
                          "gelu_pytorch_tanh are)",
                   key, act);
}

/* ---- interface ---- */

tern_status tn_config_layers(struct tn_config_import *out, const json_t *root,
                             struct tern_error *err)
{
    uint32_t activation = 0;
    struct rotation rotation = {1, 1};
    struct tn_hf_values values;
    tern_status status = parse_activation(&activation, root, out->family, err);
    if (status != TERN_OK)
        return status;
    status = tn_config_make_layers(out, err);
    if (status != TERN_OK)
        return status;
    out->rope_dims = out->config.head_dim;
    if (!out->family->has_positions)
        status = parse_rope(out, &rotation, root, err);
    tn_config_fill_layers(out, activation, rotation.theta);
    struct tn_family_spec spec = {.config = &out->config, .layers = out->layers};
    tn_hf_values_init(&values, out->family, root, NULL, err);
    if (out->family->spec && status == TERN_OK)
        status = out->family->spec(&spec, &values.values);
    return status == TERN_OK ? tn_magnify_rotations(out, rotation.magnitude, err) : status;
}

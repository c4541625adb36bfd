/* SPDX-License-Identifier: MIT
 *
 * config.json and generation_config.json.
 *
 * Published files repeat keys (the last one counts), hold integers beyond 64
 * bits in keys that nobody needs, and write numbers as 500000 or 500000.0: all
 * numbers are read as doubles, and those that must be integers are checked.
 */
#include "config_import.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/log.h"
#include "json_scan.h"
#include "plat/plat.h"
#include "source.h"

#define CONFIG "config.json"
#define GENERATION "generation_config.json"
#define MAX_CONFIG_BYTES (1u << 20) /* published ones have some KB */

tern_status tn_dir_read_text(char **text, size_t *n_text, const char *dir, const char *name,
                             size_t max_bytes, struct tern_error *err)
{
    *text = NULL;
    *n_text = 0;
    char *path = tn_path_join(dir, name);
    if (!path)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", name);
    tern_status status = TERN_OK;
    const enum tn_path_kind kind = tn_path_kind(path);
    if (kind == TN_PATH_OTHER) /* a pipe that nobody writes would be waited for */
        status = tn_fail(err, TERN_INPUT, "%s: is not a regular file", path);
    else if (kind != TN_PATH_ABSENT)
        status = tn_file_read_all(text, n_text, path, max_bytes, err);
    tn_free(path);
    if (status == TERN_OK && *text && tn_is_lfs_pointer(*text, *n_text)) {
        tn_free(*text);
        *text = NULL;
        status = tn_fail(err, TERN_INPUT,
                         "%s: this is a Git-LFS pointer, not the file itself; fetch it with "
                         "`git lfs pull` or download it from the web page",
                         name);
    }
    return status;
}

/* ---- values ---- */

/* A number in [min, max]. */
static tern_status get_number(double *out, const char *key, const json_t *value, double min,
                              double max, struct tern_error *err)
{
    if (!value || json_is_null(value))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is missing", key);
    if (!json_is_number(value))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is not a number", key);
    const double d = json_number_value(value);
    if (!(d >= min && d <= max))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is %.15g, allowed are %.10g to %.10g", key,
                       d, min, max);
    *out = d;
    return TERN_OK;
}

/* An integer in [min, max]. */
static tern_status get_integer(uint32_t *out, const char *key, const json_t *value, uint32_t min,
                               uint32_t max, struct tern_error *err)
{
    double d = 0;
    tern_status status = get_number(&d, key, value, min, max, err);
    if (status != TERN_OK)
        return status;
    if (d != floor(d))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is %.15g, not an integer", key, d);
    *out = (uint32_t)d;
    return TERN_OK;
}

/* The text of a key, or `otherwise` when it is absent or null. */
static const char *text_or(const json_t *object, const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

static bool array_has_text(const json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *item = json_string_value(json_array_get(array, i));
        if (item && strcmp(item, text) == 0)
            return true;
    }
    return false;
}

/* ---- which family ---- */

static const char *architecture_text(const json_t *root)
{
    const char *name = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    return name ? name : text_or(root, "model_type", "this model");
}

/* A model without quantization_config. */
static tern_status refuse_unquantised(const json_t *root, struct tern_error *err)
{
    const char *name = architecture_text(root);
    if (json_object_get(root, "weight_bits") || json_object_get(root, "input_bits"))
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: the 1bitLLM family (\"weight_bits\" in config.json) is not supported "
                       "yet",
                       name);
    if (json_object_get(root, "pretraining_model_parallel"))
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: the TriLM family (\"pretraining_model_parallel\" in config.json) is "
                       "not supported yet",
                       name);
    if (strcmp(name, "Qwen3ForCausalLM") == 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: config.json has no \"quantization_config\": either not trained "
                       "ternary, or of the Bonsai family, which is not supported yet",
                       name);
    return tn_fail(err, TERN_UNSUPPORTED,
                   "%s: this model was not trained ternary (config.json has no "
                   "\"quantization_config\"); tern runs BitNet b1.58 models",
                   name);
}

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

/* Accepts BitNetForCausalLM with AutoBitLinear layers; says what everything else is. */
static tern_status check_family(struct tn_config_import *out, const json_t *root,
                                struct tern_error *err)
{
    const json_t *quant = json_object_get(root, "quantization_config");
    if (!quant || json_is_null(quant))
        return refuse_unquantised(root, err);
    const char *name = architecture_text(root);
    const char *method = text_or(quant, "quant_method", "(none)");
    if (strcmp(method, "bitnet") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: quant_method \"%s\" is not ternary; tern runs BitNet b1.58 models",
                       name, method);
    if (json_is_true(json_object_get(quant, "use_rms_norm")))
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: \"use_rms_norm\" (a norm inside every linear layer) is not supported",
                       name);
    const char *linear = text_or(quant, "linear_class", "bitlinear");
    if (strcmp(linear, "autobitlinear") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: linear_class \"%s\", whose weight_scale divides (HF1BitLLM, Falcon3 "
                       "and Falcon-E), is not supported yet",
                       name, linear);
    if (!array_has_text(json_object_get(root, "architectures"), "BitNetForCausalLM") &&
        strcmp(text_or(root, "model_type", ""), "bitnet") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "%s: this architecture is not supported yet; tern converts "
                       "BitNetForCausalLM",
                       name);
    const char *mode = text_or(quant, "quantization_mode", "");
    out->form = strcmp(mode, "online") == 0    ? TN_FORM_LATENT
                : strcmp(mode, "offline") == 0 ? TN_FORM_PACKED
                                               : TN_FORM_UNSAID;
    if (mode[0] != '\0' && out->form == TN_FORM_UNSAID)
        return tn_fail(err, TERN_UNSUPPORTED, CONFIG ": quantization_mode \"%s\" is unknown",
                       mode);
    return check_excluded_modules(quant, err);
}

/* ---- the rest of config.json ---- */

static tern_status refuse_flag(const json_t *root, const char *key, struct tern_error *err)
{
    if (!json_is_true(json_object_get(root, key)))
        return TERN_OK;
    return tn_fail(err, TERN_UNSUPPORTED, CONFIG ": \"%s\" is true; biases are not supported",
                   key);
}

static tern_status parse_tie(enum tn_tie *out, const json_t *root, struct tern_error *err)
{
    const json_t *tie = json_object_get(root, "tie_word_embeddings");
    *out = json_is_true(tie) ? TN_TIE_YES : json_is_false(tie) ? TN_TIE_NO : TN_TIE_UNSAID;
    if (!tie || json_is_null(tie) || json_is_boolean(tie))
        return TERN_OK;
    return tn_fail(err, TERN_INPUT, CONFIG ": \"tie_word_embeddings\" is not true or false");
}

static tern_status check_partial_rotary(const json_t *object, struct tern_error *err)
{
    const json_t *partial = json_object_get(object, "partial_rotary_factor");
    if (!json_is_number(partial) || json_number_value(partial) == 1.0)
        return TERN_OK;
    return tn_fail(err, TERN_UNSUPPORTED,
                   CONFIG ": \"partial_rotary_factor\" is %g, only 1 is supported",
                   json_number_value(partial));
}

/* The type of the rotation that a rope object describes, NULL when it has none that can be read.
 * Without a type only the two members that every type has leave it the default one. */
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

/* rope_theta, also in the newer spelling rope_parameters; any scaling is refused. */
static tern_status parse_rope(struct tern_file_config *c, const json_t *root,
                              struct tern_error *err)
{
    static const char *const keys[] = {"rope_parameters", "rope_scaling"};
    const json_t *theta = json_object_get(root, "rope_theta");
    tern_status status = check_partial_rotary(root, err);
    for (size_t i = 0; i < TN_COUNT_OF(keys) && status == TERN_OK; i++) {
        const json_t *rope = json_object_get(root, keys[i]);
        if (!rope || json_is_null(rope))
            continue;
        const char *type = rope_type(rope);
        if (!type || strcmp(type, "default") != 0)
            return tn_fail(err, TERN_UNSUPPORTED,
                           CONFIG ": \"%s\" of type \"%s\": rope scaling is not supported",
                           keys[i], type ? type : "?");
        status = check_partial_rotary(rope, err);
        const json_t *other = json_object_get(rope, "rope_theta");
        if (!theta || json_is_null(theta))
            theta = other;
        else if (json_is_number(other) && !json_equal(other, theta))
            return tn_fail(err, TERN_INPUT,
                           CONFIG ": \"rope_theta\" is %.15g, but %.15g in \"%s\"",
                           json_number_value(theta), json_number_value(other), keys[i]);
    }
    c->rope = TERN_ROPE_HALF;
    /* Below 1 the angles would grow with the dimension. */
    return status == TERN_OK ? get_number(&c->rope_theta, "rope_theta", theta, 1, 1e12, err)
                             : status;
}

static tern_status parse_activation(struct tern_file_config *c, const json_t *root,
                                    struct tern_error *err)
{
    const json_t *value = json_object_get(root, "hidden_act");
    if (!json_is_string(value))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"hidden_act\" is missing or not a text");
    const char *act = json_string_value(value);
    if (strcmp(act, "relu2") == 0)
        c->activation = TERN_ACT_RELU2;
    else if (strcmp(act, "silu") == 0)
        c->activation = TERN_ACT_SILU;
    else
        return tn_fail(err, TERN_UNSUPPORTED,
                       CONFIG ": hidden_act \"%s\" is not supported (relu2 and silu are)", act);
    return TERN_OK;
}

/* head_dim is hidden / n_head unless the file says otherwise. */
static tern_status parse_heads(struct tern_file_config *c, const json_t *root,
                               struct tern_error *err)
{
    const char *kv_key = "num_key_value_heads";
    const json_t *n_kv = json_object_get(root, kv_key);
    const json_t *head_dim = json_object_get(root, "head_dim");
    tern_status status = get_integer(&c->n_head, "num_attention_heads",
                                     json_object_get(root, "num_attention_heads"), 1, TERN_MAX_DIM,
                                     err);
    if (status != TERN_OK)
        return status;
    c->n_kv_head = c->n_head;
    if (n_kv && !json_is_null(n_kv))
        status = get_integer(&c->n_kv_head, kv_key, n_kv, 1, TERN_MAX_DIM, err);
    if (status != TERN_OK)
        return status;
    if (c->n_head % c->n_kv_head)
        return tn_fail(err, TERN_INPUT,
                       CONFIG ": \"%s\" %u does not divide \"num_attention_heads\" %u", kv_key,
                       c->n_kv_head, c->n_head);
    if (head_dim && !json_is_null(head_dim)) {
        status = get_integer(&c->head_dim, "head_dim", head_dim, 2, TERN_MAX_DIM, err);
        if (status != TERN_OK)
            return status;
    } else if (c->hidden % c->n_head) {
        return tn_fail(err, TERN_INPUT,
                       CONFIG ": \"num_attention_heads\" %u does not divide \"hidden_size\" %u",
                       c->n_head, c->hidden);
    } else {
        c->head_dim = c->hidden / c->n_head;
    }
    if (c->head_dim % 2)
        return tn_fail(err, TERN_INPUT, CONFIG ": head_dim is %u, but must be even", c->head_dim);
    if ((uint64_t)c->n_head * c->head_dim > TERN_MAX_DIM)
        return tn_fail(err, TERN_INPUT,
                       CONFIG ": num_attention_heads * head_dim is %u * %u, at most %u is allowed",
                       c->n_head, c->head_dim, TERN_MAX_DIM);
    return TERN_OK;
}

static tern_status parse_sizes(struct tern_file_config *c, const json_t *root,
                               struct tern_error *err)
{
    const struct {
        const char *key;
        uint32_t *out;
        uint32_t max;
    } rows[] = {
        {"hidden_size", &c->hidden, TERN_MAX_DIM},
        {"intermediate_size", &c->ffn, TERN_MAX_DIM},
        {"num_hidden_layers", &c->n_layer, TERN_MAX_LAYERS},
        {"vocab_size", &c->vocab, TERN_MAX_VOCAB},
        {"max_position_embeddings", &c->context, TERN_MAX_CONTEXT},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        tern_status status = get_integer(rows[i].out, rows[i].key,
                                         json_object_get(root, rows[i].key), 1, rows[i].max, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- ids ---- */

static tern_status get_id(uint32_t *out, const char *file, const char *key, const json_t *value,
                          uint32_t vocab, struct tern_error *err)
{
    const double d = json_is_number(value) ? json_number_value(value) : -1;
    if (!(d >= 0 && d < vocab) || d != floor(d)) {
        if (!json_is_number(value))
            return tn_fail(err, TERN_INPUT, "%s: \"%s\" is not an id", file, key);
        return tn_fail(err, TERN_INPUT, "%s: \"%s\" is %.15g, the vocabulary has ids 0 to %u",
                       file, key, d, vocab - 1);
    }
    *out = (uint32_t)d;
    return TERN_OK;
}

static tern_status add_stop_id(struct tern_file_config *c, const char *file, const json_t *value,
                               struct tern_error *err)
{
    uint32_t id;
    tern_status status = get_id(&id, file, "eos_token_id", value, c->vocab, err);
    if (status != TERN_OK)
        return status;
    for (uint32_t i = 0; i < c->n_stop_ids; i++)
        if (c->stop_ids[i] == id)
            return TERN_OK;
    if (c->n_stop_ids == TERN_MAX_STOP_IDS)
        return tn_fail(err, TERN_UNSUPPORTED, "%s: \"eos_token_id\" holds more than %u ids", file,
                       TERN_MAX_STOP_IDS);
    c->stop_ids[c->n_stop_ids++] = id;
    return TERN_OK;
}

/* The value of a key in generation_config.json, else in config.json; NULL when neither has it. */
static const json_t *newest(const json_t *generation, const json_t *root, const char *key,
                            const char **file)
{
    const json_t *value = json_object_get(generation, key);
    *file = GENERATION;
    if (!value || json_is_null(value)) {
        value = json_object_get(root, key);
        *file = CONFIG;
    }
    return value && !json_is_null(value) ? value : NULL;
}

/* Every end-of-text id stops the model, not only the first. */
static tern_status parse_ids(struct tern_file_config *c, const json_t *root,
                             const json_t *generation, struct tern_error *err)
{
    const char *file;
    tern_status status = TERN_OK;
    c->bos_id = TERN_NO_ID;
    const json_t *bos = newest(generation, root, "bos_token_id", &file);
    if (bos)
        status = get_id(&c->bos_id, file, "bos_token_id", bos, c->vocab, err);
    const json_t *eos = newest(generation, root, "eos_token_id", &file);
    if (eos && !json_is_array(eos) && status == TERN_OK)
        status = add_stop_id(c, file, eos, err);
    for (size_t i = 0; i < json_array_size(eos) && status == TERN_OK; i++)
        status = add_stop_id(c, file, json_array_get(eos, i), err);
    return status;
}

/* ---- whole files ---- */

static tern_status parse_root(struct tn_config_import *out, const json_t *root,
                              const json_t *generation, struct tern_error *err)
{
    struct tern_file_config *c = &out->config;
    if (!json_is_object(root))
        return tn_fail(err, TERN_INPUT, CONFIG ": not a JSON object");
    if (generation && !json_is_object(generation))
        return tn_fail(err, TERN_INPUT, GENERATION ": not a JSON object");
    tern_status status = check_family(out, root, err);
    if (status == TERN_OK)
        status = parse_sizes(c, root, err);
    if (status == TERN_OK)
        status = parse_heads(c, root, err);
    if (status == TERN_OK)
        status = parse_activation(c, root, err);
    if (status == TERN_OK)
        status = parse_rope(c, root, err);
    if (status == TERN_OK)
        status = refuse_flag(root, "attention_bias", err);
    if (status == TERN_OK)
        status = refuse_flag(root, "mlp_bias", err);
    double eps = 0;
    if (status == TERN_OK)
        status = get_number(&eps, "rms_norm_eps", json_object_get(root, "rms_norm_eps"), FLT_MIN, 1,
                            err);
    if (status == TERN_OK)
        status = parse_ids(c, root, generation, err);
    c->rms_eps = (float)eps;
    c->arch = TERN_ARCH_BITNET;
    c->act_quant = TERN_ACT_QUANT_I8_TOKEN;
    if (status == TERN_OK)
        status = parse_tie(&out->tie, root, err);
    return status;
}

tern_status tn_config_parse(struct tn_config_import *out, const char *json, size_t n_json,
                            const char *generation_json, size_t n_generation_json,
                            struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    json_t *root = NULL;
    json_t *generation = NULL;
    tern_status status = tn_json_load(&root, CONFIG, json, n_json, JSON_DECODE_INT_AS_REAL, err);
    if (status == TERN_OK && generation_json)
        status = tn_json_load(&generation, GENERATION, generation_json, n_generation_json,
                              JSON_DECODE_INT_AS_REAL, err);
    if (status == TERN_OK)
        status = parse_root(out, root, generation, err);
    json_decref(root);
    json_decref(generation);
    return status;
}

tern_status tn_config_read(struct tn_config_import *out, bool *has_generation, const char *dir,
                           struct tern_error *err)
{
    char *json;
    char *generation = NULL;
    size_t n_json;
    size_t n_generation = 0;
    *has_generation = false;
    tern_status status = tn_dir_read_text(&json, &n_json, dir, CONFIG, MAX_CONFIG_BYTES, err);
    if (status == TERN_OK && !json)
        status = tn_fail(err, TERN_INPUT, "%s: " CONFIG " is missing", dir);
    if (status == TERN_OK)
        status = tn_dir_read_text(&generation, &n_generation, dir, GENERATION, MAX_CONFIG_BYTES,
                                  err);
    if (status == TERN_OK)
        status = tn_config_parse(out, json, n_json, generation, n_generation, err);
    *has_generation = generation != NULL;
    tn_free(json);
    tn_free(generation);
    return status;
}

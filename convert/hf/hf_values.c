/* SPDX-License-Identifier: MIT
 *
 * Reads values of config.json with checked types and ranges; with the names of tensors, implements
 * struct tn_values for families.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "convert/hf/config_values.h"
#include "convert/hf/hf_config.h"
#include "convert/source.h"

#define CONFIG TN_CONFIG_FILE
#define NAME_BYTES 128u

/* ---- checked values ---- */

tern_status tn_config_number(double *out, const char *key, const json_t *value, double min,
                             double max, struct tern_error *err)
{
    if (!value || json_is_null(value))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is missing", key);
    if (json_is_string(value))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is \"%.40s\", not a number", key,
                       json_string_value(value));
    if (!json_is_number(value))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is not a number", key);
    const double d = json_number_value(value);
    if (!(d >= min && d <= max))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is %.15g, allowed are %.10g to %.10g", key,
                       d, min, max);
    *out = d;
    return TERN_OK;
}

tern_status tn_config_integer(uint32_t *out, const char *key, const json_t *value, uint32_t min,
                              uint32_t max, struct tern_error *err)
{
    double d = 0;
    tern_status status = tn_config_number(&d, key, value, min, max, err);
    if (status != TERN_OK)
        return status;
    if (d != floor(d))
        return tn_fail(err, TERN_INPUT, CONFIG ": \"%s\" is %.15g, not an integer", key, d);
    *out = (uint32_t)d;
    return TERN_OK;
}

const char *tn_config_text(const json_t *object, const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

const char *tn_config_architecture(const json_t *root)
{
    const char *name = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    return name ? name : tn_config_text(root, "model_type", "this model");
}

/* ---- struct tn_values ---- */

/* The value at a path of n characters, "member.of.members"; NULL when absent or null. */
static const json_t *find_path(const json_t *object, const char *path, size_t n)
{
    const char *end = path + n;
    while (object && path < end) {
        char key[NAME_BYTES];
        const size_t n_key = TN_MIN(strcspn(path, ".|"), (size_t)(end - path));
        snprintf(key, sizeof key, "%.*s", (int)n_key, path);
        object = json_object_get(object, key);
        path += n_key + 1;
    }
    return json_is_null(object) ? NULL : object;
}

/* The first spelling of "a|b" that is present; *last: the name to use in errors. */
static const json_t *find_value(const json_t *root, const char *name, const char **last)
{
    const json_t *value = NULL;
    *last = name;
    while (*name && !value) {
        const size_t n = strcspn(name, "|");
        value = find_path(root, name, n);
        *last = name;
        name += n + (name[n] == '|');
    }
    return value;
}

static tern_status get_number(const struct tn_values *values, double *out, const char *name,
                              double min, double max, bool is_required)
{
    const struct tn_hf_values *v = values->source;
    const json_t *value = find_value(v->root, name, &name);
    if (!value && !is_required)
        return TERN_OK;
    return tn_config_number(out, name, value, min, max, values->err);
}

static tern_status get_integer(const struct tn_values *values, uint32_t *out, const char *name,
                               uint32_t min, uint32_t max, bool is_required)
{
    const struct tn_hf_values *v = values->source;
    const json_t *value = find_value(v->root, name, &name);
    if (!value && !is_required)
        return TERN_OK;
    return tn_config_integer(out, name, value, min, max, values->err);
}

static tern_status layer_kind(const struct tn_values *values, enum tn_layer_kind *out,
                              uint32_t layer)
{
    static const struct {
        const char *name;
        enum tn_layer_kind kind;
    } kinds[] = {{"full_attention", TN_LAYER_FULL},
                 {"attention", TN_LAYER_FULL},
                 {"sliding_attention", TN_LAYER_SLIDING},
                 {"linear_attention", TN_LAYER_LINEAR}};
    const struct tn_hf_values *v = values->source;
    const json_t *types = json_object_get(v->root, "layer_types");
    *out = TN_LAYER_UNSAID;
    if (!json_is_array(types))
        return TERN_OK;
    const char *type = json_string_value(json_array_get(types, layer));
    for (size_t i = 0; i < TN_COUNT_OF(kinds) && type; i++)
        if (strcmp(type, kinds[i].name) == 0) {
            *out = kinds[i].kind;
            return TERN_OK;
        }
    if (!type)
        return tn_fail(values->err, TERN_INPUT,
                       CONFIG ": \"layer_types\"[%u] is missing or not a text", layer);
    return tn_fail(values->err, TERN_UNSUPPORTED,
                   CONFIG ": \"layer_types\"[%u] is \"%.40s\", which is not supported", layer,
                   type);
}

static tern_status get_truth(const struct tn_values *values, bool *out, const char *name)
{
    const struct tn_hf_values *v = values->source;
    const json_t *value = find_value(v->root, name, &name);
    if (value && !json_is_boolean(value))
        return tn_fail(values->err, TERN_INPUT, CONFIG ": \"%s\" is not true or false", name);
    *out = value ? json_is_true(value) : *out;
    return TERN_OK;
}

static tern_status get_element(const struct tn_values *values, double *out, const char *name,
                               uint32_t i)
{
    const struct tn_hf_values *v = values->source;
    const json_t *value = json_array_get(find_value(v->root, name, &name), i);
    if (value && !json_is_number(value))
        return tn_fail(values->err, TERN_INPUT, CONFIG ": \"%s\"[%u] is not a number", name, i);
    *out = value ? json_number_value(value) : *out;
    return TERN_OK;
}

static bool has_key(const struct tn_values *values, const char *name)
{
    const struct tn_hf_values *v = values->source;
    return json_object_get(v->root, name) != NULL;
}

static bool has_tensor(const struct tn_values *values, const char *name)
{
    const struct tn_hf_values *v = values->source;
    const char *prefix;
    for (size_t i = 0; v->source && (prefix = tn_family_prefix(v->family, i)) != NULL; i++) {
        char full[NAME_BYTES];
        snprintf(full, sizeof full, "%slayers.0.%s", prefix, name);
        if (tn_source_find(v->source, full))
            return true;
    }
    return false;
}

void tn_hf_values_init(struct tn_hf_values *out, const struct tn_family *family,
                       const json_t *root, const struct tn_source *source, struct tern_error *err)
{
    *out = (struct tn_hf_values){
        .values = {.source = out,
                   .err = err,
                   .number = get_number,
                   .integer = get_integer,
                   .layer_kind = layer_kind,
                   .truth = get_truth,
                   .element = get_element,
                   .has_key = has_key,
                   .has_tensor = has_tensor},
        .family = family,
        .root = root,
        .source = source,
    };
}

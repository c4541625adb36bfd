/* SPDX-License-Identifier: MIT
 *
 * Reads keys "ARCH.name" of a GGUF file with checked types and ranges; implements struct tn_values
 * for families.
 */
#include "convert/gguf/gguf_values.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"

/* ---- one key ---- */

const struct tn_gguf_key *tn_gguf_values_find(const struct tn_gguf_values *v,
                                              char full[TN_GGUF_NAME_BYTES], const char *name)
{
    snprintf(full, TN_GGUF_NAME_BYTES, "%s.%s", v->arch, name);
    return tn_gguf_find_key(v->source->gguf, full);
}

tern_status tn_gguf_check_range(const struct tn_gguf_values *v, const struct tn_gguf_key *key,
                                double d, double min, double max)
{
    if (d >= min && d <= max)
        return TERN_OK;
    return tn_fail(v->values.err, TERN_INPUT, "key \"%s\" is %.15g, allowed are %.10g to %.10g",
                   key->name, tn_shown_number(d), min, max);
}

static tern_status missing(const struct tn_gguf_values *v, const char *full, bool is_required)
{
    return is_required ? tn_fail(v->values.err, TERN_INPUT, "key \"%s\" is missing", full)
                       : TERN_OK;
}

/* ---- struct tn_values ---- */

static tern_status get_integer(const struct tn_values *values, uint32_t *out, const char *name,
                               uint32_t min, uint32_t max, bool is_required)
{
    const struct tn_gguf_values *v = values->source;
    char full[TN_GGUF_NAME_BYTES];
    double d = 0;
    const struct tn_gguf_key *key = tn_gguf_values_find(v, full, name);
    if (!key)
        return missing(v, full, is_required);
    if (!tn_gguf_integer(key, &d))
        return tn_gguf_fail_type(key, "an integer", values->err);
    tern_status status = tn_gguf_check_range(v, key, d, min, max);
    if (status == TERN_OK)
        *out = (uint32_t)d;
    return status;
}

static tern_status get_number(const struct tn_values *values, double *out, const char *name,
                              double min, double max, bool is_required)
{
    const struct tn_gguf_values *v = values->source;
    char full[TN_GGUF_NAME_BYTES];
    const struct tn_gguf_key *key = tn_gguf_values_find(v, full, name);
    if (!key)
        return missing(v, full, is_required);
    double d = key->value.f;
    if (key->type != TN_GGUF_F32 && key->type != TN_GGUF_F64 && !tn_gguf_integer(key, &d))
        return tn_gguf_fail_type(key, "a number", values->err);
    tern_status status = tn_gguf_check_range(v, key, d, min, max);
    if (status == TERN_OK)
        *out = d;
    return status;
}

/* One boolean per layer; *out is new memory (tn_free), NULL if the key is absent. */
static tern_status load_truths(const struct tn_gguf_values *v, uint8_t **out, const char *name,
                               uint64_t most)
{
    char full[TN_GGUF_NAME_BYTES];
    void *values = NULL;
    const struct tn_gguf_key *key = tn_gguf_values_find(v, full, name);
    if (!key)
        return TERN_OK;
    if (key->type != TN_GGUF_ARRAY || key->element_type != TN_GGUF_BOOL ||
        key->count < v->n_layer || key->count > most)
        return tn_fail(v->values.err, TERN_INPUT, "key \"%s\" is not an array of %u truth values",
                       full, v->n_layer);
    tern_status status = tn_gguf_load_numbers(&values, v->source->gguf, key, v->values.err);
    *out = values;
    return status;
}

/* Windows may be a number instead: a pattern, which says nothing about a single layer.  The other
 * list includes draft heads. */
static tern_status load_lists(struct tn_gguf_values *v)
{
    static const char pattern[] = "attention.sliding_window_pattern";
    char full[TN_GGUF_NAME_BYTES];
    double number;
    const struct tn_gguf_key *key = tn_gguf_values_find(v, full, pattern);
    tern_status status = TERN_OK;
    v->has_lists = true;
    if (key && !tn_gguf_integer(key, &number))
        status = load_truths(v, &v->sliding, pattern, v->n_layer);
    if (status == TERN_OK)
        status = load_truths(v, &v->linear, "attention.recurrent_layers", UINT64_MAX);
    return status;
}

static tern_status layer_kind(const struct tn_values *values, enum tn_layer_kind *out,
                              uint32_t layer)
{
    struct tn_gguf_values *v = values->source;
    tern_status status = v->has_lists ? TERN_OK : load_lists(v);
    *out = TN_LAYER_UNSAID;
    if (status != TERN_OK)
        return status;
    if (v->linear)
        *out = v->linear[layer] ? TN_LAYER_LINEAR : TN_LAYER_FULL;
    else if (v->sliding)
        *out = v->sliding[layer] ? TN_LAYER_SLIDING : TN_LAYER_FULL;
    return TERN_OK;
}

/* Sets *out to the common number of the layers, in little-endian bytes; 0 only where it means that
 * a layer does not attend. */
static tern_status common_number(uint32_t *out, const struct tn_gguf_values *v, const char *full,
                                 const unsigned char *numbers, bool may_be_0, uint32_t max)
{
    uint32_t n = 0, i_first = 0;
    for (uint32_t i = 0; i < v->n_layer; i++) {
        const uint32_t number = tn_load_u32(numbers + 4 * (size_t)i);
        if (number > max || (number == 0 && !may_be_0))
            return tn_fail(v->values.err, TERN_INPUT,
                           "key \"%s\"[%u] is %lld, allowed are %u to %u", full, i,
                           (long long)(int32_t)number, may_be_0 ? 0 : 1, max);
        if (number != 0 && n != 0 && number != n)
            return tn_fail(v->values.err, TERN_UNSUPPORTED,
                           "key \"%s\" is %u for layer %u, but %u for layer %u: different layers "
                           "are not supported",
                           full, n, i_first, number, i);
        i_first = n ? i_first : i;
        n = number ? number : n;
    }
    if (n == 0)
        return tn_fail(v->values.err, TERN_INPUT, "key \"%s\" is 0 for all layers", full);
    *out = n;
    return TERN_OK;
}

tern_status tn_gguf_values_per_layer(const struct tn_gguf_values *v, uint32_t *out,
                                     const char *name, bool may_be_0, uint32_t max,
                                     bool is_required)
{
    char full[TN_GGUF_NAME_BYTES];
    void *numbers = NULL;
    const struct tn_gguf_key *key = tn_gguf_values_find(v, full, name);
    if (!key || key->type != TN_GGUF_ARRAY)
        return v->values.integer(&v->values, out, name, 1, max, is_required);
    if ((key->element_type != TN_GGUF_U32 && key->element_type != TN_GGUF_I32) ||
        key->count < v->n_layer)
        return tn_fail(v->values.err, TERN_INPUT,
                       "key \"%s\" is neither an integer nor an array of %u", full, v->n_layer);
    tern_status status = tn_gguf_load_numbers(&numbers, v->source->gguf, key, v->values.err);
    if (status == TERN_OK)
        status = common_number(out, v, full, numbers, may_be_0, max);
    tn_free(numbers);
    return status;
}

static tern_status get_truth(const struct tn_values *values, bool *out, const char *name)
{
    const struct tn_gguf_values *v = values->source;
    char full[TN_GGUF_NAME_BYTES];
    const struct tn_gguf_key *key = tn_gguf_values_find(v, full, name);
    if (key && key->type != TN_GGUF_BOOL)
        return tn_gguf_fail_type(key, "a truth value", values->err);
    *out = key ? key->value.u != 0 : *out;
    return TERN_OK;
}

static tern_status get_element(const struct tn_values *values, double *out, const char *name,
                               uint32_t i)
{
    const struct tn_gguf_values *v = values->source;
    char full[TN_GGUF_NAME_BYTES];
    unsigned char bytes[4] = {0};
    const struct tn_gguf_input *in = &v->source->gguf->parts[0].input;
    const struct tn_gguf_key *key = tn_gguf_values_find(v, full, name);
    if (!key)
        return TERN_OK;
    if (key->type != TN_GGUF_ARRAY || key->element_type != TN_GGUF_F32)
        return tn_gguf_fail_type(key, "an array of F32", values->err);
    if (i >= key->count)
        return tn_fail(values->err, TERN_INPUT, "key \"%s\" has %llu values, layer %u has none",
                       full, (unsigned long long)key->count, i);
    tern_status status =
        in->read_at(in->arg, key->offset + 4 * (uint64_t)i, bytes, sizeof bytes, values->err);
    if (status == TERN_OK)
        *out = (double)tn_f32_from_bits(tn_load_u32(bytes));
    return status;
}

static bool has_key(const struct tn_values *values, const char *name)
{
    char full[TN_GGUF_NAME_BYTES];
    return tn_gguf_values_find(values->source, full, name) != NULL;
}

static bool has_tensor(const struct tn_values *values, const char *name)
{
    const struct tn_gguf_values *v = values->source;
    char full[TN_GGUF_NAME_BYTES];
    snprintf(full, sizeof full, "blk.0.%s", name);
    return tn_source_find(v->source, full) != NULL;
}

void tn_gguf_values_init(struct tn_gguf_values *out, const struct tn_source *source,
                         struct tern_error *err)
{
    *out = (struct tn_gguf_values){
        .values = {.is_gguf = true,
                   .source = out,
                   .err = err,
                   .number = get_number,
                   .integer = get_integer,
                   .layer_kind = layer_kind,
                   .truth = get_truth,
                   .element = get_element,
                   .has_key = has_key,
                   .has_tensor = has_tensor},
        .source = source,
        .arch = "",
    };
}

void tn_gguf_values_fini(struct tn_gguf_values *v)
{
    tn_free(v->sliding);
    tn_free(v->linear);
    v->sliding = v->linear = NULL;
}

/* SPDX-License-Identifier: MIT
 *
 * Reads the keys prism.hadamard.* of a GGUF file.  Every value that changes the computation must be
 * known, because a model with another rotation writes fluent nonsense.
 */
#include "convert/gguf/rotation_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"
#include "convert/gguf/gguf.h"

#define PREFIX "prism.hadamard."
#define EMBEDDINGS "token_embd.weight"
#define MAX_WIDTHS 64u

struct importer {
    struct tn_rotation_import *out;
    struct tn_source *source;
    struct tern_file_layer *layers;
    uint32_t n_layer;
    bool has_signs, is_grouped;
    struct tern_error *err;
};

/* ---- keys ---- */

static const char *const known[] = {"version",      "block_size",  "transform",
                                    "axis",         "sign_mode",   "sign_widths",
                                    "sign_values",  "weight_names", "inverse_weight_names",
                                    "gdn_v_grouped"};

static const struct tn_gguf_key *find_key(const struct importer *i, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, PREFIX "%s", name);
    return tn_gguf_find_key(i->source->gguf, full);
}

static tern_status fail_missing(const struct importer *i, const char *name)
{
    return tn_fail(i->err, TERN_INPUT, "key \"" PREFIX "%s\" is missing, or of the wrong type",
                   name);
}

/* has_any: such keys exist.  An unknown one may change the meaning of the others. */
static tern_status check_names(const struct importer *i, bool *has_any)
{
    const struct tn_gguf_part *part = &i->source->gguf->parts[0];
    const size_t n_prefix = strlen(PREFIX);
    *has_any = false;
    for (uint32_t k = 0; k < part->n_keys; k++) {
        const char *name = part->keys[k].name;
        if (strncmp(name, PREFIX, n_prefix) != 0)
            continue;
        *has_any = true;
        if (!tn_text_is_one_of(name + n_prefix, known, TN_COUNT_OF(known)))
            return tn_fail(i->err, TERN_UNSUPPORTED,
                           "key \"%s\" is not known: the weights are rotated by a Hadamard matrix "
                           "in a way that tern does not undo", name);
    }
    return TERN_OK;
}

static tern_status check_text(const struct importer *i, const char *name, const char *expected)
{
    const struct tn_gguf_key *key = find_key(i, name);
    if (!key || key->type != TN_GGUF_STRING)
        return fail_missing(i, name);
    if (strcmp(key->text, expected) == 0)
        return TERN_OK;
    return tn_fail(i->err, TERN_UNSUPPORTED,
                   "key \"%s\" is \"%.48s\", which is not supported; \"%s\" is", key->name,
                   key->text, expected);
}

static tern_status read_block(const struct importer *i)
{
    const struct tn_gguf_key *version = find_key(i, "version"), *block = find_key(i, "block_size");
    double d = 0;
    if (!version || !tn_gguf_integer(version, &d))
        return fail_missing(i, "version");
    if (d != 1)
        return tn_fail(i->err, TERN_UNSUPPORTED,
                       "key \"" PREFIX "version\" is %.0f, which is not supported; 1 is", d);
    if (!block || !tn_gguf_integer(block, &d))
        return fail_missing(i, "block_size");
    const uint32_t size = d >= 2 && d <= TERN_MAX_DIM ? (uint32_t)d : 0;
    if (size == 0 || (size & (size - 1)) != 0)
        return tn_fail(i->err, TERN_INPUT,
                       "key \"" PREFIX "block_size\" is %.0f, must be a power of two from 2 to %u",
                       d, TERN_MAX_DIM);
    i->out->block = size;
    return TERN_OK;
}

static tern_status read_modes(struct importer *i)
{
    const struct tn_gguf_key *mode = find_key(i, "sign_mode"), *grouped;
    tern_status status = check_text(i, "transform", "normalized-sylvester-walsh-hadamard");
    if (status == TERN_OK)
        status = check_text(i, "axis", "input-last-dimension");
    if (status != TERN_OK)
        return status;
    i->has_signs = !mode || mode->type != TN_GGUF_STRING || strcmp(mode->text, "identity") != 0;
    if (i->has_signs)
        status = check_text(i, "sign_mode", "explicit");
    grouped = find_key(i, "gdn_v_grouped");
    if (status == TERN_OK && grouped && grouped->type != TN_GGUF_BOOL)
        status = fail_missing(i, "gdn_v_grouped");
    i->is_grouped = grouped && grouped->value.u != 0;
    return status;
}

/* ---- signs ---- */

/* An array of integers of 8 or 32 bits; *values [*n] is new memory (tn_free). */
static tern_status load_integers(const struct importer *i, int32_t **values, uint32_t *n,
                                 const char *name, uint32_t most)
{
    const struct tn_gguf_key *key = find_key(i, name);
    void *data = NULL;
    *values = NULL;
    if (!key || key->type != TN_GGUF_ARRAY ||
        (key->element_type != TN_GGUF_I32 && key->element_type != TN_GGUF_U32 &&
         key->element_type != TN_GGUF_I8))
        return fail_missing(i, name);
    if (key->count == 0 || key->count > most)
        return tn_fail(i->err, TERN_INPUT, "key \"%s\" has %llu values, allowed are 1 to %u",
                       key->name, (unsigned long long)key->count, most);
    tern_status status = tn_gguf_load_numbers(&data, i->source->gguf, key, i->err);
    *n = (uint32_t)key->count;
    if (status == TERN_OK && !(*values = tn_alloc(*n * sizeof **values)))
        status = tn_fail(i->err, TERN_MEMORY, "no memory for %u signs", *n);
    for (uint32_t k = 0; k < *n && status == TERN_OK; k++)
        (*values)[k] = key->element_type == TN_GGUF_I8
                           ? ((const int8_t *)data)[k]
                           : (int32_t)tn_load_u32((const uint8_t *)data + 4 * (size_t)k);
    tn_free(data);
    return status;
}

static tern_status check_widths(const struct importer *i, const int32_t *widths, uint32_t n,
                                uint32_t n_values)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        const int32_t w = widths[k];
        bool is_new = true;
        for (uint32_t j = 0; j < k; j++)
            is_new = is_new && widths[j] != w;
        if (w < 1 || (uint32_t)w > TERN_MAX_DIM || (uint32_t)w % i->out->block != 0 || !is_new)
            return tn_fail(i->err, TERN_INPUT,
                           "key \"" PREFIX "sign_widths\"[%u] is %d, must be a new multiple of the "
                           "block_size %u up to %u", k, w, i->out->block, TERN_MAX_DIM);
        sum += (uint32_t)w;
    }
    if (sum == n_values)
        return TERN_OK;
    return tn_fail(i->err, TERN_INPUT,
                   "key \"" PREFIX "sign_values\" has %u values, but sign_widths are %llu together",
                   n_values, (unsigned long long)sum);
}

/* Appends the signs of a rotation, one bit each. */
static tern_status add_signs(const struct importer *i, const int32_t *values, uint32_t n)
{
    struct tn_rotation_import *out = i->out;
    const uint32_t n_bytes = tn_div_ceil_u32(n, 8);
    uint8_t *bits = out->signs + out->n_sign_bytes;
    for (uint32_t k = 0; k < n; k++) {
        if (values[k] != 1 && values[k] != -1)
            return tn_fail(i->err, TERN_INPUT,
                           "key \"" PREFIX "sign_values\" holds %d, allowed are 1 and -1",
                           values[k]);
        bits[k / 8] |= (uint8_t)((values[k] < 0) << k % 8);
    }
    out->rotations[out->n++] = (struct tern_file_rotation){
        .cols = n, .signs = {.offset = out->n_sign_bytes, .bytes = n_bytes}};
    out->n_sign_bytes += n_bytes;
    return TERN_OK;
}

static tern_status make_signs(const struct importer *i, const int32_t *widths, uint32_t n,
                              const int32_t *values, uint32_t n_values)
{
    tern_status status = check_widths(i, widths, n, n_values);
    if (status != TERN_OK)
        return status;
    i->out->signs = tn_alloc_zeroed((size_t)n_values / 8 + n, 1);
    if (!i->out->signs)
        return tn_fail(i->err, TERN_MEMORY, "no memory for %u signs", n_values);
    for (uint32_t k = 0; k < n && status == TERN_OK; k++) {
        status = add_signs(i, values, (uint32_t)widths[k]);
        values += widths[k];
    }
    return status;
}

static tern_status read_signs(const struct importer *i)
{
    int32_t *widths = NULL, *values = NULL;
    uint32_t n_widths = 0, n_values = 0;
    if (!i->has_signs)
        return TERN_OK;
    tern_status status = load_integers(i, &widths, &n_widths, "sign_widths", MAX_WIDTHS);
    if (status == TERN_OK)
        status = load_integers(i, &values, &n_values, "sign_values", MAX_WIDTHS * TERN_MAX_DIM);
    if (status == TERN_OK)
        status = make_signs(i, widths, n_widths, values, n_values);
    tn_free(widths);
    tn_free(values);
    return status;
}

/* ---- tensors ---- */

static tern_status find_rotation(const struct importer *i, const struct tn_source_tensor *t)
{
    struct tn_rotation_import *out = i->out;
    const uint64_t cols = t->shape[1];
    for (uint32_t k = 0; k < out->n; k++)
        if (out->rotations[k].cols == cols)
            return TERN_OK;
    if (i->has_signs)
        return tn_fail(i->err, TERN_INPUT,
                       "tensor \"%s\" is rotated, but \"" PREFIX "sign_widths\" has no signs for "
                       "its %llu columns", t->name, (unsigned long long)cols);
    if (cols % out->block != 0 || cols > TERN_MAX_DIM || out->n == MAX_WIDTHS)
        return tn_fail(i->err, TERN_INPUT,
                       "tensor \"%s\" is rotated, but its %llu columns are not a multiple of the "
                       "block_size %u", t->name, (unsigned long long)cols, out->block);
    out->rotations[out->n++] = (struct tern_file_rotation){.cols = (uint32_t)cols};
    return TERN_OK;
}

/* Draft heads, which follow the layers, have no gated delta rule. */
static void mark_grouped(const struct importer *i, const char *name)
{
    unsigned layer = 0;
    int end = 0;
    if (i->is_grouped && sscanf(name, "blk.%u.ssm_out.weight%n", &layer, &end) == 1 && end > 0 &&
        layer < i->n_layer && i->layers[layer].delta_flags & TERN_DELTA_TILED)
        i->layers[layer].delta_flags |= TERN_DELTA_OUT_GROUPED;
}

static tern_status mark_tensor(const struct importer *i, const char *name, bool is_inverse)
{
    struct tn_source_tensor *t = tn_source_find(i->source, name);
    if (!t)
        return tn_fail(i->err, TERN_INPUT,
                       "the keys \"" PREFIX "*\" name tensor \"%s\", which the file does not hold",
                       name);
    if (t->rank != 2)
        return tn_fail(i->err, TERN_UNSUPPORTED,
                       "tensor \"%s\" is rotated and has %u dimensions; 2 are supported", name,
                       t->rank);
    if ((strcmp(name, EMBEDDINGS) == 0) != is_inverse)
        return tn_fail(i->err, TERN_UNSUPPORTED,
                       "tensor \"%s\" is in \"" PREFIX "%s\", where it is not supported", name,
                       is_inverse ? "inverse_weight_names" : "weight_names");
    if (is_inverse && !tn_source_find(i->source, "output.weight"))
        return tn_fail(i->err, TERN_UNSUPPORTED,
                       "tensor \"%s\" is rotated and also the head, and nothing says which input "
                       "the head takes then", name);
    t->is_rotated = true;
    mark_grouped(i, name);
    return find_rotation(i, t);
}

static tern_status mark_listed(const struct importer *i, const char *list, bool is_inverse)
{
    const struct tn_gguf_key *key = find_key(i, list);
    struct tn_gguf_texts texts;
    char name[TN_GGUF_MAX_NAME];
    if (!key && is_inverse)
        return TERN_OK;
    if (!key || key->type != TN_GGUF_ARRAY || key->element_type != TN_GGUF_STRING)
        return fail_missing(i, list);
    tern_status status = tn_gguf_load_texts(&texts, i->source->gguf, key, i->err);
    if (status != TERN_OK)
        return status;
    for (uint32_t k = 0; k < texts.n && status == TERN_OK; k++) {
        snprintf(name, sizeof name, "%.*s", (int)(texts.offsets[k + 1] - texts.offsets[k]),
                 texts.bytes + texts.offsets[k]);
        status = mark_tensor(i, name, is_inverse);
    }
    tn_gguf_texts_fini(&texts);
    return status;
}

/* ---- the whole import ---- */

static int compare_cols(const void *a, const void *b)
{
    const struct tern_file_rotation *r = a, *s = b;
    return (r->cols > s->cols) - (r->cols < s->cols);
}

static tern_status import_keys(struct importer *i)
{
    tern_status status = read_block(i);
    if (status == TERN_OK)
        status = read_modes(i);
    if (status != TERN_OK)
        return status;
    i->out->rotations = tn_alloc_zeroed(MAX_WIDTHS, sizeof *i->out->rotations);
    if (!i->out->rotations)
        return tn_fail(i->err, TERN_MEMORY, "no memory for the widths of rotations");
    status = read_signs(i);
    if (status == TERN_OK)
        status = mark_listed(i, "weight_names", false);
    if (status == TERN_OK)
        status = mark_listed(i, "inverse_weight_names", true);
    qsort(i->out->rotations, i->out->n, sizeof *i->out->rotations, compare_cols);
    return status;
}

tern_status tn_rotation_import(struct tn_rotation_import *out, struct tn_source *source,
                               struct tern_file_layer *layers, uint32_t n_layer,
                               struct tern_error *err)
{
    struct importer i = {
        .out = out, .source = source, .layers = layers, .n_layer = n_layer, .err = err};
    bool has_any;
    *out = (struct tn_rotation_import){0};
    tern_status status = check_names(&i, &has_any);
    if (status == TERN_OK && has_any)
        status = import_keys(&i);
    if (status != TERN_OK)
        tn_rotation_import_fini(out);
    return status;
}

void tn_rotation_import_fini(struct tn_rotation_import *import)
{
    tn_free(import->rotations);
    tn_free(import->signs);
    *import = (struct tn_rotation_import){0};
}

/* SPDX-License-Identifier: MIT
 *
 * Checks of a .tern file: the tensor table against the configuration and against the products that
 * the forward pass implements.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/error.h"
#include "file/model_file_check.h"

/* ---- one tensor ---- */

struct tensor_check {
    struct tn_mcheck *c;
    const struct tern_file_tensor *t;
    char name[48];
};

static tern_status fail_field(struct tensor_check *k, tern_status status, const char *field,
                              uint64_t value, const char *rule)
{
    return tn_fail(k->c->err, status, "%s: tensor \"%s\": %s is %" PRIu64 ", %s", k->c->name,
                   k->name, field, value, rule);
}

static tern_status expect(struct tensor_check *k, const char *field, uint64_t value,
                          uint64_t expected)
{
    if (value == expected)
        return TERN_OK;
    return tn_fail(k->c->err, TERN_INPUT, "%s: tensor \"%s\": %s is %" PRIu64 ", must be %" PRIu64,
                   k->c->name, k->name, field, value, expected);
}

static tern_status check_layer_number(struct tensor_check *k, const struct tn_slot *slot)
{
    const struct tern_file_tensor *t = k->t;
    const uint32_t n_layer = tn_n_all_layers(k->c->file->spec.config);
    const bool per_layer = slot->scope != TN_SCOPE_MODEL;
    if (per_layer && t->layer < n_layer &&
        !tn_slot_is_in(slot, &k->c->file->spec.layers[t->layer]))
        return fail_field(k, TERN_UNSUPPORTED, "role", t->role, "not for this kind of layer");
    if (per_layer ? t->layer < n_layer : t->layer == TERN_NO_LAYER)
        return TERN_OK;
    return tn_fail(k->c->err, TERN_INPUT, "%s: tensor \"%s\": layer is %u, must be %s%u",
                   k->c->name, k->name, t->layer, per_layer ? "below " : "",
                   per_layer ? n_layer : TERN_NO_LAYER);
}

/* Why a model of this configuration cannot have the tensor. */
static const char *why_not(const struct tn_slot *slot, const struct tern_file_config *config)
{
    switch (slot->need) {
    case TN_NEED_NORM:
        return "the order of the model's layers has no such norm";
    case TN_NEED_NORM_BIAS:
        return "the model has no such LayerNorm";
    case TN_NEED_WIDTH:
        return "the model's embeddings are as wide as its states";
    case TN_NEED_SHARED:
        return "the model says that it has no shared expert";
    default:
        return config->flags & TERN_MODEL_NO_HEAD ? "the model says that it has no head"
                                                  : "the model says that its head is tied";
    }
}

/* Checks role, layer, layout and shape. */
static tern_status check_kind(struct tensor_check *k)
{
    const struct tern_file_tensor *t = k->t;
    const struct tn_model_spec *spec = &k->c->file->spec;
    const struct tn_slot *slot = tn_slot_of(t->role);
    if (!slot)
        return fail_field(k, TERN_UNSUPPORTED, "role", t->role, "not supported");
    if (!tn_slot_is_allowed(slot, spec->config))
        return fail_field(k, TERN_UNSUPPORTED, "role", t->role, why_not(slot, spec->config));
    tern_status status = check_layer_number(k, slot);
    if (!status && !tn_slot_takes_layout(slot, t->layout))
        status = fail_field(k, TERN_UNSUPPORTED, "layout", t->layout,
                            "not supported for this tensor");
    uint32_t rows, cols;
    if (!status) {
        tn_slot_shape(&rows, &cols, slot, spec, t->layer);
        status = expect(k, "rows", t->rows, rows);
    }
    if (!status)
        status = expect(k, "cols", t->cols, cols);
    if (!status)
        status = expect(k, "n_stacked", t->n_stacked, tn_slot_n_stacked(slot, spec->config));
    if (!status)
        status = tn_mcheck_rotated(k->c, t, k->name);
    return status ? status
                  : tn_mcheck_reserved(k->c, "tensor.reserved", t->reserved, sizeof t->reserved);
}

static bool is_scale_kind(const struct tern_file_tensor *t, uint32_t inputs)
{
    const struct tn_layout_spec *spec = tn_layout_find(t->layout);
    if (t->scale_kind > TERN_SCALE_COL_GROUP_F16 || !(spec->scale_kinds >> t->scale_kind & 1))
        return false;
    return !spec->is_ternary ||
           tn_is_col_group(t->scale_kind) == (inputs == TERN_INPUTS_FLOAT);
}

/* One scale per group belongs to inputs that are not rounded, one for the whole matrix to rounded
 * ones; q8 has one per row, other layouts none. */
static tern_status check_scale_kind(struct tensor_check *k)
{
    const struct tern_file_tensor *t = k->t;
    if (!is_scale_kind(t, k->c->file->spec.config->inputs))
        return fail_field(k, TERN_UNSUPPORTED, "scale_kind", t->scale_kind,
                          "not supported for this layout");
    const bool has_groups = tn_is_col_group(t->scale_kind), has_one = t->scale_kind ==
                                                                     TERN_SCALE_TENSOR;
    if (has_groups ? t->scale_group == 0 || (t->scale_group % 64 && t->scale_group < t->cols)
                   : t->scale_group != 0)
        return fail_field(k, TERN_UNSUPPORTED, "scale_group", t->scale_group,
                          has_groups ? "must be a multiple of 64" : "must be 0");
    bool good = has_one ? t->scale > 0 && t->scale < INFINITY : t->scale == 0;
    if (!good)
        return tn_fail(k->c->err, TERN_INPUT, "%s: tensor \"%s\": scale is %g, must be %s",
                       k->c->name, k->name, (double)t->scale,
                       has_one ? "finite and above 0" : "0 for this layout");
    uint64_t n_weights = tn_layout_is_ternary(t->layout) ? tn_tensor_weights(t) : 0;
    if (t->n_zero > n_weights)
        return tn_fail(k->c->err, TERN_INPUT,
                       "%s: tensor \"%s\": n_zero is %" PRIu64 ", at most %" PRIu64, k->c->name,
                       k->name, t->n_zero, n_weights);
    return TERN_OK;
}

/* The shift of a row in planes must leave some bits of its values; unknown bits are errors. */
static tern_status check_row_shifts(struct tensor_check *k)
{
    const struct tern_file_tensor *t = k->t;
    const uint32_t n_bits = (uint32_t)tn_layout_weight_bytes(t->layout, 8);
    if (tn_layout_planes(t->layout) == 0)
        return TERN_OK;
    const uint8_t *end = (const uint8_t *)tn_model_file_scales(k->c->file, t) + t->scale_bytes;
    for (uint32_t r = 0; r < t->rows; r++) {
        uint32_t form = (end - t->rows)[r];
        if ((form & ~(TERN_PLANE_SHIFT | TERN_PLANE_CENTRED)) != 0 ||
            (form & TERN_PLANE_SHIFT) >= n_bits)
            return tn_fail(k->c->err, TERN_INPUT,
                           "%s: tensor \"%s\": shift of row %u is %u, must be below %u",
                           k->c->name, k->name, r, form & ~TERN_PLANE_CENTRED, n_bits);
    }
    return TERN_OK;
}

static tern_status check_row_scales(struct tensor_check *k)
{
    const float *scales = tn_model_file_scales(k->c->file, k->t);
    uint64_t n = (uint64_t)k->t->rows * tn_layout_scales(k->t->layout);
    for (uint64_t r = 0; scales && r < n; r++)
        if (!(scales[r] >= 0 && scales[r] < INFINITY)) /* rejects NaN, too */
            return tn_fail(k->c->err, TERN_INPUT,
                           "%s: tensor \"%s\": scale of row %" PRIu64
                           " is %g, must be finite and not negative",
                           k->c->name, k->name, r % k->t->rows, (double)scales[r]);
    return check_row_shifts(k);
}

/* For each matrix of a stack. */
static tern_status check_scales(const struct tensor_check *k)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < TN_MAX(k->t->n_stacked, 1u) && !status; i++) {
        const struct tern_file_tensor slice = tn_tensor_slice(k->t, i);
        struct tensor_check one = *k;
        one.t = &slice;
        status = check_row_scales(&one);
    }
    return status;
}

/* With a small factor, angles would exceed the range of the sine and cosine tables. */
static tern_status check_factors(struct tensor_check *k)
{
    const float *factors = tn_model_file_data(k->c->file, k->t);
    for (uint32_t i = 0; i < k->t->cols && k->t->role == TERN_ROLE_ROPE_FACTORS; i++)
        if (!(factors[i] >= TERN_MIN_ROPE_FACTOR && factors[i] < INFINITY)) /* rejects NaN, too */
            return tn_fail(k->c->err, TERN_INPUT,
                           "%s: tensor \"%s\": factor %u is %g, must be finite and at least %g",
                           k->c->name, k->name, i, (double)factors[i],
                           (double)TERN_MIN_ROPE_FACTOR);
    return TERN_OK;
}

/* Checks that data and scales begin at the first valid offset after *end; advances *end. */
static tern_status check_places(struct tensor_check *k, uint64_t *end)
{
    const struct tern_file_tensor *t = k->t;
    uint64_t n_bytes = 0, offset = 0, limit = k->c->n_bytes;
    const struct tn_layout_spec *spec = tn_layout_find(t->layout);
    if (spec->is_whole && t->cols % spec->tile_cols != 0)
        return fail_field(k, TERN_INPUT, "cols", t->cols, "not a multiple of the layout's blocks");
    if (!tn_tensor_bytes(t, &n_bytes) ||
        !tn_tensor_place(*end, n_bytes, &offset))
        return fail_field(k, TERN_INPUT, "rows * cols", (uint64_t)t->rows * t->cols, "too large");
    tern_status status = expect(k, "bytes", t->bytes, n_bytes);
    if (!status)
        status = expect(k, "offset", t->offset, offset);
    if (!status && !tn_range_fits(offset, n_bytes, limit))
        status = fail_field(k, TERN_INPUT, "offset + bytes", offset + n_bytes,
                            "beyond the end of the file");
    if (status)
        return status;
    *end = offset + n_bytes;
    n_bytes = tn_tensor_scale_bytes(t);
    if (n_bytes == 0) {
        status = expect(k, "scale_offset", t->scale_offset, 0);
        if (!status)
            status = expect(k, "scale_bytes", t->scale_bytes, 0);
        return status ? status : check_factors(k);
    }
    offset = (*end + TERN_FILE_ALIGN - 1) & ~(uint64_t)(TERN_FILE_ALIGN - 1);
    status = expect(k, "scale_bytes", t->scale_bytes, n_bytes);
    if (!status)
        status = expect(k, "scale_offset", t->scale_offset, offset);
    if (!status && !tn_range_fits(offset, n_bytes, limit))
        status = fail_field(k, TERN_INPUT, "scale_offset + scale_bytes", offset + n_bytes,
                            "beyond the end of the file");
    *end = offset + n_bytes;
    return status || t->scale_kind != TERN_SCALE_ROW ? status : check_scales(k);
}

static tern_status check_order(struct tensor_check *k, uint32_t i)
{
    if (i == 0)
        return TERN_OK;
    const struct tern_file_tensor *before = k->t - 1;
    int order = tn_tensor_compare(before, k->t);
    if (order < 0)
        return TERN_OK;
    return fail_field(k, TERN_INPUT, "place in the table", i,
                      order == 0 ? "the same role and layer as the one before it"
                                 : "not sorted by layer and role");
}

/* ---- the table ---- */

/* The number of tensors of a slot if all layers (or the model) have it. */
static uint32_t count_places(const struct tn_model_spec *spec, const struct tn_slot *slot)
{
    if (slot->scope == TN_SCOPE_MODEL)
        return 1;
    uint32_t n = 0;
    for (uint32_t layer = 0; layer < tn_n_all_layers(spec->config); layer++)
        n += tn_slot_is_in(slot, &spec->layers[layer]);
    return n;
}

static tern_status check_presence(struct tn_mcheck *c)
{
    const struct tern_file_config *m = c->file->spec.config;
    uint32_t counts[TN_ROLE_END] = {0}; /* no tensor is counted twice: check_order */
    for (uint32_t i = 0; i < c->file->n_tensors; i++)
        counts[c->file->tensors[i].role]++;
    for (uint32_t i = 0; i < tn_n_slots; i++) {
        const struct tn_slot *slot = &tn_slots[i];
        const uint32_t needed = count_places(&c->file->spec, slot), n = counts[slot->role];
        if (n == needed || slot->need == TN_NEED_ANY)
            continue;
        if (n > 0 || tn_slot_is_required(slot, m))
            return tn_fail(c->err, TERN_INPUT, "%s: tensor \"%s\" is present %u times, must be %u",
                           c->name, tn_role_name(slot->role), n, needed);
    }
    return TERN_OK;
}

tern_status tn_mcheck_tensors(struct tn_mcheck *c)
{
    uint64_t end = c->file->header->data.offset;
    for (uint32_t i = 0; i < c->file->n_tensors; i++) {
        struct tensor_check k = {.c = c, .t = &c->file->tensors[i]};
        tn_tensor_name(k.name, sizeof k.name, k.t);
        tern_status status = check_kind(&k);
        if (!status)
            status = check_order(&k, i);
        if (!status)
            status = check_scale_kind(&k);
        if (!status)
            status = check_places(&k, &end);
        if (status)
            return status;
    }
    tern_status status = tn_mcheck_equal(c, "end of the last tensor", end, c->n_bytes);
    return status ? status : check_presence(c);
}

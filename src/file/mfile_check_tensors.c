/* SPDX-License-Identifier: MIT
 *
 * Checks of a .tern file: the tensor table against the configuration and
 * against what the forward pass can run.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/log.h"
#include "file/mfile_check.h"

#define LAYOUT_BIT(name) (1u << TERN_LAYOUT_##name)
#define TABLE_LAYOUTS                                                                              \
    (LAYOUT_BIT(Q8) | LAYOUT_BIT(Q8_PLANES) | LAYOUT_BIT(Q6) | LAYOUT_BIT(Q4) | LAYOUT_BIT(F16) |  \
     LAYOUT_BIT(BF16))

/* What the architecture says about a role. */
struct role_rule {
    bool per_layer;
    bool required;
    uint32_t layouts; /* LAYOUT_BIT of those that the forward pass runs */
    uint32_t rows;
    uint32_t cols;
};

/* False for roles that this architecture does not have. */
static bool role_rule(struct role_rule *out, uint32_t role, const struct tern_file_config *m)
{
    uint32_t att = m->n_head * m->head_dim, kv = m->n_kv_head * m->head_dim;
    bool tied = m->flags & TERN_MODEL_TIED_HEAD;
    switch (role) {
    case TERN_ROLE_EMBED:
        *out = (struct role_rule){false, true, TABLE_LAYOUTS, m->vocab, m->hidden};
        return true;
    case TERN_ROLE_HEAD:
        *out = (struct role_rule){false, !tied, TABLE_LAYOUTS, m->vocab, m->hidden};
        return !tied;
    case TERN_ROLE_FINAL_NORM:
        *out = (struct role_rule){false, true, LAYOUT_BIT(F32), 1, m->hidden};
        return true;
    case TERN_ROLE_ATTN_NORM:
    case TERN_ROLE_FFN_NORM:
        *out = (struct role_rule){true, true, LAYOUT_BIT(F32), 1, m->hidden};
        return true;
    case TERN_ROLE_ATTN_SUB_NORM:
        *out = (struct role_rule){true, false, LAYOUT_BIT(F32), 1, att};
        return true;
    case TERN_ROLE_FFN_SUB_NORM:
        *out = (struct role_rule){true, false, LAYOUT_BIT(F32), 1, m->ffn};
        return true;
    case TERN_ROLE_Q:
        *out = (struct role_rule){true, true, LAYOUT_BIT(T2), att, m->hidden};
        return true;
    case TERN_ROLE_K:
    case TERN_ROLE_V:
        *out = (struct role_rule){true, true, LAYOUT_BIT(T2), kv, m->hidden};
        return true;
    case TERN_ROLE_O:
        *out = (struct role_rule){true, true, LAYOUT_BIT(T2), m->hidden, att};
        return true;
    case TERN_ROLE_GATE:
        *out = (struct role_rule){true, true, LAYOUT_BIT(T2), m->ffn, m->hidden};
        return true;
    case TERN_ROLE_UP:
        *out = (struct role_rule){true, true, LAYOUT_BIT(T2) | LAYOUT_BIT(R2), m->ffn, m->hidden};
        return true;
    case TERN_ROLE_DOWN:
        *out = (struct role_rule){true, true, LAYOUT_BIT(T2) | LAYOUT_BIT(C2), m->hidden, m->ffn};
        return true;
    default:
        return false;
    }
}

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

/* Role, layer, layout, shape. */
static tern_status check_kind(struct tensor_check *k)
{
    const struct tern_file_tensor *t = k->t;
    const struct tern_file_config *m = k->c->file->config;
    struct role_rule rule;
    if (!role_rule(&rule, t->role, m))
        return fail_field(k, TERN_UNSUPPORTED, "role", t->role,
                          t->role == TERN_ROLE_HEAD ? "the model says that its head is tied"
                                                    : "not supported");
    if (rule.per_layer ? t->layer >= m->n_layer : t->layer != TERN_NO_LAYER)
        return tn_fail(k->c->err, TERN_INPUT, "%s: tensor \"%s\": layer is %u, must be %s%u",
                       k->c->name, k->name, t->layer, rule.per_layer ? "below " : "",
                       rule.per_layer ? m->n_layer : TERN_NO_LAYER);
    if (t->layout >= 32 || !(rule.layouts >> t->layout & 1))
        return fail_field(k, TERN_UNSUPPORTED, "layout", t->layout,
                          "not supported for this tensor");
    tern_status status = expect(k, "rows", t->rows, rule.rows);
    if (!status)
        status = expect(k, "cols", t->cols, rule.cols);
    return status ? status
                  : tn_mcheck_reserved(k->c, "tensor.reserved", t->reserved, sizeof t->reserved);
}

/* Ternary weights have one scale, q8 one per row, others none. */
static tern_status check_scale_kind(struct tensor_check *k)
{
    const struct tern_file_tensor *t = k->t;
    bool ternary = t->layout >= TERN_LAYOUT_T2;
    uint32_t kind = ternary                       ? TERN_SCALE_TENSOR
                    : tn_layout_scales(t->layout) ? TERN_SCALE_ROW
                                                  : TERN_SCALE_NONE;
    if (t->scale_kind != kind)
        return fail_field(k, TERN_UNSUPPORTED, "scale_kind", t->scale_kind,
                          "not supported for this layout");
    if (t->scale_group != 0)
        return fail_field(k, TERN_UNSUPPORTED, "scale_group", t->scale_group, "must be 0");
    bool good = ternary ? t->scale > 0 && t->scale < INFINITY : t->scale == 0;
    if (!good)
        return tn_fail(k->c->err, TERN_INPUT, "%s: tensor \"%s\": scale is %g, must be %s",
                       k->c->name, k->name, (double)t->scale,
                       ternary ? "finite and above 0" : "0 for this layout");
    uint64_t n_weights = ternary ? (uint64_t)t->rows * t->cols : 0;
    if (t->n_zero > n_weights)
        return tn_fail(k->c->err, TERN_INPUT,
                       "%s: tensor \"%s\": n_zero is %" PRIu64 ", at most %" PRIu64, k->c->name,
                       k->name, t->n_zero, n_weights);
    return TERN_OK;
}

/* The shift of a row in planes leaves bits of its values, and no bit is unknown. */
static tern_status check_row_shifts(struct tensor_check *k)
{
    const struct tern_file_tensor *t = k->t;
    const uint32_t n_bits = tn_layout_bits(t->layout);
    if (tn_layout_planes(t->layout) == 0)
        return TERN_OK;
    const uint8_t *end = (const uint8_t *)tn_mfile_scales(k->c->file, t) + t->scale_bytes;
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
    const float *scales = tn_mfile_scales(k->c->file, k->t);
    uint64_t n = (uint64_t)k->t->rows * tn_layout_scales(k->t->layout);
    for (uint64_t r = 0; scales && r < n; r++)
        if (!(scales[r] >= 0 && scales[r] < INFINITY)) /* NaN too */
            return tn_fail(k->c->err, TERN_INPUT,
                           "%s: tensor \"%s\": scale of row %" PRIu64
                           " is %g, must be finite and not negative",
                           k->c->name, k->name, r % k->t->rows, (double)scales[r]);
    return check_row_shifts(k);
}

/* Data and scales lie exactly where they must, behind *end, which moves on. */
static tern_status check_places(struct tensor_check *k, uint64_t *end)
{
    const struct tern_file_tensor *t = k->t;
    uint64_t n_bytes = 0, offset = 0, limit = k->c->n_bytes;
    if (!tn_layout_bytes(t->layout, t->rows, t->cols, &n_bytes) ||
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
    if (t->scale_kind != TERN_SCALE_ROW) {
        status = expect(k, "scale_offset", t->scale_offset, 0);
        return status ? status : expect(k, "scale_bytes", t->scale_bytes, 0);
    }
    n_bytes = tn_layout_scale_bytes(t->layout, t->rows, t->cols);
    offset = (*end + TERN_FILE_ALIGN - 1) & ~(uint64_t)(TERN_FILE_ALIGN - 1);
    status = expect(k, "scale_bytes", t->scale_bytes, n_bytes);
    if (!status)
        status = expect(k, "scale_offset", t->scale_offset, offset);
    if (!status && !tn_range_fits(offset, n_bytes, limit))
        status = fail_field(k, TERN_INPUT, "scale_offset + scale_bytes", offset + n_bytes,
                            "beyond the end of the file");
    *end = offset + n_bytes;
    return status ? status : check_row_scales(k);
}

static tern_status check_order(struct tensor_check *k, uint32_t i)
{
    if (i == 0)
        return TERN_OK;
    const struct tern_file_tensor *before = k->t - 1;
    int order = tn_tensor_compare(before->layer, before->role, k->t->layer, k->t->role);
    if (order < 0)
        return TERN_OK;
    return fail_field(k, TERN_INPUT, "place in the table", i,
                      order == 0 ? "the same role and layer as the one before it"
                                 : "not sorted by layer and role");
}

/* ---- the table ---- */

/* Layers (or, for tensors of no layer, files) that have this role. */
static uint32_t count_role(const struct tn_mfile *f, uint32_t role, bool per_layer)
{
    if (!per_layer)
        return tn_mfile_tensor(f, (enum tern_role)role, TERN_NO_LAYER) != NULL;
    uint32_t n = 0;
    for (uint32_t layer = 0; layer < f->config->n_layer; layer++)
        n += tn_mfile_tensor(f, (enum tern_role)role, layer) != NULL;
    return n;
}

static tern_status check_presence(struct tn_mcheck *c)
{
    static const uint32_t roles[] = {
#define ROLE_NUMBER(name, number, text) number,
        TERN_ROLE_LIST(ROLE_NUMBER)
#undef ROLE_NUMBER
    };
    for (size_t i = 0; i < TN_COUNT_OF(roles); i++) {
        struct role_rule rule;
        if (!role_rule(&rule, roles[i], c->file->config))
            continue;
        uint32_t needed = rule.per_layer ? c->file->config->n_layer : 1;
        uint32_t n = count_role(c->file, roles[i], rule.per_layer);
        if (n != needed && (rule.required || n > 0))
            return tn_fail(c->err, TERN_INPUT, "%s: tensor \"%s\" is present %u times, must be %u",
                           c->name, tn_role_name(roles[i]), n, needed);
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

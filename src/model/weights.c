/* SPDX-License-Identifier: MIT
 *
 * Binding tensors of the file to typed views.
 */
#include "model/weights.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/log.h"

/* tn_mfile_open proved that the tensor exists with the shape that the configuration implies. */
static const struct tern_file_tensor *required(const struct tn_mfile *file, enum tern_role role,
                                               uint32_t layer)
{
    const struct tern_file_tensor *t = tn_mfile_tensor(file, role, layer);
    assert(t && "tn_mfile_open checks that required tensors are present");
    return t;
}

static const float *bind_norm(const struct tn_mfile *file, enum tern_role role, uint32_t layer)
{
    const struct tern_file_tensor *t = tn_mfile_tensor(file, role, layer);
    return t ? tn_mfile_data(file, t) : NULL;
}

static struct tn_linear bind_linear(const struct tn_mfile *file, enum tern_role role,
                                    uint32_t layer)
{
    const struct tern_file_tensor *t = required(file, role, layer);
    return (struct tn_linear){
        .w = {.data = tn_mfile_data(file, t), .rows = t->rows, .cols = t->cols,
              .layout = t->layout},
        .scale = t->scale,
    };
}

static struct tn_table bind_table(const struct tn_mfile *file, enum tern_role role)
{
    const struct tern_file_tensor *t = required(file, role, TERN_NO_LAYER);
    struct tn_table table = {
        .data = tn_mfile_data(file, t),
        .scales = t->scale_kind == TERN_SCALE_ROW ? tn_mfile_scales(file, t) : NULL,
        .layout = t->layout,
        .rows = t->rows,
        .cols = t->cols,
    };
    const uint32_t n_planes = tn_layout_planes(t->layout);
    if (n_planes)
        table.planes = tn_planes_view(table.data, table.scales, t->rows, t->cols, n_planes);
    return table;
}

static void bind_range(struct tn_layer *layer, const struct tn_mfile *file, uint32_t i)
{
    layer->begin = UINT64_MAX;
    layer->end = 0;
    for (uint32_t k = 0; k < file->n_tensors; k++) {
        const struct tern_file_tensor *t = &file->tensors[k];
        if (t->layer != i)
            continue;
        layer->begin = TN_MIN(layer->begin, t->offset);
        layer->end = TN_MAX(layer->end, t->offset + t->bytes);
    }
}

static void bind_layer(struct tn_layer *layer, const struct tn_mfile *file, uint32_t i)
{
    *layer = (struct tn_layer){
        .attn_norm = bind_norm(file, TERN_ROLE_ATTN_NORM, i),
        .ffn_norm = bind_norm(file, TERN_ROLE_FFN_NORM, i),
        .attn_sub_norm = bind_norm(file, TERN_ROLE_ATTN_SUB_NORM, i),
        .ffn_sub_norm = bind_norm(file, TERN_ROLE_FFN_SUB_NORM, i),
        .q = bind_linear(file, TERN_ROLE_Q, i),
        .k = bind_linear(file, TERN_ROLE_K, i),
        .v = bind_linear(file, TERN_ROLE_V, i),
        .o = bind_linear(file, TERN_ROLE_O, i),
        .gate = bind_linear(file, TERN_ROLE_GATE, i),
        .up = bind_linear(file, TERN_ROLE_UP, i),
        .down = bind_linear(file, TERN_ROLE_DOWN, i),
    };
    bind_range(layer, file, i);
}

tern_status tn_weights_bind(struct tn_weights *out, const struct tn_mfile *file,
                            struct tern_error *err)
{
    const struct tern_file_config *c = file->config;
    *out = (struct tn_weights){.config = c};
    out->layers = tn_alloc_zeroed(c->n_layer, sizeof *out->layers);
    if (!out->layers)
        return tn_fail(err, TERN_MEMORY, "no memory for the views of %u layers", c->n_layer);
    for (uint32_t i = 0; i < c->n_layer; i++)
        bind_layer(&out->layers[i], file, i);
    out->embed = bind_table(file, TERN_ROLE_EMBED);
    out->head = c->flags & TERN_MODEL_TIED_HEAD ? out->embed : bind_table(file, TERN_ROLE_HEAD);
    out->final_norm = bind_norm(file, TERN_ROLE_FINAL_NORM, TERN_NO_LAYER);
    return tn_ok(err);
}

void tn_weights_fini(struct tn_weights *weights)
{
    tn_free(weights->layers);
    *weights = (struct tn_weights){0};
}

/* SPDX-License-Identifier: MIT
 *
 * Binding tensors of the file to typed views.
 */
#include "model/weights.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/mixer.h"

static tern_status bind_matrix(struct tn_matrix *out, const struct tn_mfile *file,
                               const struct tern_file_tensor *t, struct tern_error *err)
{
    char name[48];
    const void *scales = tn_mfile_scales(file, t);
    *out = (struct tn_matrix){
        .format = tn_format_find(t->layout, t->scale_kind),
        .t = {.w = {.data = tn_mfile_data(file, t), .rows = t->rows, .cols = t->cols,
                    .layout = t->layout}},
        .scale = t->scale,
    };
    if (!out->format)
        return tn_fail(err, TERN_UNSUPPORTED, "tensor \"%s\" has layout %s with scales of kind %u",
                       tn_tensor_name(name, sizeof name, t), tn_layout_name(t->layout),
                       t->scale_kind);
    if (tn_is_col_group(t->scale_kind)) {
        out->t.scales = scales;
        out->t.group = t->scale_group;
        out->t.is_f16 = t->scale_kind == TERN_SCALE_COL_GROUP_F16;
    } else {
        out->row_scales = scales;
    }
    const uint32_t n_planes = tn_layout_planes(t->layout);
    if (n_planes)
        out->planes =
            tn_planes_view(out->t.w.data, out->row_scales, t->rows, t->cols, n_planes);
    return TERN_OK;
}

static tern_status bind_in_layer(struct tn_layer *layer, const struct tn_mfile *file,
                                 const struct tern_file_tensor *t, struct tern_error *err)
{
    layer->begin = TN_MIN(layer->begin, t->offset);
    layer->end = TN_MAX(layer->end, t->offset + t->bytes);
    if (!tn_slot_is_vector(tn_slot_of(t->role)))
        return bind_matrix(&layer->matrices[t->role - TN_FIRST_PROJECTION], file, t, err);
    layer->vectors[t->role] = tn_mfile_data(file, t);
    return TERN_OK;
}

static tern_status bind_in_model(struct tn_weights *out, const struct tn_mfile *file,
                                 const struct tern_file_tensor *t, struct tern_error *err)
{
    switch (t->role) {
    case TERN_ROLE_EMBED:
        return bind_matrix(&out->embed, file, t, err);
    case TERN_ROLE_HEAD:
        return bind_matrix(&out->head, file, t, err);
    case TERN_ROLE_HEAD_IN_NORM:
        out->head_in_norm = tn_mfile_data(file, t);
        return TERN_OK;
    default:
        assert(t->role == TERN_ROLE_FINAL_NORM && "tn_mfile_open knows all slots of models");
        out->final_norm = tn_mfile_data(file, t);
        return TERN_OK;
    }
}

/* Factors in the mapping may change at any time: the layers get copies, and these are checked as
 * the file was (mfile_check_tensors.c). */
static tern_status copy_rope_factors(struct tn_weights *w, struct tern_error *err)
{
    const uint32_t half = w->config->head_dim / 2;
    for (uint32_t i = 0; i < w->config->n_layer; i++) {
        const float **factors = &w->layers[i].vectors[TERN_ROLE_ROPE_FACTORS];
        const uint32_t n = w->layers[i].spec->rope_dims / 2;
        if (!*factors)
            continue;
        if (!w->rope_factors)
            w->rope_factors = tn_alloc_zeroed((size_t)w->config->n_layer * half, sizeof(float));
        if (!w->rope_factors)
            return tn_fail(err, TERN_MEMORY, "no memory for rope factors of %u layers",
                           w->config->n_layer);
        *factors = memcpy(w->rope_factors + (size_t)i * half, *factors, n * sizeof(float));
        for (uint32_t j = 0; j < n; j++)
            if (!((*factors)[j] >= TERN_MIN_ROPE_FACTOR && (*factors)[j] <= FLT_MAX)) /* NaN too */
                return tn_fail(err, TERN_MAPPED_IO, "the file changed while it was opened");
    }
    return TERN_OK;
}

static bool same_rope(const struct tn_layer *a, const struct tn_layer *b)
{
    const float *f = a->vectors[TERN_ROLE_ROPE_FACTORS], *g = b->vectors[TERN_ROLE_ROPE_FACTORS];
    return a->spec->rope_theta == b->spec->rope_theta &&
           a->spec->rope_dims == b->spec->rope_dims && !f == !g &&
           (!f || memcmp(f, g, a->spec->rope_dims / 2 * sizeof *f) == 0);
}

static void number_ropes(struct tn_weights *w)
{
    for (uint32_t i = 0; i < w->config->n_layer; i++) {
        struct tn_layer *layer = &w->layers[i];
        uint32_t k = 0;
        while (k < w->n_ropes && !same_rope(layer, w->ropes[k]))
            k++;
        if (k == w->n_ropes)
            w->ropes[w->n_ropes++] = layer;
        layer->i_rope = k;
    }
}

static tern_status bind_tensors(struct tn_weights *out, const struct tn_mfile *file,
                                struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < file->n_tensors && status == TERN_OK; i++) {
        const struct tern_file_tensor *t = &file->tensors[i];
        status = t->layer == TERN_NO_LAYER ? bind_in_model(out, file, t, err)
                                           : bind_in_layer(&out->layers[t->layer], file, t, err);
    }
    if (out->config->flags & TERN_MODEL_TIED_HEAD)
        out->head = out->embed;
    return status;
}

tern_status tn_weights_bind(struct tn_weights *out, const struct tn_mfile *file,
                            struct tern_error *err)
{
    const struct tern_file_config *c = file->spec.config;
    *out = (struct tn_weights){.config = c};
    out->layers = tn_alloc_zeroed(c->n_layer, sizeof *out->layers);
    out->ropes = tn_alloc_zeroed(c->n_layer, sizeof *out->ropes);
    if (!out->layers || !out->ropes)
        return tn_fail(err, TERN_MEMORY, "no memory for the views of %u layers", c->n_layer);
    for (uint32_t i = 0; i < c->n_layer; i++) {
        out->layers[i].spec = &file->spec.layers[i];
        out->layers[i].mixer = &tn_mixer_attention;
        out->layers[i].begin = UINT64_MAX;
    }
    tern_status status = bind_tensors(out, file, err);
    if (status != TERN_OK)
        return status;
    status = copy_rope_factors(out, err);
    if (status != TERN_OK)
        return status;
    number_ropes(out);
    for (uint32_t i = 0; i < c->n_layer; i++)
        out->has_gate_norms = out->has_gate_norms ||
                              out->layers[i].vectors[TERN_ROLE_GATE_IN_NORM] ||
                              out->layers[i].vectors[TERN_ROLE_UP_IN_NORM];
    return tn_ok(err);
}

void tn_weights_fini(struct tn_weights *weights)
{
    tn_free(weights->layers);
    tn_free(weights->ropes);
    tn_free(weights->rope_factors);
    *weights = (struct tn_weights){0};
}

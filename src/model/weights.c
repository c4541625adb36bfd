/* SPDX-License-Identifier: MIT
 *
 * Binds the tensors of the file to typed views, and computes the memory that their formats need.
 * The file has been checked; only rope factors are checked again, on the copy.
 */
#include "model/weights.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "model/ffn.h"
#include "model/mixer.h"

const uint8_t tn_matrix_places[TN_ROLE_END] = {
#define TN_PLACE(role) [TERN_ROLE_##role] = TN_MATRIX_##role,
#define SLOT(role, scope, kind, ...) TN_PLACE_##kind(role)
#include "arch/slots.h"
#undef SLOT
#undef TN_PLACE
};

static tern_status bind_matrix(struct tn_matrix *out, const struct tn_model_file *file,
                               const struct tern_file_tensor *t, struct tern_error *err)
{
    char name[48];
    *out = (struct tn_matrix){
        .format = tn_format_find(t->layout, t->scale_kind),
        .data = tn_model_file_data(file, t),
        .scales = tn_model_file_scales(file, t),
        .layout = t->layout,
        .rows = t->rows,
        .cols = t->cols,
        .scale = t->scale,
        .tensor = t,
    };
    if (!out->format)
        return tn_fail(err, TERN_UNSUPPORTED, "tensor \"%s\" has layout %s with scales of kind %u",
                       tn_tensor_name(name, sizeof name, t), tn_layout_name(t->layout),
                       t->scale_kind);
    if (out->format->bind)
        out->format->bind(out, t);
    return TERN_OK;
}

void tn_matrix_slice(struct tn_matrix *out, const struct tn_matrix *stack, uint32_t i)
{
    const struct tern_file_tensor *t = stack->tensor, slice = tn_tensor_slice(t, i);
    *out = *stack;
    out->data += slice.offset - t->offset;
    if (stack->scales)
        out->scales = (const char *)stack->scales + (slice.scale_offset - t->scale_offset);
    if (out->format->bind)
        out->format->bind(out, t);
}

static tern_status bind_in_layer(struct tn_layer *layer, const struct tn_model_file *file,
                                 const struct tern_file_tensor *t, struct tern_error *err)
{
    layer->begin = TN_MIN(layer->begin, t->offset);
    layer->end = TN_MAX(layer->end, t->offset + t->bytes);
    if (!tn_slot_is_vector(tn_slot_of(t->role)))
        return bind_matrix(&layer->matrices[tn_matrix_places[t->role]], file, t, err);
    layer->vectors[t->role] = tn_model_file_data(file, t);
    return TERN_OK;
}

static tern_status bind_in_model(struct tn_weights *out, const struct tn_model_file *file,
                                 const struct tern_file_tensor *t, struct tern_error *err)
{
    switch (t->role) {
    case TERN_ROLE_EMBED:
        return bind_matrix(&out->embed, file, t, err);
    case TERN_ROLE_HEAD:
        return bind_matrix(&out->head, file, t, err);
    case TERN_ROLE_EMBED_IN:
        return bind_matrix(&out->embed_in, file, t, err);
    case TERN_ROLE_EMBED_OUT:
        return bind_matrix(&out->embed_out, file, t, err);
    case TERN_ROLE_POSITIONS:
        return bind_matrix(&out->positions, file, t, err);
    case TERN_ROLE_HEAD_IN_NORM:
        out->head_in_norm = tn_model_file_data(file, t);
        return TERN_OK;
    case TERN_ROLE_HEAD_BIAS:
        out->head_bias = tn_model_file_data(file, t);
        return TERN_OK;
    case TERN_ROLE_FINAL_NORM_BIAS:
        out->final_norm.bias = tn_model_file_data(file, t);
        return TERN_OK;
    default:
        assert(t->role == TERN_ROLE_FINAL_NORM && "tn_model_file_open knows all slots of models");
        out->final_norm.weights = tn_model_file_data(file, t);
        return TERN_OK;
    }
}

/* Factors in the mapping may change at any time: the layers get copies, which are checked again
 * like the file (model_file_check_tensors.c). */
static tern_status copy_rope_factors(struct tn_weights *w, struct tern_error *err)
{
    const uint32_t half = w->rope_half;
    for (uint32_t i = 0; i < tn_n_all_layers(w->config); i++) {
        const float **factors = &w->layers[i].vectors[TERN_ROLE_ROPE_FACTORS];
        const uint32_t n = w->layers[i].spec->rope_dims / 2;
        if (!*factors)
            continue;
        if (!w->rope_factors)
            w->rope_factors =
                tn_alloc_zeroed((size_t)tn_n_all_layers(w->config) * half, sizeof(float));
        if (!w->rope_factors)
            return tn_fail(err, TERN_MEMORY, "no memory for rope factors of %u layers",
                           w->config->n_layer);
        *factors = memcpy(w->rope_factors + (size_t)i * half, *factors, n * sizeof(float));
        for (uint32_t j = 0; j < n; j++)
            if (!((*factors)[j] >= TERN_MIN_ROPE_FACTOR && (*factors)[j] <= FLT_MAX)) /* rejects
                                                                                       * NaN, too */
                return tn_fail(err, TERN_MAPPED_IO, "the file changed while it was opened");
    }
    return TERN_OK;
}

static bool same_rope(const struct tn_layer *a, const struct tn_layer *b)
{
    const float *f = a->vectors[TERN_ROLE_ROPE_FACTORS], *g = b->vectors[TERN_ROLE_ROPE_FACTORS];
    return a->spec->rope_theta == b->spec->rope_theta &&
           a->spec->rope_dims == b->spec->rope_dims &&
           a->spec->rope_scale == b->spec->rope_scale && !f == !g &&
           (!f || memcmp(f, g, a->spec->rope_dims / 2 * sizeof *f) == 0);
}

static void number_ropes(struct tn_weights *w)
{
    for (uint32_t i = 0; i < tn_n_all_layers(w->config); i++) {
        struct tn_layer *layer = &w->layers[i];
        uint32_t k = 0;
        if (layer->spec->rope_dims == 0 || layer->spec->rope == TERN_ROPE_NONE)
            continue;
        while (k < w->n_ropes && !same_rope(layer, w->ropes[k]))
            k++;
        if (k == w->n_ropes)
            w->ropes[w->n_ropes++] = layer;
        layer->i_rope = k;
    }
}

/* ---- memory for inputs ---- */

/* is_copied: f32 inputs cannot be used in place, because a norm or padding changes them. */
static void widen(struct tn_input_widths *widths, enum tn_act act, uint32_t cols, bool is_copied)
{
    if (act != TN_ACT_F32 || is_copied)
        widths->of[act] = TN_MAX(widths->of[act], cols);
    if (act == TN_ACT_PREP)
        widen(widths, TN_ACT_I8, cols, is_copied);
    if (act == TN_ACT_X16 || act == TN_ACT_X8)
        widen(widths, TN_ACT_F32, cols, is_copied);
}

/* widths [TN_N_INPUTS_AS]: of the input that the matrix shares with others. */
static void widen_for(struct tn_weights *w, struct tn_input_widths *widths,
                      const struct tn_matrix *m, bool is_copied)
{
    for (uint32_t i = 0; i < TN_N_INPUTS_AS && m->format; i++) {
        const enum tn_inputs_as inputs = (enum tn_inputs_as)i;
        const struct tn_format *format = m == &w->head ? tn_format_of_head(m->format, inputs)
                                                       : tn_format_with(m->format, inputs);
        widen(&widths[i], format->act, m->cols, is_copied);
        if (m->rotation) /* every precision is made from the rotated input */
            widen(&widths[i], TN_ACT_F32, m->cols, true);
        if (format->mul_rows)
            widen(&widths[i], TN_ACT_PREP, m->cols, is_copied);
        if (format->lut_bytes)
            w->lut_bytes = TN_MAX(w->lut_bytes, format->lut_bytes(m->cols));
        if (format->row_bytes)
            w->row_bytes = TN_MAX(w->row_bytes, format->row_bytes(m->cols));
    }
    if (m->format && m->format->mul_rows)
        w->n_listed = TN_MAX(w->n_listed, (size_t)m->rows);
    if (m->format && m->format->mul_cols) {
        w->n_listed = TN_MAX(w->n_listed, (size_t)m->cols);
        w->col_sum_rows = TN_MAX(w->col_sum_rows, tn_align_up(m->rows, TERN_C2_ROW_ALIGN));
    }
}

/* Whether a norm may change the input of a matrix.  The last matrix of a mixer or a feed-forward
 * takes the results of the others, which only a separate norm changes. */
static bool is_normed(const struct tn_layer *layer, uint32_t place)
{
    const float *const *v = layer->vectors;
    switch (place) {
    case TN_MATRIX_O:
        return v[TERN_ROLE_ATTN_SUB_NORM] || v[TERN_ROLE_O_IN_NORM];
    case TN_MATRIX_DOWN:
        return v[TERN_ROLE_FFN_SUB_NORM] || v[TERN_ROLE_DOWN_IN_NORM];
    case TN_MATRIX_DELTA_OUT:
    case TN_MATRIX_EXPERT_DOWN:
    case TN_MATRIX_SHARED_DOWN:
        return false;
    default:
        return true;
    }
}

/* Experts gather their inputs, and the inputs of their down matrices have separate memory. */
static void widen_for_place(struct tn_weights *w, const struct tn_layer *layer, uint32_t place)
{
    const struct tn_matrix *m = &layer->matrices[place];
    const bool is_copied = is_normed(layer, place) || m->cols % TN_X_PAD != 0;
    widen_for(w, place == TN_MATRIX_EXPERT_DOWN   ? w->down_widths
                 : place == TN_MATRIX_SHARED_DOWN ? w->shared_widths
                                                  : w->widths,
              m, is_copied);
    if (place == TN_MATRIX_EXPERT_GATE || place == TN_MATRIX_EXPERT_UP)
        widen_for(w, w->expert_widths, m, true);
}

static void measure_inputs(struct tn_weights *w)
{
    for (uint32_t i = 0; i < tn_n_all_layers(w->config); i++)
        for (uint32_t k = 0; k < TN_N_MATRICES; k++)
            widen_for_place(w, &w->layers[i], k);
    widen_for(w, w->widths, &w->embed_in, true);
    widen_for(w, w->widths, &w->embed_out, true);
    widen_for(w, w->widths, &w->head, w->head_in_norm || w->head.cols % TN_X_PAD != 0);
    if (w->embed.format->row_bytes)
        w->row_bytes = TN_MAX(w->row_bytes, w->embed.format->row_bytes(w->embed.cols));
}

static const struct tn_rotation *find_rotation(const struct tn_weights *w, uint32_t cols)
{
    const struct tn_rotation *r = w->rotations;
    while (r->cols != cols) /* the file was checked: one exists */
        r++;
    return r;
}

static void bind_rotation(struct tn_weights *w, struct tn_matrix *m)
{
    if (m->format && m->tensor->flags & TERN_TENSOR_ROTATED)
        m->rotation = find_rotation(w, m->cols);
}

static tern_status bind_rotations(struct tn_weights *w, const struct tn_model_file *file,
                                  struct tern_error *err)
{
    tern_status status = tn_rotations_make(&w->rotations, &w->rotation_signs, &file->spec, err);
    if (status != TERN_OK || !w->rotations)
        return status;
    bind_rotation(w, &w->embed);
    bind_rotation(w, &w->head);
    bind_rotation(w, &w->embed_in);
    bind_rotation(w, &w->embed_out);
    if (w->head.rotation && w->head_in_norm)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "a rotated head with a norm of its input is not supported");
    for (uint32_t i = 0; i < tn_n_all_layers(w->config); i++)
        for (uint32_t k = 0; k < TN_N_MATRICES; k++)
            bind_rotation(w, &w->layers[i].matrices[k]);
    return TERN_OK;
}

static tern_status bind_tensors(struct tn_weights *out, const struct tn_model_file *file,
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

static void bind_spec(struct tn_weights *out, uint32_t i_layer, const struct tern_file_layer *spec)
{
    struct tn_layer *layer = &out->layers[i_layer];
    if (spec->is_draft) { /* its cache is small: a guess may ignore what was long ago */
        out->draft_spec = *spec;
        out->draft_spec.window = TN_DRAFT_WINDOW;
        spec = &out->draft_spec;
    }
    layer->spec = spec;
    layer->dims = tn_layer_dims(out->config, spec);
    layer->mixer = tn_mixers[spec->mixer];
    layer->ffn = tn_ffns[spec->ffn];
    layer->begin = UINT64_MAX;
    out->mixers |= 1u << spec->mixer;
    out->ffns |= 1u << spec->ffn;
    out->rope_half = TN_MAX(out->rope_half, spec->rope_dims / 2);
}

tern_status tn_weights_bind(struct tn_weights *out, const struct tn_model_file *file,
                            struct tern_error *err)
{
    const struct tern_file_config *c = file->spec.config;
    *out = (struct tn_weights){.config = c};
    const uint32_t n_layer = tn_n_all_layers(c);
    out->layers = tn_alloc_zeroed(n_layer, sizeof *out->layers);
    out->ropes = tn_alloc_zeroed(n_layer, sizeof *out->ropes);
    if (!out->layers || !out->ropes)
        return tn_fail(err, TERN_MEMORY, "no memory for the views of %u layers", n_layer);
    for (uint32_t i = 0; i < n_layer; i++)
        bind_spec(out, i, &file->spec.layers[i]);
    tern_status status = bind_tensors(out, file, err);
    if (status != TERN_OK)
        return status;
    status = copy_rope_factors(out, err);
    if (status == TERN_OK)
        status = bind_rotations(out, file, err);
    if (status != TERN_OK)
        return status;
    number_ropes(out);
    measure_inputs(out);
    return tn_ok(err);
}

void tn_weights_fini(struct tn_weights *weights)
{
    tn_free(weights->layers);
    tn_free(weights->ropes);
    tn_free(weights->rope_factors);
    tn_free(weights->rotations);
    tn_free(weights->rotation_signs);
    *weights = (struct tn_weights){0};
}

/* SPDX-License-Identifier: MIT
 *
 * The writer of slot_model.h: declares the tensors that the slots require, then writes their bytes.
 */
#include "slot_model.h"

#include <stdbool.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/compiler.h"
#include "file/model_file_writer.h"

static struct tern_file_tensor tensor_of(const struct slot_model *m, const struct tn_slot *slot,
                                         uint32_t layer)
{
    const struct tn_model_spec spec = {.config = &m->config, .layers = m->layers};
    struct tern_file_tensor t = {.role = slot->role, .layer = layer};
    t.layout = tn_slot_is_vector(slot) ? TERN_LAYOUT_F32 : m->layout;
    while (!(tn_layout_find(t.layout)->scale_kinds >> t.scale_kind & 1) ||
           t.scale_kind == TERN_SCALE_TENSOR)
        t.scale_kind++;
    t.scale_group = tn_is_col_group(t.scale_kind) ? 64 : 0;
    tn_slot_shape(&t.rows, &t.cols, slot, &spec, layer == TERN_NO_LAYER ? 0 : layer);
    t.n_stacked = tn_slot_n_stacked(slot, &m->config);
    t.bytes = tn_layout_size(t.layout, t.rows, t.cols) * TN_MAX(t.n_stacked, 1u);
    t.scale_bytes = tn_tensor_scale_bytes(&t);
    return t;
}

static bool is_written(const struct tn_slot *slot, const struct slot_model *m)
{
    return tn_slot_is_required(slot, &m->config) ||
           (m->optional >> slot->role & 1 && tn_slot_is_allowed(slot, &m->config));
}

/* Calls do_tensor for each required tensor in file order, with its number. */
static tern_status each_tensor(struct tn_mwriter *w, const struct slot_model *m,
                               tern_status (*do_tensor)(struct tn_mwriter *w,
                                                        const struct slot_model *m,
                                                        const struct tern_file_tensor *t,
                                                        uint32_t number, struct tern_error *err),
                               struct tern_error *err)
{
    tern_status status = TERN_OK;
    uint32_t number = 0;
    for (uint32_t layer = 0; layer <= m->config.n_layer; layer++)
        for (uint32_t i = 0; i < tn_n_slots && status == TERN_OK; i++) {
            const struct tn_slot *slot = &tn_slots[i];
            const bool is_last = layer == m->config.n_layer;
            if (!is_written(slot, m) ||
                (is_last ? slot->scope != TN_SCOPE_MODEL
                         : !tn_slot_is_in(slot, &m->layers[layer])))
                continue;
            const struct tern_file_tensor t = tensor_of(m, slot, is_last ? TERN_NO_LAYER : layer);
            status = do_tensor(w, m, &t, number++, err);
        }
    return status;
}

static tern_status declare(struct tn_mwriter *w, const struct slot_model *m,
                           const struct tern_file_tensor *t, uint32_t number,
                           struct tern_error *err)
{
    (void)m;
    return tn_mwriter_declare(w, t, &number, err);
}

static tern_status append(struct tn_mwriter *w, const struct slot_model *m,
                          const struct tern_file_tensor *t, uint32_t number,
                          struct tern_error *err)
{
    uint8_t *data = tn_alloc_zeroed((size_t)t->bytes, 1);
    uint8_t *scales = tn_alloc_zeroed((size_t)t->scale_bytes + 1, 1);
    tern_status status = data && scales ? TERN_OK : TERN_MEMORY;
    if (status == TERN_OK) {
        m->fill(m->arg, data, scales, t);
        status = tn_mwriter_append(w, number, data, (size_t)t->bytes, err);
    }
    if (status == TERN_OK && t->scale_bytes > 0)
        status = tn_mwriter_append_scales(w, number, scales, (size_t)t->scale_bytes, err);
    tn_free(data);
    tn_free(scales);
    return status;
}

tern_status slot_model_write(const char *path, const struct slot_model *m, struct tern_error *err)
{
    static const uint32_t stop_ids[] = {0};
    const struct tn_mwriter_meta meta = {
        .config = m->config, .layers = m->layers, .stop_ids = stop_ids, .n_stop_ids = 1,
        .family = "test", .name = "slots", .converter = "test"};
    struct tn_mwriter *w;
    tern_status status = tn_mwriter_create(&w, path, err);
    if (status != TERN_OK)
        return status;
    status = each_tensor(w, m, declare, err);
    if (status == TERN_OK)
        status = tn_mwriter_begin(w, &meta, NULL, 0, err);
    if (status == TERN_OK)
        status = each_tensor(w, m, append, err);
    if (status == TERN_OK)
        status = tn_mwriter_seal(w, err);
    if (status == TERN_OK)
        return tn_mwriter_commit(w, err);
    tn_mwriter_abort(w);
    return status;
}

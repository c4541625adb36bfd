/* SPDX-License-Identifier: MIT
 *
 * Opens a model: maps the file, binds its weights, opens tokenizer and chat template.
 *
 * A model is read-only after opening; any number of engines may share it.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/session.h"
#include "plat/plat.h"
#include "text/chat.h"
#include "text/tokenizer.h"

static char *copy_ref(const struct tn_model_file *file, struct tern_file_ref ref)
{
    size_t n;
    const char *text = tn_model_file_text(file, ref, &n);
    return tn_copy_bytes(text, n);
}

static tern_status open_tokenizer(struct tern_model *m, struct tern_error *err)
{
    uint32_t vocab = m->file.spec.config->vocab;
    m->n_allowed = vocab;
    if (!m->file.tokenizer)
        return tn_ok(err);
    tern_status status = tn_tokenizer_open(&m->tokenizer, m->file.tokenizer,
                                           m->file.tokenizer_bytes, vocab, err);
    if (status != TERN_OK)
        return status;
    m->n_allowed = TN_MIN(vocab, tern_tokenizer_n_tokens(m->tokenizer));
    for (uint32_t id = 0; id < m->n_allowed; id++)
        m->is_control[id] = tern_tokenizer_is_special(m->tokenizer, id);
    return tn_ok(err);
}

/* A template that cannot be parsed does not prevent use of the model without it. */
static tern_status open_template(struct tern_model *m, struct tern_error *err)
{
    size_t n;
    const char *source = tn_model_file_text(&m->file, m->file.spec.config->template_source, &n);
    if (n == 0)
        return tn_ok(err);
    tern_status status =
        tern_chat_template_parse(&m->chat_template, source, n, &m->template_error);
    if (status == TERN_MEMORY)
        return tn_fail(err, TERN_MEMORY, "%s", m->template_error.detail);
    return tn_ok(err);
}

/* A copy of a token's text as a C string; "" for no token, or one that contains a NUL; NULL: out of
 * memory. */
static char *token_text(const struct tern_model *m, uint32_t id)
{
    size_t n = 0;
    const char *bytes =
        m->tokenizer && id != TERN_NO_ID ? tern_tokenizer_token_bytes(m->tokenizer, id, &n) : NULL;
    return bytes && !memchr(bytes, '\0', n) ? tn_copy_bytes(bytes, n) : tn_copy_text("");
}

static tern_status open_template_tokens(struct tern_model *m, struct tern_error *err)
{
    const struct tn_model_spec *spec = &m->file.spec;
    m->bos_text = token_text(m, spec->config->bos_id);
    m->eos_text = token_text(m, spec->n_stop_ids ? spec->stop_ids[0] : TERN_NO_ID);
    return m->bos_text && m->eos_text ? tn_ok(err)
                                      : tn_fail(err, TERN_MEMORY, "no memory to open a model");
}

/* The default precision of activations for the layout of most layer weights. */
static const char *default_inputs(const struct tn_model_file *file)
{
    static const char *const texts[TN_N_ACTS] = {
        [TN_ACT_F32] = "f32", [TN_ACT_X16] = "16", [TN_ACT_X8] = "8", [TN_ACT_I8] = "int8"};
    uint64_t n_weights[TN_N_ACTS] = {0};
    enum tn_act main = TN_ACT_F32;
    if (file->spec.config->inputs != TERN_INPUTS_FLOAT)
        return texts[TN_ACT_I8];
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        const struct tern_file_tensor *t = &file->tensors[i];
        if (t->layer == TERN_NO_LAYER || tn_slot_is_vector(tn_slot_of(t->role)))
            continue;
        const enum tn_act act = tn_format_find(t->layout, t->scale_kind)->act;
        n_weights[act] += tn_tensor_weights(t);
        main = n_weights[act] > n_weights[main] ? act : main;
    }
    return texts[main];
}

static void publish_config(struct tern_model *m)
{
    const struct tern_file_config *c = m->file.spec.config;
    m->public_config = (struct tern_model_config){
        .n_layer = c->n_layer,
        .hidden = c->hidden,
        .ffn = c->ffn,
        .n_head = c->n_head,
        .n_kv_head = c->n_kv_head,
        .head_dim = c->head_dim,
        .vocab = c->vocab,
        .context = c->context,
        .n_params = c->n_params,
        .bos_id = c->bos_id,
        .stop_ids = m->stop_ids,
        .has_head = !(c->flags & TERN_MODEL_NO_HEAD),
        .is_tied = c->flags & TERN_MODEL_TIED_HEAD,
        .rounds_inputs = c->inputs != TERN_INPUTS_FLOAT,
        .inputs = default_inputs(&m->file),
        .pooling = (enum tern_pooling)c->pooling,
        .kv = c->cache == TERN_FILE_CACHE_F16 ? TERN_KV_F16 : TERN_KV_Q8,
    };
}

/* Templates end turns with tokens of tn_chat_ends only, for which there is room. */
static void add_stop_id(void *model, uint32_t id)
{
    struct tern_model *m = model;
    if (tern_model_is_stop_id(m, id))
        return;
    m->stop_ids[m->public_config.n_stop_ids++] = id;
    m->is_control[id] = 1;
}

static tern_status open_parts(struct tern_model *m, const char *path, struct tern_error *err)
{
    tern_status status = tn_model_file_open(&m->file, path, err);
    if (status != TERN_OK)
        return status;
    const struct tern_file_config *c = m->file.spec.config;
    m->name = copy_ref(&m->file, c->name);
    m->family = copy_ref(&m->file, c->family);
    m->path = tn_copy_text(path);
    m->is_control = tn_alloc_zeroed(c->vocab, 1);
    m->stop_ids =
        tn_alloc(((size_t)m->file.spec.n_stop_ids + TN_CHAT_N_ENDS) * sizeof *m->stop_ids);
    if (!m->name || !m->family || !m->path || !m->is_control || !m->stop_ids)
        return tn_fail(err, TERN_MEMORY, "no memory to open \"%s\"", path);
    status = tn_weights_bind(&m->weights, &m->file, err);
    if (status != TERN_OK)
        return status;
    publish_config(m);
    for (uint32_t i = 0; i < m->file.spec.n_stop_ids; i++)
        add_stop_id(m, m->file.spec.stop_ids[i]);
    status = open_template(m, err);
    if (status == TERN_OK)
        status = open_tokenizer(m, err);
    return status == TERN_OK ? open_template_tokens(m, err) : status;
}

tern_status tern_model_open(struct tern_model **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    const uint64_t taken = tn_alloc_taken();
    struct tern_model *m = tn_alloc_zeroed(1, sizeof *m);
    if (!m)
        return tn_fail(err, TERN_MEMORY, "no memory to open \"%s\"", path);
    tern_status status = open_parts(m, path, err);
    m->heap_bytes = tn_alloc_taken() - taken;
    if (status != TERN_OK)
        tern_model_free(m);
    else
        *out = m;
    return status;
}

/* Views need distinct addresses, which are never read. */
static tern_status bind_outline(struct tern_model *m, uint64_t data_bytes, struct tern_error *err)
{
    m->addresses = data_bytes <= SIZE_MAX ? tn_pages_reserve((size_t)data_bytes) : NULL;
    if (!m->addresses)
        return tn_fail(err, TERN_MEMORY, "no address space for a model of %.1f MiB",
                       (double)data_bytes / 0x1p20);
    m->file.map = (struct tn_map){.data = m->addresses, .n_bytes = (size_t)data_bytes};
    tern_status status = tn_weights_bind(&m->weights, &m->file, err);
    if (status == TERN_OK)
        publish_config(m);
    return status;
}

tern_status tn_model_outline(struct tern_model **out, const struct tn_model_spec *spec,
                             const struct tern_file_tensor *tensors, uint32_t n_tensors,
                             uint64_t data_bytes, struct tern_error *err)
{
    *out = NULL;
    const uint64_t taken = tn_alloc_taken();
    struct tern_model *m = tn_alloc_zeroed(1, sizeof *m);
    if (!m)
        return tn_fail(err, TERN_MEMORY, "no memory for the outline of a model");
    m->file = (struct tn_model_file){.spec = *spec, .tensors = tensors, .n_tensors = n_tensors};
    tern_status status = bind_outline(m, data_bytes, err);
    m->heap_bytes = tn_alloc_taken() - taken;
    if (status != TERN_OK)
        tern_model_free(m);
    else
        *out = m;
    return status;
}

void tern_model_free(struct tern_model *m)
{
    if (!m)
        return;
    if (m->addresses)
        tn_pages_release(m->addresses, m->file.map.n_bytes);
    tn_tokenizer_close(m->tokenizer);
    tn_weights_fini(&m->weights);
    tn_model_file_close(&m->file);
    tern_chat_template_free(m->chat_template);
    tn_free(m->is_control);
    tn_free(m->stop_ids);
    tn_free(m->bos_text);
    tn_free(m->eos_text);
    tn_free(m->name);
    tn_free(m->family);
    tn_free(m->path);
    tn_free(m);
}

const struct tern_model_config *tern_model_config(const struct tern_model *m)
{
    return &m->public_config;
}

uint64_t tern_model_hash(const struct tern_model *model)
{
    return model->file.header->head_hash;
}

const char *tern_model_path(const struct tern_model *m)
{
    return m->path;
}

const struct tern_tokenizer *tern_model_tokenizer(const struct tern_model *m)
{
    return m->tokenizer;
}

tern_status tern_model_chat_template(const struct tern_chat_template **out,
                                     const struct tern_model *m, struct tern_error *err)
{
    *out = m->chat_template;
    return m->template_error.status == TERN_OK
               ? tn_ok(err)
               : tn_fail(err, m->template_error.status, "%s", m->template_error.detail);
}

void tern_model_chat_params(const struct tern_model *m, const struct tern_chat_template *t,
                            struct tern_chat_params *out)
{
    *out = (struct tern_chat_params){.add_generation_prompt = true};
    if (tern_chat_template_find(tern_chat_template_name(t)))
        return;
    out->bos = m->bos_text;
    out->eos = m->eos_text;
}

uint64_t tern_model_bytes(const struct tern_model *m)
{
    return m->heap_bytes;
}

bool tern_model_is_stop_id(const struct tern_model *m, uint32_t id)
{
    for (uint32_t i = 0; i < m->public_config.n_stop_ids; i++)
        if (m->stop_ids[i] == id)
            return true;
    return false;
}

void tern_model_end_turns(struct tern_model *m, const struct tern_chat_template *t)
{
    if (m->tokenizer)
        tn_chat_visit_template_ends(t, m->tokenizer, add_stop_id, m);
}

tern_status tern_model_check_unchanged(const struct tern_model *m, struct tern_error *err)
{
    if (tn_map_is_unchanged(&m->file.map))
        return TERN_OK;
    return tn_fail(err, TERN_MAPPED_IO, "\"%.300s\" was written to while in use; start again",
                   m->path);
}

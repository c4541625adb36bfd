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
#include "model/mixer.h"
#include "model/state.h"
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

/* With the whole context, and a batch as sessions have it. */
static struct tn_state_input state_input(const struct tern_model *m, enum tn_kv_type kv)
{
    const uint32_t n_ctx = m->weights.config->context;
    return (struct tn_state_input){kv, n_ctx, TN_MIN(TN_DEFAULT_BATCH, n_ctx)};
}

bool tern_model_has_state(const struct tern_model *m)
{
    const struct tn_state_input input = state_input(m, TN_KV_Q8);
    struct tn_state_plan plan;
    tn_state_plan_make(&plan, NULL, &m->weights, &input);
    return tn_has_state(&plan);
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

/* ---- prefetch ---- */

#define PREFETCH_BYTES ((size_t)8 << 20)

/* Reads one byte of every page; the sum keeps the reads from being optimised away. */
static uint32_t touch_pages(const unsigned char *p, size_t n, size_t page_bytes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += page_bytes)
        sum += ((const volatile unsigned char *)p)[i];
    return sum;
}

tern_status tern_model_prefetch(const struct tern_model *m,
                                bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                                void *arg, struct tern_error *err)
{
    const struct tn_map *map = &m->file.map;
    size_t page_bytes = tn_page_bytes();
    tn_map_advise(map, 0, TN_MIN(PREFETCH_BYTES, map->n_bytes), TN_ADVICE_WILLNEED);
    for (size_t at = 0; at < map->n_bytes; at += PREFETCH_BYTES) {
        size_t n = TN_MIN(PREFETCH_BYTES, map->n_bytes - at);
        /* Request the next stretch from the disk while this one is touched. */
        if (at + n < map->n_bytes)
            tn_map_advise(map, at + n, TN_MIN(PREFETCH_BYTES, map->n_bytes - at - n),
                          TN_ADVICE_WILLNEED);
        (void)touch_pages(map->data + at, n, page_bytes);
        if (on_progress && !on_progress(arg, at + n, map->n_bytes))
            return tn_fail(err, TERN_INTERRUPTED, "interrupted while reading \"%s\"", m->path);
    }
    return tn_ok(err);
}

/* ---- experts on disk ---- */

void tern_model_page_experts(struct tern_model *m)
{
    struct tn_map *map = &m->file.map;
    if (m->file.spec.config->n_experts == 0)
        return;
    m->pages_experts = true;
    tn_map_read_sparsely(map);
    for (uint32_t i = 0; i < m->file.n_tensors; i++) {
        const struct tern_file_tensor *t = &m->file.tensors[i];
        if (t->n_stacked == 0)
            tn_map_advise(map, (size_t)t->offset, (size_t)t->bytes, TN_ADVICE_WILLNEED);
        if (t->scale_bytes > 0)
            tn_map_advise(map, (size_t)t->scale_offset, (size_t)t->scale_bytes,
                          TN_ADVICE_WILLNEED);
    }
}

/* ---- description ---- */

static uint64_t table_bytes(const struct tn_model_file *file, enum tern_role role)
{
    const struct tern_file_tensor *t = tn_model_file_tensor(file, role, TERN_NO_LAYER);
    return t ? t->bytes + t->scale_bytes : 0;
}

static const char *shown_layout(uint32_t layout)
{
    const struct tn_layout_spec *spec = tn_layout_find(layout);
    return spec ? spec->shown : "none";
}

/* The layout of most layer weights. */
static uint32_t main_layout(const struct tn_model_file *file)
{
    uint64_t n_weights[TERN_N_LAYOUTS] = {0};
    uint32_t main = 0;
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        const struct tern_file_tensor *t = &file->tensors[i];
        if (t->layer == TERN_NO_LAYER)
            continue;
        n_weights[t->layout] += tn_tensor_weights(t);
        if (n_weights[t->layout] > n_weights[main])
            main = t->layout;
    }
    return main;
}

/* How much of a tensor's bytes one token reads; for experts the expected share of those chosen. */
static uint64_t share_read(const struct tern_file_config *c, const struct tern_file_tensor *t,
                           uint64_t n_bytes)
{
    return t->n_stacked ? n_bytes / c->n_experts * c->n_experts_used : n_bytes;
}

void tern_model_get_info(const struct tern_model *m, struct tern_model_info *out)
{
    const struct tern_file_config *c = m->file.spec.config;
    const bool tied = c->flags & TERN_MODEL_TIED_HEAD;
    *out = (struct tern_model_info){
        .name = m->name,
        .architecture = m->family,
        .layout = shown_layout(main_layout(&m->file)),
        .head = shown_layout(m->weights.head.layout),
        .template_name = m->chat_template ? tern_chat_template_name(m->chat_template) : NULL,
        .has_template = c->template_source.bytes > 0,
        .file_bytes = m->file.map.n_bytes,
        .head_bytes = table_bytes(&m->file, tied ? TERN_ROLE_EMBED : TERN_ROLE_HEAD),
        .n_experts = c->n_experts,
        .n_experts_used = c->n_experts_used,
        .rotation_block = c->rotation_block,
    };
    for (uint32_t i = 0; i < m->file.n_tensors; i++) {
        const struct tern_file_tensor *t = &m->file.tensors[i];
        out->n_rotated += (t->flags & TERN_TENSOR_ROTATED) != 0;
        const bool is_draft = t->layer == c->n_layer; /* tokens are decoded without it */
        out->draft_bytes += is_draft ? t->bytes + t->scale_bytes : 0;
        if (!is_draft && (t->role != TERN_ROLE_EMBED || tied)) /* of other embeddings one row */
            out->bytes_per_token += share_read(c, t, t->bytes + t->scale_bytes);
        if (t->n_stacked)
            out->expert_bytes += t->bytes + t->scale_bytes;
        if (!tn_layout_is_ternary(t->layout))
            continue;
        out->ternary_bytes += t->bytes;
        out->n_ternary += tn_tensor_weights(t);
        out->n_zero += t->n_zero;
    }
    for (uint32_t kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        const struct tn_state_input input = state_input(m, (enum tn_kv_type)kv);
        struct tn_state_plan plan;
        tn_state_plan_make(&plan, NULL, &m->weights, &input);
        out->kv_bytes_per_token[kv] = tn_kv_bytes_per_token(&m->weights, &input);
        out->state_bytes[kv] = plan.bytes.sequence;
    }
}

uint32_t tern_model_n_tensors(const struct tern_model *m)
{
    return m->file.n_tensors;
}

void tern_model_get_tensor(const struct tern_model *m, uint32_t i, struct tern_tensor_info *out)
{
    const struct tern_file_tensor *t = &m->file.tensors[i];
    *out = (struct tern_tensor_info){
        .layout = tn_layout_name(t->layout),
        .rows = t->rows,
        .cols = t->cols,
        .n_bytes = t->bytes + t->scale_bytes,
        .n_zero = t->n_zero,
        .n_stacked = t->n_stacked,
    };
    tn_tensor_name(out->name, sizeof out->name, t);
}

/* SPDX-License-Identifier: MIT
 *
 * An open model: the mapped file, its weights, its tokenizer and its template.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/kvcache.h"
#include "run/engine.h"
#include "text/tokenizer.h"

static char *copy_text(const char *text, size_t n)
{
    char *copy = tn_alloc(n + 1);
    if (copy) {
        if (n)
            memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

static tern_status open_tokenizer(struct tern_model *m, struct tern_error *err)
{
    uint32_t vocab = m->file.config->vocab;
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

static void find_template(struct tern_model *m)
{
    size_t n;
    const char *text = tn_mfile_text(&m->file, m->file.config->template_name, &n);
    const struct tern_chat_template *t = NULL;
    while ((t = tern_chat_template_next(t)) != NULL) {
        const char *name = tern_chat_template_name(t);
        if (strlen(name) == n && memcmp(name, text, n) == 0)
            m->chat_template = t;
    }
}

static tern_status open_parts(struct tern_model *m, const char *path, struct tern_error *err)
{
    tern_status status = tn_mfile_open(&m->file, path, err);
    if (status != TERN_OK)
        return status;
    m->config = *m->file.config;
    m->file.config = &m->config;
    status = tn_weights_bind(&m->weights, &m->file, err);
    if (status != TERN_OK)
        return status;
    size_t n_name;
    const char *name = tn_mfile_text(&m->file, m->file.config->name, &n_name);
    m->name = copy_text(name, n_name);
    m->path = copy_text(path, strlen(path));
    m->is_control = tn_alloc_zeroed(m->file.config->vocab, 1);
    if (!m->name || !m->path || !m->is_control)
        return tn_fail(err, TERN_MEMORY, "no memory to open \"%s\"", path);
    for (uint32_t i = 0; i < m->file.config->n_stop_ids; i++)
        m->is_control[m->file.config->stop_ids[i]] = 1;
    find_template(m);
    return open_tokenizer(m, err);
}

tern_status tern_model_open(struct tern_model **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    struct tern_model *m = tn_alloc_zeroed(1, sizeof *m);
    if (!m)
        return tn_fail(err, TERN_MEMORY, "no memory to open \"%s\"", path);
    tern_status status = open_parts(m, path, err);
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
    tn_tokenizer_close(m->tokenizer);
    tn_weights_fini(&m->weights);
    tn_mfile_close(&m->file);
    tn_free(m->is_control);
    tn_free(m->name);
    tn_free(m->path);
    tn_free(m);
}

const struct tern_file_config *tern_model_config(const struct tern_model *m)
{
    return m->file.config;
}

const char *tern_model_path(const struct tern_model *m)
{
    return m->path;
}

const struct tern_tokenizer *tern_model_tokenizer(const struct tern_model *m)
{
    return m->tokenizer;
}

const struct tern_chat_template *tern_model_chat_template(const struct tern_model *m)
{
    return m->chat_template;
}

bool tern_model_is_stop_id(const struct tern_model *m, uint32_t id)
{
    for (uint32_t i = 0; i < m->file.config->n_stop_ids; i++)
        if (m->file.config->stop_ids[i] == id)
            return true;
    return false;
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

/* One byte of every page; the sum is returned so that the reads are not optimised away. */
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
        /* The disk works on the next stretch while this one is touched. */
        if (at + n < map->n_bytes)
            tn_map_advise(map, at + n, TN_MIN(PREFETCH_BYTES, map->n_bytes - at - n),
                          TN_ADVICE_WILLNEED);
        (void)touch_pages(map->data + at, n, page_bytes);
        if (on_progress && !on_progress(arg, at + n, map->n_bytes))
            return tn_fail(err, TERN_INTERRUPTED, "interrupted while reading \"%s\"", m->path);
    }
    return tn_ok(err);
}

/* ---- description ---- */

static bool is_ternary(uint32_t layout)
{
    return layout == TERN_LAYOUT_T2 || layout == TERN_LAYOUT_R2 || layout == TERN_LAYOUT_C2;
}

static uint64_t table_bytes(const struct tn_mfile *file, enum tern_role role)
{
    const struct tern_file_tensor *t = tn_mfile_tensor(file, role, TERN_NO_LAYER);
    return t ? t->bytes + t->scale_bytes : 0;
}

void tern_model_get_info(const struct tern_model *m, struct tern_model_info *out)
{
    const struct tern_file_config *c = m->file.config;
    bool tied = c->flags & TERN_MODEL_TIED_HEAD;
    *out = (struct tern_model_info){
        .name = m->name,
        .architecture = "bitnet",
        .layout = "t2",
        .head = m->weights.head.layout == TERN_LAYOUT_Q8_PLANES
                    ? "q8"
                    : tn_layout_name(m->weights.head.layout),
        .template_name = m->chat_template ? tern_chat_template_name(m->chat_template) : NULL,
        .has_template = c->template_source.bytes > 0,
        .file_bytes = m->file.map.n_bytes,
        .head_bytes = table_bytes(&m->file, tied ? TERN_ROLE_EMBED : TERN_ROLE_HEAD),
    };
    for (uint32_t i = 0; i < m->file.n_tensors; i++) {
        const struct tern_file_tensor *t = &m->file.tensors[i];
        if (t->role != TERN_ROLE_EMBED || tied)
            out->bytes_per_token += t->bytes + t->scale_bytes;
        if (!is_ternary(t->layout))
            continue;
        out->ternary_bytes += t->bytes;
        out->n_ternary += (uint64_t)t->rows * t->cols;
        out->n_zero += t->n_zero;
    }
    for (uint32_t kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++)
        out->kv_bytes_per_token[kv] = tn_kv_bytes_per_token(c, (enum tn_kv_type)kv);
}

uint32_t tern_model_n_tensors(const struct tern_model *m)
{
    return m->file.n_tensors;
}

const struct tern_file_tensor *tern_model_tensor(const struct tern_model *m, uint32_t i,
                                                 char name[48])
{
    const struct tern_file_tensor *t = &m->file.tensors[i];
    tn_tensor_name(name, 48, t);
    return t;
}

const char *tern_layout_text(uint32_t layout)
{
    const char *name = tn_layout_name(layout);
    return name ? name : "?";
}

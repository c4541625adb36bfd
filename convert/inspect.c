/* SPDX-License-Identifier: MIT
 *
 * tern_source_inspect: the first steps of a conversion, with the error that would end it recorded
 * as the reason.
 */
#include "tern/inspect.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_dump.h"
#include "base/json_load.h"
#include "base/utf8.h"
#include "convert/gguf/gguf.h"
#include "convert/hf/hf_config.h"
#include "convert/model_source.h"
#include "convert/outline.h"
#include "convert/survey.h"

#define MAX_SHOWN_TEXT 1000 /* bytes of a value; templates are longer */

struct key {
    char *name;
    char *json;
};

struct tern_source {
    struct tn_model_source model;
    const char *format;
    bool is_recognised, has_tokenizer;
    struct tern_source_sizes sizes; /* if the source is convertible */
    struct tern_error reason;
    struct key *keys;
    uint32_t n_keys;
};

/* ---- metadata ---- */

/* Cuts the text before a character that would be incomplete. */
static json_t *shown_text(const char *text, size_t n)
{
    const size_t n_shown = n > MAX_SHOWN_TEXT ? tn_utf8_cut(text, MAX_SHOWN_TEXT) : n;
    json_t *value = json_stringn(text, n_shown);
    return value ? value : json_null(); /* not UTF-8 */
}

static json_t *value_of(const struct tn_gguf_key *key)
{
    switch (key->type) {
    case TN_GGUF_STRING:
        return shown_text(key->text, (size_t)key->count);
    case TN_GGUF_BOOL:
        return json_boolean(key->value.u);
    case TN_GGUF_F32:
    case TN_GGUF_F64: {
        json_t *number = json_real(key->value.f);
        return number ? number : json_null(); /* infinite or NaN */
    }
    case TN_GGUF_I8:
    case TN_GGUF_I16:
    case TN_GGUF_I32:
    case TN_GGUF_I64:
        return json_integer(key->value.i);
    case TN_GGUF_ARRAY:
        return json_pack("{s:s, s:I}", "array", tn_gguf_value_text(key->element_type), "count",
                         (json_int_t)key->count);
    default:
        return key->value.u > INT64_MAX ? json_real((double)key->value.u)
                                        : json_integer((json_int_t)key->value.u);
    }
}

/* Takes ownership of the value. */
static bool add_key(struct tern_source *s, const char *name, json_t *value)
{
    struct key *key = &s->keys[s->n_keys];
    struct tn_buf text = {0};
    const bool is_good = value && tn_json_dump(&text, value);
    json_decref(value);
    key->name = tn_copy_text(name);
    key->json = is_good ? tn_copy_text(tn_buf_text(&text)) : NULL;
    tn_buf_fini(&text);
    s->n_keys++; /* tern_source_free also frees incomplete entries */
    return key->name && key->json;
}

static bool add_gguf_keys(struct tern_source *s)
{
    const struct tn_gguf_part *part = &s->model.source.gguf->parts[0];
    s->keys = tn_alloc_zeroed(TN_MAX(part->n_keys, 1u), sizeof *s->keys);
    bool ok = s->keys != NULL;
    for (uint32_t i = 0; i < part->n_keys && ok; i++)
        ok = add_key(s, part->keys[i].name, value_of(&part->keys[i]));
    return ok;
}

/* Adds the members of config.json; a missing or broken file adds none, and is the reason. */
static bool add_config_keys(struct tern_source *s, const char *dir)
{
    char *text;
    size_t n;
    json_t *root = NULL, *value;
    const char *name;
    tern_status status =
        tn_dir_read_text(&text, &n, dir, TN_CONFIG_FILE, TN_MAX_CONFIG_BYTES, NULL);
    if (status != TERN_OK || !text)
        return status != TERN_MEMORY;
    /* published files contain integers beyond 64 bits, and NaN */
    status = tn_json_load(&root, TN_CONFIG_FILE, text, n,
                          TN_JSON_LARGE_AS_REAL | TN_JSON_NOT_FINITE_AS_TEXT, NULL);
    tn_free(text);
    if (status != TERN_OK)
        return status != TERN_MEMORY;
    s->keys = tn_alloc_zeroed(json_object_size(root) + 1, sizeof *s->keys);
    bool ok = s->keys != NULL;
    if (ok)
        json_object_foreach(root, name, value) ok = ok && add_key(s, name, json_incref(value));
    json_decref(root);
    return ok;
}

/* ---- whether it would convert ---- */

/* Surveys the scales of one layer: enough to see whether floats are ternary. */
static tern_status survey_layer(struct tern_source *s, struct tn_tensor_plan *plan,
                                const struct tern_convert_params *params, struct tern_error *err)
{
    struct tn_streamer stream = {.source = &s->model.source, .params = params};
    struct tn_tensor_plan first = *plan;
    first.n_tensors = 0;
    first.twin = NULL;
    while (first.n_tensors < plan->n_tensors && plan->tensors[first.n_tensors].file.layer == 0)
        first.n_tensors++;
    tern_status status = tn_survey(&stream, &first, err);
    tn_stream_drop_buffers(&stream);
    return status;
}

static tern_status try_tokenizer(struct tern_source *s, const char *path, struct tern_error *err)
{
    struct tn_buf section = {0};
    const char *splitter;
    tern_status status =
        tn_model_source_tokenizer(&section, &splitter, &s->model, path, NULL, err);
    tn_buf_fini(&section);
    return status;
}

static tern_status try_template(const struct tern_source *s, const char *path,
                                struct tern_error *err)
{
    char *text = NULL;
    size_t n;
    const char *from;
    tern_status status = tn_model_source_template(&text, &n, &from, &s->model, path, err);
    tn_free(text);
    return status;
}

static tern_status try_conversion(struct tern_source *s, const char *path, struct tern_error *err)
{
    struct tn_tensor_plan plan;
    tern_status status = tn_model_source_import(&s->model, path, err);
    if (status != TERN_OK)
        return status;
    s->is_recognised = true;
    status = tn_tensor_plan_make(&plan, &s->model.import, &s->model.source, err);
    if (status != TERN_OK)
        return status;
    const struct tern_convert_params params = {.head = TERN_HEAD_AUTO};
    status = survey_layer(s, &plan, &params, err);
    if (status == TERN_OK)
        status = tn_outline_sizes(&s->sizes, &plan, &s->model.import, err);
    tn_tensor_plan_fini(&plan);
    s->has_tokenizer = tn_model_source_has_tokenizer(&s->model, path);
    if (status != TERN_OK || !s->has_tokenizer) /* converts only with --no-tokenizer */
        return status;
    status = try_tokenizer(s, path, err);
    return status == TERN_OK ? try_template(s, path, err) : status;
}

/* ---- files ---- */

static bool begins_like_a_source(const unsigned char *start, size_t n)
{
    return tn_is_gguf(start, n) || (n > 8 && start[8] == '{' && tn_load_u64(start) <= (100u << 20));
}

static bool read_start(const char *path, unsigned char start[16], size_t *n)
{
    struct tn_file *file;
    struct tern_error err;
    if (tn_file_open_read(&file, path, &err) != TERN_OK)
        return false;
    *n = (size_t)TN_MIN(tn_file_size(file), (uint64_t)16);
    const bool ok = tn_file_read_at(file, 0, start, *n, &err) == TERN_OK;
    tn_file_close(file);
    return ok;
}

bool tern_source_is_one(const char *path)
{
    unsigned char start[16] = {0};
    size_t n;
    const enum tn_path_kind kind = tn_path_kind(path);
    return kind == TN_PATH_DIR ||
           (kind == TN_PATH_FILE && read_start(path, start, &n) && begins_like_a_source(start, n));
}

/* Opens a single safetensors file. */
static tern_status open_safetensors(struct tern_source *s, const char *path,
                                    struct tern_error *err)
{
    s->format = "safetensors";
    (void)tn_fail(&s->reason, TERN_INPUT,
                  "a single file of weights: give the folder that also holds config.json");
    return tn_source_open_file(&s->model.source, path, err);
}

static tern_status open_model(struct tern_source *s, const char *path, struct tern_error *err)
{
    tern_status status = tn_model_source_open_weights(&s->model, path, TERN_I2S_X86, err);
    if (status != TERN_OK)
        return status;
    s->format = s->model.is_gguf ? "gguf" : "folder";
    if (!(s->model.is_gguf ? add_gguf_keys(s) : add_config_keys(s, path)))
        return tn_fail(err, TERN_MEMORY, "%s: no memory for its keys", path);
    status = try_conversion(s, path, &s->reason);
    return status == TERN_MEMORY ? tn_fail(err, status, "%s", s->reason.detail) : TERN_OK;
}

tern_status tern_source_inspect(struct tern_source **out, const char *path, struct tern_error *err)
{
    unsigned char start[16] = {0};
    size_t n = 0;
    struct tern_source *s = tn_alloc_zeroed(1, sizeof *s);
    *out = NULL;
    tn_ok(err);
    if (!s)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to look at it", path);
    const bool is_file = tn_path_kind(path) == TN_PATH_FILE && read_start(path, start, &n);
    tern_status status = is_file && !tn_is_gguf(start, n) && begins_like_a_source(start, n)
                             ? open_safetensors(s, path, err)
                             : open_model(s, path, err);
    if (status == TERN_OK)
        *out = s;
    else
        tern_source_free(s);
    return status;
}

void tern_source_free(struct tern_source *source)
{
    if (!source)
        return;
    for (uint32_t i = 0; i < source->n_keys; i++) {
        tn_free(source->keys[i].name);
        tn_free(source->keys[i].json);
    }
    tn_free(source->keys);
    tn_model_source_close(&source->model);
    tn_free(source);
}

/* ---- results ---- */

tern_status tern_source_get_sizes(const struct tern_source *source, struct tern_source_sizes *out,
                                  struct tern_error *err)
{
    *out = source->sizes;
    return source->reason.status == TERN_OK
               ? tn_ok(err)
               : tn_fail(err, TERN_UNSUPPORTED, "%s", source->reason.detail);
}

void tern_source_get_summary(const struct tern_source *source, struct tern_source_summary *out)
{
    *out = (struct tern_source_summary){
        .format = source->format,
        .family = source->is_recognised ? source->model.import.family_name : NULL,
        .is_convertible = source->reason.status == TERN_OK,
        .reason = source->reason.detail,
        .has_tokenizer = source->has_tokenizer,
        .n_keys = source->n_keys,
        .n_tensors = source->model.source.n_tensors,
    };
    for (uint32_t i = 0; i < source->model.source.n_files; i++)
        out->file_bytes += source->model.source.files[i].bytes;
}

void tern_source_get_key(const struct tern_source *source, uint32_t i, struct tern_source_key *out)
{
    *out = (struct tern_source_key){source->keys[i].name, source->keys[i].json};
}

void tern_source_get_tensor(const struct tern_source *source, uint32_t i,
                            struct tern_source_tensor_info *out)
{
    const struct tn_source_tensor *t = &source->model.source.tensors[i];
    *out = (struct tern_source_tensor_info){
        .name = t->name, .type = t->type, .rank = t->rank, .n_bytes = t->bytes};
    memcpy(out->shape, t->shape, t->rank * sizeof *out->shape);
}

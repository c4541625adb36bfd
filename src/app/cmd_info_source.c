/* SPDX-License-Identifier: MIT
 *
 * tern info for models that are not converted yet: a GGUF file, a safetensors file, a Hugging Face
 * directory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"
#include "hints.h"
#include "json_io.h"
#include "output.h"
#include "tern/inspect.h"

/* ---- text output ---- */

static void append_keys(struct tn_buf *out, const struct tern_source *source, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct tern_source_key key;
        tern_source_get_key(source, i, &key);
        const size_t at = tn_utf8_cut(key.json, TN_MIN(strlen(key.json), (size_t)100));
        tn_buf_printf(out, "%-44s %.*s%s\n", key.name, (int)at, key.json,
                      key.json[at] ? "..." : "");
    }
}

static void append_tensors(struct tn_buf *out, const struct tern_source *source, uint32_t n)
{
    tn_buf_append_text(out, "\ntensor                                             type         "
                            "    shape           bytes\n");
    for (uint32_t i = 0; i < n; i++) {
        struct tern_source_tensor_info t;
        char shape[200];
        size_t at = 0;
        tern_source_get_tensor(source, i, &t);
        shape[0] = '\0';
        for (uint32_t k = 0; k < t.rank && at < sizeof shape; k++)
            at += (size_t)snprintf(shape + at, sizeof shape - at, "%s%" PRIu64, k ? " x " : "",
                                   t.shape[k]);
        tn_buf_printf(out, "%-50s %-8s %18s %15" PRIu64 "\n", t.name, t.type, shape, t.n_bytes);
    }
}

static tern_status print_text(const struct tern_source *source,
                              const struct tern_source_summary *s, const char *path,
                              struct tern_error *err)
{
    const char *sign = tn_typed_quote(path);
    struct tn_buf out = {0};
    tn_buf_printf(&out, "source        %s, %s of weights in %u tensors\n", s->format,
                  tn_size_decimal((double)s->file_bytes).text, s->n_tensors);
    tn_buf_printf(&out, "family        %s\n", s->family ? s->family : "not recognised");
    if (s->is_convertible)
        tn_buf_printf(&out, "converts      yes: tern convert %s%s%s%s\n", sign, path, sign,
                      s->has_tokenizer ? "" : " --no-tokenizer");
    else
        tn_buf_printf(&out, "converts      no: %s\n", s->reason);
    if (s->n_keys)
        tn_buf_append_text(&out, "\n");
    append_keys(&out, source, s->n_keys);
    append_tensors(&out, source, s->n_tensors);
    const bool failed = out.failed;
    /* Names in a file are as untrusted as the output of a model. */
    if (!failed)
        tn_out_generated(out.data, out.n_bytes);
    tn_buf_fini(&out);
    return failed ? tn_fail(err, TERN_MEMORY, "no memory for the report") : TERN_OK;
}

/* ---- JSON ---- */

static json_t *metadata(const struct tern_source *source, uint32_t n)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < n; i++) {
        struct tern_source_key key;
        tern_source_get_key(source, i, &key);
        json_object_set_new(object, key.name, tn_json_io_part(key.json));
    }
    return object;
}

static json_t *tensors(const struct tern_source *source, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        struct tern_source_tensor_info t;
        tern_source_get_tensor(source, i, &t);
        json_t *shape = json_array();
        for (uint32_t k = 0; k < t.rank; k++)
            json_array_append_new(shape, json_integer((json_int_t)t.shape[k]));
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(t.name));
        json_object_set_new(row, "type", json_string(t.type));
        json_object_set_new(row, "shape", shape);
        json_object_set_new(row, "bytes", json_integer((json_int_t)t.n_bytes));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *make_json(const struct tern_source *source, const struct tern_source_summary *s)
{
    json_t *root = json_object();
    json_object_set_new(root, "format", json_string(s->format));
    json_object_set_new(root, "family", s->family ? json_string(s->family) : json_null());
    json_object_set_new(root, "convertible", json_boolean(s->is_convertible));
    json_object_set_new(root, "reason",
                        s->is_convertible ? json_null() : json_string(s->reason));
    json_object_set_new(root, "has_tokenizer", json_boolean(s->has_tokenizer));
    json_object_set_new(root, "metadata", metadata(source, s->n_keys));
    json_object_set_new(root, "tensors", tensors(source, s->n_tensors));
    return root;
}

int tn_info_source(const char *path, const struct tn_options *o)
{
    struct tern_source *source;
    struct tern_source_summary summary;
    struct tern_error err = {0};
    tern_status status = tern_source_inspect(&source, path, &err);
    if (status != TERN_OK)
        return tn_error_print(&err);
    tern_source_get_summary(source, &summary);
    status = o->json ? tn_json_io_print(make_json(source, &summary), &err)
                     : print_text(source, &summary, path, &err);
    tern_source_free(source);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}

/* SPDX-License-Identifier: MIT
 *
 * tern info: shows the contents of a model file.  cmd_info_source.c shows files that could become
 * one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/buf.h"
#include "base/error.h"
#include "json_io.h"
#include "output.h"
#include "tern/inspect.h"

/* ---- text output ---- */

static void append_template(struct tn_buf *out, const struct tern_model_info *info)
{
    const char *name = info->template_name  ? info->template_name
                       : info->has_template ? "in the file, but tern cannot read it"
                                            : "none";
    tn_buf_printf(out, "template      %s\n", name);
}

static void append_token(struct tn_buf *out, const struct tern_model *model, const char *label,
                         uint32_t id)
{
    size_t n = 0;
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    const char *bytes = tokenizer ? tern_tokenizer_token_bytes(tokenizer, id, &n) : NULL;
    tn_buf_printf(out, "%-13s %u", label, id);
    if (bytes)
        tn_buf_printf(out, " %.*s", (int)n, bytes);
    tn_buf_append_text(out, "\n");
}

/* The tokens put before a text: not every vocabulary with a BOS puts it there. */
static void append_prefix(struct tn_buf *out, const struct tern_model *model)
{
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    struct tern_ids ids = {0};
    size_t n = 0;
    if (tokenizer && tern_tokenizer_add_special(tokenizer, &ids, 0, &n, NULL) == TERN_OK)
        for (size_t i = 0; i < n; i++)
            append_token(out, model, "begins with", ids.ids[i]);
    tern_ids_free(&ids);
}

static void append_tokens(struct tn_buf *out, const struct tern_model *model)
{
    const struct tern_model_config *c = tern_model_config(model);
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    tn_buf_printf(out, "vocabulary    %u", c->vocab);
    if (tokenizer)
        tn_buf_printf(out, ", tokenizer of %u", tern_tokenizer_n_tokens(tokenizer));
    tn_buf_append_text(out, tokenizer ? "\n" : ", no tokenizer in the file\n");
    append_prefix(out, model);
    for (uint32_t i = 0; i < c->n_stop_ids; i++)
        append_token(out, model, "stops at", c->stop_ids[i]);
}

/* Ids with which the model fills in the middle of a text. */
static bool find_fim_ids(const struct tern_model *model, struct tern_fim_ids *out)
{
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    return tokenizer && tern_tokenizer_fim_ids(tokenizer, out);
}

static void append_fim_ids(struct tn_buf *out, const struct tern_model *model)
{
    struct tern_fim_ids ids;
    if (!find_fim_ids(model, &ids)) {
        tn_buf_append_text(out, "fills in      no: no tokens for fill-in-the-middle\n");
        return;
    }
    append_token(out, model, "fills in", ids.prefix);
    append_token(out, model, "", ids.suffix);
    if (ids.middle != TERN_NO_ID)
        append_token(out, model, "", ids.middle);
}

static void append_experts(struct tn_buf *out, const struct tern_model_info *info)
{
    if (info->n_experts == 0)
        return;
    const double share = (double)info->n_experts_used / (double)info->n_experts;
    tn_buf_printf(out, "experts       %u in a layer, %u for each token: %s of the file, of which a "
                       "token reads ", info->n_experts, info->n_experts_used,
                  tn_size_decimal((double)info->expert_bytes).text);
    tn_buf_printf(out, "%s\n", tn_size_decimal((double)info->expert_bytes * share).text);
}

static const char *inputs_text(const char *inputs)
{
    return strcmp(inputs, "int8") == 0  ? "int8 for each token, as in training"
           : strcmp(inputs, "f32") == 0 ? "f32; products of floats round nothing"
           : strcmp(inputs, "8") == 0   ? "8 bits for each 32 columns (see --inputs)"
                                        : "16 bits; training did not round them (see --inputs)";
}

static void append_text(struct tn_buf *out, const struct tern_model *model,
                        const struct tern_model_info *info)
{
    const struct tern_model_config *c = tern_model_config(model);
    tn_buf_printf(out, "name          %s\n", info->name);
    tn_buf_printf(out, "architecture  %s, %s parameters\n", info->architecture,
                  tn_count_text((double)c->n_params).text);
    tn_buf_printf(out,
                  "shape         %u layers, hidden %u, ffn %u, %u heads (%u key/value) of %u\n",
                  c->n_layer, c->hidden, c->ffn, c->n_head, c->n_kv_head, c->head_dim);
    tn_buf_printf(out, "context       %u tokens\n", c->context);
    append_tokens(out, model);
    append_fim_ids(out, model);
    append_template(out, info);
    tn_buf_printf(out, "layout        %s, head %s%s\n", info->layout, info->head,
                  c->is_tied ? " (also the embedding)" : "");
    tn_buf_printf(out, "inputs        %s\n", inputs_text(c->inputs));
    if (info->n_rotated)
        tn_buf_printf(out, "rotated       %u matrices, by Hadamard matrices of %u\n",
                      info->n_rotated, info->rotation_block);
    tn_buf_printf(out, "file          %s: ", tn_size_decimal((double)info->file_bytes).text);
    if (info->n_ternary)
        tn_buf_printf(out, "ternary %s, ", tn_size_decimal((double)info->ternary_bytes).text);
    tn_buf_printf(out, "head %s\n", tn_size_decimal((double)info->head_bytes).text);
    if (info->n_ternary)
        tn_buf_printf(out, "zeros         %.1f %% of %s ternary weights\n",
                      100.0 * (double)info->n_zero / (double)info->n_ternary,
                      tn_count_text((double)info->n_ternary).text);
    append_experts(out, info);
    if (info->draft_bytes)
        tn_buf_printf(out, "draft head    %s, for --draft\n",
                      tn_size_decimal((double)info->draft_bytes).text);
    tn_buf_printf(out, "per token     %s of weights are read\n",
                  tn_size_decimal((double)info->bytes_per_token).text);
    tn_buf_printf(out, "cache         %s; per token of context: f32 %s, f16 %s, q8 %s\n",
                  tern_kv_text(c->kv),
                  tn_size_decimal((double)info->kv_bytes_per_token[TERN_KV_F32]).text,
                  tn_size_decimal((double)info->kv_bytes_per_token[TERN_KV_F16]).text,
                  tn_size_decimal((double)info->kv_bytes_per_token[TERN_KV_Q8]).text);
    if (info->state_bytes[c->kv])
        tn_buf_printf(out, "state         %s in a conversation of any length\n",
                      tn_size_decimal((double)info->state_bytes[c->kv]).text);
}

static void append_tensors(struct tn_buf *out, const struct tern_model *model)
{
    tn_buf_append_text(out, "\ntensor                    layout        shape           bytes"
                            "   zeros\n");
    for (uint32_t i = 0; i < tern_model_n_tensors(model); i++) {
        struct tern_tensor_info t;
        char shape[32];
        tern_model_get_tensor(model, i, &t);
        if (t.n_stacked)
            snprintf(shape, sizeof shape, "%u x %u x %u", t.n_stacked, t.rows, t.cols);
        else
            snprintf(shape, sizeof shape, "%u x %u", t.rows, t.cols);
        tn_buf_printf(out, "%-25s %-6s %15s %15" PRIu64, t.name, t.layout, shape, t.n_bytes);
        if (t.n_zero)
            tn_buf_printf(out, "  %4.1f %%",
                          100.0 * (double)t.n_zero /
                              ((double)t.rows * (double)t.cols * (t.n_stacked ? t.n_stacked : 1)));
        tn_buf_append_text(out, "\n");
    }
}

static tern_status print_text(const struct tern_model *model, const struct tern_model_info *info,
                              bool with_tensors, struct tern_error *err)
{
    struct tn_buf out = {0};
    append_text(&out, model, info);
    if (with_tensors)
        append_tensors(&out, model);
    bool failed = out.failed;
    /* Names in a file are as untrusted as the output of a model. */
    if (!failed)
        tn_out_generated(out.data, out.n_bytes);
    tn_buf_fini(&out);
    return failed ? tn_fail(err, TERN_MEMORY, "no memory for the report") : TERN_OK;
}

/* ---- JSON ---- */

static json_t *integer(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *stop_ids(const struct tern_model_config *c)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n_stop_ids; i++)
        json_array_append_new(list, integer(c->stop_ids[i]));
    return list;
}

static json_t *id_or_null(uint32_t id)
{
    return id == TERN_NO_ID ? json_null() : integer(id);
}

static json_t *fim_ids(const struct tern_model *model)
{
    struct tern_fim_ids ids;
    if (!find_fim_ids(model, &ids))
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "prefix", integer(ids.prefix));
    json_object_set_new(object, "suffix", integer(ids.suffix));
    json_object_set_new(object, "middle", id_or_null(ids.middle));
    json_object_set_new(object, "pad", id_or_null(ids.pad));
    json_object_set_new(object, "repository", id_or_null(ids.repository));
    json_object_set_new(object, "file", id_or_null(ids.file));
    return object;
}

static json_t *tensors(const struct tern_model *model)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < tern_model_n_tensors(model); i++) {
        struct tern_tensor_info t;
        tern_model_get_tensor(model, i, &t);
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(t.name));
        json_object_set_new(row, "layout", json_string(t.layout));
        json_object_set_new(row, "rows", integer(t.rows));
        json_object_set_new(row, "cols", integer(t.cols));
        json_object_set_new(row, "stacked", integer(t.n_stacked));
        json_object_set_new(row, "bytes", integer(t.n_bytes));
        json_object_set_new(row, "zeros", integer(t.n_zero));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *by_cache_type(const uint64_t bytes[3])
{
    json_t *object = json_object();
    for (int i = TERN_KV_F32; i <= TERN_KV_Q8; i++)
        json_object_set_new(object, tern_kv_text((enum tern_kv)i), integer(bytes[i]));
    return object;
}

static json_t *make_json(const struct tern_model *model, const struct tern_model_info *info,
                         bool with_tensors)
{
    const struct tern_model_config *c = tern_model_config(model);
    json_t *root = json_object();
    json_object_set_new(root, "name", tn_json_io_text(info->name));
    json_object_set_new(root, "architecture", tn_json_io_text(info->architecture));
    json_object_set_new(root, "n_layer", integer(c->n_layer));
    json_object_set_new(root, "hidden", integer(c->hidden));
    json_object_set_new(root, "ffn", integer(c->ffn));
    json_object_set_new(root, "n_head", integer(c->n_head));
    json_object_set_new(root, "n_kv_head", integer(c->n_kv_head));
    json_object_set_new(root, "head_dim", integer(c->head_dim));
    json_object_set_new(root, "vocab", integer(c->vocab));
    json_object_set_new(root, "context", integer(c->context));
    json_object_set_new(root, "n_params", integer(c->n_params));
    json_object_set_new(root, "layout", tn_json_io_text(info->layout));
    json_object_set_new(root, "head", tn_json_io_text(info->head));
    json_object_set_new(root, "tied", json_boolean(c->is_tied));
    json_object_set_new(root, "inputs", json_string(c->inputs));
    json_object_set_new(root, "rotated", integer(info->n_rotated));
    json_object_set_new(root, "rotation_block", integer(info->rotation_block));
    json_object_set_new(root, "template", tn_json_io_text(info->template_name));
    json_object_set_new(root, "bos", id_or_null(c->bos_id));
    json_object_set_new(root, "stop_ids", stop_ids(c));
    json_object_set_new(root, "fim_ids", fim_ids(model));
    json_object_set_new(root, "file_bytes", integer(info->file_bytes));
    json_object_set_new(root, "ternary_bytes", integer(info->ternary_bytes));
    json_object_set_new(root, "head_bytes", integer(info->head_bytes));
    json_object_set_new(root, "n_experts", integer(info->n_experts));
    json_object_set_new(root, "n_experts_used", integer(info->n_experts_used));
    json_object_set_new(root, "expert_bytes", integer(info->expert_bytes));
    json_object_set_new(root, "draft_bytes", integer(info->draft_bytes));
    json_object_set_new(root, "bytes_per_token", integer(info->bytes_per_token));
    json_object_set_new(root, "kv", json_string(tern_kv_text(c->kv)));
    json_object_set_new(root, "kv_bytes_per_token", by_cache_type(info->kv_bytes_per_token));
    json_object_set_new(root, "state_bytes", by_cache_type(info->state_bytes));
    if (with_tensors)
        json_object_set_new(root, "tensors", tensors(model));
    return root;
}

int tn_cmd_info(const struct tn_options *o)
{
    const char *path = o->n_positional ? o->positional[0] : o->model;
    if (path && tern_source_is_one(path))
        return tn_info_source(path, o);
    struct tn_opened opened;
    struct tern_error err = {0};
    struct tern_model_info info;
    tern_status status = tn_open(&opened, o, tn_first_argument(o), 0, &err);
    if (status != TERN_OK)
        return tn_error_print(&err);
    tern_model_get_info(opened.model, &info);
    status = o->json ? tn_json_io_print(make_json(opened.model, &info, o->tensors), &err)
                     : print_text(opened.model, &info, o->tensors, &err);
    tn_close(&opened);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}

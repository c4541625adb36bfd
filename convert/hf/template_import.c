/* SPDX-License-Identifier: MIT
 *
 * Finds a model's chat template: chat_template.jinja in newer repositories, a member of
 * tokenizer_config.json in older ones, of chat_template.json in some that also read pictures.
 */
#include "convert/hf/template_import.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"
#include "base/utf8.h"
#include "convert/hf/hf_config.h"
#include "text/chat.h"
#include "text/tokenizer.h"

#define TOKENIZER_CONFIG "tokenizer_config.json"
#define TEMPLATE_FILE "chat_template.jinja"
#define PROCESSOR_TEMPLATE "chat_template.json"
#define MAX_TEMPLATE_BYTES (1u << 20)
#define MAX_CONFIG_BYTES (8u << 20) /* published files have up to 1 MB, because they repeat all
                                     * added tokens */

/* The template to use, of any type; NULL if the value says that there is none. */
static const json_t *find_template(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_object_get(item, "template");
    }
    bool is_none = json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0);
    return is_none ? NULL : value;
}

tern_status tn_template_check(const char *file, const char *text, size_t n, struct tern_error *err)
{
    if (n > MAX_TEMPLATE_BYTES)
        return tn_fail(err, TERN_INPUT, "%s: a chat template of %zu bytes, at most %u are allowed",
                       file, n, MAX_TEMPLATE_BYTES);
    const size_t bad = tn_utf8_find_bad(text, n, false);
    if (bad < n)
        return tn_fail(err, TERN_INPUT,
                       "%s: byte 0x%02x at offset %zu of the chat template is not text", file,
                       (unsigned char)text[bad], bad);
    return TERN_OK;
}

tern_status tn_template_parse(char **source, size_t *n_source, const char *file, const char *json,
                              size_t n_json, struct tern_error *err)
{
    *source = NULL;
    *n_source = 0;
    json_t *root;
    tern_status status = tn_json_load(&root, file, json, n_json,
                                      JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL |
                                          TN_JSON_NOT_FINITE_AS_TEXT,
                                      err);
    if (status != TERN_OK)
        return status;
    const json_t *template = find_template(json_object_get(root, "chat_template"));
    const size_t n = json_string_length(template);
    if (template && !json_is_string(template))
        status = tn_fail(err, TERN_UNSUPPORTED,
                         "%s: chat_template has no text named \"default\"; put the one to use into "
                         TEMPLATE_FILE, file);
    if (n)
        status = tn_template_check(file, json_string_value(template), n, err);
    if (n && status == TERN_OK) {
        *source = tn_copy_bytes(json_string_value(template), n);
        if (*source)
            *n_source = n;
        else
            status = tn_fail(err, TERN_MEMORY, "no memory for a chat template of %zu bytes", n);
    }
    json_decref(root);
    return status;
}

/* Replaces CR LF by LF, as Jinja does: git writes text files that way on Windows.  Returns the
 * length. */
static size_t unify_line_ends(char *text, size_t n)
{
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] != '\r' || text[i + 1] != '\n')
            text[n_out++] = text[i];
    text[n_out] = '\0';
    return n_out;
}

/* *is_there: the file exists; it may have no template. */
static tern_status read_jinja(char **source, size_t *n_source, bool *is_there, const char *dir,
                              struct tern_error *err)
{
    tern_status status =
        tn_dir_read_text(source, n_source, dir, TEMPLATE_FILE, MAX_TEMPLATE_BYTES, err);
    *is_there = status == TERN_OK && *source;
    if (!*is_there)
        return status;
    status = tn_template_check(TEMPLATE_FILE, *source, *n_source, err);
    if (status == TERN_OK && *n_source > 0) {
        *n_source = unify_line_ends(*source, *n_source);
        return TERN_OK;
    }
    tn_free(*source);
    *source = NULL;
    return status;
}

tern_status tn_template_read(char **source, size_t *n_source, const char **from, const char *dir,
                             struct tern_error *err)
{
    static const char *const files[] = {TOKENIZER_CONFIG, PROCESSOR_TEMPLATE};
    bool has_jinja;
    tern_status status = read_jinja(source, n_source, &has_jinja, dir, err);
    *from = has_jinja ? TEMPLATE_FILE : NULL;
    if (has_jinja)
        return status;
    for (size_t i = 0; i < TN_COUNT_OF(files) && !*source && status == TERN_OK; i++) {
        char *json;
        size_t n_json;
        status = tn_dir_read_text(&json, &n_json, dir, files[i], MAX_CONFIG_BYTES, err);
        if (status != TERN_OK || !json)
            continue;
        *from = files[i];
        status = tn_template_parse(source, n_source, files[i], json, n_json, err);
        tn_free(json);
    }
    return status;
}

static void add_stop_id(void *stop_ids, uint32_t id)
{
    (void)tn_stop_ids_add(stop_ids, id); /* full: 64 others end the answer */
}

tern_status tn_template_add_stop_ids(struct tn_stop_ids *stop_ids, uint32_t vocab,
                                     const struct tn_answer_ends *ends, const void *tokenizer,
                                     size_t tokenizer_bytes, struct tern_error *err)
{
    struct tern_tokenizer *t;
    tern_status status = tn_tokenizer_open(&t, tokenizer, tokenizer_bytes, vocab, err);
    if (status != TERN_OK)
        return status;
    uint32_t set = ends->template ? tn_chat_find_ends(ends->template, ends->n_template) : 0;
    /* GGUF files name one or two of the ends that generation_config.json lists. */
    if (ends->is_gguf)
        set |= (1u << TN_CHAT_N_ENDS) - (1u << TN_CHAT_TEXT_ENDS);
    tn_chat_visit_ends(set, ends->known ? ends->known->answer_end : NULL, t, add_stop_id, stop_ids);
    tn_tokenizer_close(t);
    return TERN_OK;
}

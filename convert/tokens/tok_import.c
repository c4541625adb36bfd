/* SPDX-License-Identifier: MIT
 *
 * Reads tokenizer.json: its vocabulary, merges and added tokens here, the other components in
 * tok_components.c; tok_tables.c makes the tables.
 */
#include "convert/tokens/tok_import.h"

#include <string.h>

#include "base/error.h"
#include "base/json_load.h"
#include "convert/tokens/tok_components.h"
#include "convert/tokens/tok_tables.h"
#include "tern/model_format.h"

/* An id as a number, or -1. */
static int64_t id_of(const json_t *value)
{
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

static tern_status read_vocab(struct tn_tok_build *b, const json_t *vocab, bool byte_fallback)
{
    const char *text;
    json_t *value;
    if (!json_is_object(vocab))
        return tn_fail(b->err, TERN_INPUT, TN_TOK_FILE ": model.vocab is missing");
    json_object_foreach((json_t *)vocab, text, value) {
        size_t n = strlen(text);
        bool is_byte = byte_fallback && tn_tok_byte_of_text(text, n) >= 0;
        tern_status status =
            tn_tok_add_vocab(b, text, n, id_of(value), is_byte ? TN_TOK_BYTE : 0);
        if (status != TERN_OK)
            return status;
    }
    return tn_tok_end_vocab(b);
}

/* Reads the unknown token, which replaces a symbol without an id unless there are tokens for all
 * bytes. */
static tern_status read_unknown(struct tn_tok_build *b, const json_t *model)
{
    const char *text = json_string_value(json_object_get(model, "unk_token"));
    if (!text)
        return TERN_OK;
    b->head.unk_id = tn_tok_lookup(b, text, strlen(text));
    if (b->head.unk_id == TERN_NO_ID && b->head.kind == TERN_TOKENIZER_CHAR_BPE)
        return tn_fail(b->err, TERN_INPUT,
                       TN_TOK_FILE ": unk_token \"%.80s\" is not in the vocabulary", text);
    return TERN_OK;
}

static tern_status read_added(struct tn_tok_build *b, const json_t *added)
{
    if (!tn_json_is_absent(added) && !json_is_array(added))
        return tn_fail(b->err, TERN_INPUT, TN_TOK_FILE ": added_tokens is not a list");
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *item = json_array_get(added, i);
        const json_t *content = json_object_get(item, "content");
        if (!json_is_string(content))
            return tn_fail(b->err, TERN_INPUT, TN_TOK_FILE ": an added token has no content");
        tern_status status =
            tn_tok_add_added(b, json_string_value(content), json_string_length(content),
                             id_of(json_object_get(item, "id")), tn_tok_added_flags(item));
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* A merge is a pair of strings, or one string with a space between the parts. */
static tern_status read_merge(struct tn_tok_build *b, const json_t *item, size_t i)
{
    const char *left, *right;
    size_t n_left, n_right;
    if (json_is_array(item) && json_array_size(item) == 2 &&
        json_is_string(json_array_get(item, 0)) && json_is_string(json_array_get(item, 1))) {
        left = json_string_value(json_array_get(item, 0));
        right = json_string_value(json_array_get(item, 1));
        n_left = json_string_length(json_array_get(item, 0));
        n_right = json_string_length(json_array_get(item, 1));
    } else {
        left = json_string_value(item);
        const char *space = left ? strchr(left, ' ') : NULL;
        if (!space || strchr(space + 1, ' '))
            return tn_fail(b->err, TERN_INPUT, TN_TOK_FILE ": merge %zu is not a pair of tokens",
                           i);
        right = space + 1;
        n_left = (size_t)(space - left);
        n_right = strlen(right);
    }
    return tn_tok_add_merge(b, i, left, n_left, right, n_right);
}

static bool is_version_line(const json_t *item)
{
    const char *text = json_string_value(item);
    return text && strncmp(text, "#version", 8) == 0;
}

static tern_status read_merges(struct tn_tok_build *b, const json_t *merges)
{
    size_t n = json_array_size(merges);
    if (!json_is_array(merges))
        return tn_fail(b->err, TERN_INPUT, TN_TOK_FILE ": merges are missing");
    tern_status status = tn_tok_begin_merges(b, n);
    for (size_t i = 0; status == TERN_OK && i < n; i++) {
        const json_t *item = json_array_get(merges, i);
        if (!is_version_line(item))
            status = read_merge(b, item, i);
    }
    return status;
}

static tern_status build(struct tn_tok_build *b, const json_t *root)
{
    const json_t *model = json_object_get(root, "model");
    bool byte_fallback = false;
    tern_status status = tn_tok_read_components(root, &b->head, &byte_fallback, b->err);
    if (status == TERN_OK)
        status = read_vocab(b, json_object_get(model, "vocab"), byte_fallback);
    if (status == TERN_OK)
        status = read_unknown(b, model);
    if (status == TERN_OK)
        status = read_added(b, json_object_get(root, "added_tokens"));
    if (status == TERN_OK)
        status = tn_tok_end_tokens(b);
    if (status == TERN_OK)
        status = read_merges(b, json_object_get(model, "merges"));
    return status == TERN_OK ? tn_tok_finish(b) : status;
}

tern_status tn_tok_import(const char *json, size_t n, uint32_t vocab, struct tn_buf *section,
                          struct tern_error *err)
{
    json_t *root;
    tern_status status = tn_json_load(&root, TN_TOK_FILE, json, n, JSON_REJECT_DUPLICATES, err);
    if (status != TERN_OK)
        return status;
    if (!json_is_object(root)) {
        json_decref(root);
        return tn_fail(err, TERN_INPUT, TN_TOK_FILE ": not a JSON object");
    }
    struct tn_tok_build b;
    status = tn_tok_init(&b, TN_TOK_FILE, vocab, section, err);
    if (status == TERN_OK)
        status = build(&b, root);
    tn_tok_fini(&b);
    json_decref(root);
    if (status != TERN_OK)
        tn_buf_fini(section);
    return status;
}

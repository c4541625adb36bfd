/* SPDX-License-Identifier: MIT
 *
 * tern tokenize: text -> ids;  tern detokenize: ids -> bytes.
 */
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/utf8.h"
#include "idlist.h"
#include "json_io.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"

#define MAX_INPUT_BYTES ((size_t)1 << 30)
#define MAX_MESSAGES 65536u

/* ---- output ---- */

/* Writes the text of n_ids ids and frees it. */
static tern_status write_out(struct tn_buf *out, size_t n_ids, struct tern_error *err)
{
    if (out->failed) {
        tn_buf_fini(out);
        return tn_fail(err, TERN_MEMORY, "no memory for %zu ids", n_ids);
    }
    tn_out_buf(out);
    return TERN_OK;
}

static tern_status print_ids(const struct tern_ids *ids, struct tern_error *err)
{
    struct tn_buf out = {0};
    for (size_t i = 0; i < ids->n; i++)
        tn_buf_printf(&out, "%s%u", i ? " " : "", ids->ids[i]);
    tn_buf_append_text(&out, "\n");
    return write_out(&out, ids->n, err);
}

/* A token's bytes in one line: control characters, the backslash and what is not UTF-8 as \n,
 * \xE2 and so on. */
static void append_piece(struct tn_buf *out, const char *bytes, size_t n)
{
    uint32_t c;
    for (size_t i = 0, length; i < n; i += length) {
        length = tn_utf8_character(bytes + i, n - i, &c);
        bool is_shown = length > 0 && !tn_is_control(c);
        length += length == 0;
        if (is_shown && c == '\\')
            tn_buf_append_text(out, "\\\\");
        else if (is_shown)
            tn_buf_append(out, bytes + i, length);
        else if (bytes[i] == '\n')
            tn_buf_append_text(out, "\\n");
        else
            for (size_t k = i; k < i + length; k++)
                tn_buf_printf(out, "\\x%02X", (unsigned char)bytes[k]);
    }
}

static tern_status print_pieces(const struct tern_tokenizer *tokenizer,
                                const struct tern_ids *ids, struct tern_error *err)
{
    struct tn_buf out = {0};
    for (size_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *bytes = tern_tokenizer_token_bytes(tokenizer, ids->ids[i], &n);
        tn_buf_printf(&out, "%u\t", ids->ids[i]);
        append_piece(&out, bytes, n);
        tn_buf_append_text(&out, "\n");
    }
    return write_out(&out, ids->n, err);
}

/* ---- tokenize ---- */

static tern_status encode_text(struct tern_ids *ids, const struct tn_options *o,
                               const struct tern_tokenizer *tokenizer, struct tern_error *err)
{
    char *text;
    size_t n;
    tern_status status = tn_stdin_read_all(&text, &n, MAX_INPUT_BYTES, err);
    if (status != TERN_OK)
        return status;
    uint32_t flags = (o->no_bos ? 0 : TERN_ENCODE_ADD_SPECIAL) |
                     (o->special ? TERN_ENCODE_PARSE_SPECIAL : 0);
    status = tern_tokenizer_encode(tokenizer, text, n, flags, ids, err);
    tn_free(text);
    return status;
}

/* A member that published templates render and the built-in ones do not: leaving it out in silence
 * would give the ids of another conversation. NULL: there is none. */
static const char *foreign_member(const json_t *item)
{
    static const char *const names[] = {"tool_calls", "reasoning_content"};
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        const json_t *member = json_object_get(item, names[i]);
        bool is_empty = json_is_array(member) && json_array_size(member) == 0;
        if (member && !json_is_null(member) && !is_empty)
            return names[i];
    }
    return NULL;
}

/* The strings belong to `root`. */
static tern_status read_message(struct tern_message *m, json_t *item, size_t i,
                                struct tern_error *err)
{
    json_t *role = json_object_get(item, "role");
    json_t *content = json_object_get(item, "content");
    if (!json_is_string(role) || !json_is_string(content))
        return tn_fail(err, TERN_USAGE,
                       "message %zu: \"role\" and \"content\" must both be strings", i);
    const char *foreign = foreign_member(item);
    if (foreign)
        return tn_fail(err, TERN_USAGE,
                       "message %zu: \"%s\" is not implemented, only \"role\" and \"content\"", i,
                       foreign);
    *m = (struct tern_message){json_string_value(role), json_string_length(role),
                               json_string_value(content), json_string_length(content)};
    return TERN_OK;
}

static tern_status read_messages(json_t **root, struct tern_message **messages, size_t *n,
                                 struct tern_error *err)
{
    char *text;
    size_t n_bytes;
    *messages = NULL;
    *root = NULL;
    tern_status status = tn_stdin_read_all(&text, &n_bytes, MAX_INPUT_BYTES, err);
    if (status != TERN_OK)
        return status;
    size_t start = tn_prompt_mark(text, n_bytes);
    status = tn_json_io_read(root, "standard input", text + start, n_bytes - start, JSON_ALLOW_NUL,
                             err);
    tn_free(text);
    if (status != TERN_OK)
        return status;
    *n = json_array_size(*root);
    if (!json_is_array(*root) || *n > MAX_MESSAGES)
        return tn_fail(err, TERN_USAGE,
                       "standard input must be a JSON array of at most %u messages", MAX_MESSAGES);
    *messages = tn_alloc_zeroed(*n ? *n : 1, sizeof **messages);
    if (!*messages)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu messages", *n);
    for (size_t i = 0; i < *n && status == TERN_OK; i++)
        status = read_message(&(*messages)[i], json_array_get(*root, i), i, err);
    return status;
}

/* With the same texts of BOS and EOS as tern_chat_encode: those that the template was published
 * with. */
static tern_status print_rendered(const struct tn_options *o, const struct tern_chat_template *t,
                                  const struct tern_message *messages, size_t n,
                                  struct tern_error *err)
{
    char *text;
    size_t n_text;
    tern_status status = tern_chat_render(t, messages, n, !o->no_generation_prompt, NULL, NULL,
                                          &text, &n_text, NULL, err);
    if (status == TERN_OK) {
        tn_out_write(text, n_text);
        tern_text_free(text);
    }
    return status;
}

/* Ids of the conversation on standard input; with --text its rendering is printed instead. */
static tern_status tokenize_chat(struct tern_ids *ids, const struct tn_options *o,
                                 const struct tern_model *model, struct tern_error *err)
{
    const struct tern_chat_template *t;
    json_t *root = NULL;
    struct tern_message *messages = NULL;
    size_t n = 0;
    tern_status status = tn_choose_template(&t, o, model, err);
    if (status == TERN_OK)
        status = read_messages(&root, &messages, &n, err);
    if (status == TERN_OK && o->as_text)
        status = print_rendered(o, t, messages, n, err);
    else if (status == TERN_OK)
        status = tern_chat_encode(tern_model_tokenizer(model), t, messages, n,
                                  !o->no_generation_prompt, ids, err);
    tn_free(messages);
    json_decref(root);
    return status;
}

static tern_status check_flags(const struct tn_options *o, struct tern_error *err)
{
    if (!o->as_chat && (o->as_text || o->no_generation_prompt || o->template_name))
        return tn_fail(err, TERN_USAGE, "%s needs --chat",
                       o->as_text                ? "--text"
                       : o->no_generation_prompt ? "--no-generation-prompt"
                                                 : "--template");
    if (o->as_chat && (o->special || o->no_bos))
        return tn_fail(err, TERN_USAGE, "%s does not go with --chat",
                       o->special ? "--special" : "--no-bos");
    if (o->as_text && o->pieces)
        return tn_fail(err, TERN_USAGE, "--pieces does not go with --text");
    return tn_check_names(o, err);
}

static tern_status tokenize(const struct tn_options *o, struct tern_error *err)
{
    struct tn_opened opened;
    struct tern_ids ids = {0};
    tern_status status = check_flags(o, err);
    if (status != TERN_OK)
        return status;
    status = tn_open(&opened, o, o->n_positional ? o->positional[0] : NULL, TN_OPEN_TOKENIZER, err);
    if (status != TERN_OK)
        return status;
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(opened.model);
    status = o->as_chat ? tokenize_chat(&ids, o, opened.model, err)
                        : encode_text(&ids, o, tokenizer, err);
    if (status == TERN_OK && !o->as_text)
        status = o->pieces ? print_pieces(tokenizer, &ids, err) : print_ids(&ids, err);
    tern_ids_free(&ids);
    tn_close(&opened);
    return status;
}

int tn_cmd_tokenize(const struct tn_options *o)
{
    struct tern_error err = {0};
    return tokenize(o, &err) == TERN_OK ? 0 : tn_error_print(&err);
}

/* ---- detokenize ---- */

static tern_status print_bytes(const struct tern_tokenizer *tokenizer, const struct tern_ids *ids,
                               bool with_special, struct tern_error *err)
{
    struct tn_buf out = {0};
    uint32_t n_tokens = tern_tokenizer_n_tokens(tokenizer);
    for (size_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *bytes = tern_tokenizer_token_bytes(tokenizer, ids->ids[i], &n);
        if (!bytes) {
            tn_buf_fini(&out);
            return tn_fail(err, TERN_USAGE, "id %u is beyond the vocabulary of %u", ids->ids[i],
                           n_tokens);
        }
        if (with_special || !tern_tokenizer_is_special(tokenizer, ids->ids[i]))
            tn_buf_append(&out, bytes, n);
    }
    return write_out(&out, ids->n, err);
}

int tn_cmd_detokenize(const struct tn_options *o)
{
    struct tn_opened opened;
    struct tern_error err = {0};
    struct tern_ids ids = {0};
    char *text = NULL;
    size_t n = 0;
    tern_status status =
        tn_open(&opened, o, o->n_positional ? o->positional[0] : NULL, TN_OPEN_TOKENIZER, &err);
    if (status == TERN_OK)
        status = tn_stdin_read_all(&text, &n, MAX_INPUT_BYTES, &err);
    const size_t start = tn_prompt_mark(text, n);
    if (status == TERN_OK)
        status = tn_idlist_parse(&ids, text + start, n - start, "standard input", &err);
    if (status == TERN_OK)
        status = print_bytes(tern_model_tokenizer(opened.model), &ids, o->special, &err);
    tn_free(text);
    tern_ids_free(&ids);
    tn_close(&opened);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}

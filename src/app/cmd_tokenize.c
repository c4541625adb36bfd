/* SPDX-License-Identifier: MIT
 *
 * tern tokenize: text to ids; tern detokenize: ids to bytes.  Both read standard input and write
 * one result.
 */
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"
#include "idlist.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"
#include "template.h"

#define MAX_INPUT_BYTES ((size_t)1 << 30)

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

/* Appends a token's bytes as one line: control characters, the backslash and bytes that are not
 * UTF-8 as \n, \xE2 and so on. */
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
    tn_prompt_say_waiting("a text");
    tern_status status = tn_stdin_read_all(&text, &n, MAX_INPUT_BYTES, err);
    if (status != TERN_OK)
        return status;
    uint32_t flags = (o->no_bos ? 0 : TERN_ENCODE_ADD_SPECIAL) |
                     (o->special ? TERN_ENCODE_PARSE_SPECIAL : 0);
    status = tern_tokenizer_encode(tokenizer, text, n, flags, ids, err);
    tn_free(text);
    return status;
}

/* Ids of the conversation on standard input; with --text its rendering is printed instead. */
static tern_status encode_chat(struct tern_ids *ids, const struct tn_options *o,
                               const struct tern_model *model, const struct tn_template *template,
                               struct tern_error *err)
{
    char *json, *text;
    size_t n_json, n_text;
    tn_prompt_say_waiting("a JSON array of messages");
    tern_status status = tn_stdin_read_all(&json, &n_json, MAX_INPUT_BYTES, err);
    if (status != TERN_OK)
        return status;
    const size_t start = tn_prompt_mark(json, n_json);
    if (!o->as_text) {
        status = tern_chat_encode_json(tern_model_tokenizer(model), template->t, json + start,
                                       n_json - start, &template->params, ids, err);
    } else {
        status = tern_chat_render_json(template->t, json + start, n_json - start,
                                       &template->params, &text, &n_text, NULL, err);
        if (status == TERN_OK)
            tn_out_write(text, n_text);
        tern_text_free(text);
    }
    tn_free(json);
    return status;
}

static tern_status tokenize_chat(struct tern_ids *ids, const struct tn_options *o,
                                 struct tern_model *model, struct tern_error *err)
{
    struct tn_template template;
    tern_status status = tn_template_choose(&template, o, model, err);
    template.params.add_generation_prompt = !o->no_generation_prompt;
    if (status == TERN_OK)
        status = encode_chat(ids, o, model, &template, err);
    tn_template_fini(&template);
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
        return tn_fail(err, TERN_USAGE, "%s cannot be combined with --chat",
                       o->special ? "--special" : "--no-bos");
    if (o->as_text && o->pieces)
        return tn_fail(err, TERN_USAGE, "--pieces cannot be combined with --text");
    return tn_check_names(o, err);
}

static tern_status tokenize(const struct tn_options *o, struct tern_error *err)
{
    struct tn_opened opened;
    struct tern_ids ids = {0};
    tern_status status = check_flags(o, err);
    if (status != TERN_OK)
        return status;
    status = tn_open(&opened, o, tn_first_argument(o), TN_OPEN_TOKENIZER, err);
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
    bool may_drop = tern_tokenizer_adds_space(tokenizer); /* the space before the text */
    uint32_t n_tokens = tern_tokenizer_n_tokens(tokenizer);
    for (size_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *bytes = tern_tokenizer_token_bytes(tokenizer, ids->ids[i], &n);
        if (!bytes) {
            tn_buf_fini(&out);
            return tn_fail(err, TERN_USAGE, "id %u is beyond the vocabulary of %u", ids->ids[i],
                           n_tokens);
        }
        if (!with_special && tern_tokenizer_is_special(tokenizer, ids->ids[i]))
            continue;
        size_t skip = may_drop && n > 0 && bytes[0] == ' ';
        may_drop = may_drop && n == 0;
        tn_buf_append(&out, bytes + skip, n - skip);
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
    tern_status status = tn_open(&opened, o, tn_first_argument(o), TN_OPEN_TOKENIZER, &err);
    if (status == TERN_OK)
        tn_prompt_say_waiting("token ids");
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

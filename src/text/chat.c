/* SPDX-License-Identifier: MIT
 *
 * Chat: names, recognition of published templates, rendering, encoding.
 *
 * A template's source is recognised by a hash of its canonical form: white space
 * control applied, blanks inside tags and the style of string literals taken out.
 * Rendered text carries a map of the bytes that come from messages; no special
 * token is ever made from one of those.
 */
#include "text/chat.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/log.h"
#include "text/jinja_hash.h"
#include "text/tokenizer.h"

/* ---- names and sources ---- */

const struct tern_chat_template *tern_chat_template_find(const char *name)
{
    for (const struct tern_chat_template *t = tn_chat_templates; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

const char *tern_chat_template_name(const struct tern_chat_template *t)
{
    return t->name;
}

const struct tern_chat_template *tern_chat_template_next(const struct tern_chat_template *t)
{
    t = t ? t + 1 : tn_chat_templates;
    return t->name ? t : NULL;
}

const char *tern_chat_template_missing(const struct tern_chat_template *t,
                                       const struct tern_tokenizer *tokenizer)
{
    for (const char *const *special = t->specials; *special; special++)
        if (!tern_tokenizer_is_special(
                tokenizer, tern_tokenizer_find(tokenizer, *special, strlen(*special))))
            return *special;
    return NULL;
}

const struct tern_chat_template *tern_chat_template_recognise(const char *source, size_t n_bytes)
{
    uint64_t hash = tn_jinja_hash(source, n_bytes);
    for (const struct tern_chat_template *t = tn_chat_templates; t->name; t++)
        for (size_t i = 0; i < TN_COUNT_OF(t->sources); i++)
            if (t->sources[i] == hash && hash != 0)
                return t;
    return NULL;
}

/* ---- rendering ---- */

static void put_bytes(struct tn_chat *chat, const char *bytes, size_t n, int is_user)
{
    if (!tn_buf_append(&chat->text, bytes, n) || !tn_buf_reserve(&chat->user, n))
        return;
    if (n)
        memset(chat->user.data + chat->user.n_bytes, is_user, n);
    chat->user.n_bytes += n;
}

void tn_chat_put(struct tn_chat *chat, const char *text)
{
    put_bytes(chat, text, strlen(text), 0);
}

void tn_chat_put_user(struct tn_chat *chat, const char *bytes, size_t n)
{
    put_bytes(chat, bytes, n, 1);
}

static tern_status render(struct tn_chat *chat, const struct tern_chat_template *t)
{
    tern_status status = t->render(chat);
    tn_buf_text(&chat->text);
    tn_buf_reserve(&chat->user, 1);
    if (status == TERN_OK && (chat->text.failed || chat->user.failed))
        status = tn_fail(chat->err, TERN_MEMORY, "not enough memory for the conversation");
    return status;
}

tern_status tern_chat_render(const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             bool add_generation_prompt, const char *bos, const char *eos,
                             char **text, size_t *n_text, unsigned char **user_map,
                             struct tern_error *err)
{
    struct tn_chat chat = {.messages = messages,
                           .n_messages = n_messages,
                           .add_generation_prompt = add_generation_prompt,
                           .bos = bos ? bos : t->bos,
                           .eos = eos ? eos : t->eos,
                           .err = err};
    *text = NULL;
    *n_text = 0;
    if (user_map)
        *user_map = NULL;
    tern_status status = render(&chat, t);
    if (status != TERN_OK) {
        tn_buf_fini(&chat.text);
        tn_buf_fini(&chat.user);
        return status;
    }
    *text = chat.text.data;
    *n_text = chat.text.n_bytes;
    if (user_map)
        *user_map = (unsigned char *)chat.user.data;
    else
        tn_buf_fini(&chat.user);
    return TERN_OK;
}

void tern_text_free(void *text)
{
    tn_free(text);
}

/* ---- encoding ---- */

#define MAX_BOS_BYTES 64

/* The text of the first id that the post-processor adds; NULL when there is none. */
static const char *bos_text(const struct tern_tokenizer *tokenizer, char *room, size_t n_room)
{
    uint32_t n_prefix;
    const uint32_t *prefix = tn_tokenizer_prefix(tokenizer, &n_prefix);
    size_t n_bytes = 0;
    const char *bytes =
        n_prefix ? tern_tokenizer_token_bytes(tokenizer, prefix[0], &n_bytes) : NULL;
    if (!bytes || n_bytes >= n_room)
        return NULL;
    memcpy(room, bytes, n_bytes);
    room[n_bytes] = '\0';
    return room;
}

tern_status tern_chat_encode(const struct tern_tokenizer *tokenizer,
                             const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             bool add_generation_prompt, struct tern_ids *out,
                             struct tern_error *err)
{
    char bos[MAX_BOS_BYTES];
    char *text;
    size_t n_text, start = out->n;
    unsigned char *user_map;
    tern_status status = tern_chat_render(
        t, messages, n_messages, add_generation_prompt, bos_text(tokenizer, bos, sizeof bos), NULL,
        &text, &n_text, &user_map, err);
    if (status != TERN_OK)
        return status;
    status = tn_tokenizer_encode_mapped(tokenizer, text, user_map, n_text, out, err);
    if (status == TERN_OK)
        status = tn_tokenizer_ensure_prefix(tokenizer, out, start, err);
    tern_text_free(text);
    tern_text_free(user_map);
    return status;
}

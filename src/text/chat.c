/* SPDX-License-Identifier: MIT
 *
 * Chat templates: names, recognition of published templates, rendering, encoding.
 *
 * Every template is Jinja source for the interpreter in jinja/.  A model's own template is parsed
 * once, a built-in one (chat_templates.c) for each rendering.  A model's template takes the name of
 * a built-in one if both have the same tokens.
 */
#include "text/chat.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "tern/model_format.h"
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
    for (const struct tern_chat_template *t = tn_chat_templates; t->name; t++)
        if (tn_jinja_is_same(source, n_bytes, t->source) ||
            (t->variant && tn_jinja_is_same(source, n_bytes, t->variant)))
            return t;
    return NULL;
}

/* ---- ends of turns ---- */

const char *const tn_chat_ends[TN_CHAT_N_ENDS] = {
    "<|eot_id|>",      "<|eom_id|>",    "<|im_end|>",    "<|end|>",       "<end_of_turn>",
    "<|end_of_turn|>", "[|endofturn|]", "<|endofturn|>", "<|eot|>",       "<|endoftext|>",
    "<|end_of_text|>",
};

uint32_t tn_chat_find_ends(const char *source, size_t n_bytes)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < TN_CHAT_N_ENDS; i++) {
        const size_t n = strlen(tn_chat_ends[i]);
        for (size_t k = 0; k + n <= n_bytes && !(found & 1u << i); k++)
            if (memcmp(source + k, tn_chat_ends[i], n) == 0)
                found |= 1u << i;
    }
    return found;
}

static void visit_end(const char *end, const struct tern_tokenizer *tokenizer, tn_chat_end_fn *add,
                      void *arg)
{
    const uint32_t id = tern_tokenizer_find(tokenizer, end, strlen(end));
    if (id != TERN_NO_ID && tern_tokenizer_is_special(tokenizer, id))
        add(arg, id);
}

void tn_chat_visit_ends(uint32_t ends, const char *answer_end,
                        const struct tern_tokenizer *tokenizer, tn_chat_end_fn *add, void *arg)
{
    if (answer_end)
        visit_end(answer_end, tokenizer, add, arg);
    for (uint32_t i = 0; i < TN_CHAT_N_ENDS; i++)
        if (ends & 1u << i)
            visit_end(tn_chat_ends[i], tokenizer, add, arg);
}

void tn_chat_visit_template_ends(const struct tern_chat_template *t,
                                 const struct tern_tokenizer *tokenizer, tn_chat_end_fn *add,
                                 void *arg)
{
    const uint32_t ends = t->jinja ? t->ends : tn_chat_find_ends(t->source, strlen(t->source));
    tn_chat_visit_ends(ends, t->answer_end, tokenizer, add, arg);
}

/* ---- parsed templates ---- */

tern_status tern_chat_template_parse(struct tern_chat_template **out, const char *source,
                                     size_t n_bytes, struct tern_error *err)
{
    const struct tern_chat_template *known = tern_chat_template_recognise(source, n_bytes);
    *out = NULL;
    struct tern_chat_template *t = tn_alloc_zeroed(1, sizeof *t);
    if (!t)
        return tn_fail(err, TERN_MEMORY, "no memory for a chat template");
    if (known)
        *t = *known;
    else
        t->name = "custom";
    t->ends = tn_chat_find_ends(source, n_bytes);
    tern_status status = tn_jinja_parse(&t->jinja, source, n_bytes, err);
    t->source = t->owned_source = tn_copy_bytes(source, n_bytes);
    if (status == TERN_OK && !t->source)
        status = tn_fail(err, TERN_MEMORY, "no memory for a chat template");
    if (status != TERN_OK)
        tern_chat_template_free(t);
    else
        *out = t;
    return status;
}

void tern_chat_template_free(struct tern_chat_template *t)
{
    if (!t)
        return;
    tn_jinja_free(t->jinja);
    tn_free(t->owned_source);
    tn_free(t);
}

const char *tern_chat_template_source(const struct tern_chat_template *t)
{
    return t->source;
}

/* ---- rendering ---- */

static tern_status return_text(struct tn_buf *rendered, struct tn_buf *user, char **text,
                               size_t *n_text, unsigned char **user_map)
{
    *text = rendered->data;
    *n_text = rendered->n_bytes;
    if (user_map)
        *user_map = (unsigned char *)user->data;
    else
        tn_buf_fini(user);
    return TERN_OK;
}

/* Roles that count as text of the template rather than of the user: templates write <|user|> as
 * '<|' + role + '|>', which must become a special token. */
static bool is_known_role(const char *bytes, size_t n)
{
    static const char *const roles[] = {"system",    "developer", "user",  "assistant", "tool",
                                        "function",  "ipython",   "model", "human",     "gpt",
                                        "available_tools", "tool_response"};
    for (size_t i = 0; i < TN_COUNT_OF(roles); i++)
        if (strlen(roles[i]) == n && memcmp(roles[i], bytes, n) == 0)
            return true;
    return false;
}

struct tn_jvalue tn_chat_value(struct tn_pool *pool, const char *bytes, size_t n, bool is_role)
{
    return tn_j_text(pool, bytes, n, !(is_role && is_known_role(bytes, n)));
}

/* dict[key] = value; false if `value` or the entry could not be allocated. */
static bool set(struct tn_pool *pool, struct tn_jvalue dict, const char *key,
                struct tn_jvalue value)
{
    struct tn_jwork unbounded = {.steps_left = UINT64_MAX};
    struct tn_jvalue name = tn_j_text(pool, key, strlen(key), false);
    return dict.type == TN_J_DICT && name.type == TN_J_STRING && value.type != TN_J_UNDEFINED &&
           tn_j_dict_set(pool, dict.dict, name, value, &unbounded);
}

/* Model templates see an empty token as undefined, as in Hugging Face; built-in templates always
 * see text. */
static bool set_token(const struct tern_chat_template *t, struct tn_pool *pool,
                      struct tn_jvalue context, const char *key, const char *text)
{
    return !text || (!text[0] && t->jinja) ||
           set(pool, context, key, tn_j_text(pool, text, strlen(text), false));
}

tern_status tn_chat_render_context(const struct tern_chat_template *t, struct tn_pool *pool,
                                   struct tn_jvalue context, const struct tern_chat_params *params,
                                   char **text, size_t *n_text, unsigned char **user_map,
                                   struct tern_error *err)
{
    const struct tern_date *d = &params->date;
    struct tn_jinja_time now = {d->year, d->month, d->day, d->hour, d->minute, d->second};
    const struct tn_jinja_stop stop = {params->should_stop, params->arg};
    struct tn_buf rendered = {0}, user = {0};
    struct tn_jinja *built_in = NULL;
    if (!set_token(t, pool, context, "bos_token", params->bos ? params->bos : t->bos) ||
        !set_token(t, pool, context, "eos_token", params->eos ? params->eos : t->eos) ||
        !set(pool, context, "add_generation_prompt", tn_j_bool(params->add_generation_prompt)))
        return tn_fail(err, TERN_MEMORY, "not enough memory for the conversation");
    tern_status status =
        t->jinja ? TERN_OK : tn_jinja_parse(&built_in, t->source, strlen(t->source), err);
    if (status == TERN_OK)
        status = tn_jinja_render(t->jinja ? t->jinja : built_in, pool, context.dict,
                                 d->year ? &now : NULL, &stop, &rendered, &user, err);
    tn_jinja_free(built_in);
    tn_buf_text(&rendered);
    if (status == TERN_OK && (rendered.failed || !tn_buf_reserve(&user, 1)))
        status = tn_fail(err, TERN_MEMORY, "not enough memory for the conversation");
    if (status == TERN_OK)
        return return_text(&rendered, &user, text, n_text, user_map);
    tn_buf_fini(&rendered);
    tn_buf_fini(&user);
    return status;
}

/* Builds the context as Hugging Face does: {"messages": [{"role": ..., "content": ...}, ...],
 * "tools": None, "documents": None}. */
static struct tn_jvalue make_context(struct tn_pool *pool, const struct tern_message *messages,
                                     size_t n_messages)
{
    struct tn_jvalue context = tn_j_dict(pool, TN_J_DICT);
    struct tn_jvalue list = tn_j_list(pool, TN_J_LIST, n_messages);
    bool is_good = context.type == TN_J_DICT && list.type == TN_J_LIST;
    for (size_t i = 0; i < n_messages && is_good; i++) {
        const struct tern_message *m = &messages[i];
        struct tn_jvalue item = tn_j_dict(pool, TN_J_DICT);
        is_good = set(pool, item, "role", tn_chat_value(pool, m->role, m->n_role, true)) &&
                  set(pool, item, "content",
                      tn_chat_value(pool, m->content, m->n_content, false)) &&
                  tn_j_list_add(pool, list.list, item);
    }
    is_good = is_good && set(pool, context, "tools", tn_j_none()) &&
              set(pool, context, "documents", tn_j_none());
    return is_good && set(pool, context, "messages", list) ? context : (struct tn_jvalue){0};
}

tern_status tern_chat_render(const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             const struct tern_chat_params *params, char **text, size_t *n_text,
                             unsigned char **user_map, struct tern_error *err)
{
    struct tn_pool pool = {.max_bytes = TN_JINJA_MAX_MEMORY};
    *text = NULL;
    *n_text = 0;
    if (user_map)
        *user_map = NULL;
    struct tn_jvalue context = make_context(&pool, messages, n_messages);
    tern_status status =
        context.type == TN_J_DICT
            ? tn_chat_render_context(t, &pool, context, params, text, n_text, user_map, err)
            : tn_fail(err, pool.is_full ? TERN_LIMIT : TERN_MEMORY,
                      "no memory for %zu messages (limit %zu bytes)", n_messages, pool.max_bytes);
    tn_pool_fini(&pool);
    return status;
}

void tern_text_free(void *text)
{
    tn_free(text);
}

/* ---- encoding ---- */

/* Text of the first id that the post-processor adds; NULL: none. */
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

struct tern_chat_params tn_chat_with_bos(const struct tern_chat_params *params,
                                         const struct tern_tokenizer *tokenizer,
                                         char room[TN_MAX_BOS_BYTES])
{
    struct tern_chat_params with_bos = *params;
    if (!with_bos.bos)
        with_bos.bos = bos_text(tokenizer, room, TN_MAX_BOS_BYTES);
    return with_bos;
}

tern_status tn_chat_encode_text(const struct tern_tokenizer *tokenizer, char *text, size_t n_text,
                                unsigned char *user_map, struct tern_ids *out,
                                struct tern_error *err)
{
    size_t start = out->n;
    tern_status status = tn_tokenizer_encode_mapped(tokenizer, text, user_map, n_text, out, err);
    if (status == TERN_OK)
        status = tn_tokenizer_ensure_prefix(tokenizer, out, start, err);
    tern_text_free(text);
    tern_text_free(user_map);
    return status;
}

tern_status tern_chat_encode(const struct tern_tokenizer *tokenizer,
                             const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             const struct tern_chat_params *params, struct tern_ids *out,
                             struct tern_error *err)
{
    char *text, room[TN_MAX_BOS_BYTES];
    size_t n_text;
    unsigned char *user_map;
    struct tern_chat_params with_bos = tn_chat_with_bos(params, tokenizer, room);
    tern_status status =
        tern_chat_render(t, messages, n_messages, &with_bos, &text, &n_text, &user_map, err);
    return status == TERN_OK ? tn_chat_encode_text(tokenizer, text, n_text, user_map, out, err)
                             : status;
}

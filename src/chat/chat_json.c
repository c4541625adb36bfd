/* SPDX-License-Identifier: MIT
 *
 * Conversations as JSON: for `tern tokenize --chat` and for programs.
 *
 * JSON becomes the values that templates see.  Every string counts as user text, except the names
 * of known roles, so that no message can contain a special token.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json_load.h"
#include "base/json_object.h"
#include "tern/chat.h"
#include "text/chat.h"

#define MAX_MESSAGES 65536u

struct request {
    json_t *root;         /* owns all strings */
    const json_t *object; /* NULL: the root is the array of messages */
    const json_t *messages;
    struct tern_chat_params params;
};

/* ---- reading ---- */

static tern_status read_token(const char **out, const struct request *r, const char *key,
                              struct tern_error *err)
{
    const json_t *m = tn_json_member(r->object, key);
    if (m && !json_is_string(m))
        return tn_fail(err, TERN_USAGE, "\"%s\" must be a string", key);
    if (m)
        *out = json_string_value(m);
    return TERN_OK;
}

/* Is `text` a beginning of a date and time, with digits in the places of 0? */
static bool has_form(const char *text, size_t n)
{
    static const char form[] = "0000-00-00 00:00:00";
    for (size_t i = 0; i < n; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9'
                           : text[i] != form[i] && !(i == 10 && text[i] == 'T'))
            return false;
    return true;
}

bool tern_date_parse(struct tern_date *out, const char *text)
{
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    const size_t n = strlen(text);
    *out = (struct tern_date){0};
    if ((n != 10 && n != 19) || !has_form(text, n))
        return false;
    (void)sscanf(text, "%4d-%2d-%2d%*c%2d:%2d:%2d", &year, &month, &day, &hour, &minute, &second);
    if (year < 1 || month < 1 || month > 12 || day < 1 ||
        day > tn_date_days_in_month(year, (uint8_t)month) || hour > 23 || minute > 59 ||
        second > 59)
        return false;
    *out = (struct tern_date){year,          (uint8_t)month,  (uint8_t)day,
                              (uint8_t)hour, (uint8_t)minute, (uint8_t)second};
    return true;
}

static tern_status read_date(struct request *r, struct tern_error *err)
{
    const char *now = NULL;
    tern_status status = read_token(&now, r, "now", err);
    if (status == TERN_OK && now && !tern_date_parse(&r->params.date, now))
        return tn_fail(err, TERN_USAGE,
                       "\"now\" is \"%.40s\", not a date as YYYY-MM-DD or "
                       "YYYY-MM-DD HH:MM:SS",
                       now);
    return status;
}

/* Text, or content parts as an array or an object; a message with tool calls or reasoning may have
 * none. */
static bool has_content(const json_t *item)
{
    static const char *const instead[] = {"tool_calls", "reasoning_content", "reasoning",
                                          "thinking"};
    const json_t *content = tn_json_member(item, "content");
    if (content)
        return json_is_string(content) || json_is_array(content) || json_is_object(content);
    for (size_t i = 0; i < TN_COUNT_OF(instead); i++)
        if (tn_json_member(item, instead[i]))
            return true;
    return false;
}

static tern_status check_messages(const struct request *r, struct tern_error *err)
{
    size_t n = json_array_size(r->messages);
    if (!json_is_array(r->messages) || n > MAX_MESSAGES)
        return tn_fail(err, TERN_USAGE,
                       "the conversation must be a JSON array of at most %u messages, or an object "
                       "with \"messages\"",
                       MAX_MESSAGES);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(r->messages, i);
        if (!json_is_object(item) || !json_is_string(json_object_get(item, "role")))
            return tn_fail(err, TERN_USAGE, "message %zu: \"role\" must be a string", i);
        if (!has_content(item))
            return tn_fail(err, TERN_USAGE,
                           "message %zu: \"content\" must be a string, or parts of a message", i);
    }
    return TERN_OK;
}

static tern_status read_object(struct request *r, struct tern_error *err)
{
    const json_t *prompt = tn_json_member(r->object, "add_generation_prompt");
    const json_t *kwargs = tn_json_member(r->object, "kwargs");
    r->messages = json_object_get(r->object, "messages");
    if (prompt && !json_is_boolean(prompt))
        return tn_fail(err, TERN_USAGE, "\"add_generation_prompt\" must be true or false");
    if (kwargs && !json_is_object(kwargs))
        return tn_fail(err, TERN_USAGE, "\"kwargs\" must be an object");
    if (prompt)
        r->params.add_generation_prompt = json_is_true(prompt);
    tern_status status = read_token(&r->params.bos, r, "bos_token", err);
    if (status == TERN_OK)
        status = read_token(&r->params.eos, r, "eos_token", err);
    return status == TERN_OK ? read_date(r, err) : status;
}

static tern_status read_request(struct request *r, const char *json, size_t n,
                                const struct tern_chat_params *params, struct tern_error *err)
{
    *r = (struct request){.params = *params};
    struct tern_error why;
    tern_status status =
        tn_json_load(&r->root, "the conversation as JSON", json, n, JSON_ALLOW_NUL, &why);
    if (status != TERN_OK)
        return tn_fail(err, status == TERN_INPUT ? TERN_USAGE : status, "%s", why.detail);
    r->messages = r->root;
    if (json_is_object(r->root)) {
        r->object = r->root;
        status = read_object(r, err);
    }
    return status == TERN_OK ? check_messages(r, err) : status;
}

/* ---- values ---- */

static struct tn_jvalue to_value(struct tn_pool *pool, const json_t *json);

/* Appends a member that the dictionary does not have. */
static bool put(struct tn_pool *pool, struct tn_jvalue dict, const char *key, size_t n_key,
                struct tn_jvalue value)
{
    struct tn_jvalue name = tn_j_text(pool, key, n_key, true);
    return dict.type == TN_J_DICT && name.type == TN_J_STRING && value.type != TN_J_UNDEFINED &&
           tn_j_dict_add(pool, dict.dict, name, value);
}

/* Null members of a message or of the request are treated as absent. */
static struct tn_jvalue object_value(struct tn_pool *pool, const json_t *json, bool is_message)
{
    const char *key;
    size_t n_key;
    json_t *m;
    struct tn_jvalue dict = tn_j_dict(pool, TN_J_DICT);
    json_object_keylen_foreach((json_t *)json, key, n_key, m)
    {
        bool is_role = is_message && n_key == 4 && memcmp(key, "role", 4) == 0;
        if (is_message && json_is_null(m))
            continue;
        struct tn_jvalue value =
            is_role ? tn_chat_value(pool, json_string_value(m), json_string_length(m), true)
                    : to_value(pool, m);
        if (!put(pool, dict, key, n_key, value))
            return (struct tn_jvalue){0};
    }
    return dict;
}

static struct tn_jvalue array_value(struct tn_pool *pool, const json_t *json, bool of_messages)
{
    size_t n = json_array_size(json);
    struct tn_jvalue list = tn_j_list(pool, TN_J_LIST, n);
    for (size_t i = 0; i < n && list.type == TN_J_LIST; i++) {
        const json_t *m = json_array_get(json, i);
        struct tn_jvalue item = of_messages ? object_value(pool, m, true) : to_value(pool, m);
        if (item.type == TN_J_UNDEFINED || !tn_j_list_add(pool, list.list, item))
            return (struct tn_jvalue){0};
    }
    return list;
}

/* Undefined: out of memory, or nested too deeply (pool->is_deep). */
static struct tn_jvalue to_value(struct tn_pool *pool, const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return object_value(pool, json, false);
    case JSON_ARRAY:
        return array_value(pool, json, false);
    case JSON_STRING:
        return tn_j_text(pool, json_string_value(json), json_string_length(json), true);
    case JSON_INTEGER:
        return tn_j_int(json_integer_value(json));
    case JSON_REAL:
        return tn_j_float(json_real_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return tn_j_bool(json_is_true(json));
    default:
        return tn_j_none();
    }
}

/* Builds the template's variables: the members of kwargs, and unless one of them has the name,
 * messages, tools and documents (none if absent, as in Hugging Face). */
static struct tn_jvalue make_context(struct tn_pool *pool, const struct request *r)
{
    static const char *const optional[] = {"tools", "documents"};
    const json_t *kwargs = tn_json_member(r->object, "kwargs");
    struct tn_jvalue context = kwargs ? to_value(pool, kwargs) : tn_j_dict(pool, TN_J_DICT);
    bool is_good = json_object_get(kwargs, "messages") ||
                   put(pool, context, "messages", 8, array_value(pool, r->messages, true));
    for (size_t i = 0; i < TN_COUNT_OF(optional) && is_good; i++) {
        const json_t *given = tn_json_member(r->object, optional[i]);
        is_good = json_object_get(kwargs, optional[i]) ||
                  put(pool, context, optional[i], strlen(optional[i]),
                      given ? to_value(pool, given) : tn_j_none());
    }
    return is_good ? context : (struct tn_jvalue){0};
}

/* ---- rendering ---- */

static tern_status render_values(const struct tern_chat_template *t, const struct request *r,
                                 char **text, size_t *n_text, unsigned char **user_map,
                                 struct tern_error *err)
{
    struct tn_pool pool = {.max_bytes = TN_JINJA_MAX_MEMORY};
    struct tn_jvalue context = make_context(&pool, r);
    tern_status status;
    if (context.type == TN_J_DICT)
        status = tn_chat_render_context(t, &pool, context, &r->params, text, n_text, user_map, err);
    else if (pool.is_deep)
        status = tn_fail(err, TERN_LIMIT, "the conversation nests deeper than %u", TN_J_MAX_DEPTH);
    else
        status = tn_fail(err, pool.is_full ? TERN_LIMIT : TERN_MEMORY,
                         "no memory for the conversation (limit %zu bytes)", pool.max_bytes);
    tn_pool_fini(&pool);
    return status;
}

/* A member that published templates render and the built-in ones do not.  Ignoring it silently
 * would yield the ids of another conversation.  NULL: there is none. */
static const char *foreign_member(const json_t *item)
{
    static const char *const names[] = {"tool_calls", "reasoning_content"};
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        const json_t *m = tn_json_member(item, names[i]);
        if (m && !(json_is_array(m) && json_array_size(m) == 0))
            return names[i];
    }
    return NULL;
}

static tern_status read_plain_message(struct tern_message *out, const json_t *item, size_t i,
                                      struct tern_error *err)
{
    const json_t *role = json_object_get(item, "role"), *content = json_object_get(item, "content");
    const char *foreign = foreign_member(item);
    if (!json_is_string(content))
        return tn_fail(err, TERN_USAGE,
                       "message %zu: \"role\" and \"content\" must both be strings", i);
    if (foreign)
        return tn_fail(err, TERN_USAGE,
                       "message %zu: a built-in template supports \"role\" and \"content\", not "
                       "\"%s\"; the model's own template, or --template FILE, may",
                       i, foreign);
    *out = (struct tern_message){json_string_value(role), json_string_length(role),
                                 json_string_value(content), json_string_length(content)};
    return TERN_OK;
}

/* For a built-in template: messages with role and content only. */
static tern_status render_plain(const struct tern_chat_template *t, const struct request *r,
                                char **text, size_t *n_text, unsigned char **user_map,
                                struct tern_error *err)
{
    size_t n = json_array_size(r->messages);
    tern_status status = TERN_OK;
    if (tn_json_member(r->object, "tools") || json_object_size(tn_json_member(r->object, "kwargs")))
        return tn_fail(err, TERN_USAGE,
                       "a built-in template supports neither tools nor settings; the model's own "
                       "template, or --template FILE, may");
    struct tern_message *messages = tn_alloc_zeroed(n ? n : 1, sizeof *messages);
    if (!messages)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu messages", n);
    for (size_t i = 0; i < n && status == TERN_OK; i++)
        status = read_plain_message(&messages[i], json_array_get(r->messages, i), i, err);
    if (status == TERN_OK)
        status = tern_chat_render(t, messages, n, &r->params, text, n_text, user_map, err);
    tn_free(messages);
    return status;
}

tern_status tern_chat_render_json(const struct tern_chat_template *t, const char *json,
                                  size_t n_json, const struct tern_chat_params *params, char **text,
                                  size_t *n_text, unsigned char **user_map, struct tern_error *err)
{
    struct request r;
    *text = NULL;
    *n_text = 0;
    if (user_map)
        *user_map = NULL;
    tern_status status = read_request(&r, json, n_json, params, err);
    if (status == TERN_OK)
        status = (t->jinja ? render_values : render_plain)(t, &r, text, n_text, user_map, err);
    json_decref(r.root);
    return status;
}

tern_status tern_chat_encode_json_within(const struct tern_tokenizer *tokenizer,
                                         const struct tern_chat_template *t, const char *json,
                                         size_t n_json, const struct tern_chat_params *params,
                                         size_t max_ids, size_t *n_least, struct tern_ids *out,
                                         struct tern_error *err)
{
    char *text, room[TN_MAX_BOS_BYTES];
    size_t n_text;
    unsigned char *user_map;
    struct tern_chat_params with_bos = tn_chat_with_bos(params, tokenizer, room);
    *n_least = 0;
    tern_status status =
        tern_chat_render_json(t, json, n_json, &with_bos, &text, &n_text, &user_map, err);
    if (status != TERN_OK)
        return status;
    const size_t n = tern_tokenizer_min_ids(tokenizer, n_text);
    if (n <= max_ids)
        return tn_chat_encode_text(tokenizer, text, n_text, user_map, out, err);
    tern_text_free(text);
    tern_text_free(user_map);
    *n_least = n;
    return tn_fail(err, TERN_LIMIT, "the prompt has at least %zu ids; at most %zu fit", n, max_ids);
}

tern_status tern_chat_encode_json(const struct tern_tokenizer *tokenizer,
                                  const struct tern_chat_template *t, const char *json,
                                  size_t n_json, const struct tern_chat_params *params,
                                  struct tern_ids *out, struct tern_error *err)
{
    size_t n_least;
    return tern_chat_encode_json_within(tokenizer, t, json, n_json, params, SIZE_MAX, &n_least,
                                        out, err);
}

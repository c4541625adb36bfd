/* SPDX-License-Identifier: MIT
 *
 * Finds where later conversations are likely to diverge from this one, which is where caching state
 * pays off.
 *
 * Renders shorter conversations and compares ids, so it works with any template.
 */
#include <jansson.h>
#include <string.h>

#include "base/json_dump.h"
#include "base/json_load.h"
#include "tern/chat.h"

/* Number of ids that a conversation with other messages shares with `ids`; 0: the template refuses
 * it. */
static uint32_t common(const struct tern_tokenizer *tokenizer, const struct tern_chat_template *t,
                       json_t *object, const struct tern_chat_params *params,
                       const struct tern_ids *ids)
{
    struct tern_ids other = {0};
    uint32_t n = 0;
    struct tn_buf text = {0};
    if (tn_json_dump(&text, object) && tern_chat_encode_json(tokenizer, t, text.data, text.n_bytes,
                                                             params, &other, NULL) == TERN_OK)
        while (n < other.n && n < ids->n && other.ids[n] == ids->ids[n])
            n++;
    tern_ids_free(&other);
    tn_buf_fini(&text);
    return n;
}

static bool is_user(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "user") == 0;
}

/* A new array of the first n messages. */
static json_t *first_messages(const json_t *messages, size_t n)
{
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append(out, json_array_get(messages, i));
    return out;
}

void tern_chat_marks_json(struct tern_chat_marks *out, const struct tern_tokenizer *tokenizer,
                          const struct tern_chat_template *t, const char *json, size_t n_json,
                          const struct tern_chat_params *params, const struct tern_ids *ids)
{
    json_t *object;
    struct tern_chat_params no_answer = *params;
    no_answer.add_generation_prompt = false;
    *out = (struct tern_chat_marks){0};
    if (tn_json_load(&object, "conversation", json, n_json, JSON_ALLOW_NUL, NULL) != TERN_OK)
        return;
    json_t *messages = json_incref(json_object_get(object, "messages"));
    size_t first = 0, end = json_array_size(messages);
    const size_t n = end;
    while (first < n && !is_user(json_array_get(messages, first)))
        first++;
    while (end > 0 && !is_user(json_array_get(messages, end - 1)))
        end--;
    (void)json_object_del(object, "add_generation_prompt");
    if (end > 0) {
        (void)json_object_set_new(object, "messages", first_messages(messages, end));
        out->n_turn = common(tokenizer, t, object, &no_answer, ids);
        json_t *any = first_messages(messages, first);
        (void)json_array_append_new(any, json_pack("{s:s,s:s}", "role", "user", "content", "x"));
        (void)json_object_set_new(object, "messages", any);
        out->n_system = common(tokenizer, t, object, &no_answer, ids);
    }
    json_decref(messages);
    json_decref(object);
}

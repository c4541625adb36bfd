/* SPDX-License-Identifier: MIT
 *
 * Rewrites conversations for templates that accept a system message only at the beginning.
 *
 * The messages that become one are found first, so that each text is copied once.
 */
#include "server/late_system.h"

#include "base/buf.h"
#include "server/json_body.h"

static bool has_role(const json_t *messages, size_t i, const char *role)
{
    return tn_json_has_role(json_array_get(messages, i), role);
}

bool tn_late_system_exists(const json_t *messages)
{
    for (size_t i = 1; i < json_array_size(messages); i++)
        if (has_role(messages, i, "system"))
            return true;
    return false;
}

/* A message of this role with the texts of the messages [begin, end). */
static json_t *join(const json_t *messages, size_t begin, size_t end, const char *role)
{
    struct tn_buf text = {0};
    for (size_t i = begin; i < end; i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        const size_t n = json_string_length(content);
        tn_buf_append_text(&text, text.n_bytes > 0 && n > 0 ? "\n\n" : "");
        tn_buf_append(&text, json_string_value(content), n);
    }
    json_t *message = json_object();
    const bool is_good =
        !text.failed && json_object_set_new(message, "role", json_string(role)) == 0 &&
        json_object_set_new(message, "content",
                            json_stringn(tn_buf_bytes(&text), text.n_bytes)) == 0;
    tn_buf_fini(&text);
    if (is_good)
        return message;
    json_decref(message);
    return NULL;
}

/* The end of the messages from i on that become one; i: message i stays unchanged. */
static size_t end_of_run(const json_t *messages, size_t i, size_t n_leading)
{
    size_t end = i;
    if (i < n_leading)
        return n_leading;
    while (has_role(messages, end, "system") || has_role(messages, end, "user"))
        end++;
    return end;
}

json_t *tn_late_system_join(const json_t *messages)
{
    json_t *joined = json_array();
    size_t n_leading = 0;
    while (has_role(messages, n_leading, "system"))
        n_leading++;
    for (size_t i = 0; i < json_array_size(messages);) {
        const size_t end = end_of_run(messages, i, n_leading);
        json_t *message = end > i ? join(messages, i, end, i < n_leading ? "system" : "user")
                                  : json_incref(json_array_get(messages, i));
        if (json_array_append_new(joined, message) != 0) {
            json_decref(joined);
            return NULL;
        }
        i = end > i ? end : i + 1;
    }
    return joined;
}

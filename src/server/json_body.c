/* SPDX-License-Identifier: MIT
 *
 * Reads members of a request's JSON with types and limits.
 *
 * Every error names the member and its allowed values.
 */
#include "server/json_body.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

bool tn_refuse(struct tn_refusal *r, int status, const char *param, const char *format, ...)
{
    va_list args;
    *r = (struct tn_refusal){.status = status};
    if (param)
        snprintf(r->param, sizeof r->param, "%s", param);
    va_start(args, format);
    vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
    tn_utf8_make_printable(r->message);
    return false;
}

bool tn_refuse_memory(struct tn_refusal *r)
{
    return tn_refuse(r, 503, NULL, "no memory for the request");
}

void tn_refuse_error(struct tn_refusal *out, const struct tern_error *err)
{
    static const struct {
        tern_status status;
        int http;
    } map[] = {{TERN_USAGE, 400}, {TERN_LIMIT, 400}, {TERN_MEMORY, 503}, {TERN_BUSY, 503}};
    int status = 500;
    for (size_t i = 0; i < TN_COUNT_OF(map); i++)
        if (map[i].status == err->status)
            status = map[i].http;
    tn_refuse(out, status, NULL, "%s",
              err->detail[0] ? err->detail : tern_status_text(err->status));
}

/* Memory of jansson besides characters, on 64-bit systems with 16 bytes of heap per block: a member
 * with its name; a value and its slot in a growing array; an empty array or object with its first
 * slots. */
#define MEMBER_BYTES 96u
#define VALUE_BYTES 96u
#define LIST_BYTES 144u
#define OBJECT_BYTES 320u

static size_t bound_of_mark(char c)
{
    switch (c) {
    case ',':
        return VALUE_BYTES;
    case ':':
        return MEMBER_BYTES;
    case '[':
        return VALUE_BYTES + LIST_BYTES;
    case '{':
        return VALUE_BYTES + OBJECT_BYTES;
    default:
        return 0;
    }
}

size_t tn_json_body_bound(const char *bytes, size_t n)
{
    size_t bound = n + VALUE_BYTES;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '"')
            in_string = !in_string;
        else if (in_string)
            i += bytes[i] == '\\';
        else
            bound += bound_of_mark(bytes[i]);
    }
    return bound;
}

json_t *tn_json_body_read(const char *bytes, size_t n, struct tn_json_wide *seed,
                          struct tn_refusal *r)
{
    static const char name[] = "the body";
    struct tern_error err;
    json_t *root = NULL;
    bytes = bytes ? bytes : "";
    if (n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark */
        bytes += 3;
        n -= 3;
    }
    /* Whole numbers beyond 64 bits are harmless where nothing reads them; a field with limits
     * refuses them by name. */
    seed->name = "seed";
    tern_status status = tn_json_load_wide(&root, seed, name, bytes, n, JSON_ALLOW_NUL, &err);
    if (status != TERN_OK)
        tn_refuse(r, status == TERN_MEMORY ? 503 : 400, NULL, "%s", err.detail);
    else if (!json_is_object(root))
        tn_refuse(r, 400, NULL, "the body must be a JSON object");
    else
        return root;
    json_decref(root);
    return NULL;
}

static bool is_word(const json_t *value, const char *word)
{
    const char *text = json_string_value(value);
    return text && strcmp(text, word) == 0;
}

bool tn_json_has_type(const json_t *object, const char *type)
{
    return is_word(json_object_get(object, "type"), type);
}

bool tn_json_has_role(const json_t *message, const char *role)
{
    return is_word(json_object_get(message, "role"), role);
}

json_t *tn_json_copy(const json_t *value, struct tn_refusal *r)
{
    json_t *copy = json_deep_copy(value);
    if (copy && json_equal(copy, value)) /* jansson silently omits members when out of memory */
        return copy;
    json_decref(copy);
    tn_refuse_memory(r);
    return NULL;
}

bool tn_json_put(json_t *object, const char *key, json_t *value, struct tn_refusal *r)
{
    return json_object_set_new(object, key, value) == 0 || tn_refuse_memory(r);
}

bool tn_json_get_bool(const json_t *object, const char *key, bool *out, struct tn_refusal *r)
{
    const json_t *value = tn_json_member(object, key);
    if (value && !json_is_boolean(value))
        return tn_refuse(r, 400, key, "\"%s\" must be true or false", key);
    if (value)
        *out = json_is_true(value);
    return true;
}

bool tn_json_get_text(const json_t *object, const char *key, const char **out, size_t *n,
                      struct tn_refusal *r)
{
    const json_t *value = tn_json_member(object, key);
    if (value && !json_is_string(value))
        return tn_refuse(r, 400, key, "\"%s\" must be a string", key);
    if (value && !n && strlen(json_string_value(value)) != json_string_length(value))
        return tn_refuse(r, 400, key, "\"%s\" must not contain the character NUL", key);
    if (value) {
        *out = json_string_value(value);
        if (n)
            *n = json_string_length(value);
    }
    return true;
}

bool tn_json_get_real(const json_t *object, const char *key, double low, double high, float *out,
                      struct tn_refusal *r)
{
    const json_t *value = tn_json_member(object, key);
    if (!value)
        return true;
    double x = json_number_value(value);
    if (!json_is_number(value) || !(x >= low && x <= high))
        return tn_refuse(r, 400, key, "\"%s\" must be a number from %g to %g", key, low, high);
    *out = (float)x;
    return true;
}

bool tn_json_is_whole(const json_t *value, double *out)
{
    *out = json_number_value(value);
    return json_is_number(value) && *out == floor(*out);
}

bool tn_json_get_count(const json_t *object, const char *key, double low, double high,
                       double *out, struct tn_refusal *r)
{
    const json_t *value = tn_json_member(object, key);
    double x;
    if (!value)
        return true;
    const bool is_good = tn_json_is_whole(value, &x) && x >= low && x <= high;
    if (!is_good && high == TN_JSON_NO_LIMIT)
        return tn_refuse(r, 400, key, "\"%s\" must be a whole number, %.0f or more", key, low);
    if (!is_good && low == high)
        return tn_refuse(r, 400, key, "\"%s\" must be %.0f", key, low);
    if (!is_good)
        return tn_refuse(r, 400, key, "\"%s\" must be a whole number from %.0f to %.0f", key, low,
                         high);
    *out = x;
    return true;
}

bool tn_json_take_ids(const json_t *list, const char *key, uint32_t n_vocab, struct tern_ids *out,
                      struct tn_refusal *r)
{
    const size_t n = json_array_size(list);
    out->ids = tn_alloc((n + 1) * sizeof *out->ids);
    if (!out->ids)
        return tn_refuse_memory(r);
    out->capacity = n + 1;
    for (size_t i = 0; i < n; i++) {
        double id;
        if (!tn_json_is_whole(json_array_get(list, i), &id) || id < 0 || id >= n_vocab)
            return tn_refuse(r, 400, key, "\"%s\": token %zu is not an id below %u", key, i,
                             n_vocab);
        out->ids[out->n++] = (uint32_t)id;
    }
    return true;
}

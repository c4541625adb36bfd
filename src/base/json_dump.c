/* SPDX-License-Identifier: MIT
 *
 * Writes JSON values.  jansson writes strings, integers and constants; real numbers are written
 * here, because jansson has one fixed precision for all of them.
 */
#include "base/json_dump.h"

#include "base/float_text.h"

static int append(const char *bytes, size_t n, void *out)
{
    return tn_buf_append(out, bytes, n) ? 0 : -1;
}

static bool dump_simple(struct tn_buf *out, const json_t *value)
{
    char number[TN_FLOAT_TEXT];
    if (json_is_real(value))
        return tn_buf_append_text(out, tn_float_text(number, json_real_value(value)));
    return json_dump_callback(value, append, out, JSON_ENCODE_ANY) == 0;
}

static bool dump_array(struct tn_buf *out, const json_t *array)
{
    bool is_good = tn_buf_append(out, "[", 1);
    for (size_t i = 0; i < json_array_size(array) && is_good; i++)
        is_good = (i == 0 || tn_buf_append(out, ",", 1)) &&
                  tn_json_dump(out, json_array_get(array, i));
    return is_good && tn_buf_append(out, "]", 1);
}

static bool dump_key(struct tn_buf *out, const char *name)
{
    json_t *key = json_string_nocheck(name);
    const bool is_good = key && dump_simple(out, key) && tn_buf_append(out, ":", 1);
    json_decref(key);
    return is_good;
}

static bool dump_object(struct tn_buf *out, const json_t *value)
{
    json_t *object = (json_t *)value; /* jansson's iterators are not const-correct */
    bool is_good = tn_buf_append(out, "{", 1), is_first = true;
    for (void *i = json_object_iter(object); i && is_good; i = json_object_iter_next(object, i)) {
        is_good = (is_first || tn_buf_append(out, ",", 1)) &&
                  dump_key(out, json_object_iter_key(i)) &&
                  tn_json_dump(out, json_object_iter_value(i));
        is_first = false;
    }
    return is_good && tn_buf_append(out, "}", 1);
}

bool tn_json_dump(struct tn_buf *out, const json_t *value)
{
    const bool is_good = json_is_object(value)  ? dump_object(out, value)
                         : json_is_array(value) ? dump_array(out, value)
                                                : dump_simple(out, value);
    out->failed = out->failed || !is_good;
    return is_good;
}

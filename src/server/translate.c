/* SPDX-License-Identifier: MIT
 *
 * What translations share.
 */
#include "server/translate.h"

void tn_translation_set(struct tn_translation *t, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        t->failed = true;
}

void tn_translation_add(struct tn_translation *t, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        t->failed = true;
}

void tn_translation_share(struct tn_translation *t, json_t *object, const char *key,
                          const json_t *from, const char *from_key)
{
    const json_t *value = tn_json_member(from, from_key);
    if (value)
        tn_translation_set(t, object, key, json_incref((json_t *)value));
}

json_t *tn_translation_function(struct tn_translation *t, const json_t *from)
{
    json_t *o = json_object(), *function = json_object();
    tn_translation_share(t, function, "name", from, "name");
    tn_translation_set(t, o, "type", json_string("function"));
    tn_translation_set(t, o, "function", function);
    return o;
}

json_t *tn_translation_tool(struct tn_translation *t, const json_t *tool, const char *schema_key)
{
    json_t *o = tn_translation_function(t, tool), *function = json_object_get(o, "function");
    tn_translation_share(t, function, "description", tool, "description");
    tn_translation_share(t, function, "parameters", tool, schema_key);
    return o;
}

json_t *tn_translation_call(struct tn_translation *t, const json_t *call, const char *id_key,
                            const char *arguments_key)
{
    json_t *o = tn_translation_function(t, call);
    tn_translation_share(t, o, "id", call, id_key);
    tn_translation_share(t, json_object_get(o, "function"), "arguments", call, arguments_key);
    return o;
}

json_t *tn_translation_end(const struct tn_translation *t, json_t *value, struct tn_refusal *r)
{
    if (value && !t->failed)
        return value;
    json_decref(value);
    tn_refuse(r, 503, NULL, "no memory for the request");
    return NULL;
}

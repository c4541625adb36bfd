/* SPDX-License-Identifier: MIT
 *
 * Reads and copies members of JSON objects, and searches arrays.  jansson's json_copy,
 * json_deep_copy and json_object_update_missing omit members without an error when memory runs out.
 */
#ifndef TN_JSON_OBJECT_H
#define TN_JSON_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/* A member that is present and not null, or NULL. */
static inline const json_t *tn_json_member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value) ? value : NULL;
}

/* Adds the members of `from` whose names `object` lacks; the values are shared.  `from` may be
 * NULL: no members.  false: `object` is NULL, or out of memory, and some may have been added. */
static inline bool tn_json_add_missing(json_t *object, const json_t *from)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)from, name, value) {
        if (!json_object_get(object, name) && json_object_set(object, name, value) != 0)
            return false;
    }
    return object != NULL;
}

/* Does an array contain this string?  false if it is no array. */
static inline bool tn_json_list_has(const json_t *list, const char *word)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && strcmp(text, word) == 0)
            return true;
    }
    return false;
}

#endif

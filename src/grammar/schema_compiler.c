/* SPDX-License-Identifier: MIT
 *
 * Helpers of the schema compiler: refusals with a JSON path, keyword checks, the list of rules.
 *
 * schema.c and schema_object.c call them.
 */
#include "grammar/schema_compiler.h"

#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/text_match.h"
#include "grammar/schema_merge.h"

/* ---- refusing ---- */

bool tn_schema_refuse_as_said(struct tn_schema_compiler *c, tern_status status)
{
    struct tn_buf path = {0};
    tn_schema_path(&path, &c->list, c->at);
    tn_fail_prefix(c->err, tn_buf_text(&path));
    tn_buf_fini(&path);
    c->status = status;
    return false;
}

bool tn_schema_refuse(struct tn_schema_compiler *c, tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_vfail(c->err, status, format, args);
    va_end(args);
    return tn_schema_refuse_as_said(c, status);
}

/* ---- keywords ---- */

bool tn_schema_says_nothing(const json_t *s)
{
    json_t *object = (json_t *)s; /* jansson's iterators are not const-correct */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
        if (!tn_schema_is_annotation(json_object_iter_key(i)))
            return false;
    return true;
}

bool tn_schema_check_words(struct tn_schema_compiler *c, const json_t *s, const char *const *list,
                           size_t n, const char *beside)
{
    json_t *object = (json_t *)s; /* jansson's iterators are not const-correct */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const char *word = json_object_iter_key(i);
        if (!tn_schema_is_annotation(word) && !tn_text_is_one_of(word, list, n))
            return tn_schema_refuse(c, TERN_UNSUPPORTED, "\"%.60s\" is not supported%s", word,
                                    beside);
    }
    return true;
}

/* ---- subschemas ---- */

uint32_t tn_schema_rule_of(struct tn_schema_compiler *c, const json_t *json, const char *keyword,
                           const char *name, uint32_t index)
{
    const struct tn_subschema s = {.json = json, .parent = c->at, .keyword = keyword,
                                   .name = name, .index = index};
    const uint32_t i = tn_schema_list_add(&c->list, c->g, &s);
    return c->g->failed ? 0 : c->list.items[i].start;
}

bool tn_schema_keep(struct tn_schema_compiler *c, json_t *made)
{
    if (!c->made)
        c->made = json_array();
    if (made && json_array_append_new(c->made, made) == 0)
        return true;
    c->g->failed = TERN_MEMORY;
    return false;
}

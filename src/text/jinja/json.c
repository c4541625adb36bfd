/* SPDX-License-Identifier: MIT
 *
 * tojson: writes values as Python's json.dumps does, with ensure_ascii=False by default.
 *
 * The output keeps the marks of the strings, so text of a user stays text of a user.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/jinja/eval.h"

struct writer {
    struct tn_jrun *run;
    struct tn_jsink sink;
    int64_t indent; /* below 0: on one line */
    int64_t level;
    bool sorts_keys;
    bool ascii_only;
    const struct tn_jstring *item_separator;
    const struct tn_jstring *key_separator;
};

static void put_json(struct writer *w, struct tn_jvalue v);

/* Writes the escape of a character: two of them beyond U+FFFF. */
static void put_character(struct writer *w, uint32_t c)
{
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char escape[16];
    const char *simple = c ? strchr(from, c < 0x80 ? (int)c : 0x7F) : NULL;
    if (simple)
        snprintf(escape, sizeof escape, "\\%c", to[simple - from]);
    else if (c < 0x10000)
        snprintf(escape, sizeof escape, "\\u%04" PRIx32, c);
    else
        snprintf(escape, sizeof escape, "\\u%04" PRIx32 "\\u%04" PRIx32,
                 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
    tn_jsink_puts(w->run, &w->sink, escape);
}

static void put_text(struct writer *w, const struct tn_jstring *s)
{
    const uint32_t limit = w->ascii_only ? 0x7F : UINT32_MAX;
    size_t begin = 0;
    tn_jsink_puts(w->run, &w->sink, "\"");
    for (size_t i = 0, length; i < s->n && w->run->status == TERN_OK; i += length) {
        uint32_t c;
        length = tn_utf8_next(s->bytes + i, s->n - i, &c);
        if (c == TN_NOT_UTF8 || (c >= 0x20 && c != '"' && c != '\\' && c < limit))
            continue;
        tn_jsink_put_string(w->run, &w->sink, s, begin, i);
        put_character(w, c);
        begin = i + length;
    }
    tn_jsink_put_string(w->run, &w->sink, s, begin, s->n);
    tn_jsink_puts(w->run, &w->sink, "\"");
}

static void new_line(struct writer *w)
{
    if (w->indent < 0)
        return;
    tn_jsink_puts(w->run, &w->sink, "\n");
    for (int64_t i = 0; i < w->indent * w->level && w->run->status == TERN_OK; i++)
        tn_jsink_puts(w->run, &w->sink, " ");
}

static void put_separator(struct writer *w, const struct tn_jstring *s)
{
    tn_jsink_put_string(w->run, &w->sink, s, 0, s->n);
}

static void put_list(struct writer *w, const struct tn_jlist *list)
{
    tn_jsink_puts(w->run, &w->sink, "[");
    w->level++;
    for (size_t i = 0; i < list->n && w->run->status == TERN_OK; i++) {
        if (i)
            put_separator(w, w->item_separator);
        new_line(w);
        put_json(w, list->items[i]);
    }
    w->level--;
    if (list->n)
        new_line(w);
    tn_jsink_puts(w->run, &w->sink, "]");
}

/* Converts a key to a string, as Python does. */
static void put_key(struct writer *w, struct tn_jvalue key)
{
    if (key.type == TN_J_STRING) {
        put_text(w, key.string);
        return;
    }
    if (!tn_j_is_number(key) && key.type != TN_J_NONE) {
        tn_jrun_fail(w->run, TERN_USAGE, "a %s cannot be a key of JSON", tn_j_type_name(key));
        return;
    }
    tn_jsink_puts(w->run, &w->sink, "\"");
    put_json(w, key);
    tn_jsink_puts(w->run, &w->sink, "\"");
}

/* The pair after `last` in sorted order; NULL: none. */
static const struct tn_jpair *next_pair(struct writer *w, const struct tn_jdict *dict,
                                        const struct tn_jpair *last)
{
    const struct tn_jpair *best = NULL;
    for (size_t i = 0; i < dict->n; i++) {
        int order = 1;
        const struct tn_jpair *pair = &dict->pairs[i];
        if (last && !tn_j_compare(pair->key, last->key, &order, &w->run->work))
            tn_jrun_fail(w->run, TERN_USAGE, "keys of several types cannot be sorted");
        if (order <= 0)
            continue;
        if (best && tn_j_compare(pair->key, best->key, &order, &w->run->work) && order >= 0)
            continue;
        best = pair;
    }
    return tn_jrun_step(w->run, dict->n) ? best : NULL;
}

static void put_dict(struct writer *w, const struct tn_jdict *dict)
{
    const struct tn_jpair *pair = NULL;
    tn_jsink_puts(w->run, &w->sink, "{");
    w->level++;
    for (size_t i = 0; i < dict->n && w->run->status == TERN_OK; i++) {
        pair = w->sorts_keys ? next_pair(w, dict, pair) : &dict->pairs[i];
        if (!pair)
            break;
        if (i)
            put_separator(w, w->item_separator);
        new_line(w);
        put_key(w, pair->key);
        put_separator(w, w->key_separator);
        put_json(w, pair->value);
    }
    w->level--;
    if (dict->n)
        new_line(w);
    tn_jsink_puts(w->run, &w->sink, "}");
}

static void put_number(struct writer *w, double x, struct tn_jvalue v)
{
    if (v.type == TN_J_FLOAT && !isfinite(x))
        tn_jsink_puts(w->run, &w->sink, isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
    else
        tn_jsink_put_str(w->run, &w->sink, v);
}

static void put_json(struct writer *w, struct tn_jvalue v)
{
    switch (v.type) {
    case TN_J_NONE:
        tn_jsink_puts(w->run, &w->sink, "null");
        break;
    case TN_J_BOOL:
        tn_jsink_puts(w->run, &w->sink, v.boolean ? "true" : "false");
        break;
    case TN_J_INT:
    case TN_J_FLOAT:
        put_number(w, tn_j_real(v), v);
        break;
    case TN_J_STRING:
        put_text(w, v.string);
        break;
    case TN_J_LIST:
    case TN_J_TUPLE:
        put_list(w, v.list);
        break;
    case TN_J_DICT:
        put_dict(w, v.dict);
        break;
    default:
        tn_jrun_fail(w->run, TERN_USAGE, "a value of type %s cannot be written as JSON",
                     tn_j_type_name(v));
    }
}

/* Reads separators=(',', ':'). */
static void read_separators(struct writer *w, const struct tn_jargs *args)
{
    const struct tn_jvalue *given = tn_jargs_get(args, 2, "separators");
    if (!given || given->type == TN_J_NONE)
        return;
    if ((given->type != TN_J_LIST && given->type != TN_J_TUPLE) || given->list->n != 2) {
        tn_jrun_fail(w->run, TERN_USAGE, "separators of tojson must be two strings");
        return;
    }
    w->item_separator = tn_jrun_string(w->run, given->list->items[0], "a separator");
    w->key_separator = tn_jrun_string(w->run, given->list->items[1], "a separator");
}

struct tn_jvalue tn_jrun_to_json(struct tn_jrun *run, const struct tn_jargs *args)
{
    static const struct tn_jstring comma_blank = {", ", NULL, 2}, comma = {",", NULL, 1},
                                   colon = {": ", NULL, 2};
    struct tn_jvalue indent = tn_jargs_or(args, 1, "indent", tn_j_none());
    struct writer w = {.run = run, .indent = -1, .key_separator = &colon};
    if (indent.type != TN_J_NONE)
        w.indent = TN_MAX(tn_jrun_integer(run, indent, "indent"), 0);
    w.item_separator = w.indent < 0 ? &comma_blank : &comma;
    w.ascii_only = tn_j_is_true(tn_jargs_or(args, 0, "ensure_ascii", tn_j_bool(false)));
    w.sorts_keys = tn_j_is_true(tn_jargs_or(args, 3, "sort_keys", tn_j_bool(false)));
    read_separators(&w, args);
    put_json(&w, args->self);
    return tn_jsink_take(run, &w.sink);
}

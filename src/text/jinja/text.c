/* SPDX-License-Identifier: MIT
 *
 * Converts values to text: str() and repr() as Python writes them, and the sinks that collect
 * output with its marks.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_text.h"
#include "text/jinja/eval.h"
#include "text/unicode.h"

/* ---- sinks ---- */

void tn_jsink_put(struct tn_jrun *run, struct tn_jsink *sink, const char *bytes,
                  const uint8_t *marks, size_t n)
{
    if (n == 0 || !tn_jrun_step(run, 1 + n / 16))
        return;
    if (n > TN_JINJA_MAX_OUTPUT - sink->text.n_bytes) {
        tn_jrun_fail(run, TERN_LIMIT, "the text is longer than %zu bytes", TN_JINJA_MAX_OUTPUT);
        return;
    }
    if (!tn_buf_append(&sink->text, bytes, n) || !tn_buf_reserve(&sink->marks, n)) {
        tn_jrun_fail(run, TERN_MEMORY, "no memory for a text of %zu bytes", sink->text.n_bytes + n);
        return;
    }
    char *to = sink->marks.data + sink->marks.n_bytes;
    if (marks)
        memcpy(to, marks, n);
    else
        memset(to, 0, n);
    sink->marks.n_bytes += n;
}

void tn_jsink_puts(struct tn_jrun *run, struct tn_jsink *sink, const char *text)
{
    tn_jsink_put(run, sink, text, NULL, strlen(text));
}

void tn_jsink_put_string(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jstring *s,
                         size_t begin, size_t end)
{
    tn_jsink_put(run, sink, s->bytes + begin, s->marks ? s->marks + begin : NULL, end - begin);
}

void tn_jsink_fini(struct tn_jsink *sink)
{
    tn_buf_fini(&sink->text);
    tn_buf_fini(&sink->marks);
}

struct tn_jvalue tn_jsink_take(struct tn_jrun *run, struct tn_jsink *sink)
{
    size_t n = sink->text.n_bytes;
    char *bytes = tn_jrun_take(run, n + 1);
    uint8_t *marks = tn_jrun_take(run, n + 1);
    struct tn_jvalue v = {0};
    if (bytes && marks) {
        if (n) {
            memcpy(bytes, sink->text.data, n);
            memcpy(marks, sink->marks.data, n);
        }
        v = tn_jrun_made(run, tn_j_view(run->pool, bytes, marks, n));
    }
    tn_jsink_fini(sink);
    return v;
}

struct tn_jvalue tn_jrun_part(struct tn_jrun *run, const struct tn_jstring *s, size_t begin,
                              size_t end)
{
    return tn_jrun_made(run, tn_j_view(run->pool, s->bytes + begin,
                                       s->marks ? s->marks + begin : NULL, end - begin));
}

struct tn_jvalue tn_jrun_text(struct tn_jrun *run, const char *text)
{
    return tn_jrun_made(run, tn_j_text(run->pool, text, strlen(text), false));
}

/* ---- repr ---- */

/* Python's choice of quotes: single ones, unless the string contains only those. */
static char quote_of(const struct tn_jstring *s)
{
    return memchr(s->bytes, '\'', s->n) && !memchr(s->bytes, '"', s->n) ? '"' : '\'';
}

/* Writes one character of a quoted string. */
static void put_escaped(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jstring *s,
                        size_t at, size_t length, uint32_t c, char quote)
{
    char escape[16];
    const char *simple = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
    if (simple)
        snprintf(escape, sizeof escape, "%s", simple);
    else if (c == '\\' || c == (uint32_t)quote)
        snprintf(escape, sizeof escape, "\\%c", (int)c);
    else if (tn_char_is_printable(c)) {
        tn_jsink_put_string(run, sink, s, at, at + length);
        return;
    } else
        snprintf(escape, sizeof escape,
                 c < 0x100     ? "\\x%02" PRIx32
                 : c < 0x10000 ? "\\u%04" PRIx32
                               : "\\U%08" PRIx32,
                 c);
    tn_jsink_puts(run, sink, escape);
}

static void put_quoted(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jstring *s)
{
    char quote[2] = {s->n ? quote_of(s) : '\'', '\0'};
    tn_jsink_puts(run, sink, quote);
    for (size_t i = 0; i < s->n && run->status == TERN_OK;) {
        uint32_t c;
        size_t length = tn_utf8_next(s->bytes + i, s->n - i, &c);
        put_escaped(run, sink, s, i, length, c, quote[0]);
        i += length;
    }
    tn_jsink_puts(run, sink, quote);
}

static void put_items(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jlist *list)
{
    for (size_t i = 0; i < list->n && run->status == TERN_OK; i++) {
        if (i)
            tn_jsink_puts(run, sink, ", ");
        tn_jsink_put_repr(run, sink, list->items[i]);
    }
}

static void put_pairs(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jdict *dict)
{
    tn_jsink_puts(run, sink, "{");
    for (size_t i = 0; i < dict->n && run->status == TERN_OK; i++) {
        if (i)
            tn_jsink_puts(run, sink, ", ");
        tn_jsink_put_repr(run, sink, dict->pairs[i].key);
        tn_jsink_puts(run, sink, ": ");
        tn_jsink_put_repr(run, sink, dict->pairs[i].value);
    }
    tn_jsink_puts(run, sink, "}");
}

void tn_jsink_put_repr(struct tn_jrun *run, struct tn_jsink *sink, struct tn_jvalue v)
{
    switch (v.type) {
    case TN_J_STRING:
        put_quoted(run, sink, v.string);
        break;
    case TN_J_UNDEFINED:
        tn_jsink_puts(run, sink, "Undefined");
        break;
    case TN_J_LIST:
        tn_jsink_puts(run, sink, "[");
        put_items(run, sink, v.list);
        tn_jsink_puts(run, sink, "]");
        break;
    case TN_J_TUPLE:
        tn_jsink_puts(run, sink, "(");
        put_items(run, sink, v.list);
        tn_jsink_puts(run, sink, v.list->n == 1 ? ",)" : ")");
        break;
    case TN_J_DICT:
        put_pairs(run, sink, v.dict);
        break;
    default:
        tn_jsink_put_str(run, sink, v);
    }
}

/* ---- str ---- */

void tn_jsink_put_str(struct tn_jrun *run, struct tn_jsink *sink, struct tn_jvalue v)
{
    char digits[TN_FLOAT_TEXT];
    switch (v.type) {
    case TN_J_UNDEFINED:
        break;
    case TN_J_NONE:
        tn_jsink_puts(run, sink, "None");
        break;
    case TN_J_BOOL:
        tn_jsink_puts(run, sink, v.boolean ? "True" : "False");
        break;
    case TN_J_INT:
        snprintf(digits, sizeof digits, "%" PRId64, v.integer);
        tn_jsink_puts(run, sink, digits);
        break;
    case TN_J_FLOAT:
        tn_jsink_puts(run, sink, tn_float_text(digits, v.real));
        break;
    case TN_J_STRING:
        tn_jsink_put_string(run, sink, v.string, 0, v.string->n);
        break;
    case TN_J_LIST:
    case TN_J_TUPLE:
    case TN_J_DICT:
        tn_jsink_put_repr(run, sink, v);
        break;
    default:
        tn_jrun_fail(run, TERN_UNSUPPORTED, "a %s cannot be written as text", tn_j_type_name(v));
    }
}

struct tn_jvalue tn_jrun_str(struct tn_jrun *run, struct tn_jvalue v)
{
    struct tn_jsink sink = {0};
    if (v.type == TN_J_STRING)
        return v;
    tn_jsink_put_str(run, &sink, v);
    return tn_jsink_take(run, &sink);
}

/* ---- iteration ---- */

static void add_characters(struct tn_jrun *run, struct tn_jvalue list, const struct tn_jstring *s)
{
    for (size_t i = 0; i < s->n && run->status == TERN_OK;) {
        uint32_t c;
        size_t length = tn_utf8_next(s->bytes + i, s->n - i, &c);
        tn_jrun_add(run, list, tn_jrun_part(run, s, i, i + length));
        i += length;
    }
}

struct tn_jvalue tn_jrun_items(struct tn_jrun *run, struct tn_jvalue v)
{
    if (v.type == TN_J_LIST || v.type == TN_J_TUPLE)
        return v;
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, 0));
    if (run->status != TERN_OK || v.type == TN_J_UNDEFINED)
        return list;
    if (v.type == TN_J_ITERATOR) {
        struct tn_jlist rest = *list.list;
        *list.list = *v.list;
        *v.list = rest;
        return list;
    }
    if (v.type == TN_J_STRING)
        add_characters(run, list, v.string);
    else if (v.type == TN_J_DICT)
        for (size_t i = 0; i < v.dict->n; i++)
            tn_jrun_add(run, list, v.dict->pairs[i].key);
    else
        tn_jrun_fail(run, TERN_USAGE, "a %s is not iterable", tn_j_type_name(v));
    return list;
}

/* SPDX-License-Identifier: MIT
 *
 * Reading calls of tools.
 */
#include "tern/calls.h"

#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_dump.h"
#include "base/json_load.h"

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>";

#define MAX_HEAD 1024u /* bytes in front of the arguments, beyond which nobody waits for them */

struct call {
    char *name;
    struct tn_buf arguments;
    size_t n_text;
};

/* How far the call between the tags was read while it came. */
enum part { PART_HEAD, PART_ARGUMENTS, PART_REST };

struct tern_calls {
    enum tern_call_form form;
    bool is_early;
    struct tn_buf held;  /* not decided */
    size_t n_searched;   /* bytes of it in which no closing tag begins */
    struct tn_buf text;  /* decided, and not taken from n_taken on */
    size_t n_taken;
    size_t n_past;       /* bytes of text that were taken and are forgotten */
    bool is_inside; /* tagged: behind an opening tag; bare: all of it may be a call */
    bool is_text;   /* bare: it is none */
    bool has_text;  /* some was given */
    struct call *calls; /* [n_calls], and one more when is_begun */
    size_t n_calls, capacity;
    bool is_begun; /* a call whose arguments come */
    enum part part;
    size_t n_read; /* held bytes that are in its arguments, or in front of them */
    uint32_t depth; /* of braces and brackets in its arguments */
    bool is_string, is_escaped;
};

static bool is_space(char ch)
{
    return memchr(" \t\r\n", ch, 4) != NULL;
}

/* ---- a call ---- */

/* A call behind the others, without arguments; it does not count yet. */
static bool begin_call(struct tern_calls *c, const char *name, size_t n_name)
{
    struct call *calls = tn_grow(c->calls, sizeof *calls, c->n_calls, &c->capacity);
    if (!calls)
        return false;
    c->calls = calls;
    char *copy = tn_alloc(n_name + 1);
    if (!copy)
        return false;
    memcpy(copy, name, n_name);
    copy[n_name] = '\0';
    c->calls[c->n_calls] = (struct call){.name = copy, .n_text = c->n_past + c->text.n_bytes};
    c->is_begun = true;
    return true;
}

static void free_call(struct call *call)
{
    tn_free(call->name);
    tn_buf_fini(&call->arguments);
}

/* The one that was begun counts, or it is forgotten. */
static void end_call(struct tern_calls *c, bool counts)
{
    if (c->is_begun && !counts)
        free_call(&c->calls[c->n_calls]);
    c->n_calls += c->is_begun && counts;
    c->is_begun = false;
}

/* A call whose members do not stand as expected. */
static bool add_call(struct tern_calls *c, const json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    const json_t *arguments = json_object_get(call, "arguments");
    bool is_added = begin_call(c, name, strlen(name)) &&
                    tn_json_dump(&c->calls[c->n_calls].arguments,
                                 arguments ? arguments : json_object_get(call, "parameters")) &&
                    tn_buf_reserve(&c->calls[c->n_calls].arguments, 1);
    end_call(c, is_added);
    return is_added;
}

static bool is_call(const json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    const json_t *arguments = json_object_get(call, "arguments");
    arguments = arguments ? arguments : json_object_get(call, "parameters");
    return name && name[0] && json_is_object(arguments);
}

/* ---- a call while it comes ---- */

/* Steps over white space and the word behind it.  false: something else stands at *at, or it may
 * still come, and *at is the end. */
static bool skip_word(const struct tn_buf *held, size_t *at, const char *word)
{
    while (*at < held->n_bytes && is_space(held->data[*at]))
        ++*at;
    const size_t n = strlen(word), n_there = TN_MIN(n, held->n_bytes - *at);
    if (memcmp(held->data + *at, word, n_there) != 0)
        return false;
    *at += n_there;
    return n_there == n;
}

/* The same for a string without escapes, of which the first quote is behind. */
static bool skip_name(const struct tn_buf *held, size_t *at)
{
    while (*at < held->n_bytes && held->data[*at] != '"' && held->data[*at] != '\\')
        ++*at;
    return skip_word(held, at, "\"");
}

static bool skip_key(const struct tn_buf *held, size_t *at)
{
    size_t first = *at, second = *at;
    const bool is_there = skip_word(held, &first, "\"arguments\"") ||
                          skip_word(held, &second, "\"parameters\"");
    *at = TN_MAX(first, second);
    return is_there;
}

/* The same for {"name": "f", "arguments": and the brace behind it. */
static bool skip_head(const struct tn_buf *held, size_t *at, size_t *name_at, size_t *n_name)
{
    if (!skip_word(held, at, "{") || !skip_word(held, at, "\"name\"") ||
        !skip_word(held, at, ":") || !skip_word(held, at, "\""))
        return false;
    *name_at = *at;
    if (!skip_name(held, at))
        return false;
    *n_name = *at - *name_at - 1;
    return skip_word(held, at, ",") && skip_key(held, at) && skip_word(held, at, ":") &&
           skip_word(held, at, "{");
}

/* Begins a call when its name is in the first n held bytes and its arguments come. */
static bool read_head(struct tern_calls *c, size_t n)
{
    const struct tn_buf held = {.data = c->held.data, .n_bytes = n};
    size_t at = 0, name_at, n_name;
    if (skip_head(&held, &at, &name_at, &n_name) && n_name > 0) {
        c->part = PART_ARGUMENTS;
        c->n_read = at - 1;
        c->depth = 0;
        c->is_string = c->is_escaped = false;
        return begin_call(c, held.data + name_at, n_name);
    }
    if (at < n || at > MAX_HEAD)
        c->part = PART_REST; /* of another form: known when all of it is there */
    return true;
}

/* A byte of the arguments, of which white space between values is left out. */
static bool read_byte(struct tern_calls *c, char ch)
{
    const bool was_string = c->is_string;
    if (c->is_string) {
        c->is_string = c->is_escaped || ch != '"';
        c->is_escaped = !c->is_escaped && ch == '\\';
    } else {
        c->is_string = ch == '"';
        c->depth += ch == '{' || ch == '[';
        c->depth -= ch == '}' || ch == ']';
    }
    if (c->depth == 0)
        c->part = PART_REST;
    return (!was_string && is_space(ch)) ||
           tn_buf_append(&c->calls[c->n_calls].arguments, &ch, 1);
}

/* Reads the first n held bytes of a call as far as they say something. */
static bool read_part(struct tern_calls *c, size_t n)
{
    bool is_good = c->part != PART_HEAD || read_head(c, n);
    while (is_good && c->part == PART_ARGUMENTS && c->n_read < n)
        is_good = read_byte(c, c->held.data[c->n_read++]);
    return is_good && (!c->is_begun || tn_buf_reserve(&c->calls[c->n_calls].arguments, 1));
}

/* The first n held bytes are all of what may be a call.  TERN_INPUT: it is none; TERN_MEMORY. */
static tern_status read_call(struct tern_calls *c, size_t n)
{
    json_t *call;
    if (!read_part(c, n))
        return TERN_MEMORY;
    tern_status status =
        tn_json_load(&call, "call", c->held.data, n, TN_JSON_LARGE_AS_REAL, NULL);
    const bool is_whole = status == TERN_OK && is_call(call);
    const bool was_begun = c->is_begun;
    end_call(c, is_whole || c->is_early);
    if (is_whole && !was_begun && !add_call(c, call))
        status = TERN_MEMORY;
    else if (status != TERN_MEMORY)
        status = is_whole || (was_begun && c->is_early) ? TERN_OK : TERN_INPUT;
    json_decref(call);
    c->part = PART_HEAD;
    return status;
}

/* ---- the answer ---- */

/* The first n held bytes are text; but white space between calls and the first text is none. */
static void give(struct tern_calls *c, size_t n)
{
    size_t first = 0;
    while (c->n_calls > 0 && !c->has_text && first < n && is_space(c->held.data[first]))
        first++;
    tn_buf_append(&c->text, c->held.data + first, n - first);
    c->has_text = c->has_text || n > first;
}

static void drop(struct tern_calls *c, size_t n)
{
    c->held.n_bytes -= n;
    memmove(c->held.data, c->held.data + n, c->held.n_bytes);
    c->n_searched = 0;
}

/* Where a tag begins in the held bytes, from `at` on; n_bytes: nowhere. */
static size_t find_tag(const struct tern_calls *c, const char *tag, size_t at)
{
    const size_t n = strlen(tag);
    for (; at + n <= c->held.n_bytes; at++)
        if (memcmp(c->held.data + at, tag, n) == 0)
            return at;
    return c->held.n_bytes;
}

/* Where the beginning of a tag begins that is the end of the held bytes. */
static size_t partial_tag(const struct tern_calls *c, const char *tag)
{
    for (size_t n = TN_MIN(strlen(tag) - 1, c->held.n_bytes); n > 0; n--)
        if (memcmp(c->held.data + c->held.n_bytes - n, tag, n) == 0)
            return c->held.n_bytes - n;
    return c->held.n_bytes;
}

/* The same for an opening tag and the white space in front of it. */
static size_t undecided_from(const struct tern_calls *c)
{
    size_t end = partial_tag(c, open_tag);
    while (end > 0 && is_space(c->held.data[end - 1]))
        end--;
    return end;
}

/* As give, but white space at their end is none. */
static void give_trimmed(struct tern_calls *c, size_t n)
{
    while (n > 0 && is_space(c->held.data[n - 1]))
        n--;
    give(c, n);
}

/* What stands between two tags is a call, or it is text as it came. */
static tern_status take_inside(struct tern_calls *c, size_t n, bool is_closed)
{
    const tern_status status = read_call(c, n);
    if (status == TERN_INPUT) {
        tn_buf_append_text(&c->text, open_tag);
        give(c, n);
        tn_buf_append_text(&c->text, is_closed ? close_tag : "");
    }
    return status == TERN_MEMORY ? TERN_MEMORY : TERN_OK;
}

/* Decides what can be decided; false when more has to come. */
static bool step_tagged(struct tern_calls *c, tern_status *status)
{
    if (!c->is_inside) {
        const size_t at = find_tag(c, open_tag, 0);
        c->is_inside = at < c->held.n_bytes;
        const size_t n = c->is_inside ? at : undecided_from(c);
        if (c->is_inside)
            give_trimmed(c, n);
        else
            give(c, n);
        drop(c, n + (c->is_inside ? strlen(open_tag) : 0));
        return c->is_inside;
    }
    const size_t at = find_tag(c, close_tag, c->n_searched);
    if (at == c->held.n_bytes) {
        c->n_searched = at > strlen(close_tag) ? at - strlen(close_tag) : 0;
        *status = read_part(c, partial_tag(c, close_tag)) ? TERN_OK : TERN_MEMORY;
        return false;
    }
    *status = take_inside(c, at, true);
    drop(c, at + strlen(close_tag));
    c->is_inside = false;
    return *status == TERN_OK;
}

/* A bare call is told from text by its first letter, and known at the end. */
static bool step_bare(struct tern_calls *c)
{
    size_t i = 0;
    while (i < c->held.n_bytes && is_space(c->held.data[i]))
        i++;
    c->is_inside = c->is_inside || (i < c->held.n_bytes && c->held.data[i] == '{');
    c->is_text = c->is_text || (i < c->held.n_bytes && !c->is_inside);
    if (c->is_text) {
        give(c, c->held.n_bytes);
        drop(c, c->held.n_bytes);
    }
    return !c->is_inside || read_part(c, c->held.n_bytes);
}

static tern_status result(const struct tern_calls *c, tern_status status, struct tern_error *err)
{
    if (status == TERN_OK && !c->held.failed && !c->text.failed)
        return tn_ok(err);
    return tn_fail(err, TERN_MEMORY, "no memory for calls of tools");
}

tern_status tern_calls_push(struct tern_calls *c, const char *text, size_t n,
                            struct tern_error *err)
{
    tern_status status = TERN_OK;
    c->text.n_bytes -= c->n_taken;
    c->n_past += c->n_taken;
    memmove(c->text.data, c->text.data + c->n_taken, c->text.n_bytes);
    c->n_taken = 0;
    tn_buf_append(&c->held, text, n);
    if (c->form == TERN_CALLS_BARE && !step_bare(c))
        status = TERN_MEMORY;
    while (c->form == TERN_CALLS_TAGGED && step_tagged(c, &status))
        ;
    return result(c, status, err);
}

tern_status tern_calls_end(struct tern_calls *c, struct tern_error *err)
{
    tern_status status = TERN_OK;
    const size_t n = c->held.n_bytes;
    if (c->form == TERN_CALLS_TAGGED && c->is_inside) {
        status = take_inside(c, n, false);
    } else if (c->form == TERN_CALLS_BARE && c->is_inside) {
        status = read_call(c, n);
        if (status == TERN_INPUT) {
            give(c, n);
            status = TERN_OK;
        }
    } else if (c->n_calls > 0) {
        give_trimmed(c, n);
    } else {
        give(c, n);
    }
    drop(c, n);
    return result(c, status, err);
}

const char *tern_calls_take_text(struct tern_calls *c, size_t *n)
{
    const char *text = c->text.data + c->n_taken;
    *n = c->text.n_bytes - c->n_taken;
    c->n_taken = c->text.n_bytes;
    return text;
}

size_t tern_calls_count(const struct tern_calls *c)
{
    return c->n_calls + (c->is_begun && c->is_early);
}

struct tern_call tern_calls_get(const struct tern_calls *c, size_t i)
{
    struct call *call = &c->calls[i];
    return (struct tern_call){call->name, tn_buf_text(&call->arguments), call->n_text};
}

tern_status tern_calls_create(struct tern_calls **out, enum tern_call_form form, bool is_early,
                              struct tern_error *err)
{
    struct tern_calls *c = tn_alloc_zeroed(1, sizeof *c);
    *out = c;
    if (!c)
        return tn_fail(err, TERN_MEMORY, "no memory for calls of tools");
    c->form = form;
    c->is_early = is_early;
    if (tn_buf_reserve(&c->held, 1) && tn_buf_reserve(&c->text, 1))
        return tn_ok(err);
    tern_calls_free(c);
    *out = NULL;
    return tn_fail(err, TERN_MEMORY, "no memory for calls of tools");
}

void tern_calls_free(struct tern_calls *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_calls + c->is_begun; i++)
        free_call(&c->calls[i]);
    tn_free(c->calls);
    tn_buf_fini(&c->held);
    tn_buf_fini(&c->text);
    tn_free(c);
}

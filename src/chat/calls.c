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
#include "base/json_load.h"
#include "base/log.h"

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>";

struct call {
    char *name, *arguments;
};

struct tern_calls {
    enum tern_call_form form;
    struct tn_buf held;  /* not decided */
    size_t n_searched;   /* bytes of it in which no closing tag begins */
    struct tn_buf text;  /* decided, and not taken from n_taken on */
    size_t n_taken;
    bool is_inside; /* tagged: behind an opening tag; bare: all of it may be a call */
    bool is_text;   /* bare: it is none */
    bool has_text;  /* some was given */
    struct call *calls; /* [n_calls] */
    size_t n_calls, capacity;
};

/* ---- a call ---- */

static bool add_call(struct tern_calls *c, const char *name, char *arguments)
{
    if (c->n_calls == c->capacity) {
        const size_t capacity = 2 * c->capacity + 4;
        struct call *calls = tn_realloc(c->calls, capacity * sizeof *calls);
        if (!calls)
            return false;
        c->calls = calls;
        c->capacity = capacity;
    }
    const size_t n = strlen(name) + 1;
    char *copy = tn_alloc(n);
    if (!copy)
        return false;
    c->calls[c->n_calls++] = (struct call){memcpy(copy, name, n), arguments};
    return true;
}

/* The text of a call's arguments, as new memory; NULL: they are no object. */
static char *dump_arguments(const json_t *call)
{
    const json_t *arguments = json_object_get(call, "arguments");
    arguments = arguments ? arguments : json_object_get(call, "parameters");
    return json_is_object(arguments) ? json_dumps(arguments, JSON_COMPACT) : NULL;
}

/* Adds what n bytes say, if they are a call.  TERN_INPUT: they are none; TERN_MEMORY. */
static tern_status read_call(struct tern_calls *c, const char *text, size_t n)
{
    json_t *call;
    tern_status status = tn_json_load(&call, "call", text, n, 0, NULL);
    if (status != TERN_OK)
        return status;
    const char *name = json_string_value(json_object_get(call, "name"));
    char *arguments = name && name[0] ? dump_arguments(call) : NULL;
    status = arguments ? TERN_OK : TERN_INPUT;
    if (arguments && !add_call(c, name, arguments)) {
        tn_free(arguments);
        status = TERN_MEMORY;
    }
    json_decref(call);
    return status;
}

/* ---- the answer ---- */

static bool is_space(char ch)
{
    return memchr(" \t\r\n", ch, 4) != NULL;
}

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

/* Where white space, and behind it perhaps the beginning of an opening tag, begins that is the end
 * of the held bytes. */
static size_t undecided_from(const struct tern_calls *c)
{
    size_t end = c->held.n_bytes;
    for (size_t n = TN_MIN(sizeof open_tag - 2, end); n > 0; n--)
        if (memcmp(c->held.data + c->held.n_bytes - n, open_tag, n) == 0) {
            end = c->held.n_bytes - n;
            break;
        }
    while (end > 0 && is_space(c->held.data[end - 1]))
        end--;
    return end;
}

/* The same, but white space at their end is none. */
static void give_trimmed(struct tern_calls *c, size_t n)
{
    while (n > 0 && is_space(c->held.data[n - 1]))
        n--;
    give(c, n);
}

/* What stands between two tags is a call, or it is text as it came. */
static tern_status take_inside(struct tern_calls *c, size_t n, bool is_closed)
{
    const tern_status status = read_call(c, c->held.data, n);
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
        return false;
    }
    *status = take_inside(c, at, true);
    drop(c, at + strlen(close_tag));
    c->is_inside = false;
    return *status == TERN_OK;
}

/* A bare call is told from text by its first letter, and known at the end. */
static void step_bare(struct tern_calls *c)
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
    memmove(c->text.data, c->text.data + c->n_taken, c->text.n_bytes);
    c->n_taken = 0;
    tn_buf_append(&c->held, text, n);
    if (c->form == TERN_CALLS_BARE)
        step_bare(c);
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
        status = read_call(c, c->held.data, n);
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
    return c->n_calls;
}

struct tern_call tern_calls_get(const struct tern_calls *c, size_t i)
{
    return (struct tern_call){c->calls[i].name, c->calls[i].arguments};
}

tern_status tern_calls_create(struct tern_calls **out, enum tern_call_form form,
                              struct tern_error *err)
{
    struct tern_calls *c = tn_alloc_zeroed(1, sizeof *c);
    *out = c;
    if (!c)
        return tn_fail(err, TERN_MEMORY, "no memory for calls of tools");
    c->form = form;
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
    for (size_t i = 0; i < c->n_calls; i++) {
        tn_free(c->calls[i].name);
        tn_free(c->calls[i].arguments);
    }
    tn_free(c->calls);
    tn_buf_fini(&c->held);
    tn_buf_fini(&c->text);
    tn_free(c);
}

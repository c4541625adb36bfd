/* SPDX-License-Identifier: MIT
 *
 * Splits an answer into text and tool calls while it is generated.
 *
 * Tagged formats mark calls with tags; in the bare format the whole answer may be a call.  Bytes
 * that may still become a tag or a call are held back.
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

#define MAX_HEAD 1024u /* maximum bytes before the arguments while a call is parsed incrementally */

struct call {
    char *name;
    struct tn_buf arguments;
    size_t n_text;
};

/* Progress within the current call. */
enum phase { PHASE_NAME, PHASE_ARGUMENTS, PHASE_REST };

struct tern_calls {
    enum tern_call_form form;
    bool is_early;
    struct tn_buf held;  /* bytes whose meaning is undecided */
    size_t n_searched;   /* prefix of them that contains no start of a closing tag */
    struct tn_buf text;  /* decided text; not yet taken from n_taken on */
    size_t n_taken;
    size_t n_past;       /* bytes of text already taken and discarded */
    bool is_inside; /* tagged: after an opening tag; bare: the answer may be a call */
    bool is_text;   /* bare: it is text */
    bool has_text;  /* text was emitted */
    struct call *calls; /* [n_calls], plus the call in progress */
    size_t n_calls, capacity;
    bool is_begun; /* a call whose arguments are arriving */
    enum phase phase;
    size_t n_read; /* held bytes already parsed */
    uint32_t depth; /* nesting of its arguments */
    bool is_string, is_escaped;
};

static bool is_space(char ch)
{
    return memchr(" \t\r\n", ch, 4) != NULL;
}

/* ---- the list of calls ---- */

/* Appends a call without arguments, which does not count yet. */
static bool begin_call(struct tern_calls *c, const char *name, size_t n_name)
{
    struct call *calls = tn_grow(c->calls, sizeof *calls, c->n_calls, &c->capacity);
    if (!calls)
        return false;
    c->calls = calls;
    char *copy = tn_copy_bytes(name, n_name);
    if (!copy)
        return false;
    c->calls[c->n_calls] = (struct call){.name = copy, .n_text = c->n_past + c->text.n_bytes};
    c->is_begun = true;
    return true;
}

static void free_call(struct call *call)
{
    tn_free(call->name);
    tn_buf_fini(&call->arguments);
}

/* Counts the call in progress, or discards it. */
static void end_call(struct tern_calls *c, bool counts)
{
    if (c->is_begun && !counts)
        free_call(&c->calls[c->n_calls]);
    c->n_calls += c->is_begun && counts;
    c->is_begun = false;
}

/* Appends a call whose members are in an unusual order. */
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

/* ---- incremental parsing ---- */

/* Skips white space and then `word`.  false: it differs, or may still arrive, in which case *at is
 * the end. */
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

/* Skips a string without escapes, from after its opening quote. */
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

/* Skips {"name": "f", "arguments": and the brace after it. */
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

/* Starts a call if the first n held bytes contain its name and the start of its arguments. */
static bool read_head(struct tern_calls *c, size_t n)
{
    const struct tn_buf held = {.data = c->held.data, .n_bytes = n};
    size_t at = 0, name_at, n_name;
    if (skip_head(&held, &at, &name_at, &n_name) && n_name > 0) {
        c->phase = PHASE_ARGUMENTS;
        c->n_read = at - 1;
        c->depth = 0;
        c->is_string = c->is_escaped = false;
        return begin_call(c, held.data + name_at, n_name);
    }
    if (at < n || at > MAX_HEAD)
        c->phase = PHASE_REST; /* another format: parsed when complete */
    return true;
}

/* Reads a byte of the arguments; white space between values is dropped. */
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
        c->phase = PHASE_REST;
    return (!was_string && is_space(ch)) ||
           tn_buf_append(&c->calls[c->n_calls].arguments, &ch, 1);
}

/* Parses the first n held bytes of a call as far as possible. */
static bool read_held(struct tern_calls *c, size_t n)
{
    bool is_good = c->phase != PHASE_NAME || read_head(c, n);
    while (is_good && c->phase == PHASE_ARGUMENTS && c->n_read < n)
        is_good = read_byte(c, c->held.data[c->n_read++]);
    return is_good && (!c->is_begun || tn_buf_reserve(&c->calls[c->n_calls].arguments, 1));
}

/* Parses the first n held bytes, which are complete.  TERN_INPUT: not a call; TERN_MEMORY. */
static tern_status read_call(struct tern_calls *c, size_t n)
{
    json_t *call;
    if (!read_held(c, n))
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
    c->phase = PHASE_NAME;
    return status;
}

/* ---- splitting the answer ---- */

/* Emits the first n held bytes as text, except white space between calls and before the first text.
 */
static void emit(struct tern_calls *c, size_t n)
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

/* Offset of a tag in the held bytes at or after `at`; n_bytes: none. */
static size_t find_tag(const struct tern_calls *c, const char *tag, size_t at)
{
    const size_t n = strlen(tag);
    for (; at + n <= c->held.n_bytes; at++)
        if (memcmp(c->held.data + at, tag, n) == 0)
            return at;
    return c->held.n_bytes;
}

/* Offset of a proper prefix of the tag at the end of the held bytes. */
static size_t partial_tag(const struct tern_calls *c, const char *tag)
{
    for (size_t n = TN_MIN(strlen(tag) - 1, c->held.n_bytes); n > 0; n--)
        if (memcmp(c->held.data + c->held.n_bytes - n, tag, n) == 0)
            return c->held.n_bytes - n;
    return c->held.n_bytes;
}

/* The same for an opening tag and the white space before it. */
static size_t undecided_from(const struct tern_calls *c)
{
    size_t end = partial_tag(c, open_tag);
    while (end > 0 && is_space(c->held.data[end - 1]))
        end--;
    return end;
}

/* Emits text without its trailing white space. */
static void emit_trimmed(struct tern_calls *c, size_t n)
{
    while (n > 0 && is_space(c->held.data[n - 1]))
        n--;
    emit(c, n);
}

/* The bytes between two tags: a call, or text verbatim. */
static tern_status take_inside(struct tern_calls *c, size_t n, bool is_closed)
{
    const tern_status status = read_call(c, n);
    if (status == TERN_INPUT) {
        tn_buf_append_text(&c->text, open_tag);
        emit(c, n);
        tn_buf_append_text(&c->text, is_closed ? close_tag : "");
    }
    return status == TERN_MEMORY ? TERN_MEMORY : TERN_OK;
}

/* Decides as much as possible.  false: more input is needed. */
static bool step_tagged(struct tern_calls *c, tern_status *status)
{
    if (!c->is_inside) {
        const size_t at = find_tag(c, open_tag, 0);
        c->is_inside = at < c->held.n_bytes;
        const size_t n = c->is_inside ? at : undecided_from(c);
        if (c->is_inside)
            emit_trimmed(c, n);
        else
            emit(c, n);
        drop(c, n + (c->is_inside ? strlen(open_tag) : 0));
        return c->is_inside;
    }
    const size_t at = find_tag(c, close_tag, c->n_searched);
    if (at == c->held.n_bytes) {
        c->n_searched = at > strlen(close_tag) ? at - strlen(close_tag) : 0;
        *status = read_held(c, partial_tag(c, close_tag)) ? TERN_OK : TERN_MEMORY;
        return false;
    }
    *status = take_inside(c, at, true);
    drop(c, at + strlen(close_tag));
    c->is_inside = false;
    return *status == TERN_OK;
}

/* Bare format: the first character rules out a call, otherwise the end of the answer decides. */
static bool step_bare(struct tern_calls *c)
{
    size_t i = 0;
    while (i < c->held.n_bytes && is_space(c->held.data[i]))
        i++;
    c->is_inside = c->is_inside || (i < c->held.n_bytes && c->held.data[i] == '{');
    c->is_text = c->is_text || (i < c->held.n_bytes && !c->is_inside);
    if (c->is_text) {
        emit(c, c->held.n_bytes);
        drop(c, c->held.n_bytes);
    }
    return !c->is_inside || read_held(c, c->held.n_bytes);
}

static tern_status result(const struct tern_calls *c, tern_status status, struct tern_error *err)
{
    if (status == TERN_OK && !c->held.failed && !c->text.failed)
        return tn_ok(err);
    return tn_fail(err, TERN_MEMORY, "no memory for tool calls");
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
            emit(c, n);
            status = TERN_OK;
        }
    } else if (c->n_calls > 0) {
        emit_trimmed(c, n);
    } else {
        emit(c, n);
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
        return tn_fail(err, TERN_MEMORY, "no memory for tool calls");
    c->form = form;
    c->is_early = is_early;
    if (tn_buf_reserve(&c->held, 1) && tn_buf_reserve(&c->text, 1))
        return tn_ok(err);
    tern_calls_free(c);
    *out = NULL;
    return tn_fail(err, TERN_MEMORY, "no memory for tool calls");
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

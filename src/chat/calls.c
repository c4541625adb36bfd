/* SPDX-License-Identifier: MIT
 *
 * Splits an answer into text and tool calls while it is generated.
 *
 * Tagged formats mark calls with tags; in the bare format the whole answer may be a call.  Bytes
 * that may still become a tag or a call are held back.
 *
 * Models of the tagged format, such as Qwen2.5-Coder, also write a call as an object without tags,
 * or in a block of code.  It counts where the answer starts with it, or a line with the block, and
 * if it names one of the request's functions.
 */
#include "tern/calls.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"
#include "chat/call_reader.h"

static const char open_tag[] = "<tool_call>", close_tag[] = "</tool_call>", fence[] = "```";

/* Where the split is. */
enum place {
    PLACE_TEXT,
    PLACE_TAGS,   /* after an opening tag */
    PLACE_OBJECT, /* in an object without tags */
    PLACE_BLOCK,  /* in an object in a block of code */
    PLACE_FENCE   /* after it, before the end of the block or another one */
};

struct tern_calls {
    enum tern_call_form form;
    struct tn_call_reader reader;
    struct tn_buf held;  /* bytes whose meaning is undecided; inside a call those of its opening */
    size_t n_opening;    /* inside a call: bytes before it */
    size_t n_searched;   /* prefix of them that contains no start of a closing tag */
    struct tn_buf text;  /* decided text; not yet taken from n_taken on */
    size_t n_taken;
    size_t n_past;       /* bytes of text already taken and discarded */
    enum place place;
    bool is_text;   /* bare: the answer is text */
    bool has_text;  /* text was emitted */
    bool has_words; /* of which something other than white space, after the last call */
    bool is_inside_line; /* the text, if any, does not end with a line feed */
    bool is_single; /* discards what follows the first call */
};

/* ---- text ---- */

/* Emits the first n held bytes as text, except white space between calls and before the first text.
 */
static void emit(struct tern_calls *c, size_t n)
{
    size_t first = 0;
    while (c->reader.n_calls > 0 && !c->has_text && first < n &&
           tn_is_space(c->held.data[first]))
        first++;
    tn_buf_append(&c->text, c->held.data + first, n - first);
    c->has_text = c->has_text || n > first;
    for (; first < n; first++) {
        c->has_words = c->has_words || !tn_is_space(c->held.data[first]);
        c->is_inside_line = c->held.data[first] != '\n';
    }
}

static void drop(struct tern_calls *c, size_t n)
{
    c->held.n_bytes -= n;
    memmove(c->held.data, c->held.data + n, c->held.n_bytes);
    c->n_searched = 0;
}

/* ---- the start of a call ---- */

enum match { MATCH_NOT, MATCH_MAYBE, MATCH_YES };

/* Matches an opening tag. */
static enum match match_tag(const char *text, size_t n, size_t *n_opening)
{
    const size_t n_tag = sizeof open_tag - 1;
    *n_opening = n_tag;
    if (memcmp(text, open_tag, TN_MIN(n, n_tag)) != 0)
        return MATCH_NOT;
    return n < n_tag ? MATCH_MAYBE : MATCH_YES;
}

/* Matches the start of an object that calls a known function; *n_opening: bytes before it. */
static enum match match_object(const struct tern_calls *c, const char *text, size_t n, size_t at,
                               size_t *n_opening)
{
    size_t name_at = 0, n_name = 0;
    at += tn_text_n_space(text + at, n - at);
    *n_opening = at;
    if (!tn_call_match_head(text, n, &at, &name_at, &n_name))
        return at < n || n > TN_CALL_MAX_HEAD ? MATCH_NOT : MATCH_MAYBE;
    return tn_call_tools_have(c->reader.tools, text + name_at, n_name) ? MATCH_YES : MATCH_NOT;
}

/* Matches a block of code, of JSON or of no language, that begins with such an object. */
static enum match match_block(const struct tern_calls *c, const char *text, size_t n,
                              size_t *n_opening)
{
    static const char language[] = "json";
    size_t at = sizeof fence - 1;
    if (memcmp(text, fence, TN_MIN(n, at)) != 0)
        return MATCH_NOT;
    if (n < at)
        return MATCH_MAYBE;
    const size_t n_there = TN_MIN(n - at, sizeof language - 1);
    if (memcmp(text + at, language, n_there) == 0)
        at += n_there;
    return match_object(c, text, n, at, n_opening);
}

/* Matches a call at a held byte. */
static enum match match_call(const struct tern_calls *c, size_t at, size_t *n_opening,
                             enum place *place)
{
    const char *text = c->held.data + at;
    const size_t n = c->held.n_bytes - at;
    const bool starts_line = at > 0 ? text[-1] == '\n' : !c->is_inside_line;
    enum match match = MATCH_NOT;
    *place = PLACE_TAGS;
    if (text[0] == open_tag[0])
        return match_tag(text, n, n_opening);
    if (text[0] == fence[0] && starts_line && c->reader.tools) {
        *place = PLACE_BLOCK;
        match = match_block(c, text, n, n_opening);
    } else if (text[0] == '{' && !c->has_words && tn_text_n_space(c->held.data, at) == at &&
               c->reader.tools) {
        *place = PLACE_OBJECT;
        match = match_object(c, text, n, 0, n_opening);
    }
    return match;
}

/* Emits the held text before a call.  false: there is no call yet. */
static bool find_call(struct tern_calls *c)
{
    enum match match = MATCH_NOT;
    size_t at = 0, n_opening = 0;
    enum place place = PLACE_TEXT;
    while (at < c->held.n_bytes &&
           (match = match_call(c, at, &n_opening, &place)) == MATCH_NOT)
        at++;
    const size_t n = tn_text_trimmed(c->held.data, at);
    emit(c, n);
    drop(c, n); /* white space before a call is text if the call is */
    if (match != MATCH_YES)
        return false;
    c->place = place;
    c->n_opening = at - n + n_opening;
    c->reader.n_text = c->n_past + c->text.n_bytes;
    return true;
}

/* ---- the call ---- */

/* The first n held bytes are an opening, a call and n_closing more: takes the call, or all as text.
 */
static tern_status take_call(struct tern_calls *c, size_t n, size_t n_closing)
{
    const size_t n_calls = c->reader.n_calls;
    const tern_status status = tn_call_end(&c->reader, c->held.data + c->n_opening,
                                           n - c->n_opening - n_closing);
    if (status == TERN_INPUT)
        emit(c, n);
    drop(c, n);
    c->has_words = c->has_words && c->reader.n_calls == n_calls;
    c->place = PLACE_TEXT;
    return status == TERN_MEMORY ? TERN_MEMORY : TERN_OK;
}

/* Reads the call up to held byte `end`. */
static tern_status read_call(struct tern_calls *c, size_t end)
{
    return tn_call_read(&c->reader, c->held.data + c->n_opening, end - c->n_opening)
               ? TERN_OK
               : TERN_MEMORY;
}

/* Between tags.  false: more input is needed. */
static bool step_tags(struct tern_calls *c, tern_status *status)
{
    const size_t n = c->held.n_bytes, n_close = sizeof close_tag - 1;
    const size_t at =
        tn_text_find(c->held.data, n, TN_MAX(c->n_opening, c->n_searched), close_tag);
    if (at == n) {
        c->n_searched = n - tn_text_n_begun(c->held.data + c->n_opening, n - c->n_opening,
                                            close_tag);
        *status = read_call(c, c->n_searched);
        return false;
    }
    bool is_known;
    *status = read_call(c, at);
    const bool is_text = tn_call_is_inside_string(&c->reader, c->held.data + c->n_opening,
                                                  n - c->n_opening, at - c->n_opening, &is_known);
    c->n_searched = is_text ? at + 1 : at;
    if (is_known && !is_text && *status == TERN_OK)
        *status = take_call(c, at + n_close, n_close);
    return is_known && *status == TERN_OK;
}

/* In an object without tags: its end follows its arguments.  false: more input is needed. */
static bool step_object(struct tern_calls *c, tern_status *status)
{
    const enum place place = c->place;
    *status = read_call(c, c->held.n_bytes);
    if (*status != TERN_OK || !c->reader.is_whole)
        return false;
    size_t at = c->n_opening + c->reader.n_read;
    const bool is_closed = tn_call_skip_word(c->held.data, c->held.n_bytes, &at, "}");
    if (!is_closed && at == c->held.n_bytes)
        return false;
    at += !is_closed && c->held.data[at] == ','; /* with more members it is no call */
    *status = take_call(c, at, 0);
    if (place == PLACE_BLOCK && !c->has_words)
        c->place = PLACE_FENCE;
    return *status == TERN_OK;
}

/* Drops the end of a block of code, or finds the next call in it.  false: more input is needed. */
static bool step_fence(struct tern_calls *c)
{
    size_t at = 0;
    const bool is_there = tn_call_skip_word(c->held.data, c->held.n_bytes, &at, fence);
    const enum match match =
        is_there ? MATCH_NOT
                 : match_object(c, c->held.data, c->held.n_bytes, 0, &c->n_opening);
    if (match == MATCH_MAYBE || (!is_there && at == c->held.n_bytes))
        return false;
    drop(c, is_there ? at : 0);
    c->place = match == MATCH_YES ? PLACE_BLOCK : PLACE_TEXT;
    return true;
}

/* Decides as much as possible.  false: more input is needed. */
static bool step_tagged(struct tern_calls *c, tern_status *status)
{
    if (tern_calls_has_ended(c)) {
        drop(c, c->held.n_bytes);
        return false;
    }
    switch (c->place) {
    case PLACE_TEXT:
        return find_call(c);
    case PLACE_TAGS:
        return step_tags(c, status);
    case PLACE_FENCE:
        return step_fence(c);
    default:
        return step_object(c, status);
    }
}

/* Bare format: the first character rules out a call, otherwise the end of the answer decides. */
static tern_status step_bare(struct tern_calls *c)
{
    const size_t i = tn_text_n_space(c->held.data, c->held.n_bytes);
    if (i < c->held.n_bytes && c->held.data[i] == '{' && !c->is_text)
        c->place = PLACE_OBJECT;
    c->is_text = c->is_text || (i < c->held.n_bytes && c->place == PLACE_TEXT);
    if (c->is_text) {
        emit(c, c->held.n_bytes);
        drop(c, c->held.n_bytes);
    }
    return c->place == PLACE_OBJECT ? read_call(c, c->held.n_bytes) : TERN_OK;
}

/* ---- the answer ---- */

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
    if (c->form == TERN_CALLS_BARE)
        status = step_bare(c);
    while (c->form != TERN_CALLS_BARE && step_tagged(c, &status))
        ;
    return result(c, status, err);
}

tern_status tern_calls_end(struct tern_calls *c, struct tern_error *err)
{
    const size_t n = c->held.n_bytes;
    if (c->place != PLACE_TEXT && c->place != PLACE_FENCE)
        return result(c, take_call(c, n, 0), err);
    emit(c, c->reader.n_calls > 0 ? tn_text_trimmed(c->held.data, n) : n);
    drop(c, n);
    return result(c, TERN_OK, err);
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
    return c->reader.n_calls + (c->reader.is_begun && c->reader.is_early);
}

struct tern_call tern_calls_get(const struct tern_calls *c, size_t i)
{
    struct tn_call *call = &c->reader.calls[i];
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
    c->reader.is_early = is_early;
    if (tn_buf_reserve(&c->held, 1) && tn_buf_reserve(&c->text, 1))
        return tn_ok(err);
    tern_calls_free(c);
    *out = NULL;
    return tn_fail(err, TERN_MEMORY, "no memory for tool calls");
}

void tern_calls_set_tools(struct tern_calls *c, const struct tern_call_tools *tools)
{
    c->reader.tools = tools;
}

void tern_calls_set_single(struct tern_calls *c)
{
    c->is_single = true;
}

bool tern_calls_has_ended(const struct tern_calls *c)
{
    return c->is_single && c->reader.n_calls > 0;
}

void tern_calls_free(struct tern_calls *c)
{
    if (!c)
        return;
    tn_call_reader_fini(&c->reader);
    tn_buf_fini(&c->held);
    tn_buf_fini(&c->text);
    tn_free(c);
}

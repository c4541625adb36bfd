/* SPDX-License-Identifier: MIT
 *
 * Separates an answer's reasoning from the rest, by the tags that published models write.
 *
 * Works on a stream: text that may be the start of a closing tag is held back.
 */
#include "tern/thinking.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"

enum state { START, INSIDE, GAP, ANSWER };

struct tern_thinking {
    enum state state;
    const char *close; /* tag that ends the reasoning */
    struct tn_buf held;
    size_t n_pushed;    /* total bytes received */
    size_t answer_at;   /* offset in them where the answer begins */
    bool has_reasoning; /* reasoning was emitted */
    bool is_refused;    /* on_part returned false */
    bool (*on_part)(void *arg, enum tern_part part, const char *text, size_t n);
    void *arg;
};

static const struct {
    const char *open, *close;
} tags[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"<thought>", "</thought>"},
    {"<reasoning>", "</reasoning>"},
    {"<seed:think>", "</seed:think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
};

static bool ends_with(const char *text, size_t n, const char *tail)
{
    size_t n_tail = strlen(tail);
    return n >= n_tail && memcmp(text + n - n_tail, tail, n_tail) == 0;
}

const char *tern_thinking_opened_by(const char *prompt_end, size_t n)
{
    n = tn_text_trimmed(prompt_end, n);
    for (size_t i = 0; i < TN_COUNT_OF(tags); i++)
        if (ends_with(prompt_end, n, tags[i].open))
            return tags[i].close;
    return NULL;
}

#define N_LAST_IDS 16u /* enough for a tag and the line endings after it */

tern_status tern_thinking_opened_by_ids(const char **close, const struct tern_tokenizer *tokenizer,
                                        const struct tern_ids *prompt, struct tern_error *err)
{
    char *text;
    size_t n_text;
    const size_t n = TN_MIN(prompt->n, (size_t)N_LAST_IDS);
    *close = NULL;
    tern_status status = tern_tokenizer_decode(tokenizer, prompt->ids + prompt->n - n, n, false,
                                               &text, &n_text, err);
    if (status != TERN_OK)
        return status;
    *close = tern_thinking_opened_by(text, n_text);
    tern_text_free(text);
    return TERN_OK;
}

tern_status tern_thinking_close_ids(struct tern_ids *prompt, const char *close,
                                    const struct tern_tokenizer *tokenizer,
                                    struct tern_error *err)
{
    char text[64];
    const int n = snprintf(text, sizeof text, "\n%s\n\n", close);
    return tern_tokenizer_encode(tokenizer, text, (size_t)n, TERN_ENCODE_PARSE_SPECIAL, prompt,
                                 err);
}

tern_status tern_thinking_create(struct tern_thinking **out,
                                 bool (*on_part)(void *arg, enum tern_part part, const char *text,
                                                 size_t n),
                                 void *arg, struct tern_error *err)
{
    struct tern_thinking *t = tn_alloc_zeroed(1, sizeof *t);
    *out = t;
    if (!t)
        return tn_fail(err, TERN_MEMORY, "no memory for an answer");
    t->on_part = on_part;
    t->arg = arg;
    t->answer_at = SIZE_MAX;
    return tn_ok(err);
}

void tern_thinking_free(struct tern_thinking *t)
{
    if (t)
        tn_buf_fini(&t->held);
    tn_free(t);
}

void tern_thinking_begin_inside(struct tern_thinking *t, const char *close)
{
    t->state = close ? INSIDE : START;
    t->close = close;
}

void tern_thinking_resume(struct tern_thinking *t, bool was_inside)
{
    t->state = was_inside ? INSIDE : ANSWER;
    t->close = t->close ? t->close : tags[0].close;
    t->has_reasoning = was_inside;
}

bool tern_thinking_is_inside(const struct tern_thinking *t)
{
    return t->state == INSIDE;
}

size_t tern_thinking_answer_at(const struct tern_thinking *t)
{
    return t->answer_at;
}

/* Emits the first n held bytes. */
static void emit(struct tern_thinking *t, enum tern_part part, size_t n)
{
    if (part == TERN_PART_ANSWER && t->answer_at == SIZE_MAX)
        t->answer_at = t->n_pushed - t->held.n_bytes;
    if (n > 0 && !t->is_refused)
        t->is_refused = !t->on_part(t->arg, part, t->held.data, n);
    t->has_reasoning = t->has_reasoning || (part == TERN_PART_REASONING && n > 0);
}

static void drop(struct tern_thinking *t, size_t n)
{
    t->held.n_bytes -= n;
    memmove(t->held.data, t->held.data + n, t->held.n_bytes);
}

enum progress { WAIT, PROGRESS }; /* more text is needed; the state has changed */

static enum progress at_start(struct tern_thinking *t)
{
    size_t skip = tn_text_n_space(t->held.data, t->held.n_bytes), n = t->held.n_bytes - skip;
    bool may_become = n == 0;
    for (size_t i = 0; i < TN_COUNT_OF(tags); i++) {
        size_t n_tag = strlen(tags[i].open);
        if (memcmp(t->held.data + skip, tags[i].open, TN_MIN(n, n_tag)) != 0)
            continue;
        if (n >= n_tag) {
            drop(t, skip + n_tag);
            t->state = INSIDE;
            t->close = tags[i].close;
            return PROGRESS;
        }
        may_become = true;
    }
    if (may_become)
        return WAIT;
    t->state = ANSWER;
    return PROGRESS;
}

/* Length of the held bytes that are certainly reasoning: without a partial closing tag and the
 * white space before it. */
static size_t decided_reasoning(const struct tern_thinking *t)
{
    const size_t n = t->held.n_bytes;
    return tn_text_trimmed(t->held.data, n - tn_text_n_begun(t->held.data, n, t->close));
}

static enum progress while_thinking(struct tern_thinking *t)
{
    if (!t->has_reasoning)
        drop(t, tn_text_n_space(t->held.data, t->held.n_bytes));
    const size_t at = tn_text_find(t->held.data, t->held.n_bytes, 0, t->close);
    bool is_closed = at < t->held.n_bytes;
    size_t n = is_closed ? tn_text_trimmed(t->held.data, at) : decided_reasoning(t);
    emit(t, TERN_PART_REASONING, n);
    drop(t, is_closed ? at + strlen(t->close) : n);
    if (is_closed)
        t->state = GAP;
    return is_closed ? PROGRESS : WAIT;
}

static enum progress step(struct tern_thinking *t)
{
    switch (t->state) {
    case START:
        return at_start(t);
    case INSIDE:
        return while_thinking(t);
    case GAP:
        drop(t, tn_text_n_space(t->held.data, t->held.n_bytes));
        if (t->held.n_bytes == 0)
            return WAIT;
        t->state = ANSWER;
        return PROGRESS;
    default:
        emit(t, TERN_PART_ANSWER, t->held.n_bytes);
        t->held.n_bytes = 0;
        return WAIT;
    }
}

static tern_status result(const struct tern_thinking *t, struct tern_error *err)
{
    return t->is_refused ? tn_fail(err, TERN_INTERRUPTED, "the answer was stopped") : tn_ok(err);
}

tern_status tern_thinking_push(struct tern_thinking *t, const char *text, size_t n,
                               struct tern_error *err)
{
    if (n > 0 && !tn_buf_append(&t->held, text, n))
        return tn_fail(err, TERN_MEMORY, "no memory for an answer");
    t->n_pushed += n;
    while (n > 0 && step(t) == PROGRESS)
        ;
    return result(t, err);
}

tern_status tern_thinking_end(struct tern_thinking *t, struct tern_error *err)
{
    const size_t n = t->held.n_bytes;
    if (n > 0 && t->state == INSIDE)
        emit(t, TERN_PART_REASONING, tn_text_trimmed(t->held.data, n));
    else if (n > 0)
        emit(t, TERN_PART_ANSWER, n);
    t->held.n_bytes = 0;
    return result(t, err);
}

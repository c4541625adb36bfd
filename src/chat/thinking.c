/* SPDX-License-Identifier: MIT
 *
 * The tags that published models write around their reasoning.
 */
#include "chat/thinking.h"

#include <string.h>

#include "base/compiler.h"

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

const char *tn_thinking_open_text(void)
{
    return "<think>\n";
}

const char *tn_thinking_close_text(void)
{
    return "\n</think>\n\n";
}

static size_t n_space(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && memchr(" \t\r\n", text[i], 4))
        i++;
    return i;
}

static size_t without_space_at_end(const char *text, size_t n)
{
    while (n > 0 && memchr(" \t\r\n", text[n - 1], 4))
        n--;
    return n;
}

static bool ends_with(const char *text, size_t n, const char *tail)
{
    size_t n_tail = strlen(tail);
    return n >= n_tail && memcmp(text + n - n_tail, tail, n_tail) == 0;
}

void tn_thinking_start(struct tn_thinking *t, const char *prompt_end, size_t n)
{
    n = without_space_at_end(prompt_end, n);
    for (size_t i = 0; i < TN_COUNT_OF(tags); i++) {
        if (ends_with(prompt_end, n, tags[i].open)) {
            t->state = TN_THINKING;
            t->close = tags[i].close;
        }
    }
}

void tn_thinking_resume(struct tn_thinking *t, bool is_thinking)
{
    t->state = is_thinking ? TN_THINKING : TN_ANSWERING;
    t->close = tags[0].close;
    t->has_reasoning = is_thinking;
}

/* Gives the first n held bytes away. */
static void give(struct tn_thinking *t, enum tern_part part, size_t n)
{
    if (n > 0 && !t->is_refused)
        t->is_refused = !t->on_part(t->arg, part, t->held.data, n);
    t->has_reasoning = t->has_reasoning || (part == TERN_PART_REASONING && n > 0);
}

static void drop(struct tn_thinking *t, size_t n)
{
    t->held.n_bytes -= n;
    memmove(t->held.data, t->held.data + n, t->held.n_bytes);
}

enum progress { WAIT, GO_ON }; /* for more text; the state has changed */

static enum progress at_start(struct tn_thinking *t)
{
    size_t skip = n_space(t->held.data, t->held.n_bytes), n = t->held.n_bytes - skip;
    bool may_become = n == 0;
    for (size_t i = 0; i < TN_COUNT_OF(tags); i++) {
        size_t n_tag = strlen(tags[i].open);
        if (memcmp(t->held.data + skip, tags[i].open, TN_MIN(n, n_tag)) != 0)
            continue;
        if (n >= n_tag) {
            drop(t, skip + n_tag);
            t->state = TN_THINKING;
            t->close = tags[i].close;
            return GO_ON;
        }
        may_become = true;
    }
    if (may_become)
        return WAIT;
    t->state = TN_ANSWERING;
    return GO_ON;
}

/* Where the closing tag begins; n_bytes: nowhere yet. */
static size_t find_close(const struct tn_thinking *t)
{
    size_t n_close = strlen(t->close), i = 0;
    for (; i + n_close <= t->held.n_bytes; i++)
        if (memcmp(t->held.data + i, t->close, n_close) == 0)
            return i;
    return t->held.n_bytes;
}

/* Bytes that surely are reasoning: without a beginning of the closing tag and white space before
 * it. */
static size_t decided_reasoning(const struct tn_thinking *t)
{
    size_t n = t->held.n_bytes, n_part = TN_MIN(strlen(t->close) - 1, n);
    for (; n_part > 0; n_part--)
        if (memcmp(t->held.data + n - n_part, t->close, n_part) == 0)
            break;
    return without_space_at_end(t->held.data, n - n_part);
}

static enum progress while_thinking(struct tn_thinking *t)
{
    if (!t->has_reasoning)
        drop(t, n_space(t->held.data, t->held.n_bytes));
    size_t at = find_close(t);
    bool is_closed = at < t->held.n_bytes;
    size_t n = is_closed ? without_space_at_end(t->held.data, at) : decided_reasoning(t);
    give(t, TERN_PART_REASONING, n);
    drop(t, is_closed ? at + strlen(t->close) : n);
    if (is_closed)
        t->state = TN_THINKING_GAP;
    return is_closed ? GO_ON : WAIT;
}

static enum progress step(struct tn_thinking *t)
{
    switch (t->state) {
    case TN_THINKING_START:
        return at_start(t);
    case TN_THINKING:
        return while_thinking(t);
    case TN_THINKING_GAP:
        drop(t, n_space(t->held.data, t->held.n_bytes));
        if (t->held.n_bytes == 0)
            return WAIT;
        t->state = TN_ANSWERING;
        return GO_ON;
    default:
        give(t, TERN_PART_ANSWER, t->held.n_bytes);
        t->held.n_bytes = 0;
        return WAIT;
    }
}

bool tn_thinking_push(struct tn_thinking *t, const char *text, size_t n)
{
    if (n == 0)
        return !t->is_refused;
    if (!tn_buf_append(&t->held, text, n))
        return false;
    while (step(t) == GO_ON)
        ;
    return !t->is_refused;
}

bool tn_thinking_end(struct tn_thinking *t)
{
    if (t->held.n_bytes > 0)
        give(t, t->state == TN_THINKING ? TERN_PART_REASONING : TERN_PART_ANSWER,
             t->state == TN_THINKING ? without_space_at_end(t->held.data, t->held.n_bytes)
                                     : t->held.n_bytes);
    t->held.n_bytes = 0;
    return !t->is_refused;
}

void tn_thinking_fini(struct tn_thinking *t)
{
    tn_buf_fini(&t->held);
}

/* SPDX-License-Identifier: MIT
 *
 * Answers a conversation: selects the turns that fit the context, generates, and stores the result
 * as a turn.
 *
 * The three operations (answer, continue, regenerate) restore the conversation when they fail.
 */
#include "chat/conversation.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tern/thinking.h"
#include "text/tokenizer.h"

/* ---- fitting the context ---- */

struct view {
    size_t first; /* the model sees turns [first, n) */
    size_t n;
    size_t n_begun; /* ids of a begun answer, appended after them */
    size_t n_dropped;
    struct tern_ids ids;
    const struct tern_answer_params *params;
};

/* A view with more bytes per token of context than this cannot fit and is not encoded: tokens
 * average 4 bytes and rarely exceed 16. */
#define MAX_BYTES_PER_TOKEN 64u

static bool is_long(const struct tern_conversation *c, size_t first, size_t n, uint64_t n_ctx)
{
    uint64_t n_bytes = 0;
    for (size_t i = first; i < n; i++)
        n_bytes += c->turns[i].fields[TN_FIELD_CONTENT].n_bytes;
    return n_bytes > n_ctx * MAX_BYTES_PER_TOKEN;
}

static tern_status encode_from(struct view *v, const struct tern_conversation *c, size_t first,
                               struct tern_error *err)
{
    if (v->params->should_stop && v->params->should_stop(v->params->arg))
        return tn_fail(err, TERN_INTERRUPTED, "interrupted before the answer began");
    return tn_conversation_encode_turns(c, first, v->n, &v->ids, err);
}

/* Do the turns from `first` on fill at most three quarters of the context? */
static tern_status try_from(bool *fits, struct view *v, const struct tern_conversation *c,
                            size_t first, uint64_t n_ctx, struct tern_error *err)
{
    *fits = false;
    if (is_long(c, first, v->n, n_ctx))
        return TERN_OK;
    tern_status status = encode_from(v, c, first, err);
    *fits = status == TERN_OK && v->ids.n + v->n_begun <= n_ctx * 3 / 4;
    return status;
}

/* The questions after v->first, *n of them: a shorter view must begin with one. */
static tern_status list_starts(size_t **starts, size_t *n, const struct view *v,
                               const struct tern_conversation *c, struct tern_error *err)
{
    *n = 0;
    *starts = tn_alloc((v->n - v->first + 1) * sizeof **starts);
    if (!*starts)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu messages", v->n - v->first);
    for (size_t i = v->first + 1; i < v->n; i++)
        if (tn_turn_is(&c->turns[i], "user"))
            (*starts)[(*n)++] = i;
    return TERN_OK;
}

/* The first of n > 0 starts whose view fits, or the last one if none does.  Tries views of 1, 2, 4,
 * ... turns from the end until one does not fit, then bisects: the cost depends on the context, not
 * on the length of the conversation. */
static tern_status choose_start(size_t *start, struct view *v, const struct tern_conversation *c,
                                const size_t *starts, size_t n, uint64_t n_ctx,
                                struct tern_error *err)
{
    size_t good = n - 1, bad = SIZE_MAX; /* SIZE_MAX: before the first one */
    tern_status status = TERN_OK;
    bool fits = true;
    for (size_t step = 1; status == TERN_OK && fits && good > 0; step *= 2) {
        const size_t i = good - TN_MIN(step, good);
        status = try_from(&fits, v, c, starts[i], n_ctx, err);
        *(fits ? &good : &bad) = i;
    }
    while (status == TERN_OK && bad != SIZE_MAX && good - bad > 1) {
        const size_t i = bad + (good - bad) / 2;
        status = try_from(&fits, v, c, starts[i], n_ctx, err);
        *(fits ? &good : &bad) = i;
    }
    *start = starts[good];
    return status;
}

/* Drops the oldest turns until at most three quarters of the context are filled, so that not every
 * answer has to recompute everything. */
static tern_status shorten_view(struct view *v, const struct tern_conversation *c, uint64_t n_ctx,
                                struct tern_error *err)
{
    size_t *starts, n, start;
    tern_status status = list_starts(&starts, &n, v, c, err);
    if (status == TERN_OK && n > 0)
        status = choose_start(&start, v, c, starts, n, n_ctx, err);
    if (status == TERN_OK && n > 0) {
        v->n_dropped = start - v->first;
        v->first = start;
    }
    tn_free(starts);
    return status == TERN_OK ? encode_from(v, c, v->first, err) : status;
}

/* Selects the turns that the model sees, leaving room for an answer. */
static tern_status fit_view(struct view *v, const struct tern_conversation *c, uint64_t n_ctx,
                            struct tern_error *err)
{
    uint64_t n_room = TN_MIN(v->params->generate.max_tokens, n_ctx / 4);
    bool is_full = is_long(c, v->first, v->n, n_ctx);
    tern_status status = TERN_OK;
    if (!is_full) {
        status = encode_from(v, c, v->first, err);
        is_full = v->ids.n + v->n_begun + n_room > n_ctx &&
                  v->ids.n + v->n_begun > n_ctx * 3 / 4;
    }
    if (status == TERN_OK && is_full)
        status = shorten_view(v, c, n_ctx, err);
    if (status == TERN_OK && v->ids.n + v->n_begun >= n_ctx)
        return tn_fail(err, TERN_LIMIT, "the message is too long: %zu tokens, the context is %llu",
                       v->ids.n + v->n_begun, (unsigned long long)n_ctx);
    return status;
}

/* ---- generation ---- */

struct generation {
    const struct tern_answer_params *params;
    struct tn_turn *turn;
    struct tern_thinking *thinking;
    bool is_short; /* out of memory */
};

static bool on_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    struct generation *s = arg;
    enum tn_field field = part == TERN_PART_ANSWER ? TN_FIELD_CONTENT : TN_FIELD_REASONING;
    s->turn->has[field] = true;
    if (!tn_buf_append(&s->turn->fields[field], text, n)) {
        s->is_short = true;
        return false;
    }
    return !s->params->on_part || s->params->on_part(s->params->arg, part, text, n);
}

static bool on_text(void *arg, const char *text, size_t n)
{
    struct generation *s = arg;
    const tern_status status = tern_thinking_push(s->thinking, text, n, NULL);
    s->is_short = s->is_short || status == TERN_MEMORY;
    return status == TERN_OK;
}

static void on_token(void *arg, uint32_t id)
{
    struct generation *s = arg;
    const struct tern_generate_params *g = &s->params->generate;
    s->is_short = !tn_ids_append(&s->turn->ids, &id, 1) || s->is_short;
    if (g->on_token)
        g->on_token(g->arg, id);
}

static void on_prefill(void *arg, size_t n_done, size_t n_total)
{
    const struct tern_generate_params *g = &((struct generation *)arg)->params->generate;
    if (g->on_prefill)
        g->on_prefill(g->arg, n_done, n_total);
}

/* Some templates open the reasoning block themselves. */
static tern_status start_thinking(struct generation *s, const struct tern_conversation *c,
                                  const struct tern_ids *prompt, struct tern_error *err)
{
    const char *close;
    tern_status status = tern_thinking_opened_by_ids(&close, c->tokenizer, prompt, err);
    if (status == TERN_OK)
        status = tern_thinking_create(&s->thinking, on_part, s, err);
    if (status == TERN_OK)
        tern_thinking_begin_inside(s->thinking, close);
    return status;
}

/* Generates after v->ids into `turn`.  Its ids become those that continue the conversation: without
 * the stop id, and none where a stop string was cut off. */
static tern_status generate_turn(struct tern_conversation *c, struct tern_session *session,
                         struct generation *s, const struct view *v,
                         struct tern_generate_result *result, struct tern_error *err)
{
    struct tern_generate_params generate = s->params->generate;
    struct tern_chat_marks marks = {0};
    if (tern_session_has_state(session))
        tn_conversation_marks(&marks, c, v->first, v->n, &v->ids);
    generate.n_system = marks.n_system;
    generate.n_turn = marks.n_turn;
    generate.on_text = on_text;
    generate.on_token = on_token;
    generate.on_prefill = on_prefill;
    generate.arg = s;
    tern_sampler_reseed(generate.sampler, s->params->seed + c->n_answers);
    if (s->params->on_ids)
        s->params->on_ids(s->params->arg, v->ids.ids, v->ids.n);
    tern_status status = tern_generate(session, v->ids.ids, v->ids.n, &generate, result, err);
    if (status == TERN_OK) {
        (void)tern_thinking_end(s->thinking, NULL);
        c->n_answers++;
        s->turn->is_thinking = tern_thinking_is_inside(s->thinking);
        if (result->stop == TERN_STOP_EOS && s->turn->ids.n > 0)
            s->turn->ids.n--;
        else if (result->stop == TERN_STOP_STRING)
            s->turn->ids.n = 0;
        if (s->is_short)
            status = tn_fail(err, TERN_MEMORY, "no memory to store the answer");
    }
    return status;
}

static tern_status check_answer(const struct tern_conversation *c, struct tern_error *err)
{
    return c->n_turns > 0 && tn_turn_is(&c->turns[c->n_turns - 1], "assistant")
               ? TERN_OK
               : tn_fail(err, TERN_USAGE, "there is no answer yet");
}

static void report(struct tern_answer_result *result, struct tern_conversation *c,
                   const struct view *v)
{
    const struct tern_generate_result *g = &result->generate;
    result->n_ids = (uint32_t)v->ids.n + g->n_new - (g->stop == TERN_STOP_EOS);
    result->n_forgotten = v->n_dropped;
    c->n_forgotten = v->first;
}

/* ---- answer, continue, regenerate ---- */

tern_status tern_conversation_answer(struct tern_conversation *c, struct tern_session *session,
                                     const struct tern_answer_params *params,
                                     struct tern_answer_result *result, struct tern_error *err)
{
    struct view v = {.first = c->n_forgotten, .n = c->n_turns, .params = params};
    struct generation s = {.params = params};
    *result = (struct tern_answer_result){0};
    tern_status status = fit_view(&v, c, tern_session_n_ctx(session), err);
    if (status == TERN_OK && !(s.turn = tn_conversation_push(c, "assistant")))
        status = tn_fail(err, TERN_MEMORY, "no memory for an answer");
    if (status == TERN_OK) {
        status = start_thinking(&s, c, &v.ids, err);
        if (status == TERN_OK)
            status = generate_turn(c, session, &s, &v, &result->generate, err);
        if (status == TERN_OK)
            report(result, c, &v);
        else
            tn_turn_fini(&c->turns[--c->n_turns]);
    }
    tern_thinking_free(s.thinking);
    tern_ids_free(&v.ids);
    return status;
}

tern_status tern_conversation_regenerate(struct tern_conversation *c, struct tern_session *session,
                                         const struct tern_answer_params *params,
                                         struct tern_answer_result *result, struct tern_error *err)
{
    *result = (struct tern_answer_result){0};
    tern_status status = check_answer(c, err);
    if (status != TERN_OK)
        return status;
    struct tn_turn old = c->turns[--c->n_turns];
    status = tern_conversation_answer(c, session, params, result, err);
    if (status == TERN_OK)
        tn_turn_fini(&old);
    else
        c->turns[c->n_turns++] = old; /* restore its position */
    return status;
}

/* Index below n_turns of the last message with role user; n_turns: none. */
static size_t last_question(const struct tern_conversation *c, size_t n_turns)
{
    for (size_t i = n_turns; i-- > 0;)
        if (tn_turn_is(&c->turns[i], "user"))
            return i;
    return n_turns;
}

tern_status tern_conversation_replace(struct tern_conversation *c, struct tern_session *session,
                                      const struct tern_answer_params *params,
                                      struct tern_answer_result *result, struct tern_error *err)
{
    *result = (struct tern_answer_result){0};
    const size_t at = c->n_turns > 0 ? c->n_turns - 1 : 0, first = last_question(c, at);
    if (first == at || !tn_turn_is(&c->turns[at], "user"))
        return tn_fail(err, TERN_USAGE, "there is no question to replace");
    const size_t n = at - first, n_forgotten = c->n_forgotten;
    struct tn_turn *old = tn_alloc(n * sizeof *old);
    if (!old)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu messages", n);
    memcpy(old, c->turns + first, n * sizeof *old);
    c->turns[first] = c->turns[at];
    c->n_turns = first + 1;
    if (c->n_forgotten >= first)
        c->n_forgotten = 0; /* there may be room for them again */
    tern_status status = tern_conversation_answer(c, session, params, result, err);
    if (status == TERN_OK) {
        for (size_t i = 0; i < n; i++)
            tn_turn_fini(&old[i]);
    } else {
        c->turns[at] = c->turns[first];
        memcpy(c->turns + first, old, n * sizeof *old); /* restore their positions */
        c->n_turns = at + 1;
        c->n_forgotten = n_forgotten;
    }
    tn_free(old);
    return status;
}

/* Reassembles an answer's text, including the tags around its reasoning. */
static void join_parts(struct tn_buf *out, const struct tn_turn *turn)
{
    struct tern_text reasoning = tn_turn_text(turn, TN_FIELD_REASONING);
    struct tern_text content = tn_turn_text(turn, TN_FIELD_CONTENT);
    if (reasoning.n > 0) {
        tn_buf_append_text(out, TERN_THINKING_OPEN);
        tn_buf_append(out, reasoning.bytes, reasoning.n);
        if (!turn->is_thinking)
            tn_buf_append_text(out, TERN_THINKING_CLOSE);
    }
    tn_buf_append(out, content.bytes ? content.bytes : "", content.n);
}

/* Computes the ids of a turn whose sampled ids are unknown: it was loaded, or a stop string ended
 * it. */
static tern_status find_ids(struct tern_conversation *c, struct tn_turn *turn,
                            struct tern_error *err)
{
    struct tn_buf text = {0};
    if (turn->ids.n > 0)
        return TERN_OK;
    join_parts(&text, turn);
    tern_status status = text.failed
                             ? tn_fail(err, TERN_MEMORY, "no memory for an answer")
                             : tern_tokenizer_encode(c->tokenizer, tn_buf_bytes(&text),
                                                     text.n_bytes, 0, &turn->ids, err);
    tn_buf_fini(&text);
    return status;
}

/* Removes what was appended to a turn since `before` was copied from it. */
static void cut_turn(struct tn_turn *turn, const struct tn_turn *before)
{
    for (enum tn_field field = TN_FIELD_CONTENT; field <= TN_FIELD_REASONING; field++) {
        turn->fields[field].n_bytes = before->fields[field].n_bytes;
        turn->fields[field].failed = false;
        turn->has[field] = before->has[field];
    }
    turn->is_thinking = before->is_thinking;
    turn->ids.n = TN_MIN(turn->ids.n, before->ids.n);
}

tern_status tern_conversation_continue(struct tern_conversation *c, struct tern_session *session,
                                       const struct tern_answer_params *params,
                                       struct tern_answer_result *result, struct tern_error *err)
{
    *result = (struct tern_answer_result){0};
    tern_status status = check_answer(c, err);
    if (status != TERN_OK)
        return status;
    struct tn_turn *turn = &c->turns[c->n_turns - 1];
    status = c->t ? find_ids(c, turn, err) : TERN_OK;
    struct view v = {.first = c->n_forgotten,
                     .n = c->n_turns - 1,
                     .n_begun = turn->ids.n,
                     .params = params};
    struct generation s = {.params = params, .turn = turn};
    if (status == TERN_OK)
        status = fit_view(&v, c, tern_session_n_ctx(session), err);
    if (status == TERN_OK && !tn_ids_append(&v.ids, turn->ids.ids, turn->ids.n))
        status = tn_fail(err, TERN_MEMORY, "no memory for %zu ids", v.ids.n + turn->ids.n);
    const struct tn_turn before = *turn;
    const size_t n_ids = before.ids.n;
    if (status == TERN_OK)
        status = start_thinking(&s, c, &v.ids, err);
    if (status == TERN_OK) {
        if (n_ids > 0)
            tern_thinking_resume(s.thinking, turn->is_thinking);
        status = generate_turn(c, session, &s, &v, &result->generate, err);
        if (status == TERN_OK)
            report(result, c, &v);
        else
            cut_turn(turn, &before);
    }
    tern_thinking_free(s.thinking);
    tern_ids_free(&v.ids);
    return status;
}

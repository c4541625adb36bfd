/* SPDX-License-Identifier: MIT
 *
 * Answers: what the model sees, what it says, and what becomes of both.
 */
#include "chat/conversation.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tern/thinking.h"
#include "text/tokenizer.h"

/* ---- what the model sees ---- */

struct view {
    size_t first; /* turns [first, n) are seen */
    size_t n;
    size_t n_behind; /* ids of a begun answer, which follow them */
    size_t n_dropped;
    struct tern_ids ids;
    const struct tern_answer_params *params;
};

/* A view with more bytes than this for each token of the context is known not to fit without being
 * encoded: tokens have about 4 bytes, seldom more than 16. */
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

/* Do the turns from `first` on fill three quarters of the context at most? */
static tern_status try_from(bool *fits, struct view *v, const struct tern_conversation *c,
                            size_t first, uint64_t n_ctx, struct tern_error *err)
{
    *fits = false;
    if (is_long(c, first, v->n, n_ctx))
        return TERN_OK;
    tern_status status = encode_from(v, c, first, err);
    *fits = status == TERN_OK && v->ids.n + v->n_behind <= n_ctx * 3 / 4;
    return status;
}

/* The questions after v->first, one of which a shorter view begins with; *n of them. */
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

/* The first of n > 0 starts whose view fits, the last one if none does. Views of 1, 2, 4, ... turns
 * from the end are tried until one does not fit, then bisection: what is encoded depends on the
 * context, not on the length of the conversation. */
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

/* Leaves the oldest turns out. Three quarters of the context stay filled at most, so that not every
 * answer has to compute everything anew. */
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

/* What of the conversation goes to the model, so that there is room for an answer. */
static tern_status fit_view(struct view *v, const struct tern_conversation *c, uint64_t n_ctx,
                            struct tern_error *err)
{
    uint64_t n_room = TN_MIN(v->params->generate.max_tokens, n_ctx / 4);
    bool is_full = is_long(c, v->first, v->n, n_ctx);
    tern_status status = TERN_OK;
    if (!is_full) {
        status = encode_from(v, c, v->first, err);
        is_full = v->ids.n + v->n_behind + n_room > n_ctx &&
                  v->ids.n + v->n_behind > n_ctx * 3 / 4;
    }
    if (status == TERN_OK && is_full)
        status = shorten_view(v, c, n_ctx, err);
    if (status == TERN_OK && v->ids.n + v->n_behind >= n_ctx)
        return tn_fail(err, TERN_LIMIT, "the message is too long: %zu tokens, the context is %llu",
                       v->ids.n + v->n_behind, (unsigned long long)n_ctx);
    return status;
}

/* ---- what it says ---- */

struct speech {
    const struct tern_answer_params *params;
    struct tn_turn *turn;
    struct tern_thinking *thinking;
    bool is_short; /* of memory */
};

static bool on_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    struct speech *s = arg;
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
    struct speech *s = arg;
    const tern_status status = tern_thinking_push(s->thinking, text, n, NULL);
    s->is_short = s->is_short || status == TERN_MEMORY;
    return status == TERN_OK;
}

static void on_token(void *arg, uint32_t id)
{
    struct speech *s = arg;
    const struct tern_generate_params *g = &s->params->generate;
    s->is_short = !tn_ids_append(&s->turn->ids, &id, 1) || s->is_short;
    if (g->on_token)
        g->on_token(g->arg, id);
}

static void on_prefill(void *arg, size_t n_done, size_t n_total)
{
    const struct tern_generate_params *g = &((struct speech *)arg)->params->generate;
    if (g->on_prefill)
        g->on_prefill(g->arg, n_done, n_total);
}

/* Some templates open the reasoning themselves. */
static tern_status start_thinking(struct speech *s, const struct tern_conversation *c,
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

/* Samples behind v->ids into `turn`, whose ids become what continues them: without a stop id, and
 * none where a stop string was cut off. */
static tern_status speak(struct tern_conversation *c, struct tern_session *session,
                         struct speech *s, const struct view *v,
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
            status = tn_fail(err, TERN_MEMORY, "no memory to remember the answer");
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

/* ---- the three kinds of answers ---- */

tern_status tern_conversation_answer(struct tern_conversation *c, struct tern_session *session,
                                     const struct tern_answer_params *params,
                                     struct tern_answer_result *result, struct tern_error *err)
{
    struct view v = {.first = c->n_forgotten, .n = c->n_turns, .params = params};
    struct speech s = {.params = params};
    *result = (struct tern_answer_result){0};
    tern_status status = fit_view(&v, c, tern_session_n_ctx(session), err);
    if (status == TERN_OK && !(s.turn = tn_conversation_push(c, "assistant")))
        status = tn_fail(err, TERN_MEMORY, "no memory for an answer");
    if (status == TERN_OK) {
        status = start_thinking(&s, c, &v.ids, err);
        if (status == TERN_OK)
            status = speak(c, session, &s, &v, &result->generate, err);
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
        c->turns[c->n_turns++] = old; /* where it was */
    return status;
}

/* Message i below n_turns, of role user; n_turns: there is none. */
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
        return tn_fail(err, TERN_USAGE, "there is no question that could be replaced");
    const size_t n = at - first, n_forgotten = c->n_forgotten;
    struct tn_turn *old = tn_alloc(n * sizeof *old);
    if (!old)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu messages", n);
    memcpy(old, c->turns + first, n * sizeof *old);
    c->turns[first] = c->turns[at];
    c->n_turns = first + 1;
    if (c->n_forgotten >= first)
        c->n_forgotten = 0; /* there is room for them again */
    tern_status status = tern_conversation_answer(c, session, params, result, err);
    if (status == TERN_OK) {
        for (size_t i = 0; i < n; i++)
            tn_turn_fini(&old[i]);
    } else {
        c->turns[at] = c->turns[first];
        memcpy(c->turns + first, old, n * sizeof *old); /* where they were */
        c->n_turns = at + 1;
        c->n_forgotten = n_forgotten;
    }
    tn_free(old);
    return status;
}

/* The text that an answer was, with what told its parts apart. */
static void put_together(struct tn_buf *out, const struct tn_turn *turn)
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

/* Gives `turn` ids where those that were sampled are not known: of a loaded answer, or one that a
 * stop string ended. */
static tern_status find_ids(struct tern_conversation *c, struct tn_turn *turn,
                            struct tern_error *err)
{
    struct tn_buf text = {0};
    if (turn->ids.n > 0)
        return TERN_OK;
    put_together(&text, turn);
    tern_status status = text.failed
                             ? tn_fail(err, TERN_MEMORY, "no memory for an answer")
                             : tern_tokenizer_encode(c->tokenizer, text.data ? text.data : "",
                                                     text.n_bytes, 0, &turn->ids, err);
    tn_buf_fini(&text);
    return status;
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
                     .n_behind = turn->ids.n,
                     .params = params};
    struct speech s = {.params = params, .turn = turn};
    if (status == TERN_OK)
        status = fit_view(&v, c, tern_session_n_ctx(session), err);
    if (status == TERN_OK && !tn_ids_append(&v.ids, turn->ids.ids, turn->ids.n))
        status = tn_fail(err, TERN_MEMORY, "no memory for %zu ids", v.ids.n + turn->ids.n);
    const size_t n_ids = turn->ids.n;
    if (status == TERN_OK)
        status = start_thinking(&s, c, &v.ids, err);
    if (status == TERN_OK) {
        if (n_ids > 0)
            tern_thinking_resume(s.thinking, turn->is_thinking);
        status = speak(c, session, &s, &v, &result->generate, err);
        if (status == TERN_OK)
            report(result, c, &v);
        else
            turn->ids.n = TN_MIN(turn->ids.n, n_ids);
    }
    tern_thinking_free(s.thinking);
    tern_ids_free(&v.ids);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * From a prompt to text: prefill what the cache does not hold, then sample,
 * decode and look for the end, token by token.
 *
 *   id -> bytes -> whole characters (decoder) -> pending text -> on_text
 *
 * Pending text is held back as long as it may be the beginning of a stop
 * string.  All memory is taken before the first token.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "run/sampler.h"
#include "run/session.h"
#include "tern/plan.h"

const char *tern_stop_text(enum tern_stop stop)
{
    static const char *const names[] = {"eos", "stop", "length", "context", "memory", "interrupt"};
    return names[stop];
}

/* ---- text ---- */

struct text_out {
    const struct tern_generate_params *params;
    const struct tern_model *model;
    struct tern_decoder decoder;
    struct tn_buf pending; /* whole characters that were not given to on_text yet */
    char *piece;           /* room for one decoded token */
    bool is_refused;       /* on_text returned false */
};

static tern_status text_out_init(struct text_out *t, const struct tern_generate_params *params,
                                 const struct tern_model *model, struct tern_error *err)
{
    *t = (struct text_out){.params = params, .model = model};
    size_t longest = 0, room = 0;
    for (uint32_t id = 0; model->tokenizer && id < model->n_allowed; id++) {
        size_t n;
        tern_tokenizer_token_bytes(model->tokenizer, id, &n);
        room = TN_MAX(room, 3 * (n + 4));
    }
    for (size_t i = 0; i < params->n_stop_strings; i++)
        longest = TN_MAX(longest, strlen(params->stop_strings[i]));
    t->piece = tn_alloc(room + 12);
    if (!t->piece || !tn_buf_reserve(&t->pending, longest + room + 12)) {
        tn_free(t->piece);
        return tn_fail(err, TERN_MEMORY, "no memory for the text of a token");
    }
    return tn_ok(err);
}

static void text_out_fini(struct text_out *t)
{
    tn_free(t->piece);
    tn_buf_fini(&t->pending);
}

/* Gives the first n pending bytes away; false when the callback wants to stop: it is not called
 * again. */
static bool give(struct text_out *t, size_t n)
{
    if (n > 0 && t->params->on_text && !t->is_refused)
        t->is_refused = !t->params->on_text(t->params->arg, t->pending.data, n);
    memmove(t->pending.data, t->pending.data + n, t->pending.n_bytes - n);
    t->pending.n_bytes -= n;
    return !t->is_refused;
}

/* Where the earliest stop string begins in the pending text, or SIZE_MAX. */
static size_t find_stop(const struct text_out *t)
{
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < t->params->n_stop_strings; i++) {
        const char *stop = t->params->stop_strings[i];
        size_t n = strlen(stop);
        for (size_t at = 0; at + n <= t->pending.n_bytes && at < first; at++)
            if (memcmp(t->pending.data + at, stop, n) == 0)
                first = at;
    }
    return first;
}

/* Bytes at the end of the pending text that may become a stop string. */
static size_t undecided(const struct text_out *t)
{
    size_t longest = 0;
    for (size_t i = 0; i < t->params->n_stop_strings; i++) {
        const char *stop = t->params->stop_strings[i];
        size_t n = TN_MIN(strlen(stop) - 1, t->pending.n_bytes);
        for (; n > longest; n--)
            if (memcmp(t->pending.data + t->pending.n_bytes - n, stop, n) == 0)
                longest = n;
    }
    return longest;
}

enum text_verdict { TEXT_GOES_ON, TEXT_STOP_STRING, TEXT_REFUSED };

static enum text_verdict text_flush(struct text_out *t, bool at_end)
{
    size_t stop = find_stop(t);
    if (stop != SIZE_MAX) {
        give(t, stop);
        t->pending.n_bytes = 0;
        return TEXT_STOP_STRING;
    }
    size_t held = at_end ? 0 : undecided(t);
    return give(t, t->pending.n_bytes - held) ? TEXT_GOES_ON : TEXT_REFUSED;
}

static enum text_verdict text_push(struct text_out *t, uint32_t id)
{
    if (!t->model->tokenizer || t->model->is_control[id])
        return TEXT_GOES_ON;
    size_t n;
    const char *bytes = tern_tokenizer_token_bytes(t->model->tokenizer, id, &n);
    tn_buf_append(&t->pending, t->piece, tern_decoder_push(&t->decoder, bytes, n, t->piece));
    return text_flush(t, false);
}

/* What is left is text: no stop string came of it. */
static void text_end(struct text_out *t)
{
    tn_buf_append(&t->pending, t->piece, tern_decoder_flush(&t->decoder, t->piece));
    text_flush(t, true);
}

/* ---- which logits ---- */

/* The next choice's needs: the sampler looks at the best few and at the penalised ids. */
static void need_for_choice(struct tern_session *s, struct tern_sampler *sampler)
{
    struct tn_head_need need = {
        .n_best = tn_sampler_n_best(sampler),
        .n_allowed = s->model->n_allowed,
        .always = s->forward.s.head_always,
    };
    if (need.n_best && !tn_sampler_penalised(sampler, s->forward.s.head_always,
                                             TN_HEAD_MAX_ALWAYS, &need.n_always))
        need.n_best = 0;
    tn_session_need(s, &need);
}

/* ---- prefill ---- */

/* Positions that the cache already holds; at least the last id is evaluated again for its
 * logits. */
static uint32_t common_prefix(const struct tern_session *s, const uint32_t *ids, size_t n)
{
    uint32_t keep = 0, limit = (uint32_t)TN_MIN((size_t)s->n_past, n - 1);
    while (keep < limit && s->forward.s.ids[keep] == ids[keep])
        keep++;
    return keep;
}

static tern_status prefill(struct tern_session *s, const uint32_t *ids, size_t n,
                           const struct tern_generate_params *params, struct tern_error *err)
{
    size_t from = s->n_past;
    for (size_t i = from; i < n;) {
        size_t n_batch = TN_MIN(n - i, (size_t)s->n_batch);
        tern_status status = tern_session_eval(s, ids + i, n_batch, NULL, err);
        if (status != TERN_OK)
            return status;
        i += n_batch;
        if (params->on_prefill)
            params->on_prefill(params->arg, i - from, n - from);
    }
    return tn_ok(err);
}

static tern_status check_prompt(const struct tern_session *s, const uint32_t *ids, size_t n_ids,
                                struct tern_error *err)
{
    if (n_ids == 0)
        return tn_fail(err, TERN_USAGE, "the prompt is empty: the model needs at least one token");
    if (n_ids > s->n_ctx)
        return tn_fail(err, TERN_LIMIT,
                       "the prompt has %zu tokens, the context %u; shorten it or raise --ctx "
                       "(this model: up to %u)",
                       n_ids, s->n_ctx, s->model->file.config->context);
    return tn_session_check_ids(s, ids, n_ids, err);
}

/* ---- decode ---- */

static void start_history(struct tern_sampler *sampler, const struct tern_model *model,
                          const uint32_t *ids, size_t n)
{
    tern_sampler_set_exempt(sampler, model->is_control);
    tern_sampler_clear_history(sampler);
    for (size_t i = 0; i < n; i++)
        tern_sampler_accept(sampler, ids[i]);
}

static tern_status decode_one(struct tern_session *s, struct tern_steering *steering, uint32_t id,
                              struct tern_error *err)
{
    if (!steering)
        return tern_session_eval(s, &id, 1, NULL, err);
    tern_steering_before_token(steering);
    tern_status status = tern_session_eval(s, &id, 1, NULL, err);
    tern_steering_after_token(steering);
    return status;
}

/* Samples until something ends the text; result->stop says what. */
static tern_status decode(struct tern_session *s, const struct tern_generate_params *params,
                          struct text_out *text, struct tern_generate_result *result,
                          struct tern_error *err)
{
    for (;;) {
        uint32_t id;
        tern_status status =
            tern_sampler_sample(params->sampler, s->forward.s.logits,
                                s->model->file.config->vocab, s->model->n_allowed, &id, err);
        if (status != TERN_OK)
            return status;
        tern_sampler_accept(params->sampler, id);
        result->n_new++;
        if (params->on_token)
            params->on_token(params->arg, id);
        if (!params->ignore_eos && tern_model_is_stop_id(s->model, id)) {
            result->stop = TERN_STOP_EOS;
            return tn_ok(err);
        }
        enum text_verdict verdict = text_push(text, id);
        result->stop = verdict == TEXT_STOP_STRING         ? TERN_STOP_STRING
                       : verdict == TEXT_REFUSED           ? TERN_STOP_INTERRUPT
                       : result->n_new == params->max_tokens ? TERN_STOP_LENGTH
                                                           : TERN_STOP_CONTEXT;
        if (verdict != TEXT_GOES_ON || result->n_new == params->max_tokens || s->n_past == s->n_ctx)
            return tn_ok(err);
        need_for_choice(s, params->sampler);
        status = decode_one(s, params->steering, id, err);
        if (status == TERN_OK) /* before a changed file is taken for logits and text */
            status = tern_model_check_unchanged(s->model, err);
        if (status != TERN_OK) {
            result->stop = status == TERN_MEMORY ? TERN_STOP_MEMORY : TERN_STOP_INTERRUPT;
            return status == TERN_MEMORY || status == TERN_INTERRUPTED ? tn_ok(err) : status;
        }
    }
}

tern_status tern_generate(struct tern_session *s, const uint32_t *ids, size_t n_ids,
                          const struct tern_generate_params *params,
                          struct tern_generate_result *result, struct tern_error *err)
{
    *result = (struct tern_generate_result){.n_prompt = (uint32_t)n_ids};
    struct text_out text;
    tern_status status = tern_model_check_unchanged(s->model, err);
    if (status == TERN_OK)
        status = check_prompt(s, ids, n_ids, err);
    if (status == TERN_OK)
        status = text_out_init(&text, params, s->model, err);
    if (status != TERN_OK)
        return status;

    uint64_t start = tn_now_ns();
    tern_session_truncate(s, common_prefix(s, ids, n_ids));
    result->n_prompt_evaluated = (uint32_t)n_ids - s->n_past;
    start_history(params->sampler, s->model, ids, n_ids);
    need_for_choice(s, params->sampler);
    status = prefill(s, ids, n_ids, params, err);
    if (status == TERN_OK)
        status = tern_model_check_unchanged(s->model, err);
    result->prompt_s = tn_seconds_since(start);

    if (status == TERN_OK && params->max_tokens > 0) {
        start = tn_now_ns();
        status = decode(s, params, &text, result, err);
        if (result->stop != TERN_STOP_STRING)
            text_end(&text);
        result->decode_s = tn_seconds_since(start);
    } else if (status == TERN_OK) {
        result->stop = TERN_STOP_LENGTH;
    }
    tn_session_need(s, NULL);
    text_out_fini(&text);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * From a prompt to text: prefill what the cache does not hold, then sample,
 * decode and look for the end, token by token.
 *
 * generation.h chooses and makes text of it; this file evaluates and calls back.  All
 * memory is taken before the first token.
 *
 * With drafts (draft.h) an evaluation also takes ids that may come next.  Each is still chosen, in
 * its turn, from the logits behind the ids before it, which are the same bits whatever is evaluated
 * beside them; where the choice is another id than the draft, what was evaluated behind it is
 * forgotten.
 */
#include <string.h>

#include "base/log.h"
#include "run/draft.h"
#include "run/generation.h"
#include "run/session.h"
#include "tern/plan.h"

const char *tern_stop_text(enum tern_stop stop)
{
    static const char *const names[] = {"eos", "stop", "length", "context", "memory", "interrupt"};
    return names[stop];
}

/* ---- text ---- */

/* Where text goes; on_text is not called again after it returned false. */
struct text_out {
    const struct tern_generate_params *params;
    bool is_refused;
};

/* Gives away what is decided. */
static void give(struct text_out *out, struct tn_generation *generation)
{
    size_t n;
    const char *text = tn_generation_take(generation, &n);
    if (n > 0 && out->params->on_text && !out->is_refused)
        out->is_refused = !out->params->on_text(out->params->arg, text, n);
}

/* ---- which logits ---- */

/* Adds an id to n ascending ones; false when there is no room. */
static bool insert_id(uint32_t *ids, uint32_t *n, uint32_t id)
{
    uint32_t i = *n;
    while (i > 0 && ids[i - 1] > id)
        i--;
    if (i > 0 && ids[i - 1] == id)
        return true;
    if (*n == TN_HEAD_MAX_ALWAYS)
        return false;
    memmove(ids + i + 1, ids + i, (*n - i) * sizeof *ids);
    ids[i] = id;
    ++*n;
    return true;
}

/* For the next choice and for those behind drafts, whose penalties the drafts are part of. */
static void need_for_choice(struct tern_session *s, const struct tn_generation *generation,
                            const uint32_t *drafts, uint32_t n_drafts)
{
    struct tn_head_need need;
    uint32_t *always = s->work.forward.s.sequences[0].head_always;
    tn_generation_need(generation, always, &need);
    for (uint32_t i = 0; i < n_drafts && need.n_best; i++)
        if (!insert_id(always, &need.n_always, drafts[i]))
            need.n_best = 0;
    tn_session_need(s, &need);
}

/* ---- prefill ---- */

static tern_status prefill(struct tern_session *s, const uint32_t *ids, size_t n,
                           const struct tern_generate_params *params, struct tern_error *err)
{
    size_t from = s->sequence.n_past;
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

static tern_status check_params(const struct tern_session *s,
                                const struct tern_generate_params *params, struct tern_error *err)
{
    /* The sampler borrows the model's list of control tokens and is given all of its logits. */
    uint32_t n = tn_sampler_n_vocab(params->sampler), vocab = s->model->file.spec.config->vocab;
    const uint32_t n_draft = s->work.params.n_logits - 1;
    if (params->n_draft > n_draft)
        return tn_fail(err, TERN_USAGE, "%u drafted ids, the session has memory for %u",
                       params->n_draft, n_draft);
    if (n != vocab)
        return tn_fail(err, TERN_USAGE, "the sampler was made for %u ids, the model has %u", n,
                       vocab);
    return tn_generation_check_stops(params->stop_strings, params->n_stop_strings, err);
}

/* ---- decode ---- */

/* Ids that were evaluated together behind the prompt: the one that was chosen last and drafts of
 * those that follow. */
struct step {
    uint32_t ids[1 + TERN_MAX_DRAFT];
    uint32_t n;
    uint32_t n_valid; /* of them, those that the text has; the next choice is behind the last */
    double seconds;
};

struct decoding {
    struct tern_session *s;
    const struct tern_generate_params *params;
    struct tn_generation *generation;
    struct tn_drafter *drafter; /* NULL: no drafts */
    struct text_out out;
    struct step step; /* empty behind the prompt */
    struct tern_generate_result *result;
};

/* Positions that the text has filled; the cache may hold drafts behind them. */
static uint32_t n_valid(const struct decoding *d)
{
    return d->s->sequence.n_past - (d->step.n - d->step.n_valid);
}

static tern_status evaluate(struct decoding *d, struct tern_error *err)
{
    struct tern_steering *steering = d->params->steering;
    struct step *step = &d->step;
    if (steering)
        tern_steering_before_token(steering);
    const uint64_t start = tn_now_ns();
    tern_status status = tn_session_eval_rows(d->s, step->ids, step->n, err);
    if (status == TERN_MEMORY && step->n > 1) { /* for the drafts, perhaps */
        step->n = 1;
        status = tn_session_eval_rows(d->s, step->ids, step->n, err);
    }
    step->seconds = tn_seconds_since(start);
    if (steering && step->n == 1) /* others tell nothing of threads */
        tern_steering_after_token(steering);
    return status;
}

/* Evaluates the id that was chosen last, with drafts behind it. */
static tern_status next_step(struct decoding *d, uint32_t id, struct tern_error *err)
{
    struct step *step = &d->step;
    const uint32_t past = n_valid(d), left = d->params->max_tokens - d->generation->n_new;
    if (d->drafter && step->n > 0)
        tn_draft_plan_took(&d->drafter->plan, step->n, step->n_valid, step->seconds);
    tern_session_truncate(d->s, past);
    *step = (struct step){.ids = {id}, .n = 1};
    if (d->drafter) /* the last id of the text is chosen, but not evaluated */
        step->n += tn_drafter_next(d->drafter, step->ids + 1,
                                   TN_MIN(TN_MIN(left, d->s->n_ctx - past), d->s->n_batch) - 1);
    need_for_choice(d->s, d->generation, step->ids + 1, step->n - 1);
    tern_status status = evaluate(d, err);
    if (status == TERN_OK) /* before a changed file is taken for logits and text */
        status = tern_model_check_unchanged(d->s->model, err);
    if (status != TERN_OK) {
        step->n = 0; /* nothing of it is there */
        return status;
    }
    step->n_valid = 1;
    d->result->n_steps++;
    d->result->n_drafted += step->n - 1;
    return status;
}

/* The next id from the logits in work. True when the text ends with it: result->stop says why. */
static bool choose(struct decoding *d, uint32_t *id, tern_status *status, struct tern_error *err)
{
    const uint32_t vocab = d->s->model->file.spec.config->vocab;
    const uint32_t row = d->step.n_valid > 0 ? d->step.n_valid - 1 : 0;
    const float *logits = d->s->work.forward.s.logits + (size_t)row * vocab;
    *status = tn_generation_choose(d->generation, logits, id, err);
    if (*status != TERN_OK)
        return true;
    if (d->params->on_token)
        d->params->on_token(d->params->arg, *id);
    if (d->drafter)
        tn_drafter_saw(d->drafter, *id);
    const bool is_last = tn_generation_push(d->generation, *id, n_valid(d) == d->s->n_ctx,
                                            &d->result->stop);
    give(&d->out, d->generation);
    if (d->out.is_refused && !(is_last && d->result->stop == TERN_STOP_STRING))
        d->result->stop = TERN_STOP_INTERRUPT;
    return is_last || d->out.is_refused;
}

/* Whether the id that was chosen is the next draft: then its logits are there already. */
static bool is_drafted(struct decoding *d, uint32_t id)
{
    const struct step *step = &d->step;
    const bool is_right = step->n_valid < step->n && step->ids[step->n_valid] == id;
    d->result->n_accepted += is_right;
    return is_right;
}

/* Samples until something ends the text; result->stop says what. */
static tern_status decode(struct decoding *d, struct tern_error *err)
{
    for (;;) {
        uint32_t id;
        tern_status status;
        const bool is_last = choose(d, &id, &status, err);
        if (status != TERN_OK)
            return status;
        const bool goes_on = is_drafted(d, id);
        if (is_last)
            return tn_ok(err);
        if (goes_on) {
            d->step.n_valid++;
            continue;
        }
        status = next_step(d, id, err);
        if (status != TERN_OK) {
            d->result->stop = status == TERN_MEMORY ? TERN_STOP_MEMORY : TERN_STOP_INTERRUPT;
            return status == TERN_MEMORY || status == TERN_INTERRUPTED ? tn_ok(err) : status;
        }
    }
}

/* Leaves the session as it is without drafts: what the text does not have is forgotten, and the
 * logits are those of its last position. */
static void leave(struct decoding *d)
{
    if (d->step.n_valid > 0)
        tn_session_keep_rows(d->s, d->step.n, d->step.n_valid);
}

/* From the first token to the last, and what was held back. */
static tern_status write_answer(struct decoding *d, struct tern_error *err)
{
    const uint64_t start = tn_now_ns();
    d->result->stop = TERN_STOP_LENGTH;
    if (d->params->max_tokens == 0)
        return tn_ok(err);
    const tern_status status = decode(d, err);
    leave(d);
    d->result->n_new = d->generation->n_new;
    if (d->result->stop != TERN_STOP_STRING) {
        tn_generation_end(d->generation);
        give(&d->out, d->generation);
    }
    d->result->decode_s = tn_seconds_since(start);
    return status;
}

static tern_status start_drafts(struct tn_drafter *drafter,
                                const struct tern_generate_params *params,
                                const struct tern_session *s, const uint32_t *ids, size_t n_ids,
                                struct tern_error *err)
{
    if (params->n_draft == 0)
        return tn_ok(err);
    tern_status status = tn_drafter_init(drafter, params, s->n_ctx + 1, err);
    for (size_t i = 0; i < n_ids && status == TERN_OK; i++)
        tn_drafter_read(drafter, ids[i]);
    return status;
}

tern_status tern_generate(struct tern_session *s, const uint32_t *ids, size_t n_ids,
                          const struct tern_generate_params *params,
                          struct tern_generate_result *result, struct tern_error *err)
{
    *result = (struct tern_generate_result){.n_prompt = (uint32_t)n_ids};
    struct tn_generation generation = {.model = s->model,
                                       .sampler = params->sampler,
                                       .stop_strings = params->stop_strings,
                                       .n_stop_strings = params->n_stop_strings,
                                       .max_tokens = params->max_tokens,
                                       .ignore_eos = params->ignore_eos};
    struct tn_drafter drafter = {0};
    tern_status status = tern_model_check_unchanged(s->model, err);
    if (status == TERN_OK)
        status = check_params(s, params, err);
    if (status == TERN_OK)
        status = tn_check_prompt(s->model, s->n_ctx, ids, n_ids, err);
    if (status == TERN_OK)
        status = start_drafts(&drafter, params, s, ids, n_ids, err);
    if (status == TERN_OK)
        status = tn_generation_init(&generation, err);
    if (status != TERN_OK) {
        tn_drafter_fini(&drafter);
        return status;
    }

    uint64_t start = tn_now_ns();
    /* At least the last id is evaluated again, for its logits. */
    tern_session_truncate(s, tn_sequence_common(&s->sequence, ids, n_ids - 1));
    result->n_prompt_evaluated = (uint32_t)n_ids - s->sequence.n_past;
    tn_generation_start(&generation, ids, n_ids);
    need_for_choice(s, &generation, NULL, 0);
    status = prefill(s, ids, n_ids, params, err);
    if (status == TERN_OK)
        status = tern_model_check_unchanged(s->model, err);
    result->prompt_s = tn_seconds_since(start);
    struct decoding decoding = {.s = s, .params = params, .generation = &generation,
                                .drafter = params->n_draft ? &drafter : NULL,
                                .out = {.params = params}, .result = result};
    if (status == TERN_OK)
        status = write_answer(&decoding, err);
    tn_session_need(s, NULL);
    tn_drafter_fini(&drafter);
    tn_generation_fini(&generation);
    return status;
}

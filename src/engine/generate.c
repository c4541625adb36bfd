/* SPDX-License-Identifier: MIT
 *
 * tern_generate: runs one request in the session's own workspace and sequence until it ends.
 *
 * The request borrows the caller's pointers, and events become the caller's callbacks.
 */
#include <string.h>

#include "base/error.h"
#include "engine/session.h"
#include "engine/steps.h"

const char *tern_stop_text(enum tern_stop stop)
{
    static const char *const names[] = {"eos", "stop", "length", "context", "memory", "interrupt"};
    return names[stop];
}

/* ---- events ---- */

struct listener {
    const struct tern_generate_params *params;
    bool has_refused; /* on_text returned false and is not called again */
    struct tern_event end;
};

static void send_text(struct listener *l, const struct tern_event *event)
{
    if (event->n_text > 0 && l->params->on_text && !l->has_refused)
        l->has_refused = !l->params->on_text(l->params->arg, event->text, event->n_text);
}

static bool on_event(void *arg, struct tn_request *r, const struct tern_event *event)
{
    struct listener *l = arg;
    const struct tern_generate_params *p = l->params;
    (void)r;
    if (event->kind == TERN_EVENT_PREFILL && p->on_prefill)
        p->on_prefill(p->arg, event->n_done, event->n_total);
    if (event->kind == TERN_EVENT_TOKEN && p->on_token)
        p->on_token(p->arg, event->id);
    if (event->kind == TERN_EVENT_END)
        l->end = *event;
    send_text(l, event);
    return !l->has_refused;
}

/* ---- one request ---- */

static tern_status check_params(const struct tern_session *s,
                                const struct tern_generate_params *params, struct tern_error *err)
{
    /* The sampler borrows the model's list of control tokens and always gets all logits. */
    uint32_t n = tn_sampler_n_vocab(params->sampler), vocab = s->model->file.spec.config->vocab;
    const uint32_t n_draft = s->work.params.n_logits - 1;
    if (params->n_draft > n_draft)
        return tn_fail(err, TERN_USAGE, "%u drafted ids, the session has memory for %u",
                       params->n_draft, n_draft);
    if (n != vocab)
        return tn_fail(err, TERN_USAGE, "the sampler was made for %u ids, the model has %u", n,
                       vocab);
    return TERN_OK;
}

static tern_status open_request(struct tn_request *r, struct tern_session *s,
                                const uint32_t *ids, size_t n_ids,
                                const struct tern_generate_params *params, struct tern_error *err)
{
    r->asked = (struct tern_request){.ids = ids,
                                     .n_ids = n_ids,
                                     .max_tokens = params->max_tokens,
                                     .ignore_eos = params->ignore_eos,
                                     .stop_strings = params->stop_strings,
                                     .n_stop_strings = params->n_stop_strings,
                                     .n_system = params->n_system,
                                     .n_turn = params->n_turn,
                                     .grammar = params->grammar};
    tern_status status = tern_model_check_unchanged(s->model, err);
    if (status == TERN_OK)
        status = check_params(s, params, err);
    if (status == TERN_OK)
        status = tn_request_check(&r->asked, s->model, s->n_ctx, err);
    if (status == TERN_OK)
        status = tn_check_head(s->model, err);
    if (status != TERN_OK)
        return status;
    r->generation.sampler = params->sampler;
    r->drafter.n_draft = params->grammar ? 0 : params->n_draft;
    r->drafter.on_draft = params->on_draft;
    r->drafter.arg = params->arg;
    r->drafter.verify_all = params->verify_all;
    status = tn_request_init(r, s->model, s->n_ctx, err);
    return status == TERN_OK ? tn_request_bind(r, s->model, &s->tokens, err) : status;
}

/* ---- steps ---- */

/* Makes the logits of the last position available as after tern_session_eval. */
static void expose_logits(struct tern_session *s, const struct tn_lane *lane)
{
    const size_t vocab = s->model->file.spec.config->vocab;
    float *logits = s->work.forward.s.logits;
    if (lane->last_logits && lane->last_logits != logits)
        memcpy(logits, lane->last_logits, vocab * sizeof *logits);
    s->has_logits = lane->last_logits != NULL && s->sequence.n_past == lane->n_text;
}

/* Steps until the request has ended.  Errors after the first id end the answer without failing,
 * except a changed model file. */
static tern_status run(struct tern_session *s, struct tn_request *r, struct listener *l,
                       struct tern_error *err)
{
    uint32_t ids[TN_MAX_BATCH];
    struct tn_span span;
    struct tn_lane lane = {.sequence = &s->sequence,
                           .head_always = s->work.forward.s.sequences[0].head_always,
                           .draft_blocks = s->work.forward.s.sequences[0].draft_blocks};
    struct tn_steps steps = {.work = &s->work, .lanes = &lane, .n_lanes = 1, .n_ctx = s->n_ctx,
                             .ids = ids, .spans = &span, .steering = l->params->steering,
                             .on_event = on_event, .arg = l};
    tern_status status = TERN_OK;
    s->has_logits = false;
    tn_start_lane(&steps, tn_prepare_lane(&steps, &r->asked), r);
    while (lane.request && status == TERN_OK)
        status = tn_steps_run(&steps, err);
    const bool has_begun = lane.is_decoding;
    if (lane.request)
        tn_end_lane(&steps, &lane, TERN_STOP_INTERRUPT, NULL);
    expose_logits(s, &lane);
    if (status == TERN_INTERRUPTED && has_begun)
        status = TERN_OK;
    if (status != TERN_OK || l->end.status == TERN_OK)
        return status;
    if (err)
        *err = l->end.error;
    return l->end.status;
}

tern_status tern_generate(struct tern_session *s, const uint32_t *ids, size_t n_ids,
                          const struct tern_generate_params *params,
                          struct tern_generate_result *result, struct tern_error *err)
{
    struct tn_request r = {.id = 1};
    struct listener listener = {.params = params};
    *result = (struct tern_generate_result){.n_prompt = (uint32_t)n_ids};
    tern_status status = open_request(&r, s, ids, n_ids, params, err);
    if (status == TERN_OK) {
        status = run(s, &r, &listener, err);
        *result = listener.end.result;
    }
    tn_request_fini(&r);
    return status == TERN_OK ? tn_ok(err) : status;
}

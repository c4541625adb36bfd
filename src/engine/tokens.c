/* SPDX-License-Identifier: MIT
 *
 * Chooses the next id of a lane from the logits of a row, and emits its event.
 *
 * Called for the last row of a prompt and for every row of an answer.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/logprobs.h"
#include "engine/steps.h"

/* The model's logits, or a copy that the request's callback has adjusted. */
static const float *adjusted_logits(struct tn_steps *s, const struct tn_lane *lane)
{
    const struct tern_request *asked = &lane->request->asked;
    if (!asked->adjust || !lane->last_logits)
        return lane->last_logits;
    memcpy(s->adjusted, lane->last_logits, tn_steps_vocab(s) * sizeof *s->adjusted);
    asked->adjust(asked->arg, s->adjusted, tn_steps_vocab(s));
    return s->adjusted;
}

static void add_logprobs(const struct tn_steps *s, const struct tn_lane *lane,
                         struct tern_event *event)
{
    struct tn_request *r = lane->request;
    const uint32_t n = r->asked.n_logprobs;
    if (n == 0)
        return;
    struct tern_token_logprob *out = r->logprobs + (size_t)lane->n_ids * n;
    event->logprobs = out;
    event->n_logprobs = tn_logprobs(out, n, lane->last_logits, tn_steps_vocab(s), event->id);
}

void tn_keep_row(struct tn_steps *s, struct tn_lane *lane, uint32_t i)
{
    struct tn_sequence *q = lane->sequence;
    q->ids[q->n_past++] = s->ids[lane->row + i];
    if (i >= lane->first_wanted)
        lane->last_logits = lane->logits + (size_t)(i - lane->first_wanted) * tn_steps_vocab(s);
}

/* Appends the chosen id to the text: emits its event, and the last one if the text ends. */
static void push_token(struct tn_steps *s, struct tn_lane *lane, uint32_t id)
{
    struct tn_request *r = lane->request;
    struct tern_event event = {.kind = TERN_EVENT_TOKEN, .id = id};
    const bool is_full = lane->sequence->n_past == s->n_ctx;
    enum tern_stop stop;
    add_logprobs(s, lane, &event);
    const bool is_last = tn_generation_push(&r->generation, id, is_full, &stop);
    event.text = tn_generation_take(&r->generation, &event.n_text);
    lane->is_decoding = true;
    lane->next_id = id;
    lane->n_ids++;
    const bool is_wanted = tn_emit_event(s, r, &event);
    if (!is_wanted && !(is_last && stop == TERN_STOP_STRING))
        stop = TERN_STOP_INTERRUPT;
    if (is_last || !is_wanted)
        tn_end_lane(s, lane, stop, NULL);
}

/* Says that it was the request's callback that left nothing to choose, if it was. */
static void explain_failure(const struct tn_steps *s, const struct tn_lane *lane,
                            struct tern_error *why)
{
    if (why->status != TERN_INTERNAL || !lane->request->asked.adjust || !lane->last_logits)
        return;
    for (uint32_t i = 0; i < tn_steps_vocab(s); i++)
        if (fabsf(lane->last_logits[i]) <= FLT_MAX) {
            (void)tn_fail(why, TERN_USAGE,
                          "the biases of the request exclude every token that can come next");
            return;
        }
}

bool tn_choose_token(struct tn_steps *s, struct tn_lane *lane, uint32_t i)
{
    struct tn_request *r = lane->request;
    struct tern_error why;
    uint32_t id;
    if (tn_generation_choose(&r->generation, adjusted_logits(s, lane), &id, &why) != TERN_OK) {
        explain_failure(s, lane, &why);
        tn_end_lane(s, lane, TERN_STOP_INTERRUPT, &why);
        return false;
    }
    const bool is_right = i + 1 < lane->n_rows && s->ids[lane->row + i + 1] == id;
    r->result.n_accepted += is_right;
    tn_drafter_add_chosen(&r->drafter, id);
    push_token(s, lane, id);
    return is_right;
}

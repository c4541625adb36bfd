/* SPDX-License-Identifier: MIT
 *
 * From the logits of a lane to its events and its next id.
 */
#include <string.h>

#include "run/logprobs.h"
#include "run/scheduler.h"

static uint32_t n_vocab(const struct tern_scheduler *s)
{
    return s->work.model->file.spec.config->vocab;
}

/* The logits to choose from: those of the model, or a copy that the request has adjusted. */
static const float *adjusted_logits(struct tern_scheduler *s, const struct tn_lane *lane)
{
    const struct tern_request *asked = &lane->request->asked;
    if (!asked->adjust)
        return lane->logits;
    memcpy(s->adjusted, lane->logits, n_vocab(s) * sizeof *s->adjusted);
    asked->adjust(asked->arg, s->adjusted, n_vocab(s));
    return s->adjusted;
}

static void choose_token(struct tern_scheduler *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    struct tern_error why;
    enum tern_stop stop;
    uint32_t id;
    if (tn_generation_choose(&r->generation, adjusted_logits(s, lane), &id, &why) != TERN_OK) {
        tn_end_lane(s, lane, TERN_STOP_INTERRUPT, &why);
        return;
    }
    struct tern_event *event = tn_add_event(s, TERN_EVENT_TOKEN, r);
    event->id = id;
    if (r->asked.n_logprobs) {
        event->logprobs = r->logprobs;
        event->n_logprobs =
            tn_logprobs(r->logprobs, r->asked.n_logprobs, lane->logits, n_vocab(s), id);
    }
    const bool is_full = lane->sequence.n_past == s->params.n_ctx;
    const bool is_last = tn_generation_push(&r->generation, id, is_full, &stop);
    event->text = tn_generation_take(&r->generation, &event->n_text);
    lane->is_decoding = true;
    lane->next_id = id;
    if (is_last)
        tn_end_lane(s, lane, stop, NULL);
}

/* ---- prompts ---- */

/* Events of the ids behind the n rows that were computed from position `first` on, and of the first
 * id, which has no log-probability. */
static void add_prompt_events(struct tern_scheduler *s, struct tn_lane *lane, uint32_t first)
{
    struct tn_request *r = lane->request;
    const uint32_t n_each = tn_request_n_logprobs(r);
    if (first == 0)
        tn_add_event(s, TERN_EVENT_PROMPT, r)->id = r->asked.ids[0];
    for (uint32_t i = 0; i < lane->n_rows && first + i + 1 < r->asked.n_ids; i++) {
        struct tern_event *event = tn_add_event(s, TERN_EVENT_PROMPT, r);
        struct tern_token_logprob *out = r->logprobs + (1 + (size_t)i) * n_each;
        event->id = r->asked.ids[first + i + 1];
        event->logprobs = out;
        event->n_logprobs = tn_logprobs(out, n_each, lane->all_logits + (size_t)i * n_vocab(s),
                                        n_vocab(s), event->id);
    }
}

static void end_prompt(struct tern_scheduler *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    r->first_ns = tn_now_ns();
    r->result.prompt_s = (double)(r->first_ns - r->start_ns) * 1e-9;
    if (r->asked.max_tokens == 0)
        tn_end_lane(s, lane, TERN_STOP_LENGTH, NULL);
    else
        choose_token(s, lane);
}

/* n_past counts the rows of the batch already. */
static void finish_prompt_rows(struct tern_scheduler *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    const uint32_t n_past = lane->sequence.n_past;
    struct tern_event *event = tn_add_event(s, TERN_EVENT_PREFILL, r);
    r->result.n_prompt_evaluated += lane->n_rows;
    event->n_done = r->result.n_prompt_evaluated;
    event->n_total = event->n_done + r->result.n_prompt - n_past;
    if (lane->all_logits)
        add_prompt_events(s, lane, n_past - lane->n_rows);
    if (n_past == r->asked.n_ids)
        end_prompt(s, lane);
}

void tn_finish_rows(struct tern_scheduler *s, struct tn_lane *lane)
{
    struct tn_sequence *q = &lane->sequence;
    memcpy(q->ids + q->n_past, s->ids + lane->row, lane->n_rows * sizeof *q->ids);
    q->n_past += lane->n_rows;
    if (lane->is_decoding)
        choose_token(s, lane);
    else
        finish_prompt_rows(s, lane);
}

/* SPDX-License-Identifier: MIT
 *
 * From the logits of a lane to its events and its next id.
 *
 * Behind the last id of a text its rows have drafts of what follows.  Each id is still chosen, in
 * its turn, from the logits behind the ids before it, which are the same bits whatever is evaluated
 * beside them; where the choice is another id than the draft, what was evaluated behind it is
 * forgotten.
 */
#include <string.h>

#include "engine/logprobs.h"
#include "engine/steps.h"

/* ---- the choice ---- */

/* The logits to choose from: those of the model, or a copy that the request has adjusted. */
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

/* Row i of a lane is the next position of its text. */
static void keep_row(struct tn_steps *s, struct tn_lane *lane, uint32_t i)
{
    struct tn_sequence *q = lane->sequence;
    q->ids[q->n_past++] = s->ids[lane->row + i];
    if (i >= lane->first_wanted)
        lane->last_logits = lane->logits + (size_t)(i - lane->first_wanted) * tn_steps_vocab(s);
}

/* The id that was chosen is part of the text from here on: its event, and the end if it is the
 * last. */
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
    const bool is_wanted = tn_say_event(s, r, &event);
    if (!is_wanted && !(is_last && stop == TERN_STOP_STRING))
        stop = TERN_STOP_INTERRUPT;
    if (is_last || !is_wanted)
        tn_end_lane(s, lane, stop, NULL);
}

/* The id behind row i, the last of the text.  True when the row behind it is what was chosen. */
static bool choose_token(struct tn_steps *s, struct tn_lane *lane, uint32_t i)
{
    struct tn_request *r = lane->request;
    struct tern_error why;
    uint32_t id;
    if (tn_generation_choose(&r->generation, adjusted_logits(s, lane), &id, &why) != TERN_OK) {
        tn_end_lane(s, lane, TERN_STOP_INTERRUPT, &why);
        return false;
    }
    const bool is_right = i + 1 < lane->n_rows && s->ids[lane->row + i + 1] == id;
    r->result.n_accepted += is_right;
    tn_drafter_saw(&r->drafter, id);
    push_token(s, lane, id);
    return is_right;
}

/* The first row is the id that was chosen last, the others are drafts of what follows. */
static void finish_answer(struct tn_steps *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    r->result.n_steps++;
    r->result.n_drafted += lane->n_rows - 1;
    bool is_right = true;
    for (uint32_t i = 0; is_right && lane->request; i++) {
        keep_row(s, lane, i);
        is_right = choose_token(s, lane, i);
    }
    lane->n_text = lane->sequence->n_past;
    (void)tn_sequence_truncate(lane->sequence, lane->n_text); /* what is missing is made up for */
    tn_sequence_checkpoint_spaced(lane->sequence);
}

/* ---- prompts ---- */

/* Events of the ids behind the n rows that were computed from position `first` on, and of the first
 * id, which has no log-probability. */
static void say_prompt(struct tn_steps *s, struct tn_lane *lane, uint32_t first)
{
    struct tn_request *r = lane->request;
    const uint32_t n_each = tn_request_n_logprobs(r);
    struct tern_event event = {.kind = TERN_EVENT_PROMPT, .id = r->asked.ids[0]};
    if (first == 0)
        (void)tn_say_event(s, r, &event);
    for (uint32_t i = 0; i < lane->n_rows && first + i + 1 < r->asked.n_ids; i++) {
        struct tern_token_logprob *out = r->logprobs + (1 + (size_t)i) * n_each;
        event.id = r->asked.ids[first + i + 1];
        event.logprobs = out;
        event.n_logprobs = tn_logprobs(out, n_each, lane->logits + (size_t)i * tn_steps_vocab(s),
                                       tn_steps_vocab(s), event.id);
        (void)tn_say_event(s, r, &event);
    }
}

static void end_prompt(struct tn_steps *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    r->first_ns = tn_now_ns();
    r->result.prompt_s = (double)(r->first_ns - r->start_ns) * 1e-9;
    if (r->asked.max_tokens == 0)
        tn_end_lane(s, lane, TERN_STOP_LENGTH, NULL);
    else
        (void)choose_token(s, lane, lane->n_rows - 1);
}

/* Checkpoints at what other prompts may go on from.  Of the whole prompt the last id is computed
 * again, for its logits. */
static void keep_checkpoints(struct tn_lane *lane)
{
    const struct tern_request *asked = &lane->request->asked;
    struct tn_sequence *q = lane->sequence;
    if (!q->state)
        return;
    if (q->n_past == asked->n_system)
        (void)tn_sequence_checkpoint(q, q->n_past, TN_MARK_SYSTEM);
    if (q->n_past == asked->n_turn)
        (void)tn_sequence_checkpoint(q, q->n_past, TN_MARK_TURN);
    if (q->n_past == asked->n_ids)
        (void)tn_sequence_checkpoint(q, q->n_past - 1, TN_MARK_PROMPT);
    tn_sequence_checkpoint_spaced(q);
}

static void finish_prompt(struct tn_steps *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    for (uint32_t i = 0; i < lane->n_rows; i++)
        keep_row(s, lane, i);
    const uint32_t n_past = lane->n_text = lane->sequence->n_past;
    keep_checkpoints(lane);
    struct tern_event event = {.kind = TERN_EVENT_PREFILL};
    r->result.n_prompt_evaluated += lane->n_rows;
    event.n_done = r->result.n_prompt_evaluated;
    event.n_total = event.n_done + r->result.n_prompt - n_past;
    (void)tn_say_event(s, r, &event);
    if (r->asked.prompt_logprobs)
        say_prompt(s, lane, n_past - lane->n_rows);
    if (n_past == r->asked.n_ids)
        end_prompt(s, lane);
}

/* The rows have had their say when they were computed first. */
static void finish_again(struct tn_lane *lane)
{
    lane->sequence->n_past += lane->n_rows;
    tn_sequence_checkpoint_spaced(lane->sequence);
}

void tn_finish_rows(struct tn_steps *s, struct tn_lane *lane)
{
    if (lane->is_again)
        finish_again(lane);
    else if (lane->is_decoding)
        finish_answer(s, lane);
    else
        finish_prompt(s, lane);
}

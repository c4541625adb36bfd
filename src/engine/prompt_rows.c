/* SPDX-License-Identifier: MIT
 *
 * Finishes the prompt rows of a batch: checkpoints, progress, log-probabilities, and the first id
 * of the answer after the last row.
 */
#include "engine/draft_head.h"
#include "engine/logprobs.h"

/* Emits events for the ids after the n rows computed from position `first` on; the very first id
 * has no log-probability. */
static void emit_prompt_events(struct tn_steps *s, struct tn_lane *lane, uint32_t first)
{
    struct tn_request *r = lane->request;
    const uint32_t n_each = tn_request_n_logprobs(r);
    struct tern_event event = {.kind = TERN_EVENT_PROMPT, .id = r->asked.ids[0]};
    if (first == 0)
        (void)tn_emit_event(s, r, &event);
    for (uint32_t i = 0; i < lane->n_rows && first + i + 1 < r->asked.n_ids; i++) {
        struct tern_token_logprob *out = r->logprobs + (1 + (size_t)i) * n_each;
        event.id = r->asked.ids[first + i + 1];
        event.logprobs = out;
        event.n_logprobs = tn_logprobs(out, n_each, lane->logits + (size_t)i * tn_steps_vocab(s),
                                       tn_steps_vocab(s), event.id);
        (void)tn_emit_event(s, r, &event);
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
        (void)tn_choose_token(s, lane, lane->n_rows - 1);
}

/* Keeps checkpoints where other prompts may continue.  A whole prompt is kept without its last id,
 * which is always computed again for its logits. */
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

void tn_finish_prompt(struct tn_steps *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    for (uint32_t i = 0; i < lane->n_rows; i++)
        tn_keep_row(s, lane, i);
    const uint32_t n_past = lane->n_text = lane->sequence->n_past;
    keep_checkpoints(lane);
    struct tern_event event = {.kind = TERN_EVENT_PREFILL};
    r->result.n_prompt_evaluated += lane->n_rows;
    event.n_done = r->result.n_prompt_evaluated;
    event.n_total = event.n_done + r->result.n_prompt - n_past;
    (void)tn_emit_event(s, r, &event);
    if (r->asked.prompt_logprobs)
        emit_prompt_events(s, lane, n_past - lane->n_rows);
    if (tn_has_draft_head(lane))
        tn_draft_head_read_prompt(s, lane, n_past - lane->n_rows);
    if (n_past == r->asked.n_ids) {
        tn_draft_head_note(lane, lane->row + lane->n_rows, 1);
        end_prompt(s, lane);
    }
}

void tn_finish_recomputed(struct tn_lane *lane)
{
    lane->sequence->n_past += lane->n_rows;
    tn_sequence_checkpoint_spaced(lane->sequence);
}

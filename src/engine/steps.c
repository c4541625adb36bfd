/* SPDX-License-Identifier: MIT
 *
 * Runs one step: make the batch, evaluate it, hand out the results.
 *
 * An interrupted evaluation is rolled back; the next step repeats it.
 */
#include "engine/steps.h"

#include "base/error.h"

/* Steering measures only evaluations without drafts: others say nothing about threads. */
static tern_status evaluate(struct tn_steps *s, double *seconds, struct tern_error *err)
{
    const bool is_steered = s->steering && !s->has_prompts;
    if (is_steered)
        tern_steering_before_token(s->steering);
    const uint64_t start_ns = tn_now_ns();
    const tern_status status = tn_workspace_eval(s->work, &s->batch, err);
    *seconds = tn_seconds_since(start_ns);
    if (is_steered && s->batch.n_rows == 1)
        tern_steering_after_token(s->steering);
    return status;
}

static void finish_rows(struct tn_steps *s, struct tn_lane *lane)
{
    if (lane->is_recomputed)
        tn_finish_recomputed(lane);
    else if (lane->is_decoding)
        tn_finish_answer(s, lane);
    else
        tn_finish_prompt(s, lane);
}

/* Hands the results to every lane.  Returns the number of chosen ids. */
static uint32_t finish(struct tn_steps *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct tn_lane *lane = &s->lanes[i];
        if (lane->n_rows > 0)
            finish_rows(s, lane);
        n += lane->n_ids;
    }
    return n;
}

/* Rolls back layers that advanced before the evaluation stopped. */
static void drop_rows(struct tn_steps *s)
{
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct tn_sequence *q = s->lanes[i].sequence;
        if (s->lanes[i].n_rows > 0 && q->state)
            (void)tn_sequence_truncate(q, q->n_past);
    }
}

tern_status tn_steps_run(struct tn_steps *s, struct tern_error *err)
{
    double seconds;
    s->n_steps++;
    tn_make_batch(s);
    const struct tn_batch *b = &s->batch;
    if (b->n_rows == 0)
        return tn_ok(err);
    const tern_status status = evaluate(s, &seconds, err);
    if (status != TERN_OK) {
        drop_rows(s);
        return status;
    }
    const uint32_t n_ids = finish(s);
    if (s->has_prompts)
        s->row_s = seconds / b->n_rows;
    else
        tn_draft_costs_record(&s->work->draft_costs, b->n_spans, b->n_rows, n_ids, seconds,
                              s->made_s);
    return TERN_OK;
}

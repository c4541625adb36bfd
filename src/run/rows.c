/* SPDX-License-Identifier: MIT
 *
 * The batch of a step: a row of every answer that is being written, then parts of prompts, each
 * step beginning with another one.
 */
#include "base/log.h"
#include "run/scheduler.h"

/* Prompts may keep the answers of others waiting so long, and so many rows at a time. */
#define SHARED_STEP_S 0.25
#define SHARED_ROWS 32u

/* Appends n rows of a lane. False when its request has ended instead, for want of memory. */
static bool add_span(struct tern_scheduler *s, struct tn_lane *lane, const uint32_t *ids,
                     uint32_t n)
{
    struct tn_batch *b = &s->batch;
    if (!tn_grow(s, lane, n)) {
        struct tern_error why;
        tn_fail(&why, TERN_MEMORY,
                "context limited by memory: %u positions are in use and %.1f MiB for the next %u "
                "are not free",
                lane->sequence.n_past, (double)s->work.kv.block_bytes / 0x1p20, TN_KV_BLOCK);
        tn_end_lane(s, lane, TERN_STOP_MEMORY, lane->is_decoding ? NULL : &why);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        s->ids[b->n_rows + i] = ids[i];
    s->spans[b->n_spans++] = (struct tn_span){.blocks = lane->sequence.blocks,
                                              .position = lane->sequence.n_past,
                                              .row = b->n_rows,
                                              .n_rows = n};
    lane->row = b->n_rows;
    lane->n_rows = n;
    lane->last_step = s->n_steps;
    b->n_rows += n;
    return true;
}

/* ---- prompts ---- */

/* Rows that parts of prompts may have in this batch. */
static uint32_t prompt_rows(const struct tern_scheduler *s)
{
    const uint32_t n_decoding = s->batch.n_rows;
    uint32_t n = s->params.n_batch;
    if (n_decoding > 0)
        n = TN_MIN(n, SHARED_ROWS);
    if (n_decoding > 0 && s->row_s * n > SHARED_STEP_S)
        n = (uint32_t)(SHARED_STEP_S / s->row_s);
    return n > n_decoding ? n - n_decoding : 1;
}

/* True when a prompt in the batch will have more of this one afterwards than is there now. */
static bool can_wait(const struct tern_scheduler *s, const struct tn_lane *lane)
{
    const struct tern_request *mine = &lane->request->asked;
    for (uint32_t i = 0; i < s->params.n_sequences; i++) {
        const struct tn_lane *other = &s->lanes[i];
        if (other->n_rows == 0 || other->is_decoding || mine->prompt_logprobs)
            continue;
        const uint32_t *ids = other->request->asked.ids, end = other->sequence.n_past + 1;
        uint32_t n = 0;
        while (n < end && n + 1 < mine->n_ids && n < other->request->asked.n_ids &&
               mine->ids[n] == ids[n])
            n++;
        if (n > lane->sequence.n_past)
            return true;
    }
    return false;
}

/* As much of a lane's prompt as `room` rows are; the number of rows. */
static uint32_t add_prompt(struct tern_scheduler *s, struct tn_lane *lane, uint32_t room)
{
    const struct tern_request *asked = &lane->request->asked;
    if (can_wait(s, lane))
        return 0;
    tn_take_over(s, lane);
    const uint32_t n_past = lane->sequence.n_past;
    uint32_t n = TN_MIN((uint32_t)asked->n_ids - n_past, room);
    if (asked->prompt_logprobs)
        n = TN_MIN(n, TN_PROMPT_LOGPROB_ROWS);
    if (!add_span(s, lane, asked->ids + n_past, n))
        return 0;
    s->has_prompts = true;
    return n;
}

static void add_prompts(struct tern_scheduler *s)
{
    const uint32_t n = s->params.n_sequences, before = s->i_prefill;
    uint32_t room = prompt_rows(s);
    bool has_all_logits = false; /* there is memory for one prompt with them */
    for (uint32_t i = 1; i <= n && room > 0; i++) {
        const uint32_t k = (before + i) % n;
        struct tn_lane *lane = &s->lanes[k];
        if (!lane->request || lane->is_decoding ||
            (has_all_logits && lane->request->asked.prompt_logprobs))
            continue;
        if (!s->has_prompts)
            s->i_prefill = k;
        has_all_logits = has_all_logits || lane->request->asked.prompt_logprobs;
        room -= add_prompt(s, lane, room);
    }
}

/* ---- logits ---- */

/* A token is chosen from the lane's last row. */
static bool ends_in_choice(const struct tn_lane *lane)
{
    const struct tern_request *asked = &lane->request->asked;
    return lane->is_decoding ||
           (lane->sequence.n_past + lane->n_rows == asked->n_ids && asked->max_tokens > 0);
}

/* Asks for logits of row i_row of a lane; where they will be. */
static const float *want(struct tern_scheduler *s, const struct tn_lane *lane, uint32_t i_row,
                         const struct tn_head_need *need)
{
    struct tn_batch *b = &s->batch;
    const size_t vocab = s->work.model->file.spec.config->vocab;
    s->work.forward.s.wanted[b->n_wanted] = (struct tn_logits_row){lane->row + i_row, *need};
    return b->logits + b->n_wanted++ * vocab;
}

/* Asks for what the lane needs, if that is all logits of its rows or, `searches`, is not. */
static void want_logits(struct tern_scheduler *s, struct tn_lane *lane, bool searches)
{
    const struct tern_request *asked = &lane->request->asked;
    struct tn_head_need need = {0}; /* all */
    if (asked->prompt_logprobs && !lane->is_decoding) {
        for (uint32_t i = 0; i < lane->n_rows && !searches; i++) {
            const float *row = want(s, lane, i, &need);
            lane->all_logits = i == 0 ? row : lane->all_logits;
            lane->logits = row;
        }
        return;
    }
    if (!ends_in_choice(lane))
        return;
    if (!asked->n_logprobs && !asked->adjust)
        tn_generation_need(&lane->request->generation, lane->head_always, &need);
    if (searches == (need.n_best > 0))
        lane->logits = want(s, lane, lane->n_rows - 1, &need);
}

void tn_make_batch(struct tern_scheduler *s)
{
    const uint32_t n = s->params.n_sequences;
    s->batch = (struct tn_batch){.ids = s->ids,
                                 .spans = s->spans,
                                 .wanted = s->work.forward.s.wanted,
                                 .logits = s->work.forward.s.logits};
    s->has_prompts = false;
    for (uint32_t i = 0; i < n; i++) {
        s->lanes[i].n_rows = 0;
        s->lanes[i].logits = s->lanes[i].all_logits = NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        if (s->lanes[i].request && s->lanes[i].is_decoding)
            add_span(s, &s->lanes[i], &s->lanes[i].next_id, 1);
    add_prompts(s);
    for (uint32_t i = 0; i < 2 * n; i++) /* those that need all logits come first */
        if (s->lanes[i % n].n_rows > 0)
            want_logits(s, &s->lanes[i % n], i >= n);
}

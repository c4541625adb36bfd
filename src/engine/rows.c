/* SPDX-License-Identifier: MIT
 *
 * Composes the batch of a step: rows of every answer in progress, then chunks of prompts, starting
 * with a different prompt in each step.
 */
#include <string.h>

#include "engine/draft_head.h"

/* Limits for prompts while answers are in progress: time of a step, and rows. */
#define SHARED_STEP_S 0.25
#define SHARED_ROWS 32u

/* Appends n rows of a lane that has memory for them. */
static void add_rows(struct tn_steps *s, struct tn_lane *lane, const uint32_t *ids, uint32_t n)
{
    struct tn_batch *b = &s->batch;
    memcpy(s->ids + b->n_rows, ids, n * sizeof *ids);
    s->spans[b->n_spans++] = (struct tn_span){.blocks = lane->sequence->blocks,
                                              .state = lane->sequence->state,
                                              .position = lane->sequence->n_past,
                                              .row = b->n_rows,
                                              .n_rows = n};
    lane->row = b->n_rows;
    lane->n_rows = n;
    lane->last_step = s->n_steps;
    b->n_rows += n;
}

static void end_for_memory(struct tn_steps *s, struct tn_lane *lane)
{
    struct tern_error why;
    tn_workspace_fail_growth(s->work, lane->sequence->n_past, &why);
    tn_end_lane(s, lane, TERN_STOP_MEMORY, lane->is_decoding ? NULL : &why);
}

/* Was some of its text rolled back, to be computed again? */
static bool is_behind(const struct tn_lane *lane)
{
    return lane->request && lane->sequence->n_past < lane->n_text;
}

/* ---- answers ---- */

/* Rows of this batch available for drafts: none while prompts are read, and only as many as are
 * nearly free because other rows read the weights anyway. */
static uint32_t draft_room(const struct tn_steps *s)
{
    uint32_t most = TN_MIN(TN_FEW_TOKENS, s->work->params.n_batch);
    most = TN_MIN(most, s->work->params.n_logits);
    for (uint32_t i = 0; i < s->n_lanes; i++)
        if (s->lanes[i].request && (!s->lanes[i].is_decoding || is_behind(&s->lanes[i])))
            return 0;
    return most > s->n_running ? most - s->n_running : 0;
}

struct head_run {
    struct tn_steps *steps;
    struct tn_lane *lane;
};

static uint32_t make_drafts(void *arg, uint32_t *ids, uint32_t n)
{
    const struct head_run *run = arg;
    const uint64_t start_ns = tn_now_ns();
    const uint32_t n_made = tn_draft_head_make(run->steps, run->lane, ids, n);
    const double seconds = tn_seconds_since(start_ns);
    run->steps->made_s += seconds;
    tn_draft_costs_record_made(&run->steps->work->draft_costs, n_made, seconds);
    return n_made;
}

/* Drafts up to n_max ids after next_id.  Returns their number. */
static uint32_t draft(struct tn_steps *s, struct tn_lane *lane, struct tn_draft_step *step,
                      uint32_t *ids, uint32_t n_max)
{
    struct tn_request *r = lane->request;
    if (r->drafter.n_draft == 0)
        return 0;
    const uint32_t left = r->asked.max_tokens - r->generation.n_new;
    const uint32_t room = s->n_ctx - lane->sequence->n_past;
    n_max = TN_MIN(n_max, TN_MIN(left, room) - 1);
    struct head_run run = {s, lane};
    const struct tn_draft_maker head = {make_drafts, &run};
    return tn_drafter_next(&r->drafter, &s->work->draft_costs,
                           tn_has_draft_head(lane) ? &head : NULL, step, ids, n_max);
}

/* Adds the rows of an answer: its last id and possibly drafts.  Returns the number of drafts. */
static uint32_t add_answer(struct tn_steps *s, struct tn_lane *lane, struct tn_draft_step *step,
                           uint32_t room)
{
    uint32_t ids[1 + TERN_MAX_DRAFT] = {lane->next_id};
    uint32_t n = 1 + draft(s, lane, step, ids + 1, room);
    if (n > 1 && !tn_sequence_grow(lane->sequence, lane->sequence->n_past + n))
        n = 1; /* nothing is evicted for drafts */
    if (!tn_grow_lane(s, lane, n)) {
        end_for_memory(s, lane);
        return 0;
    }
    add_rows(s, lane, ids, n);
    return n - 1;
}

/* A different lane gets the first drafts in each step. */
static void add_answers(struct tn_steps *s)
{
    struct tn_draft_step step = {s->n_running, s->n_running, s->n_running, 0};
    uint32_t room = draft_room(s);
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct tn_lane *lane = &s->lanes[(i + s->n_steps) % s->n_lanes];
        if (lane->request && lane->is_decoding && !is_behind(lane))
            room -= add_answer(s, lane, &step, room);
    }
}

/* ---- prompts ---- */

/* Rows available to prompts in this batch. */
static uint32_t prompt_rows(const struct tn_steps *s)
{
    const uint32_t n_decoding = s->batch.n_rows;
    uint32_t n = s->work->params.n_batch;
    if (n_decoding > 0)
        n = TN_MIN(n, SHARED_ROWS);
    if (n_decoding > 0 && s->row_s * n > SHARED_STEP_S)
        n = (uint32_t)(SHARED_STEP_S / s->row_s);
    return n > n_decoding ? n - n_decoding : 1;
}

/* Length of the common prefix of two prompts, at most n. */
static uint32_t common_ids(const struct tern_request *a, const struct tern_request *b, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && i + 1 < a->n_ids && i < b->n_ids && a->ids[i] == b->ids[i])
        i++;
    return i;
}

/* Will a prompt in this batch have a longer prefix of this one than is cached now?  Recurrent state
 * can be taken over only at the other sequence's position. */
static bool can_wait(const struct tn_steps *s, const struct tn_lane *lane)
{
    const struct tern_request *mine = &lane->request->asked;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        const struct tn_lane *other = &s->lanes[i];
        if (other->n_rows == 0 || other->is_decoding || mine->prompt_logprobs)
            continue;
        const uint32_t end = other->sequence->n_past + 1;
        const uint32_t n = common_ids(mine, &other->request->asked, end);
        if (n > lane->sequence->n_past && (n == end || !lane->sequence->state))
            return true;
    }
    return false;
}

/* Rows of a lane's prompt, at most n, up to the next position where a state is kept or taken over
 * for other prompts. */
static uint32_t cut_prompt(const struct tn_steps *s, const struct tn_lane *lane, uint32_t n)
{
    const struct tern_request *mine = &lane->request->asked;
    const uint32_t n_past = lane->sequence->n_past, marks[] = {mine->n_system, mine->n_turn};
    for (uint32_t i = 0; i < TN_COUNT_OF(marks); i++)
        if (marks[i] > n_past)
            n = TN_MIN(n, marks[i] - n_past);
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        const struct tn_lane *other = &s->lanes[i];
        if (other == lane || !other->request || other->is_decoding)
            continue;
        const uint32_t common = common_ids(&other->request->asked, mine, n_past + n);
        if (common > n_past && common > other->sequence->n_past)
            n = common - n_past;
    }
    return n;
}

/* Adds rows of the text to be computed again, up to `room`.  Returns their number. */
static uint32_t add_again(struct tn_steps *s, struct tn_lane *lane, uint32_t room)
{
    const struct tn_sequence *q = lane->sequence;
    const uint32_t n = TN_MIN(lane->n_text - q->n_past, room);
    if (!tn_grow_lane(s, lane, n)) {
        end_for_memory(s, lane);
        return 0;
    }
    add_rows(s, lane, q->ids + q->n_past, n);
    lane->is_recomputed = true;
    s->has_prompts = true;
    return n;
}

/* Adds up to `room` rows of a lane's prompt.  Returns their number. */
static uint32_t add_prompt(struct tn_steps *s, struct tn_lane *lane, uint32_t room)
{
    const struct tern_request *asked = &lane->request->asked;
    if (can_wait(s, lane))
        return 0;
    tn_take_over(s, lane);
    const uint32_t n_past = lane->sequence->n_past;
    uint32_t n = TN_MIN((uint32_t)asked->n_ids - n_past, room);
    if (asked->prompt_logprobs)
        n = TN_MIN(n, TN_PROMPT_LOGPROB_ROWS);
    if (lane->sequence->state)
        n = cut_prompt(s, lane, n);
    if (!tn_grow_lane(s, lane, n)) {
        end_for_memory(s, lane);
        return 0;
    }
    add_rows(s, lane, asked->ids + n_past, n);
    s->has_prompts = true;
    return n;
}

static void add_prompts(struct tn_steps *s)
{
    const uint32_t n = s->n_lanes, before = s->i_prefill;
    uint32_t room = prompt_rows(s);
    bool has_all_logits = false; /* there is memory for one such prompt only */
    for (uint32_t i = 1; i <= n && room > 0; i++) {
        const uint32_t k = (before + i) % n;
        struct tn_lane *lane = &s->lanes[k];
        if (!lane->request || (lane->is_decoding && !is_behind(lane)) ||
            (has_all_logits && lane->request->asked.prompt_logprobs))
            continue;
        if (!s->has_prompts)
            s->i_prefill = k;
        has_all_logits = has_all_logits || lane->request->asked.prompt_logprobs;
        room -= is_behind(lane) ? add_again(s, lane, room) : add_prompt(s, lane, room);
    }
}

/* ---- logits ---- */

/* Inserts an id into n ascending ones.  false: no room. */
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

/* Which logits the choices after a lane's rows depend on; each draft counts for the penalties of
 * the rows after it. */
static struct tn_head_need need_of(const struct tn_steps *s, const struct tn_lane *lane)
{
    const struct tn_request *r = lane->request;
    struct tn_head_need need = {0}; /* all logits */
    if (r->asked.n_logprobs || r->asked.prompt_logprobs || r->asked.adjust)
        return need;
    tn_generation_need(&r->generation, lane->head_always, &need);
    for (uint32_t i = 1; i < lane->n_rows && lane->is_decoding && need.n_best; i++)
        if (!insert_id(lane->head_always, &need.n_always, s->ids[lane->row + i]))
            need.n_best = 0;
    return need;
}

/* The first row of a lane that needs logits; n_rows: none. */
static uint32_t first_wanted(const struct tn_lane *lane)
{
    const struct tern_request *asked = &lane->request->asked;
    if (lane->is_recomputed)
        return lane->n_rows;
    if (!asked->n_logprobs && !asked->prompt_logprobs &&
        tn_generation_is_decided(&lane->request->generation))
        return lane->n_rows;
    if (lane->is_decoding || asked->prompt_logprobs)
        return 0;
    const bool is_end = lane->sequence->n_past + lane->n_rows == asked->n_ids;
    return is_end ? lane->n_rows - 1 : lane->n_rows;
}

/* Requests logits for a lane's rows from the first one that needs them. */
static void want_logits(struct tn_steps *s, struct tn_lane *lane)
{
    struct tn_batch *b = &s->batch;
    lane->logits = b->logits + (size_t)b->n_wanted * tn_steps_vocab(s);
    for (uint32_t i = lane->first_wanted; i < lane->n_rows; i++)
        s->work->forward.s.wanted[b->n_wanted++] =
            (struct tn_logits_row){lane->row + i, lane->need};
}

/* Lanes that need all logits come first. */
static void add_wanted(struct tn_steps *s)
{
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct tn_lane *lane = &s->lanes[i];
        if (lane->n_rows == 0)
            continue;
        lane->first_wanted = first_wanted(lane);
        if (lane->first_wanted < lane->n_rows)
            lane->need = need_of(s, lane);
    }
    for (uint32_t i = 0; i < TN_N_HEAD_WAYS * s->n_lanes; i++) {
        struct tn_lane *lane = &s->lanes[i % s->n_lanes];
        if (lane->first_wanted < lane->n_rows &&
            tn_head_way(&lane->need) == (enum tn_head_way)(i / s->n_lanes))
            want_logits(s, lane);
    }
}

/* Whether the states of the batch are needed afterwards, by a draft head. */
static bool needs_states(const struct tn_steps *s)
{
    for (uint32_t i = 0; i < s->n_lanes; i++)
        if (tn_has_draft_head(&s->lanes[i]))
            return true;
    return false;
}

/* Resets what the events of the last step pointed to. */
static void begin_lane(struct tn_lane *lane)
{
    lane->n_rows = lane->n_ids = lane->first_wanted = 0;
    lane->is_recomputed = false;
    lane->logits = NULL;
    if (!lane->request)
        return;
    lane->last_logits = NULL;
    tn_generation_forget(&lane->request->generation);
}

void tn_make_batch(struct tn_steps *s)
{
    s->batch = (struct tn_batch){.ids = s->ids,
                                 .spans = s->spans,
                                 .wanted = s->work->forward.s.wanted,
                                 .logits = s->work->forward.s.logits};
    s->has_prompts = false;
    s->made_s = 0;
    for (uint32_t i = 0; i < s->n_lanes; i++)
        begin_lane(&s->lanes[i]);
    add_answers(s);
    add_prompts(s);
    add_wanted(s);
    if (needs_states(s))
        s->batch.states = s->work->forward.s.draft_states;
    for (uint32_t i = 0; i < s->n_lanes; i++)
        s->lanes[i].n_fresh = 0; /* the evaluation overwrites all states */
}

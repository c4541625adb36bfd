/* SPDX-License-Identifier: MIT
 *
 * Lanes: which one a request gets, and what of the cache it uses again.
 *
 * The beginning of a prompt is looked for in all lanes, those that run too.  From another lane it
 * is shared, not moved; a free lane is taken over as it is where most of it stays.
 */
#include "engine/steps.h"

/* The lane that can give the longest prefix of a prompt, *n positions of it; at least one id is
 * left, for its logits.  NULL: no lane has any of it. */
static struct tn_lane *find_longest(struct tn_steps *s, const struct tern_request *asked,
                                    uint32_t *n)
{
    struct tn_lane *best = NULL;
    *n = 0;
    for (uint32_t i = 0; i < s->n_lanes && !asked->prompt_logprobs; i++) {
        struct tn_lane *lane = &s->lanes[i];
        const uint32_t common = tn_sequence_reach(
            lane->sequence, tn_sequence_common(lane->sequence, asked->ids, asked->n_ids - 1));
        /* Of equals a free one: nothing is copied then. */
        if (common > *n || (best && common == *n && best->request && !lane->request)) {
            best = lane;
            *n = common;
        }
    }
    return best;
}

/* The free lane that rests longest, but for `except`; NULL: there is none. */
static struct tn_lane *find_free(struct tn_steps *s, const struct tn_lane *except)
{
    struct tn_lane *best = NULL;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct tn_lane *lane = &s->lanes[i];
        if (!lane->request && lane != except && (!best || lane->last_step < best->last_step))
            best = lane;
    }
    return best;
}

/* Most of what a lane holds is lost when it goes back to n positions.  An answer behind the last
 * question is none: templates strip it of its thoughts. */
static bool loses_most(const struct tn_sequence *q, uint32_t n)
{
    return n < q->n_past / 2 && n < tn_sequence_marked(q, TN_MARK_TURN);
}

struct tn_lane *tn_prepare_lane(struct tn_steps *s, const struct tern_request *asked)
{
    uint32_t n = 0;
    struct tn_lane *from = find_longest(s, asked, &n), *lane = from;
    if (!from || from->request || loses_most(from->sequence, n))
        lane = find_free(s, from);
    if (!lane && from && !from->request)
        lane = from; /* the only one */
    if (lane && lane != from && from)
        (void)tn_sequence_share(lane->sequence, from->sequence, n);
    else if (lane)
        (void)tn_sequence_truncate(lane->sequence, n);
    return lane;
}

/* Checkpoints of what the prompt has in common with earlier ones get their marks in this one. */
static void mark_again(struct tn_sequence *q, const struct tern_request *asked)
{
    struct tn_checkpoint *system = tn_checkpoints_find(q->checkpoints, q->number, asked->n_system);
    struct tn_checkpoint *turn = tn_checkpoints_find(q->checkpoints, q->number, asked->n_turn);
    if (system)
        tn_checkpoints_mark(q->checkpoints, system, q->number, TN_MARK_SYSTEM);
    if (turn)
        tn_checkpoints_mark(q->checkpoints, turn, q->number, TN_MARK_TURN);
}

void tn_start_lane(struct tn_steps *s, struct tn_lane *lane, struct tn_request *r)
{
    lane->request = r;
    lane->is_decoding = false;
    lane->last_step = s->n_steps;
    lane->last_logits = NULL;
    lane->n_text = lane->sequence->n_past;
    mark_again(lane->sequence, &r->asked);
    r->start_ns = tn_now_ns();
    tn_generation_start(&r->generation, r->asked.ids, r->asked.n_ids);
    s->n_running++;
}

void tn_take_over(struct tn_steps *s, struct tn_lane *lane)
{
    uint32_t n;
    const struct tn_lane *from = find_longest(s, &lane->request->asked, &n);
    if (from && from != lane && n > lane->sequence->n_past)
        lane->n_text = tn_sequence_share(lane->sequence, from->sequence, n);
}

/* Gives up what the ended request that rests longest left in the cache; false when nothing is
 * left. */
static bool forget_one(struct tn_steps *s)
{
    struct tn_lane *oldest = NULL;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        struct tn_lane *lane = &s->lanes[i];
        if (!lane->request && lane->sequence->n_blocks > 0 &&
            (!oldest || lane->last_step < oldest->last_step))
            oldest = lane;
    }
    if (oldest)
        (void)tn_sequence_truncate(oldest->sequence, 0);
    return oldest != NULL;
}

bool tn_grow_lane(struct tn_steps *s, struct tn_lane *lane, uint32_t n)
{
    while (!tn_sequence_grow(lane->sequence, lane->sequence->n_past + n))
        if (!forget_one(s))
            return false;
    return true;
}

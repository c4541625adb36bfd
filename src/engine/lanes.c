/* SPDX-License-Identifier: MIT
 *
 * Assigns lanes to requests and reuses cached prefixes.
 *
 * All lanes are searched for a prefix of the prompt, including running ones.  A prefix of another
 * lane is shared; a free lane is taken over with its cache if most of it remains useful.
 */
#include "engine/draft_head.h"

/* The lane with the longest prefix of a prompt, *n positions; one id is always left, for its
 * logits.  NULL: no lane shares any. */
static struct tn_lane *find_longest(struct tn_steps *s, const struct tern_request *asked,
                                    uint32_t *n)
{
    struct tn_lane *best = NULL;
    *n = 0;
    for (uint32_t i = 0; i < s->n_lanes && !asked->prompt_logprobs; i++) {
        struct tn_lane *lane = &s->lanes[i];
        const uint32_t common = tn_sequence_reach(
            lane->sequence, tn_sequence_common(lane->sequence, asked->ids, asked->n_ids - 1));
        /* Among equals prefer a free lane: nothing has to be copied. */
        if (common > *n || (best && common == *n && best->request && !lane->request)) {
            best = lane;
            *n = common;
        }
    }
    return best;
}

/* The free lane that has been idle longest, except `except`; NULL: none. */
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

/* Would rolling back to n positions discard most of a lane?  An answer after the last question does
 * not count, because templates strip its reasoning. */
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

/* Marks checkpoints of the prefix shared with earlier prompts for this sequence. */
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
    tn_draft_head_reset(lane);
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

/* Evicts the cache of the ended request that has been idle longest.  false: nothing is left to
 * evict. */
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

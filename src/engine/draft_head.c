/* SPDX-License-Identifier: MIT
 *
 * Runs the draft head of a lane (draft_head.h): which rows it reads, its positions, and the choice
 * of the ids that it drafts.
 */
#include "engine/draft_head.h"

#include <string.h>

/* Pairs of a prompt that are read: enough for a start, at little cost. */
#define PROMPT_PAIRS TN_DRAFT_ROWS

bool tn_has_draft_head(const struct tn_lane *lane)
{
    return lane->draft_blocks && lane->request && lane->request->drafter.n_draft > 0;
}

void tn_draft_head_reset(struct tn_lane *lane)
{
    lane->n_drafted = lane->n_fresh = 0;
}

void tn_draft_head_note(struct tn_lane *lane, uint32_t end, uint32_t n)
{
    lane->n_fresh = TN_MIN(n, TN_DRAFT_ROWS);
    lane->i_fresh = end - lane->n_fresh;
}

/* Ids that are drafted: vocabularies number frequent tokens first, and the rows of all others would
 * be most of what the head reads. */
#define VOCAB_SHARE 4u
#define LEAST_VOCAB 32768u

static uint32_t n_drafted_ids(const struct tern_model *model)
{
    const uint32_t share = model->weights.config->vocab / VOCAB_SHARE;
    return TN_MIN(model->n_allowed, TN_MAX(share, LEAST_VOCAB));
}

/* Evaluates pairs: ids [n] with states [n][hidden].  `logits` NULL: none are needed.  false:
 * interrupted. */
static bool evaluate(struct tn_steps *s, struct tn_lane *lane, const uint32_t *ids, uint32_t n,
                     const float *states, float *logits)
{
    struct tn_forward *f = &s->work->forward;
    const struct tn_span span = {
        .blocks = lane->draft_blocks, .position = lane->n_drafted, .n_rows = n};
    const struct tn_logits_row wanted = {
        n - 1, {.n_best = 1, .n_allowed = n_drafted_ids(s->work->model)}};
    const struct tn_batch batch = {.ids = ids,
                                   .n_rows = n,
                                   .spans = &span,
                                   .n_spans = 1,
                                   .wanted = &wanted,
                                   .n_wanted = logits ? 1 : 0,
                                   .logits = logits};
    /* A text has fewer pairs than positions, but pairs of rows that were rolled back count too. */
    if (lane->n_drafted + n > s->n_ctx)
        return false;
    if (!tn_workspace_eval_draft(s->work, &batch, states, f->s.draft_last))
        return false;
    lane->n_drafted += n;
    return true;
}

void tn_draft_head_read_prompt(struct tn_steps *s, struct tn_lane *lane, uint32_t first)
{
    const struct tern_request *asked = &lane->request->asked;
    const uint32_t n_ids = (uint32_t)asked->n_ids, hidden = s->work->model->weights.config->hidden;
    const uint32_t begin = TN_MAX(first, n_ids - TN_MIN(n_ids, PROMPT_PAIRS));
    const uint32_t end = TN_MIN(first + lane->n_rows, n_ids - 1); /* no id follows the last one */
    if (begin < end)
        (void)evaluate(s, lane, asked->ids + begin + 1, end - begin,
                       s->work->forward.s.draft_states +
                           ((size_t)lane->row + begin - first) * hidden, NULL);
}

/* The id with the largest logit. */
static uint32_t best_of(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

uint32_t tn_draft_head_make(struct tn_steps *s, struct tn_lane *lane, uint32_t *ids, uint32_t n)
{
    const struct tn_scratch *scratch = &s->work->forward.s;
    const struct tn_sequence *q = lane->sequence;
    const uint32_t n_fresh = lane->n_fresh, n_allowed = n_drafted_ids(s->work->model);
    uint32_t next[TN_DRAFT_ROWS];
    if (n_fresh == 0)
        return 0;
    memcpy(next, q->ids + q->n_past - n_fresh + 1, (n_fresh - 1) * sizeof *next);
    next[n_fresh - 1] = lane->next_id;
    lane->n_fresh = 0;
    if (!evaluate(s, lane, next, n_fresh,
                  scratch->draft_states +
                      (size_t)lane->i_fresh * s->work->model->weights.config->hidden,
                  scratch->logits))
        return 0;
    const uint32_t n_kept = lane->n_drafted; /* pairs of guesses are read again with their ids */
    ids[0] = best_of(scratch->logits, n_allowed);
    bool is_whole = true;
    for (uint32_t i = 1; i < n && is_whole; i++) {
        is_whole = evaluate(s, lane, &ids[i - 1], 1, scratch->draft_last, scratch->logits);
        ids[i] = best_of(scratch->logits, n_allowed);
    }
    lane->n_drafted = n_kept;
    return is_whole ? n : 0;
}

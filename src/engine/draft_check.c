/* SPDX-License-Identifier: MIT
 *
 * Decides which drafts of an answer become its ids.
 *
 * The rows of an answer are the id chosen last and drafts of the ids after it.  Each id is still
 * chosen in turn, from the logits after the ids before it, which have the same bits whatever else
 * is in the batch.  The first choice that differs from its draft ends the check, and the rows after
 * it are rolled back.
 */
#include "engine/draft_head.h"

void tn_finish_answer(struct tn_steps *s, struct tn_lane *lane)
{
    struct tn_request *r = lane->request;
    r->result.n_steps++;
    r->result.n_drafted += lane->n_rows - 1;
    bool is_right = true;
    uint32_t n = 0;
    while (is_right && lane->request) {
        tn_keep_row(s, lane, n);
        is_right = tn_choose_token(s, lane, n++);
    }
    tn_draft_head_note(lane, lane->row + n, n);
    lane->n_text = lane->sequence->n_past;
    (void)tn_sequence_truncate(lane->sequence, lane->n_text); /* missing positions are recomputed */
    tn_sequence_checkpoint_spaced(lane->sequence);
}

/* SPDX-License-Identifier: MIT
 *
 * The head for listed rows: what an answer needs that is bound to a few ids.
 */
#ifndef TN_HEAD_LIST_H
#define TN_HEAD_LIST_H

#include "model/forward.h"

/* logits [vocab]: those of need->only are exact, the bits that all of the head would give; others
 * are minus infinity, or exact too.
 *   x  [columns of head] as the head sees it */
void tn_list_head(struct tn_forward *f, const struct tn_head_need *need, float *x, float *logits);

/* Rows [row, row + n) are not needed any more; both at the bounds of blocks of the layout. */
void tn_leave_head_rows(const struct tn_forward *f, uint32_t row, uint32_t n);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The head for listed rows only: used when a grammar allows few ids, so that the other logits need
 * not be computed.
 */
#ifndef TN_HEAD_LIST_H
#define TN_HEAD_LIST_H

#include "model/forward.h"

/* logits [vocab]: those of need->only are exact, with the bits of the full product; others are
 * minus infinity, or exact too.
 *   x  [columns of head] the input of the head */
void tn_list_head(struct tn_forward *f, const struct tn_head_need *need, float *x, float *logits);

/* Reports that rows [row, row + n) are no longer needed; both are multiples of the layout's
 * blocks. */
void tn_release_head_rows(const struct tn_forward *f, uint32_t row, uint32_t n);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Which layout `tern convert --pack auto` takes.
 */
#ifndef TN_PACK_CHOICE_H
#define TN_PACK_CHOICE_H

#include "convert/tensor_plan.h"

#define TN_PACK_REASON_BYTES 160u

/* After tn_tensor_plan_settle, which plans fast ones.  *small: the choice, by the types of the
 * source, the memory that is available, and what measuring says; `why` for people.  TERN_MEMORY. */
tern_status tn_pack_choose(bool *small, char why[TN_PACK_REASON_BYTES],
                           const struct tn_tensor_plan *plan, bool int8_inputs,
                           struct tern_error *err);
/* Ternary matrices in T2 become T5. */
void tn_tensor_plan_make_small(struct tn_tensor_plan *plan);

#endif

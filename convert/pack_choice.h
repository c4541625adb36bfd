/* SPDX-License-Identifier: MIT
 *
 * The choice of `tern convert --pack auto` between ternary layouts of 2 bits (fast) and of 1.625
 * bits (small).
 */
#ifndef TN_PACK_CHOICE_H
#define TN_PACK_CHOICE_H

#include "convert/config_import.h"
#include "convert/tensor_plan.h"
#include "tern/plan.h"

#define TN_PACK_REASON_BYTES 160u
#define TN_PACK_CONTEXT 4096u

/* Call after tn_tensor_plan_settle, which plans fast layouts.  *small: the choice, from the types
 * of the source, the available memory, and a measurement; `why` is for users.  TERN_MEMORY;
 * TERN_UNSUPPORTED as tern_plan_outline_sizes. */
tern_status tn_pack_choose(bool *small, char why[TN_PACK_REASON_BYTES],
                           const struct tn_tensor_plan *plan, const struct tn_config_import *import,
                           struct tern_error *err);
/* Whether a model of these sizes stays in memory on this machine while a conversation has
 * TN_PACK_CONTEXT positions, or as many as the model has: file, cache, state and its copies,
 * scratch memory.  If not, `why` has the numbers. */
bool tn_pack_fits(char why[TN_PACK_REASON_BYTES], const struct tern_plan_model *sizes,
                  const struct tern_sysinfo *machine);
/* Changes ternary matrices from T2 to T5. */
void tn_tensor_plan_make_small(struct tn_tensor_plan *plan);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Which layout `tern convert --pack auto` takes.
 */
#ifndef TN_PACK_CHOICE_H
#define TN_PACK_CHOICE_H

#include "convert/config_import.h"
#include "convert/tensor_plan.h"
#include "tern/plan.h"

#define TN_PACK_REASON_BYTES 160u
#define TN_PACK_CONTEXT 4096u

/* After tn_tensor_plan_settle, which plans fast ones.  *small: the choice, by the types of the
 * source, the memory that is available, and what measuring says; `why` for people.  TERN_MEMORY;
 * TERN_UNSUPPORTED as tern_plan_outline_sizes. */
tern_status tn_pack_choose(bool *small, char why[TN_PACK_REASON_BYTES],
                           const struct tn_tensor_plan *plan, const struct tn_config_import *import,
                           struct tern_error *err);
/* True when a model of these sizes stays in memory on this machine while a conversation has
 * TN_PACK_CONTEXT positions, or as many as the model has: file, cache, state and its copies,
 * scratch memory.  Where not, `why` says it with numbers. */
bool tn_pack_fits(char why[TN_PACK_REASON_BYTES], const struct tern_plan_model *sizes,
                  const struct tern_sysinfo *machine);
/* Ternary matrices in T2 become T5. */
void tn_tensor_plan_make_small(struct tn_tensor_plan *plan);

#endif

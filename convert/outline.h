/* SPDX-License-Identifier: MIT
 *
 * The sizes of a source after conversion, from a plan with at least the first layer surveyed, for
 * `tern info`, `tern pull` and --pack auto.
 */
#ifndef TN_OUTLINE_H
#define TN_OUTLINE_H

#include "convert/config_import.h"
#include "convert/tensor_plan.h"
#include "tern/inspect.h"

/* The same for a settled plan. */
tern_status tn_outline_settled(struct tern_source_sizes *out, const struct tn_tensor_plan *plan,
                               const struct tn_config_import *import, struct tern_error *err);
/* Settles the plan, assuming that later layers equal the first one.  TERN_MEMORY, TERN_UNSUPPORTED
 * as tn_tensor_plan_settle and tern_plan_outline_sizes. */
tern_status tn_outline_sizes(struct tern_source_sizes *out, struct tn_tensor_plan *plan,
                             struct tn_config_import *import, struct tern_error *err);

#endif

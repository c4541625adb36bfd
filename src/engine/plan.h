/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the plan: plan.c decides threads, tier and caps, plan_memory.c reserve and
 * context, plan_say.c writes down the reasons.
 */
#ifndef TN_PLAN_H
#define TN_PLAN_H

#include "base/compiler.h"
#include "tern/plan.h"

#define TN_PLAN_MIB ((uint64_t)1 << 20)
#define TN_PLAN_GIB ((uint64_t)1 << 30)

/* Anonymous memory of the process besides the session: libraries, traces of hwloc, open files. */
#define TN_PLAN_PROCESS_BYTES (3 * TN_PLAN_MIB)
/* Resident stack of a thread. */
#define TN_PLAN_STACK_BYTES ((uint64_t)64 << 10)
/* Assumed available memory when the system does not say; at most half of the machine's. */
#define TN_PLAN_ASSUMED_BYTES (2 * TN_PLAN_GIB)
/* A context must leave room for this many new tokens. */
#define TN_PLAN_MIN_NEW 16u
/* Copies of the recurrent state: the minimum, for the last turn and the newest prompt; and the
 * number kept if they fit besides the model's file. */
#define TN_PLAN_MIN_CHECKPOINTS 2u
#define TN_PLAN_CHECKPOINTS 8u

/* Adds a reason; `number` is the value when `text` is NULL. */
void tn_plan_reason(struct tern_plan *plan, const char *what, uint64_t number, const char *text,
                    const char *bound_by, const char *detail, ...) TN_PRINTF(6, 7);
void tn_plan_notice(struct tern_plan *plan, const char *format, ...) TN_PRINTF(2, 3);

/* "900 MiB", "3.4 GiB": formats into a buffer of the caller. */
struct tn_plan_size {
    char text[24];
};
const char *tn_plan_size_text(struct tn_plan_size *out, uint64_t bytes);
/* The same, rounded in one direction: an amount that is said to suffice must do so, and a refused
 * need must not read like the amount available. */
const char *tn_plan_size_directed(struct tn_plan_size *out, uint64_t bytes, bool up);

/* Decides the memory left free for other programs, limited so that small limits stay usable.  The
 * available memory must be in *plan. */
void tn_plan_reserve(struct tern_plan *plan, const struct tern_sysinfo *m);

/* Decides context and predicts memory.  Threads and available memory must be in *plan. */
tern_status tn_plan_memory(struct tern_plan *plan, const struct tern_sysinfo *machine,
                           const struct tern_plan_model *model,
                           const struct tern_plan_limits *limits, struct tern_error *err);

#endif

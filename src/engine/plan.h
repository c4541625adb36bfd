/* SPDX-License-Identifier: MIT
 *
 * What the parts of the plan share: plan.c makes threads, tiers and caps, plan_memory.c makes
 * reserve and context, plan_say.c writes down why.
 */
#ifndef TN_PLAN_H
#define TN_PLAN_H

#include "base/compiler.h"
#include "tern/plan.h"

#define TN_PLAN_MIB ((uint64_t)1 << 20)
#define TN_PLAN_GIB ((uint64_t)1 << 30)

/* Anonymous memory of the process beside the session: libraries, hwloc's traces, open files. */
#define TN_PLAN_PROCESS_BYTES (3 * TN_PLAN_MIB)
/* What a thread's stack really takes. */
#define TN_PLAN_STACK_BYTES ((uint64_t)64 << 10)
/* Assumed when the available memory is unknown, or half of the machine's if that is less. */
#define TN_PLAN_ASSUMED_BYTES (2 * TN_PLAN_GIB)
/* A context must leave room for this many new tokens. */
#define TN_PLAN_MIN_NEW 16u
/* Copies of the state: so many must fit, for the last turn and the newest prompt; and so many are
 * kept where there is room beside the model's file. */
#define TN_PLAN_MIN_CHECKPOINTS 2u
#define TN_PLAN_CHECKPOINTS 8u

/* Adds a reason; value is a number when text is NULL. */
void tn_plan_reason(struct tern_plan *plan, const char *what, uint64_t number, const char *text,
                    const char *bound_by, const char *detail, ...) TN_PRINTF(6, 7);
void tn_plan_notice(struct tern_plan *plan, const char *format, ...) TN_PRINTF(2, 3);

/* "900 MiB", "3.4 GiB": into a buffer that the caller names. */
struct tn_plan_size {
    char text[24];
};
const char *tn_plan_size_text(struct tn_plan_size *out, uint64_t bytes);
/* The same, not rounded to the nearest: what is said to suffice must do so when taken at its word,
 * and a need that is refused must not read like what is left. */
const char *tn_plan_size_directed(struct tn_plan_size *out, uint64_t bytes, bool up);

/* What is left free for everybody else: never so much that small limits become useless. The
 * available memory is already in *plan. */
void tn_plan_reserve(struct tern_plan *plan, const struct tern_sysinfo *m);

/* Context and predicted memory; threads and available memory are already in *plan. */
tern_status tn_plan_memory(struct tern_plan *plan, const struct tern_sysinfo *machine,
                           const struct tern_plan_model *model,
                           const struct tern_plan_limits *limits, struct tern_error *err);

#endif

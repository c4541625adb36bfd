/* SPDX-License-Identifier: MIT
 *
 * From flags to a plan: reads the machine, makes the plan, and shows its notices, before anything
 * large is allocated.
 */
#ifndef TN_PLANNED_H
#define TN_PLANNED_H

#include "app.h"
#include "tern/grammar.h"
#include "tern/plan.h"

struct tn_planned {
    const struct tern_sysinfo *machine; /* owned by the struct tn_opened */
    struct tern_plan plan;
    enum tern_inputs_as inputs; /* of the engine */
};

/* The limits that the flags set for a plan. */
void tn_planned_limits(struct tern_plan_limits *out, const struct tn_options *o);

/* The sizes of an open model, including the sampler according to the flags. */
void tn_planned_sizes(struct tern_plan_model *out, const struct tn_options *o,
                      const struct tern_model *model);

/* `opened` must have a machine.  n_prompt: tokens of the prompt, 0 if unknown.  grammar: of the
 * answer, or NULL.  *out is new memory (tn_free). */
tern_status tn_planned_make(struct tn_planned **out, const struct tn_options *o,
                            const struct tn_opened *opened, size_t n_prompt,
                            const struct tern_grammar *grammar, struct tern_error *err);

/* Creates an engine with the plan's threads, kernel level and cores; applies --eco to the
 * process. */
tern_status tn_planned_create_engine(struct tern_engine **out, const struct tn_planned *planned,
                                     struct tern_error *err);

#endif

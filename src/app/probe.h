/* SPDX-License-Identifier: MIT
 *
 * The two faces of `tern probe`.
 */
#ifndef TN_PROBE_H
#define TN_PROBE_H

#include "tern/plan.h"

/* A machine and what is planned on it. */
struct tn_probe {
    struct tern_sysinfo machine;
    struct tern_plan plan;          /* without a model's part when it cannot run */
    struct tern_plan_limits limits;
    struct tern_plan_model sizes;   /* with model_name */
    const char *model_name;         /* NULL: no model */
    struct tern_error refusal;      /* why the model cannot run; TERN_OK if it can */
};

/* Cores of the machine that are fast enough for decoding, and the others. */
void tn_probe_count_cores(const struct tern_sysinfo *m, uint32_t *n_performance,
                          uint32_t *n_efficiency);

void tn_probe_print_text(const struct tn_probe *probe);
tern_status tn_probe_print_json(const struct tn_probe *probe, struct tern_error *err);

#endif

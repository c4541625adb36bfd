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
    uint64_t table_bytes;           /* of the file: the table that is head, or both */
    const char *model_name;         /* NULL: no model */
    bool is_source;                 /* it is not converted yet: the sizes are what it will have */
    uint64_t bytes_per_token;       /* with model_name: that decoding reads */
    double stream_gb_s;             /* that the plan's threads read here; 0: not measured */
    struct tern_error refusal;      /* why the model cannot run; TERN_OK if it can */
};

void tn_probe_print_text(const struct tn_probe *probe);
tern_status tn_probe_print_json(const struct tn_probe *probe, struct tern_error *err);

#endif

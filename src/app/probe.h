/* SPDX-License-Identifier: MIT
 *
 * The data of `tern probe`: cmd_probe.c collects them, probe_text.c and probe_json.c print them.
 */
#ifndef TN_PROBE_H
#define TN_PROBE_H

#include "tern/plan.h"

/* A machine and the plan for it. */
struct tn_probe {
    struct tern_sysinfo machine;
    struct tern_plan plan;          /* without the values for a model if it cannot run */
    struct tern_plan_limits limits;
    struct tern_plan_model sizes;   /* set with model_name */
    uint64_t table_bytes;           /* of the file: the embedding, if it is also the head, else both
                                     * tables */
    const char *model_name;         /* NULL: no model */
    bool is_source;                 /* it is not converted yet: the sizes are estimates */
    uint64_t bytes_per_token;       /* read by decoding; of a source only */
    double stream_gb_s;             /* rate at which the plan's threads read memory here; 0: not
                                     * measured */
    struct tern_error refusal;      /* the reason why the model cannot run; TERN_OK if it can */
};

void tn_probe_print_text(const struct tn_probe *probe);
tern_status tn_probe_print_json(const struct tn_probe *probe, struct tern_error *err);

#endif

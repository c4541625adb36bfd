/* SPDX-License-Identifier: MIT
 *
 * The entry of sysinfo/: combines processor, topology, limits and memory, live or from a recording,
 * into the description of a machine.  It describes and never decides: engine/plan.c derives
 * threads, context and cache from it.
 */
#include "sysinfo_private.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plat/plat.h"

static void clear(struct tern_sysinfo *out)
{
    memset(out, 0, sizeof *out);
    out->quota_millicpus = TERN_UNKNOWN;
    out->total_bytes = out->available_bytes = out->limit_bytes = TERN_UNKNOWN;
    out->system_available_bytes = out->cgroup_available_bytes = TERN_UNKNOWN;
    out->rlimit_as_left_bytes = out->rlimit_data_left_bytes = TERN_UNKNOWN;
    out->job_available_bytes = out->commit_left_bytes = TERN_UNKNOWN;
    out->swap_total_bytes = out->swap_free_bytes = TERN_UNKNOWN;
    out->overcommit_mode = -1;
    out->pressure_centi = TERN_UNKNOWN;
    out->page_bytes = TERN_UNKNOWN;
    out->n_thermal_throttles = TERN_UNKNOWN;
}

static void bind_available(struct tern_sysinfo *out, uint64_t bytes, enum tern_bound bound)
{
    if (bytes != TERN_UNKNOWN &&
        (out->available_bytes == TERN_UNKNOWN || bytes < out->available_bytes)) {
        out->available_bytes = bytes;
        out->limited_by = bound;
    }
}

/* The minimum of the bounds that apply.  The commit limit is not among them: it binds anonymous
 * memory only. */
static void combine_available(struct tern_sysinfo *out)
{
    bind_available(out, out->system_available_bytes, TERN_BOUND_MEMINFO);
    bind_available(out, out->cgroup_available_bytes, TERN_BOUND_CGROUP);
    bind_available(out, out->rlimit_as_left_bytes, TERN_BOUND_RLIMIT_AS);
    bind_available(out, out->rlimit_data_left_bytes, TERN_BOUND_RLIMIT_DATA);
    bind_available(out, out->job_available_bytes, TERN_BOUND_JOB);
}

void tern_sysinfo_read_cpu(struct tern_sysinfo *out)
{
    clear(out);
    tn_topology_one_core(out);
    tn_cpu_read_live(out);
}

void tern_sysinfo_read(struct tern_sysinfo *out)
{
    clear(out);
    tn_cpu_read_live(out);
    tn_topology_read(out, "", NULL);
    tn_memory_read_live(out);
    combine_available(out);
}

tern_status tern_sysinfo_read_root(struct tern_sysinfo *out, const char *root,
                                   struct tern_error *err)
{
    clear(out);
    if (tn_path_kind(root) != TN_PATH_DIR)
        return tn_fail(err, TERN_INPUT,
                       "%s: not a directory; a recorded machine is one with proc/ and sys/", root);
    struct tn_process_facts *facts = tn_alloc(sizeof *facts);
    if (!facts)
        return tn_fail(err, TERN_MEMORY, "no memory to read %s (%zu bytes)", root, sizeof *facts);
    tn_process_json_read(facts, root, &out->unreadable);
    out->cpu_features = facts->cpu_features;
    tn_cpu_name_from_proc(out, root);
    tn_topology_read(out, root, facts->has_affinity ? facts->affinity : NULL);
    tn_memory_read_proc(out, root);
    tn_limits_read(out, root);
    tn_process_limits(out, facts, root);
    tn_free(facts);
    combine_available(out);
    return tn_ok(err);
}

/* SPDX-License-Identifier: MIT
 *
 * tern probe as text: resources of the machine, their limits, the resulting plan, and what more or
 * less memory would change.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "output.h"
#include "probe.h"

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static struct tn_size_text size_text(uint64_t bytes)
{
    struct tn_size_text unknown = {"unknown"};
    return bytes == TERN_UNKNOWN ? unknown : tn_size_binary((double)bytes);
}

/* ---- processor ---- */

static void print_kinds(const struct tern_sysinfo *m)
{
    for (uint32_t i = 0; i < m->n_kinds && m->n_kinds > 1; i++) {
        const struct tern_cpu_kind *kind = &m->kinds[i];
        tn_out_printf("  kind %u      %u core%s", i + 1, kind->n_cores, plural(kind->n_cores));
        if (kind->core_type[0])
            tn_out_printf(", %s", kind->core_type);
        if (kind->max_mhz)
            tn_out_printf(", up to %u MHz", kind->max_mhz);
        tn_out_printf(", %s%u %% of the fastest%s", kind->capacity_estimated ? "about " : "",
                      (kind->capacity * 100 + 512) / 1024, kind->low_power ? ", low power" : "");
        if (kind->n_allowed < kind->n_cores)
            tn_out_printf(", %u may be used", kind->n_allowed);
        tn_out_text("\n");
    }
}

static void print_caches(const struct tern_sysinfo *m)
{
    const char *separator = "";
    if (m->cache_bytes[0] == TERN_UNKNOWN && m->cache_bytes[1] == TERN_UNKNOWN &&
        m->cache_bytes[2] == TERN_UNKNOWN)
        return;
    tn_out_text("caches        ");
    for (uint32_t i = 0; i < 3; i++)
        if (m->cache_bytes[i] != TERN_UNKNOWN) {
            tn_out_printf("%sL%u %s", separator, i + 1, size_text(m->cache_bytes[i]).text);
            separator = ", ";
        }
    tn_out_text("\n");
}

static void print_processor(const struct tn_probe *p)
{
    const struct tern_sysinfo *m = &p->machine;
    tn_out_printf("processor     %s\n", m->cpu_name[0] ? m->cpu_name : "unknown");
    tn_out_text("features     ");
    for (uint32_t i = 0; i < 32; i++)
        if (m->cpu_features >> i & 1)
            tn_out_printf(" %s", tern_cpu_feature_text(i));
    tn_out_text(m->cpu_features ? "\n" : " none that tern uses\n");
    tn_out_printf("cores         %u, %u hardware thread%s, %u package%s\n", m->n_physical,
                  m->n_logical, plural(m->n_logical), m->n_packages, plural(m->n_packages));
    print_kinds(m);
    tn_out_printf("  allowed     %u%s%s\n", m->n_allowed,
                  m->limited_by_cpuset ? ", the rest is withheld by a cpuset" : "",
                  m->limited_by_affinity ? ", by the affinity of this process" : "");
    if (m->quota_millicpus == TERN_UNKNOWN)
        tn_out_text("  quota       none\n");
    else
        tn_out_printf("  quota       %.2f CPUs\n", (double)m->quota_millicpus / 1000.0);
    print_caches(m);
}

/* ---- memory ---- */

/* Prints one limit, with a mark if it binds; nothing if there is none. */
static void print_limit(const struct tern_plan *plan, enum tern_bound bound, const char *label,
                        uint64_t bytes)
{
    if (bytes != TERN_UNKNOWN)
        tn_out_printf("  %-11s %10s%s\n", label, size_text(bytes).text,
                      plan->limited_by == bound ? "  <- binds" : "");
}

static void print_memory(const struct tn_probe *p)
{
    const struct tern_sysinfo *m = &p->machine;
    const struct tern_plan *plan = &p->plan;
    tn_out_printf("memory        %s", size_text(m->total_bytes).text);
    if (m->limit_bytes != TERN_UNKNOWN)
        tn_out_printf(", limited to %s", size_text(m->limit_bytes).text);
    tn_out_text("; available:\n");
    if (m->system_available_bytes == TERN_UNKNOWN)
        tn_out_text("  system         unknown\n");
    print_limit(plan, TERN_BOUND_MEMINFO, "system", m->system_available_bytes);
    print_limit(plan, TERN_BOUND_CGROUP, "cgroup", m->cgroup_available_bytes);
    print_limit(plan, TERN_BOUND_RLIMIT_AS, "ulimit -v", m->rlimit_as_left_bytes);
    print_limit(plan, TERN_BOUND_RLIMIT_DATA, "ulimit -d", m->rlimit_data_left_bytes);
    print_limit(plan, TERN_BOUND_JOB, "job", m->job_available_bytes);
    print_limit(plan, TERN_BOUND_COMMIT, "commit", m->commit_left_bytes);
    if (p->limits.ram_bytes)
        print_limit(plan, TERN_BOUND_USER, "--ram", p->limits.ram_bytes);
    if (m->swap_total_bytes != TERN_UNKNOWN && m->swap_total_bytes > 0)
        tn_out_printf("swap          %s, never counted\n", size_text(m->swap_total_bytes).text);
    if (m->pressure_centi != TERN_UNKNOWN)
        tn_out_printf("pressure      %.2f %% of the last 10 seconds\n",
                      (double)m->pressure_centi / 100.0);
}

static void print_energy(const struct tern_sysinfo *m)
{
    static const char *const powers[] = {"", "mains", "battery"};
    if (m->power != TERN_POWER_UNKNOWN)
        tn_out_printf("power         %s\n", powers[m->power]);
    if (m->governor[0])
        tn_out_printf("governor      %s\n", m->governor);
    if (m->n_thermal_throttles != TERN_UNKNOWN && m->n_thermal_throttles > 0)
        tn_out_printf("heat          the processor slowed down %llu time%s since start\n",
                      (unsigned long long)m->n_thermal_throttles, plural(m->n_thermal_throttles));
}

static void print_unreadable(const struct tern_sysinfo *m)
{
    for (uint32_t i = 0; i < TERN_N_FACTS; i++)
        if (m->unreadable >> i & 1)
            tn_out_printf("unreadable    %s: has an invalid value; treated as unknown\n",
                          tern_fact_text(i));
}

/* ---- plan ---- */

static const char *label_of(const char *what)
{
    static const struct {
        const char *what, *label;
    } labels[] = {
        {"threads_decode", "threads, decode"},
        {"threads_prefill", "threads, prefill"},
        {"kernel", "kernel level"},
        {"available", "memory, available"},
        {"reserve", "memory, kept free"},
        {"default_new_tokens", "new tokens, default"},
        {"cap_new_tokens", "new tokens, cap"},
        {"context", "context"},
        {"kv", "cache type"},
        {"max_new_tokens", "new tokens, at most"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(labels); i++)
        if (strcmp(labels[i].what, what) == 0)
            return labels[i].label;
    return what;
}

/* Memory with the context filled, usually the largest items first. */
static void print_needed(const struct tn_probe *p)
{
    const struct tern_plan_memory *m = &p->plan.memory;
    const struct {
        const char *label;
        uint64_t bytes;
        const char *what;
    } rows[] = {
        {"weights", p->sizes.file_bytes - p->table_bytes, "of the model file, which is mapped"},
        {"table", p->table_bytes, "of the model file: the rows of the vocabulary"},
        {"cache", m->cache_bytes, "keys and values of the whole context"},
        {"checkpoints", m->checkpoint_bytes, "copies of the model's state to go back to"},
        {"scratch", m->scratch_bytes, "activations and what the threads work with"},
        {"sampler", m->sampler_bytes, "chooses the next token"},
        {"program", m->process_bytes + m->model_bytes, "with its libraries, stacks and indexes"},
        {"total", p->plan.predicted_hot_bytes, "should stay in memory"},
        {"anonymous", p->plan.predicted_anonymous_bytes,
         "of the total: without the file; must fit beside the reserve"},
        {"unread experts", p->plan.unread_bytes,
         "of the total: not chosen for a token; may stay on the disk"},
    };
    tn_out_text("  memory needed with the context filled\n");
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++)
        if (rows[i].bytes > 0)
            tn_out_printf("    %-18s %10s  %s\n", rows[i].label, size_text(rows[i].bytes).text,
                          rows[i].what);
}

/* Decoding reads each needed byte once, so its speed is at most that of reading memory. */
static void print_speed(const struct tn_probe *p)
{
    const double per_token = (double)p->bytes_per_token;
    tn_out_printf("  not converted yet: tern convert writes %s; a token reads %s\n",
                  tn_size_decimal((double)p->sizes.file_bytes).text,
                  tn_size_decimal(per_token).text);
    if (p->stream_gb_s > 0 && per_token > 0)
        tn_out_printf("  at most %.1f tokens per second: %u thread%s read %.1f GB/s here%s\n",
                      p->stream_gb_s * 1e9 / per_token, p->plan.n_threads_decode,
                      plural(p->plan.n_threads_decode), p->stream_gb_s,
                      p->plan.will_page ? "; fewer where the disk is read" : "");
}

static void print_plan(const struct tn_probe *p)
{
    const struct tern_plan *plan = &p->plan;
    if (p->model_name)
        tn_out_printf("\nplan for %s (%s)\n", p->model_name,
                      tn_size_decimal((double)p->sizes.file_bytes).text);
    else
        tn_out_text("\nplan without a model\n");
    for (uint32_t i = 0; i < plan->n_reasons; i++) {
        const struct tern_plan_reason *r = &plan->reasons[i];
        bool is_size = strcmp(r->what, "available") == 0 || strcmp(r->what, "reserve") == 0;
        tn_out_printf("  %-20s %10s  %s: %s\n", label_of(r->what),
                      is_size ? size_text(r->number).text : r->value, r->bound_by, r->detail);
    }
    if (plan->has_model)
        print_needed(p);
    if (p->is_source)
        print_speed(p);
    for (uint32_t i = 0; i < plan->n_notices; i++)
        tn_out_printf("note: %s\n", plan->notices[i]);
}

/* The machine with `bytes` available under the binding limit, and at least as much in system and
 * control group; the other limits stay. */
static void set_available(struct tern_sysinfo *m, enum tern_bound binding, uint64_t bytes)
{
    const struct {
        enum tern_bound bound;
        uint64_t *left;
    } limits[] = {
        {TERN_BOUND_RLIMIT_AS, &m->rlimit_as_left_bytes},
        {TERN_BOUND_RLIMIT_DATA, &m->rlimit_data_left_bytes},
        {TERN_BOUND_JOB, &m->job_available_bytes},
        {TERN_BOUND_COMMIT, &m->commit_left_bytes},
    };
    m->available_bytes = bytes;
    m->limited_by = binding;
    if (binding == TERN_BOUND_CGROUP || binding == TERN_BOUND_JOB)
        m->limit_bytes = TERN_UNKNOWN;
    for (size_t i = 0; i < TN_COUNT_OF(limits); i++) {
        if (limits[i].bound == binding)
            *limits[i].left = bytes;
        if (*limits[i].left < m->available_bytes) {
            m->available_bytes = *limits[i].left;
            m->limited_by = limits[i].bound;
        }
    }
}

static void print_short_plan(const struct tern_plan *plan)
{
    tn_out_printf("context %u, cache %s, up to %u new tokens", plan->n_ctx, tern_kv_text(plan->kv),
                  plan->max_new_tokens);
    if (plan->will_page && plan->n_ctx_resident > 0)
        tn_out_printf("; slow beyond %u tokens of context\n", plan->n_ctx_resident);
    else
        tn_out_text(plan->will_page ? "; slow: the model does not stay in memory\n" : "\n");
}

/* The plan for this machine if the binding limit were different. */
static void print_what_if(const struct tn_probe *p)
{
    static const struct {
        const char *label;
        uint64_t mib;
    } rows[] = {{"600M", 600}, {"800M", 800}, {"1G", 1024}, {"1.5G", 1536}, {"2G", 2048}};
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    struct tern_plan *plan = tn_alloc(sizeof *plan);
    if (machine && plan && p->model_name) {
        struct tern_plan_limits limits = p->limits;
        limits.ram_bytes = 0;
        tn_out_text("\nwith this much available memory the plan would be\n");
        for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
            struct tern_error err;
            *machine = p->machine;
            set_available(machine, p->plan.limited_by, rows[i].mib << 20);
            tn_out_printf("  %-5s ", rows[i].label);
            if (machine->available_bytes < rows[i].mib << 20)
                tn_out_printf("no more than %s by %s: ", size_text(machine->available_bytes).text,
                              tern_bound_text(machine->limited_by));
            if (tern_plan_make(plan, machine, &p->sizes, &limits, &err) == TERN_OK)
                print_short_plan(plan);
            else
                tn_out_text("not enough\n");
        }
    }
    tn_free(machine);
    tn_free(plan);
}

void tn_probe_print_text(const struct tn_probe *p)
{
    print_processor(p);
    print_memory(p);
    print_energy(&p->machine);
    print_unreadable(&p->machine);
    print_plan(p);
    print_what_if(p);
}

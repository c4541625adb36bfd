/* SPDX-License-Identifier: MIT
 *
 * tern probe --json: the machine and the plan as one JSON object, whose keys tests/manifest lists.
 * Unknown and unlimited values are null.
 */
#include "json_io.h"
#include "probe.h"

static json_t *integer(uint64_t n)
{
    return n == TERN_UNKNOWN ? json_null() : json_integer((json_int_t)n);
}

static json_t *text_or_null(const char *text)
{
    return text && text[0] ? json_string(text) : json_null();
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *cpu(const struct tn_probe *p)
{
    json_t *features = json_array(), *object = json_object();
    for (uint32_t i = 0; i < 32; i++)
        if (p->machine.cpu_features >> i & 1)
            json_array_append_new(features, json_string(tern_cpu_feature_text(i)));
    set(object, "name", text_or_null(p->machine.cpu_name));
    set(object, "features", features);
    set(object, "kernel", json_string(p->plan.cpu_level));
    return object;
}

static json_t *kinds(const struct tern_sysinfo *m)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < m->n_kinds; i++) {
        const struct tern_cpu_kind *kind = &m->kinds[i];
        json_t *object = json_object();
        set(object, "type", text_or_null(kind->core_type));
        set(object, "physical", integer(kind->n_cores));
        set(object, "allowed", integer(kind->n_allowed));
        set(object, "speed", json_real(kind->capacity / 1024.0));
        set(object, "max_mhz", kind->max_mhz ? integer(kind->max_mhz) : json_null());
        set(object, "low_power", json_boolean(kind->low_power));
        json_array_append_new(list, object);
    }
    return list;
}

/* Counts the cores that are fast enough for decoding, and the others. */
static void count_cores(const struct tern_sysinfo *m, uint32_t *n_performance,
                        uint32_t *n_efficiency)
{
    *n_performance = *n_efficiency = 0;
    for (uint32_t i = 0; i < m->n_kinds; i++) {
        bool fast = !m->kinds[i].low_power && m->kinds[i].capacity * 100 >= 1024 * 60;
        *(fast ? n_performance : n_efficiency) += m->kinds[i].n_cores;
    }
}

static json_t *cores(const struct tern_sysinfo *m)
{
    uint32_t n_performance, n_efficiency;
    count_cores(m, &n_performance, &n_efficiency);
    json_t *object = json_object();
    set(object, "physical", integer(m->n_physical));
    set(object, "logical", integer(m->n_logical));
    set(object, "allowed", integer(m->n_allowed));
    set(object, "quota", m->quota_millicpus == TERN_UNKNOWN
                             ? json_null()
                             : json_real((double)m->quota_millicpus / 1000.0));
    set(object, "performance", integer(n_performance));
    set(object, "efficiency", integer(n_efficiency));
    set(object, "kinds", kinds(m));
    set(object, "packages", integer(m->n_packages));
    set(object, "numa_nodes", integer(m->n_numa));
    set(object, "l1_bytes", integer(m->cache_bytes[0]));
    set(object, "l2_bytes", integer(m->cache_bytes[1]));
    set(object, "l3_bytes", integer(m->cache_bytes[2]));
    return object;
}

static json_t *memory(const struct tn_probe *p)
{
    const struct tern_sysinfo *m = &p->machine;
    bool known = p->plan.limited_by != TERN_BOUND_NONE;
    json_t *object = json_object();
    set(object, "total", integer(m->total_bytes));
    set(object, "available", known ? integer(p->plan.available_bytes) : json_null());
    set(object, "limit", integer(m->limit_bytes));
    set(object, "limited_by",
        known ? json_string(tern_bound_text(p->plan.limited_by)) : json_null());
    set(object, "meminfo_available", integer(m->system_available_bytes));
    set(object, "cgroup_available", integer(m->cgroup_available_bytes));
    set(object, "rlimit_as_left", integer(m->rlimit_as_left_bytes));
    set(object, "rlimit_data_left", integer(m->rlimit_data_left_bytes));
    set(object, "job_available", integer(m->job_available_bytes));
    set(object, "commit_left", integer(m->commit_left_bytes));
    set(object, "swap_total", integer(m->swap_total_bytes));
    set(object, "swap_free", integer(m->swap_free_bytes));
    set(object, "overcommit", m->overcommit_mode < 0 ? json_null()
                                                     : json_integer(m->overcommit_mode));
    set(object, "pressure_percent", m->pressure_centi == TERN_UNKNOWN
                                        ? json_null()
                                        : json_real((double)m->pressure_centi / 100.0));
    set(object, "page_bytes", integer(m->page_bytes));
    return object;
}

static json_t *energy(const struct tern_sysinfo *m)
{
    static const char *const powers[] = {NULL, "mains", "battery"};
    json_t *object = json_object();
    set(object, "power", text_or_null(powers[m->power]));
    set(object, "governor", text_or_null(m->governor));
    set(object, "thermal_throttles", integer(m->n_thermal_throttles));
    return object;
}

static json_t *reasons(const struct tern_plan *plan)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->n_reasons; i++) {
        const struct tern_plan_reason *r = &plan->reasons[i];
        json_t *object = json_object();
        set(object, "what", json_string(r->what));
        set(object, "value",
            r->is_number ? integer(r->number) : json_string(r->value));
        set(object, "bound_by", json_string(r->bound_by));
        set(object, "detail", json_string(r->detail));
        json_array_append_new(list, object);
    }
    return list;
}

/* Memory of the model file and anonymous memory with the context filled. */
static json_t *plan_memory(const struct tn_probe *p)
{
    const struct tern_plan_memory *m = &p->plan.memory;
    json_t *object = json_object();
    set(object, "weights_bytes", integer(p->sizes.file_bytes - p->table_bytes));
    set(object, "table_bytes", integer(p->table_bytes));
    set(object, "cache_bytes", integer(m->cache_bytes));
    if (m->checkpoint_bytes > 0)
        set(object, "checkpoint_bytes", integer(m->checkpoint_bytes));
    set(object, "scratch_bytes", integer(m->scratch_bytes));
    set(object, "sampler_bytes", integer(m->sampler_bytes));
    set(object, "model_bytes", integer(m->model_bytes));
    set(object, "process_bytes", integer(m->process_bytes));
    set(object, "total_bytes", integer(p->plan.predicted_hot_bytes));
    return object;
}

static json_t *plan(const struct tn_probe *p)
{
    const struct tern_plan *q = &p->plan;
    json_t *object = json_object(), *notices = json_array();
    set(object, "threads_decode", integer(q->n_threads_decode));
    set(object, "threads_prefill", integer(q->n_threads_prefill));
    set(object, "context", q->has_model ? integer(q->n_ctx) : json_null());
    set(object, "kv", q->has_model ? json_string(tern_kv_text(q->kv)) : json_null());
    set(object, "default_new_tokens", integer(q->default_new_tokens));
    set(object, "cap_new_tokens", integer(q->cap_new_tokens));
    set(object, "max_new_tokens", q->has_model ? integer(q->max_new_tokens) : json_null());
    set(object, "reserve_bytes", integer(q->reserve_bytes));
    set(object, "predicted_anonymous_bytes",
        q->has_model ? integer(q->predicted_anonymous_bytes) : json_null());
    set(object, "memory", q->has_model ? plan_memory(p) : json_null());
    set(object, "may_stay_on_disk_bytes", q->has_model ? integer(q->unread_bytes) : json_null());
    set(object, "is_converted", q->has_model ? json_boolean(!p->is_source) : json_null());
    if (p->is_source) {
        set(object, "bytes_per_token", integer(p->bytes_per_token));
        set(object, "stream_gb_s", p->stream_gb_s > 0 ? json_real(p->stream_gb_s) : json_null());
    }
    set(object, "reads_from_disk", q->has_model ? json_boolean(q->will_page) : json_null());
    set(object, "refusal",
        p->refusal.status == TERN_OK ? json_null() : json_string(p->refusal.detail));
    for (uint32_t i = 0; i < q->n_notices; i++)
        json_array_append_new(notices, json_string(q->notices[i]));
    set(object, "notices", notices);
    set(object, "reasons", reasons(q));
    return object;
}

static json_t *unreadable(const struct tern_sysinfo *m)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < TERN_N_FACTS; i++)
        if (m->unreadable >> i & 1)
            json_array_append_new(list, json_string(tern_fact_text(i)));
    return list;
}

tern_status tn_probe_print_json(const struct tn_probe *p, struct tern_error *err)
{
    json_t *root = json_object();
    set(root, "cpu", cpu(p));
    set(root, "cores", cores(&p->machine));
    set(root, "memory", memory(p));
    set(root, "energy", energy(&p->machine));
    set(root, "unreadable", unreadable(&p->machine));
    set(root, "model", text_or_null(p->model_name));
    set(root, "plan", plan(p));
    return tn_json_io_print(root, err);
}

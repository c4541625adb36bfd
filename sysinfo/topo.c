/* SPDX-License-Identifier: MIT
 *
 * From a topology to the description: the cores that this process may use, their kinds
 * (performance, efficiency, low power), and the speed of each kind relative to the fastest.  The
 * sources of the topology are interchangeable (topo.h).
 */
#include "topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    ATOM_PERCENT = 65, /* an Intel E core at the same frequency, measured relative to a P core */
    UNRANKED_SCORE = 512, /* of 1024: a slower kind of which only the rank is known */
};

/* Uses CPU numbers only: each counts as a core. */
static bool from_numbers(struct tn_topo *topo, const char *root)
{
    struct tn_cpu_set *online = tn_alloc(sizeof *online);
    bool ok = online && tn_topo_read_online(root, online);
    for (uint32_t cpu = 0; ok && cpu <= TN_MAX_CPU_INDEX; cpu++)
        if (tn_cpu_set_has(online, cpu))
            ok = tn_topo_add_pu(topo, cpu, topo->n_cores, false);
    tn_free(online);
    return ok;
}

/* ---- kinds ---- */

/* A kind before it is copied to tern_sysinfo.kinds. */
struct ranked_kind {
    struct tn_topo_kind topo;
    uint32_t raw;    /* index before sorting */
    uint32_t n_pus;
    bool low_power;
    uint32_t score;  /* speed of a core, any unit */
    uint32_t merged; /* index into tern_sysinfo.kinds */
};

struct ranking {
    uint32_t n;
    struct ranked_kind kinds[2 * TN_MAX_RAW_KINDS];
    bool estimated; /* the scores are estimates, not the system's */
};

static bool is_atom(const struct ranked_kind *kind)
{
    return strcmp(kind->topo.core_type, "IntelAtom") == 0;
}

/* Low-power cores (on the SoC die of recent Intel machines) are E cores that do not share the
 * others' L3.  hwloc before 2.13 reports them as ordinary E cores, perhaps of another frequency. */
static void split_low_power(struct tn_topo *topo, struct ranking *r)
{
    bool any_l3 = false;
    for (uint32_t i = 0; i < topo->n_pus; i++)
        any_l3 = any_l3 || topo->pus[i].has_l3;
    uint32_t n = r->n;
    for (uint32_t k = 0; any_l3 && k < n; k++) {
        if (!is_atom(&r->kinds[k]))
            continue;
        struct ranked_kind *apart = &r->kinds[r->n];
        *apart = r->kinds[k];
        apart->raw = r->n++;
        apart->low_power = true;
        for (uint32_t i = 0; i < topo->n_pus; i++)
            if (topo->pus[i].kind == k && !topo->pus[i].has_l3)
                topo->pus[i].kind = apart->raw;
    }
    for (uint32_t i = 0; i < topo->n_pus; i++)
        if (topo->pus[i].kind < r->n)
            r->kinds[topo->pus[i].kind].n_pus++;
}

/* Speed of one core of each kind, in the same unit: the system's figure if it has one for every
 * kind, else frequency and type, else the rank. */
static void score_kinds(struct ranking *r)
{
    bool all_capacity = true, all_mhz = true, any_atom = false;
    int32_t top_rank = -1;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct ranked_kind *kind = &r->kinds[i];
        all_capacity = all_capacity && kind->topo.linux_capacity > 0;
        all_mhz = all_mhz && kind->topo.max_mhz > 0;
        any_atom = any_atom || is_atom(kind);
        top_rank = TN_MAX(top_rank, kind->topo.rank);
    }
    r->estimated = !all_capacity;
    for (uint32_t i = 0; i < r->n; i++) {
        struct ranked_kind *kind = &r->kinds[i];
        kind->score = all_capacity ? kind->topo.linux_capacity
                      : all_mhz    ? kind->topo.max_mhz
                                   : 1024;
        if (!all_capacity && is_atom(kind))
            kind->score = TN_MAX(kind->score * ATOM_PERCENT / 100, 1u); /* later a divisor */
        else if (!all_capacity && !all_mhz && !any_atom && kind->topo.rank < top_rank)
            kind->score = UNRANKED_SCORE;
    }
}

static int compare_kinds(const void *a, const void *b)
{
    const struct ranked_kind *x = a, *y = b;
    if (x->low_power != y->low_power)
        return x->low_power ? 1 : -1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->topo.rank != y->topo.rank)
        return x->topo.rank > y->topo.rank ? -1 : 1;
    return x->raw < y->raw ? -1 : x->raw > y->raw;
}

/* Kinds that differ only in the turbo frequencies of single cores are one kind. */
static bool same_kind(const struct ranked_kind *faster, const struct ranked_kind *slower)
{
    return faster->low_power == slower->low_power &&
           strcmp(faster->topo.core_type, slower->topo.core_type) == 0 &&
           (uint64_t)slower->score * 10 > (uint64_t)faster->score * 9;
}

/* Fills out->kinds except for the counts, and merged of every kind that has threads. */
static void merge_kinds(struct ranking *r, struct tern_sysinfo *out)
{
    const struct ranked_kind *head = NULL;
    uint64_t top = 0;
    qsort(r->kinds, r->n, sizeof r->kinds[0], compare_kinds);
    memset(out->kinds, 0, sizeof out->kinds);
    out->n_kinds = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        struct ranked_kind *kind = &r->kinds[i];
        if (kind->n_pus == 0)
            continue;
        if (!head || (!same_kind(head, kind) && out->n_kinds < TERN_MAX_CPU_KINDS)) {
            head = kind;
            top = TN_MAX(top, kind->score);
            struct tern_cpu_kind *k = &out->kinds[out->n_kinds++];
            memcpy(k->core_type, kind->topo.core_type, sizeof k->core_type);
            k->max_mhz = kind->topo.max_mhz;
            k->low_power = kind->low_power;
            k->capacity_estimated = r->estimated;
            k->capacity = (uint32_t)TN_MIN(1024, kind->score * 1024ull / top);
        }
        kind->merged = out->n_kinds - 1;
    }
    if (out->n_kinds == 0)
        out->kinds[out->n_kinds++].capacity = 1024;
}

/* Replaces the kind of every thread by its index in out->kinds. */
static void describe_kinds(struct tn_topo *topo, struct tern_sysinfo *out)
{
    struct ranking r = {.n = topo->n_kinds};
    uint32_t merged[2 * TN_MAX_RAW_KINDS];
    for (uint32_t i = 0; i < r.n; i++)
        r.kinds[i] = (struct ranked_kind){.topo = topo->kinds[i], .raw = i};
    split_low_power(topo, &r);
    score_kinds(&r);
    merge_kinds(&r, out);
    for (uint32_t i = 0; i < r.n; i++)
        merged[r.kinds[i].raw] = r.kinds[i].merged;
    for (uint32_t i = 0; i < topo->n_pus; i++)
        topo->pus[i].kind = topo->pus[i].kind < r.n ? merged[topo->pus[i].kind] : 0;
}

/* ---- cores ---- */

/* Excludes threads by limits.  A limit that excludes all of them must be wrong. */
static void apply_limits(struct tn_topo *topo, struct tern_sysinfo *out)
{
    uint32_t n_allowed = 0, n_usable = 0;
    for (uint32_t i = 0; i < topo->n_pus; i++)
        n_allowed += topo->pus[i].allowed;
    for (uint32_t i = 0; i < topo->n_pus; i++) {
        struct tn_topo_pu *pu = &topo->pus[i];
        pu->allowed = pu->allowed || n_allowed == 0;
        n_usable += pu->allowed && pu->in_mask;
    }
    n_allowed = n_allowed ? n_allowed : topo->n_pus;
    out->limited_by_cpuset = n_allowed < topo->n_pus;
    if (n_usable == 0 && topo->has_mask)
        out->unreadable |= TERN_FACT_AFFINITY;
    out->limited_by_affinity = n_usable > 0 && n_usable < n_allowed;
    for (uint32_t i = 0; i < topo->n_pus; i++)
        topo->pus[i].allowed =
            topo->pus[i].allowed && (topo->pus[i].in_mask || n_usable == 0);
}

static int compare_pus(const void *a, const void *b)
{
    const struct tn_topo_pu *x = a, *y = b;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return x->os_index < y->os_index ? -1 : x->os_index > y->os_index;
}

static int compare_cores(const void *a, const void *b)
{
    const struct tern_core *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->os_cpu < y->os_cpu ? -1 : x->os_cpu > y->os_cpu;
}

static void list_cores(struct tn_topo *topo, struct tern_sysinfo *out)
{
    out->n_logical = topo->n_pus;
    out->n_physical = out->n_allowed = out->n_allowed_logical = out->n_cores = 0;
    qsort(topo->pus, topo->n_pus, sizeof topo->pus[0], compare_pus);
    bool listed = false; /* of the current core */
    for (uint32_t i = 0; i < topo->n_pus; i++) {
        const struct tn_topo_pu *pu = &topo->pus[i];
        if (i == 0 || topo->pus[i - 1].core != pu->core) {
            listed = false;
            out->n_physical++;
            out->kinds[pu->kind].n_cores++;
        }
        out->n_allowed_logical += pu->allowed;
        if (!pu->allowed || listed)
            continue;
        listed = true;
        out->n_allowed++;
        out->kinds[pu->kind].n_allowed++;
        if (out->n_cores < TERN_MAX_CORES)
            out->cores[out->n_cores++] = (struct tern_core){pu->os_index, pu->kind};
    }
    qsort(out->cores, out->n_cores, sizeof out->cores[0], compare_cores);
}

static void describe(struct tn_topo *topo, struct tern_sysinfo *out)
{
    apply_limits(topo, out);
    describe_kinds(topo, out);
    list_cores(topo, out);
    out->n_packages = TN_MAX(topo->n_packages, 1u);
    out->n_numa = TN_MAX(topo->n_numa, 1u);
    out->binding_works = topo->binding_works;
    for (uint32_t i = 0; i < 3; i++)
        out->cache_bytes[i] = topo->cache_bytes[i] ? topo->cache_bytes[i] : TERN_UNKNOWN;
}

/* ---- combining the sources ---- */

/* Applies the mask of a recorded process. */
static void apply_affinity(struct tn_topo *topo, const char *affinity, uint32_t *unreadable)
{
    struct tn_cpu_set *mask = tn_alloc(sizeof *mask);
    if (mask && tn_cpu_set_parse_list(mask, affinity)) {
        topo->has_mask = true;
        for (uint32_t i = 0; i < topo->n_pus; i++)
            topo->pus[i].in_mask = tn_cpu_set_has(mask, topo->pus[i].os_index);
    } else {
        *unreadable |= TERN_FACT_AFFINITY;
    }
    tn_free(mask);
}

static bool has_xml(const char *root)
{
    char text[16];
    return *root && tn_fact_read(root, "/topology.xml", text, sizeof text) >= 0;
}

static bool from_hwloc(struct tn_topo *topo, const char *root)
{
    return *root == '\0' && tn_topo_from_hwloc(topo);
}

/* Uses the best source that works. */
static void read_topology(struct tn_topo *topo, const char *root, uint32_t *unreadable)
{
    typedef bool from(struct tn_topo *, const char *);
    static from *const live[] = {from_hwloc, from_numbers};
    static from *const recorded[] = {tn_topo_from_xml, tn_topo_from_sysfs, from_numbers};
    from *const *sources = *root ? recorded : live;
    size_t n_sources = *root ? TN_COUNT_OF(recorded) : TN_COUNT_OF(live);
    for (size_t i = *root && !has_xml(root) ? 1 : 0; i < n_sources; i++) {
        memset(topo, 0, sizeof *topo);
        if (sources[i](topo, root) && topo->n_pus > 0)
            return;
        if (i == 0) /* the one whose failure is reported */
            *unreadable |= TERN_FACT_TOPOLOGY;
    }
    memset(topo, 0, sizeof *topo);
    tn_topo_add_pu(topo, 0, 0, false); /* one core: the assumption if nothing can be read */
}

void tn_topology_one_core(struct tern_sysinfo *out)
{
    out->n_physical = out->n_logical = out->n_allowed = out->n_allowed_logical = 1;
    out->n_packages = out->n_numa = out->n_kinds = out->n_cores = 1;
    out->kinds[0] = (struct tern_cpu_kind){.n_cores = 1, .n_allowed = 1, .capacity = 1024};
    for (uint32_t i = 0; i < TN_COUNT_OF(out->cache_bytes); i++)
        out->cache_bytes[i] = TERN_UNKNOWN;
}

void tn_topology_read(struct tern_sysinfo *out, const char *root, const char *affinity)
{
    struct tn_topo *topo = tn_alloc(sizeof *topo);
    if (!topo) { /* too little memory for any source */
        tn_topology_one_core(out);
        return;
    }
    read_topology(topo, root, &out->unreadable);
    if (*root && affinity)
        apply_affinity(topo, affinity, &out->unreadable);
    describe(topo, out);
    tn_free(topo);
}

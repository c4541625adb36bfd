/* SPDX-License-Identifier: MIT
 *
 * The topology of a recorded Linux machine, from the /sys of the recording.
 *
 *   /sys/devices/system/cpu/cpuN/topology/core_cpus or thread_siblings   threads of a core
 *   .../topology/physical_package_id, .../cpuN/cache/indexM/{level,type,size}
 *   .../cpuN/cpu_capacity, .../cpuN/cpufreq/cpuinfo_max_freq   kinds of cores
 *   /sys/devices/cpu_core/cpus, cpu_atom/cpus   the same on hybrid Intel processors
 *   /sys/devices/system/node/online
 *
 * hwloc reads these files too, but another root can be set only through the environment, which the
 * whole process shares.  For the live machine hwloc is used, because it knows more sources.
 */
#include "topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { TEXT_BYTES = 4096, MAX_CACHES = 16 };

struct reader {
    const char *root;
    struct tn_topo *topo;
    uint32_t packages[TN_MAX_PUS]; /* the first n_packages of the topology */
    struct tn_cpu_set online, set;
    char text[TEXT_BYTES];
};

/* Reads cpuN/`name` into r->text. */
static bool read_text(struct reader *r, uint32_t cpu, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", cpu, name);
    return tn_fact_read(r->root, path, r->text, sizeof r->text) >= 0;
}

static bool read_number(struct reader *r, uint32_t cpu, const char *name, uint64_t *out)
{
    return read_text(r, cpu, name) && tn_fact_whole_u64(r->text, out);
}

/* ---- cores ---- */

/* Parses "00000000,00000005", the highest CPUs first; false for anything else. */
static bool parse_mask(struct tn_cpu_set *set, const char *text)
{
    size_t n_words = 1;
    for (const char *p = text; *p; p++)
        n_words += *p == ',';
    memset(set, 0, sizeof *set);
    if (n_words > (TN_MAX_CPU_INDEX + 1) / 32)
        return false;
    for (size_t i = n_words; i-- > 0; text += *text == ',') {
        size_t n = strspn(text, "0123456789abcdefABCDEF");
        bool is_last = i == 0 && text[n + strspn(text + n, " \t\r\n")] == '\0';
        if (n == 0 || n > 8 || (text[n] != ',' && !is_last))
            return false;
        uint64_t word = strtoul(text, NULL, 16);
        set->words[i / 2] |= word << i % 2 * 32;
        text += n;
    }
    return true;
}

/* Reads the thread list of a CPU's core into r->set. */
static bool read_siblings(struct reader *r, uint32_t cpu)
{
    static const char *const names[] = {"topology/core_cpus", "topology/thread_siblings"};
    for (size_t i = 0; i < TN_COUNT_OF(names); i++)
        if (read_text(r, cpu, names[i]) && parse_mask(&r->set, r->text))
            return true;
    return false;
}

/* The core of an earlier thread that shares it; else a new one. */
static uint32_t core_of(struct reader *r, uint32_t cpu)
{
    const struct tn_topo *topo = r->topo;
    if (read_siblings(r, cpu))
        for (uint32_t i = 0; i < topo->n_pus; i++)
            if (tn_cpu_set_has(&r->set, topo->pus[i].os_index))
                return topo->pus[i].core;
    return topo->n_cores;
}

static void note_package(struct reader *r, uint32_t cpu)
{
    uint64_t package;
    if (!read_number(r, cpu, "topology/physical_package_id", &package) || package > UINT32_MAX)
        return;
    for (uint32_t i = 0; i < r->topo->n_packages; i++)
        if (r->packages[i] == package)
            return;
    if (r->topo->n_packages < TN_MAX_PUS)
        r->packages[r->topo->n_packages++] = (uint32_t)package;
}

/* Parses "512K", "8M", or bytes. */
static bool parse_size(const char *text, uint64_t *out)
{
    if (!tn_fact_parse_u64(&text, out) || *out > (uint64_t)1 << 40)
        return false;
    *out <<= *text == 'K' ? 10 : *text == 'M' ? 20 : 0;
    return true;
}

/* Records the caches of a CPU; true if it has a third level. */
static bool note_caches(struct reader *r, uint32_t cpu)
{
    bool has_l3 = false;
    for (uint32_t i = 0; i < MAX_CACHES; i++) {
        char name[40];
        uint64_t level, bytes;
        snprintf(name, sizeof name, "cache/index%u/level", i);
        if (!read_number(r, cpu, name, &level) || level < 1 || level > 3)
            continue;
        has_l3 = has_l3 || level == 3;
        snprintf(name, sizeof name, "cache/index%u/type", i);
        if (read_text(r, cpu, name) && strncmp(r->text, "Instruction", 11) == 0)
            continue;
        snprintf(name, sizeof name, "cache/index%u/size", i);
        if (read_text(r, cpu, name) && parse_size(r->text, &bytes))
            r->topo->cache_bytes[level - 1] = TN_MAX(r->topo->cache_bytes[level - 1], bytes);
    }
    return has_l3;
}

static bool add_cpu(struct reader *r, uint32_t cpu)
{
    uint64_t is_on;
    if (read_number(r, cpu, "online", &is_on) && is_on == 0)
        return true; /* listed, but not usable */
    uint32_t core = core_of(r, cpu);
    note_package(r, cpu);
    return tn_topo_add_pu(r->topo, cpu, core, note_caches(r, cpu));
}

/* ---- kinds ---- */

/* The facts in /sys about the core of a CPU, without its type. */
static struct tn_topo_kind kind_of(struct reader *r, uint32_t cpu)
{
    struct tn_topo_kind kind = {.rank = -1};
    uint64_t n;
    if (read_number(r, cpu, "cpu_capacity", &n) && n > 0 && n <= 1000000)
        kind.linux_capacity = (uint32_t)n;
    if (read_number(r, cpu, "cpufreq/cpuinfo_max_freq", &n) && n >= 1000 && n <= 1000000000)
        kind.max_mhz = (uint32_t)(n / 1000);
    return kind;
}

static bool are_equal(const struct tn_topo_kind *a, const struct tn_topo_kind *b)
{
    return strcmp(a->core_type, b->core_type) == 0 && a->max_mhz == b->max_mhz &&
           a->linux_capacity == b->linux_capacity;
}

static uint32_t find_kind(struct tn_topo *topo, const struct tn_topo_kind *kind)
{
    for (uint32_t i = 0; i < topo->n_kinds; i++)
        if (are_equal(&topo->kinds[i], kind))
            return i;
    if (topo->n_kinds == TN_MAX_RAW_KINDS)
        return TN_NO_KIND;
    topo->kinds[topo->n_kinds] = *kind;
    return topo->n_kinds++;
}

/* The CPUs of one type of a hybrid Intel processor; empty if there are none. */
static void read_type(struct reader *r, const char *path, struct tn_cpu_set *out)
{
    if (tn_fact_read(r->root, path, r->text, sizeof r->text) < 0 ||
        !tn_cpu_set_parse_list(out, r->text))
        memset(out, 0, sizeof *out);
}

static void read_kinds(struct reader *r)
{
    struct tn_cpu_set *core = &r->online, *atom = &r->set; /* their contents are no longer needed */
    read_type(r, "/sys/devices/cpu_core/cpus", core);
    read_type(r, "/sys/devices/cpu_atom/cpus", atom);
    for (uint32_t i = 0; i < r->topo->n_pus; i++) {
        struct tn_topo_pu *pu = &r->topo->pus[i];
        struct tn_topo_kind kind = kind_of(r, pu->os_index);
        if (tn_cpu_set_has(core, pu->os_index) || tn_cpu_set_has(atom, pu->os_index))
            tn_topo_set_kind_info(&kind, "CoreType",
                                  tn_cpu_set_has(atom, pu->os_index) ? "IntelAtom" : "IntelCore");
        pu->kind = find_kind(r->topo, &kind);
    }
}

/* ---- all sources in /sys ---- */

static uint32_t count_nodes(struct reader *r)
{
    uint32_t n = 0;
    if (tn_fact_read(r->root, "/sys/devices/system/node/online", r->text, sizeof r->text) >= 0 &&
        tn_cpu_set_parse_list(&r->set, r->text))
        for (uint32_t i = 0; i <= TN_MAX_CPU_INDEX; i++)
            n += tn_cpu_set_has(&r->set, i);
    return n;
}

/* Without the cores' threads only CPU numbers are known, and those need no reader. */
static bool tells_cores(struct reader *r, uint32_t cpu)
{
    uint64_t core;
    return read_siblings(r, cpu) || read_number(r, cpu, "topology/core_id", &core);
}

bool tn_topo_from_sysfs(struct tn_topo *topo, const char *root)
{
    struct reader *r = tn_alloc(sizeof *r);
    bool ok = r && tn_topo_read_online(root, &r->online);
    if (ok) {
        r->root = root;
        r->topo = topo;
    }
    for (uint32_t cpu = 0; ok && cpu <= TN_MAX_CPU_INDEX; cpu++)
        if (tn_cpu_set_has(&r->online, cpu))
            ok = (topo->n_pus > 0 || tells_cores(r, cpu)) && add_cpu(r, cpu);
    if (ok) {
        read_kinds(r);
        topo->n_numa = count_nodes(r);
    }
    tn_free(r);
    return ok;
}

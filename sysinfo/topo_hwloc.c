/* SPDX-License-Identifier: MIT
 *
 * Cores, their kinds, caches and affinity: the only user of hwloc.
 *
 * hwloc discovers the machine, we read what we need and drop it again.  I/O devices, distances and
 * memory attributes are left out, they cost most of the time.  On Linux x86 hwloc binds the calling
 * thread to each CPU in turn to ask it what kind of core it is, then puts it back.
 */
#include "sysinfo_private.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"

#if HWLOC_API_VERSION < 0x00020800
#error "hwloc 2.8 or newer is needed"
#endif

enum {
    MAX_RAW_KINDS = 64,
    MAX_FLAT_CPUS = 4096,
    MAX_CPU_INDEX = 65535,  /* a list that names more CPUs than this is garbage */
    MAX_XML_BYTES = 8 << 20,
    MAX_CPUINFO_BYTES = 1 << 20,
    ATOM_PERCENT = 65, /* an Intel E core at the same frequency, measured against a P core */
    UNRANKED_CAPACITY = 512, /* a slower kind of which nothing but the rank is known */
};

#if defined(__linux__)
#define HAS_FSROOT true /* hwloc can read another machine's files */
#else
#define HAS_FSROOT false
#endif

/* A kind as hwloc tells it, with low-power cores apart. */
struct raw_kind {
    hwloc_bitmap_t cpus;
    char core_type[16];
    uint32_t max_mhz;
    uint32_t linux_capacity;
    int rank; /* higher is faster; -1 unknown */
    bool low_power;
    uint32_t score;  /* speed of a core, any unit */
    uint32_t merged; /* index into tern_sysinfo.kinds */
};

struct reader {
    hwloc_topology_t topology;
    hwloc_bitmap_t usable; /* allowed and in the process's mask */
    struct raw_kind kinds[MAX_RAW_KINDS];
    uint32_t n_kinds;
    bool estimated; /* scores are ours, not the system's */
};

/* ---- small things ---- */

static void env_set(const char *name, const char *value)
{
#if defined(_WIN32)
    _putenv_s(name, value ? value : "");
#else
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
#endif
}

static bool exists(const char *root, const char *path)
{
    char text[16];
    return tn_fact_read(root, path, text, sizeof text) >= 0;
}

/* ---- sets of CPUs ---- */

/* "3" or "0-3", from the front of *text. */
static bool parse_range(const char **text, hwloc_bitmap_t set)
{
    uint64_t first, last;
    if (!tn_fact_parse_u64(text, &first))
        return false;
    last = first;
    if (**text == '-') {
        ++*text;
        if (!tn_fact_parse_u64(text, &last))
            return false;
    }
    if (first > last || last > MAX_CPU_INDEX)
        return false;
    return hwloc_bitmap_set_range(set, (unsigned)first, (int)last) == 0;
}

/* "0-3,8": false (and an empty set) on anything else. */
static bool parse_cpu_list(const char *text, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    bool ok = parse_range(&text, set);
    while (ok && *text == ',') {
        text++;
        ok = parse_range(&text, set);
    }
    if (ok && text[strspn(text, " \t\r\n")] == '\0')
        return true;
    hwloc_bitmap_zero(set);
    return false;
}

/* ---- loading ---- */

/* Does `root` hold what hwloc reads of Linux? Without it hwloc would ask the live machine. */
static bool has_linux_topology(const char *root, hwloc_const_bitmap_t online)
{
    static const char *const names[] = {"core_cpus", "thread_siblings", "core_id"};
    char path[128];
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s",
                 hwloc_bitmap_first(online), names[i]);
        if (exists(root, path))
            return true;
    }
    return false;
}

/* The CPUs that are on, from /sys or at least counted in /proc/cpuinfo. */
static bool read_online(const char *root, hwloc_bitmap_t online)
{
    char text[4096];
    if (tn_fact_read(root, "/sys/devices/system/cpu/online", text, sizeof text) >= 0 &&
        parse_cpu_list(text, online))
        return true;
    hwloc_bitmap_zero(online);
    char *info = tn_alloc(MAX_CPUINFO_BYTES);
    unsigned n = 0;
    if (info && tn_fact_read(root, "/proc/cpuinfo", info, MAX_CPUINFO_BYTES) > 0)
        for (const char *line = info; line; line = strchr(line, '\n')) {
            line += *line == '\n';
            n += strncmp(line, "processor", 9) == 0 && strchr(" \t:", line[9]) != NULL;
        }
    tn_free(info);
    if (n > 0)
        hwloc_bitmap_set_range(online, 0, (int)TN_MIN(n, MAX_CPU_INDEX) - 1);
    return n > 0;
}

/* A flat topology of which nothing is known but the numbers of the CPUs. */
static bool set_flat(hwloc_topology_t topology, hwloc_const_bitmap_t online)
{
    struct tn_buf text = {0};
    if (hwloc_bitmap_weight(online) > MAX_FLAT_CPUS)
        return false;
    tn_buf_printf(&text, "pu:%d(indexes=", hwloc_bitmap_weight(online));
    for (int cpu = hwloc_bitmap_first(online); cpu >= 0; cpu = hwloc_bitmap_next(online, cpu))
        tn_buf_printf(&text, "%s%d", cpu == hwloc_bitmap_first(online) ? "" : ",", cpu);
    tn_buf_append_text(&text, ")");
    bool ok = !text.failed && hwloc_topology_set_synthetic(topology, tn_buf_text(&text)) == 0;
    tn_buf_fini(&text);
    return ok;
}

static bool set_xml(hwloc_topology_t topology, const char *root, char **xml)
{
    *xml = tn_alloc(MAX_XML_BYTES);
    if (!*xml)
        return false;
    long n = tn_fact_read(root, "/topology.xml", *xml, MAX_XML_BYTES);
    return n > 0 && n < MAX_XML_BYTES - 1 &&
           hwloc_topology_set_xmlbuffer(topology, *xml, (int)n + 1) == 0;
}

static void set_linux_root(hwloc_topology_t topology, const char *root)
{
    char path[TN_FACT_PATH_BYTES];
    env_set("HWLOC_FSROOT", root);
    if (exists(root, "/cpuid/hwloc-cpuid-info") &&
        snprintf(path, sizeof path, "%s/cpuid", root) < (int)sizeof path)
        env_set("HWLOC_CPUID_PATH", path);
    else
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
}

/* Where a topology comes from, best first. */
enum source { FROM_MACHINE, FROM_XML, FROM_FILES, FROM_COUNT };

static bool set_source(hwloc_topology_t topology, enum source source, const char *root, char **xml)
{
    if (source == FROM_MACHINE)
        return true;
    if (source == FROM_XML)
        return exists(root, "/topology.xml") && set_xml(topology, root, xml);
    hwloc_bitmap_t online = hwloc_bitmap_alloc();
    bool ok = online && read_online(root, online);
    if (source == FROM_FILES) {
        ok = ok && HAS_FSROOT && *root && has_linux_topology(root, online);
        if (ok)
            set_linux_root(topology, root);
    } else {
        ok = ok && set_flat(topology, online);
    }
    hwloc_bitmap_free(online);
    return ok;
}

static hwloc_topology_t load_from(enum source source, const char *root)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return NULL;
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                          HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS;
#if defined(_WIN32)
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
    char *xml = NULL;
    bool ok = hwloc_topology_set_flags(topology, flags) == 0 &&
              set_source(topology, source, root, &xml) && hwloc_topology_load(topology) == 0;
    if (source == FROM_FILES) {
        env_set("HWLOC_FSROOT", NULL);
        env_set("HWLOC_CPUID_PATH", NULL);
    }
    tn_free(xml);
    if (!ok) {
        hwloc_topology_destroy(topology);
        return NULL;
    }
    return topology;
}

static hwloc_topology_t load(const char *root, uint32_t *unreadable)
{
    /* The library never prints, so hwloc may not either. */
    bool hide = !getenv("HWLOC_HIDE_ERRORS");
    if (hide)
        env_set("HWLOC_HIDE_ERRORS", "2");
    hwloc_topology_t topology = NULL;
    int source = *root ? FROM_XML : FROM_MACHINE;
    while (source <= FROM_COUNT && !(topology = load_from((enum source)source, root)))
        source++;
    if (!*root ? source != FROM_MACHINE : exists(root, "/topology.xml") && source != FROM_XML)
        *unreadable |= TERN_FACT_TOPOLOGY;
    if (hide)
        env_set("HWLOC_HIDE_ERRORS", NULL);
    return topology;
}

/* The mask of this process, or of the recorded one; false if unknown. */
static bool read_affinity(const struct reader *r, const char *root, const char *affinity,
                          hwloc_bitmap_t set, uint32_t *unreadable)
{
    if (*root) {
        if (affinity && parse_cpu_list(affinity, set))
            return true;
        *unreadable |= affinity ? TERN_FACT_AFFINITY : 0;
        return false;
    }
    return hwloc_get_cpubind(r->topology, set, HWLOC_CPUBIND_PROCESS) == 0 ||
           hwloc_get_cpubind(r->topology, set, HWLOC_CPUBIND_THREAD) == 0;
}

/* ---- kinds ---- */

static void read_kind_info(struct raw_kind *kind, const char *name, const char *value)
{
    uint64_t number;
    if (strcmp(name, "CoreType") == 0)
        snprintf(kind->core_type, sizeof kind->core_type, "%s", value);
    else if (!tn_fact_whole_u64(value, &number) || number == 0 || number > 1000000)
        return;
    else if (strcmp(name, "FrequencyMaxMHz") == 0)
        kind->max_mhz = (uint32_t)number;
    else if (strcmp(name, "LinuxCapacity") == 0)
        kind->linux_capacity = (uint32_t)number;
}

static bool read_kind(hwloc_topology_t topology, unsigned index, struct raw_kind *kind)
{
    memset(kind, 0, sizeof *kind);
    kind->cpus = hwloc_bitmap_alloc();
    if (!kind->cpus)
        return false;
#if HWLOC_API_VERSION >= 0x00030000
    struct hwloc_infos_s *infos = NULL;
    if (hwloc_cpukinds_get_info(topology, index, kind->cpus, &kind->rank, &infos, 0) != 0)
        infos = NULL;
    for (unsigned i = 0; infos && i < infos->count; i++)
        read_kind_info(kind, infos->array[i].name, infos->array[i].value);
#else
    unsigned n_infos = 0;
    struct hwloc_info_s *infos = NULL;
    if (hwloc_cpukinds_get_info(topology, index, kind->cpus, &kind->rank, &n_infos, &infos, 0) != 0)
        n_infos = 0;
    for (unsigned i = 0; i < n_infos; i++)
        read_kind_info(kind, infos[i].name, infos[i].value);
#endif
    return true;
}

static void read_kinds(struct reader *r)
{
    int n = hwloc_cpukinds_get_nr(r->topology, 0);
    /* Half of the room stays free for the low-power parts that are split off. */
    for (int i = 0; i < n && i < MAX_RAW_KINDS / 2; i++)
        if (read_kind(r->topology, (unsigned)i, &r->kinds[r->n_kinds]))
            r->n_kinds++;
}

static bool has_l3(hwloc_topology_t topology, hwloc_obj_t pu)
{
    return hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_L3CACHE, pu) != NULL;
}

/* Low-power cores (on the SoC die of recent Intel machines) are E cores that do not share the
 * others' L3. hwloc before 2.13 knows them only as E cores, perhaps of another frequency. */
static void split_low_power(struct reader *r)
{
    if (hwloc_get_nbobjs_by_type(r->topology, HWLOC_OBJ_L3CACHE) <= 0)
        return;
    uint32_t n = r->n_kinds;
    for (uint32_t i = 0; i < n; i++) {
        struct raw_kind *kind = &r->kinds[i];
        if (strcmp(kind->core_type, "IntelAtom") != 0)
            continue;
        struct raw_kind *apart = &r->kinds[r->n_kinds];
        *apart = *kind;
        apart->low_power = true;
        apart->cpus = hwloc_bitmap_alloc();
        if (!apart->cpus)
            return;
        for (hwloc_obj_t pu = NULL;
             (pu = hwloc_get_next_obj_by_type(r->topology, HWLOC_OBJ_PU, pu)) != NULL;)
            if (hwloc_bitmap_isset(kind->cpus, pu->os_index) && !has_l3(r->topology, pu))
                hwloc_bitmap_set(apart->cpus, pu->os_index);
        hwloc_bitmap_andnot(kind->cpus, kind->cpus, apart->cpus);
        if (hwloc_bitmap_iszero(apart->cpus))
            hwloc_bitmap_free(apart->cpus);
        else
            r->n_kinds++;
    }
}

/* Speed of one core of each kind, in one unit for all: the system's figure if it has one for every
 * kind, else frequency and type, else the rank. */
static void score_kinds(struct reader *r)
{
    bool all_capacity = true, all_mhz = true, ranked = false;
    for (uint32_t i = 0; i < r->n_kinds; i++) {
        all_capacity = all_capacity && r->kinds[i].linux_capacity > 0;
        all_mhz = all_mhz && r->kinds[i].max_mhz > 0;
        ranked = ranked || r->kinds[i].rank > 0;
    }
    r->estimated = !all_capacity;
    bool typed = false;
    for (uint32_t i = 0; i < r->n_kinds; i++)
        typed = typed || strcmp(r->kinds[i].core_type, "IntelAtom") == 0;
    for (uint32_t i = 0; i < r->n_kinds; i++) {
        struct raw_kind *kind = &r->kinds[i];
        if (all_capacity) {
            kind->score = kind->linux_capacity;
            continue;
        }
        kind->score = all_mhz ? kind->max_mhz : 1024;
        if (strcmp(kind->core_type, "IntelAtom") == 0)
            kind->score = kind->score * ATOM_PERCENT / 100;
        else if (!all_mhz && !typed && ranked && kind->rank < (int)r->n_kinds - 1)
            kind->score = UNRANKED_CAPACITY;
    }
}

static int compare_kinds(const void *a, const void *b)
{
    const struct raw_kind *x = a, *y = b;
    if (x->low_power != y->low_power)
        return x->low_power ? 1 : -1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->rank > y->rank ? -1 : x->rank < y->rank;
}

static bool within_10_percent(uint32_t slower, uint32_t faster)
{
    return (uint64_t)slower * 10 > (uint64_t)faster * 9;
}

/* Kinds that differ only by how far single cores turbo are one kind. */
static bool same_kind(const struct raw_kind *faster, const struct raw_kind *slower)
{
    return faster->low_power == slower->low_power &&
           strcmp(faster->core_type, slower->core_type) == 0 &&
           within_10_percent(slower->score, faster->score);
}

static void describe_kinds(struct reader *r, struct tern_sysinfo *out)
{
    split_low_power(r);
    score_kinds(r);
    qsort(r->kinds, r->n_kinds, sizeof r->kinds[0], compare_kinds);
    const struct raw_kind *head = NULL;
    out->n_kinds = 0;
    for (uint32_t i = 0; i < r->n_kinds; i++) {
        struct raw_kind *kind = &r->kinds[i];
        if (hwloc_bitmap_iszero(kind->cpus))
            continue;
        if (!head || (!same_kind(head, kind) && out->n_kinds < TERN_MAX_CPU_KINDS)) {
            head = kind;
            struct tern_cpu_kind *k = &out->kinds[out->n_kinds++];
            snprintf(k->core_type, sizeof k->core_type, "%s", kind->core_type);
            k->max_mhz = kind->max_mhz;
            k->low_power = kind->low_power;
            k->capacity_estimated = r->estimated;
            uint64_t top = r->kinds[0].score;
            k->capacity = top ? (uint32_t)TN_MIN(1024, kind->score * 1024ull / top) : 1024;
        }
        kind->merged = out->n_kinds - 1;
    }
    if (out->n_kinds == 0)
        out->kinds[out->n_kinds++].capacity = 1024;
}

/* ---- cores ---- */

static uint32_t kind_of_cpu(const struct reader *r, unsigned os_index)
{
    for (uint32_t i = 0; i < r->n_kinds; i++)
        if (hwloc_bitmap_isset(r->kinds[i].cpus, os_index))
            return r->kinds[i].merged;
    return 0;
}

/* The lowest CPU of a core that is in `set`, or -1. */
static int first_in(hwloc_const_bitmap_t core, hwloc_const_bitmap_t set)
{
    int cpu = hwloc_bitmap_first(core);
    while (cpu >= 0 && !hwloc_bitmap_isset(set, (unsigned)cpu))
        cpu = hwloc_bitmap_next(core, cpu);
    return cpu;
}

static void list_cores(const struct reader *r, struct tern_sysinfo *out)
{
    uint32_t n_physical = 0, n_logical = 0, n_allowed = 0, n_allowed_logical = 0;
    for (hwloc_obj_t pu = NULL;
         (pu = hwloc_get_next_obj_by_type(r->topology, HWLOC_OBJ_PU, pu)) != NULL;) {
        /* Some virtual machines show no cores: then each hardware thread counts as one. */
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(r->topology, HWLOC_OBJ_CORE, pu);
        if (!core)
            core = pu;
        uint32_t kind = kind_of_cpu(r, pu->os_index);
        n_logical++;
        n_allowed_logical += hwloc_bitmap_isset(r->usable, pu->os_index) != 0;
        if (hwloc_bitmap_first(core->cpuset) == (int)pu->os_index) {
            n_physical++;
            out->kinds[kind].n_cores++;
        }
        if (first_in(core->cpuset, r->usable) == (int)pu->os_index) {
            if (n_allowed < TERN_MAX_CORES)
                out->cores[n_allowed] = (struct tern_core){pu->os_index, kind};
            n_allowed++;
            out->kinds[kind].n_allowed++;
        }
    }
    out->n_logical = n_logical;
    out->n_physical = n_physical;
    out->n_allowed = n_allowed;
    out->n_allowed_logical = n_allowed_logical;
    out->n_cores = TN_MIN(n_allowed, TERN_MAX_CORES);
}

static int compare_cores(const void *a, const void *b)
{
    const struct tern_core *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->os_cpu < y->os_cpu ? -1 : x->os_cpu > y->os_cpu;
}

static uint64_t largest_cache(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    uint64_t largest = 0;
    for (hwloc_obj_t obj = NULL;
         (obj = hwloc_get_next_obj_by_type(topology, type, obj)) != NULL;)
        largest = TN_MAX(largest, (uint64_t)obj->attr->cache.size);
    return largest ? largest : TERN_UNKNOWN;
}

static uint32_t count_objects(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(topology, type);
    return n > 0 ? (uint32_t)n : 1;
}

static void describe(struct reader *r, struct tern_sysinfo *out, const char *root,
                     const char *affinity)
{
    hwloc_const_bitmap_t machine = hwloc_topology_get_topology_cpuset(r->topology);
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    if (!mask)
        return;
    hwloc_bitmap_and(r->usable, machine, hwloc_topology_get_allowed_cpuset(r->topology));
    if (hwloc_bitmap_iszero(r->usable))
        hwloc_bitmap_copy(r->usable, machine);
    out->limited_by_cpuset = !hwloc_bitmap_isequal(r->usable, machine);
    if (read_affinity(r, root, affinity, mask, &out->unreadable)) {
        if (!hwloc_bitmap_intersects(r->usable, mask))
            out->unreadable |= TERN_FACT_AFFINITY;
        else {
            out->limited_by_affinity = !hwloc_bitmap_isincluded(r->usable, mask);
            hwloc_bitmap_and(r->usable, r->usable, mask);
        }
    }
    hwloc_bitmap_free(mask);
    read_kinds(r);
    describe_kinds(r, out);
    list_cores(r, out);
    qsort(out->cores, out->n_cores, sizeof out->cores[0], compare_cores);
    out->n_packages = count_objects(r->topology, HWLOC_OBJ_PACKAGE);
    out->n_numa = count_objects(r->topology, HWLOC_OBJ_NUMANODE);
    out->cache_bytes[0] = largest_cache(r->topology, HWLOC_OBJ_L1CACHE);
    out->cache_bytes[1] = largest_cache(r->topology, HWLOC_OBJ_L2CACHE);
    out->cache_bytes[2] = largest_cache(r->topology, HWLOC_OBJ_L3CACHE);
    out->binding_works = hwloc_topology_is_thissystem(r->topology) &&
                         hwloc_topology_get_support(r->topology)->cpubind->set_thisthread_cpubind;
}

/* One core of one kind: what is assumed when nothing can be read. */
static void set_defaults(struct tern_sysinfo *out)
{
    out->n_physical = out->n_logical = out->n_allowed = out->n_allowed_logical = 1;
    out->n_packages = out->n_numa = out->n_kinds = out->n_cores = 1;
    memset(out->kinds, 0, sizeof out->kinds);
    out->kinds[0] = (struct tern_cpu_kind){.n_cores = 1, .n_allowed = 1, .capacity = 1024};
    out->cores[0] = (struct tern_core){0, 0};
    for (uint32_t i = 0; i < 3; i++)
        out->cache_bytes[i] = TERN_UNKNOWN;
}

void tn_topology_read(struct tern_sysinfo *out, const char *root, const char *affinity)
{
    set_defaults(out);
    struct reader *r = tn_alloc_zeroed(1, sizeof *r);
    if (!r)
        return;
    r->topology = load(root, &out->unreadable);
    r->usable = hwloc_bitmap_alloc();
    if (r->topology && r->usable) {
        memset(out->kinds, 0, sizeof out->kinds);
        describe(r, out, root, affinity);
    }
    for (uint32_t i = 0; i < r->n_kinds; i++)
        hwloc_bitmap_free(r->kinds[i].cpus);
    hwloc_bitmap_free(r->usable);
    if (r->topology)
        hwloc_topology_destroy(r->topology);
    tn_free(r);
    if (out->n_cores == 0)
        set_defaults(out);
}

/* ---- recording ---- */

/* Attributes that describe cores; the others tell names, serial numbers and versions. */
static bool is_wanted_info(const char *line)
{
    static const char *const names[] = {"CPUModel", "CoreType", "FrequencyMaxMHz",
                                        "FrequencyBaseMHz", "LinuxCapacity"};
    static const char start[] = "<info name=\"";
    line += strspn(line, " ");
    if (strncmp(line, start, sizeof start - 1) != 0)
        return true;
    line += sizeof start - 1;
    for (size_t i = 0; i < TN_COUNT_OF(names); i++)
        if (strncmp(line, names[i], strlen(names[i])) == 0 && line[strlen(names[i])] == '"')
            return true;
    return false;
}

char *tn_topology_export(void)
{
    uint32_t unreadable = 0;
    hwloc_topology_t topology = load("", &unreadable);
    char *xml = NULL;
    int n = 0;
    struct tn_buf out = {0};
    if (topology && hwloc_topology_export_xmlbuffer(topology, &xml, &n, 0) == 0)
        for (const char *line = xml; *line;) {
            size_t length = strcspn(line, "\n");
            length += line[length] == '\n';
            if (is_wanted_info(line))
                tn_buf_append(&out, line, length);
            line += length;
        }
    char *copy = NULL;
    if (!out.failed && out.n_bytes > 0 && (copy = tn_alloc(out.n_bytes + 1)) != NULL)
        memcpy(copy, tn_buf_text(&out), out.n_bytes + 1);
    tn_buf_fini(&out);
    if (xml)
        hwloc_free_xmlbuffer(topology, xml);
    if (topology)
        hwloc_topology_destroy(topology);
    return copy;
}

char *tn_topology_affinity(void)
{
    struct reader r = {0};
    char *list = NULL, *copy = NULL;
    uint32_t unreadable = 0;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    r.topology = load("", &unreadable);
    if (r.topology && set && read_affinity(&r, "", NULL, set, &unreadable) &&
        hwloc_bitmap_list_asprintf(&list, set) > 0 && (copy = tn_alloc(strlen(list) + 1)) != NULL)
        memcpy(copy, list, strlen(list) + 1);
    free(list); /* hwloc took it from malloc */
    hwloc_bitmap_free(set);
    if (r.topology)
        hwloc_topology_destroy(r.topology);
    return copy;
}

/* SPDX-License-Identifier: MIT
 *
 * The topology of the live machine: the only user of hwloc.  The result is copied and hwloc's
 * topology freed.  I/O devices, distances and memory attributes are not loaded, because they take
 * most of the time.  On Linux x86 hwloc binds the calling thread to each CPU in turn to determine
 * the kind of core, then restores its affinity.
 *
 * hwloc obeys its environment variables (HWLOC_XMLFILE and others); nothing here sets one, because
 * other threads may be reading them.
 */
#include "topo.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

#if HWLOC_API_VERSION < 0x00020800
#error "hwloc 2.8 or newer is needed"
#endif

/* ---- loading ---- */

#if defined(__linux__)

/* Whether /sys describes this CPU: hwloc requires one of these files. */
static bool sys_describes(uint32_t cpu)
{
    static const char *const names[] = {"package_cpus", "core_cpus", "core_siblings",
                                        "thread_siblings"};
    char path[96], text[8];
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, names[i]);
        if (tn_fact_read("", path, text, sizeof text) >= 0)
            return true;
    }
    return false;
}

/* CPU 0 may be offline. */
static bool sys_describes_cpus(void)
{
    struct tn_cpu_set online;
    uint32_t cpu = 0;
    if (!sys_describes(0) && tn_topo_read_online("", &online))
        while (cpu < TN_MAX_CPU_INDEX && !tn_cpu_set_has(&online, cpu))
            cpu++;
    return sys_describes(cpu);
}

/* Without /sys (containers, sandboxes) hwloc skips its Linux source with a line on standard error,
 * and continues with the others.  If that source is disabled it prints nothing. */
static void leave_out_sys(hwloc_topology_t topology)
{
    if (!getenv("HWLOC_FSROOT") && !sys_describes_cpus())
        (void)hwloc_topology_set_components(
            topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux");
}

#else

static void leave_out_sys(hwloc_topology_t topology)
{
    (void)topology;
}

#endif

static hwloc_topology_t load(void)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return NULL;
    leave_out_sys(topology);
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                          HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS;
#if defined(_WIN32)
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
    if (hwloc_topology_set_flags(topology, flags) == 0 && hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

/* ---- kinds ---- */

static void read_kind(hwloc_topology_t topology, unsigned index, hwloc_bitmap_t cpus,
                      struct tn_topo_kind *kind)
{
    int rank = -1;
#if HWLOC_API_VERSION >= 0x00030000
    struct hwloc_infos_s *infos = NULL;
    if (hwloc_cpukinds_get_info(topology, index, cpus, &rank, &infos, 0) != 0)
        infos = NULL;
    for (unsigned i = 0; infos && i < infos->count; i++)
        tn_topo_set_kind_info(kind, infos->array[i].name, infos->array[i].value);
#else
    unsigned n_infos = 0;
    struct hwloc_info_s *infos = NULL;
    if (hwloc_cpukinds_get_info(topology, index, cpus, &rank, &n_infos, &infos, 0) != 0)
        n_infos = 0;
    for (unsigned i = 0; i < n_infos; i++)
        tn_topo_set_kind_info(kind, infos[i].name, infos[i].value);
#endif
    kind->rank = rank;
}

static void read_kinds(hwloc_topology_t topology, struct tn_topo *topo)
{
    int n = hwloc_cpukinds_get_nr(topology, 0);
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    for (int k = 0; cpus && k < n && k < TN_MAX_RAW_KINDS; k++) {
        hwloc_bitmap_zero(cpus);
        read_kind(topology, (unsigned)k, cpus, &topo->kinds[topo->n_kinds]);
        for (uint32_t i = 0; i < topo->n_pus; i++)
            if (hwloc_bitmap_isset(cpus, topo->pus[i].os_index))
                topo->pus[i].kind = topo->n_kinds;
        topo->n_kinds++;
    }
    hwloc_bitmap_free(cpus);
}

/* ---- cores and caches ---- */

static uint64_t largest_cache(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    uint64_t largest = 0;
    for (hwloc_obj_t obj = NULL;
         (obj = hwloc_get_next_obj_by_type(topology, type, obj)) != NULL;)
        largest = TN_MAX(largest, (uint64_t)obj->attr->cache.size);
    return largest;
}

static uint32_t count_objects(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(topology, type);
    return n > 0 ? (uint32_t)n : 0;
}

static void read_threads(hwloc_topology_t topology, struct tn_topo *topo)
{
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(topology);
    hwloc_obj_t last_core = NULL;
    for (hwloc_obj_t pu = NULL;
         (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL;) {
        /* Some virtual machines report no cores: then each hardware thread counts as one.  The
         * threads of a core are consecutive. */
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
        bool same = core && core == last_core;
        bool has_l3 = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_L3CACHE, pu) != NULL;
        if (!tn_topo_add_pu(topo, pu->os_index, same ? topo->n_cores - 1 : topo->n_cores, has_l3))
            continue;
        topo->pus[topo->n_pus - 1].allowed = hwloc_bitmap_isset(allowed, pu->os_index) != 0;
        last_core = core;
    }
}

/* ---- affinity ---- */

/* The mask of this process; NULL if unknown. */
static hwloc_bitmap_t read_mask(hwloc_topology_t topology)
{
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    if (mask && (hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_PROCESS) == 0 ||
                 hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_THREAD) == 0))
        return mask;
    hwloc_bitmap_free(mask);
    return NULL;
}

static void apply_mask(hwloc_topology_t topology, struct tn_topo *topo)
{
    hwloc_bitmap_t mask = read_mask(topology);
    if (!mask)
        return;
    topo->has_mask = true;
    for (uint32_t i = 0; i < topo->n_pus; i++)
        topo->pus[i].in_mask = hwloc_bitmap_isset(mask, topo->pus[i].os_index) != 0;
    hwloc_bitmap_free(mask);
}

bool tn_topo_from_hwloc(struct tn_topo *topo)
{
    hwloc_topology_t topology = load();
    if (!topology)
        return false;
    read_threads(topology, topo);
    read_kinds(topology, topo);
    apply_mask(topology, topo);
    topo->n_packages = count_objects(topology, HWLOC_OBJ_PACKAGE);
    topo->n_numa = count_objects(topology, HWLOC_OBJ_NUMANODE);
    topo->cache_bytes[0] = largest_cache(topology, HWLOC_OBJ_L1CACHE);
    topo->cache_bytes[1] = largest_cache(topology, HWLOC_OBJ_L2CACHE);
    topo->cache_bytes[2] = largest_cache(topology, HWLOC_OBJ_L3CACHE);
    topo->binding_works = hwloc_topology_is_thissystem(topology) &&
                          hwloc_topology_get_support(topology)->cpubind->set_thisthread_cpubind;
    hwloc_topology_destroy(topology);
    return true;
}

/* ---- recording ---- */

/* Attributes that describe cores; the others contain names, serial numbers and versions. */
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
    hwloc_topology_t topology = load();
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
    if (!out.failed && out.n_bytes > 0)
        copy = tn_copy_bytes(tn_buf_text(&out), out.n_bytes);
    tn_buf_fini(&out);
    if (xml)
        hwloc_free_xmlbuffer(topology, xml);
    if (topology)
        hwloc_topology_destroy(topology);
    return copy;
}

char *tn_topology_affinity(void)
{
    char *list = NULL, *copy = NULL;
    hwloc_topology_t topology = load();
    hwloc_bitmap_t mask = topology ? read_mask(topology) : NULL;
    if (mask && hwloc_bitmap_list_asprintf(&list, mask) > 0)
        copy = tn_copy_text(list);
    free(list); /* allocated by hwloc with malloc */
    hwloc_bitmap_free(mask);
    if (topology)
        hwloc_topology_destroy(topology);
    return copy;
}

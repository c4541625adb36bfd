/* SPDX-License-Identifier: MIT
 *
 * A processor's topology from its sources, and functions to build and use it:
 *
 *   topo_hwloc.c   the live machine, through hwloc
 *   topo_xml.c     topology.xml of a recording, in hwloc's format (hwloc's own import trusts it)
 *   topo_sysfs.c   /sys of a recording
 *   topo_build.c   functions with which these three build it
 *   topo.c         without a source: CPU numbers only; then kinds, counts and limits for all
 */
#ifndef TN_TOPO_H
#define TN_TOPO_H

#include "base/compiler.h"
#include "sysinfo_private.h"

enum { TN_MAX_PUS = 4096, TN_MAX_RAW_KINDS = 32, TN_MAX_CPU_INDEX = 65535 };
#define TN_NO_KIND UINT32_MAX

/* A set of CPU numbers. */
struct tn_cpu_set {
    uint64_t words[(TN_MAX_CPU_INDEX + 1) / 64];
};
static inline bool tn_cpu_set_has(const struct tn_cpu_set *set, uint32_t cpu)
{
    return cpu <= TN_MAX_CPU_INDEX && (set->words[cpu / 64] >> cpu % 64 & 1) != 0;
}
static inline void tn_cpu_set_add(struct tn_cpu_set *set, uint32_t cpu)
{
    set->words[cpu / 64] |= (uint64_t)1 << cpu % 64;
}
/* Parses "0-3,8": false for anything else, and for an empty list. */
bool tn_cpu_set_parse_list(struct tn_cpu_set *set, const char *text);

/* A hardware thread. */
struct tn_topo_pu {
    uint32_t os_index;
    uint32_t core; /* equal for threads of a core; counted from 0 */
    uint32_t kind; /* index into kinds, TN_NO_KIND */
    bool allowed;  /* by control groups */
    bool in_mask;  /* in the mask of the process */
    bool has_l3;
};

/* A kind of core as its source describes it. */
struct tn_topo_kind {
    char core_type[16];
    uint32_t max_mhz;        /* 0 unknown */
    uint32_t linux_capacity; /* 0 unknown */
    int32_t rank;            /* higher is faster; -1 unknown */
};

struct tn_topo {
    uint32_t n_pus, n_cores, n_packages, n_numa, n_kinds;
    struct tn_topo_pu pus[TN_MAX_PUS];
    struct tn_topo_kind kinds[TN_MAX_RAW_KINDS];
    uint64_t cache_bytes[3]; /* 0 unknown */
    bool has_mask;
    bool binding_works;
};

/* Adds a thread; false if there are too many.  `core` is new if it equals n_cores. */
bool tn_topo_add_pu(struct tn_topo *topo, uint32_t os_index, uint32_t core, bool has_l3);
/* "CoreType", "FrequencyMaxMHz", "LinuxCapacity"; anything else is ignored. */
void tn_topo_set_kind_info(struct tn_topo_kind *kind, const char *name, const char *value);

/* Each fills a zeroed topology; false (and *topo in any state) on failure. */
bool tn_topo_from_hwloc(struct tn_topo *topo); /* of the live machine */
bool tn_topo_from_xml(struct tn_topo *topo, const char *root);
bool tn_topo_from_sysfs(struct tn_topo *topo, const char *root);

/* The online CPUs, from /sys or at least counted in /proc/cpuinfo. */
bool tn_topo_read_online(const char *root, struct tn_cpu_set *online);

#endif

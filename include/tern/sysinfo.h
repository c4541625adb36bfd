/* SPDX-License-Identifier: MIT
 *
 * Describes this machine; decisions are made in tern/plan.h.
 *
 * Every fact that could not be read is TERN_UNKNOWN (sizes), 0 or "" (others), never a guess; a
 * fact that was present but not understood is also named in `unreadable`.  The same readers serve
 * the live machine and a recorded one (a directory with parts of its /proc and /sys).
 *
 * Reading the live machine takes some milliseconds, and may move the calling thread from CPU to CPU
 * for a moment.  Do it once and keep the result: engines, plans and measurements take it from the
 * caller.  hwloc, which detects the cores, reads its environment variables; unless they include
 * HWLOC_HIDE_ERRORS=2, it prints warnings about contradictory firmware tables to stderr.
 */
#ifndef TERN_SYSINFO_H
#define TERN_SYSINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TERN_UNKNOWN UINT64_MAX /* a size that is unknown or unlimited */
#define TERN_MAX_CORES 1024     /* allowed cores that are listed individually */
#define TERN_MAX_CPU_KINDS 8

/* The source of a bound on memory. */
enum tern_bound {
    TERN_BOUND_NONE = 0,    /* nothing is known */
    TERN_BOUND_MEMINFO,     /* the memory that the system reports as available */
    TERN_BOUND_CGROUP,      /* a control group (container) */
    TERN_BOUND_RLIMIT_AS,   /* ulimit -v */
    TERN_BOUND_RLIMIT_DATA, /* ulimit -d */
    TERN_BOUND_JOB,         /* a Windows job object */
    TERN_BOUND_COMMIT,      /* Windows: the remaining commit limit */
    TERN_BOUND_USER,        /* the user's own limit */
    TERN_BOUND_COUNT
};
/* "meminfo", "cgroup", ...; "unknown" for TERN_BOUND_NONE. */
const char *tern_bound_text(enum tern_bound bound);

/* Groups of facts, for tern_sysinfo.unreadable: present, but not understood. */
#define TERN_FACT_TOPOLOGY (1u << 0)
#define TERN_FACT_AFFINITY (1u << 1)
#define TERN_FACT_QUOTA (1u << 2)
#define TERN_FACT_MEMINFO (1u << 3)
#define TERN_FACT_CGROUP_MEMORY (1u << 4)
#define TERN_FACT_RLIMITS (1u << 5)
#define TERN_FACT_PRESSURE (1u << 6)
#define TERN_FACT_PROCESS (1u << 7) /* process.json of a recording */
#define TERN_N_FACTS 8
/* Name of fact bit i ("CPU quota"); NULL beyond the last. */
const char *tern_fact_text(uint32_t i);

enum tern_power { TERN_POWER_UNKNOWN = 0, TERN_POWER_MAINS, TERN_POWER_BATTERY };
enum tern_huge_pages {
    TERN_HUGE_PAGES_UNKNOWN = 0,
    TERN_HUGE_PAGES_NEVER,
    TERN_HUGE_PAGES_MADVISE,
    TERN_HUGE_PAGES_ALWAYS
};

/* A group of equivalent cores.  Kinds whose highest frequencies are within 10 % and whose types are
 * equal count as one. */
struct tern_cpu_kind {
    char core_type[16];      /* "IntelCore", "IntelAtom", ...; "" if unknown */
    uint32_t n_cores;        /* physical cores of the machine */
    uint32_t n_allowed;      /* of these, usable by this process */
    uint32_t capacity;       /* speed of one core, 1024 = the fastest kind */
    bool capacity_estimated; /* derived from type and frequency: the system provides none */
    bool low_power;          /* small cores separate from the large cache; never worth using */
    uint32_t max_mhz;        /* 0 if unknown */
};

/* One physical core that this process may use. */
struct tern_core {
    uint32_t os_cpu; /* its first usable hardware thread, for tern_engine_params.cpus */
    uint32_t kind;   /* index into kinds */
};

struct tern_sysinfo {
    /* ---- processor ---- */
    char cpu_name[64];
    uint32_t cpu_features; /* one bit each; their names: tern_cpu_feature_text */

    /* ---- cores: every count is at least 1 ---- */
    uint32_t n_physical; /* cores of the machine */
    uint32_t n_logical;  /* hardware threads of the machine */
    uint32_t n_allowed;  /* physical cores that this process may use (cpuset and affinity) */
    uint32_t n_allowed_logical;
    uint32_t n_packages;
    uint32_t n_numa;
    bool limited_by_cpuset;   /* a control group excludes cores */
    bool limited_by_affinity; /* the process's affinity mask excludes more */
    bool binding_works;       /* threads can be bound to cores on this system */
    uint32_t n_kinds;         /* at least 1; fastest first */
    struct tern_cpu_kind kinds[TERN_MAX_CPU_KINDS];
    uint32_t n_cores; /* entries of cores: min(n_allowed, TERN_MAX_CORES), fastest kind first */
    struct tern_core cores[TERN_MAX_CORES];
    uint64_t cache_bytes[3];   /* L1 data, L2, L3: the largest of each; or TERN_UNKNOWN */
    uint64_t quota_millicpus;  /* CPU quota in 1/1000 CPU, rounded down; TERN_UNKNOWN = none */

    /* ---- memory ---- */
    uint64_t total_bytes;
    uint64_t available_bytes; /* the minimum of all bounds below that apply */
    enum tern_bound limited_by;
    uint64_t limit_bytes; /* the smallest memory limit of cgroups and job; TERN_UNKNOWN = none */
    uint64_t system_available_bytes; /* page cache counts as available */
    uint64_t cgroup_available_bytes; /* limit minus memory that cannot be reclaimed */
    uint64_t rlimit_as_left_bytes;   /* RLIMIT_AS minus the address space in use */
    uint64_t rlimit_data_left_bytes;
    uint64_t job_available_bytes;
    uint64_t commit_left_bytes; /* limits anonymous memory only, never a mapped file */
    uint64_t swap_total_bytes;  /* reported, never counted as available */
    uint64_t swap_free_bytes;
    int32_t overcommit_mode;    /* 0, 1, 2; -1 unknown */
    uint64_t pressure_centi;    /* PSI some avg10 in 1/100 %; TERN_UNKNOWN */
    uint32_t pressure_level;    /* macOS, Windows: 1 normal, 2 low, 4 critical; 0 unknown */
    uint64_t page_bytes;
    enum tern_huge_pages huge_pages;

    /* ---- energy: reported only ---- */
    enum tern_power power;
    char governor[24];             /* "powersave"; "" if unknown */
    uint64_t n_thermal_throttles;  /* since boot, first CPU; TERN_UNKNOWN */

    uint32_t unreadable; /* TERN_FACT_* */
};

/* Reads the machine that this process runs on.  Linux on a processor with AMX: also asks, once and
 * for the whole process, for the right to use its tile registers, which the result then counts as a
 * feature; read it in the process that creates the engine.  After that the system refuses stacks
 * for signals (sigaltstack) of less than sysconf(_SC_MINSIGSTKSZ) bytes. */
void tern_sysinfo_read(struct tern_sysinfo *out);
/* Reads only the processor's own information, in microseconds: cpu_name and cpu_features; one core,
 * the rest unknown.  Enough for an engine of one thread.  Asks for the tile registers, too. */
void tern_sysinfo_read_cpu(struct tern_sysinfo *out);

/* Reads a recorded machine.  `root` holds proc/... and sys/... as on that machine, and optionally
 * topology.xml (hwloc; else the topology comes from sys/) and process.json: {"affinity": "0-3",
 * "rlimit_as", "rlimit_data", "vm_size", "page_size": numbers of bytes or null, "cpu_features":
 * ["avx2", ...]}.  Missing facts are unknown, never those of this machine.
 * TERN_INPUT: root is not a directory. */
tern_status tern_sysinfo_read_root(struct tern_sysinfo *out, const char *root,
                                   struct tern_error *err);

/* Writes this machine's facts in that format into `dir`, which is created if missing and must be
 * empty: no serial numbers, no host name; names in control group paths become "user".
 * TERN_OUTPUT: it is not empty, or cannot be written; TERN_UNSUPPORTED on systems without /proc. */
tern_status tern_sysinfo_record(const char *dir, struct tern_error *err);

/* The name of bit i of cpu_features, such as "avx2"; NULL if there is no such feature. */
const char *tern_cpu_feature_text(uint32_t i);

/* ---- facts that change while running ---- */

struct tern_monitor; /* keeps its files open, so that it also works where no file may be opened */

struct tern_monitor_sample {
    uint64_t available_bytes; /* as in tern_sysinfo; TERN_UNKNOWN */
    uint64_t n_periods;       /* of the CPU quota, since the group was created; TERN_UNKNOWN without
                               * quota */
    uint64_t n_throttled;     /* periods in which this group was throttled */
    uint64_t pressure_centi;  /* as in tern_sysinfo */
    uint32_t pressure_level;
};

/* root NULL: the live machine.  Fails only with TERN_MEMORY: facts whose files cannot be opened
 * stay unknown. */
tern_status tern_monitor_open(struct tern_monitor **out, const char *root,
                              struct tern_error *err);
/* Reads some small files; allocates nothing.  One thread at a time. */
void tern_monitor_read(struct tern_monitor *monitor, struct tern_monitor_sample *out);
void tern_monitor_close(struct tern_monitor *monitor);

#ifdef __cplusplus
}
#endif
#endif

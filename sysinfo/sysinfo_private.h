/* SPDX-License-Identifier: MIT
 *
 * The interface between the files of sysinfo/.  `root` is the prefix of every path: "" for the live
 * machine, a directory for a recorded one.  Everything that reads a root works on every system, so
 * that any machine can be replayed on any other.
 */

/*   sysinfo.c       combines the others
 *   cpu_x86.c, cpu_arm.c   features and name of the processor
 *   topo.c          cores, kinds, caches, affinity, from
 *     topo_hwloc.c    the live machine (the only user of hwloc)
 *     topo_xml.c      topology.xml of a recording
 *     topo_sysfs.c    /sys of a recording
 *     topo_build.c    functions with which these build a topology
 *   limits.c        control groups v1 and v2: quota and memory
 *   mem_linux.c     memory, pressure, energy from /proc and /sys
 *   mem_posix.c, mem_win32.c, mem_macos.c   facts that only system calls report
 *   monitor.c       facts that change while running
 *   fact_file.c     bounded file reads
 *   fact.c          digit-by-digit numbers
 *   fact_names.c    names of facts
 *   process_json.c, record.c   recordings */
#ifndef TN_SYSINFO_PRIVATE_H
#define TN_SYSINFO_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/sysinfo.h"

/* ---- fact_file.c ---- */

enum { TN_FACT_PATH_BYTES = 4096 };
/* For /proc/self/status, which lists the user's groups before the memory: a user of Active
 * Directory can be in 1015 of them, in up to 11 characters each. */
enum { TN_STATUS_BYTES = 16384 };

/* A small text file that is kept open for reading repeatedly. */
struct tn_fact_file {
    intptr_t handle; /* -1 closed */
};

/* False: absent, unreadable, not a regular file (the file is then closed). */
bool tn_fact_open(struct tn_fact_file *file, const char *root, const char *path);
/* Reads from the start into text[capacity], NUL-terminated, truncated to capacity - 1; an embedded
 * NUL ends it.  Returns the number of bytes, or -1 and "" if it cannot be read or is closed. */
long tn_fact_reread(const struct tn_fact_file *file, char *text, size_t capacity);
void tn_fact_close(struct tn_fact_file *file);
/* Opens, reads, closes. */
long tn_fact_read(const char *root, const char *path, char *text, size_t capacity);

/* ---- fact.c ---- */

/* Skips spaces and tabs, then reads decimal digits.  False (*text unchanged) if there are none or
 * the number does not fit. */
bool tn_fact_parse_u64(const char **text, uint64_t *out);
/* The whole text is one number, with only white space around it. */
bool tn_fact_whole_u64(const char *text, uint64_t *out);
/* Whether the first word of the text is this one. */
bool tn_fact_is_word(const char *text, const char *word);
/* The number after `key` at the start of a line: "MemTotal:   123 kB" with key "MemTotal:".
 * *present is true if the key occurs (may be NULL). */
bool tn_fact_line_u64(const char *text, const char *key, uint64_t *out, bool *present);
/* A file that contains one number.  Sets `fact` in *unreadable if the file exists but cannot be
 * understood. */
bool tn_fact_file_u64(const char *root, const char *path, uint64_t *out, uint32_t *unreadable,
                      uint32_t fact);
/* a - b, but not below 0; UNKNOWN stays UNKNOWN. */
uint64_t tn_fact_minus(uint64_t a, uint64_t b);

/* A Windows job object: committed bytes; limits are TERN_UNKNOWN if there are none. */
struct tn_job_memory {
    uint64_t process_limit, process_used; /* of this process */
    uint64_t job_limit, job_used;         /* of all processes of the job */
};
/* The bytes that this process may still commit: the smaller of both; TERN_UNKNOWN without
 * limits. */
uint64_t tn_job_memory_left(const struct tn_job_memory *job);

/* ---- processor ---- */

/* Features and name of the running CPU; one of the two files implements it. */
void tn_cpu_read_live(struct tern_sysinfo *out);
/* The name from /proc/cpuinfo. */
void tn_cpu_name_from_proc(struct tern_sysinfo *out, const char *root);

/* ---- topo.c ---- */

/* Fills the fields about cores.  affinity: a CPU list ("0-3,8") for a recorded machine, or NULL. */
void tn_topology_read(struct tern_sysinfo *out, const char *root, const char *affinity);
/* The same if nothing is known: one core. */
void tn_topology_one_core(struct tern_sysinfo *out);
/* ---- topo_hwloc.c ---- */

/* This machine's topology as XML without names, serial numbers and versions, in new memory
 * (tn_free); NULL on failure. */
char *tn_topology_export(void);
/* This process's mask as a CPU list in new memory (tn_free); NULL if unknown. */
char *tn_topology_affinity(void);

/* ---- limits.c ---- */

enum tn_hierarchy { TN_CGROUP_V2, TN_CGROUP_V1_CPU, TN_CGROUP_V1_MEMORY, TN_N_HIERARCHIES };

/* The directories of this process's groups below the root, from the group itself up to the mount
 * point. */
struct tn_cgroups {
    struct {
        char group[1024];  /* path of the group's directory; "" if none */
        size_t n_mount;    /* the first n_mount bytes of it are the mount point */
    } at[TN_N_HIERARCHIES];
};
void tn_cgroups_find(struct tn_cgroups *out, const char *root);
/* Moves from the group to its ancestors up to the mount point: true while there is another one.
 * Start with dir = "". */
bool tn_cgroups_next(const struct tn_cgroups *groups, enum tn_hierarchy hierarchy, char dir[1024]);

/* CPU quota of one group in 1/1000 CPU, TERN_UNKNOWN without one. */
uint64_t tn_cgroup_quota(const char *root, const char *dir, bool v2, uint32_t *unreadable);
/* Quota and memory over all groups. Needs total_bytes. */
void tn_limits_read(struct tern_sysinfo *out, const char *root);

/* ---- mem_cgroup.c ---- */

/* One group with a memory limit: the texts of its files; NULL: absent. */
struct tn_cgroup_memory {
    bool v2;
    const char *limit;   /* memory.max or memory.limit_in_bytes */
    const char *high;    /* v2: memory.high */
    const char *current; /* memory.current or memory.usage_in_bytes */
    const char *stat;    /* memory.stat */
};
/* The memory left in the group, TERN_UNKNOWN without a limit; *limit the limit itself.  total:
 * memory of the machine (a larger limit is ignored), or TERN_UNKNOWN. */
uint64_t tn_cgroup_memory_left(const struct tn_cgroup_memory *group, uint64_t total,
                               uint64_t *limit, uint32_t *unreadable);
/* Adds the limit and the remaining memory of the group in `dir`.  Needs total_bytes. */
void tn_cgroup_memory_add(struct tern_sysinfo *out, const char *root, const char *dir, bool v2);

/* ---- mem_linux.c ---- */

/* Memory, pressure and energy. */
void tn_memory_read_proc(struct tern_sysinfo *out, const char *root);
/* Paths of the power supplies, NULL-terminated. */
extern const char *const tn_mains_files[];
extern const char *const tn_battery_files[];
/* MemAvailable of a meminfo text, TERN_UNKNOWN if it is missing. */
uint64_t tn_meminfo_available(const char *text);
/* "some avg10=1.23 ..." in 1/100 %, TERN_UNKNOWN if it is missing. */
uint64_t tn_pressure_parse(const char *text);

/* Facts about the process from system calls or process.json. */
struct tn_process_facts {
    uint64_t rlimit_as;   /* TERN_UNKNOWN = no limit */
    uint64_t rlimit_data;
    uint64_t vm_size;     /* TERN_UNKNOWN: as in /proc/self/status */
    uint64_t page_bytes;
    uint32_t cpu_features;
    bool has_affinity;
    char affinity[4096];  /* CPU list */
};
/* RLIMIT_AS and RLIMIT_DATA minus the use. */
void tn_process_limits(struct tern_sysinfo *out, const struct tn_process_facts *facts,
                       const char *root);

/* ---- process_json.c ---- */

/* process.json of a recording; facts that are missing stay unknown. */
void tn_process_json_read(struct tn_process_facts *out, const char *root, uint32_t *unreadable);

/* ---- mem_posix.c (Linux and others), mem_macos.c, mem_win32.c ---- */

/* Memory, process limits, quota and energy of this machine. */
void tn_memory_read_live(struct tern_sysinfo *out);
/* Reads available memory and pressure again, cheaply, where monitor.c cannot use /proc. */
void tn_memory_sample_live(struct tern_monitor_sample *out);

#endif

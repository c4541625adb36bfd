/* SPDX-License-Identifier: MIT
 *
 * What the parts of sysinfo/ share.  `root` is the prefix of every path: "" for the live machine,
 * a directory for a recorded one.
 *
 *   sysinfo.c       puts the parts together
 *   cpu_x86.c, cpu_arm.c   features and name of the processor
 *   topo_hwloc.c    cores, kinds, caches, affinity (the only user of hwloc)
 *   limits.c        control groups v1 and v2: quota and memory
 *   mem_linux.c, mem_macos.c, mem_win32.c   memory, process limits, energy
 *   fact.c          bounded file reads and digit-by-digit numbers
 *   recording.c     process.json and the writing of recordings
 */
#ifndef TN_SYSINFO_PRIVATE_H
#define TN_SYSINFO_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/sysinfo.h"

/* ---- fact.c ---- */

enum { TN_FACT_PATH_BYTES = 4096 };

/* Reads a small regular file into text[capacity], NUL-terminated, cut at capacity - 1; an embedded
 * NUL ends it. The number of bytes, or -1: absent, unreadable, not a regular file. */
long tn_fact_read(const char *root, const char *path, char *text, size_t capacity);
/* Skips spaces and tabs, then reads decimal digits. False (and *text unmoved) when there are none
 * or the number does not fit. */
bool tn_fact_parse_u64(const char **text, uint64_t *out);
/* The whole text is one number, with white space around it at most. */
bool tn_fact_whole_u64(const char *text, uint64_t *out);
/* The number behind `key` at the start of a line: "MemTotal:   123 kB" with key "MemTotal:".
 * *present tells whether the key was there at all (may be NULL). */
bool tn_fact_line_u64(const char *text, const char *key, uint64_t *out, bool *present);
/* A file that holds one number. `unreadable` gets `fact` when the file is there but makes no
 * sense. */
bool tn_fact_file_u64(const char *root, const char *path, uint64_t *out, uint32_t *unreadable,
                      uint32_t fact);
/* a - b, but not below 0; UNKNOWN stays UNKNOWN. */
uint64_t tn_fact_minus(uint64_t a, uint64_t b);

/* ---- processor ---- */

/* Features and name of the running CPU; one of the two files implements it. */
void tn_cpu_read_live(struct tern_sysinfo *out);
/* The name that /proc/cpuinfo gives. */
void tn_cpu_name_from_proc(struct tern_sysinfo *out, const char *root);

/* ---- topo_hwloc.c ---- */

/* Fills the cores part.  affinity: a CPU list ("0-3,8") for a recorded machine, or NULL. */
void tn_topology_read(struct tern_sysinfo *out, const char *root, const char *affinity);

/* ---- mem_linux.c (any system: it reads a root), mem_macos.c, mem_win32.c ---- */

/* Memory, process limits, quota and energy of this machine. */
void tn_memory_read_live(struct tern_sysinfo *out);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: everything that describes a machine.
 *
 * Input: files, each "@path\n" and its content; this program replaces fact_file.c, which is not
 * linked.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "sysinfo/sysinfo_private.h"
#include "tern/plan.h"

/* ---- files in memory ---- */

enum { MAX_FILES = 32 };

static struct {
    const char *path, *text;
    size_t n_path, n_text;
} files[MAX_FILES];
static size_t n_files;

static void split_files(const char *data, size_t n)
{
    const char *end = data + n;
    n_files = 0;
    while (n_files < MAX_FILES && data < end && (data = memchr(data, '@', (size_t)(end - data)))) {
        const char *line_end = memchr(data, '\n', (size_t)(end - data));
        if (!line_end)
            return;
        const char *text = line_end + 1;
        const char *next = memchr(text, '@', (size_t)(end - text));
        files[n_files].path = data + 1;
        files[n_files].n_path = (size_t)(line_end - data - 1);
        files[n_files].text = text;
        files[n_files++].n_text = (size_t)((next ? next : end) - text);
        data = next;
        if (!data)
            return;
    }
}

bool tn_fact_open(struct tn_fact_file *file, const char *root, const char *path)
{
    (void)root;
    file->handle = -1;
    for (size_t i = 0; i < n_files; i++)
        if (files[i].n_path == strlen(path) && memcmp(files[i].path, path, files[i].n_path) == 0)
            file->handle = (intptr_t)i;
    return file->handle != -1;
}

long tn_fact_reread(const struct tn_fact_file *file, char *text, size_t capacity)
{
    text[0] = '\0';
    if (file->handle == -1)
        return -1;
    size_t n = files[file->handle].n_text;
    n = n < capacity - 1 ? n : capacity - 1;
    memcpy(text, files[file->handle].text, n);
    text[n] = '\0';
    return (long)strlen(text);
}

void tn_fact_close(struct tn_fact_file *file)
{
    file->handle = -1;
}

long tn_fact_read(const char *root, const char *path, char *text, size_t capacity)
{
    struct tn_fact_file file;
    tn_fact_open(&file, root, path);
    return tn_fact_reread(&file, text, capacity);
}

/* ---- invariants ---- */

static void check(const struct tern_sysinfo *m)
{
    assert(m->n_physical >= 1 && m->n_logical >= 1 && m->n_allowed >= 1);
    assert(m->n_cores >= 1 && m->n_cores <= TERN_MAX_CORES && m->n_cores <= m->n_allowed);
    assert(m->n_kinds >= 1 && m->n_kinds <= TERN_MAX_CPU_KINDS);
    for (uint32_t i = 0; i < m->n_cores; i++)
        assert(m->cores[i].kind < m->n_kinds);
    assert(m->limit_bytes > 0 && m->total_bytes > 0);
    assert(m->limited_by == TERN_BOUND_NONE || m->available_bytes != TERN_UNKNOWN);
    assert(memchr(m->cpu_name, 0, sizeof m->cpu_name) && memchr(m->governor, 0, 24));

    static struct tern_plan plan;
    static const struct tern_plan_model model = {
        .n_ctx = 4096, .file_bytes = 900 << 20, .model_bytes = 1 << 20, .sampler_bytes = 2 << 20,
        .base_bytes = 10 << 20, .thread_bytes = 65536, .position_bytes = 4,
        .kv_block_bytes = {256 * 153600, 256 * 76800, 256 * 39600}};
    static const struct tern_plan_limits limits = {.n_prompt = 100};
    struct tern_error err;
    tern_status status = tern_plan_make(&plan, m, &model, &limits, &err);
    assert(status == TERN_OK || status == TERN_MEMORY);
    if (status == TERN_OK) {
        assert(plan.n_threads_decode >= 1 && plan.n_threads_decode <= TERN_PLAN_MAX_THREADS);
        assert(plan.n_threads_prefill >= 1 && plan.n_threads_prefill <= TERN_PLAN_MAX_THREADS);
        assert(plan.n_ctx >= 116 && plan.n_ctx <= 4096 && plan.max_new_tokens >= 16);
        assert(plan.predicted_anonymous_bytes + plan.reserve_bytes <= plan.available_bytes);
    }
}

static void check_monitor(void)
{
    struct tern_monitor *monitor;
    struct tern_monitor_sample sample;
    struct tern_error err;
    if (tern_monitor_open(&monitor, ".", &err) != TERN_OK)
        return;
    tern_monitor_read(monitor, &sample);
    assert(sample.pressure_centi == TERN_UNKNOWN || sample.pressure_centi <= 10099);
    tern_monitor_close(monitor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct tern_sysinfo machine;
    struct tern_error err;
    split_files((const char *)data, n);
    if (tern_sysinfo_read_root(&machine, ".", &err) == TERN_OK)
        check(&machine);
    check_monitor();
    return 0;
}

#define V2 "@/proc/self/mountinfo\n30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"
#define V1                                                                                         \
    "@/proc/self/mountinfo\n30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"           \
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char *const seeds[] = {
        "@/proc/meminfo\nMemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n"
        "Buffers: 5 kB\nCached: 7 kB\nShmem: 3 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
        V2 "@/proc/self/cgroup\n0::/a/b\n@/sys/fs/cgroup/a/cpu.max\n150000 100000\n"
           "@/sys/fs/cgroup/a/b/memory.max\n2147483648\n"
           "@/sys/fs/cgroup/a/b/memory.high\nmax\n"
           "@/sys/fs/cgroup/a/b/memory.current\n1073741824\n"
           "@/sys/fs/cgroup/a/b/memory.stat\ninactive_file 5\nslab_reclaimable 3\n"
           "@/sys/fs/cgroup/a/cpu.stat\nnr_periods 5\nnr_throttled 1\n",
        V1 "@/proc/self/cgroup\n1:cpu:/a\n2:memory:/a\n"
           "@/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us\n50000\n"
           "@/sys/fs/cgroup/cpu/a/cpu.cfs_period_us\n100000\n"
           "@/sys/fs/cgroup/memory/a/memory.limit_in_bytes\n1073741824\n"
           "@/sys/fs/cgroup/memory/a/memory.usage_in_bytes\n4096\n"
           "@/sys/fs/cgroup/memory/a/memory.stat\ntotal_inactive_file 5\n"
           "hierarchical_memory_limit 9223372036854771712\n",
        "@/process.json\n{\"affinity\":\"0-1,3\",\"rlimit_as\":1073741824,\"vm_size\":5,"
        "\"cpu_features\":[\"avx2\"]}\n@/proc/self/status\nVmSize: 100 kB\nVmData: 50 kB\n"
        "Cpus_allowed_list:\t0-3\n",
        "@/proc/cpuinfo\nprocessor\t: 0\nmodel name\t: Example\nprocessor\t: 1\n"
        "@/proc/pressure/memory\nsome avg10=1.25 avg60=0.00\n"
        "@/proc/sys/vm/overcommit_memory\n0\n"
        "@/sys/kernel/mm/transparent_hugepage/enabled\nalways [madvise] never\n"
        "@/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\npowersave\n",
        "@/sys/devices/system/cpu/online\n0-3,6\n@/sys/class/power_supply/AC/online\n1\n",
        "@/sys/devices/system/cpu/online\n0-2\n"
        "@/sys/devices/system/cpu/cpu0/topology/core_cpus\n00000000,00000003\n"
        "@/sys/devices/system/cpu/cpu0/topology/physical_package_id\n0\n"
        "@/sys/devices/system/cpu/cpu0/cache/index2/level\n3\n"
        "@/sys/devices/system/cpu/cpu0/cache/index2/size\n8M\n"
        "@/sys/devices/system/cpu/cpu1/topology/thread_siblings\n3\n"
        "@/sys/devices/system/cpu/cpu2/cpu_capacity\n512\n"
        "@/sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq\n3400000\n"
        "@/sys/devices/cpu_core/cpus\n0-1\n@/sys/devices/cpu_atom/cpus\n2\n"
        "@/sys/devices/system/node/online\n0\n",
        "@/topology.xml\n<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
        "<object type=\"Machine\" cpuset=\"0x3\" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\" "
        "os_index=\"0\">\n<object type=\"NUMANode\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" os_index=\"0\" "
        "local_memory=\"4096\"/>\n<object type=\"PU\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"3\" os_index=\"0\"/>\n"
        "<object type=\"PU\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"4\" os_index=\"1\"/>\n</object>\n"
        "<cpukind cpuset=\"0x2\" forced_efficiency=\"0\">\n<info name=\"CoreType\" "
        "value=\"IntelAtom\"/>\n</cpukind>\n</topology>\n",
    };
    if (i >= TN_COUNT_OF(seeds) || strlen(seeds[i]) > capacity)
        return 0;
    memcpy(dst, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

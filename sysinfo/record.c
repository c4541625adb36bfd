/* SPDX-License-Identifier: MIT
 *
 * Records this machine so that it can be replayed on another.
 *
 * Nothing is copied that could identify a person or a computer: only selected lines of long files,
 * only selected attributes of hwloc's topology, and control groups under canonical names, each
 * level called "user":
 *
 *   /proc/self/cgroup     0::/user/user            for any position of the group
 *   /proc/self/mountinfo  version 2 at /sys/fs/cgroup, version 1 at /sys/fs/cgroup/cpu and /memory
 */
#include "sysinfo_private.h"

#include "base/error.h"

#if defined(_WIN32) || defined(__APPLE__)

tern_status tern_sysinfo_record(const char *dir, struct tern_error *err)
{
    (void)dir;
    return tn_fail(err, TERN_UNSUPPORTED,
                   "machines are recorded on Linux only: this system has no /proc");
}

#else

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "plat/plat.h"

enum { MAX_COPY_BYTES = 1 << 20 };

struct recorder {
    const char *dir;
    struct tern_error *err;
    char *text; /* [MAX_COPY_BYTES] */
    struct tn_buf buf;
};

/* ---- files ---- */

static tern_status make_dir(struct recorder *r, const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return TERN_OK;
    return tn_fail(r->err, TERN_OUTPUT, "cannot create %s: %s", path, strerror(errno));
}

/* Creates the directory, or checks that it is empty. */
static tern_status make_root(struct recorder *r)
{
    tern_status status = make_dir(r, r->dir);
    if (status != TERN_OK)
        return status;
    DIR *list = opendir(r->dir);
    if (!list)
        return tn_fail(r->err, TERN_OUTPUT, "cannot open %s: %s", r->dir, strerror(errno));
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(list)) != NULL;)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(list);
    if (!empty)
        return tn_fail(r->err, TERN_OUTPUT, "%s is not empty: a recording needs its own directory",
                       r->dir);
    return TERN_OK;
}

/* Writes dir/path, path beginning with "/", and creates missing directories. */
static tern_status put(struct recorder *r, const char *path, const char *text, size_t n)
{
    char full[TN_FACT_PATH_BYTES];
    int n_full = snprintf(full, sizeof full, "%s%s", r->dir, path);
    if (n_full < 0 || (size_t)n_full >= sizeof full)
        return tn_fail(r->err, TERN_OUTPUT, "%s: the path is too long", r->dir);
    tern_status status = TERN_OK;
    for (char *p = full + strlen(r->dir) + 1; status == TERN_OK && (p = strchr(p, '/')); p++) {
        *p = '\0';
        status = make_dir(r, full);
        *p = '/';
    }
    struct tn_file *file;
    if (status == TERN_OK)
        status = tn_file_create(&file, full, r->err);
    if (status != TERN_OK)
        return status;
    status = tn_file_write_at(file, 0, text, n, r->err);
    tn_file_close(file);
    return status;
}

static tern_status put_buf(struct recorder *r, const char *path)
{
    if (r->buf.failed)
        return tn_fail(r->err, TERN_MEMORY, "no memory to record %s", path);
    return put(r, path, r->buf.data, r->buf.n_bytes);
}

/* Copies a file verbatim; skips a missing one. */
static tern_status copy_as(struct recorder *r, const char *from, const char *to)
{
    long n = tn_fact_read("", from, r->text, MAX_COPY_BYTES);
    return n < 0 ? TERN_OK : put(r, to, r->text, (size_t)n);
}

/* Copies the lines that begin with one of the keys. */
static tern_status copy_lines(struct recorder *r, const char *path, const char *const *keys,
                              size_t n_keys)
{
    if (tn_fact_read("", path, r->text, MAX_COPY_BYTES) < 0)
        return TERN_OK;
    tn_buf_clear(&r->buf);
    for (const char *line = r->text; *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        for (size_t i = 0; i < n_keys; i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0)
                tn_buf_append(&r->buf, line, n);
        line += n;
    }
    return put_buf(r, path);
}

/* ---- groups of facts ---- */

/* Copies whole files; the list ends with NULL. */
static tern_status copy_all(struct recorder *r, const char *const *paths)
{
    tern_status status = TERN_OK;
    for (; *paths && status == TERN_OK; paths++)
        status = copy_as(r, *paths, *paths);
    return status;
}

static tern_status record_plain_files(struct recorder *r)
{
    static const char *const paths[] = {
        "/proc/meminfo",
        "/proc/pressure/memory",
        "/proc/sys/vm/overcommit_memory",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        NULL,
    };
    static const char *const cpu_keys[] = {"processor", "vendor_id", "model name",
                                           "CPU implementer", "CPU part"};
    static const char *const status_keys[] = {"VmSize:", "VmData:", "Cpus_allowed_list:"};
    tern_status status = copy_all(r, paths);
    if (status == TERN_OK)
        status = copy_all(r, tn_mains_files);
    if (status == TERN_OK)
        status = copy_all(r, tn_battery_files);
    if (status == TERN_OK)
        status = copy_lines(r, "/proc/cpuinfo", cpu_keys, TN_COUNT_OF(cpu_keys));
    if (status == TERN_OK)
        status = copy_lines(r, "/proc/self/status", status_keys, TN_COUNT_OF(status_keys));
    return status;
}

static const char *const mount_points[TN_N_HIERARCHIES] = {
    "/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"};

/* The files of one group, copied to `to`. */
static tern_status record_group(struct recorder *r, const char *from, const char *to)
{
    static const char *const names[] = {
        "cpu.max",          "cpu.stat",           "cpu.cfs_quota_us",      "cpu.cfs_period_us",
        "memory.max",       "memory.high",        "memory.current",        "memory.stat",
        "memory.limit_in_bytes", "memory.usage_in_bytes"};
    tern_status status = TERN_OK;
    for (size_t i = 0; i < TN_COUNT_OF(names) && status == TERN_OK; i++) {
        char source[1100], target[1100];
        snprintf(source, sizeof source, "%s/%s", from, names[i]);
        snprintf(target, sizeof target, "%s/%s", to, names[i]);
        status = copy_as(r, source, target);
    }
    return status;
}

/* Records one hierarchy: its groups from the process's up to the mount point, and its two lines. */
static tern_status record_hierarchy(struct recorder *r, const struct tn_cgroups *groups,
                                    enum tn_hierarchy h, struct tn_buf *cgroup,
                                    struct tn_buf *mountinfo)
{
    static const char *const controllers[] = {"0:", "1:cpu", "2:memory"};
    static const char *const types[] = {"cgroup2 cgroup2 rw", "cgroup cgroup rw,cpu",
                                        "cgroup cgroup rw,memory"};
    if (groups->at[h].n_mount == 0)
        return TERN_OK;
    uint32_t depth = 0;
    for (const char *p = groups->at[h].group + groups->at[h].n_mount; *p; p++)
        depth += *p == '/';
    tn_buf_printf(cgroup, "%s:%s", controllers[h], depth ? "" : "/");
    for (uint32_t i = 0; i < depth; i++)
        tn_buf_append_text(cgroup, "/user");
    tn_buf_append_text(cgroup, "\n");
    tn_buf_printf(mountinfo, "%d 20 0:%d / %s rw - %s\n", 30 + (int)h, 30 + (int)h, mount_points[h],
                  types[h]);
    tern_status status = TERN_OK;
    char dir[1024] = "";
    for (; status == TERN_OK && tn_cgroups_next(groups, h, dir); depth--) {
        char to[1024];
        int n = snprintf(to, sizeof to, "%s", mount_points[h]);
        for (uint32_t i = 0; i < depth && n + 6 < (int)sizeof to; i++)
            n += snprintf(to + n, sizeof to - (size_t)n, "/user");
        status = record_group(r, dir, to);
    }
    return status;
}

static tern_status record_groups(struct recorder *r)
{
    struct tn_cgroups *groups = tn_alloc(sizeof *groups);
    if (!groups)
        return tn_fail(r->err, TERN_MEMORY, "no memory to record control groups");
    struct tn_buf cgroup = {0}, mountinfo = {0};
    tern_status status = TERN_OK;
    tn_cgroups_find(groups, "");
    for (int h = 0; h < TN_N_HIERARCHIES && status == TERN_OK; h++)
        status = record_hierarchy(r, groups, (enum tn_hierarchy)h, &cgroup, &mountinfo);
    if (status == TERN_OK)
        status = put(r, "/proc/self/cgroup", tn_buf_text(&cgroup), cgroup.n_bytes);
    if (status == TERN_OK)
        status = put(r, "/proc/self/mountinfo", tn_buf_text(&mountinfo), mountinfo.n_bytes);
    tn_buf_fini(&cgroup);
    tn_buf_fini(&mountinfo);
    tn_free(groups);
    return status;
}

static void append_limit(struct tn_buf *buf, const char *key, int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        tn_buf_printf(buf, " \"%s\": null,\n", key);
    else
        tn_buf_printf(buf, " \"%s\": %" PRIu64 ",\n", key, (uint64_t)limit.rlim_cur);
}

static tern_status record_process(struct recorder *r)
{
    struct tern_sysinfo *cpu = tn_alloc_zeroed(1, sizeof *cpu);
    char *affinity = tn_topology_affinity();
    if (!cpu) {
        tn_free(affinity);
        return tn_fail(r->err, TERN_MEMORY, "no memory to record the process");
    }
    tn_cpu_read_live(cpu);
    struct tn_buf *buf = &r->buf;
    tn_buf_clear(buf);
    tn_buf_append_text(buf, "{\n");
    if (affinity)
        tn_buf_printf(buf, " \"affinity\": \"%s\",\n", affinity);
    append_limit(buf, "rlimit_as", RLIMIT_AS);
    append_limit(buf, "rlimit_data", RLIMIT_DATA);
    uint64_t kib = 0;
    if (tn_fact_read("", "/proc/self/status", r->text, MAX_COPY_BYTES) > 0 &&
        tn_fact_line_u64(r->text, "VmSize:", &kib, NULL) && kib < UINT64_MAX / 1024)
        tn_buf_printf(buf, " \"vm_size\": %" PRIu64 ",\n", kib * 1024);
    tn_buf_printf(buf, " \"page_size\": %ld,\n \"cpu_features\": [", sysconf(_SC_PAGESIZE));
    const char *separator = "";
    for (uint32_t i = 0; i < 32; i++)
        if (cpu->cpu_features >> i & 1) {
            tn_buf_printf(buf, "%s\"%s\"", separator, tern_cpu_feature_text(i));
            separator = ", ";
        }
    tn_buf_append_text(buf, "]\n}\n");
    tn_free(affinity);
    tn_free(cpu);
    return put_buf(r, "/process.json");
}

static tern_status record_topology(struct recorder *r)
{
    char *xml = tn_topology_export();
    if (!xml)
        return TERN_OK; /* the replay then counts CPUs */
    tern_status status = put(r, "/topology.xml", xml, strlen(xml));
    tn_free(xml);
    return status;
}

tern_status tern_sysinfo_record(const char *dir, struct tern_error *err)
{
    struct recorder r = {.dir = dir, .err = err, .text = tn_alloc(MAX_COPY_BYTES)};
    if (!r.text)
        return tn_fail(err, TERN_MEMORY, "no memory to record this machine");
    static tern_status (*const parts[])(struct recorder *) = {
        make_root, record_plain_files, record_groups, record_process, record_topology};
    tern_status status = TERN_OK;
    for (size_t i = 0; i < TN_COUNT_OF(parts) && status == TERN_OK; i++)
        status = parts[i](&r);
    tn_buf_fini(&r.buf);
    tn_free(r.text);
    return status == TERN_OK ? tn_ok(err) : status;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * Limits of control groups (containers, services) on this process.
 *
 * Both versions are always read: some hosts mount v2 next to v1, with all controllers in v1.  A
 * limit may be set at any level between the process's group and the mount point; the minimum
 * applies. /proc/self/mountinfo tells where the groups are:
 *
 *   mountinfo:  root /a/b   mount point /sys/fs/cgroup      (the mounted part of the tree)
 *   cgroup:     /a/b/c                                      (the process's position in the tree)
 *   directory:  /sys/fs/cgroup/c, then /sys/fs/cgroup
 *
 * In a cgroup namespace the group may be outside the mounted part: then only the mount point itself
 * can be read.
 */
#include "sysinfo_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

enum { MAX_MOUNTINFO_BYTES = 256 << 10, MAX_CGROUP_BYTES = 16 << 10 };

/* A piece of a line; not NUL-terminated. */
struct span {
    const char *text;
    size_t n;
};

static bool span_is(struct span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.text, text, s.n) == 0;
}

/* The next word up to `separator`, taken from the start of *rest.  False at the end. */
static bool next_word(struct span *rest, char separator, struct span *word)
{
    if (!rest->text)
        return false;
    const char *end = memchr(rest->text, separator, rest->n);
    word->text = rest->text;
    word->n = end ? (size_t)(end - rest->text) : rest->n;
    rest->n -= end ? word->n + 1 : rest->n;
    rest->text = end ? end + 1 : NULL;
    return true;
}

static bool list_has(struct span list, const char *item)
{
    struct span word;
    while (next_word(&list, ',', &word))
        if (span_is(word, item))
            return true;
    return false;
}

/* ---- paths ---- */

/* Whether the n bytes at p begin with an escape of mountinfo, such as \040 for a blank. */
static bool is_escape(const char *p, size_t n)
{
    return n >= 4 && p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
           p[3] >= '0' && p[3] <= '7';
}

/* Copies a path, decoding mountinfo's \040 for blanks.  False if it is too long, not absolute, or
 * contains "..": it must not leave the root. */
static bool copy_path(char out[1024], struct span path)
{
    size_t n = 0;
    for (size_t i = 0; i < path.n; n++) {
        if (n == 1023)
            return false;
        const char *p = path.text + i;
        bool escape = is_escape(p, path.n - i);
        out[n] = p[0];
        if (escape)
            out[n] = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
        i += escape ? 4 : 1;
    }
    while (n > 0 && out[n - 1] == '/')
        n--;
    out[n] = '\0';
    if (n > 0 && out[0] != '/')
        return false;
    for (const char *p = out; (p = strstr(p, "/..")) != NULL; p += 3)
        if (p[3] == '/' || p[3] == '\0')
            return false;
    return true;
}

/* `path` is `prefix` or below it; "" is the top. */
static bool path_below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* ---- finding the groups ---- */

/* The process's path in each hierarchy, from /proc/self/cgroup. */
struct group_paths {
    bool known[TN_N_HIERARCHIES]; /* false: the path contains ".." or is absent; the mount point is
                                   * used */
    char path[TN_N_HIERARCHIES][1024];
};

static void read_group_paths(struct group_paths *out, const char *root)
{
    char *text = tn_alloc(MAX_CGROUP_BYTES);
    if (!text || tn_fact_read(root, "/proc/self/cgroup", text, MAX_CGROUP_BYTES) < 0) {
        tn_free(text);
        return;
    }
    struct span rest = {text, strlen(text)}, line, id, controllers;
    while (next_word(&rest, '\n', &line)) {
        if (!next_word(&line, ':', &id) || !next_word(&line, ':', &controllers) || !line.text)
            continue;
        bool is[TN_N_HIERARCHIES] = {
            [TN_CGROUP_V2] = span_is(id, "0") && controllers.n == 0,
            [TN_CGROUP_V1_CPU] = list_has(controllers, "cpu"),
            [TN_CGROUP_V1_MEMORY] = list_has(controllers, "memory"),
        };
        for (int i = 0; i < TN_N_HIERARCHIES; i++)
            if (is[i] && !out->known[i])
                out->known[i] = copy_path(out->path[i], line);
    }
    tn_free(text);
}

/* The needed fields of a mountinfo line. */
struct mount {
    struct span root, point, type, options;
};

static bool parse_mount(struct span line, struct mount *out)
{
    struct span word, source;
    for (int i = 0; i < 6; i++) {
        if (!next_word(&line, ' ', &word))
            return false;
        if (i == 3)
            out->root = word;
        if (i == 4)
            out->point = word;
    }
    do { /* optional fields end with "-" */
        if (!next_word(&line, ' ', &word))
            return false;
    } while (!span_is(word, "-"));
    return next_word(&line, ' ', &out->type) && next_word(&line, ' ', &source) &&
           next_word(&line, ' ', &out->options);
}

/* Records the directory of the group below this mount.  A mount that shows the group itself takes
 * precedence over one that does not; else the first one does. */
static void use_mount(struct tn_cgroups *out, enum tn_hierarchy h, const struct mount *mount,
                      const struct group_paths *paths, bool exact[TN_N_HIERARCHIES])
{
    char root[1024], point[1024];
    if (exact[h] || !copy_path(point, mount->point))
        return;
    const char *below = "";
    bool shown = paths->known[h] && copy_path(root, mount->root) &&
                 path_below(paths->path[h], root);
    if (shown)
        below = paths->path[h] + strlen(root);
    else if (out->at[h].group[0])
        return;
    if (strlen(point) + strlen(below) >= sizeof out->at[h].group)
        below = "";
    snprintf(out->at[h].group, sizeof out->at[h].group, "%s%s", point, below);
    out->at[h].n_mount = strlen(point);
    exact[h] = shown;
}

void tn_cgroups_find(struct tn_cgroups *out, const char *root)
{
    memset(out, 0, sizeof *out);
    struct group_paths *paths = tn_alloc_zeroed(1, sizeof *paths);
    char *text = tn_alloc(MAX_MOUNTINFO_BYTES);
    if (paths && text &&
        tn_fact_read(root, "/proc/self/mountinfo", text, MAX_MOUNTINFO_BYTES) > 0) {
        read_group_paths(paths, root);
        bool exact[TN_N_HIERARCHIES] = {false};
        struct span rest = {text, strlen(text)}, line;
        struct mount mount;
        while (next_word(&rest, '\n', &line)) {
            if (!parse_mount(line, &mount))
                continue;
            if (span_is(mount.type, "cgroup2"))
                use_mount(out, TN_CGROUP_V2, &mount, paths, exact);
            if (span_is(mount.type, "cgroup") && list_has(mount.options, "cpu"))
                use_mount(out, TN_CGROUP_V1_CPU, &mount, paths, exact);
            if (span_is(mount.type, "cgroup") && list_has(mount.options, "memory"))
                use_mount(out, TN_CGROUP_V1_MEMORY, &mount, paths, exact);
        }
    }
    tn_free(text);
    tn_free(paths);
}

bool tn_cgroups_next(const struct tn_cgroups *groups, enum tn_hierarchy hierarchy, char dir[1024])
{
    size_t n_mount = groups->at[hierarchy].n_mount;
    if (n_mount == 0)
        return false;
    if (dir[0] == '\0') {
        memcpy(dir, groups->at[hierarchy].group, 1024);
        return true;
    }
    char *slash = strrchr(dir, '/');
    if (!slash || (size_t)(slash - dir) < n_mount)
        return false;
    *slash = '\0';
    return true;
}

/* ---- quota ---- */

static uint64_t quota_of(uint64_t quota_us, uint64_t period_us, uint32_t *unreadable)
{
    uint64_t scaled;
    if (quota_us == 0 || period_us == 0) {
        *unreadable |= TERN_FACT_QUOTA;
        return TERN_UNKNOWN;
    }
    if (__builtin_mul_overflow(quota_us, 1000u, &scaled))
        return TERN_UNKNOWN; /* more CPUs than exist */
    return scaled / period_us;
}

static uint64_t quota_v2(const char *root, const char *path, uint32_t *unreadable)
{
    char text[128];
    uint64_t quota_us, period_us;
    if (tn_fact_read(root, path, text, sizeof text) < 0 || tn_fact_is_word(text, "max"))
        return TERN_UNKNOWN;
    const char *p = text;
    if (tn_fact_parse_u64(&p, &quota_us) && tn_fact_whole_u64(p, &period_us))
        return quota_of(quota_us, period_us, unreadable);
    *unreadable |= TERN_FACT_QUOTA;
    return TERN_UNKNOWN;
}

static uint64_t quota_v1(const char *root, const char *dir, uint32_t *unreadable)
{
    char text[128], path[1100];
    uint64_t quota_us, period_us;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (tn_fact_read(root, path, text, sizeof text) < 0 || tn_fact_is_word(text, "-1"))
        return TERN_UNKNOWN;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (tn_fact_whole_u64(text, &quota_us) &&
        tn_fact_file_u64(root, path, &period_us, unreadable, TERN_FACT_QUOTA))
        return quota_of(quota_us, period_us, unreadable);
    *unreadable |= TERN_FACT_QUOTA;
    return TERN_UNKNOWN;
}

uint64_t tn_cgroup_quota(const char *root, const char *dir, bool v2, uint32_t *unreadable)
{
    char path[1100];
    if (!v2)
        return quota_v1(root, dir, unreadable);
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    return quota_v2(root, path, unreadable);
}

void tn_limits_read(struct tern_sysinfo *out, const char *root)
{
    struct tn_cgroups *groups = tn_alloc(sizeof *groups);
    if (!groups)
        return;
    tn_cgroups_find(groups, root);
    for (int h = 0; h < TN_N_HIERARCHIES; h++) {
        char dir[1024] = "";
        while (tn_cgroups_next(groups, (enum tn_hierarchy)h, dir)) {
            bool v2 = h == TN_CGROUP_V2;
            if (h != TN_CGROUP_V1_MEMORY) {
                uint64_t quota = tn_cgroup_quota(root, dir, v2, &out->unreadable);
                out->quota_millicpus = TN_MIN(out->quota_millicpus, quota);
            }
            if (h != TN_CGROUP_V1_CPU)
                tn_cgroup_memory_add(out, root, dir, v2);
        }
    }
    tn_free(groups);
}

/* SPDX-License-Identifier: MIT
 *
 * Functions with which the sources of a topology build it: sets of CPUs, threads, facts about
 * kinds. topo.h has the contracts.
 */
#include "topo.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { MAX_CPUINFO_BYTES = 1 << 20 };

/* ---- sets of CPUs ---- */

/* Parses "3" or "0-3" at the start of *text. */
static bool parse_range(const char **text, struct tn_cpu_set *set)
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
    if (first > last || last > TN_MAX_CPU_INDEX)
        return false;
    for (uint32_t cpu = (uint32_t)first; cpu <= (uint32_t)last; cpu++)
        tn_cpu_set_add(set, cpu);
    return true;
}

bool tn_cpu_set_parse_list(struct tn_cpu_set *set, const char *text)
{
    memset(set, 0, sizeof *set);
    bool ok = parse_range(&text, set);
    while (ok && *text == ',') {
        text++;
        ok = parse_range(&text, set);
    }
    return ok && text[strspn(text, " \t\r\n")] == '\0';
}

/* ---- building a topology ---- */

bool tn_topo_add_pu(struct tn_topo *topo, uint32_t os_index, uint32_t core, bool has_l3)
{
    if (topo->n_pus == TN_MAX_PUS || os_index > TN_MAX_CPU_INDEX)
        return false;
    topo->pus[topo->n_pus++] =
        (struct tn_topo_pu){os_index, core, TN_NO_KIND, true, true, has_l3};
    topo->n_cores = TN_MAX(topo->n_cores, core + 1);
    return true;
}

void tn_topo_set_kind_info(struct tn_topo_kind *kind, const char *name, const char *value)
{
    uint64_t number;
    if (strcmp(name, "CoreType") == 0) {
        snprintf(kind->core_type, sizeof kind->core_type, "%s", value);
        tn_utf8_make_printable(kind->core_type);
    } else if (!tn_fact_whole_u64(value, &number) || number == 0 || number > 1000000) {
        return;
    } else if (strcmp(name, "FrequencyMaxMHz") == 0) {
        kind->max_mhz = (uint32_t)number;
    } else if (strcmp(name, "LinuxCapacity") == 0) {
        kind->linux_capacity = (uint32_t)number;
    }
}

static bool read_online_list(const char *root, struct tn_cpu_set *online)
{
    char text[4096];
    return tn_fact_read(root, "/sys/devices/system/cpu/online", text, sizeof text) >= 0 &&
           tn_cpu_set_parse_list(online, text);
}

bool tn_topo_read_online(const char *root, struct tn_cpu_set *online)
{
    if (read_online_list(root, online))
        return true;
    memset(online, 0, sizeof *online);
    char *text = tn_alloc(MAX_CPUINFO_BYTES);
    uint32_t n = 0;
    if (text && tn_fact_read(root, "/proc/cpuinfo", text, MAX_CPUINFO_BYTES) > 0)
        for (const char *line = text; line && n <= TN_MAX_CPU_INDEX; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (strncmp(line, "processor", 9) == 0 && strchr(" \t:", line[9]) != NULL)
                tn_cpu_set_add(online, n++);
        }
    tn_free(text);
    return n > 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Processors that are not available here, as hwloc XML generated from short descriptions: the cores
 * found, their kinds, and the resulting number of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "tern/plan.h"
#include "tern/sysinfo.h"

#if defined(_WIN32)
#include <direct.h>
#define make_dir(path) _mkdir(path)
#else
#include <sys/stat.h>
#define make_dir(path) mkdir(path, 0777)
#endif

/* Equal cores. Groups of one package are consecutive; an equal l3 (not 0) is shared. */
struct group {
    uint32_t n_cores, smt;
    uint32_t package, l3;
    const char *type;
    uint32_t mhz, capacity;
};

enum { NO_CORES = 1, SIBLINGS_LAST = 2, SPARSE = 4, NO_MEMORY = 8 };

struct machine {
    const char *name;
    struct group groups[4];
    uint32_t flags;
    const char *allowed;  /* cpuset of a control group; NULL: all */
    const char *affinity; /* mask of the process; NULL: all */
    /* expected */
    uint32_t n_physical, n_logical, n_allowed, n_kinds, n_decode, n_prefill;
};

#define P "IntelCore"
#define E "IntelAtom"
/* Cores described by their position only. */
#define CORES(n_cores, smt, package, l3) {n_cores, smt, package, l3, NULL, 0, 0}

static const struct machine machines[] = {
    {"1 CPU", {CORES(1, 1, 0, 0)}, 0, NULL, NULL, 1, 1, 1, 1, 1, 1},
    {"2 cores", {CORES(2, 1, 0, 1)}, 0, NULL, NULL, 2, 2, 2, 1, 2, 2},
    {"4 cores, SMT", {CORES(4, 2, 0, 1)}, 0, NULL, NULL, 4, 8, 4, 1, 4, 4},
    {"4 cores, SMT, siblings last", {CORES(4, 2, 0, 1)}, SIBLINGS_LAST, NULL, NULL, 4, 8, 4, 1,
     4, 4},
    {"8 cores, SMT off", {CORES(8, 1, 0, 1)}, 0, NULL, NULL, 8, 8, 8, 1, 8, 8},
    {"4-way SMT", {CORES(10, 4, 0, 0)}, 0, NULL, NULL, 10, 40, 10, 1, 10, 10},
    {"two sockets", {CORES(16, 2, 0, 1), CORES(16, 2, 1, 2)}, 0, NULL, NULL, 32, 64, 32, 1, 32, 32},
    {"two sockets, one without memory", {CORES(4, 1, 0, 1), CORES(4, 1, 1, 2)}, NO_MEMORY, NULL,
     NULL, 8, 8, 8, 1, 8, 8},
    {"256 CPUs", {CORES(64, 2, 0, 1), CORES(64, 2, 1, 2)}, 0, NULL, NULL, 128, 256, 128, 1, 128,
     128},
    {"320 cores: more than threads", {CORES(160, 1, 0, 1), CORES(160, 1, 1, 2)}, 0, NULL, NULL, 320,
     320, 320, 1, 256, 256},
    {"no core objects", {CORES(4, 1, 0, 0)}, NO_CORES, NULL, NULL, 4, 4, 4, 1, 4, 4},
    {"no core objects, affinity", {CORES(4, 1, 0, 0)}, NO_CORES, NULL, "1,3", 4, 4, 2, 1, 2, 2},
    {"sparse numbers", {CORES(4, 2, 0, 0)}, SPARSE, NULL, NULL, 4, 8, 4, 1, 4, 4},
    {"sparse numbers, affinity", {CORES(4, 1, 0, 0)}, SPARSE, NULL, "0,6", 4, 4, 2, 1, 2, 2},

    {"cpuset of 2 cores", {CORES(8, 1, 0, 1)}, 0, "2-3", NULL, 8, 8, 2, 1, 2, 2},
    {"cpuset cuts through cores", {CORES(4, 2, 0, 1)}, 0, "1-2,7", NULL, 4, 8, 3, 1, 3, 3},
    {"affinity of 2 CPUs", {CORES(8, 1, 0, 1)}, 0, NULL, "0-1", 8, 8, 2, 1, 2, 2},
    {"affinity of one core's siblings", {CORES(4, 2, 0, 1)}, 0, NULL, "4-5", 4, 8, 1, 1, 1, 1},
    {"cpuset and affinity", {CORES(8, 1, 0, 1)}, 0, "0-3", "2-7", 8, 8, 2, 1, 2, 2},
    {"cpuset and affinity apart", {CORES(8, 1, 0, 1)}, 0, "0-3", "4-7", 8, 8, 4, 1, 4, 4},

    {"6 P with SMT, 8 E of half the speed", {{6, 2, 0, 1, P, 5000, 1024},
     {8, 1, 0, 1, E, 3800, 512}}, 0, NULL, NULL, 14, 20, 14, 2, 6, 14},
    {"8 P, 12 E, no SMT", {{8, 1, 0, 1, P, 5500, 1024}, {12, 1, 0, 1, E, 4600, 512}}, 0, NULL,
     NULL, 20, 20, 20, 2, 8, 20},
    {"8 P, 12 E, speed only by type and frequency", {{8, 1, 0, 1, P, 5500, 0},
     {12, 1, 0, 1, E, 4600, 0}}, 0, NULL, NULL, 20, 20, 20, 2, 8, 20},
    {"6 P, 8 E, 2 low-power E", {{6, 2, 0, 1, P, 4800, 0}, {8, 1, 0, 1, E, 3800, 0},
     {2, 1, 0, 0, E, 2500, 0}}, 0, NULL, NULL, 16, 22, 16, 3, 6, 14},
    {"low-power E as fast as E", {{4, 1, 0, 1, P, 4800, 1024}, {4, 1, 0, 1, E, 4700, 900},
     {2, 1, 0, 0, E, 4700, 900}}, 0, NULL, NULL, 10, 10, 10, 3, 8, 8},
    {"4 E, alone without a big cache", {{4, 1, 0, 0, E, 3400, 0}}, 0, NULL, NULL, 4, 4, 4, 1, 4, 4},
    {"hybrid, affinity to E cores", {{6, 2, 0, 1, P, 5000, 1024}, {8, 1, 0, 1, E, 3800, 512}}, 0,
     NULL, "12-19", 14, 20, 8, 2, 8, 8},
    {"hybrid, affinity to low-power cores", {{6, 2, 0, 1, P, 4800, 0}, {8, 1, 0, 1, E, 3800, 0},
     {2, 1, 0, 0, E, 2500, 0}}, 0, NULL, "20-21", 16, 22, 2, 3, 2, 2},
    {"hybrid, 2 P and 4 E allowed", {{6, 2, 0, 1, P, 5000, 1024}, {8, 1, 0, 1, E, 3800, 512}}, 0,
     "0-3,12-15", NULL, 14, 20, 6, 2, 2, 6},
    {"cores that turbo differently", {{2, 2, 0, 1, "", 5800, 0}, {6, 2, 0, 1, "", 5500, 0}}, 0,
     NULL, NULL, 8, 16, 8, 1, 8, 8},
    {"compact cores of 3/4 the frequency", {{4, 2, 0, 1, "", 5000, 0}, {8, 2, 0, 1, "", 3700, 0}},
     0, NULL, NULL, 12, 24, 12, 2, 12, 12},
    {"big.LITTLE 2+4", {{2, 1, 0, 0, "", 0, 1024}, {4, 1, 0, 0, "", 0, 446}}, 0, NULL, NULL, 6, 6,
     6, 2, 2, 6},
    {"1 prime, 3 big, 4 little", {{1, 1, 0, 1, "", 0, 1024}, {3, 1, 0, 1, "", 0, 870},
     {4, 1, 0, 1, "", 0, 250}}, 0, NULL, NULL, 8, 8, 8, 3, 4, 8},
    {"ranks only", {{4, 1, 0, 1, "", 0, 0}, {4, 1, 0, 1, "", 0, 0}}, 0, NULL, NULL, 8, 8, 8, 2, 4,
     8},
};

/* ---- XML ---- */

enum { MAX_CPUS = 1024 };

struct set {
    uint32_t words[MAX_CPUS / 32];
};

static void set_add(struct set *set, uint32_t cpu)
{
    assert_true(cpu < MAX_CPUS);
    set->words[cpu / 32] |= 1u << cpu % 32;
}

static void set_merge(struct set *set, const struct set *other)
{
    for (size_t i = 0; i < TN_COUNT_OF(set->words); i++)
        set->words[i] |= other->words[i];
}

static void write_set(FILE *f, const char *name, const struct set *set)
{
    size_t top = TN_COUNT_OF(set->words) - 1;
    while (top > 0 && set->words[top] == 0)
        top--;
    fprintf(f, " %s=\"0x%08x", name, set->words[top]);
    while (top-- > 0)
        fprintf(f, ",0x%08x", set->words[top]);
    fprintf(f, "\"");
}

/* Opens an object; `nodes` is the mask of its memory nodes. */
static void write_object(FILE *f, const char *type, const struct set *set, uint32_t nodes)
{
    static uint32_t gp_index = 1;
    fprintf(f, "<object type=\"%s\"", type);
    write_set(f, "cpuset", set);
    write_set(f, "complete_cpuset", set);
    fprintf(f, " nodeset=\"0x%08x\" complete_nodeset=\"0x%08x\" gp_index=\"%u\"", nodes, nodes,
            gp_index++);
}

/* CPU number of a core's thread; `core` counts over all groups. */
static uint32_t cpu_number(const struct machine *m, uint32_t core, uint32_t thread)
{
    uint32_t i, first = 0, n_all = 0;
    for (i = 0; i < TN_COUNT_OF(m->groups); i++)
        n_all += m->groups[i].n_cores;
    uint32_t number;
    if (m->flags & SIBLINGS_LAST) {
        number = core + thread * n_all;
    } else {
        uint32_t skipped = core;
        for (i = 0; skipped >= m->groups[i].n_cores; i++) {
            skipped -= m->groups[i].n_cores;
            first += m->groups[i].n_cores * m->groups[i].smt;
        }
        number = first + skipped * m->groups[i].smt + thread;
    }
    return m->flags & SPARSE ? number * 2 : number;
}

static uint32_t first_core(const struct machine *m, uint32_t group)
{
    uint32_t core = 0;
    for (uint32_t i = 0; i < group; i++)
        core += m->groups[i].n_cores;
    return core;
}

static struct set core_set(const struct machine *m, uint32_t group, uint32_t core)
{
    struct set set = {{0}};
    for (uint32_t t = 0; t < m->groups[group].smt; t++)
        set_add(&set, cpu_number(m, first_core(m, group) + core, t));
    return set;
}

static struct set group_set(const struct machine *m, uint32_t group)
{
    struct set all = {{0}};
    for (uint32_t core = 0; core < m->groups[group].n_cores; core++) {
        struct set one = core_set(m, group, core);
        set_merge(&all, &one);
    }
    return all;
}

/* All groups of a package, or with l3 those that share this cache. */
static struct set shared_set(const struct machine *m, uint32_t package, uint32_t l3)
{
    struct set all = {{0}};
    for (uint32_t g = 0; g < TN_COUNT_OF(m->groups); g++)
        if (m->groups[g].package == package && (l3 == 0 || m->groups[g].l3 == l3)) {
            struct set one = group_set(m, g);
            set_merge(&all, &one);
        }
    return all;
}

static void write_core(FILE *f, const struct machine *m, uint32_t group, uint32_t core)
{
    struct set set = core_set(m, group, core);
    uint32_t node = 1u << m->groups[group].package;
    if (!(m->flags & NO_CORES)) {
        write_object(f, "Core", &set, node);
        fprintf(f, " os_index=\"%u\">\n", first_core(m, group) + core);
    }
    for (uint32_t t = 0; t < m->groups[group].smt; t++) {
        struct set pu = {{0}};
        uint32_t cpu = cpu_number(m, first_core(m, group) + core, t);
        set_add(&pu, cpu);
        write_object(f, "PU", &pu, node);
        fprintf(f, " os_index=\"%u\"/>\n", cpu);
    }
    if (!(m->flags & NO_CORES))
        fprintf(f, "</object>\n");
}

static void write_package(FILE *f, const struct machine *m, uint32_t package)
{
    struct set set = shared_set(m, package, 0);
    bool empty_node = m->flags & NO_MEMORY && package == 1;
    write_object(f, "Package", &set, 1u << package);
    fprintf(f, " os_index=\"%u\">\n", package);
    write_object(f, "NUMANode", &set, 1u << package);
    fprintf(f, " os_index=\"%u\" local_memory=\"%s\"/>\n", package,
            empty_node ? "0" : "8589934592");
    uint32_t open_l3 = 0;
    for (uint32_t g = 0; g < TN_COUNT_OF(m->groups); g++) {
        const struct group *group = &m->groups[g];
        if (group->package != package || group->n_cores == 0)
            continue;
        if (open_l3 && group->l3 != open_l3)
            fprintf(f, "</object>\n");
        if (group->l3 && group->l3 != open_l3) {
            struct set shared = shared_set(m, package, group->l3);
            write_object(f, "L3Cache", &shared, 1u << package);
            fprintf(f, " cache_size=\"16777216\" depth=\"3\" cache_linesize=\"64\" "
                       "cache_associativity=\"0\" cache_type=\"0\">\n");
        }
        open_l3 = group->l3;
        for (uint32_t core = 0; core < group->n_cores; core++)
            write_core(f, m, g, core);
    }
    fprintf(f, "%s</object>\n", open_l3 ? "</object>\n" : "");
}

static struct set list_set(const char *list)
{
    struct set set = {{0}};
    while (*list) {
        uint32_t bounds[2] = {0};
        for (int i = 0; i < 2; i++) {
            for (; *list >= '0' && *list <= '9'; list++)
                bounds[i] = bounds[i] * 10 + (uint32_t)(*list - '0');
            if (i == 0 && *list == '-')
                list++;
            else if (i == 0) {
                bounds[1] = bounds[0];
                break;
            }
        }
        for (uint32_t cpu = bounds[0]; cpu <= bounds[1]; cpu++)
            set_add(&set, cpu);
        list += *list == ',';
    }
    return set;
}

static void write_kind(FILE *f, const struct machine *m, uint32_t g, uint32_t rank)
{
    const struct group *group = &m->groups[g];
    struct set set = group_set(m, g);
    fprintf(f, "<cpukind");
    write_set(f, "cpuset", &set);
    fprintf(f, " forced_efficiency=\"%u\">\n", rank);
    if (group->type[0])
        fprintf(f, "<info name=\"CoreType\" value=\"%s\"/>\n", group->type);
    if (group->mhz)
        fprintf(f, "<info name=\"FrequencyMaxMHz\" value=\"%u\"/>\n", group->mhz);
    if (group->capacity)
        fprintf(f, "<info name=\"LinuxCapacity\" value=\"%u\"/>\n", group->capacity);
    fprintf(f, "</cpukind>\n");
}

static void write_topology(FILE *f, const struct machine *m)
{
    struct set all = {{0}};
    uint32_t n_packages = 0;
    for (uint32_t g = 0; g < TN_COUNT_OF(m->groups); g++) {
        struct set one = group_set(m, g);
        set_merge(&all, &one);
        n_packages = TN_MAX(n_packages, m->groups[g].package + 1);
    }
    struct set allowed = m->allowed ? list_set(m->allowed) : all;
    uint32_t nodes = (1u << n_packages) - 1;
    fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
               "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n");
    write_object(f, "Machine", &all, nodes);
    write_set(f, "allowed_cpuset", &allowed);
    fprintf(f, " allowed_nodeset=\"0x%08x\" os_index=\"0\">\n", nodes);
    for (uint32_t package = 0; package < n_packages; package++)
        write_package(f, m, package);
    fprintf(f, "</object>\n");
    for (uint32_t g = 0; g < TN_COUNT_OF(m->groups); g++)
        if (m->groups[g].type && m->groups[g].n_cores)
            write_kind(f, m, g, 3 - g);
    fprintf(f, "</topology>\n");
}

/* ---- the test ---- */

static const char root[] = TERN_BUILD_DIR "/test_topologies.root";

static FILE *create(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    return f;
}

static void check_machine(void **state)
{
    const struct machine *m = *state;
    static struct tern_sysinfo found;
    static struct tern_plan plan;
    struct tern_error err;

    make_dir(root);
    FILE *f = create("topology.xml");
    write_topology(f, m);
    fclose(f);
    f = create("process.json");
    if (m->affinity)
        fprintf(f, "{\"affinity\": \"%s\"}\n", m->affinity);
    else
        fprintf(f, "{}\n");
    fclose(f);

    assert_int_equal(tern_sysinfo_read_root(&found, root, &err), TERN_OK);
    assert_int_equal(found.unreadable & TERN_FACT_TOPOLOGY, 0);
    assert_int_equal(tern_plan_make(&plan, &found, NULL, NULL, &err), TERN_OK);
    assert_int_equal(found.n_physical, m->n_physical);
    assert_int_equal(found.n_logical, m->n_logical);
    assert_int_equal(found.n_allowed, m->n_allowed);
    assert_int_equal(found.n_kinds, m->n_kinds);
    assert_int_equal(plan.n_threads_decode, m->n_decode);
    assert_int_equal(plan.n_threads_prefill, m->n_prefill);

    uint32_t n_by_kind = 0, n_allowed_by_kind = 0;
    for (uint32_t i = 0; i < found.n_kinds; i++) {
        n_by_kind += found.kinds[i].n_cores;
        n_allowed_by_kind += found.kinds[i].n_allowed;
    }
    assert_int_equal(n_by_kind, found.n_physical);
    assert_int_equal(n_allowed_by_kind, found.n_allowed);
    assert_int_equal(found.kinds[0].capacity, 1024);
    assert_int_equal(found.n_cores, found.n_allowed);
    for (uint32_t i = 1; i < found.n_cores; i++)
        assert_true(found.cores[i - 1].kind <= found.cores[i].kind);
}

/* The recorded CPUs of the cores are the first usable thread of each. */
static void cores_are_named_by_a_usable_thread(void **state)
{
    (void)state;
    static const struct machine m = {"", {CORES(4, 2, 0, 1)}, 0, "1-2,7", NULL, 0, 0, 0, 0, 0, 0};
    static struct tern_sysinfo found;
    struct tern_error err;
    make_dir(root);
    FILE *f = create("topology.xml");
    write_topology(f, &m);
    fclose(f);
    f = create("process.json");
    fprintf(f, "{}\n");
    fclose(f);
    assert_int_equal(tern_sysinfo_read_root(&found, root, &err), TERN_OK);
    assert_int_equal(found.n_cores, 3);
    assert_int_equal(found.cores[0].os_cpu, 1);
    assert_int_equal(found.cores[1].os_cpu, 2);
    assert_int_equal(found.cores[2].os_cpu, 7);
    assert_int_equal(found.n_allowed_logical, 3);
    assert_true(found.limited_by_cpuset);
    assert_false(found.limited_by_affinity);
    assert_int_equal(found.cache_bytes[2], 16777216);
}

int main(void)
{
    enum { N = TN_COUNT_OF(machines) };
    static struct CMUnitTest tests[N + 1];
    assert_true(N >= 25);
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){machines[i].name, check_machine, NULL, NULL,
                                       (void *)&machines[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(cores_are_named_by_a_usable_thread);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

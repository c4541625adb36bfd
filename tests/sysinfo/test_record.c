/* SPDX-License-Identifier: MIT
 *
 * The live machine: the readings are plausible, fast, and the same after recording and replaying.
 */
#if defined(__linux__)
#include <ftw.h>
#include <unistd.h>
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "plat/plat.h"
#include "tern/plan.h"
#include "tern/sysinfo.h"

static struct tern_sysinfo live;
static struct tern_error err;

static void live_machine_is_plausible(void **state)
{
    (void)state;
    uint64_t start = tn_now_ns();
    tern_sysinfo_read(&live);
    uint64_t took = tn_now_ns() - start;
    print_message("probe took %.1f ms\n", (double)took / 1e6);
    assert_true(live.n_allowed >= 1 && live.n_allowed <= live.n_physical);
    assert_true(live.n_physical <= live.n_logical);
    assert_int_equal(live.n_cores, live.n_allowed <= TERN_MAX_CORES ? live.n_allowed
                                                                     : TERN_MAX_CORES);
    assert_true(live.available_bytes <= live.total_bytes);
    assert_true(live.total_bytes != TERN_UNKNOWN && live.available_bytes > 0);
    assert_true(live.page_bytes >= 4096 && live.page_bytes != TERN_UNKNOWN);
    assert_true(live.limited_by != TERN_BOUND_NONE);
    assert_int_equal(live.unreadable, 0);
}

#if defined(__linux__)

static const char dir[] = TERN_BUILD_DIR "/test_record.root";
static char host[256];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static int check_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    static char text[1 << 20];
    (void)st;
    (void)ftw;
    if (kind != FTW_F)
        return 0;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    static const char *const banned[] = {"HostName", "Serial", "serial", "DMI", "ProcessName",
                                         "OSVersion", "user.slice", "docker"};
    for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++)
        if (strstr(text, banned[i]))
            fail_msg("%s contains %s", path, banned[i]);
    if (strlen(host) > 3 && strstr(text, host))
        fail_msg("%s contains the host name", path);
    return 0;
}

static void replay_equals_the_machine(void **state)
{
    (void)state;
    static struct tern_sysinfo replayed;
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    gethostname(host, sizeof host - 1);
    assert_int_equal(tern_sysinfo_record(dir, &err), TERN_OK);
    assert_int_equal(nftw(dir, check_entry, 16, FTW_PHYS), 0);
    assert_int_equal(tern_sysinfo_read_root(&replayed, dir, &err), TERN_OK);

    assert_string_equal(replayed.cpu_name, live.cpu_name);
    assert_int_equal(replayed.cpu_features, live.cpu_features);
    assert_int_equal(replayed.n_physical, live.n_physical);
    assert_int_equal(replayed.n_logical, live.n_logical);
    assert_int_equal(replayed.n_allowed, live.n_allowed);
    assert_int_equal(replayed.n_kinds, live.n_kinds);
    assert_memory_equal(replayed.kinds, live.kinds, sizeof live.kinds);
    assert_memory_equal(replayed.cores, live.cores, live.n_cores * sizeof live.cores[0]);
    assert_memory_equal(replayed.cache_bytes, live.cache_bytes, sizeof live.cache_bytes);
    assert_int_equal(replayed.quota_millicpus, live.quota_millicpus);
    assert_int_equal(replayed.limit_bytes, live.limit_bytes);
    assert_int_equal(replayed.total_bytes, live.total_bytes);
    assert_int_equal(replayed.limited_by, live.limited_by);
    assert_int_equal(replayed.page_bytes, live.page_bytes);
    assert_int_equal(replayed.power, live.power);
    assert_int_equal(replayed.huge_pages, live.huge_pages);
    assert_int_equal(replayed.overcommit_mode, live.overcommit_mode);
    assert_int_equal(replayed.unreadable, 0);
    assert_false(replayed.binding_works); /* the cores are not ours */
    /* A second recording must not mix with the first. */
    assert_int_equal(tern_sysinfo_record(dir, &err), TERN_OUTPUT);
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void invalid_paths_are_errors(void **state)
{
    (void)state;
    assert_int_equal(tern_sysinfo_record("/proc/no-such-place/x", &err), TERN_OUTPUT);
    assert_int_equal(tern_sysinfo_record("/dev/null", &err), TERN_OUTPUT);
}

#else

static void replay_equals_the_machine(void **state)
{
    (void)state;
    assert_int_equal(tern_sysinfo_record("anywhere", &err), TERN_UNSUPPORTED);
}

static void invalid_paths_are_errors(void **state)
{
    (void)state;
    skip(); /* nothing is recorded here */
}

#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_machine_is_plausible),
        cmocka_unit_test(replay_equals_the_machine),
        cmocka_unit_test(invalid_paths_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Changes during a run: the monitor rereads files, the watch decides.
 *
 * Samples are injected or written to a scratch folder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "failing_alloc.h"
#include "sysinfo/sysinfo_private.h"
#include "tern/plan.h"

#if defined(_WIN32)
#include <direct.h>
#define make_dir(path) _mkdir(path)
#else
#include <sys/stat.h>
#define make_dir(path) mkdir(path, 0777)
#endif

#define MIB ((uint64_t)1 << 20)
#define SECOND 1000000000ull

static const char root[] = TERN_BUILD_DIR "/test_watch.root";
static struct tern_error err;

static void put(const char *path, const char *text)
{
    char full[1024];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + sizeof root; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        make_dir(full);
        *p = '/';
    }
    FILE *f = fopen(full, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_available(uint64_t mib)
{
    char text[128];
    snprintf(text, sizeof text, "MemTotal: 8388608 kB\nMemAvailable: %llu kB\n",
             (unsigned long long)mib * 1024);
    put("proc/meminfo", text);
}

static int set_up(void **state)
{
    (void)state;
    make_dir(root);
    put_available(4096);
    put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("sys/fs/cgroup/a/memory.max", "3221225472\n");
    put("sys/fs/cgroup/a/memory.current", "1073741824\n");
    put("sys/fs/cgroup/a/memory.stat", "inactive_file 0\nactive_file 0\n");
    put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/a/cpu.stat", "nr_periods 100\nnr_throttled 5\n");
    put("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
    put("sys/fs/cgroup/a/b/cpu.stat", "nr_periods 0\nnr_throttled 0\n");
    return 0;
}

/* A plan in which only the reserve matters. */
static struct tern_watch *watch_with_reserve(uint64_t reserve)
{
    static struct tern_plan plan;
    plan.reserve_bytes = reserve;
    struct tern_watch *watch;
    assert_int_equal(tern_watch_create(&watch, &plan, root, &err), TERN_OK);
    return watch;
}

static void monitor_follows_the_files(void **state)
{
    (void)state;
    struct tern_monitor *monitor;
    struct tern_monitor_sample sample;
    assert_int_equal(tern_monitor_open(&monitor, root, &err), TERN_OK);
    tern_monitor_read(monitor, &sample);
    assert_int_equal(sample.available_bytes, 2048 * MIB); /* the group's */
    assert_int_equal(sample.n_periods, 100);
    assert_int_equal(sample.n_throttled, 5);
    assert_int_equal(sample.pressure_centi, 0);
    put("sys/fs/cgroup/a/memory.current", "2147483648\n");
    put("sys/fs/cgroup/a/cpu.stat", "nr_periods 120\nnr_throttled 25\n");
    put("proc/pressure/memory", "some avg10=11.25 avg60=0.00 avg300=0.00 total=0\n");
    tern_monitor_read(monitor, &sample);
    assert_int_equal(sample.available_bytes, 1024 * MIB);
    assert_int_equal(sample.n_throttled, 25);
    assert_int_equal(sample.pressure_centi, 1125);
    put_available(512);
    tern_monitor_read(monitor, &sample);
    assert_int_equal(sample.available_bytes, 512 * MIB);
    put("proc/meminfo", "garbage");
    put("sys/fs/cgroup/a/memory.current", "garbage");
    put("sys/fs/cgroup/a/cpu.stat", "");
    put("proc/pressure/memory", "");
    tern_monitor_read(monitor, &sample);
    assert_int_equal(sample.available_bytes, 3072 * MIB); /* the limit still applies */
    assert_int_equal(sample.n_periods, TERN_UNKNOWN);
    assert_int_equal(sample.pressure_centi, TERN_UNKNOWN);
    tern_monitor_close(monitor);
}

static void looking_allocates_nothing(void **state)
{
    (void)state;
    struct tern_watch *watch = watch_with_reserve(100 * MIB);
    fail_alloc_after(0);
    assert_int_equal(tern_watch_poll(watch, SECOND), TERN_WATCH_NONE);
    assert_true(tern_watch_may_grow(watch, MIB));
    assert_false(fail_alloc_stop());
    tern_watch_free(watch);
}

static void growth_keeps_half_of_the_reserve(void **state)
{
    (void)state;
    struct tern_watch *watch = watch_with_reserve(200 * MIB);
    put_available(300);
    assert_true(tern_watch_may_grow(watch, 200 * MIB));
    assert_false(tern_watch_may_grow(watch, 200 * MIB + 1));
    put_available(99);
    assert_false(tern_watch_may_grow(watch, 0));
    /* A refusal alone changes nothing: memory may become available again. */
    put_available(300);
    assert_true(tern_watch_may_grow(watch, 200 * MIB));
    tern_watch_free(watch);
}

static void looks_every_two_seconds(void **state)
{
    (void)state;
    struct tern_watch *watch = watch_with_reserve(200 * MIB);
    assert_int_equal(tern_watch_poll(watch, 10 * SECOND), TERN_WATCH_NONE);
    put_available(50);
    assert_int_equal(tern_watch_poll(watch, 12 * SECOND - 1), TERN_WATCH_NONE);
    assert_int_equal(tern_watch_poll(watch, 12 * SECOND), TERN_WATCH_SHORT);
    /* After a shortage growth stays off. */
    put_available(4096);
    assert_false(tern_watch_may_grow(watch, 1));
    tern_watch_free(watch);
}

static void pressure_stops_growth(void **state)
{
    (void)state;
    struct tern_watch *watch = watch_with_reserve(0);
    put("proc/pressure/memory", "some avg10=10.01 avg60=0.00 avg300=0.00 total=0\n");
    assert_false(tern_watch_may_grow(watch, 1));
    assert_int_equal(tern_watch_poll(watch, SECOND), TERN_WATCH_SHORT);
    tern_watch_free(watch);
    /* Pressure from before the run does not prevent it. */
    watch = watch_with_reserve(0);
    assert_true(tern_watch_may_grow(watch, 1));
    assert_int_equal(tern_watch_poll(watch, SECOND), TERN_WATCH_NONE);
    tern_watch_free(watch);
}

static struct tern_monitor_sample sample_of(uint64_t n_periods, uint64_t n_throttled)
{
    return (struct tern_monitor_sample){TERN_UNKNOWN, n_periods, n_throttled, TERN_UNKNOWN, 0};
}

static void throttling_takes_a_thread(void **state)
{
    (void)state;
    struct tern_watch *watch = watch_with_reserve(0); /* 100 periods, 5 throttled */
    struct tern_monitor_sample sample = sample_of(120, 7);
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_NONE); /* 10 % exactly */
    sample = sample_of(140, 10);
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_SLOWER); /* 15 % */
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_NONE);   /* no change */
    sample = sample_of(TERN_UNKNOWN, TERN_UNKNOWN);
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_NONE);
    sample = sample_of(10, 10); /* counters that decreased are ignored */
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_NONE);
    tern_watch_free(watch);
}

static void systems_may_send_events(void **state)
{
    (void)state;
    struct tern_watch *watch = watch_with_reserve(100 * MIB);
    struct tern_monitor_sample sample = sample_of(TERN_UNKNOWN, TERN_UNKNOWN);
    sample.pressure_level = 1;
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_NONE);
    sample.pressure_level = 2;
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_SHORT);
    assert_false(tern_watch_may_grow(watch, 1));
    tern_watch_free(watch);
    watch = watch_with_reserve(100 * MIB);
    sample.pressure_level = 0;
    sample.available_bytes = 50 * MIB - 1;
    assert_int_equal(tern_watch_inject(watch, &sample), TERN_WATCH_SHORT);
    tern_watch_free(watch);
}

/* The limit of a Windows job is reduced by the use of all its processes. */
static void a_job_limits_the_memory(void **state)
{
    (void)state;
    static const struct {
        struct tn_job_memory job;
        uint64_t left;
    } list[] = {
        {{TERN_UNKNOWN, 5 * MIB, TERN_UNKNOWN, 7 * MIB}, TERN_UNKNOWN},
        {{100 * MIB, 30 * MIB, TERN_UNKNOWN, 90 * MIB}, 70 * MIB},
        {{TERN_UNKNOWN, 30 * MIB, 100 * MIB, 90 * MIB}, 10 * MIB},
        {{TERN_UNKNOWN, 30 * MIB, 100 * MIB, 0}, 70 * MIB}, /* unknown to the system */
        {{50 * MIB, 45 * MIB, 100 * MIB, 60 * MIB}, 5 * MIB},
        {{100 * MIB, 10 * MIB, 100 * MIB, 120 * MIB}, 0},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        assert_int_equal(tn_job_memory_left(&list[i].job), list[i].left);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_limits_the_memory),
        cmocka_unit_test_setup(monitor_follows_the_files, set_up),
        cmocka_unit_test_setup(looking_allocates_nothing, set_up),
        cmocka_unit_test_setup(growth_keeps_half_of_the_reserve, set_up),
        cmocka_unit_test_setup(looks_every_two_seconds, set_up),
        cmocka_unit_test_setup(pressure_stops_growth, set_up),
        cmocka_unit_test_setup(throttling_takes_a_thread, set_up),
        cmocka_unit_test_setup(systems_may_send_events, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

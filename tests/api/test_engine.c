/* SPDX-License-Identifier: MIT
 *
 * Engines are created from a description of the machine alone: the environment and the machine are
 * not accessed, so many threads may create engines at once (also run this under ThreadSanitizer).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "plat/plat.h"
#include "tern/tern.h"

enum { N_THREADS = 4, N_ENGINES = 20 };

static struct tern_sysinfo machine;

/* ---- detecting writes to the environment ---- */

static atomic_int n_changes; /* of the environment, by anything in this process */

#if defined(__linux__)
/* Replaces the C library's function, also for tern's dependencies. */
int setenv(const char *name, const char *value, int overwrite)
{
    (void)name, (void)value, (void)overwrite;
    atomic_fetch_add(&n_changes, 1);
    return 0;
}

int unsetenv(const char *name)
{
    (void)name;
    atomic_fetch_add(&n_changes, 1);
    return 0;
}

int putenv(char *string)
{
    (void)string;
    atomic_fetch_add(&n_changes, 1);
    return 0;
}
#endif

/* ---- the tests ---- */

static void make_engines(void *arg)
{
    atomic_int *n_made = arg;
    for (uint32_t i = 0; i < N_ENGINES; i++) {
        struct tern_engine *engine;
        const struct tern_engine_params params = {.n_threads = 1 + i % 3};
        struct tern_error err;
        if (tern_engine_create(&engine, &machine, &params, &err) == TERN_OK &&
            tern_engine_n_threads(engine) == params.n_threads)
            atomic_fetch_add(n_made, 1);
        tern_engine_free(engine);
    }
}

static void threads_make_engines_at_once(void **state)
{
    (void)state;
    struct tn_thread *threads[N_THREADS];
    atomic_int n_made = 0;
    for (uint32_t i = 0; i < N_THREADS; i++) {
        threads[i] = tn_thread_start(make_engines, &n_made);
        assert_non_null(threads[i]);
    }
    for (uint32_t i = 0; i < N_THREADS; i++)
        tn_thread_join(threads[i]);
    assert_int_equal(atomic_load(&n_made), N_THREADS * N_ENGINES);
}

static void an_engine_believes_the_description(void **state)
{
    (void)state;
    static struct tern_sysinfo other;
    struct tern_engine *engine;
    struct tern_error err;
    tern_sysinfo_read_cpu(&other);
    other.cpu_features = 0;
    other.n_allowed = other.kinds[0].n_allowed = other.kinds[0].n_cores = 3;
    assert_int_equal(tern_engine_create(&engine, &other, NULL, &err), TERN_OK);
    assert_int_equal(tern_engine_n_threads(engine), 3);
    assert_string_equal(tern_engine_cpu_level(engine), "ref");
    tern_engine_free(engine);
}

static void an_engine_without_description_is_refused(void **state)
{
    (void)state;
    struct tern_engine *engine;
    struct tern_error err;
    assert_int_equal(tern_engine_create(&engine, NULL, NULL, &err), TERN_USAGE);
    assert_null(engine);
    assert_non_null(strstr(err.detail, "tern_sysinfo_read"));
}

static void the_processor_alone_is_described_alike(void **state)
{
    (void)state;
    static struct tern_sysinfo alone;
    tern_sysinfo_read_cpu(&alone);
    assert_int_equal(alone.cpu_features, machine.cpu_features);
    assert_string_equal(alone.cpu_name, machine.cpu_name);
    assert_int_equal(alone.n_allowed, 1);
    assert_true(alone.available_bytes == TERN_UNKNOWN && alone.cache_bytes[0] == TERN_UNKNOWN);
}

/* Last: covers all tests above, and reading the machine in main. */
static void the_environment_was_not_written(void **state)
{
    (void)state;
    static struct tern_sysinfo recorded;
    struct tern_error err;
    assert_int_equal(tern_sysinfo_read_root(
                         &recorded, TERN_SOURCE_DIR "/tests/sysinfo/roots/sysfs-smt", &err),
                     TERN_OK);
    assert_int_equal(recorded.n_physical, 2);
    assert_int_equal(atomic_load(&n_changes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_make_engines_at_once),
        cmocka_unit_test(an_engine_believes_the_description),
        cmocka_unit_test(an_engine_without_description_is_refused),
        cmocka_unit_test(the_processor_alone_is_described_alike),
        cmocka_unit_test(the_environment_was_not_written),
    };
    tern_sysinfo_read(&machine);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

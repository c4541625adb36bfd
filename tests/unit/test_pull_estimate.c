/* SPDX-License-Identifier: MIT
 *
 * The estimates of tern pull for models that are not downloaded yet, on fictitious machines.
 *
 * Memory and speed are compared with values computed by hand.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "src/app/pull.h"

#define GIB ((uint64_t)1 << 30)

static struct tn_pull_machine machine;
static struct tn_pull_estimate estimates[64];

static void set_machine(uint64_t available, uint32_t n_threads, const char *level, double gb_s)
{
    struct tern_sysinfo *info = &machine.info;
    memset(&machine, 0, sizeof machine);
    info->n_physical = info->n_logical = info->n_allowed = info->n_allowed_logical = n_threads;
    info->n_kinds = info->n_packages = info->n_numa = 1;
    info->kinds[0] = (struct tern_cpu_kind){.n_cores = n_threads, .n_allowed = n_threads,
                                            .capacity = 1024};
    info->n_cores = n_threads;
    info->quota_millicpus = TERN_UNKNOWN;
    info->total_bytes = 64 * GIB;
    info->available_bytes = info->system_available_bytes = available;
    info->limited_by = TERN_BOUND_MEMINFO;
    info->limit_bytes = info->rlimit_as_left_bytes = TERN_UNKNOWN;
    info->commit_left_bytes = info->pressure_centi = TERN_UNKNOWN;
    machine.n_threads = n_threads;
    machine.cpu_level = level;
    machine.stream_gb_s = gb_s;
    assert_true(tn_n_catalogue_models <= 64);
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++)
        tn_pull_estimate(&estimates[i], &machine, &tn_catalogue_models[i]);
}

static const struct tn_pull_estimate *estimate_of(const char *name)
{
    const struct tn_catalogue_model *model = tn_catalogue_find(name);
    assert_non_null(model);
    return &estimates[model - tn_catalogue_models];
}

static const char *best(void)
{
    const uint32_t i = tn_pull_best(estimates);
    return i == UINT32_MAX ? "none" : tn_catalogue_models[i].name;
}

/* 2B-4T: a file of 862 MB, and a cache of 162 MB for 4096 positions. */
static void memory_is_that_of_a_conversation(void **state)
{
    (void)state;
    set_machine(16 * GIB, 4, "avx2", 40);
    const uint64_t bytes = estimate_of("bitnet-2b")->memory_bytes;
    assert_in_range(bytes, 1024000000, 1124000000);
    assert_true(estimate_of("bitnet-2b")->fits);
    set_machine(bytes - 300000000, 4, "avx2", 40);
    assert_false(estimate_of("bitnet-2b")->fits);
}

static void speed_follows_from_memory_or_threads(void **state)
{
    (void)state;
    set_machine(16 * GIB, 4, "ssse3", 20); /* no limit per thread: 0.72 * 20 GB/s */
    assert_in_range((int)(10 * estimate_of("bitnet-2b")->tok_s), 278, 280);
    set_machine(16 * GIB, 1, "avx2", 100); /* one thread multiplies 16 GB/s of Bonsai's weights */
    assert_in_range((int)(10 * estimate_of("bonsai-4b")->tok_s), 157, 159);
    set_machine(16 * GIB, 4, "avx2", 0); /* not measured */
    assert_true(estimate_of("bonsai-4b")->tok_s == 0);
}

static void the_best_fits_and_is_fast_enough_to_read(void **state)
{
    (void)state;
    set_machine(64 * GIB, 8, "avx512", 200);
    assert_string_equal(best(), "bonsai-2-27b");
    set_machine(27 * GIB / 4, 8, "avx512", 200); /* the packing in 1.75 bits decides */
    assert_string_equal(best(), "bonsai-2-27b");
    assert_false(estimate_of("bonsai-27b")->fits);
    set_machine(64 * GIB, 8, "avx512", 36); /* those of 27 billion: 4 tokens per second */
    assert_string_equal(best(), "bonsai-8b");
    set_machine(2 * GIB, 8, "avx2", 40);
    assert_string_equal(best(), "bonsai-4b");
    set_machine(64 * GIB, 8, "avx512", 0);
    assert_string_equal(best(), "bonsai-2-27b");
    set_machine(64 * GIB, 1, "avx2", 1); /* nothing is fast enough: the fastest */
    assert_string_equal(best(), "bitcpm-0.5b");
    set_machine(GIB / 16, 1, "avx2", 40);
    assert_string_equal(best(), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_that_of_a_conversation),
        cmocka_unit_test(speed_follows_from_memory_or_threads),
        cmocka_unit_test(the_best_fits_and_is_fast_enough_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

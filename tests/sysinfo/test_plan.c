/* SPDX-License-Identifier: MIT
 *
 * The plan is a pure function: the machines and models here are fictitious.
 *
 * Each test sets one machine and checks threads, tier, caps and the reasons given.
 */
#include "plan_machine.h"

#include <stdio.h>

#include "base/cpu_bits.h"

/* ---- tiers ---- */

static void tiers_are_exact_to_the_byte(void **state)
{
    (void)state;
    static const struct {
        uint64_t edge;
        uint32_t below_default, below_cap, default_new, cap;
    } edges[] = {{4 * GIB, 256, 512, 512, 1024},
                 {8 * GIB, 512, 1024, 1024, 2048},
                 {12 * GIB, 1024, 2048, 2048, 8192}};
    for (size_t i = 0; i < TN_COUNT_OF(edges); i++)
        for (int d = -1; d <= 1; d++) {
            set_machine(4, edges[i].edge + (uint64_t)(int64_t)d);
            assert_int_equal(make(NULL, NULL), TERN_OK);
            assert_int_equal(plan.default_new_tokens,
                             d < 0 ? edges[i].below_default : edges[i].default_new);
            assert_int_equal(plan.cap_new_tokens, d < 0 ? edges[i].below_cap : edges[i].cap);
        }
    set_machine(4, 0);
    assert_int_equal(make(NULL, NULL), TERN_OK);
    assert_int_equal(plan.cap_new_tokens, 512);
}

/* The banner names the cap; a notice appears only if it takes effect. */
static void a_tier_is_reported_where_it_takes_effect(void **state)
{
    (void)state;
    static const struct {
        uint64_t available;
        uint32_t cap;
        const char *words;
    } small[] = {{3 * GIB, 512, "less than 4 GiB of memory"}, {5 * GIB, 1024, "4 to 8 GiB of"}};
    for (size_t i = 0; i < TN_COUNT_OF(small); i++) {
        set_machine(4, small[i].available);
        assert_int_equal(make(&model_2b, NULL), TERN_OK);
        assert_int_equal(plan.n_notices, 0);
        struct tern_plan_limits limits = {.max_tokens = small[i].cap};
        assert_int_equal(make(&model_2b, &limits), TERN_OK);
        assert_int_equal(plan.n_notices, 0);
        limits.max_tokens++;
        assert_int_equal(make(&model_2b, &limits), TERN_OK);
        assert_int_equal(plan.n_notices, 1);
        assert_true(noticed(small[i].words));
        assert_int_equal(plan.max_new_tokens, small[i].cap);
    }
}

/* Under pressure the cap is that of a smaller machine, and the reason says so. */
static void pressure_is_reported_where_it_takes_effect(void **state)
{
    (void)state;
    set_machine(4, 9 * GIB);
    machine.pressure_level = 2;
    struct tern_plan_limits limits = {.max_tokens = 1024};
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    assert_string_equal(reason("default_new_tokens")->bound_by, "pressure");
    assert_int_equal(plan.n_notices, 0);
    limits.max_tokens = 1025;
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    assert_true(noticed("cap of 1024 (memory is short here)"));
}

static void cap_binds_explicit_values(void **state)
{
    (void)state;
    set_machine(4, 9 * GIB);
    struct tern_plan_limits limits = {.max_tokens = 2049};
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    assert_int_equal(plan.max_new_tokens, 2048);
    assert_true(plan.capped);
    assert_true(noticed("2049"));
    limits.max_tokens = 2048;
    make(&model_2b, &limits);
    assert_false(plan.capped);
    assert_int_equal(plan.n_notices, 0);

    limits.max_tokens = 3000;
    limits.caps = TERN_CAPS_OFF;
    make(&model_2b, &limits);
    assert_int_equal(plan.max_new_tokens, 3000);
    assert_int_equal(plan.default_new_tokens, 1024);
    limits.caps = TERN_CAPS_MEMORY;
    limits.n_ctx = 2600;
    make(&model_2b, &limits);
    assert_int_equal(plan.cap_new_tokens, 2600);
    assert_int_equal(plan.max_new_tokens, 2600);
    assert_false(plan.capped);
    assert_true(plan.context_cuts);
    assert_int_equal(plan.n_notices, 1);
    assert_true(noticed("-n 3000 is more than the context of 2600 tokens"));
}

/* No notice suggests anything against a cap that is off. */
static void lifted_caps_are_not_announced(void **state)
{
    (void)state;
    set_machine(4, 3 * GIB);
    struct tern_plan_limits limits = {.max_tokens = 5000, .caps = TERN_CAPS_OFF};
    for (; limits.caps != TERN_CAPS_TIERS; limits.caps--) {
        assert_int_equal(make(&model_2b, &limits), TERN_OK);
        assert_false(noticed("--caps"));
        assert_false(plan.capped);
        assert_string_equal(reason("max_new_tokens")->bound_by, "context");
    }
}

static void context_binds_new_tokens(void **state)
{
    (void)state;
    set_machine(4, 16 * GIB);
    struct tern_plan_limits limits = {.max_tokens = 8192, .n_prompt = 96};
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    assert_int_equal(plan.max_new_tokens, 4000);
    assert_false(plan.capped);
    assert_true(noticed("after a prompt of 96: at most 4000 new tokens"));
    assert_string_equal(reason("max_new_tokens")->bound_by, "context");
}

/* ---- threads ---- */

static void threads_follow_the_rules(void **state)
{
    (void)state;
    set_machine(8, 16 * GIB);
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 8);
    assert_string_equal(reason("threads_decode")->bound_by, "cores");
    assert_false(plan.bind_threads);

    machine.quota_millicpus = 4000;
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 4);
    assert_int_equal(plan.n_threads_ceil, 0);
    assert_string_equal(reason("threads_decode")->bound_by, "quota");
    machine.quota_millicpus = 7650;
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 7);
    assert_int_equal(plan.n_threads_ceil, 8);
    machine.quota_millicpus = 500;
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 1);
    assert_int_equal(plan.n_threads_ceil, 0);
    machine.quota_millicpus = 64500;
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 8);
    assert_int_equal(plan.n_threads_ceil, 0);
    assert_string_equal(reason("threads_decode")->bound_by, "cores");

    set_machine(2, 16 * GIB);
    machine.n_physical = 8;
    machine.limited_by_affinity = true;
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 2);
    assert_string_equal(reason("threads_decode")->bound_by, "affinity");
}

static void hybrids_use_fast_cores_for_decode(void **state)
{
    (void)state;
    set_machine(6, 16 * GIB);
    add_kind(8, 512, false);
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 6);
    assert_int_equal(plan.n_threads_prefill, 14);
    assert_true(plan.bind_threads);
    assert_int_equal(plan.n_cores, 14);
    assert_int_equal(plan.cores[0], 0);
    assert_int_equal(plan.cores[6], 100);

    /* 60 % exactly is fast enough: 615 * 100 >= 1024 * 60 > 614 * 100 */
    set_machine(6, 16 * GIB);
    add_kind(8, 615, false);
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 14);
    set_machine(6, 16 * GIB);
    add_kind(8, 614, false);
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 6);

    set_machine(6, 16 * GIB);
    add_kind(8, 512, false);
    add_kind(2, 1000, true); /* low-power cores never count, whatever their stated speed */
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 6);
    assert_int_equal(plan.n_threads_prefill, 14);
}

static void only_slow_cores_are_allowed(void **state)
{
    (void)state;
    set_machine(4, 16 * GIB);
    machine.kinds[0].n_allowed = 0;
    machine.n_cores = machine.n_allowed = 0;
    add_kind(8, 300, false);
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 8);
    machine.kinds[1].low_power = true;
    make(NULL, NULL);
    assert_int_equal(plan.n_threads_decode, 8);
    assert_int_equal(plan.n_threads_prefill, 8);
}

static void user_threads_win(void **state)
{
    (void)state;
    struct tern_plan_limits limits = {.n_threads = 3};
    set_machine(2, 16 * GIB);
    machine.quota_millicpus = 500;
    assert_int_equal(make(NULL, &limits), TERN_OK);
    assert_int_equal(plan.n_threads_decode, 3);
    assert_int_equal(plan.n_threads_prefill, 3);
    assert_true(plan.threads_fixed);
    assert_true(noticed("quota of 0.50"));
    assert_string_equal(reason("threads_decode")->bound_by, "user");
    limits.n_threads = TERN_PLAN_MAX_THREADS + 1;
    assert_int_equal(make(NULL, &limits), TERN_USAGE);
}

static void eco_takes_half(void **state)
{
    (void)state;
    struct tern_plan_limits limits = {.eco = true};
    set_machine(6, 16 * GIB);
    add_kind(8, 512, false);
    make(NULL, &limits);
    assert_int_equal(plan.n_threads_decode, 3);
    assert_int_equal(plan.n_threads_prefill, 3);
    assert_string_equal(reason("threads_decode")->bound_by, "eco");
    set_machine(1, 16 * GIB);
    make(NULL, &limits);
    assert_int_equal(plan.n_threads_decode, 1);
}

static void contradictions_name_both_values(void **state)
{
    (void)state;
    struct tern_plan_limits limits = {.eco = true, .n_threads = 7};
    set_machine(8, 16 * GIB);
    assert_int_equal(make(NULL, &limits), TERN_USAGE);
    assert_non_null(strstr(err.detail, "7"));
    assert_non_null(strstr(err.detail, "4"));
    assert_int_equal(plan.n_threads_decode, 0);
    limits.n_threads = 4;
    assert_int_equal(make(NULL, &limits), TERN_OK);
}

static void cache_types_are_checked(void **state)
{
    (void)state;
    set_machine(2, 16 * GIB);
    const struct tern_plan_limits limits = {.has_kv = true, .kv = (enum tern_kv)3};
    assert_int_equal(make(&model_2b, &limits), TERN_USAGE);
}

static void levels_are_checked(void **state)
{
    (void)state;
    set_machine(2, 16 * GIB);
    struct tern_plan_limits limits = {.cpu_level = "ref"};
    assert_int_equal(make(NULL, &limits), TERN_OK);
    assert_string_equal(plan.cpu_level, "ref");
    limits.cpu_level = "sse9";
    assert_int_equal(make(NULL, &limits), TERN_USAGE);
    assert_non_null(strstr(err.detail, "this CPU has: ref"));
    assert_null(strstr(err.detail, "ref,")); /* nor any level that it lacks */
#if TN_ARCH_X86_64
    limits.cpu_level = "avx2";
    assert_int_equal(make(NULL, &limits), TERN_UNSUPPORTED);
    machine.cpu_features = TN_CPU_SSSE3 | TN_CPU_AVX2;
    assert_int_equal(make(NULL, &limits), TERN_OK);
    assert_int_equal(make(NULL, NULL), TERN_OK);
    assert_string_equal(plan.cpu_level, "avx2");
#endif
}

static void unknown_machine_gets_a_safe_plan(void **state)
{
    (void)state;
    set_machine(1, TERN_UNKNOWN);
    machine.total_bytes = TERN_UNKNOWN;
    machine.limited_by = TERN_BOUND_NONE;
    assert_int_equal(make(&model_2b, NULL), TERN_OK);
    assert_int_equal(plan.available_bytes, TN_PLAN_ASSUMED_BYTES);
    assert_int_equal(plan.cap_new_tokens, 512);
    assert_true(noticed("unknown"));
    struct tern_plan_limits limits = {.ram_bytes = 16 * GIB};
    make(&model_2b, &limits);
    assert_int_equal(plan.available_bytes, 16 * GIB);
    assert_int_equal(plan.limited_by, TERN_BOUND_USER);
    machine.total_bytes = GIB;
    make(NULL, NULL);
    assert_int_equal(plan.available_bytes, GIB / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiers_are_exact_to_the_byte),
        cmocka_unit_test(a_tier_is_reported_where_it_takes_effect),
        cmocka_unit_test(pressure_is_reported_where_it_takes_effect),
        cmocka_unit_test(cap_binds_explicit_values),
        cmocka_unit_test(lifted_caps_are_not_announced),
        cmocka_unit_test(context_binds_new_tokens),
        cmocka_unit_test(threads_follow_the_rules),
        cmocka_unit_test(hybrids_use_fast_cores_for_decode),
        cmocka_unit_test(only_slow_cores_are_allowed),
        cmocka_unit_test(user_threads_win),
        cmocka_unit_test(eco_takes_half),
        cmocka_unit_test(contradictions_name_both_values),
        cmocka_unit_test(cache_types_are_checked),
        cmocka_unit_test(levels_are_checked),
        cmocka_unit_test(unknown_machine_gets_a_safe_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * The plan is a pure function: the machines and models here are fictitious.
 *
 * Each test sets one machine and checks threads, tier, context, caps and the reasons given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu_bits.h"
#include "engine/plan.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct tern_sysinfo machine;
static struct tern_plan plan;
static struct tern_error err;

/* One kind of n cores, no limits. */
static void set_machine(uint32_t n_cores, uint64_t available)
{
    memset(&machine, 0, sizeof machine);
    machine.n_physical = machine.n_logical = machine.n_allowed = n_cores;
    machine.n_allowed_logical = n_cores;
    machine.n_kinds = machine.n_packages = machine.n_numa = 1;
    machine.kinds[0] = (struct tern_cpu_kind){.n_cores = n_cores, .n_allowed = n_cores,
                                              .capacity = 1024};
    machine.n_cores = n_cores;
    for (uint32_t i = 0; i < n_cores; i++)
        machine.cores[i] = (struct tern_core){i, 0};
    machine.binding_works = true;
    machine.quota_millicpus = TERN_UNKNOWN;
    machine.total_bytes = 64 * GIB;
    machine.available_bytes = machine.system_available_bytes = available;
    machine.limited_by = TERN_BOUND_MEMINFO;
    machine.limit_bytes = machine.rlimit_as_left_bytes = TERN_UNKNOWN;
    machine.commit_left_bytes = machine.pressure_centi = TERN_UNKNOWN;
}

/* A second, slower kind. */
static void add_kind(uint32_t n_cores, uint32_t capacity, bool low_power)
{
    uint32_t kind = machine.n_kinds++;
    machine.kinds[kind] = (struct tern_cpu_kind){
        .n_cores = n_cores, .n_allowed = n_cores, .capacity = capacity, .low_power = low_power};
    for (uint32_t i = 0; i < n_cores; i++)
        machine.cores[machine.n_cores + i] = (struct tern_core){100 + i, kind};
    machine.n_cores += n_cores;
    machine.n_allowed += n_cores;
    machine.n_physical += n_cores;
}

/* 2B-4T: cache 76,800 bytes per token in f16, 39,600 in q8. */
static const struct tern_plan_model model_2b = {
    .n_ctx = 4096,
    .file_bytes = 860 * MIB,
    .model_bytes = 200 * KIB,
    .sampler_bytes = 2 * MIB,
    .base_bytes = 10 * MIB,
    .thread_bytes = 64 * KIB,
    .position_bytes = 4,
    .kv_block_bytes = {256 * 153600, 256 * 76800, 256 * 39600},
    .kv = TERN_KV_Q8,
};

static tern_status make(const struct tern_plan_model *model, const struct tern_plan_limits *limits)
{
    return tern_plan_make(&plan, &machine, model, limits, &err);
}

static const struct tern_plan_reason *reason(const char *what)
{
    for (uint32_t i = 0; i < plan.n_reasons; i++)
        if (strcmp(plan.reasons[i].what, what) == 0)
            return &plan.reasons[i];
    fail_msg("no reason for %s", what);
    return NULL;
}

static bool noticed(const char *text)
{
    for (uint32_t i = 0; i < plan.n_notices; i++)
        if (strstr(plan.notices[i], text))
            return true;
    return false;
}

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

/* ---- memory ---- */

static void reserve_is_bounded(void **state)
{
    (void)state;
    static const struct {
        uint64_t total, limit, available, reserve;
    } cases[] = {
        {64 * GIB, TERN_UNKNOWN, 32 * GIB, GIB},
        {8000 * MIB, TERN_UNKNOWN, 6 * GIB, 800 * MIB},
        {GIB, TERN_UNKNOWN, 1000 * MIB, 150 * MIB},
        {64 * GIB, 4000 * MIB, 3 * GIB, 400 * MIB},
        {64 * GIB, GIB, 100 * MIB, 15 * MIB},
        {TERN_UNKNOWN, TERN_UNKNOWN, 2000 * MIB, 200 * MIB},
        {64 * GIB, TERN_UNKNOWN, 0, 0},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        set_machine(4, cases[i].available);
        machine.total_bytes = cases[i].total;
        machine.limit_bytes = cases[i].limit;
        make(NULL, NULL);
        assert_int_equal(plan.reserve_bytes, cases[i].reserve);
    }
}

static uint64_t fixed_bytes(uint32_t n_threads)
{
    return TN_PLAN_PROCESS_BYTES + model_2b.model_bytes + model_2b.sampler_bytes +
           model_2b.base_bytes +
           n_threads * (model_2b.thread_bytes + TN_PLAN_STACK_BYTES);
}

/* Anonymous bytes with n blocks of cache. */
static uint64_t anonymous(uint32_t n_threads, enum tern_kv kv, uint64_t n_blocks)
{
    return fixed_bytes(n_threads) +
           n_blocks * (model_2b.kv_block_bytes[kv] + 256 * model_2b.position_bytes);
}

static void parts_of_the_prediction(void **state)
{
    (void)state;
    set_machine(4, 16 * GIB);
    assert_int_equal(make(&model_2b, NULL), TERN_OK);
    assert_int_equal(plan.kv, TERN_KV_Q8);
    assert_int_equal(plan.n_ctx, 4096);
    assert_string_equal(reason("context")->bound_by, "model");
    assert_false(plan.will_page);
    assert_int_equal(plan.predicted_anonymous_bytes, anonymous(4, TERN_KV_Q8, 16));
    const struct tern_plan_memory *m = &plan.memory;
    assert_int_equal(m->process_bytes, TN_PLAN_PROCESS_BYTES + 4 * TN_PLAN_STACK_BYTES);
    assert_int_equal(m->model_bytes, model_2b.model_bytes);
    assert_int_equal(m->sampler_bytes, model_2b.sampler_bytes);
    assert_int_equal(m->scratch_bytes, model_2b.base_bytes + 4 * model_2b.thread_bytes +
                                           16 * 256 * model_2b.position_bytes);
    assert_int_equal(m->cache_bytes, 16 * model_2b.kv_block_bytes[TERN_KV_Q8]);
    assert_int_equal(m->process_bytes + m->model_bytes + m->sampler_bytes + m->scratch_bytes +
                         m->cache_bytes,
                     plan.predicted_anonymous_bytes);
    assert_int_equal(plan.predicted_hot_bytes,
                     plan.predicted_anonymous_bytes + model_2b.file_bytes);
}

static void checkpoints_get_the_remaining_memory(void **state)
{
    (void)state;
    struct tern_plan_model model = model_2b;
    model.checkpoint_bytes = 150 * MIB;
    const uint64_t least = anonymous(4, TERN_KV_Q8, 16) + 2 * model.checkpoint_bytes;
    set_machine(4, 16 * GIB);
    assert_int_equal(make(&model, NULL), TERN_OK);
    assert_int_equal(plan.n_checkpoints, 8);
    assert_int_equal(plan.memory.checkpoint_bytes, 8 * model.checkpoint_bytes);
    assert_int_equal(plan.predicted_anonymous_bytes, least + 6 * model.checkpoint_bytes);
    assert_string_equal(reason("checkpoints")->bound_by, "rule");
    /* Room for three of the six besides the file. */
    set_machine(4, least + model.file_bytes + 3 * model.checkpoint_bytes + GIB);
    make(&model, NULL);
    set_machine(4, plan.reserve_bytes + least + model.file_bytes + 3 * model.checkpoint_bytes);
    assert_int_equal(make(&model, NULL), TERN_OK);
    assert_int_equal(plan.n_ctx, 4096);
    assert_in_range(plan.n_checkpoints, 5, 6); /* the reserve depends on the available memory */
    assert_string_equal(reason("checkpoints")->bound_by, "memory");
    assert_false(plan.will_page);
    /* Other models have none. */
    assert_int_equal(make(&model_2b, NULL), TERN_OK);
    assert_int_equal(plan.n_checkpoints, 0);
    assert_int_equal(plan.memory.checkpoint_bytes, 0);
}

/* Answers depend on the cache type, so it must not depend on memory. */
static void memory_never_chooses_the_type(void **state)
{
    (void)state;
    static const struct {
        enum tern_kv kv;
        const char *bound_by;
    } files[] = {{TERN_KV_Q8, "default"}, {TERN_KV_F16, "model"}};
    for (size_t i = 0; i < TN_COUNT_OF(files); i++) {
        struct tern_plan_model model = model_2b;
        uint32_t n_fit = 0;
        model.kv = files[i].kv;
        for (uint64_t mib = 64; mib < 40000; mib += mib / 3) {
            set_machine(4, mib * MIB);
            if (make(&model, NULL) != TERN_OK)
                continue;
            n_fit++;
            assert_int_equal(plan.kv, files[i].kv);
            assert_string_equal(reason("kv")->bound_by, files[i].bound_by);
        }
        assert_true(n_fit > 5);
        const struct tern_plan_limits limits = {.has_kv = true, .kv = TERN_KV_F32};
        assert_int_equal(make(&model, &limits), TERN_OK);
        assert_int_equal(plan.kv, TERN_KV_F32);
        assert_string_equal(reason("kv")->bound_by, "user");
    }
}

/* Available memory that leaves exactly `budget` besides the reserve of 192 MiB. */
static void set_budget(uint32_t n_cores, uint64_t budget)
{
    set_machine(n_cores, budget + 192 * MIB);
    machine.limit_bytes = GIB;
    if (machine.available_bytes < 1280 * MIB) { /* the 15 % rule: solve for it */
        machine.available_bytes = budget * 100 / 85;
        make(NULL, NULL);
        while (plan.available_bytes - plan.reserve_bytes < budget) {
            machine.available_bytes++;
            make(NULL, NULL);
        }
    }
}

static void context_shrinks_by_blocks(void **state)
{
    (void)state;
    for (uint64_t n_blocks = 1; n_blocks <= 16; n_blocks++) {
        set_budget(2, anonymous(2, TERN_KV_Q8, n_blocks));
        assert_int_equal(make(&model_2b, NULL), TERN_OK);
        assert_int_equal(plan.kv, TERN_KV_Q8);
        assert_int_equal(plan.n_ctx, n_blocks * 256);
        assert_true(plan.predicted_anonymous_bytes <= plan.available_bytes - plan.reserve_bytes);
        assert_string_equal(reason("context")->bound_by, n_blocks < 16 ? "memory" : "model");
        assert_true(plan.will_page);
        set_budget(2, anonymous(2, TERN_KV_Q8, n_blocks) - 2);
        tern_status status = make(&model_2b, NULL);
        if (n_blocks == 1) {
            assert_int_equal(status, TERN_MEMORY);
        } else {
            assert_int_equal(status, TERN_OK);
            assert_int_equal(plan.n_ctx, (n_blocks - 1) * 256);
        }
    }
}

/* Of a mixture of experts, the bytes that a token reads must stay in memory; the rest may be on
 * disk. */
static void experts_may_stay_on_the_disk(void **state)
{
    (void)state;
    struct tern_plan_model experts = model_2b;
    experts.unread_bytes = 800 * MIB;
    const uint64_t least = anonymous(2, TERN_KV_Q8, 16) + 60 * MIB;
    const struct {
        uint64_t budget;
        const char *notice; /* NULL: none */
    } cases[] = {{least + 801 * MIB, NULL},
                 {least + 100 * MIB, "some stay on the disk"},
                 {least, "some stay on the disk"},
                 {least - MIB, "it may read from the disk"}};
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        set_budget(2, cases[i].budget);
        assert_int_equal(make(&experts, NULL), TERN_OK);
        assert_int_equal(plan.unread_bytes, 800 * MIB);
        assert_int_equal(plan.n_notices, cases[i].notice ? 1 : 0);
        assert_int_equal(plan.will_page, cases[i].notice != NULL);
        if (cases[i].notice)
            assert_true(noticed(cases[i].notice));
    }
}

static void refusal_says_what_would_work(void **state)
{
    (void)state;
    /* f16 does not fit, q8 does. */
    struct tern_plan_limits limits = {.has_kv = true, .kv = TERN_KV_F32, .n_prompt = 1000};
    set_budget(2, anonymous(2, TERN_KV_Q8, 5));
    assert_int_equal(make(&model_2b, &limits), TERN_MEMORY);
    assert_non_null(strstr(err.detail, "--kv q8 --ctx 1280"));
    assert_int_equal(plan.n_ctx, 0);
    limits.kv = TERN_KV_Q8;
    limits.n_ctx = 1280;
    assert_int_equal(make(&model_2b, &limits), TERN_OK);

    /* Fewer threads make room. */
    struct tern_plan_model wide = model_2b;
    wide.thread_bytes = 100 * MIB;
    limits = (struct tern_plan_limits){.n_prompt = 100};
    set_budget(4, fixed_bytes(1) + 120 * MIB);
    assert_int_equal(make(&wide, &limits), TERN_MEMORY);
    assert_non_null(strstr(err.detail, "--threads 1"));
    limits.n_threads = 1;
    assert_int_equal(make(&wide, &limits), TERN_OK);

    /* No flag helps: the message says how much memory would. */
    set_machine(1, 10 * MIB);
    assert_int_equal(make(&model_2b, NULL), TERN_MEMORY);
    assert_non_null(strstr(err.detail, "would work"));
    set_machine(1, 0);
    assert_int_equal(make(&model_2b, NULL), TERN_MEMORY);
}

/* "with 5.9 MiB available ... would work": exactly that much, with these flags. */
static void suggested_flags_work(void **state)
{
    (void)state;
    struct tern_plan_model model = model_2b;
    for (; model.base_bytes < 20 * GIB; model.base_bytes += model.base_bytes / 9) {
        set_machine(2, 100 * KIB);
        struct tern_plan_limits limits = {.n_prompt = 300};
        assert_int_equal(make(&model, &limits), TERN_MEMORY);
        double need, have, enough;
        char need_unit[4], have_unit[4], unit[4];
        assert_int_equal(sscanf(err.detail,
                                "a context of %u needs %lf %3s of memory beside the model, %lf %3s "
                                "are left (limited by meminfo, less a reserve); with %lf %3s",
                                &limits.n_ctx, &need, need_unit, &have, have_unit, &enough, unit),
                         7);
        limits.n_threads = 1;
        limits.has_kv = true;
        limits.kv = TERN_KV_Q8;
        set_machine(2, (uint64_t)(enough * (double)(strcmp(unit, "GiB") == 0 ? GIB : MIB)));
        assert_int_equal(make(&model, &limits), TERN_OK);
        /* A little less is refused, with different numbers for the need and the available memory.
         */
        set_machine(2, machine.available_bytes - machine.available_bytes / 9);
        assert_int_equal(make(&model, &limits), TERN_MEMORY);
        sscanf(err.detail, "a context of %*u needs %lf %3s of memory beside the model, %lf %3s",
               &need, need_unit, &have, have_unit);
        assert_true(need != have || strcmp(need_unit, have_unit) != 0);
    }
}

static void prompt_and_context(void **state)
{
    (void)state;
    struct tern_plan_limits limits = {.n_ctx = 100, .n_prompt = 101};
    set_machine(2, 16 * GIB);
    assert_int_equal(make(&model_2b, &limits), TERN_LIMIT);
    assert_non_null(strstr(err.detail, "101"));
    assert_non_null(strstr(err.detail, "100"));
    limits.n_prompt = 100;
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    assert_int_equal(plan.n_ctx, 100);
    assert_int_equal(plan.max_new_tokens, 0);
    assert_string_equal(reason("context")->bound_by, "user");
    limits = (struct tern_plan_limits){.n_ctx = 8192};
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    assert_int_equal(plan.n_ctx, 4096);
    assert_true(noticed("8192"));
    /* Room for 16 tokens after the prompt, or no run. */
    set_budget(1, anonymous(1, TERN_KV_Q8, 2));
    limits = (struct tern_plan_limits){.n_prompt = 512 - 16};
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    limits.n_prompt++;
    assert_int_equal(make(&model_2b, &limits), TERN_MEMORY);
}

static void address_space_counts_the_file(void **state)
{
    (void)state;
    set_machine(2, 16 * GIB);
    machine.rlimit_as_left_bytes = model_2b.file_bytes + anonymous(2, TERN_KV_Q8, 4);
    assert_int_equal(make(&model_2b, NULL), TERN_OK);
    assert_int_equal(plan.n_ctx, 1024);
    machine.rlimit_as_left_bytes = model_2b.file_bytes;
    assert_int_equal(make(&model_2b, NULL), TERN_MEMORY);
    set_machine(2, 16 * GIB);
    machine.commit_left_bytes = anonymous(2, TERN_KV_Q8, 3);
    assert_int_equal(make(&model_2b, NULL), TERN_OK);
    assert_int_equal(plan.n_ctx, 768);
}

static void user_ram_is_a_limit(void **state)
{
    (void)state;
    set_machine(2, 16 * GIB);
    struct tern_plan_limits limits = {.ram_bytes = 600 * MIB};
    assert_int_equal(make(&model_2b, &limits), TERN_OK);
    assert_int_equal(plan.available_bytes, 600 * MIB);
    assert_int_equal(plan.limited_by, TERN_BOUND_USER);
    assert_int_equal(plan.cap_new_tokens, 512);
    limits.ram_bytes = 100 * GIB;
    make(&model_2b, &limits);
    assert_int_equal(plan.available_bytes, 16 * GIB);
    assert_int_equal(plan.limited_by, TERN_BOUND_MEMINFO);
}

/* Sizes from a damaged file must not overflow. */
static void huge_sizes_do_not_wrap(void **state)
{
    (void)state;
    struct tern_plan_model huge = {.n_ctx = UINT32_MAX, .file_bytes = UINT64_MAX};
    huge.kv_block_bytes[0] = huge.kv_block_bytes[1] = huge.kv_block_bytes[2] = UINT64_MAX;
    huge.model_bytes = huge.sampler_bytes = UINT64_MAX;
    huge.base_bytes = huge.thread_bytes = huge.position_bytes = UINT64_MAX;
    set_machine(8, 16 * GIB);
    assert_int_equal(make(&huge, NULL), TERN_MEMORY);
    struct tern_plan_model free_of_charge = {.n_ctx = 100};
    assert_int_equal(make(&free_of_charge, NULL), TERN_OK);
    assert_int_equal(plan.n_ctx, 100);
}

static void more_memory_is_never_worse(void **state)
{
    (void)state;
    uint32_t last_ctx = 0, last_cap = 0;
    for (uint64_t mib = 8; mib < 20000; mib += 7) {
        set_machine(2, mib * MIB);
        machine.total_bytes = 20000 * MIB;
        bool ok = make(&model_2b, NULL) == TERN_OK;
        assert_true(ok || last_ctx == 0);
        assert_true(plan.n_ctx >= last_ctx && plan.cap_new_tokens >= last_cap);
        assert_true(!ok || plan.predicted_anonymous_bytes + plan.reserve_bytes <= mib * MIB);
        last_ctx = plan.n_ctx;
        last_cap = plan.cap_new_tokens;
    }
    assert_int_equal(last_ctx, 4096);
}

static void every_value_has_a_reason(void **state)
{
    (void)state;
    static const char *const whats[] = {
        "threads_decode",     "threads_prefill", "kernel",  "available", "reserve",
        "default_new_tokens", "cap_new_tokens",  "context", "kv",        "max_new_tokens"};
    set_machine(4, 6 * GIB);
    assert_int_equal(make(&model_2b, NULL), TERN_OK);
    for (size_t i = 0; i < TN_COUNT_OF(whats); i++) {
        const struct tern_plan_reason *r = reason(whats[i]);
        assert_true(r->value[0] != '\0' && r->detail[0] != '\0' && r->bound_by[0] != '\0');
    }
    assert_true(plan.n_reasons < TERN_PLAN_MAX_REASONS);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(reserve_is_bounded),
        cmocka_unit_test(parts_of_the_prediction),
        cmocka_unit_test(checkpoints_get_the_remaining_memory),
        cmocka_unit_test(memory_never_chooses_the_type),
        cmocka_unit_test(context_shrinks_by_blocks),
        cmocka_unit_test(experts_may_stay_on_the_disk),
        cmocka_unit_test(refusal_says_what_would_work),
        cmocka_unit_test(suggested_flags_work),
        cmocka_unit_test(prompt_and_context),
        cmocka_unit_test(address_space_counts_the_file),
        cmocka_unit_test(user_ram_is_a_limit),
        cmocka_unit_test(huge_sizes_do_not_wrap),
        cmocka_unit_test(more_memory_is_never_worse),
        cmocka_unit_test(every_value_has_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

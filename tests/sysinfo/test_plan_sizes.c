/* SPDX-License-Identifier: MIT
 *
 * How much memory the plan predicts and leaves, and the context that fits: the machines and models
 * here are fictitious.
 */
#include "plan_machine.h"

#include <stdio.h>

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

/* A context that is too long only if it fills is not a model that is too large. */
static void a_long_context_is_slow_at_its_end_only(void **state)
{
    (void)state;
    for (uint32_t n_blocks = 0; n_blocks <= 16; n_blocks++) {
        const uint64_t used = anonymous(2, TERN_KV_Q8, n_blocks) + model_2b.file_bytes;
        set_budget(2, n_blocks ? used : used - 1);
        assert_int_equal(make(&model_2b, NULL), TERN_OK);
        assert_int_equal(plan.n_ctx, 16 * 256);
        assert_int_equal(plan.n_ctx_resident, n_blocks * 256);
        assert_int_equal(plan.will_page, n_blocks < 16);
        assert_int_equal(noticed("it may read from the disk"), n_blocks < 16);
        if (n_blocks > 0 && n_blocks < 16) {
            char words[40];
            snprintf(words, sizeof words, "beyond %u tokens", n_blocks * 256);
            assert_true(noticed(words));
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserve_is_bounded),
        cmocka_unit_test(parts_of_the_prediction),
        cmocka_unit_test(checkpoints_get_the_remaining_memory),
        cmocka_unit_test(memory_never_chooses_the_type),
        cmocka_unit_test(context_shrinks_by_blocks),
        cmocka_unit_test(a_long_context_is_slow_at_its_end_only),
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

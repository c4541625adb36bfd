/* SPDX-License-Identifier: MIT
 *
 * The memory that the plan predicts equals the memory that a run allocates: open model, sampler,
 * session with its cache.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/alloc.h"
#include "engine/draft.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/plan.h"
#include "tern/tern.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_plan_memory.tern"

static struct tern_sysinfo machine;
static struct tern_engine *engine;
static struct tern_model *model;
static uint64_t model_taken; /* heap bytes of an open model */

static int setup(void **state)
{
    (void)state;
    struct tern_error e = {TERN_OK, ""};
    struct tern_convert_result result;
    const struct tern_convert_params convert = {.source = TERN_SOURCE_DIR "/dist/demo",
                                                .output = MODEL_PATH};
    const struct tern_engine_params params = {.n_threads = 2};
    tern_sysinfo_read_cpu(&machine);
    machine.available_bytes = machine.total_bytes = (uint64_t)8 << 30;
    tern_status status = tern_convert(&convert, &result, &e);
    if (status == TERN_OK)
        status = tern_engine_create(&engine, &machine, &params, &e);
    uint64_t before = tn_alloc_taken();
    if (status == TERN_OK)
        status = tern_model_open(&model, MODEL_PATH, &e);
    model_taken = tn_alloc_taken() - before;
    if (status != TERN_OK)
        fprintf(stderr, "%s\n", e.detail);
    return status != TERN_OK;
}

static int teardown(void **state)
{
    (void)state;
    tern_model_free(model);
    tern_engine_free(engine);
    tn_file_remove(MODEL_PATH);
    return 0;
}

static struct tern_sampler *create_sampler(uint32_t n_vocab, uint32_t penalty_last,
                                           uint64_t *taken)
{
    struct tern_sampler *sampler;
    struct tern_sampler_params params;
    struct tern_error e;
    tern_sampler_params_default(&params);
    params.penalty_last = penalty_last;
    uint64_t before = tn_alloc_taken();
    assert_int_equal(tern_sampler_create(&sampler, &params, n_vocab, &e), TERN_OK);
    *taken = tn_alloc_taken() - before;
    return sampler;
}

static void a_sampler_allocates_what_it_reports(void **state)
{
    (void)state;
    const struct {
        uint32_t n_vocab, penalty_last;
    } cases[] = {{1, 0}, {4096, 64}, {128256, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t taken;
        tern_sampler_free(create_sampler(cases[i].n_vocab, cases[i].penalty_last, &taken));
        assert_int_equal(taken, tern_sampler_bytes(cases[i].n_vocab, cases[i].penalty_last));
        assert_true(taken >= 16 * (uint64_t)cases[i].n_vocab + 4 * cases[i].penalty_last);
    }
}

static void a_model_allocates_what_it_reports(void **state)
{
    (void)state;
    assert_int_equal(tern_model_bytes(model), model_taken);
    assert_true(model_taken >= tern_model_config(model)->vocab); /* a flag per id */
}

/* Compares a session of the plan's context with the plan's numbers. */
static void check_session(const struct tern_plan *plan, uint32_t n_draft, uint64_t sampler_taken)
{
    const struct tern_session_params params = {
        .n_ctx = plan->n_ctx, .kv = plan->kv, .n_draft = n_draft};
    const uint64_t matcher = n_draft > 0 ? tn_matcher_bytes(plan->n_ctx) : 0;
    const struct tern_plan_memory *m = &plan->memory;
    struct tern_session *session;
    struct tern_error e;
    uint64_t before = tn_alloc_taken();
    assert_int_equal(tern_session_create(&session, engine, model, &params, &e), TERN_OK);
    uint64_t struct_bytes = tn_alloc_taken() - before;
    uint64_t full = tern_session_bytes_full(session), empty = tern_session_bytes(session);
    tern_session_free(session);

    assert_true(empty > struct_bytes);
    assert_int_equal(m->cache_bytes, full - empty);
    /* Whole pages are allocated; the shares of a position and a draft are rounded up to bytes. */
    assert_in_range(m->scratch_bytes, empty + matcher - tn_page_bytes(),
                    empty + matcher + plan->n_ctx + n_draft);
    assert_int_equal(m->model_bytes, model_taken);
    assert_int_equal(m->sampler_bytes, sampler_taken);
    assert_int_equal(m->process_bytes + m->model_bytes + m->sampler_bytes + m->scratch_bytes +
                         m->cache_bytes,
                     plan->predicted_anonymous_bytes);
}

static void the_plan_counts_the_memory_of_a_run(void **state)
{
    (void)state;
    static struct tern_plan plan;
    struct tern_plan_model sizes;
    struct tern_error e;
    uint64_t sampler_taken;
    tern_sampler_free(create_sampler(tern_model_config(model)->vocab, 0, &sampler_taken));
    tern_plan_model_sizes(&sizes, model, 0);
    for (uint32_t n_ctx = 512; n_ctx <= tern_model_config(model)->context; n_ctx *= 2) {
        /* The plan assumes q8, which needs the most scratch memory. */
        const struct tern_plan_limits limits = {.n_ctx = n_ctx,
                                                .n_threads = 2,
                                                .has_kv = true,
                                                .kv = TERN_KV_Q8,
                                                .n_draft = n_ctx % 1024 ? 0 : TERN_MAX_DRAFT};
        assert_int_equal(tern_plan_make(&plan, &machine, &sizes, &limits, &e), TERN_OK);
        assert_int_equal(plan.n_ctx, n_ctx);
        check_session(&plan, limits.n_draft, sampler_taken);
    }
}

/* Besides the session, a text needs room for one token and a stop string only, which the process's
 * share covers. */
static void generating_takes_little(void **state)
{
    (void)state;
    const uint32_t ids[] = {1, 2, 3};
    uint64_t taken;
    struct tern_session *session;
    struct tern_generate_result result;
    struct tern_error e;
    struct tern_generate_params params = {.max_tokens = 20};
    params.sampler = create_sampler(tern_model_config(model)->vocab, 64, &taken);
    assert_int_equal(tern_session_create(&session, engine, model, NULL, &e), TERN_OK);
    uint64_t before = tn_alloc_taken();
    assert_int_equal(tern_generate(session, ids, 3, &params, &result, &e), TERN_OK);
    assert_in_range(tn_alloc_taken() - before, 1, 16384);
    tern_session_free(session);
    tern_sampler_free(params.sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sampler_allocates_what_it_reports),
        cmocka_unit_test(a_model_allocates_what_it_reports),
        cmocka_unit_test(the_plan_counts_the_memory_of_a_run),
        cmocka_unit_test(generating_takes_little),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

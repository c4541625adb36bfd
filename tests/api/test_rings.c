/* SPDX-License-Identifier: MIT
 *
 * Layers with a window keep their last positions in rings when the context is long: the same bits
 * as with blocks after rollbacks, drafts, interruptions and saving; how far a ring can roll back;
 * and the memory that the plan counts for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../coarse_mixer.h"
#include "../tiny_model.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "demo.h"
#include "engine/session.h"
#include "model/mixers/attention_state.h"
#include "plat/plat.h"
#include "talk.h"
#include "tern/plan.h"

#define TINY_PATH TERN_BUILD_DIR "/test_rings_tiny.tern"
#define CACHE_PATH TERN_BUILD_DIR "/test_rings.kv"
#define VOCAB 40u
#define WINDOW 20u
#define RING 256u /* positions of a ring: WINDOW - 1 and a batch of 128, rounded up to blocks */
#define N_BLOCKS_CTX 768u /* the longest context with blocks: a ring and two checkpoints */
#define N_RINGS_CTX 2304u

static struct demo demo;
static struct tern_model *tiny, *coarse; /* coarse: layer 1 has another kind of state */
static uint32_t ids[N_RINGS_CTX];

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    const struct tiny_variant variant = {.embed_layout = TERN_LAYOUT_Q8_PLANES,
                                         .has_sub_norms = true,
                                         .is_sparse = true,
                                         .context = N_RINGS_CTX,
                                         .window = WINDOW};
    if (!tiny_model_open(&tiny, TINY_PATH, &variant) ||
        tern_model_open(&coarse, TINY_PATH, &e) != TERN_OK)
        return 1;
    coarse_layers(coarse);
    for (uint32_t i = 0; i < N_RINGS_CTX; i++)
        ids[i] = 2 + i * 7919u % 1009 % (VOCAB - 2);
    return !demo_open(&demo, TERN_BUILD_DIR "/test_rings.tern", 2);
}

static int teardown(void **state)
{
    (void)state;
    tern_model_free(tiny);
    tern_model_free(coarse);
    demo_close(&demo);
    tn_file_remove(TINY_PATH);
    tn_file_remove(CACHE_PATH);
    return 0;
}

static struct tern_session *open_session(const struct tern_model *model, uint32_t n_ctx,
                                         enum tern_kv kv)
{
    struct tern_session *s;
    const struct tern_session_params p = {.n_ctx = n_ctx, .kv = kv, .n_draft = TERN_MAX_DRAFT};
    assert_ok(tern_session_create(&s, demo.engine, model, &p, &e));
    assert_int_equal(tern_session_has_state(s), n_ctx > N_BLOCKS_CTX || model == coarse);
    return s;
}

static uint32_t below(struct tn_rng *rng, uint32_t n)
{
    return (uint32_t)(tn_rng_next(rng) % n);
}

static void assert_same_logits(const struct tern_session *a, const struct tern_session *b)
{
    assert_memory_equal(tern_session_logits(a), tern_session_logits(b), VOCAB * sizeof(float));
}

/* ---- the same bits ---- */

/* Logits of position n - 1, from a session with blocks that reaches it in the cheapest way. */
static void check_logits(const struct tern_session *rings, struct tern_session *blocks, uint32_t n)
{
    if (tern_session_truncate(blocks, n - 1) < n)
        session_go_to(blocks, ids, n);
    assert_same_logits(rings, blocks);
}

/* Single rows, batches and rollbacks, most of them short. */
static void a_ring_gives_the_bits_of_blocks(void **state)
{
    (void)state;
    const struct tern_model *const models[] = {tiny, coarse};
    struct tn_rng rng;
    tn_rng_seed(&rng, 7);
    for (uint32_t k = 0; k < 6; k++) {
        const struct tern_model *model = models[k % 2];
        struct tern_session *rings = open_session(model, N_RINGS_CTX, (enum tern_kv)(k / 2));
        struct tern_session *blocks = open_session(model, N_BLOCKS_CTX, (enum tern_kv)(k / 2));
        for (uint32_t i = 0; i < 150; i++) {
            uint32_t n = tern_session_n_past(rings);
            const uint32_t back = below(&rng, i % 10 == 9 ? n + 1 : 12);
            if (i % 3 == 0 && back < n)
                assert_true(tern_session_truncate(rings, n - back) <= n - back);
            n = tern_session_n_past(rings) + 1 + below(&rng, i % 4 ? 4 : 150);
            if (n > N_BLOCKS_CTX) {
                (void)tern_session_truncate(rings, below(&rng, 700));
                continue;
            }
            session_go_to(rings, ids, n);
            check_logits(rings, blocks, n);
        }
        tern_session_free(rings);
        tern_session_free(blocks);
    }
}

static void threads_do_not_change_the_bits_of_rings(void **state)
{
    (void)state;
    struct tern_session *two = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
    struct tern_engine *const engine = demo.engine;
    const struct tern_engine_params p = {.n_threads = 4};
    struct tern_engine *other;
    session_go_to(two, ids, 500);
    assert_ok(tern_engine_create(&other, &demo.machine, &p, &e));
    demo.engine = other;
    struct tern_session *four = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
    demo.engine = engine;
    for (uint32_t n = 1; n < 10; n++)
        session_go_to(four, ids, n);
    session_go_to(four, ids, 500);
    assert_same_logits(two, four);
    tern_session_free(two);
    tern_session_free(four);
    tern_engine_free(other);
}

static void an_interrupted_evaluation_leaves_no_trace(void **state)
{
    (void)state;
    uint32_t n_left, n_interrupted = 0;
    const struct tern_session_params p = {
        .n_ctx = N_RINGS_CTX, .should_stop = stops_once, .arg = &n_left};
    struct tern_session *whole = open_session(tiny, N_BLOCKS_CTX, TERN_KV_F32);
    session_go_to(whole, ids, 500);
    for (uint32_t k = 0; k < 6; k++) {
        struct tern_session *s;
        assert_ok(tern_session_create(&s, demo.engine, tiny, &p, &e));
        n_left = UINT32_MAX;
        session_go_to(s, ids, 300);
        n_left = k;
        n_interrupted += tern_session_eval(s, ids + 300, 128, NULL, NULL) == TERN_INTERRUPTED;
        assert_in_range(tern_session_n_past(s), 300, 428);
        n_left = UINT32_MAX;
        session_go_to(s, ids, 500);
        assert_same_logits(s, whole);
        tern_session_free(s);
    }
    assert_true(n_interrupted >= 2);
    tern_session_free(whole);
}

/* ---- rollback range ---- */

static void a_ring_reports_its_rollback_range(void **state)
{
    (void)state;
    const uint32_t n = 700, least = n - RING + WINDOW - 1; /* sees from n - RING on */
    struct tern_session *s = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
    session_go_to(s, ids, RING);
    assert_int_equal(tern_session_truncate(s, 1), 1); /* nothing was overwritten */
    session_go_to(s, ids, n);
    assert_int_equal(tern_session_truncate(s, n), n);
    assert_int_equal(tern_session_truncate(s, least), least);
    session_go_to(s, ids, least + 100); /* overwritten rows are lost */
    assert_int_equal(tern_session_truncate(s, least - 1), 0);
    session_go_to(s, ids, 30);
    assert_int_equal(tern_session_truncate(s, 3), 3);
    tern_session_free(s);
}

static void a_checkpoint_brings_the_window_back(void **state)
{
    (void)state;
    for (enum tern_kv kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        static const uint32_t marks[] = {7, WINDOW - 1, WINDOW, 250, 261};
        for (uint32_t i = 0; i < TN_COUNT_OF(marks); i++) {
            struct tern_session *s = open_session(tiny, N_RINGS_CTX, kv);
            struct tern_session *blocks = open_session(tiny, N_BLOCKS_CTX, kv);
            session_go_to(s, ids, marks[i] + i % 3); /* the newest rows are not in it */
            assert_true(tn_sequence_checkpoint(&s->sequence, marks[i], TN_MARK_TURN));
            session_go_to(s, ids, 680);
            assert_int_equal(tern_session_truncate(s, marks[i] + 5), marks[i]);
            session_go_to(s, ids, marks[i] + 40);
            session_go_to(blocks, ids, marks[i] + 40);
            assert_same_logits(s, blocks);
            tern_session_free(s);
            tern_session_free(blocks);
        }
    }
}

static void a_checkpoint_depends_on_the_text_alone(void **state)
{
    (void)state;
    static unsigned char one[1 << 17], other[sizeof one];
    struct tern_session *s = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
    struct tern_session *t = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
    assert_true(s->work.states.bytes.checkpoint <= sizeof one);
    session_go_to(s, ids, 310);
    session_go_to(t, ids, 400);
    memset(one, 1, sizeof one);
    memset(other, 2, s->work.states.bytes.checkpoint);
    memset(other + s->work.states.bytes.checkpoint, 1,
           sizeof other - s->work.states.bytes.checkpoint);
    tn_state_checkpoint(&s->work.states, s->sequence.state, 300, one);
    tn_state_checkpoint(&t->work.states, t->sequence.state, 300, other);
    const size_t n = t->work.states.layers[0].bytes.checkpoint;
    assert_memory_equal(one, other, n);
    tern_session_free(s);
    tern_session_free(t);
}

/* ---- drafts, files, memory ---- */

static void wrong_drafts_change_no_answer(void **state)
{
    (void)state;
    struct talk want = {.vocab = VOCAB}, got = {.vocab = VOCAB};
    uint32_t n_wrong = 0;
    struct tern_session *blocks = open_session(tiny, N_BLOCKS_CTX, TERN_KV_Q8);
    struct tern_session *rings = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
    for (uint32_t n = 200; n < 600; n += 57) {
        talk_answer(&want, blocks, ids, n, 70, 1.1f, NULL);
        talk_answer(&got, rings, ids, n, 70, 1.1f, &want);
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.ids, want.ids, want.n * sizeof *want.ids);
        n_wrong += got.result.n_drafted - got.result.n_accepted;
    }
    assert_true(n_wrong > 50);
    tern_session_free(blocks);
    tern_session_free(rings);
}

static void a_file_holds_the_window(void **state)
{
    (void)state;
    struct tern_error err;
    for (uint32_t n = 10; n < 700; n += 229) {
        struct tern_session *s = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
        struct tern_session *loaded = open_session(tiny, N_RINGS_CTX, TERN_KV_Q8);
        struct tern_session *shorter = open_session(tiny, N_BLOCKS_CTX, TERN_KV_Q8);
        session_go_to(s, ids, n);
        assert_ok(tern_session_save_cache(s, CACHE_PATH, &e));
        assert_ok(tern_session_load_cache(loaded, CACHE_PATH, &e));
        assert_int_equal(tern_session_n_past(loaded), n);
        session_go_to(s, ids, n + 30);
        session_go_to(loaded, ids, n + 30);
        assert_same_logits(s, loaded);
        assert_int_equal(tern_session_load_cache(shorter, CACHE_PATH, &err), TERN_INPUT);
        assert_non_null(strstr(err.detail, "context of another size (768 here)"));
        tern_session_free(s);
        tern_session_free(loaded);
        tern_session_free(shorter);
    }
}

static void a_ring_takes_less_than_blocks(void **state)
{
    (void)state;
    struct tern_model_info info;
    struct tern_session *s = open_session(tiny, N_RINGS_CTX, TERN_KV_F16);
    const struct tn_state_plan *plan = &s->work.states;
    tern_model_get_info(tiny, &info);
    /* Two key heads of 16 values, keys and values; layer 1 has blocks. */
    const uint64_t row = 2 * 2 * 16 * sizeof(uint16_t);
    assert_int_equal(info.kv_bytes_per_token[TERN_KV_F16], row);
    assert_int_equal(info.state_bytes[TERN_KV_F16], 64 + RING * row);
    assert_int_equal(plan->bytes.sequence, 64 + RING * row);
    assert_int_equal(plan->layers[0].bytes.block, 0);
    assert_int_equal(plan->layers[1].bytes.sequence, 0);
    assert_int_equal(tn_rings_above(&tiny->weights, 128), N_BLOCKS_CTX);
    assert_true(tern_model_has_state(tiny));
    tern_session_free(s);
}

/* Blocks, rings and checkpoints; the shares of positions, drafts and checkpoints are rounded up. */
static void the_plan_counts_rings(void **state)
{
    (void)state;
    static struct tern_plan plan;
    struct tern_plan_model sizes;
    struct tern_sysinfo machine = demo.machine;
    machine.available_bytes = machine.total_bytes = (uint64_t)8 << 30;
    tern_plan_model_sizes(&sizes, tiny, 0);
    assert_int_equal(sizes.rings.above, N_BLOCKS_CTX);
    for (uint32_t k = 0; k < 12; k++) {
        const enum tern_kv kv = (enum tern_kv)(k % 3);
        const struct tern_plan_limits limits = {
            .n_ctx = 512 * (1 + k / 3), .n_threads = 2, .has_kv = true, .kv = kv};
        struct tern_session *s;
        assert_ok(tern_plan_make(&plan, &machine, &sizes, &limits, &e));
        assert_int_equal(plan.n_checkpoints, limits.n_ctx > N_BLOCKS_CTX ? 8 : 0);
        const struct tern_session_params p = {
            .n_ctx = plan.n_ctx, .kv = kv, .n_checkpoints = plan.n_checkpoints};
        assert_ok(tern_session_create(&s, demo.engine, tiny, &p, &e));
        const uint64_t full = tern_session_bytes_full(s);
        const uint64_t planned = plan.memory.scratch_bytes + plan.memory.cache_bytes +
                                 plan.memory.checkpoint_bytes;
        assert_in_range(planned, full - tn_page_bytes(), full + 16384 + plan.n_ctx);
        tern_session_free(s);
    }
}

/* Where blocks of the whole context do not fit, rings may; if neither fits, the context shrinks to
 * the range of blocks. */
static void a_plan_takes_the_longer_context(void **state)
{
    (void)state;
    static struct tern_plan plan;
    struct tern_plan_model sizes = {.n_ctx = 8192, .kv_block_bytes = {1 << 20, 1 << 20, 1 << 20},
                                    .kv = TERN_KV_Q8, .rings = {.above = 2048}};
    struct tern_sysinfo machine = demo.machine;
    const struct tern_plan_limits limits = {.n_threads = 1};
    for (int kv = 0; kv < 3; kv++) {
        sizes.rings.kv_block_bytes[kv] = 1 << 18;
        sizes.rings.state_bytes[kv] = 3 << 20;
        sizes.rings.checkpoint_bytes[kv] = 1 << 20;
    }
    const struct {
        uint32_t mib, n_ctx; /* and half a MiB; process and thread take 3.06 */
    } cases[] = {{3, 0}, {7, 1024}, {9, 1536}, {10, 2304}, {11, 3328}, {17, 8192}};
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        machine.rlimit_as_left_bytes = ((uint64_t)cases[i].mib << 20) + (1 << 19);
        machine.available_bytes = machine.total_bytes = (uint64_t)1 << 30;
        struct tern_error err;
        const tern_status status = tern_plan_make(&plan, &machine, &sizes, &limits, &err);
        assert_int_equal(status, cases[i].n_ctx ? TERN_OK : TERN_MEMORY);
        assert_int_equal(plan.n_ctx, cases[i].n_ctx);
    }
    assert_int_equal(tern_plan_context_bytes(&sizes, TERN_KV_Q8, 2048), 8 << 20);
    assert_int_equal(tern_plan_context_bytes(&sizes, TERN_KV_Q8, 2049), (3 << 20) + 9 * (1 << 18));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_gives_the_bits_of_blocks),
        cmocka_unit_test(threads_do_not_change_the_bits_of_rings),
        cmocka_unit_test(an_interrupted_evaluation_leaves_no_trace),
        cmocka_unit_test(a_ring_reports_its_rollback_range),
        cmocka_unit_test(a_checkpoint_brings_the_window_back),
        cmocka_unit_test(a_checkpoint_depends_on_the_text_alone),
        cmocka_unit_test(wrong_drafts_change_no_answer),
        cmocka_unit_test(a_file_holds_the_window),
        cmocka_unit_test(a_ring_takes_less_than_blocks),
        cmocka_unit_test(the_plan_counts_rings),
        cmocka_unit_test(a_plan_takes_the_longer_context),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

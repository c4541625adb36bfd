/* SPDX-License-Identifier: MIT
 *
 * Models whose state cannot be rolled back to every position (tests/coarse_mixer.h): sessions,
 * drafts, files and checkpoints.  Results have the bits of a fresh session, and the recomputed
 * positions stay within bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../coarse_mixer.h"
#include "../tiny_model.h"
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "demo.h"
#include "engine/session.h"
#include "events.h"
#include "plat/plat.h"
#include "talk.h"
#include "tern/chat.h"
#include "tern/scheduler.h"
#include "tern/tokenizer.h"

#define TINY_PATH TERN_BUILD_DIR "/test_state_tiny.tern"
#define CACHE_PATH TERN_BUILD_DIR "/test_state.kv"
#define N_CTX 2304u
#define VOCAB 40u

static struct demo demo;
static struct tern_model *tiny;
static uint32_t ids[N_CTX];

static int setup(void **state)
{
    (void)state;
    const struct tiny_variant variant = {.embed_layout = TERN_LAYOUT_Q8_PLANES,
                                         .has_sub_norms = true,
                                         .is_sparse = true,
                                         .context = N_CTX};
    if (!tiny_model_open(&tiny, TINY_PATH, &variant))
        return 1;
    coarse_layers(tiny);
    for (uint32_t i = 0; i < N_CTX; i++)
        ids[i] = 2 + i * 7919u % 1009 % (VOCAB - 2);
    if (!demo_open(&demo, TERN_BUILD_DIR "/test_state.tern", 2))
        return 1;
    coarse_layers(demo.model);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tern_model_free(tiny);
    demo_close(&demo);
    tn_file_remove(TINY_PATH);
    tn_file_remove(CACHE_PATH);
    return 0;
}

static struct tern_session *open_session(uint32_t n_checkpoints)
{
    struct tern_session *s;
    const struct tern_session_params p = {.n_ctx = N_CTX, .n_checkpoints = n_checkpoints};
    assert_ok(tern_session_create(&s, demo.engine, tiny, &p, &e));
    return s;
}

/* Logits of position n - 1 in a fresh session. */
static void fresh_logits(float *out, uint32_t n)
{
    struct tern_session *s = open_session(1);
    assert_ok(tern_session_eval(s, ids, n, NULL, &e));
    memcpy(out, tern_session_logits(s), VOCAB * sizeof *out);
    tern_session_free(s);
}

/* ---- sessions ---- */

static void truncating_returns_the_reached_position(void **state)
{
    (void)state;
    struct tern_session *s = open_session(1);
    session_go_to(s, ids, 150);
    assert_int_equal(tern_session_truncate(s, 200), 150);
    assert_int_equal(tern_session_truncate(s, 150), 150);
    assert_int_equal(tern_session_truncate(s, 149), 128);
    assert_int_equal(tern_session_n_past(s), 128);
    assert_null(tern_session_logits(s));
    assert_int_equal(tern_session_truncate(s, 127), 96);
    /* it can only reach multiples of 32, and keeps two */
    assert_int_equal(tern_session_truncate(s, 95), 0);
    tern_session_free(s);
}

static void a_session_continues_from_the_reached_position(void **state)
{
    (void)state;
    struct tn_rng rng;
    float want[VOCAB];
    struct tern_session *s = open_session(2);
    tn_rng_seed(&rng, 3);
    for (uint32_t i = 0, n = 1; i < 60; i++) {
        const uint32_t keep = (uint32_t)(tn_rng_next(&rng) % (n + 1));
        assert_true(tern_session_truncate(s, keep) <= keep);
        n = tern_session_n_past(s) + 1 + (uint32_t)(tn_rng_next(&rng) % 90);
        session_go_to(s, ids, n);
        fresh_logits(want, n);
        assert_memory_equal(tern_session_logits(s), want, sizeof want);
    }
    tern_session_free(s);
}

/* Layers before the interruption have advanced, the others have not. */
static void an_interrupted_evaluation_is_rolled_back(void **state)
{
    (void)state;
    float want[VOCAB];
    uint32_t n_left, n_interrupted = 0;
    const struct tern_session_params p = {
        .n_ctx = N_CTX, .should_stop = stops_once, .arg = &n_left};
    fresh_logits(want, 120);
    for (uint32_t k = 0; k < 12; k++) {
        struct tern_session *s;
        assert_ok(tern_session_create(&s, demo.engine, tiny, &p, &e));
        n_left = UINT32_MAX;
        session_go_to(s, ids, 40);
        n_left = k;
        const bool is_stopped = tern_session_eval(s, ids + 40, 60, NULL, NULL) == TERN_INTERRUPTED;
        n_interrupted += is_stopped;
        assert_true(!is_stopped || tern_session_n_past(s) <= 40);
        n_left = UINT32_MAX;
        session_go_to(s, ids, 120);
        assert_memory_equal(tern_session_logits(s), want, sizeof want);
        tern_session_free(s);
    }
    assert_true(n_interrupted >= 2); /* at least once after each layer */
}

/* ---- answers ---- */

/* Generates an answer to a prompt in a session. */
static void answer(struct talk *out, struct tern_session *s, const struct tern_model *model,
                   const uint32_t *prompt, uint32_t n, uint32_t n_turn,
                   const struct talk *recorded, uint32_t n_draft)
{
    struct tern_sampler *sampler;
    struct tern_sampler_params sp;
    tern_sampler_params_default(&sp);
    sp.repeat_penalty = 1;
    sp.temperature = 0.4f;
    *out = (struct talk){.recorded = recorded, .vocab = VOCAB};
    assert_ok(tern_sampler_create(&sampler, &sp, tern_model_config(model)->vocab, &e));
    const struct tern_generate_params p = {.sampler = sampler, .max_tokens = 70,
                                           .ignore_eos = true, .n_draft = n_draft,
                                           .verify_all = true, .n_system = 40, .n_turn = n_turn,
                                           .on_token = talk_on_token, .arg = out,
                                           .on_draft = recorded ? talk_on_draft : NULL};
    assert_ok(tern_generate(s, prompt, n, &p, &out->result, &e));
    tern_sampler_free(sampler);
}

static void wrong_drafts_change_no_answer(void **state)
{
    (void)state;
    struct tern_model *const models[] = {tiny, demo.model};
    uint32_t n_wrong = 0;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t n_draft = 1; n_draft <= TERN_MAX_DRAFT; n_draft += 2) {
            struct talk want, got;
            struct tern_session *plain, *drafting;
            const struct tern_session_params p = {.n_ctx = 512, .n_draft = n_draft};
            assert_ok(tern_session_create(&plain, demo.engine, models[i], &p, &e));
            assert_ok(tern_session_create(&drafting, demo.engine, models[i], &p, &e));
            for (uint32_t n = 60; n < 130; n += 23) { /* the same prefix, in a used session */
                answer(&want, plain, models[i], ids, n, 0, NULL, 0);
                answer(&got, drafting, models[i], ids, n, 0, &want, n_draft);
                assert_int_equal(got.n, want.n);
                assert_memory_equal(got.ids, want.ids, want.n * sizeof *want.ids);
                n_wrong += got.result.n_drafted - got.result.n_accepted;
            }
            tern_session_free(plain);
            tern_session_free(drafting);
        }
    assert_true(n_wrong > 100);
}

/* The next prompt diverges from the last one at its turn mark: 20 turns of a chat with reasoning.
 */
static void a_chat_computes_the_new_turn_only(void **state)
{
    (void)state;
    enum { TURN = 60, TAIL = 7, ANSWER = 50 };
    struct tern_session *s = open_session(4);
    uint32_t prompt[N_CTX], n_text = 0;
    for (uint32_t turn = 0; turn < 20; turn++) {
        for (uint32_t i = 0; i < TURN; i++, n_text++)
            prompt[n_text] = 2 + (i * 13 + turn) % (VOCAB - 2);
        for (uint32_t i = 0; i < TAIL; i++)
            prompt[n_text + i] = 3 + i; /* "<think>", which the history lacks */
        struct talk t;
        answer(&t, s, tiny, prompt, n_text + TAIL, n_text, NULL, 0);
        assert_true(t.result.n_prompt_evaluated <= (turn > 0 ? ANSWER : 0) + TURN + TAIL);
        for (uint32_t i = 0; i < ANSWER && turn < 19; i++, n_text++)
            prompt[n_text] = 2 + (i * 7 + turn * 3) % (VOCAB - 2); /* without its reasoning */
    }
    tern_session_free(s);
}

/* Four conversations take turns in a scheduler with barely enough lanes and checkpoints. */
static void conversations_that_take_turns_compute_the_new_turn_only(void **state)
{
    (void)state;
    enum { N = 4, TURN = 60, TAIL = 7, ANSWER = 50, N_TURNS = 8, N_SYSTEM = 100 };
    static uint32_t prompts[N][N_CTX];
    uint32_t n_text[N] = {0};
    struct tern_scheduler *s;
    const struct tern_scheduler_params p = {
        .n_sequences = N, .n_queue = 4, .n_ctx = N_CTX, .n_checkpoints = N + 1};
    assert_ok(tern_scheduler_create(&s, demo.engine, tiny, &p, &e));
    for (uint32_t turn = 0; turn < N_TURNS; turn++)
        for (uint32_t k = 0; k < N; k++) {
            uint32_t *prompt = prompts[k], n = n_text[k];
            for (uint32_t i = 0; turn == 0 && i < N_SYSTEM; i++)
                prompt[n++] = 2 + i % (VOCAB - 2);
            for (uint32_t i = 0; i < TURN; i++)
                prompt[n++] = 2 + (i * 13 + turn + 5 * k) % (VOCAB - 2);
            for (uint32_t i = 0; i < TAIL; i++)
                prompt[n + i] = 3 + i;
            const struct tern_request r = {.ids = prompt, .n_ids = n + TAIL, .max_tokens = 90,
                                           .ignore_eos = true, .n_system = N_SYSTEM, .n_turn = n,
                                           .sampler = {.top_p = 1, .repeat_penalty = 1}};
            assert_ok(tern_scheduler_submit(s, &r, &(uint64_t){0}, &e));
            struct events events = {.scheduler = s};
            for (const struct tern_event *event; (event = events_next(&events));)
                if (event->kind == TERN_EVENT_END)
                    assert_true(event->result.n_prompt_evaluated <=
                                (turn > 0   ? ANSWER
                                 : k > 0 ? 0
                                            : N_SYSTEM) + TURN + TAIL);
            for (uint32_t i = 0; i < ANSWER; i++)
                prompt[n++] = 2 + (i * 7 + turn * 3 + k) % (VOCAB - 2);
            n_text[k] = n;
        }
    tern_scheduler_free(s);
}

/* Concurrent requests: their system text is computed once, although its end is not marked. */
static void a_shared_prefix_is_computed_once(void **state)
{
    (void)state;
    enum { N = 4, N_COMMON = 1000, N_OWN = 10 };
    static uint32_t prompts[N][N_COMMON + N_OWN];
    struct tern_scheduler *s;
    uint32_t n_evaluated = 0;
    const struct tern_scheduler_params p = {.n_sequences = N, .n_queue = N, .n_ctx = N_CTX};
    assert_ok(tern_scheduler_create(&s, demo.engine, tiny, &p, &e));
    for (uint32_t k = 0; k < N; k++) {
        memcpy(prompts[k], ids, N_COMMON * sizeof *ids);
        for (uint32_t i = 0; i < N_OWN; i++)
            prompts[k][N_COMMON + i] = 2 + (k + i) % (VOCAB - 2);
        const struct tern_request r = {.ids = prompts[k], .n_ids = N_COMMON + N_OWN,
                                       .max_tokens = 5, .ignore_eos = true,
                                       .sampler = {.top_p = 1, .repeat_penalty = 1}};
        assert_ok(tern_scheduler_submit(s, &r, &(uint64_t){0}, &e));
    }
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));)
        if (event->kind == TERN_EVENT_END)
            n_evaluated += event->result.n_prompt_evaluated;
    assert_true(n_evaluated <= N_COMMON + N * N_OWN);
    tern_scheduler_free(s);
}

/* ---- conversations ---- */

/* Its template opens reasoning that the history lacks. */
static const char thinking_template[] =
    "{%- for m in messages %}[{{ m.role }}]{{ m.content }}\n{%- endfor %}"
    "{%- if add_generation_prompt %}[assistant]<think>\n{%- endif %}";

static void marks_are_found_in_any_template(void **state)
{
    (void)state;
    static const char json[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
        "{\"role\":\"user\",\"content\":\"Why?\"},"
        "{\"role\":\"assistant\",\"content\":\"So\\u0000\"},"
        "{\"role\":\"user\",\"content\":\"And?\"}]}";
    struct tern_chat_template *t;
    struct tern_chat_params params = {.add_generation_prompt = true, .bos = "", .eos = ""};
    struct tern_chat_marks marks;
    struct tern_ids whole = {0}, turn = {0};
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(demo.model);
    assert_ok(tern_chat_template_parse(&t, thinking_template, sizeof thinking_template - 1, &e));
    assert_ok(tern_chat_encode_json(tokenizer, t, json, sizeof json - 1, &params, &whole, &e));
    tern_chat_marks_json(&marks, tokenizer, t, json, sizeof json - 1, &params, &whole);
    params.add_generation_prompt = false;
    assert_ok(tern_chat_encode_json(tokenizer, t, json, sizeof json - 1, &params, &turn, &e));
    assert_true(marks.n_system > 0 && marks.n_system < marks.n_turn);
    assert_true(marks.n_turn <= turn.n && marks.n_turn + 1 >= turn.n && turn.n < whole.n);
    tern_chat_marks_json(&marks, tokenizer, t, "{}", 2, &params, &whole);
    assert_int_equal(marks.n_system + marks.n_turn, 0);
    tern_ids_free(&whole);
    tern_ids_free(&turn);
    tern_chat_template_free(t);
}

/* ---- files ---- */

static void a_file_holds_the_states(void **state)
{
    (void)state;
    float want[VOCAB];
    struct talk t, again;
    struct tern_session *s = open_session(0), *loaded = open_session(0);
    answer(&t, s, tiny, ids, 300, 270, NULL, 0);
    assert_ok(tern_session_save_cache(s, CACHE_PATH, &e));
    const uint32_t n = tern_session_n_past(s);
    assert_ok(tern_session_load_cache(loaded, CACHE_PATH, &e));
    assert_int_equal(tern_session_n_past(loaded), n);
    assert_memory_equal(tern_session_ids(loaded), tern_session_ids(s), n * sizeof *ids);
    assert_int_equal(tern_session_truncate(loaded, 290), 288);
    assert_int_equal(tern_session_truncate(loaded, 280), 270); /* where the turn ends */
    session_go_to(loaded, ids, 310);
    fresh_logits(want, 310);
    assert_memory_equal(tern_session_logits(loaded), want, sizeof want);
    answer(&again, loaded, tiny, ids, 300, 270, NULL, 0);
    assert_int_equal(again.n, t.n);
    assert_memory_equal(again.ids, t.ids, t.n * sizeof *t.ids);
    tern_session_free(s);
    tern_session_free(loaded);
}

static void write_file(const char *bytes, size_t n)
{
    FILE *file = fopen(CACHE_PATH, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* Writes a malicious file with the right checksum. */
static void write_with_hash(char *bytes, size_t n)
{
    memset(bytes + 56, 0, 8);
    const uint64_t hash = XXH3_64bits(bytes, n);
    memcpy(bytes + 56, &hash, 8);
    write_file(bytes, n);
}

static void a_bad_state_is_refused(void **state)
{
    (void)state;
    enum { STATE_BYTES = 16384 };
    char *bytes;
    size_t n;
    struct tern_error err;
    struct tern_session *s = open_session(0);
    session_go_to(s, ids, 100);
    assert_ok(tern_session_save_cache(s, CACHE_PATH, &e));
    assert_ok(tn_file_read_all(&bytes, &n, CACHE_PATH, SIZE_MAX, &e));
    const size_t record = n - STATE_BYTES - 64;
    const struct {
        size_t at;
        uint32_t value;
        const char *says;
    } faults[] = {
        {record, 0, "do not fit"},     {record, 101, "do not fit"},
        {record + 4, 9, "do not fit"}, {record, 99, "is not sound"},
        {record + 64, 7, "not sound"}, {44, 0, "damaged"},
        {44, 2, "damaged"},            {44, 5, "damaged"},
        {48, 64, "damaged"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(faults); i++) {
        uint32_t was;
        memcpy(&was, bytes + faults[i].at, sizeof was);
        memcpy(bytes + faults[i].at, &faults[i].value, sizeof was);
        write_with_hash(bytes, n);
        assert_int_equal(tern_session_load_cache(s, CACHE_PATH, &err), TERN_INPUT);
        assert_non_null(strstr(err.detail, faults[i].says));
        assert_int_equal(tern_session_n_past(s), 0);
        memcpy(bytes + faults[i].at, &was, sizeof was);
    }
    bytes[n - STATE_BYTES + 5] ^= 1; /* and with a wrong checksum */
    write_file(bytes, n);
    assert_int_equal(tern_session_load_cache(s, CACHE_PATH, &err), TERN_INPUT);
    session_go_to(s, ids, 100); /* still usable */
    bytes[n - STATE_BYTES + 5] ^= 1;
    write_with_hash(bytes, n);
    assert_ok(tern_session_load_cache(s, CACHE_PATH, &e));
    assert_int_equal(tern_session_n_past(s), 100);
    tn_free(bytes);
    tern_session_free(s);
}

static bool allow_some(void *arg, uint64_t n_bytes)
{
    (void)n_bytes;
    uint32_t *n_allowed = arg;
    return *n_allowed > 0 && (*n_allowed)-- > 0;
}

/* Whatever does not fit, the file is not to blame. */
static void a_file_may_be_too_large_for_the_memory(void **state)
{
    (void)state;
    struct tern_error err;
    struct tern_session *s = open_session(0), *loaded;
    uint32_t n_allowed = 0;
    const struct tern_session_params p = {
        .n_ctx = 512, .may_grow = allow_some, .arg = &n_allowed};
    answer(&(struct talk){0}, s, tiny, ids, 300, 270, NULL, 0);
    assert_ok(tern_session_save_cache(s, CACHE_PATH, &e));
    assert_ok(tern_session_create(&loaded, demo.engine, tiny, &p, &e));
    for (uint32_t n = 0;; n++) {
        n_allowed = n;
        if (tern_session_load_cache(loaded, CACHE_PATH, &err) == TERN_OK)
            break;
        assert_int_equal(err.status, TERN_MEMORY);
        assert_non_null(strstr(err.detail, "memory"));
        assert_int_equal(tern_session_n_past(loaded), 0);
    }
    tern_session_free(s);
    tern_session_free(loaded);
}

/* ---- eviction of checkpoints ---- */

static void keep(struct tn_checkpoints *c, uint32_t i, uint32_t position, enum tn_mark mark)
{
    struct tn_checkpoint *one = tn_checkpoints_add(c, i, position, mark);
    assert_non_null(one);
    tn_checkpoints_mark(c, one, i, mark);
}

static void the_least_important_checkpoint_goes_first(void **state)
{
    (void)state;
    enum { N = 5 };
    uint32_t refs[N] = {0}, free_blocks[N];
    struct tn_checkpoint list[N] = {0};
    struct tn_checkpoints c = {.list = list, .pool = {.refs = refs, .free = free_blocks}};
    assert_true(tn_cache_pool_init(&c.pool, tn_page_bytes(), N));
    keep(&c, 0, 10, TN_MARK_SYSTEM);
    keep(&c, 0, 900, TN_MARK_SPACED); /* 890 positions to compute again without it */
    keep(&c, 0, 1000, TN_MARK_SPACED); /* 100 */
    keep(&c, 0, 2000, TN_MARK_TURN);
    keep(&c, 0, 2100, TN_MARK_PROMPT);
    keep(&c, 1, 50, TN_MARK_SPACED);
    assert_null(tn_checkpoints_find(&c, 0, 1000));
    keep(&c, 1, 60, TN_MARK_PROMPT); /* the other has 50, the cheapest */
    assert_null(tn_checkpoints_find(&c, 1, 50));
    keep(&c, 1, 70, TN_MARK_TURN);
    assert_null(tn_checkpoints_find(&c, 0, 900));
    assert_null(tn_checkpoints_add(&c, 1, 80, TN_MARK_SPACED)); /* all others are more important */
    keep(&c, 1, 90, TN_MARK_TURN); /* evicts the system text; 70 becomes spaced */
    assert_null(tn_checkpoints_find(&c, 0, 10));
    assert_false(tn_checkpoint_is_marked(tn_checkpoints_find(&c, 1, 70), 1, TN_MARK_TURN));
    tn_checkpoints_share(&c, 2, 1, 80); /* 60 and 70 */
    tn_checkpoints_drop(&c, 1, 0);
    assert_non_null(tn_checkpoints_find(&c, 2, 60));
    assert_null(tn_checkpoints_find(&c, 2, 90));
    assert_null(tn_checkpoints_find(&c, 1, 60));
    assert_int_equal(c.pool.n_free, 1); /* 90 */
    tn_cache_pool_fini(&c.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncating_returns_the_reached_position),
        cmocka_unit_test(a_session_continues_from_the_reached_position),
        cmocka_unit_test(an_interrupted_evaluation_is_rolled_back),
        cmocka_unit_test(wrong_drafts_change_no_answer),
        cmocka_unit_test(a_chat_computes_the_new_turn_only),
        cmocka_unit_test(conversations_that_take_turns_compute_the_new_turn_only),
        cmocka_unit_test(a_shared_prefix_is_computed_once),
        cmocka_unit_test(marks_are_found_in_any_template),
        cmocka_unit_test(a_file_holds_the_states),
        cmocka_unit_test(a_bad_state_is_refused),
        cmocka_unit_test(a_file_may_be_too_large_for_the_memory),
        cmocka_unit_test(the_least_important_checkpoint_goes_first),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: MIT
 *
 * Models with gated delta rule layers and gated attention, with experts, or both: states equal
 * those of the float64 reference, and bits do not change when a text is split, rolled back,
 * drafted, saved or shared.  golden/test_families.py and test_hybrids.py test their logits.
 *
 * usage: test_gated_delta [SOURCE [8 | 16 | f32]]
 *   SOURCE   a folder or GGUF file under reference/hybrids, or anywhere if the path is absolute
 *   8 ...    the precision of inputs (default f32)
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "answers.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "demo.h"
#include "engine/session.h"
#include "model/mixers/delta_state.h"
#include "plat/plat.h"
#include "talk.h"
#include "tern/convert.h"

#define HYBRIDS TERN_SHARED_DIR "/reference/hybrids/"
#define MAX_VOCAB 512u
#define N_IDS 134u
#define N_SHORT 17u
#define MAX_STATE 16384u
#define PATH_BYTES 512u

static char source[PATH_BYTES];
static char model_path[2 * PATH_BYTES], cache_path[2 * PATH_BYTES];

static struct tern_sysinfo machine;
static enum tern_inputs_as inputs = TERN_INPUTS_AS_F32;
static struct tern_engine *engine;
static struct tern_model *model;
static uint32_t vocab;
static size_t logits_bytes;
static uint32_t ids[N_IDS], short_ids[N_SHORT];

static void load_ids(uint32_t *out, size_t n, const json_t *golden, size_t i_prompt)
{
    const json_t *list = json_array_get(json_object_get(golden, "prompt_ids"), i_prompt);
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)json_integer_value(json_array_get(list, i));
}

static bool is_folder(void)
{
    return !strstr(source, ".gguf");
}

/* The prompts of a folder; random ids for a GGUF file. */
static void choose_ids(void)
{
    char path[PATH_BYTES + 32];
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    for (size_t i = 0; i < N_IDS; i++)
        ids[i] = (uint32_t)(tn_rng_next(&rng) % vocab);
    if (!is_folder())
        return;
    snprintf(path, sizeof path, "%s/golden/ids.json", source);
    json_t *golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    load_ids(short_ids, N_SHORT, golden, 1);
    load_ids(ids, N_IDS, golden, 3);
    json_decref(golden);
}

static struct tern_engine *open_engine(uint32_t n_threads, const char *level)
{
    struct tern_engine *out;
    const struct tern_engine_params p = {
        .n_threads = n_threads, .cpu_level = level, .inputs = inputs};
    assert_ok(tern_engine_create(&out, &machine, &p, &e));
    return out;
}

static int setup(void **state)
{
    const struct tern_convert_params p = {
        .source = source, .output = model_path, .force = true, .no_tokenizer = true};
    struct tern_convert_result result;
    (void)state;
    tern_sysinfo_read(&machine);
    assert_ok(tern_convert(&p, &result, &e));
    assert_ok(tern_model_open(&model, model_path, &e));
    vocab = tern_model_config(model)->vocab;
    assert_true(vocab <= MAX_VOCAB);
    logits_bytes = vocab * sizeof(float);
    choose_ids();
    engine = open_engine(2, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tern_model_free(model);
    tern_engine_free(engine);
    tn_file_remove(model_path);
    tn_file_remove(cache_path);
    return 0;
}

static struct tern_session *open_session(struct tern_engine *with)
{
    struct tern_session *s;
    const struct tern_session_params p = {.n_ctx = 512, .n_draft = TERN_MAX_DRAFT};
    assert_ok(tern_session_create(&s, with, model, &p, &e));
    return s;
}

static void fresh_logits(float *out, uint32_t n)
{
    struct tern_session *s = open_session(engine);
    session_go_to(s, ids, n);
    memcpy(out, tern_session_logits(s), logits_bytes);
    tern_session_free(s);
}

/* ---- states ---- */

static bool has_delta(void)
{
    return model->weights.mixers >> TERN_MIXER_GATED_DELTA & 1;
}

/* Loads the floats of golden/state_1.f32. */
static size_t load_state(float want[MAX_STATE])
{
    char path[PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/golden/state_1.f32", source);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t n = fread(want, sizeof *want, MAX_STATE, file);
    fclose(file);
    return n;
}

/* Compares the matrices S of a checkpoint, head by head. */
static void check_matrices(const struct tn_layer *layer, const struct tn_delta_state *s,
                           const float *want)
{
    static float matrix[MAX_STATE];
    const struct tn_layer_dims *d = &layer->dims;
    const size_t n_matrix = (size_t)d->head_dim * d->value_dim;
    const uint32_t n_rows = s->header->position - tn_delta_base(s->header);
    assert_true(n_rows > 0 && tn_delta_n_value(d) == d->value_dim && n_matrix <= MAX_STATE);
    for (uint32_t k = 0; k < d->n_head; k++) {
        const uint32_t i_head = tn_delta_value_head(layer, k % d->n_kv_head, k / d->n_kv_head);
        const struct tn_delta_rows rows =
            tn_delta_rows_of(s, d, k % d->n_kv_head, i_head, 0);
        tn_delta_take_in(matrix, s->matrices + i_head * n_matrix, &rows, n_rows, d,
                         tn_attn_pv_f32_ref);
        for (size_t i = 0; i < n_matrix; i++)
            assert_true(fabsf(matrix[i] - want[i_head * n_matrix + i]) <= 1e-5f);
    }
}

/* The golden file has, layer by layer, the last inputs of the convolution, then the matrices. */
static void states_are_the_reference_s(void **state)
{
    (void)state;
    static float want[MAX_STATE];
    static unsigned char kept[8 * MAX_STATE];
    if (!has_delta() || !is_folder() || inputs != TERN_INPUTS_AS_F32)
        skip();
    struct tern_session *s = open_session(engine);
    const struct tn_state_plan *plan = &s->work.states;
    size_t n_seen = 0;
    const size_t n = load_state(want);
    assert_true(plan->bytes.checkpoint <= sizeof kept);
    assert_ok(tern_session_eval(s, short_ids, 9, NULL, &e));
    assert_ok(tern_session_eval(s, short_ids + 9, N_SHORT - 9, NULL, &e));
    tn_state_checkpoint(plan, s->sequence.state, N_SHORT, kept);
    for (uint32_t k = 0; k < plan->n_layer; k++) {
        const struct tn_layer_dims *d = &plan->layers[k].layer->dims;
        if (d->value_dim == 0)
            continue;
        const struct tn_delta_state layer =
            tn_delta_kept_of(kept + plan->layers[k].at.checkpoint, d);
        const size_t n_inputs = (size_t)(d->conv_taps - 1) * d->channels;
        for (size_t i = 0; i < n_inputs; i++)
            assert_true(fabsf(layer.inputs[i] - want[n_seen + i]) <= 1e-5f);
        check_matrices(plan->layers[k].layer, &layer, want + n_seen + n_inputs);
        n_seen += n_inputs + (size_t)d->n_head * d->head_dim * d->value_dim;
    }
    assert_int_equal(n_seen, n);
    tern_session_free(s);
}

static void a_checkpoint_does_not_depend_on_pending_rows(void **state)
{
    (void)state;
    if (!has_delta())
        skip();
    struct tern_session *s = open_session(engine), *t = open_session(engine);
    const size_t n_bytes = s->work.states.bytes.checkpoint;
    unsigned char *one = malloc(n_bytes), *other = malloc(n_bytes);
    assert_true(one && other);
    session_go_to(s, ids, 40);
    for (uint32_t n = 1; n <= 35; n++)
        session_go_to(t, ids, n);
    session_go_to(t, ids, 42);
    for (uint32_t n = 36; n <= 40; n++) {
        memset(one, 1, n_bytes);
        memset(other, 1, n_bytes);
        assert_int_equal(tn_state_reach(&t->work.states, t->sequence.state, n), n);
        tn_state_checkpoint(&s->work.states, s->sequence.state, n, one);
        tn_state_checkpoint(&t->work.states, t->sequence.state, n, other);
        assert_memory_equal(one, other, n_bytes);
    }
    free(one);
    free(other);
    tern_session_free(s);
    tern_session_free(t);
}

/* ---- the same bits ---- */

static void any_cut_gives_the_same_bits(void **state)
{
    (void)state;
    float want[MAX_VOCAB];
    fresh_logits(want, N_IDS);
    for (uint32_t cut = 1; cut < N_IDS; cut++) {
        struct tern_session *s = open_session(engine);
        session_go_to(s, ids, cut);
        session_go_to(s, ids, N_IDS);
        assert_memory_equal(tern_session_logits(s), want, logits_bytes);
        tern_session_free(s);
    }
    struct tern_session *s = open_session(engine);
    for (uint32_t n = 1; n <= N_IDS; n++)
        session_go_to(s, ids, n);
    assert_memory_equal(tern_session_logits(s), want, logits_bytes);
    tern_session_free(s);
}

static void any_engine_gives_the_same_bits(void **state)
{
    (void)state;
    static const char *const levels[] = {"ref", "ssse3", "avx2",    "avxvnni", "avx512",
                                         "amx", "neon",  "dotprod", "i8mm"};
    float want[MAX_VOCAB];
    fresh_logits(want, N_IDS);
    for (size_t i = 0; i < TN_COUNT_OF(levels); i++)
        for (uint32_t n_threads = 1; n_threads <= 4; n_threads += 3) {
            const struct tern_engine_params p = {
                .n_threads = n_threads, .cpu_level = levels[i], .inputs = inputs};
            struct tern_engine *other;
            if (tern_engine_create(&other, &machine, &p, NULL) != TERN_OK)
                continue; /* this machine lacks that level */
            struct tern_session *s = open_session(other);
            session_go_to(s, ids, 100);
            for (uint32_t n = 101; n <= N_IDS; n++)
                session_go_to(s, ids, n);
            assert_memory_equal(tern_session_logits(s), want, logits_bytes);
            tern_session_free(s);
            tern_engine_free(other);
        }
}

/* Also in chunks, whose rows choose most of the experts. */
static void experts_on_the_disk_give_the_same_bits(void **state)
{
    (void)state;
    float want[MAX_VOCAB];
    struct tern_model *in_memory = model;
    fresh_logits(want, N_IDS);
    assert_ok(tern_model_open(&model, model_path, &e));
    tern_model_page_experts(model);
    struct tern_session *s = open_session(engine);
    session_go_to(s, ids, 100);
    for (uint32_t n = 101; n <= N_IDS; n++)
        session_go_to(s, ids, n);
    assert_memory_equal(tern_session_logits(s), want, logits_bytes);
    tern_session_free(s);
    tern_model_free(model);
    model = in_memory;
}

static void a_truncated_session_gives_the_same_bits(void **state)
{
    (void)state;
    struct tn_rng rng;
    float want[MAX_VOCAB];
    struct tern_session *s = open_session(engine);
    tn_rng_seed(&rng, 5);
    for (uint32_t i = 0, n = 20; i < 60; i++) {
        const uint32_t keep = n - (uint32_t)(tn_rng_next(&rng) % (i % 4 == 3 ? n : 6));
        assert_true(tern_session_truncate(s, keep) <= keep);
        n = tern_session_n_past(s) + 1 + (uint32_t)(tn_rng_next(&rng) % 12);
        n = n > N_IDS ? N_IDS : n;
        if (n > tern_session_n_past(s))
            session_go_to(s, ids, n);
        fresh_logits(want, n);
        if (tern_session_logits(s))
            assert_memory_equal(tern_session_logits(s), want, logits_bytes);
    }
    tern_session_free(s);
}

static void dropping_drafts_computes_nothing_again(void **state)
{
    (void)state;
    struct tern_session *s = open_session(engine);
    session_go_to(s, ids, 60);
    for (uint32_t n = 61; n < 120; n++) {
        session_go_to(s, ids, n + TERN_MAX_DRAFT);
        assert_int_equal(tern_session_truncate(s, n), n);
    }
    tern_session_free(s);
}

static void an_interrupted_evaluation_leaves_no_trace(void **state)
{
    (void)state;
    float want[MAX_VOCAB];
    uint32_t n_left, n_interrupted = 0;
    const struct tern_session_params p = {.n_ctx = 512, .should_stop = stops_once, .arg = &n_left};
    fresh_logits(want, N_IDS);
    for (uint32_t k = 0; k < 10; k++) {
        struct tern_session *s;
        assert_ok(tern_session_create(&s, engine, model, &p, &e));
        n_left = UINT32_MAX;
        session_go_to(s, ids, 40);
        n_left = k;
        n_interrupted +=
            tern_session_eval(s, ids + 40, 60, NULL, NULL) == TERN_INTERRUPTED;
        n_left = UINT32_MAX;
        session_go_to(s, ids, N_IDS);
        assert_memory_equal(tern_session_logits(s), want, logits_bytes);
        tern_session_free(s);
    }
    assert_true(n_interrupted >= 2);
}

/* ---- answers ---- */

static void wrong_drafts_change_no_answer(void **state)
{
    (void)state;
    struct talk want = {.vocab = vocab}, got = {.vocab = vocab};
    struct tern_session *plain = open_session(engine), *drafting = open_session(engine);
    talk_answer(&want, plain, ids, 66, 50, 1, NULL);
    talk_answer(&got, drafting, ids, 66, 50, 1, &want);
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.ids, want.ids, want.n * sizeof *want.ids);
    assert_true(got.result.n_accepted > 10 && got.result.n_accepted < got.result.n_drafted);
    tern_session_free(plain);
    tern_session_free(drafting);
}

static void a_saved_session_gives_the_same_bits(void **state)
{
    (void)state;
    float want[MAX_VOCAB];
    struct tern_session *s = open_session(engine), *loaded = open_session(engine);
    fresh_logits(want, N_IDS);
    for (uint32_t n = 1; n < N_IDS; n += n % 32 == 0 ? 1 : 31) {
        session_go_to(s, ids, n);
        assert_ok(tern_session_save_cache(s, cache_path, &e));
        assert_ok(tern_session_load_cache(loaded, cache_path, &e));
        assert_int_equal(tern_session_n_past(loaded), n);
        session_go_to(loaded, ids, N_IDS);
        assert_memory_equal(tern_session_logits(loaded), want, logits_bytes);
    }
    tern_session_free(s);
    tern_session_free(loaded);
}

/* The ids that a scheduler with n_sequences lanes gives four requests. */
static void schedule(uint32_t out[4][20], uint32_t n_sequences)
{
    const struct tern_scheduler_params p = {
        .n_sequences = n_sequences, .n_queue = 4, .n_ctx = 256};
    struct tern_request list[4];
    for (uint32_t k = 0; k < 4; k++)
        list[k] = (struct tern_request){.ids = ids + k % 2, .n_ids = 30 + 25 * k, .max_tokens = 20,
                                        .ignore_eos = true,
                                        .sampler = {.top_p = 1, .repeat_penalty = 1}};
    answers_schedule(out[0], 20, engine, model, &p, list, 4);
}

static void four_sequences_answer_as_one_after_the_other(void **state)
{
    (void)state;
    uint32_t one[4][20], four[4][20];
    schedule(one, 1);
    schedule(four, 4);
    assert_memory_equal(one, four, sizeof one);
}

static void take_arguments(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "models/tiny-qwen35-ternary";
    const char *form = argc > 2 ? argv[2] : "f32";
    char flat[PATH_BYTES];
    inputs = !strcmp(form, "8")    ? TERN_INPUTS_AS_8
             : !strcmp(form, "16") ? TERN_INPUTS_AS_16
                                   : TERN_INPUTS_AS_F32;
    snprintf(source, sizeof source, "%s%s", name[0] == '/' ? "" : HYBRIDS, name);
    snprintf(flat, sizeof flat, "%s", name);
    for (char *slash; (slash = strchr(flat, '/'));)
        *slash = '-';
    snprintf(model_path, sizeof model_path, TERN_BUILD_DIR "/test_gated_delta-%s.tern", flat);
    snprintf(cache_path, sizeof cache_path, TERN_BUILD_DIR "/test_gated_delta-%s.kv", flat);
}

int main(int argc, char **argv)
{
    take_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_the_reference_s),
        cmocka_unit_test(a_checkpoint_does_not_depend_on_pending_rows),
        cmocka_unit_test(any_cut_gives_the_same_bits),
        cmocka_unit_test(any_engine_gives_the_same_bits),
        cmocka_unit_test(experts_on_the_disk_give_the_same_bits),
        cmocka_unit_test(a_truncated_session_gives_the_same_bits),
        cmocka_unit_test(dropping_drafts_computes_nothing_again),
        cmocka_unit_test(an_interrupted_evaluation_leaves_no_trace),
        cmocka_unit_test(wrong_drafts_change_no_answer),
        cmocka_unit_test(a_saved_session_gives_the_same_bits),
        cmocka_unit_test(four_sequences_answer_as_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

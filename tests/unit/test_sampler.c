/* SPDX-License-Identifier: MIT
 *
 * The sampling chain against the 807 cases of the reference (tests/data/sampler), and cases beyond
 * them: draws, seeds, windows, exempt and masked ids, broken logits, bad parameters.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "failing_alloc.h"
#include "tern/sampler.h"

#define MAX_VOCAB 1000u
#define TOLERANCE 2e-6

static float logits[MAX_VOCAB];
static uint32_t ids[MAX_VOCAB];
static float probabilities[MAX_VOCAB];
static double by_id[MAX_VOCAB]; /* probability, -1 for dropped ids */

static struct tern_sampler *create(const struct tern_sampler_params *p, uint32_t n_vocab)
{
    struct tern_sampler *s;
    struct tern_error err;
    assert_int_equal(tern_sampler_create(&s, p, n_vocab, &err), TERN_OK);
    return s;
}

static struct tern_sampler_params neutral(void)
{
    return (struct tern_sampler_params){.temperature = 1.0f, .top_p = 1.0f, .repeat_penalty = 1.0f};
}

static uint32_t draw(struct tern_sampler *s, const float *l, uint32_t n)
{
    uint32_t id;
    struct tern_error err;
    assert_int_equal(tern_sampler_sample(s, l, n, n, &id, &err), TERN_OK);
    return id;
}

/* ---- goldens ---- */

static float number(json_t *c, const char *key)
{
    return (float)json_number_value(json_object_get(c, key));
}

static void load_logits(json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *l = json_array_get(list, i);
        logits[i] = json_is_string(l) ? -INFINITY : (float)json_number_value(l);
    }
}

/* The reference counts survivors above zero in float64.  Here such an id may be zero in float32,
 * and an id that the reference drops must be. */
static void check_probabilities(json_t *c, uint32_t n_vocab, uint32_t n)
{
    const char *name = json_string_value(json_object_get(c, "name"));
    uint32_t n_expected = (uint32_t)json_integer_value(json_object_get(c, "survivors"));
    uint32_t n_positive = 0;
    for (uint32_t i = 0; i < n; i++)
        n_positive += probabilities[i] > 0.0f;
    if (n < n_expected || n_positive > n_expected)
        fail_msg("%s: %u survivors, %u of them positive, expected %u", name, n, n_positive,
                 n_expected);
    double entropy = 0.0;
    for (uint32_t i = 0; i < n_vocab; i++)
        by_id[i] = -1.0;
    for (uint32_t i = 0; i < n; i++) {
        double p = (double)probabilities[i];
        by_id[ids[i]] = p;
        entropy -= p > 0.0 ? p * log(p) : 0.0;
        if (i > 0 && probabilities[i] > probabilities[i - 1])
            fail_msg("%s: rank %u is out of order", name, i);
    }
    json_t *pairs = json_object_get(c, "probs");
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        json_t *pair = json_array_get(pairs, i);
        size_t id = (size_t)json_integer_value(json_array_get(pair, 0));
        double p = json_number_value(json_array_get(pair, 1));
        if (by_id[id] < 0.0 || fabs(by_id[id] - p) > TOLERANCE)
            fail_msg("%s: id %zu has %.9g, expected %.9g", name, id, by_id[id], p);
    }
    if (fabs(entropy - json_number_value(json_object_get(c, "entropy"))) > 2e-5)
        fail_msg("%s: entropy %.9g", name, entropy);
}

static void check_case(json_t *c, json_t *all_logits, uint32_t n_vocab)
{
    json_t *history = json_object_get(c, "history");
    struct tern_sampler_params p = {
        .temperature = number(c, "temperature"),
        .top_k = (uint32_t)json_integer_value(json_object_get(c, "top_k")),
        .top_p = number(c, "top_p"),
        .min_p = number(c, "min_p"),
        .repeat_penalty = number(c, "repetition_penalty"),
        .presence_penalty = number(c, "presence_penalty"),
        .frequency_penalty = number(c, "frequency_penalty"),
        .penalty_last = (uint32_t)json_array_size(history),
    };
    load_logits(json_object_get(all_logits, json_string_value(json_object_get(c, "logits"))));
    struct tern_sampler *s = create(&p, n_vocab);
    for (size_t i = 0; i < json_array_size(history); i++)
        tern_sampler_accept(s, (uint32_t)json_integer_value(json_array_get(history, i)));
    uint32_t n;
    struct tern_error err;
    assert_int_equal(
        tern_sampler_distribution(s, logits, n_vocab, n_vocab, ids, probabilities, &n, &err),
        TERN_OK);
    json_t *argmax = json_object_get(c, "argmax");
    if (argmax) {
        assert_int_equal(n, 1);
        assert_int_equal(ids[0], json_integer_value(argmax));
        assert_int_equal(draw(s, logits, n_vocab), json_integer_value(argmax));
    } else {
        check_probabilities(c, n_vocab, n);
        uint32_t id = draw(s, logits, n_vocab);
        assert_true(by_id[id] > 0.0);
    }
    tern_sampler_free(s);
}

static size_t check_file(const char *path)
{
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    if (!root)
        fail_msg("%s: %s", path, e.text);
    uint32_t n_vocab = (uint32_t)json_integer_value(json_object_get(root, "vocab"));
    assert_in_range(n_vocab, 1, MAX_VOCAB);
    json_t *cases = json_object_get(root, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(json_array_get(cases, i), json_object_get(root, "logits"), n_vocab);
    size_t n = json_array_size(cases);
    json_decref(root);
    return n;
}

static void test_golden(void **state)
{
    (void)state;
    size_t n = check_file(SAMPLER_GOLDEN_DIR "/vocab64.json");
    n += check_file(SAMPLER_GOLDEN_DIR "/vocab1000.json");
    assert_int_equal(n, 807);
}

/* ---- draws ---- */

/* xoshiro256** seeded by splitmix64(1), u = (x >> 40) * 2^-24: computed by another program. */
static void test_sequence_is_pinned(void **state)
{
    (void)state;
    float flat[1000];
    for (uint32_t i = 0; i < 1000; i++)
        flat[i] = 0.0f;
    struct tern_sampler_params p = neutral();
    p.seed = 1;
    struct tern_sampler *s = create(&p, 1000);
    static const uint32_t expected[6] = {702, 520, 574, 391, 697, 143};
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(draw(s, flat, 1000), expected[i]);
    tern_sampler_reseed(s, 1);
    assert_int_equal(draw(s, flat, 1000), expected[0]);
    tern_sampler_reseed(s, 2);
    uint32_t n_same = 0;
    for (uint32_t i = 0; i < 6; i++)
        n_same += draw(s, flat, 1000) == expected[i];
    assert_true(n_same < 6);
    tern_sampler_free(s);
}

static void test_frequencies(void **state)
{
    (void)state;
    float l[4] = {0.0f, 1.0f, -INFINITY, 2.0f};
    struct tern_sampler_params p = neutral();
    struct tern_sampler *s = create(&p, 4);
    uint32_t counts[4] = {0};
    for (int i = 0; i < 100000; i++)
        counts[draw(s, l, 4)]++;
    double sum = 1.0 + exp(1.0) + exp(2.0);
    assert_int_equal(counts[2], 0);
    assert_true(fabs(counts[0] / 1e5 - 1.0 / sum) < 0.005);
    assert_true(fabs(counts[1] / 1e5 - exp(1.0) / sum) < 0.005);
    assert_true(fabs(counts[3] / 1e5 - exp(2.0) / sum) < 0.005);
    tern_sampler_free(s);
}

/* The lazy walk of a draw agrees with the sorted list: the same ids with and without a cut that
 * cuts nothing, for a realistic vocabulary. */
static void test_large_vocabulary(void **state)
{
    (void)state;
    enum { N = 128256 };
    float *l = malloc(N * sizeof *l);
    uint32_t x = 1;
    for (uint32_t i = 0; i < N; i++) {
        x = x * 1664525u + 1013904223u;
        l[i] = (float)(x >> 8) * 0x1p-24f * 12.0f;
    }
    struct tern_sampler_params p = neutral();
    struct tern_sampler *lazy = create(&p, N);
    p.min_p = 1e-30f;
    struct tern_sampler *sorted = create(&p, N);
    p.min_p = 0.0f;
    p.top_k = N;
    struct tern_sampler *with_k = create(&p, N);
    for (int i = 0; i < 5; i++) {
        uint32_t id = draw(lazy, l, N);
        assert_int_equal(draw(sorted, l, N), id);
        assert_int_equal(draw(with_k, l, N), id);
    }
    tern_sampler_free(lazy);
    tern_sampler_free(sorted);
    tern_sampler_free(with_k);
    free(l);
}

/* ---- history ---- */

/* After temperature 1 without cuts, ln(p_i / p_j) is the difference of the penalised logits. */
static double penalty_of(struct tern_sampler *s, uint32_t id, uint32_t untouched)
{
    float l[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t n;
    struct tern_error err;
    assert_int_equal(tern_sampler_distribution(s, l, 8, 8, ids, probabilities, &n, &err), TERN_OK);
    double of[8] = {0};
    for (uint32_t i = 0; i < n; i++)
        of[ids[i]] = (double)probabilities[i];
    return log(of[untouched] / of[id]);
}

static void test_window(void **state)
{
    (void)state;
    struct tern_sampler_params p = neutral();
    p.presence_penalty = 0.5f;
    p.penalty_last = 3;
    struct tern_sampler *s = create(&p, 8);
    for (int i = 0; i < 5; i++)
        tern_sampler_accept(s, 1);
    assert_true(fabs(penalty_of(s, 1, 0) - 0.5) < 1e-5); /* once, not five times */
    tern_sampler_accept(s, 2);
    tern_sampler_accept(s, 3);
    assert_true(fabs(penalty_of(s, 1, 0) - 0.5) < 1e-5);
    tern_sampler_accept(s, 4);
    assert_true(fabs(penalty_of(s, 1, 0)) < 1e-5); /* out of the window */
    assert_true(fabs(penalty_of(s, 2, 0) - 0.5) < 1e-5);
    tern_sampler_clear_history(s);
    assert_true(fabs(penalty_of(s, 4, 0)) < 1e-5);
    tern_sampler_accept(s, 8); /* outside the vocabulary: ignored */
    tern_sampler_accept(s, UINT32_MAX);
    tern_sampler_free(s);
}

static void test_frequency_counts_the_window(void **state)
{
    (void)state;
    struct tern_sampler_params p = neutral();
    p.frequency_penalty = 0.25f;
    p.penalty_last = 4;
    struct tern_sampler *s = create(&p, 8);
    for (int i = 0; i < 9; i++)
        tern_sampler_accept(s, 5);
    assert_true(fabs(penalty_of(s, 5, 0) - 1.0) < 1e-5);
    tern_sampler_free(s);
}

static void test_exempt_ids_keep_their_logit(void **state)
{
    (void)state;
    struct tern_sampler_params p = neutral();
    p.repeat_penalty = 2.0f;
    p.penalty_last = 8;
    struct tern_sampler *s = create(&p, 8);
    unsigned char exempt[8] = {0, 0, 0, 1, 0, 0, 0, 0};
    tern_sampler_set_exempt(s, exempt);
    tern_sampler_accept(s, 3);
    tern_sampler_accept(s, 4);
    assert_true(fabs(penalty_of(s, 3, 0)) < 1e-5);
    assert_true(fabs(penalty_of(s, 4, 0) - 0.5) < 1e-5);
    tern_sampler_free(s);
}

static void test_ids_beyond_allowed_are_never_chosen(void **state)
{
    (void)state;
    float l[8] = {0, 1, 2, 3, 90, 91, 92, 93};
    struct tern_sampler_params p = neutral();
    p.temperature = 2.0f;
    struct tern_sampler *s = create(&p, 8);
    struct tern_error err;
    uint32_t id;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(tern_sampler_sample(s, l, 8, 4, &id, &err), TERN_OK);
        assert_true(id < 4);
    }
    tern_sampler_free(s);
}

/* ---- bad input ---- */

static void test_broken_logits(void **state)
{
    (void)state;
    float l[4] = {NAN, INFINITY, 1.0f, -INFINITY};
    struct tern_sampler_params p = neutral();
    struct tern_sampler *s = create(&p, 4);
    for (int i = 0; i < 20; i++)
        assert_int_equal(draw(s, l, 4), 2);
    l[2] = NAN;
    struct tern_error err;
    uint32_t id = 7;
    assert_int_equal(tern_sampler_sample(s, l, 4, 4, &id, &err), TERN_INTERNAL);
    assert_true(err.detail[0] != '\0');
    assert_true(id >= 4);
    assert_int_equal(tern_sampler_sample(s, l, 4, 0, &id, &err), TERN_INTERNAL);
    tern_sampler_free(s);
    /* Overflowing penalties drop no id and create no NaN. */
    p.repeat_penalty = 0.1f;
    p.penalty_last = 4;
    s = create(&p, 2);
    tern_sampler_accept(s, 0);
    float huge[2] = {3e38f, 3e38f};
    assert_int_equal(draw(s, huge, 2), 0);
    tern_sampler_free(s);
}

/* The library returns an error for any arguments. */
static void test_more_logits_than_the_sampler_was_made_for(void **state)
{
    (void)state;
    const float l[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct tern_sampler_params p = neutral();
    struct tern_sampler *s = create(&p, 4);
    struct tern_error err;
    uint32_t id = 0, n = 7;
    assert_int_equal(tern_sampler_sample(s, l, 8, 8, &id, &err), TERN_USAGE);
    assert_string_equal(err.detail, "8 logits, but the sampler was made for 4");
    assert_true(id >= 8);
    assert_int_equal(tern_sampler_distribution(s, l, 5, 5, ids, probabilities, &n, &err),
                     TERN_USAGE);
    assert_int_equal(n, 0);
    assert_true(draw(s, l, 4) < 4); /* it is still usable */
    tern_sampler_free(s);
}

static void test_bad_parameters(void **state)
{
    (void)state;
    struct tern_sampler *s;
    struct tern_error err;
    struct tern_sampler_params bad[] = {neutral(), neutral(), neutral(), neutral(), neutral(),
                                        neutral(), neutral(), neutral(), neutral()};
    bad[0].temperature = -0.1f;
    bad[1].temperature = NAN;
    bad[2].top_p = 1.5f;
    bad[3].min_p = -0.5f;
    bad[4].repeat_penalty = 0.0f;
    bad[5].presence_penalty = INFINITY;
    bad[6].frequency_penalty = NAN;
    bad[7].penalty_last = UINT32_MAX;
    bad[8].temperature = INFINITY;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tern_sampler_create(&s, &bad[i], 8, &err), TERN_USAGE);
        assert_null(s);
    }
    struct tern_sampler_params good = neutral();
    assert_int_equal(tern_sampler_create(&s, &good, 0, &err), TERN_USAGE);
}

static void test_memory(void **state)
{
    (void)state;
    struct tern_sampler_params p;
    tern_sampler_params_default(&p);
    struct tern_sampler *s;
    struct tern_error err;
    for (size_t n_good = 0; n_good < 5; n_good++) {
        fail_alloc_after(n_good);
        assert_int_equal(tern_sampler_create(&s, &p, 64, &err), TERN_MEMORY);
        fail_alloc_stop();
        assert_null(s);
    }
    s = create(&p, 4);
    float l[4] = {0, 1, 2, 3};
    fail_alloc_after(0);
    for (int i = 0; i < 100; i++)
        tern_sampler_accept(s, draw(s, l, 4));
    fail_alloc_stop();
    tern_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_sequence_is_pinned),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_frequency_counts_the_window),
        cmocka_unit_test(test_exempt_ids_keep_their_logit),
        cmocka_unit_test(test_ids_beyond_allowed_are_never_chosen),
        cmocka_unit_test(test_broken_logits),
        cmocka_unit_test(test_more_logits_than_the_sampler_was_made_for),
        cmocka_unit_test(test_bad_parameters),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Long words of every class: linear time, a small stack, the right ids.
 *
 * Processor time is compared with that for a sixteenth of the length, with a wide margin, so that
 * only superlinear growth fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#if !defined(_WIN32)
#include <limits.h>
#include <pthread.h>
#endif

#include "base/compiler.h"
#include "base/rng.h"
#include "cpu_seconds.h"
#include "tern/model_format.h"
#include "text_data.h"

static struct data_tokenizer demo, llama3, gpt2;

/* unit repeated over n bytes; "random": random bytes; "letters": random lower-case letters. */
static char *long_text(const char *unit, size_t n)
{
    char *text = malloc(n);
    struct tn_rng rng;
    assert_non_null(text);
    tn_rng_seed(&rng, n);
    for (size_t i = 0; i < n; i++) {
        uint32_t random = (uint32_t)(tn_rng_next(&rng) >> 32);
        text[i] = strcmp(unit, "random") == 0    ? (char)random
                  : strcmp(unit, "letters") == 0 ? (char)('a' + random % 26)
                                                 : unit[i % strlen(unit)];
    }
    return text;
}

struct job {
    const struct tern_tokenizer *t;
    const char *text;
    size_t n;
    struct tern_ids ids;
    tern_status status;
};

static void *run_job(void *arg)
{
    struct job *job = arg;
    job->status = tern_tokenizer_encode(job->t, job->text, job->n, 0, &job->ids, NULL);
    return NULL;
}

/* Encodes on a stack of 64 KiB, or the minimum, where there are POSIX threads.  Returns the
 * processor time. */
static double encode_on_small_stack(struct job *job)
{
    const double start = cpu_seconds();
#if defined(_WIN32)
    run_job(job);
#else
    pthread_t thread;
    pthread_attr_t attr;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, TN_MAX(PTHREAD_STACK_MIN, 64 << 10)), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_job, job), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
#endif
    return cpu_seconds() - start;
}

static double encode_long(const struct tern_tokenizer *t, const char *unit, size_t n)
{
    struct job job = {t, long_text(unit, n), n, {0}, TERN_OK};
    double seconds = encode_on_small_stack(&job);
    assert_int_equal(job.status, TERN_OK);
    size_t at = 0;
    for (size_t i = 0; i < job.ids.n; i++) {
        size_t n_bytes;
        const char *bytes = tern_tokenizer_token_bytes(t, job.ids.ids[i], &n_bytes);
        if (n_bytes > n - at || memcmp(job.text + at, bytes, n_bytes) != 0)
            fail_msg("%s: bytes differ at %zu", unit, at);
        at += n_bytes;
    }
    assert_int_equal(at, n);
    tern_ids_free(&job.ids);
    free((void *)job.text);
    return seconds;
}

static const char *const units[] = {
    "a", "A", "1", " ", "\n", "\r", "\t", "<", "'", "!", "_", "\xC3\xA9", "\xE4\xB8\xAD",
    "\xF0\x9F\x98\x80", "\xCC\x81", "\x80", "\xFF", "\xC2\xA0", "\xE2\x80\x8B", "ab", "abc", "'s",
    " a", "\r\n", "<|", "<|reserved_special_token_", "random", "letters"};

static void test_linear_time(void **state)
{
    const struct tern_tokenizer *t = ((struct data_tokenizer *)*state)->t;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double small = encode_long(t, units[i], 64 << 10);
        double large = encode_long(t, units[i], 1 << 20);
        for (int n = 0; n < 9 && large > 64 * small + 0.25; n++)
            large = encode_long(t, units[i], 1 << 20); /* another program was running */
        if (large > 64 * small + 0.25)
            fail_msg("%s: %.3f s for 64 KiB, %.3f s for 1 MiB", units[i], small, large);
    }
}

static void test_16_mib(void **state)
{
    encode_long(((struct data_tokenizer *)*state)->t, "a", 16 << 20);
}

/* The definition of BPE on the table of merges: the lowest rank, leftmost. */
static uint32_t lowest_pair(const struct tern_file_tokenizer *head, const uint32_t *ids, size_t n,
                            size_t *at)
{
    const struct tern_file_merge *merges = (const void *)((const char *)head + head->merges.offset);
    for (uint32_t rank = 0; rank < head->n_merges; rank++)
        for (size_t i = 0; i + 1 < n; i++)
            if (merges[rank].left == ids[i] && merges[rank].right == ids[i + 1]) {
                *at = i;
                return merges[rank].merged;
            }
    return TERN_NO_ID;
}

static size_t encode_by_definition(const struct data_tokenizer *data, const char *text, size_t n,
                                   uint32_t *ids)
{
    size_t at;
    for (size_t i = 0; i < n; i++)
        ids[i] = tern_tokenizer_find(data->t, text + i, 1);
    for (uint32_t merged; (merged = lowest_pair(data->section, ids, n, &at)) != TERN_NO_ID;) {
        ids[at] = merged;
        n--;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
    }
    return n;
}

/* Few letters and fragments of words: many merges that interfere. */
static size_t random_word(struct tn_rng *rng, unsigned n_parts, size_t limit, char *word)
{
    static const char *const parts[] = {"a", "b", "ab", "the", "ing", "er", "on", "th", "e"};
    size_t n = 0;
    while (n < limit) {
        const char *part = parts[tn_rng_next(rng) % n_parts];
        memcpy(word + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

/* Short words (the scan) and long ones (the queue), with ranks in training order and in random
 * order, where a merge may rank below the merge that made its symbols. */
static void check_definition(json_t *root, bool shuffle)
{
    struct tn_rng rng;
    struct data_tokenizer data;
    json_t *model = json_object_get(root, "model"), *merges = json_object_get(model, "merges");
    json_object_set_new(model, "ignore_merges", json_false());
    tn_rng_seed(&rng, 3);
    for (size_t i = json_array_size(merges); shuffle && i > 1; i--) {
        size_t k = tn_rng_next(&rng) % i;
        json_t *a = json_incref(json_array_get(merges, i - 1));
        json_array_set(merges, i - 1, json_array_get(merges, k));
        json_array_set_new(merges, k, a);
    }
    data_tokenizer_open_json(&data, root, DATA_DEMO_VOCAB);
    for (unsigned round = 0; round < 150; round++) {
        char word[400];
        uint32_t expected[400];
        size_t limit = round % 3 ? 97 + tn_rng_next(&rng) % 280 : 1 + tn_rng_next(&rng) % 95;
        size_t n = random_word(&rng, 2 + round % 8, limit, word);
        size_t n_expected = encode_by_definition(&data, word, n, expected);
        struct tern_ids ids = {0};
        assert_int_equal(tern_tokenizer_encode(data.t, word, n, 0, &ids, NULL), TERN_OK);
        assert_int_equal(ids.n, n_expected);
        assert_memory_equal(ids.ids, expected, ids.n * sizeof *expected);
        tern_ids_free(&ids);
    }
    data_tokenizer_close(&data);
}

static void test_definition(void **state)
{
    (void)state;
    json_t *root = data_json(DATA_DEMO_TOKENIZER);
    check_definition(root, false);
    check_definition(root, true);
    json_decref(root);
}

int main(void)
{
    int missing = data_missing(), failed = 0;
    data_tokenizer_open(&demo, DATA_DEMO_TOKENIZER, DATA_DEMO_VOCAB);
    const struct CMUnitTest own[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test_prestate(test_linear_time, &demo),
    };
    failed = cmocka_run_group_tests_name("demo", own, NULL, NULL);
    data_tokenizer_close(&demo);
    if (missing)
        return missing == 77 ? failed : 1;
    data_tokenizer_open(&llama3, TERN_TEXT_DATA "/llama3.tokenizer.json", 128256);
    data_tokenizer_open(&gpt2, TERN_TEXT_DATA "/gpt-2.tokenizer.json", 50257);
    const struct CMUnitTest reference[] = {
        cmocka_unit_test_prestate(test_linear_time, &llama3),
        cmocka_unit_test_prestate(test_linear_time, &gpt2),
        cmocka_unit_test_prestate(test_16_mib, &llama3),
    };
    failed += cmocka_run_group_tests_name("reference", reference, NULL, NULL);
    data_tokenizer_close(&llama3);
    data_tokenizer_close(&gpt2);
    return failed;
}

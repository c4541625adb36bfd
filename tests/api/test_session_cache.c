/* SPDX-License-Identifier: MIT
 *
 * Keys and values in a file: a session loaded from it continues with the same bits; a damaged or
 * foreign file is refused and leaves the session empty.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "demo.h"
#include "failing_alloc.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/tern.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_session_cache.tern"
#define OTHER_PATH TERN_BUILD_DIR "/test_session_cache_other.tern"
#define CACHE_PATH TERN_BUILD_DIR "/test_session_cache.kv"
#define N_IDS 300u /* more than one block of the cache */

static struct demo demo;
static struct tern_engine *engine;
static struct tern_model *model, *other;
static uint32_t ids[N_IDS + 1];

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_convert_result result;
    struct tern_convert_params another = {
        .source = TERN_SOURCE_DIR "/dist/demo", .output = OTHER_PATH, .name = "other"};
    if (!demo_open(&demo, MODEL_PATH, 1))
        return 1;
    engine = demo.engine;
    model = demo.model;
    for (uint32_t i = 0; i <= N_IDS; i++)
        ids[i] = i * 7919u % 4000u;
    return tern_convert(&another, &result, &e) != TERN_OK ||
           tern_model_open(&other, OTHER_PATH, &e) != TERN_OK;
}

static int teardown(void **state)
{
    (void)state;
    tern_model_free(other);
    demo_close(&demo);
    tn_file_remove(OTHER_PATH);
    tn_file_remove(CACHE_PATH);
    return 0;
}

static struct tern_session *open_session(const struct tern_model *of, enum tern_kv kv,
                                         uint32_t n_ctx)
{
    struct tern_session *s;
    const struct tern_session_params p = {.n_ctx = n_ctx, .kv = kv};
    assert_ok(tern_session_create(&s, engine, of, &p, &e));
    return s;
}

static void the_same_bits_follow(void **state)
{
    (void)state;
    const size_t n_bytes = tern_model_config(model)->vocab * sizeof(float);
    for (enum tern_kv kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        const uint32_t lengths[] = {1, 255, 256, 257, N_IDS};
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            const uint32_t n = lengths[i];
            struct tern_session *a = open_session(model, kv, 512);
            struct tern_session *b = open_session(model, kv, 400);
            assert_ok(tern_session_eval(a, ids, n, NULL, &e));
            assert_ok(tern_session_save_cache(a, CACHE_PATH, &e));
            assert_ok(tern_session_eval(b, ids + 7, 20, NULL, &e)); /* is discarded by loading */
            assert_ok(tern_session_load_cache(b, CACHE_PATH, &e));
            assert_int_equal(tern_session_n_past(b), n);
            assert_memory_equal(tern_session_ids(b), ids, n * sizeof *ids);
            assert_null(tern_session_logits(b));
            assert_ok(tern_session_eval(a, &ids[n], 1, NULL, &e));
            assert_ok(tern_session_eval(b, &ids[n], 1, NULL, &e));
            assert_memory_equal(tern_session_logits(a), tern_session_logits(b), n_bytes);
            tern_session_free(a);
            tern_session_free(b);
        }
    }
}

static void assert_refused(struct tern_session *s)
{
    struct tern_error err;
    assert_int_equal(tern_session_load_cache(s, CACHE_PATH, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, CACHE_PATH));
    assert_int_equal(tern_session_n_past(s), 0);
}

static void put_file(const char *bytes, size_t n)
{
    FILE *f = fopen(CACHE_PATH, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Flips a bit of the file; a second call restores it. */
static void flip(FILE *f, size_t bit)
{
    assert_int_equal(fseek(f, (long)(bit / 8), SEEK_SET), 0);
    int byte = fgetc(f);
    assert_int_equal(fseek(f, (long)(bit / 8), SEEK_SET), 0);
    assert_true(fputc(byte ^ 1 << bit % 8, f) != EOF);
    assert_int_equal(fflush(f), 0);
}

static void damage_is_refused(void **state)
{
    (void)state;
    struct tern_session *s = open_session(model, TERN_KV_Q8, 64);
    struct tn_rng rng;
    char *bytes;
    size_t n;
    assert_ok(tern_session_eval(s, ids, 20, NULL, &e));
    assert_ok(tern_session_save_cache(s, CACHE_PATH, &e));
    assert_ok(tn_file_read_all(&bytes, &n, CACHE_PATH, (size_t)1 << 26, &e));
    FILE *f = fopen(CACHE_PATH, "r+b");
    assert_non_null(f);
    tn_rng_seed(&rng, 3);
    for (size_t i = 0; i < 1000; i++) {
        /* Every bit of the header, and random bits elsewhere. */
        size_t bit = i < 512 ? i : (size_t)(tn_rng_next(&rng) % (n * 8));
        flip(f, bit);
        assert_refused(s);
        flip(f, bit);
    }
    fclose(f);
    assert_ok(tern_session_load_cache(s, CACHE_PATH, &e));
    const size_t cuts[] = {0, 1, 63, 64, 65, 128, 200, n / 2, n - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        put_file(bytes, cuts[i]);
        assert_refused(s);
    }
    tn_free(bytes);
    tern_session_free(s);
}

static void foreign_files_are_refused(void **state)
{
    (void)state;
    struct tern_error err;
    struct tern_session *s = open_session(model, TERN_KV_F16, 512);
    tn_file_remove(CACHE_PATH);
    assert_int_equal(tern_session_save_cache(s, CACHE_PATH, &err), TERN_USAGE);
    assert_refused(s);
    assert_ok(tern_session_eval(s, ids, 100, NULL, &e));
    assert_ok(tern_session_save_cache(s, CACHE_PATH, &e));
    struct tern_session *others[] = {open_session(other, TERN_KV_F16, 512),
                                     open_session(model, TERN_KV_Q8, 512),
                                     open_session(model, TERN_KV_F16, 99)};
    for (size_t i = 0; i < 3; i++) {
        assert_refused(others[i]);
        tern_session_free(others[i]);
    }
    /* Other files are not replaced. */
    put_file("my diary\n", 9);
    assert_int_equal(tern_session_save_cache(s, CACHE_PATH, &err), TERN_OUTPUT);
    fail_alloc_once_after(0); /* the one that opens it */
    assert_int_equal(tern_session_save_cache(s, CACHE_PATH, &err), TERN_MEMORY);
    assert_true(fail_alloc_stop());
    assert_refused(s);
    assert_ok(tern_session_eval(s, ids, 4, NULL, &e));
    put_file("", 0); /* a failed attempt to save */
    assert_ok(tern_session_save_cache(s, CACHE_PATH, &e));
    assert_int_equal(tern_session_save_cache(s, TERN_BUILD_DIR, &err), TERN_OUTPUT);
    tern_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits_follow),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(foreign_files_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

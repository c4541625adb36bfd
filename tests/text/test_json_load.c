/* SPDX-License-Identifier: MIT
 *
 * Loading JSON where memory fails: a value comes out whole or not at all, an error of memory is
 * never taken for one of the text, and the program's own allocation functions of jansson are left
 * alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json_load.h"
#include "plat/plat.h"

/* Tokens of growing length: the parser's buffer grows for strings, keys and numbers in turn. */
static const char text[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}},\n"
    " \"score\": [-3.4567890167236328125, 12345678901234567, 1e-05, true, false, null],\n"
    " \"a key that is longer than every string before it, and then some more\": \"\\ud83d\\ude00\",\n"
    " \"text\": \"a string of more than a hundred bytes, so that the buffer of the token at hand has "
    "to grow once more, and loses a byte where it cannot\",\n"
    " \"number\": 0.1000000000000000055511151231257827021181583404541015625000000000000000000000000,\n"
    " \"list\": [[], {}, [[1, 2], [3]], \"\\u00e9\"]}";

/* ---- a host with allocation functions of its own ---- */

static size_t n_before; /* allocations until one fails */
static bool fails_once, has_failed;

static void *host_malloc(size_t n_bytes)
{
    bool fails = n_before == 0 && !(fails_once && has_failed);
    n_before -= n_before > 0;
    has_failed = has_failed || fails;
    return fails ? NULL : malloc(n_bytes);
}

static void host_free(void *p)
{
    free(p);
}

static void host_begin(size_t n, bool once)
{
    n_before = n;
    fails_once = once;
    has_failed = false;
    json_set_alloc_funcs(host_malloc, host_free);
}

static void host_end(void)
{
    json_malloc_t now_malloc;
    json_free_t now_free;
    json_get_alloc_funcs(&now_malloc, &now_free);
    assert_true(now_malloc == host_malloc && now_free == host_free);
    json_set_alloc_funcs(malloc, free);
}

/* ---- the tests ---- */

static void check_every_failure(bool once)
{
    json_error_t e;
    struct tern_error err;
    size_t n_failures = 0;
    json_t *want = json_loads(text, 0, &e);
    assert_non_null(want);
    for (size_t n = 0;; n++) {
        json_t *got;
        host_begin(n, once);
        tern_status status =
            tn_json_load(&got, "text", text, sizeof text - 1, JSON_REJECT_DUPLICATES, &err);
        host_end();
        if (status == TERN_OK)
            assert_true(json_equal(got, want));
        else
            assert_int_equal(status, TERN_MEMORY);
        json_decref(got);
        n_failures += status != TERN_OK;
        if (!has_failed)
            break;
    }
    assert_true(n_failures > 50);
    json_decref(want);
}

static void one_failure_is_noticed(void **state)
{
    (void)state;
    check_every_failure(true);
}

static void memory_that_ends_is_noticed(void **state)
{
    (void)state;
    check_every_failure(false);
}

static void errors_of_the_text_stay_errors_of_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "line 1"}, {"{", "line 1"}, {"{\n\"a\": 1,}", "line 2"}, {"[1] 2", "line 1"},
        {"[01]", "line 1"}, {"[1.]", "line 1"}, {"[-]", "line 1"}, {"[truex]", "line 1"},
        {"7", "line 1"}, {"\"x\"", "line 1"}, {"[\"\\x\"]", "line 1"}, {"[\"\\ud800\"]", "line 1"},
        {"[\"\\udc00\"]", "line 1"}, {"[\"a\nb\"]", "line 1"}, {"{\"a\" 1}", "line 1"},
        {"[1,\n\n2", "line 3"}, {"[1}", "line 1"}, {"{\"a\":1\n,\"a\":2}", "line 2"},
        {"[\n1e999]", "line 2"}, {"[99999999999999999999]", "line 1"}, {"[\"\xff\"]", "line 1"},
        {"[\"\\u0000\"]", "line 1"}, {"{\"\\u0000\": 1}", "line 1"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        json_t *got;
        struct tern_error err;
        tern_status status = tn_json_load(&got, "some.json", cases[i].text, strlen(cases[i].text),
                                          JSON_REJECT_DUPLICATES, &err);
        assert_int_equal(status, TERN_INPUT);
        assert_null(got);
        if (!strstr(err.detail, cases[i].words) || strncmp(err.detail, "some.json: ", 11) != 0)
            fail_msg("\"%s\": %s", cases[i].text, err.detail);
    }
}

static void load_many(void *arg)
{
    atomic_int *n_good = arg;
    for (int i = 0; i < 100; i++) {
        json_t *got;
        if (tn_json_load(&got, "text", text, sizeof text - 1, 0, NULL) == TERN_OK &&
            json_object_size(got) == 6)
            atomic_fetch_add(n_good, 1);
        json_decref(got);
    }
}

static void threads_load_at_once(void **state)
{
    (void)state;
    struct tn_thread *threads[4];
    atomic_int n_good = 0;
    for (size_t i = 0; i < TN_COUNT_OF(threads); i++)
        threads[i] = tn_thread_start(load_many, &n_good);
    for (size_t i = 0; i < TN_COUNT_OF(threads); i++)
        tn_thread_join(threads[i]);
    assert_int_equal(atomic_load(&n_good), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_failure_is_noticed),
        cmocka_unit_test(memory_that_ends_is_noticed),
        cmocka_unit_test(errors_of_the_text_stay_errors_of_the_text),
        cmocka_unit_test(threads_load_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

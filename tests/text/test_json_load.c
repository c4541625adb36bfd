/* SPDX-License-Identifier: MIT
 *
 * Loading JSON while memory fails: a value is loaded completely or not at all, a lack of memory is
 * never reported as a syntax error, and the program's own allocation functions of jansson are not
 * replaced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/json_load.h"
#include "kern/guard.h"
#include "plat/plat.h"

/* Tokens of increasing length: the parser's buffer grows for strings, keys and numbers in turn. */
static const char text[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}},\n"
    " \"score\": [-3.4567890167236328125, 12345678901234567, 1e-05, true, false, null],\n"
    " \"a key that is longer than every string before it, and then some more\": \"\\ud83d\\ude00\",\n"
    " \"text\": \"a string of more than a hundred bytes, so that the buffer of the token at hand has "
    "to grow once more, and loses a byte where it cannot\",\n"
    " \"number\": 0.1000000000000000055511151231257827021181583404541015625000000000000000000000000,\n"
    " \"list\": [[], {}, [[1, 2], [3]], \"\\u00e9\"]}";

/* ---- a host with its own allocation functions ---- */

/* Each block ends at an inaccessible page, so reading past its end crashes the test. */
struct block {
    struct tn_guard guard;
    struct block *next;
};

static size_t n_before;  /* allocations until one fails */
static size_t n_largest; /* larger allocations fail */
static bool fails_once, has_failed;
static struct block *blocks;

/* Also fails tern's allocations. */
static int allow(void *arg, size_t n_bytes)
{
    (void)arg;
    bool fails = n_bytes > n_largest || (n_before == 0 && !(fails_once && has_failed));
    n_before -= n_before > 0;
    has_failed = has_failed || fails;
    return !fails;
}

static void *host_malloc(size_t n_bytes)
{
    if (!allow(NULL, n_bytes))
        return NULL;
    struct block *block = malloc(sizeof *block);
    assert_non_null(block);
    block->next = blocks;
    blocks = block;
    return tn_guard_new(&block->guard, n_bytes, 16, TN_GUARD_AT_END);
}

static void host_free(void *p)
{
    struct block **at = &blocks;
    if (!p)
        return;
    while (*at && (*at)->guard.data != p)
        at = &(*at)->next;
    struct block *block = *at;
    assert_non_null(block);
    assert_true(tn_guard_is_intact(&block->guard));
    *at = block->next;
    tn_guard_free(&block->guard);
    free(block);
}

static void host_begin(size_t n, bool once, size_t n_bytes)
{
    n_before = n;
    n_largest = n_bytes;
    fails_once = once;
    has_failed = false;
    json_set_alloc_funcs(host_malloc, host_free);
    tn_alloc_set_hook(allow, NULL);
}

static void host_end(void)
{
    tn_alloc_set_hook(NULL, NULL);
    json_malloc_t now_malloc;
    json_free_t now_free;
    json_get_alloc_funcs(&now_malloc, &now_free);
    assert_true(now_malloc == host_malloc && now_free == host_free);
    json_set_alloc_funcs(malloc, free);
}

/* ---- the tests ---- */

/* Loads the text with these failures: completely or not at all. false: nothing failed. */
static bool load_short(const char *json, size_t n_json, const json_t *want)
{
    json_t *got;
    struct tern_error err;
    tern_status status = tn_json_load(&got, "text", json, n_json, JSON_REJECT_DUPLICATES, &err);
    if (status == TERN_OK)
        assert_true(json_equal(got, want));
    else
        assert_int_equal(status, TERN_MEMORY);
    json_decref(got);
    host_end();
    assert_null(blocks);
    return has_failed;
}

static void check_every_failure(bool once)
{
    size_t n = 0;
    json_t *want = json_loads(text, 0, NULL);
    assert_non_null(want);
    do
        host_begin(n++, once, SIZE_MAX);
    while (load_short(text, sizeof text - 1, want));
    assert_true(n > 40);
    json_decref(want);
}

static void one_failure_is_reported(void **state)
{
    (void)state;
    check_every_failure(true);
}

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    check_every_failure(false);
}

/* A large block may be unavailable while smaller ones are not. */
static void too_large_blocks_are_reported(void **state)
{
    (void)state;
    for (size_t n_string = 1; n_string < 300; n_string++) {
        char json[400];
        int n_json = snprintf(json, sizeof json, "{\"a\": [\"%0*d\", 1]}", (int)n_string, 0);
        json_t *want = json_loads(json, 0, NULL);
        bool is_short = true;
        for (size_t n = 1; is_short; n++) {
            host_begin(SIZE_MAX, false, n);
            is_short = load_short(json, (size_t)n_json, want);
        }
        json_decref(want);
    }
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
        {"[\"\xC0\x80\"]", "UTF-8"}, {"[\"\xED\xA0\x80\"]", "UTF-8"},
        {"[\"\xF4\x90\x80\x80\"]", "UTF-8"},
        {"[\"\xE2\x82\"]", "UTF-8"}, {"[\"\\ud83dx\"]", "surrogate"},
        {"[\"\\ud83d\\u0041\"]", "surrogate"},
        {"[\"\\u12g4\"]", "column 7: \\u needs four"}, {"[\"a", "column 4: a string is not"},
        {"\xEF\xBB\xBF[]", "column 1: "}, {"[1,]", "column 4: "}, {"[,1]", "column 2: "},
        {"{\"a\":1,}", "column 8: "}, {"{a:1}", "column 2: "}, {"[+1]", "column 2: "},
        {"[.5]", "column 2: "}, {"[1e]", "column 4: "}, {"[0x1]", "column 3: "},
        {"[NaN]", "column 2: "},
        {"[-9223372036854775809]", "63 bits"}, {"[9223372036854775808]", "63 bits"},
        {"[-1e999]", "too large"}, {"[1]]", "column 4: text after"}, {"[nul", "column 2: "},
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

/* The result equals that of jansson's own parser. */
static void values_are_those_of_jansson(void **state)
{
    (void)state;
    static const char *const texts[] = {
        text, "[]", " {} ", "[[],{},\"\"]", "[0,-0,1,-1,9223372036854775807,-9223372036854775808]",
        "[0.0,-0.0,1e308,5e-324,1e-400,0.1,123456789012345678901234567890.0,1E+2,1e0]",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\uD83D\\uDE00\"]", "[\"\\u007f\", \"\x7F\"]",
        "[\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF\"]",
        "{\"\":1,\"\\u0001\":[2]}",
        "{\"a\":1,\"b\":2,\"a\":{\"c\":3},\"a\":4}", "[\"a\\u0000b\"]",
        "\t[\r\n1 , true,false ,null]\n",
        "7", "-1.5e3", "\"x\"", "true", "null",
    };
    for (size_t i = 0; i < TN_COUNT_OF(texts); i++) {
        const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_ANY;
        for (size_t real = 0; real < 2; real++) {
            const size_t all = flags | real * JSON_DECODE_INT_AS_REAL;
            struct tern_error err;
            json_t *got, *want = json_loads(texts[i], all, NULL);
            assert_non_null(want);
            if (tn_json_load(&got, "text", texts[i], strlen(texts[i]), all, &err) != TERN_OK)
                fail_msg("%s: %s", texts[i], err.detail);
            char *a = json_dumps(got, JSON_ENCODE_ANY), *b = json_dumps(want, JSON_ENCODE_ANY);
            assert_string_equal(a, b); /* and in the same order */
            free(a);
            free(b);
            json_decref(got);
            json_decref(want);
        }
    }
}

static void large_whole_numbers_become_real_ones_alone(void **state)
{
    (void)state;
    static const char *const large[] = {"9223372036854775808", "-9223372036854775809",
                                        "1000000000000000019884624838656"};
    static const char *const others[] = {"9223372036854775807", "-9223372036854775808", "0", "5"};
    for (size_t i = 0; i < TN_COUNT_OF(large); i++)
        for (size_t k = 0; k < TN_COUNT_OF(others); k++) {
            char json[128];
            const int n = snprintf(json, sizeof json, "[%s,{\"a\":%s},%s]", others[k], large[i],
                                   others[k]);
            json_t *got;
            struct tern_error err;
            if (tn_json_load(&got, "text", json, (size_t)n, TN_JSON_LARGE_AS_REAL, &err) != TERN_OK)
                fail_msg("%s: %s", json, err.detail);
            const json_t *real = json_object_get(json_array_get(got, 1), "a");
            assert_true(json_is_real(real) && json_real_value(real) == strtod(large[i], NULL));
            for (size_t at = 0; at < 3; at += 2)
                assert_int_equal(json_integer_value(json_array_get(got, at)),
                                 strtoll(others[k], NULL, 10));
            json_decref(got);
        }
}

/* A large number that a later member of the same name replaces is not in the tree any more. */
static void replaced_large_numbers_are_forgotten(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_kept;
    } cases[] = {
        {"{\"n\": 18446744073709551615}", true},
        {"{\"n\": 1, \"n\": 18446744073709551615}", true},
        {"{\"n\": 9223372036854775808, \"n\": 18446744073709551615}", true},
        {"{\"n\": 18446744073709551615, \"m\": 1}", true},
        {"[{\"n\": 18446744073709551615}, {\"n\": 1}]", true},
        {"{\"n\": 18446744073709551615, \"n\": 1}", false},
        {"{\"n\": 18446744073709551615, \"n\": 3e19}", false},
        {"{\"n\": 18446744073709551615, \"n\": 1, \"n\": 3e19}", false},
        {"{\"n\": 18446744073709551615, \"n\": {}}", false},
        {"{\"n\": 18446744073709551615, \"n\": [[1]]}", false},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tn_json_wide wide = {.name = "n"};
        json_t *root;
        const char *json = cases[i].text;
        assert_int_equal(tn_json_load_wide(&root, &wide, "j", json, strlen(json), 0, NULL), 0);
        assert_int_equal(wide.value != NULL, cases[i].is_kept);
        if (cases[i].is_kept)
            assert_true(wide.whole == UINT64_MAX);
        json_decref(root);
    }
}

static void numbers_that_json_does_not_have_become_text(void **state)
{
    (void)state;
    static const char json[] = "[NaN,Infinity, -Infinity,-1]";
    static const char *const texts[] = {"NaN", "Infinity", "-Infinity"};
    static const char *const wrong[] = {"[NaN1]", "[-NaN]", "[nan]", "[Inf]", "{NaN:1}"};
    struct tern_error err;
    json_t *got;
    assert_int_equal(tn_json_load(&got, "text", json, sizeof json - 1, TN_JSON_NOT_FINITE_AS_TEXT,
                                  &err), TERN_OK);
    for (size_t i = 0; i < TN_COUNT_OF(texts); i++)
        assert_string_equal(json_string_value(json_array_get(got, i)), texts[i]);
    assert_int_equal(json_integer_value(json_array_get(got, 3)), -1);
    json_decref(got);
    assert_int_equal(tn_json_load(&got, "text", json, sizeof json - 1, 0, &err), TERN_INPUT);
    for (size_t i = 0; i < TN_COUNT_OF(wrong); i++)
        assert_int_equal(tn_json_load(&got, "text", wrong[i], strlen(wrong[i]),
                                      TN_JSON_NOT_FINITE_AS_TEXT, &err), TERN_INPUT);
}

static void depth_is_limited(void **state)
{
    (void)state;
    char deep[200];
    struct tern_error err;
    json_t *got;
    for (size_t n = 63; n <= 65; n++) {
        memset(deep, '[', n);
        memset(deep + n, ']', n);
        tern_status status = tn_json_load(&got, "deep", deep, 2 * n, 0, &err);
        assert_int_equal(status, n <= TN_JSON_MAX_DEPTH ? TERN_OK : TERN_INPUT);
        json_decref(got);
    }
    assert_non_null(strstr(err.detail, "deep: JSON nests deeper than 64 levels (at byte 64)"));
}

/* Programs may have set a locale; the test machine may lack it. */
static void the_locale_does_not_matter(void **state)
{
    (void)state;
    json_t *got;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE"))
        skip();
    assert_int_equal(tn_json_load(&got, "text", "[1.5]", 5, 0, NULL), TERN_OK);
    assert_true(json_real_value(json_array_get(got, 0)) == 1.5);
    json_decref(got);
    setlocale(LC_NUMERIC, "C");
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
        cmocka_unit_test(one_failure_is_reported),
        cmocka_unit_test(lack_of_memory_is_reported),
        cmocka_unit_test(too_large_blocks_are_reported),
        cmocka_unit_test(errors_of_the_text_stay_errors_of_the_text),
        cmocka_unit_test(values_are_those_of_jansson),
        cmocka_unit_test(large_whole_numbers_become_real_ones_alone),
        cmocka_unit_test(replaced_large_numbers_are_forgotten),
        cmocka_unit_test(numbers_that_json_does_not_have_become_text),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(threads_load_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * The server's JSON: a JSON parser reads its output back as intended, and invalid input is refused
 * with the member's name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include "base/compiler.h"
#include "server/gen.h"
#include "server/json_body.h"
#include "server/json_out.h"

static void check_string(const char *bytes, size_t n, const char *expected, size_t n_expected)
{
    struct tn_buf out = {0};
    json_error_t e;
    tn_json_string(&out, bytes, n);
    json_t *value = json_loadb(out.data, out.n_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    assert_non_null(value);
    assert_int_equal(json_string_length(value), n_expected);
    assert_memory_equal(json_string_value(value), expected, n_expected);
    for (size_t i = 0; i < out.n_bytes; i++)
        assert_true((unsigned char)out.data[i] >= 0x20);
    json_decref(value);
    tn_buf_fini(&out);
}

static void strings(void **state)
{
    char all[256], plain[128];
    (void)state;
    check_string("", 0, "", 0);
    check_string("a\"b\\c\nd\te", 9, "a\"b\\c\nd\te", 9);
    check_string("\xE2\x80\xA8\xE2\x80\xA9", 6, "\xE2\x80\xA8\xE2\x80\xA9", 6);
    check_string("\xF0\x9F\x98\x80\xC3\xA4", 6, "\xF0\x9F\x98\x80\xC3\xA4", 6);
    check_string("\xFFx\xC3", 3, "\xEF\xBF\xBDx\xEF\xBF\xBD", 7);
    check_string("\xED\xA0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 9);
    for (int i = 0; i < 128; i++)
        plain[i] = (char)i;
    check_string(plain, sizeof plain, plain, sizeof plain);
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    struct tn_buf out = {0};
    tn_json_string(&out, all, sizeof all);
    json_t *value = json_loadb(out.data, out.n_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(value);
    json_decref(value);
    tn_buf_fini(&out);
}

static void numbers(void **state)
{
    struct tn_buf out = {0};
    (void)state;
    tn_json_real(&out, -1.5, 0);
    tn_buf_append_text(&out, " ");
    tn_json_real(&out, -1.0 / 0.0, -9999.0);
    tn_buf_append_text(&out, " ");
    tn_json_bytes(&out, "\x01\xFF", 2);
    assert_string_equal(tn_buf_text(&out), "-1.500000 -9999.000000 [1,255]");
    tn_buf_fini(&out);
}

static json_t *read(const char *text, struct tn_refusal *r)
{
    *r = (struct tn_refusal){0};
    struct tn_json_wide seed;
    return tn_json_body_read(text, strlen(text), &seed, r);
}

static void bodies(void **state)
{
    static const char *const bad[] = {"", "{", "[]", "\"a\"", "{\"a\":NaN}", "{\"a\":1e999}",
                                      "{\"a\":\"\xFF\"}", "{\"a\":\"\\ud800\"}", "{}x", "nul"};
    struct tn_refusal r;
    char deep[300];
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++) {
        assert_null(read(bad[i], &r));
        assert_int_equal(r.status, 400);
        assert_true(r.message[0]);
    }
    memset(deep, '[', 299);
    deep[299] = '\0';
    memcpy(deep, "{\"a\":", 5);
    assert_null(read(deep, &r));
    assert_int_equal(r.status, 400);
    json_t *o = read("{\"a\":null,\"b\":9223372036854775808,\"c\":5}", &r);
    assert_non_null(o);
    assert_null(tn_json_member(o, "a"));
    assert_true(json_is_real(tn_json_member(o, "b")));
    assert_true(json_is_integer(tn_json_member(o, "c")));
    json_decref(o);
}

/* Of several numbers with this name that need 64 bits, the outermost is found, and of those the
 * last. */
static void wide_numbers(void **state)
{
    static const struct {
        const char *text;
        uint64_t whole; /* 0: none is found */
    } cases[] = {
        {"{\"seed\":18446744073709551615}", UINT64_MAX},
        {"{\"seed\":9223372036854775808}", (uint64_t)1 << 63},
        {"{\"a\":{\"seed\":9223372036854775809}}", ((uint64_t)1 << 63) + 1},
        {"{\"seed\":9223372036854775810,\"a\":{\"seed\":9223372036854775809}}",
         ((uint64_t)1 << 63) + 2},
        {"{\"seed\":9223372036854775810,\"seed\":9223372036854775809}", ((uint64_t)1 << 63) + 1},
        {"{\"seed\":9223372036854775807}", 0},
        {"{\"seed\":18446744073709551616}", 0},
        {"{\"seed\":-9223372036854775809}", 0},
        {"{\"seed\":1e19}", 0},
        {"{\"seed\":[18446744073709551615]}", 0},
        {"{\"seeds\":18446744073709551615}", 0},
    };
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tn_refusal r;
        struct tn_json_wide seed;
        json_t *o = tn_json_body_read(cases[i].text, strlen(cases[i].text), &seed, &r);
        assert_non_null(o);
        assert_int_equal(seed.value != NULL, cases[i].whole != 0);
        if (seed.value)
            assert_int_equal(seed.whole, cases[i].whole);
        json_decref(o);
    }
}

static const struct tern_model *no_model;

static bool read_options(const char *text, struct tn_gen *gen, struct tn_refusal *r)
{
    const struct tn_server_model model = {
        .model = no_model, .default_new_tokens = 100, .cap_new_tokens = 200};
    json_t *o = read(text, r);
    assert_non_null(o);
    tn_gen_init(gen, &model);
    bool good = tn_gen_read_options(gen, o, &model, r);
    json_decref(o);
    tn_gen_fini(gen);
    return good;
}

/* Each numeric field is refused by name for values out of range. */
static void wrong_numbers(void **state)
{
    static const char *const fields[] = {"temperature", "top_p", "min_p", "top_k",
                                         "repeat_penalty", "presence_penalty",
                                         "frequency_penalty", "repeat_last_n", "seed"};
    static const char *const values[] = {"-1e308", "1e308", "\"5\"", "[]", "{}", "true"};
    char text[128];
    struct tn_gen gen;
    struct tn_refusal r;
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(fields); i++)
        for (size_t j = 0; j < TN_COUNT_OF(values); j++) {
            snprintf(text, sizeof text, "{\"%s\":%s}", fields[i], values[j]);
            if (read_options(text, &gen, &r) || r.status != 400 || strcmp(r.param, fields[i]) != 0)
                fail_msg("%s", text);
        }
    for (size_t i = 0; i < TN_COUNT_OF(fields); i++) {
        snprintf(text, sizeof text, "{\"%s\":null}", fields[i]);
        assert_true(read_options(text, &gen, &r));
    }
}

static void lengths(void **state)
{
    static const struct {
        const char *text;
        uint32_t max_tokens;
    } cases[] = {{"{}", 100}, {"{\"num_predict\":7}", 7}, {"{\"num_predict\":-1}", 200},
                 {"{\"num_predict\":-2}", 100}, {"{\"num_predict\":2147483648}", 200},
                 {"{\"num_predict\":9223372036854775808}", 200}, {"{\"num_predict\":1e308}", 200},
                 {"{\"num_predict\":0}", 0}, {"{\"num_predict\":5.0}", 5}};
    struct tn_gen gen;
    struct tn_refusal r;
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        assert_true(read_options(cases[i].text, &gen, &r));
        assert_int_equal(gen.max_tokens, cases[i].max_tokens);
    }
    assert_false(read_options("{\"num_predict\":1.5}", &gen, &r));
}

static void sampling(void **state)
{
    struct tn_gen gen;
    struct tn_refusal r;
    (void)state;
    assert_true(read_options("{}", &gen, &r));
    assert_true(gen.sampler.repeat_penalty > 1.0f && gen.sampler.temperature > 0.0f);
    assert_true(read_options("{\"temperature\":0}", &gen, &r));
    assert_true(gen.sampler.repeat_penalty == 1.0f && gen.sampler.presence_penalty == 0.0f);
    assert_true(read_options("{\"temperature\":0,\"repeat_penalty\":1.5}", &gen, &r));
    assert_true(gen.sampler.repeat_penalty == 1.5f);
    assert_true(read_options("{\"seed\":9223372036854775808}", &gen, &r));
    assert_true(read_options("{\"seed\":9007199254740993}", &gen, &r));
    assert_true(gen.sampler.seed == 9007199254740993u);
    assert_true(read_options("{\"stop\":\"\"}", &gen, &r));
    assert_int_equal(gen.n_stops, 0);
    assert_true(read_options("{\"stop\":[\"a\",\"\",\"b\"]}", &gen, &r));
    assert_int_equal(gen.n_stops, 2);
    assert_false(read_options("{\"stop\":[1]}", &gen, &r));
    assert_false(read_options("{\"stop\":\"a\\u0000b\"}", &gen, &r));
    assert_string_equal(r.param, "stop");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings), cmocka_unit_test(numbers),       cmocka_unit_test(bodies),
        cmocka_unit_test(wide_numbers),
        cmocka_unit_test(lengths), cmocka_unit_test(wrong_numbers), cmocka_unit_test(sampling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

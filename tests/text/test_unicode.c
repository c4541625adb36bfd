/* SPDX-License-Identifier: MIT
 *
 * Character classes equal the pinned reference for every code point; UTF-8 is decoded by the
 * Unicode standard; strip behaves like Python's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "text/unicode.h"
#include "text_data.h"

#define CLASSES TERN_SHARED_DIR "/reference/tokenizers/golden/unicode_classes.json"

static void test_classes(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        enum tn_char_class class;
    } rows[] = {{"L", TN_CHAR_LETTER}, {"N", TN_CHAR_NUMBER}, {"s", TN_CHAR_SPACE}};
    unsigned char *expected = calloc(0x110000, 1);
    assert_non_null(expected);
    json_t *root = data_json(CLASSES), *range;
    size_t k;
    for (size_t i = 0; i < 3; i++)
        json_array_foreach(json_object_get(root, rows[i].key), k, range)
            for (json_int_t c = json_integer_value(json_array_get(range, 0));
                 c <= json_integer_value(json_array_get(range, 1)); c++)
                expected[c] = (unsigned char)rows[i].class;
    for (uint32_t c = 0; c < 0x110000; c++)
        if (tn_char_class(c) != expected[c])
            fail_msg("U+%04X has class %d, expected %d", c, tn_char_class(c), expected[c]);
    assert_int_equal(tn_char_class(TN_NOT_UTF8), TN_CHAR_OTHER);
    assert_int_equal(tn_char_class(0x110000), TN_CHAR_OTHER);
    json_decref(root);
    free(expected);
}

static void test_every_character(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110000; c++) {
        char text[4];
        uint32_t back;
        size_t n = tn_utf8_put(c, text), length;
        bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        if (surrogate)
            continue;
        assert_int_equal(tn_utf8_next(text, n, &back), n);
        assert_int_equal(back, c);
        assert_int_equal(tn_utf8_scan(text, n, &length, &back), TN_UTF8_CHARACTER);
        assert_int_equal(length, n);
        for (size_t part = 1; part < n; part++) {
            assert_int_equal(tn_utf8_scan(text, part, &length, &back), TN_UTF8_PARTIAL);
            assert_int_equal(tn_utf8_next(text, part, &back), 1);
            assert_int_equal(back, TN_NOT_UTF8);
        }
    }
}

static void test_invalid(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n, subpart;
    } rows[] = {
        {"\x80", 1, 1},         {"\xC0\x80", 2, 1},         {"\xC1\xBF", 2, 1},
        {"\xF5\x80", 2, 1},     {"\xFF", 1, 1},             {"\xC2\x41", 2, 1},
        {"\xE0\x9F\x80", 3, 1}, {"\xE0\xA0\x41", 3, 2},     {"\xED\xA0\x80", 3, 1},
        {"\xED\x9F\x41", 3, 2}, {"\xF0\x8F\x80\x80", 4, 1}, {"\xF0\x90\x80\x41", 4, 3},
        {"\xF4\x90\x80", 3, 1}, {"\xF4\x8F\x41", 3, 2},     {"\xE4\xB8\xE4", 3, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length;
        uint32_t c;
        assert_int_equal(tn_utf8_scan(rows[i].bytes, rows[i].n, &length, &c), TN_UTF8_INVALID);
        assert_int_equal(length, rows[i].subpart);
        assert_int_equal(tn_utf8_next(rows[i].bytes, rows[i].n, &c), 1);
        assert_int_equal(c, TN_NOT_UTF8);
    }
}

static void check_strip(const char *text, const char *expected)
{
    size_t n = strlen(text);
    tn_text_skip_space(&text, &n);
    tn_text_strip_end(text, &n);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(text, expected, n);
}

static void test_strip(void **state)
{
    (void)state;
    check_strip("", "");
    check_strip(" \t\r\n\v\f\x1C\x1D\x1E\x1F", "");
    check_strip("\xC2\x85\xC2\xA0\xE3\x80\x80 a b\xE2\x80\xA8\xE1\x9A\x80\xE2\x81\x9F", "a b");
    check_strip("\xE2\x80\x8B x \xEF\xBB\xBF", "\xE2\x80\x8B x \xEF\xBB\xBF");
    check_strip(" \x80 ", "\x80");
    check_strip(" \xC2\xA0\x80 ", "\x80");
    check_strip("a \xA0", "a \xA0"); /* the last byte of NBSP alone is not a space */
    check_strip("a \xE3\x80", "a \xE3\x80");
}

static void test_case(void **state)
{
    (void)state;
    assert_int_equal(tn_char_title('a'), 'A');
    assert_int_equal(tn_char_title(0x1C6), 0x1C5); /* a digraph has a distinct title case */
    assert_int_equal(tn_char_lower(0xDC), 0xFC);
    assert_int_equal(tn_char_lower('1'), '1');
    assert_int_equal(tn_char_lower(TN_NOT_UTF8), TN_NOT_UTF8);
}

int main(void)
{
    if (data_missing())
        return data_missing();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes), cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_invalid), cmocka_unit_test(test_strip),
        cmocka_unit_test(test_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

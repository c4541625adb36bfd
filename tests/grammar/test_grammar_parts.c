/* SPDX-License-Identifier: MIT
 *
 * Grammars of several parts, which may follow each other or a preamble, and which part an error
 * names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "compile_schema.h"

static struct tern_grammar_part part(const char *before, const char *schema, const char *after,
                                     uint32_t flags, const char *separator)
{
    return (struct tern_grammar_part){before, after, schema, strlen(schema), flags, separator};
}

static void a_text_fits_one_of_the_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n_fit;
        bool is_whole;
    } cases[] = {
        {"1", 1, true}, {" [1]", 4, true}, {"[[1], 1]", 8, true}, {"<a>2</a>", 8, true},
        {"<a>[2]</a>", 3, false}, {"<a> 2</a>, <a>2</a>", 19, true}, {"<a>2</a>,", 9, false},
        {"<a>2</a>, 1", 10, false}, {"1, <a>", 1, false}, {"<a>1", 3, false}, {"2", 0, false},
        {"<a>2</a>, 3;<a>2</a>", 20, true}, {"3;3;3", 5, true}, {"3, ", 1, false},
    };
    const struct tern_grammar_part parts[] = {
        part("", "{\"anyOf\":[{\"const\":1},{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}]}",
             "", TERN_GRAMMAR_STRICT, NULL),
        part("<a>", "{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"const\":2}}}", "</a>", 0,
             ", "),
        part("", "{\"const\":3}", "", 0, ";")};
    struct tern_grammar *g;
    assert_int_equal(tern_grammar_from_parts(&g, parts, TN_COUNT_OF(parts), NULL, NULL, NULL),
                     TERN_OK);
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        bool is_whole;
        const size_t n_fit = match(g, cases[i].text, &is_whole);
        if (is_whole != cases[i].is_whole || n_fit != cases[i].n_fit)
            fail_msg("%s: %zu bytes fit", cases[i].text, n_fit);
    }
    tern_grammar_free(g);
}

/* The closing tag is found after every beginning of it, also where it begins again. */
static void a_preamble_ends_with_the_first_tag(void **state)
{
    (void)state;
    static const struct {
        const char *open, *close, *text;
        size_t n_fit;
        bool is_whole;
    } cases[] = {
        {"", "aab", "aab1", 4, true}, {"", "aab", "aaab1", 5, true},
        {"", "aab", "aaaaab1", 7, true},
        {"", "aab", "xaabaab1", 4, false}, {"", "aab", "aaaa", 4, false},
        {"", "aab", "1", 1, false},
        {"", "abcabd", "abcabcabd1", 10, true}, {"", "</t>", "\xC3\xA9 <</t</t>\n\n 1", 15, true},
        {"<t>", "</t>", "<t></t>1", 8, true}, {"<t>", "</t>", "</t>1", 1, false},
        {"<t>", "</t>", "<t>1</t>\n1", 10, true}, {"<t>", "</t>", "<t>1</t>\n\n\n1", 12, true},
        {"<t>", "</t>", "<t>1</t>\n\n\n\n1", 11, false},
        {"", "\xE2\x97", "\xE2\xE2\x97" "1", 4, true},
    };
    const struct tern_grammar_part one = part("", "{\"const\":1}", "", 0, NULL);
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        const struct tern_grammar_preamble preamble = {cases[i].open, cases[i].close};
        struct tern_grammar *g;
        bool is_whole;
        assert_int_equal(tern_grammar_from_parts(&g, &one, 1, &preamble, NULL, NULL), TERN_OK);
        const size_t n_fit = match(g, cases[i].text, &is_whole);
        if (is_whole != cases[i].is_whole || n_fit != cases[i].n_fit)
            fail_msg("%zu, %s: %zu bytes fit", i, cases[i].text, n_fit);
        tern_grammar_free(g);
    }
}

/* Whether parsing, compiling or checking the heights fails, the part is named. */
static void the_part_that_fails_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        uint32_t flags;
        tern_status status;
        const char *detail;
    } cases[] = {
        {"{", 0, TERN_INPUT, "#: "},
        {"{\"type\":\"object\"}", TERN_GRAMMAR_STRICT, TERN_UNSUPPORTED, "#: "},
        {"{\"anyOf\":[{\"not\":{}}]}", 0, TERN_UNSUPPORTED, "#/anyOf/0: "},
        {"{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#\"}}", 0, TERN_LIMIT, "#: "},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"$ref\":\"#\"}]}", 0, TERN_LIMIT, "#: refers"},
    };
    for (size_t i = 0; i < 3 * TN_COUNT_OF(cases); i++) {
        const size_t k = i / 3, i_bad = i % 3;
        struct tern_grammar_part parts[3];
        const struct tern_grammar_preamble preamble = {"", "</a>"};
        struct tern_error err = {TERN_OK, ""};
        struct tern_grammar *g;
        size_t i_failed = 9;
        for (size_t p = 0; p < 3; p++)
            parts[p] = part("", "{\"type\":\"object\"}", "", 0, NULL);
        parts[i_bad] = part("", cases[k].schema, "", cases[k].flags, NULL);
        if (tern_grammar_from_parts(&g, parts, 3, i % 2 ? &preamble : NULL, &i_failed, &err) !=
            cases[k].status)
            fail_msg("case %zu: %d, %s", k, (int)err.status, err.detail);
        assert_null(g);
        assert_int_equal(i_failed, i_bad);
        if (strncmp(err.detail, cases[k].detail, strlen(cases[k].detail)) != 0)
            fail_msg("case %zu: %s", k, err.detail);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_fits_one_of_the_parts),
        cmocka_unit_test(a_preamble_ends_with_the_first_tag),
        cmocka_unit_test(the_part_that_fails_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

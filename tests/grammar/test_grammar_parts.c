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

#include "base/buf.h"
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

/* ---- objects as tags ---- */

#define P(name, value) "<parameter=" name ">\n" value "\n</parameter>\n"
#define CITY "\"city\":{\"type\":\"string\"}"

#define ONE(schema)                                                                                \
    "{\"type\":\"object\",\"properties\":{\"v\":" schema "},\"required\":[\"v\"]}"

struct tag_case {
    const char *schema, *text; /* of "<f>" tags "</f>" */
    bool is_whole;
};

static void check_tags(const struct tag_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[512];
        struct tern_grammar *g;
        struct tern_error err = {TERN_OK, ""};
        bool is_whole;
        const struct tern_grammar_part one =
            part("<f>\n", cases[i].schema, "</f>", TERN_GRAMMAR_TAGS, NULL);
        if (tern_grammar_from_parts(&g, &one, 1, NULL, NULL, &err) != TERN_OK)
            fail_msg("%s: %s", cases[i].schema, err.detail);
        snprintf(text, sizeof text, "<f>\n%s</f>", cases[i].text);
        const size_t n_fit = match(g, text, &is_whole);
        if (is_whole != cases[i].is_whole)
            fail_msg("%zu, %s: %zu bytes fit %s", i, text, n_fit, cases[i].schema);
        tern_grammar_free(g);
    }
}

static void an_object_is_written_as_tags(void **state)
{
    (void)state;
    static const char none[] = "{\"type\":\"object\",\"properties\":{}}";
    static const char any[] = "{\"type\":\"object\"}";
    static const char one[] = "{\"type\":\"object\",\"properties\":{" CITY "},"
                              "\"required\":[\"city\"]}";
    static const char several[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}," CITY
        ",\"ab\":{\"type\":\"boolean\"}},\"required\":[\"city\"]}";
    static const char more[] =
        "{\"type\":\"object\",\"properties\":{" CITY "},\"required\":[\"city\"],"
        "\"additionalProperties\":{\"type\":\"integer\"}}";
    static const struct tag_case cases[] = {
        {none, "", true}, {none, P("a", "1"), false}, {none, " ", false}, {none, "\n", false},
        {any, "", true}, {any, P("a", "x\n1") P("\xC3\xA9 \"", "{"), true},
        {any, P("", "1"), false}, {any, P("a<", "1"), false}, {any, P("a\n", "1"), false},
        {one, P("city", "Oslo"), true}, {one, "", false}, {one, P("town", "Oslo"), false},
        {one, P("city", "Oslo") P("city", "Oslo"), false}, {one, P("cit", "Oslo"), false},
        {several, P("city", "Oslo"), true}, {several, P("a", "1"), false},
        {several, P("a", "1") P("city", "x") P("ab", "true"), true},
        {several, P("city", "x") P("ab", "False"), true},
        {several, P("city", "x") P("ab", "yes"), false},
        {several, P("city", "x") P("a", "1"), false},
        {several, P("a", "x") P("city", "x"), false},
        {several, P("a", "\"1\"") P("city", "x"), false},
        {several, "<parameter=a>\n1</parameter>\n" P("city", "x"), false},
        {more, P("city", "Oslo") P("cit", "1") P("city2", "2") P("\xC3\xA9", "3"), true},
        {more, P("city", "Oslo") P("city", "1"), false}, {more, P("city", "Oslo") P("n", "x"), false},
    };
    check_tags(cases, TN_COUNT_OF(cases));
}

/* Text ends with the first closing tag, which is what reads it. */
static void text_between_tags_is_verbatim(void **state)
{
    (void)state;
    static const char text[] = ONE("{\"type\":\"string\"}");
    static const char free_value[] = ONE("{\"description\":\"anything\"}");
    static const char nullable[] = ONE("{\"anyOf\":[{\"type\":\"string\",\"maxLength\":2},"
                                       "{\"type\":\"null\"}]}");
    static const char listed[] = ONE("{\"enum\":[\"a\\n\",\"5\",5,\"\",null,\"</parameter>\"]}");
    static const char date[] = ONE("{\"type\":\"string\",\"format\":\"date\"}");
    static const char pattern[] = ONE("{\"type\":\"string\",\"pattern\":\"^<.*>$\"}");
    static const char length[] = ONE("{\"type\":\"string\",\"minLength\":1,\"maxLength\":4}");
    static const char at_least[] = ONE("{\"type\":\"string\",\"minLength\":2}");
    static const char named[] =
        "{\"type\":\"object\",\"properties\":{\"v\":{\"$ref\":\"#/$defs/s\"}},"
        "\"required\":[\"v\"],\"$defs\":{\"s\":{\"allOf\":[{\"const\":\"x\"}]}}}";
    static const struct tag_case cases[] = {
        {text, P("v", "5"), true}, {text, P("v", ""), true}, {text, P("v", "\n\n"), true},
        {text, "<parameter=v>\n</parameter>\n", true},
        {text, "<parameter=v>\nx</parameter>\n", true}, {text, "<parameter=v>x</parameter>\n", false},
        {text, P("v", "\"\\ \t {<parameter=v>\n1 </param </parameter </tool_call </t <</</"), true},
        {text, P("v", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80</\xC3\xA9"), true},
        {text, P("v", "\xFF"), false}, {text, P("v", "\xC3"), false},
        {text, P("v", "</para</parameter>"), false}, {text, P("v", "</</tool_call>"), false},
        {text, P("v", "a\n</parameter>\nb"), false},
        {free_value, P("v", "{not JSON"), true},
        {nullable, P("v", "null"), true}, {nullable, P("v", "nu"), true},
        {nullable, P("v", "nul"), false},
        {listed, P("v", "a\n"), true}, {listed, P("v", "a"), false}, {listed, P("v", "5"), true},
        {listed, P("v", ""), true}, {listed, P("v", "null"), true}, {listed, P("v", "\"5\""), false},
        {listed, "<parameter=v>\n5</parameter>\n", false}, {listed, P("v", "</parameter>"), false},
        {date, P("v", "2026-02-28"), true}, {date, P("v", "2026-02-30"), false},
        {pattern, P("v", "<a \"\\\x7F <>"), true}, {pattern, P("v", "<a"), false},
        {pattern, P("v", "<</b>"), false}, {pattern, P("v", "</b>"), false},
        {length, P("v", ""), false}, {length, P("v", "<<\xF0\x9F\x98\x80\""), true},
        {length, P("v", "<"), true}, {length, P("v", "abcde"), false}, {length, P("v", "</"), false},
        {length, P("v", "<a/<"), true}, {length, P("v", "<<<<<"), false},
        {at_least, P("v", "<"), false}, {at_least, P("v", "<<a/b<c"), true},
        {at_least, P("v", "abc</"), false}, {named, P("v", "x"), true}, {named, P("v", "y"), false},
    };
    check_tags(cases, TN_COUNT_OF(cases));
}

static void other_values_between_tags_are_json(void **state)
{
    (void)state;
    static const char list[] = ONE("{\"type\":\"array\",\"items\":{\"type\":\"string\"}}");
    static const char tree[] = ONE("{\"anyOf\":[{\"const\":1},{\"$ref\":\"#\"}]}");
    static const char either[] = ONE("{\"type\":[\"integer\",\"null\"]}");
    static const char object[] = ONE("{\"type\":\"object\",\"properties\":{\"v\":"
                                     "{\"type\":\"string\"}}}");
    static const struct tag_case cases[] = {
        {list, P("v", "[\"</parameter>\\n</tool_call>\"]"), true}, {list, P("v", "x"), false},
        {list, P("v", "[\"x\",1]"), false},
        {tree, P("v", "1"), true}, {tree, P("v", "{\"v\": {\"v\": 1}}"), true},
        {tree, P("v", P("v", "1")), false},
        {either, P("v", "null"), true}, {either, P("v", "-12"), true}, {either, P("v", "1.5"), false},
        {object, P("v", "{\"v\": \"5\"}"), true}, {object, P("v", "{\"v\": 5}"), false},
    };
    check_tags(cases, TN_COUNT_OF(cases));
}

static void what_tags_cannot_express_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *detail;
    } cases[] = {
        {"{\"type\":\"array\"}", "#: \"type\" must be object"},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"object\"}}}", "#: \"$ref\""},
        {"{\"type\":\"object\",\"properties\":{\"a>\":{}}}", "#: \"a>\" cannot"},
        {"{\"type\":\"object\",\"properties\":{\"\":{}}}", "#: \"\" cannot"},
        {"{\"type\":\"object\",\"patternProperties\":{\"^a\":{}}}", "#: tags support neither"},
        {ONE("{\"type\":\"string\",\"pattern\":\"^</\"}"), "#/properties/v: \"pattern\""},
        {ONE("{\"type\":\"string\",\"not\":{}}"), "#/properties/v: \"not\""},
        {ONE("{\"type\":\"integer\",\"not\":{}}"), "#/properties/v: \"not\""},
        {ONE("{\"enum\":[\"</parameter>\"]}"), "#"},
        {"{\"type\":\"object\",\"properties\":{\"v\":{\"anyOf\":[{\"type\":\"string\","
         "\"maxLength\":2},{\"$ref\":\"#/properties/v\"}]}},\"required\":[\"v\"]}",
         "#/properties/v: refers to itself"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_grammar *g;
        struct tern_error err = {TERN_OK, ""};
        const struct tern_grammar_part one =
            part("", cases[i].schema, "", TERN_GRAMMAR_TAGS, NULL);
        assert_int_not_equal(tern_grammar_from_parts(&g, &one, 1, NULL, NULL, &err), TERN_OK);
        if (strncmp(err.detail, cases[i].detail, strlen(cases[i].detail)) != 0)
            fail_msg("case %zu: %s", i, err.detail);
    }
}

/* Definitions, each of which refers to the next one twice: a path to the last one for each of 2^n
 * combinations. */
static void doubling_references_in_tags_are_charged(void **state)
{
    (void)state;
    static const char *const types[] = {"string", "integer"};
    for (size_t i = 0; i < TN_COUNT_OF(types); i++) {
        struct tern_grammar *g;
        struct tern_error err = {TERN_OK, ""};
        struct tn_buf schema = {0};
        tn_buf_append_text(&schema, "{\"type\":\"object\",\"properties\":{\"v\":"
                                    "{\"$ref\":\"#/$defs/0\"}},\"$defs\":{");
        for (int k = 0; k < 30; k++)
            tn_buf_printf(&schema, "\"%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/%d\"},"
                                   "{\"$ref\":\"#/$defs/%d\"}]},", k, k + 1, k + 1);
        tn_buf_printf(&schema, "\"30\":{\"type\":\"%s\"}}}", types[i]);
        const struct tern_grammar_part one =
            part("", tn_buf_text(&schema), "", TERN_GRAMMAR_TAGS, NULL);
        assert_int_equal(tern_grammar_from_parts(&g, &one, 1, NULL, NULL, &err), TERN_LIMIT);
        if (!strstr(err.detail, "#/properties/v: the schema is too complex"))
            fail_msg("%s", err.detail);
        tn_buf_fini(&schema);
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
        cmocka_unit_test(an_object_is_written_as_tags),
        cmocka_unit_test(text_between_tags_is_verbatim),
        cmocka_unit_test(other_values_between_tags_are_json),
        cmocka_unit_test(what_tags_cannot_express_is_refused),
        cmocka_unit_test(doubling_references_in_tags_are_charged),
        cmocka_unit_test(the_part_that_fails_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Grammars in GBNF and regular expressions for whole texts: what they match, and how mistakes are
 * refused.  test_gbnf_oracle.py compares random ones with another matcher.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "grammar/compile_schema.h"

static struct tern_grammar *must_compile(const char *text)
{
    struct tern_grammar *g;
    struct tern_error err;
    if (tern_grammar_from_gbnf(&g, text, strlen(text), NULL, &err) != TERN_OK)
        fail_msg("%s: %s", text, err.detail);
    return g;
}

/* The text matches up to its first '|' and not after it; without one all of it is a whole text. */
static void check(const struct tern_grammar *g, const char *name, const char *text)
{
    bool is_whole;
    char joined[512];
    const char *bar = strchr(text, '|');
    const size_t n = bar ? (size_t)(bar - text) : strlen(text);
    assert_true(snprintf(joined, sizeof joined, "%.*s%s", (int)n, text, bar ? bar + 1 : "") <
                (int)sizeof joined);
    const size_t n_fit = match(g, joined, &is_whole);
    if (n_fit != n || is_whole != !bar)
        fail_msg("%s: \"%s\": %zu bytes fit, whole: %d", name, text, n_fit, is_whole);
}

static void grammars_match(void **state)
{
    (void)state;
    static const struct {
        const char *grammar;
        const char *texts[6];
    } cases[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no", "ye|t", "|maybe", "no|w"}},
        {"# first\nroot::=(\"a\" # one\n | \"b\"\n)+ # two\r\n\n", {"a", "abba", "ab|c", "|c"}},
        {"root ::= a b\na ::= [0-9]{2}\nb ::= \"x\"{1,} \"y\"{,2} \"z\"{0} [.]{0,1}",
         {"12x", "12xxyy.", "1|x", "12|y", "12xyy|y", "12x|z"}},
        {"root ::= [^a-c\\]\\n]* \"\\x41\\u00e9\\U0001F600\"", {"A\xC3\xA9\xF0\x9F\x98\x80",
                                                      "xyA\xC3\xA9\xF0\x9F\x98\x80", "xy|a"}},
        {"root ::= [a\\-z] [b-] [\\[\\\\]", {"a-[", "-b\\", "zb\\", "|b"}},
        {"root ::= [^\\x7F\\x00-\\x1F]+ [\\x00-\\x09]", {"a\t", " ~\x01", "|\n", "a|\n"}},
        {"root ::= . .?", {"\xE6\x97\xA5\xE6\x9C\xAC", "\n", "ab|c"}},
        {"root ::= \"\" | (\"\" | \"a\"?)* \"b\"", {"", "b", "aab", "ab|b"}},
        {"root ::= list\nlist ::= item | item \",\" list\nitem ::= [0-9]+", {"1", "1,22,3", "1,|,"}},
        {"root ::=\n \"a\" root_2\n | \"b\"\n\nroot_2 ::= root | \"!\"", {"aab", "a!", "aaaa!", "a|c"}},
        {"root ::= (\"a\" (\"b\" (\"c\")?)?)? \"d\"", {"d", "abd", "abcd", "a|c"}},
        {"root ::= (\"ab\"+ \"c\")? \"d\"*", {"", "ababcdd", "ddd", "ab|d", "|c"}},
        {"root ::= (\"x\"{2}){1,2}", {"xx", "xxxx", "xxxx|x", "|y"}},
        {"root ::= (\"a\"*){3} \"b\"", {"b", "aaaab", "|c"}},
        {"root ::= \"a\"+?{2} | \"b\"* +", {"", "aaaa", "bb", "a|b"}},
        {"root ::= t{1,3}\nt ::= \"(\" root? \")\"", {"()", "(()())()", "()()()|(", "(|a"}},
        {"A ::= B\nroot ::= A \"tail\"\nB ::= \"x\" B | \"y\"", {"ytail", "xxytail", "y|x"}},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_grammar *g = must_compile(cases[i].grammar);
        for (size_t k = 0; k < TN_COUNT_OF(cases[i].texts) && cases[i].texts[k]; k++)
            check(g, cases[i].grammar, cases[i].texts[k]);
        tern_grammar_free(g);
    }
}

static void recursion_nests_up_to_the_limit(void **state)
{
    (void)state;
    struct tern_grammar *nested = must_compile("root ::= \"(\" root \")\" | \"x\"");
    struct tern_grammar *right = must_compile("root ::= [ab] root | \"x\"");
    struct tern_grammar *group = must_compile("root ::= ws \"x\"\nws ::= ([ \\n] (ws))?");
    bool is_whole;
    char text[4 * TERN_GRAMMAR_MAX_DEPTH + 2];
    for (size_t n = 1; n <= TERN_GRAMMAR_MAX_DEPTH + 1; n++) {
        memset(text, '(', n);
        text[n] = 'x';
        memset(text + n + 1, ')', n);
        text[2 * n + 1] = '\0';
        (void)match(nested, text, &is_whole);
        assert_int_equal(is_whole, n <= TERN_GRAMMAR_MAX_DEPTH);
    }
    memset(text, 'a', sizeof text);
    text[sizeof text - 2] = 'x';
    text[sizeof text - 1] = '\0';
    check(right, "right recursion", text);
    memset(text, ' ', sizeof text - 2);
    check(group, "right recursion in a group", text);
    tern_grammar_free(nested);
    tern_grammar_free(right);
    tern_grammar_free(group);
}

static void mistakes_are_refused_with_the_position(void **state)
{
    (void)state;
    static const struct {
        const char *grammar;
        tern_status status;
        const char *detail;
    } cases[] = {
        {"", TERN_USAGE, "the rule \"root\" is missing"},
        {"a ::= \"b\"", TERN_USAGE, "the rule \"root\" is missing"},
        {"root ::= a\nb ::= \"x\" c", TERN_USAGE, "line 1, column 10: this rule is not defined"},
        {"root ::= \"a\"\nroot ::= \"b\"", TERN_USAGE,
         "line 2, column 1: this rule is defined already"},
        {"root = \"a\"", TERN_USAGE, "line 1, column 6: ::= is missing"},
        {"\n  ::= \"a\"", TERN_USAGE, "line 2, column 3: the name of a rule is missing"},
        {"root ::= \"a", TERN_USAGE, "line 1, column 10: a text without its closing quote"},
        {"root ::= [a", TERN_USAGE, "line 1, column 10: a class without its closing bracket"},
        {"root ::= []", TERN_USAGE, "line 1, column 10: a class without characters"},
        {"root ::= [b-a]", TERN_USAGE, "line 1, column 11: a range that ends before it begins"},
        {"root ::= \"\xC3\xA9\" \"\\q\"", TERN_USAGE, "line 1, column 15: an unknown escape"},
        {"root ::= \"\\", TERN_USAGE, "line 1, column 11: an unknown escape"},
        {"root ::= \"\\xg0\"", TERN_USAGE,
         "line 1, column 13: a hexadecimal digit is missing"},
        {"root ::= \"\\uD800\"", TERN_USAGE, "line 1, column 13: not a character"},
        {"root ::= \"\\U00110000\"", TERN_USAGE, "line 1, column 13: not a character"},
        {"root ::= \"a\\x00\"", TERN_USAGE, "line 1, column 12: U+0000, which no answer has"},
        {"root ::= [\\x00]", TERN_USAGE, "line 1, column 10: a class without characters"},
        {"root ::= \"a\" \xFF", TERN_USAGE, "line 1, column 14: not UTF-8"},
        {"root ::= (\"a\"\n\n", TERN_USAGE,
         "line 1, column 11: a group without its closing parenthesis"},
        {"root ::= \"a\")", TERN_USAGE,
         "line 1, column 13: a closing parenthesis without an opening one"},
        {"root ::= \"a\"{}", TERN_USAGE, "line 1, column 14: a number is missing"},
        {"root ::= \"a\"{1", TERN_USAGE, "line 1, column 15: a closing brace is missing"},
        {"root ::= \"a\"{3,2}", TERN_USAGE,
         "line 1, column 13: a number of repetitions above its maximum"},
        {"root ::= \"a\"{10001}", TERN_LIMIT, "line 1, column 14: more than 10000 repetitions"},
        {"root ::= * \"a\"", TERN_USAGE,
         "line 1, column 10: neither a text, a class, a name, a group nor a line end"},
        {"root ::= <think>", TERN_UNSUPPORTED, "line 1, column 10: tokens"},
        {"root ::= !<[12]>", TERN_UNSUPPORTED, "line 1, column 10: tokens"},
        {"root ::= \"x\" | a\na ::= b? a \"y\"\nb ::= \"b\"", TERN_LIMIT,
         "line 2, column 1: the rule a: refers to itself"},
        {"b ::= \"b\"\nroot ::= a\na ::= b? a \"y\" | \"z\"", TERN_LIMIT,
         "line 3, column 1: the rule a: refers to"},
        {"root ::= root", TERN_LIMIT, "line 1, column 1: the rule root: refers to itself"},
        {"root ::= (\"a\"* root)+", TERN_LIMIT, "line 1, column 1: the rule root: refers to"},
        {"root ::= \"a\" root", TERN_LIMIT, "line 1, column 1: the rule root: no value fits"},
        {"root ::= (((\"a\"{9999}){9999}){9999}){9999}\nx ::= \"b\"{9999}", TERN_OK, ""},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_grammar *g;
        struct tern_error err = {TERN_OK, ""};
        const char *text = cases[i].grammar;
        const tern_status status = tern_grammar_from_gbnf(&g, text, strlen(text), NULL, &err);
        if (status != cases[i].status || strncmp(err.detail, cases[i].detail,
                                                 strlen(cases[i].detail)) != 0)
            fail_msg("%s: %d \"%s\"", text, (int)status, err.detail);
        assert_int_equal(g != NULL, status == TERN_OK);
        tern_grammar_free(g);
    }
}

/* Compiles `open`, n times `one`, and `close`; the detail of the refusal. */
static void check_limit(const char *open, const char *one, size_t n, const char *close,
                        const char *detail)
{
    struct tern_grammar *g;
    struct tern_error err = {TERN_OK, ""};
    struct tn_buf text = {0};
    tn_buf_append_text(&text, open);
    for (size_t i = 0; i < n; i++)
        tn_buf_append_text(&text, one);
    tn_buf_append_text(&text, close);
    const tern_status status = tern_grammar_from_gbnf(&g, text.data, text.n_bytes, NULL, &err);
    if (status != (detail[0] ? TERN_LIMIT : TERN_OK) || !strstr(err.detail, detail))
        fail_msg("%zu of %s: %d \"%s\"", n, one, (int)status, err.detail);
    tern_grammar_free(g);
    tn_buf_fini(&text);
}

static void sizes_are_limited(void **state)
{
    (void)state;
    check_limit("root ::= ", "(", 64, "\"a\"))))))))))))))))))))))))))))))))))))))))))))))))))))))))))"
                                      "))))))", "");
    check_limit("root ::= ", "(", 65, "\"a\"", "groups nest more than 64 deep");
    check_limit("root ::= \"a\"", " \"b\"{9999}", 26, "", "");
    check_limit("root ::= \"a\"", " \"b\"{9999}", 27, "", "the grammar is too large");
    check_limit("root ::= [", "a", 512, "]", "a class of more than 511 ranges");
    check_limit("root ::= ", "a", 256, "", "a name of more than 255 bytes");
    check_limit("root ::= \"", "a", 1u << 20, "\"", "a grammar of 1048587 bytes");
}

static void rules_are_limited(void **state)
{
    (void)state;
    for (unsigned n = 32768; n <= 32769; n++) {
        struct tern_grammar *g;
        struct tern_error err = {TERN_OK, ""};
        struct tn_buf text = {0};
        tn_buf_append_text(&text, "root ::= r2\n");
        for (unsigned i = 2; i < n; i++)
            tn_buf_printf(&text, "r%u ::= r%u\n", i, i + 1);
        tn_buf_printf(&text, "r%u ::= \"a\"", n);
        assert_int_equal(
            tern_grammar_from_gbnf(&g, text.data, text.n_bytes, NULL, &err),
            n > 32768 ? TERN_LIMIT : TERN_OK);
        assert_true(n <= 32768 || strstr(err.detail, "more than 32768 rules"));
        tern_grammar_free(g);
        tn_buf_fini(&text);
    }
}

static void expressions_match_whole_texts(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        const char *texts[6];
    } cases[] = {
        {"[0-9]{3}-\\d{4}", {"555-1234", "555|1", "|x"}},
        {"cat|dog", {"cat", "dog", "do|t", "|xcat"}},
        {"^a.*z$", {"az", "a</b>z", "|b"}},
        {"(?:\"[^\"\\\\]\")+", {"\"a\"\"b\"", "\"|\""}},
        {"", {"", "|a"}},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_grammar *g;
        struct tern_error err;
        if (tern_grammar_from_regex(&g, cases[i].expression, NULL, &err) != TERN_OK)
            fail_msg("%s: %s", cases[i].expression, err.detail);
        for (size_t k = 0; k < TN_COUNT_OF(cases[i].texts) && cases[i].texts[k]; k++)
            check(g, cases[i].expression, cases[i].texts[k]);
        tern_grammar_free(g);
    }
    struct tern_grammar *g;
    struct tern_error err;
    assert_int_equal(tern_grammar_from_regex(&g, "a\\b", NULL, &err), TERN_UNSUPPORTED);
    assert_string_equal(err.detail, "word boundary at character 1");
    assert_int_equal(tern_grammar_from_regex(&g, "b$a", NULL, &err), TERN_USAGE);
    assert_int_equal(tern_grammar_from_regex(&g, "(a{1000}){1000}", NULL, &err), TERN_LIMIT);
    assert_null(g);
}

static void a_preamble_comes_first(void **state)
{
    (void)state;
    const struct tern_grammar_preamble preamble = {.open = "<think>", .close = "</think>"};
    struct tern_grammar *g;
    assert_int_equal(tern_grammar_from_gbnf(&g, "root ::= \"yes\"", 14, &preamble, NULL), TERN_OK);
    check(g, "preamble", "<think>why not</think>\n\nyes");
    check(g, "preamble", "|yes");
    tern_grammar_free(g);
    assert_int_equal(tern_grammar_from_regex(&g, "y+", &preamble, NULL), TERN_OK);
    check(g, "preamble", "<think></think>yy");
    check(g, "preamble", "<think></think>|z");
    tern_grammar_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grammars_match),
        cmocka_unit_test(recursion_nests_up_to_the_limit),
        cmocka_unit_test(mistakes_are_refused_with_the_position),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(rules_are_limited),
        cmocka_unit_test(expressions_match_whole_texts),
        cmocka_unit_test(a_preamble_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

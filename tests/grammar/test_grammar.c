/* SPDX-License-Identifier: MIT
 *
 * Schemas: which are refused and with what path, and that hostile ones cost no more than the limits
 * allow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "compile_schema.h"
#include "grammar/token_mask.h"

/* ---- refusals ---- */

static void unsupported_schemas_are_refused_with_their_path(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        uint32_t flags;
        tern_status status;
        const char *detail;
    } cases[] = {
        {"", 0, TERN_INPUT, "#"},
        {"7", 0, TERN_INPUT, "#"},
        {"true", 0, TERN_INPUT, "#"},
        {"[1]", 0, TERN_USAGE, "#: a schema must be an object"},
        {"{\"anyOf\":[5]}", 0, TERN_USAGE, "#/anyOf/0: a schema must be an object"},
        {"{\"maximum\":9223372036854775808}", 0, TERN_INPUT, "more than 63 bits"},
        {"{\"type\":\"object\",\"type\":\"null\"}", 0, TERN_INPUT, "duplicate"},
        {"{\"type\":\"strin\"}", 0, TERN_USAGE, "#: \"type\" must be one or several"},
        {"{\"type\":[]}", 0, TERN_USAGE, "#: \"type\""},
        {"{}", TERN_GRAMMAR_STRICT, TERN_USAGE, "#: \"type\" is missing"},
        {"{\"type\":\"string\",\"nullable\":true}", 0, TERN_UNSUPPORTED, "#: \"nullable\""},
        {"{\"pattern\":\"a\"}", 0, TERN_USAGE, "#: \"type\" is missing"},
        {"{\"oneOf\":[]}", 0, TERN_USAGE, "#: \"oneOf\" must be an array"},
        {"{\"oneOf\":[{\"type\":\"null\"},{\"if\":{}}]}", 0, TERN_UNSUPPORTED,
         "#/oneOf/1: \"if\""},
        {"{\"oneOf\":[{\"type\":\"null\"}],\"anyOf\":[]}", 0, TERN_UNSUPPORTED,
         "#: \"oneOf\" is not supported together with \"anyOf\""},
        {"{\"anyOf\":[]}", 0, TERN_USAGE, "#: \"anyOf\""},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"allOf\":[]}]}", 0, TERN_USAGE,
         "#/anyOf/1: \"allOf\": it must be an array"},
        {"{\"allOf\":[5]}", 0, TERN_USAGE, "#: \"allOf\": each item must be a schema"},
        {"{\"allOf\":[{\"$ref\":\"#/x\"}]}", 0, TERN_USAGE, "the schema has nothing at \"#/x\""},
        {"{\"allOf\":[{\"type\":\"null\"},{\"type\":[\"string\",\"array\"]}]}", 0, TERN_USAGE,
         "#: \"allOf\": no value has every \"type\""},
        {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":5}],\"type\":\"string\"}", 0,
         TERN_UNSUPPORTED, "#: \"allOf\": its schemas differ in \"pattern\""},
        {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"},{\"pattern\":\"c\"},"
         "{\"pattern\":\"d\"},{\"pattern\":\"e\"}],\"type\":\"string\"}", 0, TERN_LIMIT,
         "#: \"allOf\": more than 4 times \"pattern\""},
        {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"},{\"pattern\":\"c\"},"
         "{\"pattern\":\"\"},{\"pattern\":\"d\"}],\"type\":\"string\"}", 0, TERN_LIMIT,
         "#: \"allOf\": more than 4 times \"pattern\""},
        {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"},{\"pattern\":\"c\"}],"
         "\"format\":\"email\",\"type\":\"string\"}", 0, TERN_LIMIT, "more than 4 expressions"},
        {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"(?!b)\"}],\"type\":\"string\"}", 0,
         TERN_UNSUPPORTED, "#: \"pattern\": look-ahead at character 0"},
        {"{\"allOf\":[{\"anyOf\":[{\"type\":\"null\"}]},{\"type\":\"null\"}]}", 0,
         TERN_UNSUPPORTED, "#: \"type\" is not supported together with \"anyOf\""},
        {"{\"type\":\"array\",\"uniqueItems\":true}", 0, TERN_UNSUPPORTED, "#: \"uniqueItems\""},
        {"{\"type\":\"array\",\"uniqueItems\":1}", 0, TERN_USAGE, "#: \"uniqueItems\" must be"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,[2]]}}", 0,
         TERN_UNSUPPORTED, "#: \"uniqueItems\" is supported for items that are"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2]},"
         "\"minItems\":3}", 0, TERN_USAGE, "only 2 different items exist"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"prefixItems\":[{},{}]}", 0,
         TERN_UNSUPPORTED, "#: \"uniqueItems\""},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"$ref\":\"#/items\"}}", 0,
         TERN_UNSUPPORTED, "#: \"uniqueItems\""},
        {"{\"type\":\"array\",\"prefixItems\":[]}", 0, TERN_USAGE, "#: \"prefixItems\" must be"},
        {"{\"type\":\"array\",\"items\":[]}", 0, TERN_USAGE, "#: \"items\" must be an array"},
        {"{\"type\":\"array\",\"prefixItems\":[{},{\"if\":{}}]}", 0, TERN_UNSUPPORTED,
         "#/prefixItems/1: \"if\""},
        {"{\"type\":\"array\",\"items\":[{}],\"additionalItems\":{\"if\":{}}}", 0,
         TERN_UNSUPPORTED, "#/additionalItems: \"if\""},
        {"{\"type\":\"array\",\"prefixItems\":[{}],\"items\":false,\"minItems\":2}", 0,
         TERN_USAGE, "#: \"minItems\" is 2, but there are schemas for 1"},
        {"{\"allOf\":[{\"type\":\"array\",\"prefixItems\":[{}]},{\"items\":{\"type\":"
         "\"null\"}}]}", 0, TERN_UNSUPPORTED, "#: \"allOf\": its schemas differ in \"prefixItems\""},
        {"{\"allOf\":[{\"type\":\"array\",\"items\":{}},{\"items\":[{}]}]}", 0, TERN_UNSUPPORTED,
         "differ in \"prefixItems\""},
        {"{\"anyOf\":[{\"type\":\"null\"}],\"type\":\"null\"}", 0, TERN_UNSUPPORTED,
         "#: \"type\" is not supported together with \"anyOf\""},
        {OBJECT("\"properties\":{\"a/b\":{\"type\":\"array\",\"items\":{\"not\":{}}}}"), 0,
         TERN_UNSUPPORTED, "#/properties/a~1b/items: \"not\" is not supported"},
        {OBJECT("\"properties\":{\"a\":{\"type\":\"null\"}}"), TERN_GRAMMAR_STRICT, TERN_USAGE,
         "#: \"required\" must name every property; \"a\" is missing"},
        {OBJECT("\"properties\":{},\"required\":[\"a\"]"), 0, TERN_USAGE, "names \"a\""},
        {"{\"type\":\"object\",\"required\":[\"a\"]}", 0, TERN_USAGE, "names \"a\""},
        {"{\"type\":\"object\",\"required\":5}", 0, TERN_USAGE, "#: \"required\""},
        {OBJECT("\"properties\":[]"), 0, TERN_USAGE, "#: \"properties\""},
        {OBJECT("\"required\":{}"), 0, TERN_USAGE, "#: \"required\""},
        {"{\"type\":\"object\",\"properties\":{}}", TERN_GRAMMAR_STRICT, TERN_UNSUPPORTED,
         "#: \"additionalProperties\" must be false"},
        {"{\"type\":\"object\",\"additionalProperties\":true}", TERN_GRAMMAR_STRICT,
         TERN_UNSUPPORTED, "#: \"additionalProperties\" must be false or"},
        {"{\"type\":\"object\",\"additionalProperties\":5}", 0, TERN_USAGE,
         "#: \"additionalProperties\" must be a schema"},
        {"{\"type\":\"object\",\"additionalProperties\":{\"if\":{}}}", 0, TERN_UNSUPPORTED,
         "#/additionalProperties: \"if\""},
        {"{\"type\":\"object\",\"minProperties\":1}", 0, TERN_UNSUPPORTED, "\"minProperties\""},
        {OBJECT("\"patternProperties\":{\"a\":{},\"b\":{}}"), 0, TERN_UNSUPPORTED, "one pattern"},
        {OBJECT("\"patternProperties\":{\"(\":{}}"), 0, TERN_USAGE,
         "#: \"patternProperties\": unclosed group"},
        {OBJECT("\"properties\":{\"ab\":{}},\"patternProperties\":{\"^a\":{}}"), 0,
         TERN_UNSUPPORTED, "#: \"ab\" is among the \"properties\" and fits"},
        {"{\"patternProperties\":{\"a\":{}},\"additionalProperties\":true}", 0, TERN_UNSUPPORTED,
         "#: \"patternProperties\" must have one pattern"},
        {"{\"type\":\"object\",\"propertyNames\":{\"const\":\"a\"}}", 0, TERN_UNSUPPORTED,
         "\"const\" is not supported in \"propertyNames\""},
        {"{\"type\":\"object\",\"propertyNames\":{\"minLength\":2},\"properties\":{\"a\":{}},"
         "\"additionalProperties\":{}}", 0, TERN_UNSUPPORTED, "combined with \"properties\""},
        {OBJECT("\"propertyNames\":{\"minLength\":2},\"properties\":{\"a\":{}}"), 0,
         TERN_UNSUPPORTED, "combined with \"properties\""},
        {"{\"type\":\"array\"}", TERN_GRAMMAR_STRICT, TERN_USAGE, "#: an array needs \"items\""},
        {"{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}", 0, TERN_USAGE, "only 2"},
        {"{\"type\":\"array\",\"minItems\":-1}", 0, TERN_USAGE, "#: \"minItems\""},
        {"{\"type\":\"array\",\"maxItems\":1000000}", 0, TERN_LIMIT, "#: \"maxItems\""},
        {"{\"enum\":[]}", 0, TERN_USAGE, "#: \"enum\""},
        {"{\"enum\":[1],\"type\":\"string\"}", 0, TERN_USAGE, "has the \"type\""},
        {"{\"const\":\"ab\",\"maxLength\":1}", 0, TERN_USAGE, "fits its limits"},
        {"{\"const\":\"ab\",\"pattern\":\"(\"}", 0, TERN_USAGE, "\"pattern\": unclosed group"},
        {"{\"enum\":[1,2],\"minimum\":\"1\"}", 0, TERN_USAGE, "#: \"minimum\" must be a number"},
        {"{\"enum\":[[]],\"minItems\":1}", 0, TERN_UNSUPPORTED,
         "#: \"minItems\" is not supported together with \"enum\""},
        {"{\"$ref\":7}", 0, TERN_USAGE, "#: \"$ref\""},
        {"{\"$ref\":\"#/$defs/none\"}", 0, TERN_USAGE, "the schema has nothing at \"#/$defs/none\""},
        {"{\"$ref\":\"https://example.com/x\"}", 0, TERN_USAGE, "the schema has nothing at"},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"if\":{}}}}", 0, TERN_UNSUPPORTED,
         "#/$defs/a: \"if\""},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":true}}", TERN_GRAMMAR_STRICT, TERN_USAGE,
         "#/$defs/a: a schema must be an object"},
        {"{\"$ref\":\"#\"}", 0, TERN_LIMIT, "#: refers to itself"},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"type\":\"null\"},"
         "{\"$ref\":\"#/$defs/a\"}]}}}", 0, TERN_LIMIT, "refers to itself"},
        {OBJECT("\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]"), 0, TERN_LIMIT,
         "#: no value fits: every value is endless"},
        {"{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#\"}}", 0, TERN_LIMIT,
         "#: no value fits: every value is endless"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_grammar *g;
        struct tern_error err;
        const tern_status status = compile(&g, cases[i].schema, cases[i].flags, &err);
        if (status != cases[i].status || !strstr(err.detail, cases[i].detail))
            fail_msg("%s: %d \"%s\"", cases[i].schema, (int)status, err.detail);
        assert_int_equal(err.status, status);
        assert_null(g);
    }
}

/* Inside a property, so that the path shows. */
static void check_refused(const char *limits, tern_status status, const char *detail)
{
    struct tern_grammar *g;
    struct tern_error err;
    char schema[1024], place[256];
    assert_true(snprintf(schema, sizeof schema,
                         "{\"type\":\"object\",\"properties\":{\"p\":{%s}},\"required\":[\"p\"],"
                         "\"additionalProperties\":false}", limits) < (int)sizeof schema);
    assert_true(snprintf(place, sizeof place, "#/properties/p: %s", detail) < (int)sizeof place);
    const tern_status got = compile(&g, schema, TERN_GRAMMAR_STRICT, &err);
    if (got != status || strncmp(err.detail, place, strlen(place)) != 0)
        fail_msg("%s: %d \"%s\"", limits, (int)got, err.detail);
    assert_null(g);
}

static void expressions_are_refused_with_the_position(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        tern_status status;
        const char *detail; /* after "pattern": */
    } cases[] = {
        {"a(?=b)", TERN_UNSUPPORTED, "look-ahead at character 1"},
        {"(?!b)", TERN_UNSUPPORTED, "look-ahead at character 0"},
        {"\u00e9(?<=b)", TERN_UNSUPPORTED, "look-behind at character 1"},
        {"(?<!b)", TERN_UNSUPPORTED, "look-behind at character 0"},
        {"(?i)a", TERN_UNSUPPORTED, "unknown kind of group at character 0"},
        {"(?<a", TERN_UNSUPPORTED, "unknown kind of group at character 0"},
        {"(a)\\1", TERN_UNSUPPORTED, "back-reference at character 3"},
        {"(?<x>a)\\k<x>", TERN_UNSUPPORTED, "back-reference at character 7"},
        {"a\\b", TERN_UNSUPPORTED, "word boundary at character 1"},
        {"\\B", TERN_UNSUPPORTED, "word boundary at character 0"},
        {"\\p{L}", TERN_UNSUPPORTED, "Unicode property at character 0"},
        {"\\y", TERN_USAGE, "unknown escape at character 0"},
        {"\\", TERN_USAGE, "nothing after \\ at character 1"},
        {"[\\", TERN_USAGE, "nothing after \\ at character 2"},
        {"\\u12", TERN_USAGE, "a hexadecimal digit is missing at character 4"},
        {"\\u{110000}", TERN_USAGE, "not a code point at character 3"},
        {"\\u{}", TERN_USAGE, "not a code point at character 3"},
        {"\\c1", TERN_USAGE, "no letter after \\c at character 2"},
        {"\\01", TERN_USAGE, "octal escape at character 1"},
        {"a)", TERN_USAGE, "unopened group at character 1"},
        {"(a", TERN_USAGE, "unclosed group at character 0"},
        {"x[a", TERN_USAGE, "unclosed class at character 1"},
        {"[b-a]", TERN_USAGE, "a range out of order at character 1"},
        {"[\\d-a]", TERN_USAGE, "a range must be between single characters at character 1"},
        {"*a", TERN_USAGE, "nothing to repeat at character 0"},
        {"a**", TERN_USAGE, "nothing to repeat at character 2"},
        {"^{2}", TERN_USAGE, "nothing to repeat at character 1"},
        {"a{3,2}", TERN_USAGE, "a count out of order at character 1"},
        {"a{10001}", TERN_LIMIT, "a count of more than 10000 at character 1"},
        {"a{99999999999999999999}", TERN_LIMIT, "a count of more than 10000 at character 1"},
        {"(a{1000}){1000}", TERN_LIMIT, "2004000 states (the limit is 32768) at character 9"},
        {"((((a{9}){9}){9}){9}){9}", TERN_LIMIT, "147618 states"},
        {"a.{13}", TERN_LIMIT, "an automaton of more than 8192 states"},
        {"a^", TERN_USAGE, "no text fits"},
        {"$b", TERN_USAGE, "no text fits"},
        {"[]", TERN_USAGE, "no text fits"},
        {"^\\ud800$", TERN_USAGE, "no text fits"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        char limits[128], detail[128];
        int n = snprintf(limits, sizeof limits, "\"type\":\"string\",\"pattern\":\"");
        for (const char *c = cases[i].pattern; *c; c++)
            n += snprintf(limits + n, sizeof limits - (size_t)n, *c == '\\' ? "\\\\" : "%c", *c);
        snprintf(limits + n, sizeof limits - (size_t)n, "\"");
        snprintf(detail, sizeof detail, "\"pattern\": %s", cases[i].detail);
        check_refused(limits, cases[i].status, detail);
    }
}

static void limits_are_refused_with_their_path(void **state)
{
    (void)state;
    static const struct {
        const char *limits;
        tern_status status;
        const char *detail;
    } cases[] = {
        {"\"type\":\"string\",\"pattern\":7", TERN_USAGE, "\"pattern\" must be a string"},
        {"\"type\":\"string\",\"format\":[]", TERN_USAGE, "\"format\" must be a string"},
        {"\"type\":\"string\",\"minLength\":-1", TERN_USAGE, "\"minLength\" must be a whole"},
        {"\"type\":\"string\",\"maxLength\":1.5", TERN_USAGE, "\"maxLength\" must be a whole"},
        {"\"type\":\"string\",\"maxLength\":\"9\"", TERN_USAGE, "\"maxLength\" must be a whole"},
        {"\"type\":\"string\",\"minLength\":3,\"maxLength\":2", TERN_USAGE,
         "\"minLength\" is 3, \"maxLength\" only 2"},
        {"\"type\":\"string\",\"maxLength\":65537", TERN_LIMIT, "\"maxLength\" is more than 65536"},
        {"\"type\":\"string\",\"minLength\":10001,\"pattern\":\"a*\"", TERN_LIMIT,
         "\"pattern\": a length of more than 10000 combined with it"},
        {"\"type\":\"string\",\"maxLength\":2,\"pattern\":\"^a{3,9}$\"", TERN_USAGE,
         "\"pattern\": no text fits"},
        {"\"type\":\"string\",\"minLength\":37,\"format\":\"uuid\"", TERN_USAGE,
         "\"format\": no text fits"},
        {"\"type\":\"string\",\"format\":\"ulid\"", TERN_UNSUPPORTED,
         "\"format\": \"ulid\" is not supported"},
        {"\"type\":\"string\",\"format\":\"iri\",\"pattern\":\"a\"", TERN_UNSUPPORTED,
         "\"format\": \"iri\" is not supported"},
        {"\"type\":\"string\",\"format\":\"iri\"", TERN_UNSUPPORTED,
         "\"format\": \"iri\" is not supported"},
        {"\"type\":\"string\",\"format\":\"date\",\"pattern\":\"x\"", TERN_USAGE,
         "\"pattern\": no text fits"},
        {"\"type\":\"integer\",\"minimum\":\"1\"", TERN_USAGE, "\"minimum\" must be a number"},
        {"\"type\":\"number\",\"exclusiveMaximum\":true", TERN_USAGE,
         "\"exclusiveMaximum\" must be a number"},
        {"\"type\":\"integer\",\"minimum\":3,\"maximum\":2", TERN_USAGE, "no number fits"},
        {"\"type\":\"integer\",\"minimum\":2,\"exclusiveMaximum\":2", TERN_USAGE,
         "no number fits"},
        {"\"type\":\"integer\",\"minimum\":8,\"maximum\":13,\"multipleOf\":7", TERN_USAGE,
         "no number fits its bounds and \"multipleOf\""},
        {"\"type\":\"integer\",\"minimum\":5.5,\"maximum\":5.6", TERN_USAGE, "no number fits"},
        {"\"type\":\"number\",\"minimum\":1e15", TERN_USAGE, "no number fits"},
        {"\"type\":\"integer\",\"minimum\":1e300", TERN_USAGE, "no number fits"},
        {"\"type\":\"number\",\"multipleOf\":0", TERN_USAGE,
         "\"multipleOf\" must be a number above 0"},
        {"\"type\":\"number\",\"multipleOf\":-1", TERN_USAGE,
         "\"multipleOf\" must be a number above 0"},
        {"\"type\":\"integer\",\"multipleOf\":10001", TERN_LIMIT, "\"multipleOf\" must be at most"},
        {"\"type\":\"number\",\"multipleOf\":1e-16", TERN_LIMIT, "\"multipleOf\" must be at most"},
        {"\"type\":\"integer\",\"multipleOf\":9973", TERN_LIMIT,
         "\"multipleOf\": an automaton of more than 16384 states"},
        {"\"type\":\"number\",\"multipleOf\":0.00000000000999,\"minimum\":0.3,"
         "\"maximum\":99999.3", TERN_LIMIT, "\"multipleOf\": "},
        {"\"type\":\"array\",\"items\":{\"type\":\"null\"},\"maxItems\":5000", TERN_LIMIT,
         "\"maxItems\" is more than 4096"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++)
        check_refused(cases[i].limits, cases[i].status, cases[i].detail);
}

/* ---- hostile schemas ---- */

/* All limits of a schema share one budget of steps. */
static void expensive_limits_share_a_budget(void **state)
{
    (void)state;
    struct tern_grammar *g;
    struct tern_error err;
    struct tn_buf schema = {0};
    tn_buf_append_text(&schema, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 40; i++)
        tn_buf_printf(&schema, "%s\"p%d\":{\"type\":\"integer\",\"multipleOf\":1000,"
                      "\"minimum\":%d}", i ? "," : "", i, i);
    tn_buf_append_text(&schema, "},\"additionalProperties\":false}");
    assert_int_equal(compile(&g, tn_buf_text(&schema), 0, &err), TERN_LIMIT);
    if (!strstr(err.detail, "#/properties/p") || !strstr(err.detail, "steps"))
        fail_msg("%s", err.detail);
    tn_buf_fini(&schema);
}

/* A list of n entries, each containing its number. */
static void append_list(struct tn_buf *out, const char *entry, int n)
{
    for (int i = 0; i < n; i++) {
        tn_buf_append_text(out, i ? "," : "");
        tn_buf_printf(out, "\"property_%015d\"%s", i, entry);
    }
}

/* The limits of OpenAI's strict mode: 5,000 properties, 120,000 characters of their names, 1,000
 * values of "enum", 10 levels of objects. */
static void schemas_at_the_limits_of_strict_mode_compile(void **state)
{
    (void)state;
    struct tern_grammar *g;
    struct tern_error err;
    struct tn_buf schema = {0};
    for (int i = 0; i < 9; i++)
        tn_buf_append_text(&schema, "{\"type\":\"object\",\"properties\":{\"o\":");
    tn_buf_append_text(&schema, "{\"type\":\"object\",\"properties\":{\"e\":{\"enum\":[");
    append_list(&schema, "", 1000);
    tn_buf_append_text(&schema, "]},");
    append_list(&schema, ":{\"type\":[\"string\",\"null\"],\"format\":\"date\"}", 4990);
    tn_buf_append_text(&schema, "},\"required\":[\"e\",");
    append_list(&schema, "", 4990);
    tn_buf_append_text(&schema, "],\"additionalProperties\":false}");
    for (int i = 0; i < 9; i++)
        tn_buf_append_text(&schema, "},\"required\":[\"o\"],\"additionalProperties\":false}");
    if (compile(&g, tn_buf_text(&schema), TERN_GRAMMAR_STRICT, &err) != TERN_OK)
        fail_msg("%s", err.detail);
    tern_grammar_free(g);
    tn_buf_fini(&schema);
}

/* Each of them can be the first member: as many configurations. */
static void thousands_of_members_may_be_optional(void **state)
{
    (void)state;
    static const char text[] = "{\"property_000000000004000\": null}";
    struct tern_grammar *g;
    struct tern_error err;
    struct tn_buf schema = {0};
    size_t n_fit;
    bool is_whole;
    tn_buf_append_text(&schema, "{\"type\":\"object\",\"properties\":{");
    append_list(&schema, ":{\"type\":\"null\"}", 5000);
    tn_buf_append_text(&schema, "},\"additionalProperties\":false}");
    assert_int_equal(compile(&g, tn_buf_text(&schema), 0, &err), TERN_OK);
    if (tern_grammar_match(g, text, strlen(text), &n_fit, &is_whole, &err) != TERN_OK)
        fail_msg("%s", err.detail);
    assert_true(is_whole);
    tern_grammar_free(g);
    tn_buf_fini(&schema);
}

/* Definitions, each of which refers to the next one twice. */
static void append_doubling(struct tn_buf *out, uint32_t n)
{
    tn_buf_append_text(out, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (uint32_t i = 0; i < n; i++)
        tn_buf_printf(out,
                      "\"%u\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"$ref\":\"#/$defs/%u\"},"
                      "{\"$ref\":\"#/$defs/%u\"}]}},", i, i + 1, i + 1);
    tn_buf_printf(out, "\"%u\":{\"type\":\"null\"}}}", n);
}

static void doubling_references_are_charged(void **state)
{
    (void)state;
    struct tern_grammar *g;
    struct tern_error err;
    struct tn_buf schema = {0};
    size_t n_fit;
    bool is_whole;
    append_doubling(&schema, 1000);
    assert_int_equal(compile(&g, tn_buf_text(&schema), 0, &err), TERN_OK);
    assert_int_equal(tern_grammar_match(g, "[[[]]]", 6, &n_fit, &is_whole, &err), TERN_OK);
    assert_true(is_whole);
    tern_grammar_free(g);
    tn_buf_fini(&schema);
}

/* Two alternatives at each level share a prefix: configurations double with the depth. */
static void unbounded_configurations_are_refused(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}},"
        "{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"maxItems\":3},{\"type\":\"null\"}]}";
    struct tern_grammar *g;
    struct tern_error err;
    char text[40];
    size_t n_fit;
    bool is_whole;
    memset(text, '[', sizeof text);
    assert_int_equal(compile(&g, schema, 0, &err), TERN_OK);
    assert_int_equal(tern_grammar_match(g, "[[null]]", 8, &n_fit, &is_whole, &err), TERN_OK);
    assert_true(is_whole);
    assert_int_equal(tern_grammar_match(g, text, sizeof text, &n_fit, &is_whole, &err),
                     TERN_LIMIT);
    assert_true(n_fit > 3);
    tern_grammar_free(g);
}

static void schemas_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    struct tern_grammar *g;
    struct tern_error err;
    struct tn_buf schema = {0};
    for (int i = 0; i < 100; i++)
        tn_buf_append_text(&schema, "{\"items\":");
    assert_int_equal(compile(&g, tn_buf_text(&schema), 0, &err), TERN_INPUT); /* depth */
    assert_non_null(strstr(err.detail, "64"));
    schema.n_bytes = 0;
    tn_buf_append_text(&schema, "{\"enum\":[0");
    for (int i = 0; i < 40000; i++)
        tn_buf_printf(&schema, ",\"%x.%d\"", (unsigned)i * 2654435761u, i);
    tn_buf_append_text(&schema, "]}");
    assert_int_equal(compile(&g, tn_buf_text(&schema), 0, &err), TERN_LIMIT); /* bytes or states */
    schema.n_bytes = 0;
    tn_buf_append_text(&schema, "{\"anyOf\":[{}");
    for (int i = 0; i < 33000; i++)
        tn_buf_append_text(&schema, ",{\"type\":\"null\"}");
    tn_buf_append_text(&schema, "]}");
    assert_int_equal(compile(&g, tn_buf_text(&schema), 0, &err), TERN_LIMIT); /* schemas */
    schema.n_bytes = 0;
    tn_buf_append_text(&schema, "{\"enum\":[0");
    for (int i = 0; i < 3000; i++)
        tn_buf_printf(&schema, ",\"value %d\"", i);
    tn_buf_append_text(&schema, "]}");
    assert_int_equal(compile(&g, tn_buf_text(&schema), 0, &err), TERN_OK); /* large but valid */
    tern_grammar_free(g);
    tn_buf_fini(&schema);
}

/* ---- texts ---- */

static void strings_and_numbers_are_json(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_whole;
    } cases[] = {
        {"{}", true}, {" {}", true}, {"\n  {}", true}, {"  {}", false}, {"{} ", false},
        {"{\"a\":1}", true}, {"{\"a\": 1, \"b\": [1, {}]}", true}, {"{\"a\":1,}", false},
        {"{\"a\":01}", false}, {"{\"a\":-0.5e-10}", true}, {"{\"a\":1.}", false},
        {"{\"a\":1e999}", false}, {"{\"a\":12345678901234567}", false}, {"{\"a\":-}", false},
        {"{\"a\":\"\\u00e9\\n\"}", true}, {"{\"a\":\"\\u0000\"}", false},
        {"{\"a\":\"\\u0010\\u0100\\u1000\"}", true}, {"{\"a\":\"\\ud800\"}", false},
        {"{\"a\":\"\\uD83D\\uDE00\"}", true}, {"{\"a\":\"\\ude00\"}", false},
        {"{\"a\":\"\xC3\xA9\xF0\x9F\x98\x80\"}", true}, {"{\"a\":\"\xC0\x80\"}", false},
        {"{\"a\":\"\xED\xA0\x80\"}", false}, {"{\"a\":\"\x01\"}", false}, {"{\"a\":\"\\x\"}", false},
        {"[]", false}, {"{\"a\":nul}", false}, {"{\"a\":null}", true}, {"{\"a\":\"", false},
        {"{\"a\":\n                              1}", false}, {"{\"a\" :1}", false},
    };
    struct tern_grammar *g;
    assert_int_equal(tern_grammar_json_object(&g, NULL), TERN_OK);
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        bool is_whole;
        const size_t n_fit = match(g, cases[i].text, &is_whole);
        if (is_whole != cases[i].is_whole)
            fail_msg("%s: %zu bytes fit", cases[i].text, n_fit);
    }
    tern_grammar_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsupported_schemas_are_refused_with_their_path),
        cmocka_unit_test(expressions_are_refused_with_the_position),
        cmocka_unit_test(limits_are_refused_with_their_path),
        cmocka_unit_test(expensive_limits_share_a_budget),
        cmocka_unit_test(schemas_at_the_limits_of_strict_mode_compile),
        cmocka_unit_test(thousands_of_members_may_be_optional),
        cmocka_unit_test(doubling_references_are_charged),
        cmocka_unit_test(unbounded_configurations_are_refused),
        cmocka_unit_test(schemas_beyond_the_limits_are_refused),
        cmocka_unit_test(strings_and_numbers_are_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

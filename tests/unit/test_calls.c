/* SPDX-License-Identifier: MIT
 *
 * Tool calls are separated from the text of an answer, however it is split; the format of calls is
 * detected from the output of a template.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "failing_alloc.h"
#include "tern/calls.h"

static void take_text(struct tern_calls *c, struct tn_buf *said)
{
    size_t n;
    const char *text = tern_calls_take_text(c, &n);
    tn_buf_append(said, text, n);
}

/* The pieces in which the arguments of the last call arrive, as "name|piece|piece;". */
struct growth {
    size_t n_calls, n_bytes;
    struct tn_buf pieces;
};

static void watch(const struct tern_calls *c, struct growth *g)
{
    for (; g->n_calls < tern_calls_count(c); g->n_calls++, g->n_bytes = 0)
        tn_buf_printf(&g->pieces, ";%s", tern_calls_get(c, g->n_calls).name);
    if (g->n_calls == 0)
        return;
    const char *arguments = tern_calls_get(c, g->n_calls - 1).arguments;
    if (strlen(arguments) > g->n_bytes)
        tn_buf_printf(&g->pieces, "|%s", arguments + g->n_bytes);
    g->n_bytes = strlen(arguments);
}

static bool is_single; /* of the answers that are read */

/* Reads an answer in pieces; `called` gets the calls as "name arguments;", concatenated. */
static void read_answer(enum tern_call_form form, bool is_early,
                        const struct tern_call_tools *tools, const char *text, size_t cut,
                        struct tn_buf *said, struct tn_buf *called, struct growth *growth)
{
    struct tern_calls *c;
    const size_t n = strlen(text);
    assert_int_equal(tern_calls_create(&c, form, is_early, NULL), TERN_OK);
    tern_calls_set_tools(c, tools);
    if (is_single)
        tern_calls_set_single(c);
    for (size_t i = 0; i <= n; i += cut) {
        assert_int_equal(tern_calls_push(c, text + i, TN_MIN(cut, n - i), NULL), TERN_OK);
        take_text(c, said);
        watch(c, growth);
    }
    assert_int_equal(tern_calls_end(c, NULL), TERN_OK);
    take_text(c, said);
    watch(c, growth);
    for (size_t i = 0; i < tern_calls_count(c); i++) {
        const struct tern_call call = tern_calls_get(c, i);
        tn_buf_printf(called, "%s %s;", call.name, call.arguments);
    }
    tern_calls_free(c);
}

struct call_case {
    enum tern_call_form form;
    const char *text, *said, *called;
};

static void check_calls(const struct call_case *cases, size_t n, bool is_early,
                        const struct tern_call_tools *tools)
{
    for (size_t i = 0; i < n; i++)
        for (size_t cut = 1; cut < 14; cut++) {
            struct tn_buf said = {0}, called = {0};
            struct growth growth = {0};
            read_answer(cases[i].form, is_early, tools, cases[i].text, cut, &said, &called,
                        &growth);
            assert_string_equal(tn_buf_text(&said), cases[i].said);
            assert_string_equal(tn_buf_text(&called), cases[i].called);
            tn_buf_fini(&said);
            tn_buf_fini(&called);
            tn_buf_fini(&growth.pieces);
        }
}

static void calls_are_separated_from_text(void **state)
{
    (void)state;
    static const struct call_case cases[] = {
        {TERN_CALLS_TAGGED, "", "", ""},
        {TERN_CALLS_TAGGED, "Hello <tool> \n", "Hello <tool> \n", ""},
        {TERN_CALLS_TAGGED, "a <tool_ca", "a <tool_ca", ""},
        {TERN_CALLS_TAGGED, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
         "", "f {\"a\":1};"},
        {TERN_CALLS_TAGGED,
         "I look.\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
         "<tool_call>{\"name\":\"g\",\"parameters\":{\"s\":\"</tool\"}}</tool_call>\n",
         "I look.", "f {};g {\"s\":\"</tool\"};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> Done.",
         "Done.", "f {};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{}}", "", "f {};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\"}</tool_call>",
         "<tool_call>{\"name\":\"f\"}</tool_call>", ""},
        {TERN_CALLS_TAGGED, "<tool_call>no JSON</tool_call>x", "<tool_call>no JSON</tool_call>x",
         ""},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\",\"argum", "<tool_call>{\"name\":\"f\",\"argum",
         ""},
        {TERN_CALLS_TAGGED, "{\"name\":\"f\",\"arguments\":{}}", "{\"name\":\"f\",\"arguments\":{}}",
         ""},
        {TERN_CALLS_BARE, "Hello {", "Hello {", ""},
        {TERN_CALLS_BARE, " \n", " \n", ""},
        {TERN_CALLS_BARE, " {\"name\": \"f\", \"parameters\": {\"q\": \"\\u00e9\"}} ", "",
         "f {\"q\":\"\\u00e9\"};"},
        {TERN_CALLS_TAGGED,
         "<tool_call>{\"arguments\": {\"a b\": \"\\u00e9\"}, \"name\": \"f\"}</tool_call>", "",
         "f {\"a b\":\"\xC3\xA9\"};"},
        {TERN_CALLS_TAGGED,
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 18446744073709551616}}</tool_call>",
         "", "f {\"a\":18446744073709551616};"},
        {TERN_CALLS_TAGGED,
         "<tool_call>{\"arguments\": {\"a\": [0.1, 2]}, \"name\": \"f\"}</tool_call>", "",
         "f {\"a\":[0.1,2]};"},
        {TERN_CALLS_TAGGED,
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>x",
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>x", ""},
        {TERN_CALLS_TAGGED,
         "<tool_call>{\"name\": \"a</tool_call>b\", \"arguments\": {}}</tool_call>",
         "<tool_call>{\"name\": \"a</tool_call>b\", \"arguments\": {}}</tool_call>", ""},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"\",\"arguments\":{}}</tool_call>",
         "<tool_call>{\"name\":\"\",\"arguments\":{}}</tool_call>", ""},
        {TERN_CALLS_TAGGED, "a\n\n <tool_call>no JSON</tool_call>",
         "a\n\n <tool_call>no JSON</tool_call>", ""},
        {TERN_CALLS_TAGGED, /* the last brace is missing */
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}\n</tool_call>x", "x",
         "f {\"a\":1};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": b}</tool_call>",
         "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": b}</tool_call>", ""},
        {TERN_CALLS_BARE, "{\"name\": \"f\", \"parameters\": {}", "", "f {};"},
        {TERN_CALLS_BARE, "{\"name\": \"f\"}", "{\"name\": \"f\"}", ""},
        {TERN_CALLS_BARE, "{ this is text }", "{ this is text }", ""},
    };
    check_calls(cases, TN_COUNT_OF(cases), false, NULL);
}

/* A call that was counted cannot be revoked. */
static void early_calls_count_before_they_are_complete(void **state)
{
    (void)state;
    static const struct call_case cases[] = {
        {TERN_CALLS_TAGGED, "a<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 2", "a",
         "f {\"a\":[1,2;"},
        {TERN_CALLS_TAGGED,
         "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": \"{</tool_call>\n"
         "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>",
         "", "f {\"a\":\"{;g {};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"arguments\":{}, \"name\":\"f\"}</tool_call>", "",
         "f {};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\"}</tool_call>",
         "<tool_call>{\"name\":\"f\"}</tool_call>", ""},
        {TERN_CALLS_BARE, "{\"name\": \"f\", \"parameters\": {\"q\": \"a \\\" }\"} }", "",
         "f {\"q\":\"a \\\" }\"};"},
        {TERN_CALLS_BARE, "{\"name\": \"f\", \"parameters\": [", "{\"name\": \"f\", \"parameters\": [",
         ""},
    };
    check_calls(cases, TN_COUNT_OF(cases), true, NULL);
}

static void arguments_come_in_pieces(void **state)
{
    (void)state;
    static const char text[] =
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"city\": \"Oslo\", \"n\": 1}}</tool_call>";
    for (int is_early = 0; is_early < 2; is_early++) {
        struct tn_buf said = {0}, called = {0};
        struct growth growth = {0};
        read_answer(TERN_CALLS_TAGGED, is_early, NULL, text, 8, &said, &called, &growth);
        assert_string_equal(tn_buf_text(&growth.pieces),
                            is_early ? ";f|{\"|city\":\"|Oslo\",\"|n\":1}"
                                     : ";f|{\"city\":\"Oslo\",\"n\":1}");
        tn_buf_fini(&said);
        tn_buf_fini(&called);
        tn_buf_fini(&growth.pieces);
    }
}

/* ---- function tags ---- */

static struct tern_call_tools *make_tools(void)
{
    static const char json[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
        "\"s\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"a\":{\"type\":\"array\"},"
        "\"maybe\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
        "\"unit\":{\"enum\":[\"1\",\"2\"]},\"named\":{\"$ref\":\"#/$defs/t\"},"
        "\"any\":{}},\"additionalProperties\":{\"const\":\"7\"},"
        "\"$defs\":{\"t\":{\"type\":\"string\"}}}}},"
        "{\"type\":\"function\",\"function\":{\"name\":\"g\"}},{},7]";
    struct tern_call_tools *tools;
    assert_int_equal(tern_call_tools_create(&tools, json, sizeof json - 1, NULL), TERN_OK);
    return tools;
}

#define F(arguments) "<tool_call>\n<function=f>\n" arguments "</function>\n</tool_call>"
#define P(name, value) "<parameter=" name ">\n" value "\n</parameter>\n"

static void values_between_tags_have_the_types_of_the_schema(void **state)
{
    (void)state;
    static const struct call_case cases[] = {
        {TERN_CALLS_TAGGED, "I look.\n\n" F(P("s", "Oslo")), "I look.", "f {\"s\":\"Oslo\"};"},
        {TERN_CALLS_TAGGED, F(""), "", "f {};"},
        {TERN_CALLS_TAGGED, F(P("s", "5") P("n", "5")) "\n" F(P("n", "-1.5e3")), "",
         "f {\"s\":\"5\",\"n\":5};f {\"n\":-1500.0};"},
        {TERN_CALLS_TAGGED, F(P("s", "  a\n\n\"b\"\t\\ </param> </parameter <tool_call> \n")), "",
         "f {\"s\":\"  a\\n\\n\\\"b\\\"\\t\\\\ </param> </parameter <tool_call> \\n\"};"},
        {TERN_CALLS_TAGGED, F(P("a", "[1, {\"b\": \"\xC3\xA9\"}]") P("any", "true")), "",
         "f {\"a\":[1,{\"b\":\"\xC3\xA9\"}],\"any\":true};"},
        {TERN_CALLS_TAGGED, F(P("maybe", "null") P("unit", "2") P("maybe", "5")), "",
         "f {\"maybe\":null,\"unit\":\"2\",\"maybe\":\"5\"};"},
        {TERN_CALLS_TAGGED, F(P("any", "True") P("n", "None") P("a", "[1,")), "",
         "f {\"any\":true,\"n\":null,\"a\":\"[1,\"};"},
        {TERN_CALLS_TAGGED, F(P("other", "x") P("n", "")), "", "f {\"other\":\"x\",\"n\":\"\"};"},
        {TERN_CALLS_TAGGED, "<tool_call><function=f><parameter=s>a b</parameter></function>"
         "</tool_call>", "", "f {\"s\":\"a b\"};"},
        {TERN_CALLS_TAGGED, "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>", "",
         "g {};"},
        {TERN_CALLS_PARAMETERS, F(P("named", "5") P("more", "7")), "",
         "f {\"named\":\"5\",\"more\":\"7\"};"},
        /* no calls */
        {TERN_CALLS_TAGGED, "<tool_call>\n<function=>\n</function>\n</tool_call>",
         "<tool_call>\n<function=>\n</function>\n</tool_call>", ""},
        {TERN_CALLS_TAGGED, "<tool_call><function=f><parameter=s>a</tool_call> b",
         "<tool_call><function=f><parameter=s>a</tool_call> b", ""},
        {TERN_CALLS_TAGGED, "<tool_call><function=f>x</function></tool_call>",
         "<tool_call><function=f>x</function></tool_call>", ""},
        {TERN_CALLS_TAGGED, "<tool_call><function=f><parameter=s>\nabc",
         "<tool_call><function=f><parameter=s>\nabc", ""},
        {TERN_CALLS_TAGGED, F(P("s", "\xFF")), F(P("s", "\xFF")), ""},
    };
    struct tern_call_tools *tools = make_tools();
    check_calls(cases, TN_COUNT_OF(cases), false, tools);
    check_calls(cases, 11, true, tools);
    tern_call_tools_free(tools);
}

/* Closing tags in strings of JSON are text.  A string that ends its line was never closed. */
static void strings_of_json_may_contain_tags(void **state)
{
    (void)state;
#define TAGS "</parameter></function></tool_call>"
    static const struct call_case cases[] = {
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"" TAGS "\\\"" TAGS
         "\"}}</tool_call> b", "b", "f {\"s\":\"" TAGS "\\\"" TAGS "\"};"},
        {TERN_CALLS_PARAMETERS, F(P("a", "[\"" TAGS "\\\"" TAGS "\", 1]") P("n", "1")) " b", "b",
         "f {\"a\":[\"" TAGS "\\\"" TAGS "\",1],\"n\":1};"},
        {TERN_CALLS_PARAMETERS, F(P("s", "[\"")) F(P("a", "\"x")), "",
         "f {\"s\":\"[\\\"\"};f {\"a\":\"\\\"x\"};"},
        {TERN_CALLS_PARAMETERS, "<tool_call><function=f><parameter=a>[\"x</parameter></function>"
         "</tool_call>\n\"", "\"", "f {\"a\":\"[\\\"x\"};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"x}}</tool_call>\n"
         F(P("s", "\"")), "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"x}}</tool_call>",
         "f {\"s\":\"\\\"\"};"},
    };
    struct tern_call_tools *tools = make_tools();
    check_calls(cases, TN_COUNT_OF(cases), false, tools);
    check_calls(cases, 4, true, tools);
    tern_call_tools_free(tools);
}

static void text_between_tags_comes_in_pieces(void **state)
{
    (void)state;
    struct tn_buf said = {0}, called = {0};
    struct growth growth = {0};
    struct tern_call_tools *tools = make_tools();
    read_answer(TERN_CALLS_TAGGED, true, tools, F(P("s", "Some lines,\nthen more.") P("n", "10")),
                8, &said, &called, &growth);
    assert_string_equal(tn_buf_text(&growth.pieces),
                        ";f|{|\"s\":\"S|ome line|s,\\nthen |more.|\"|,\"n\":|10|}");
    tern_call_tools_free(tools);
    tn_buf_fini(&said);
    tn_buf_fini(&called);
    tn_buf_fini(&growth.pieces);
}

/* ---- calls without tags ---- */

#define OPEN_G "{\"name\": \"g\", \"arguments\": {\"s\": \"}\"}"
#define G OPEN_G "}"

static void an_object_counts_without_tags_if_it_names_a_function(void **state)
{
    (void)state;
    static const struct call_case cases[] = {
        {TERN_CALLS_TAGGED, G, "", "g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "\n " G "\n" G " Done.", "Done.", "g {\"s\":\"}\"};g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "```json\n" G "\n```", "", "g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "I look:\n```\n" G "```\n\n```json\n" G "\n```\nDone.",
         "I look:\nDone.", "g {\"s\":\"}\"};g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "```json\n" G, "", "g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "```json\n" G "\n<tool_call>" G "</tool_call>", "",
         "g {\"s\":\"}\"};g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "```json\n" G "\n" G "\n```\nDone.", "Done.",
         "g {\"s\":\"}\"};g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "```json\n" G "\n{\"name\": \"h\", \"arguments\": {}}\n```",
         "{\"name\": \"h\", \"arguments\": {}}\n```", "g {\"s\":\"}\"};"},
        /* the last brace is missing */
        {TERN_CALLS_TAGGED, OPEN_G, "", "g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, "```json\n" OPEN_G "\n```", "", "g {\"s\":\"}\"};"},
        {TERN_CALLS_TAGGED, OPEN_G "\n\nDone.", "Done.", "g {\"s\":\"}\"};"},
        /* no calls */
        {TERN_CALLS_TAGGED, "A: " G, "A: " G, ""},
        {TERN_CALLS_TAGGED, "A:\n" G, "A:\n" G, ""},
        {TERN_CALLS_TAGGED, "A ```" G "```", "A ```" G "```", ""},
        {TERN_CALLS_TAGGED, "```python\n" G "\n```", "```python\n" G "\n```", ""},
        {TERN_CALLS_TAGGED, "{\"name\": \"h\", \"arguments\": {}}",
         "{\"name\": \"h\", \"arguments\": {}}", ""},
        {TERN_CALLS_TAGGED, "{\"name\": \"g\"}", "{\"name\": \"g\"}", ""},
        {TERN_CALLS_TAGGED, "{\"name\": \"g\", \"arguments\": {}, \"id\": 1}",
         "{\"name\": \"g\", \"arguments\": {}, \"id\": 1}", ""},
        {TERN_CALLS_TAGGED, "A:\n\n```\n" OPEN_G ", \"id\": 1}\n```\n",
         "A:\n\n```\n" OPEN_G ", \"id\": 1}\n```\n", ""},
        {TERN_CALLS_TAGGED, "{\"name\": \"g\", \"arguments\": {\"s\": a}} b",
         "{\"name\": \"g\", \"arguments\": {\"s\": a}} b", ""},
        {TERN_CALLS_TAGGED, "{\"name\": \"g\", \"arguments\": {\"s\"",
         "{\"name\": \"g\", \"arguments\": {\"s\"", ""},
        {TERN_CALLS_TAGGED, "```json\n[1]\n```\n{", "```json\n[1]\n```\n{", ""},
    };
    struct tern_call_tools *tools = make_tools();
    check_calls(cases, TN_COUNT_OF(cases), false, tools);
    check_calls(cases, 17, true, tools);
    tern_call_tools_free(tools);
}

/* ---- templates ---- */

#define TOOLS                                                                                      \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":"             \
    "\"<tool_call>\",\"parameters\":{}}}]"

static void the_call_format_is_that_of_the_template(void **state)
{
    (void)state;
    static const char request[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi <tool_call>\"}]," TOOLS "}";
    static const struct {
        const char *source;
        tern_status status;
        enum tern_call_form form;
    } cases[] = {
        {"{% if tools %}Answer <tool_call>{% endif %}{{ messages[0].content }}", TERN_OK,
         TERN_CALLS_TAGGED},
        {"{% if tools %}As <tool_call>\n<function=f>{% endif %}{{ messages[0].content }}",
         TERN_OK, TERN_CALLS_PARAMETERS},
        {"{% if tools %}{{ tools | tojson }} as {\"name\": function name, \"parameters\": x}"
         "{% endif %}{{ messages[0].content }}", TERN_OK, TERN_CALLS_BARE},
        {"{% for t in tools %}{{ t | tojson }}{% endfor %}{{ messages[0].content }}",
         TERN_UNSUPPORTED, TERN_CALLS_TAGGED},
        {"<tool_call>{{ messages[0].content }}", TERN_UNSUPPORTED, TERN_CALLS_TAGGED},
        {"{{ messages[0].content }}", TERN_UNSUPPORTED, TERN_CALLS_TAGGED},
        {"{{ raise_exception('no') }}", TERN_USAGE, TERN_CALLS_TAGGED},
    };
    const struct tern_chat_params params = {.add_generation_prompt = true};
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_chat_template *t;
        enum tern_call_form form;
        assert_int_equal(tern_chat_template_parse(&t, cases[i].source, strlen(cases[i].source),
                                                  NULL), TERN_OK);
        assert_int_equal(tern_chat_call_form(&form, t, request, sizeof request - 1, &params, NULL),
                         cases[i].status);
        if (cases[i].status == TERN_OK)
            assert_int_equal(form, cases[i].form);
        tern_chat_template_free(t);
    }
}

/* ---- a single call ---- */

static void what_follows_a_single_call_is_discarded(void **state)
{
    (void)state;
    static const struct call_case cases[] = {
        {TERN_CALLS_TAGGED, "a <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n b "
                            "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>",
         "a", "f {};"},
        {TERN_CALLS_TAGGED, "<tool_call>{\"name\":\"f\",\"arguments\":{}}", "", "f {};"},
        {TERN_CALLS_TAGGED, "```json\n{\"name\": \"f\", \"arguments\": {}}\n"
                            "{\"name\": \"g\", \"arguments\": {}}\n```", "", "f {};"},
        {TERN_CALLS_TAGGED, "{\"name\":\"f\",\"arguments\":{}}{\"name\":\"g\",", "", "f {};"},
        {TERN_CALLS_TAGGED, "a <tool_call>{</tool_call> b", "a <tool_call>{</tool_call> b", ""},
        {TERN_CALLS_BARE, "{\"name\": \"f\", \"parameters\": {}}", "", "f {};"},
    };
    struct tern_call_tools *tools = make_tools();
    is_single = true;
    check_calls(cases, TN_COUNT_OF(cases), false, tools);
    check_calls(cases, TN_COUNT_OF(cases), true, tools);
    is_single = false;
    tern_call_tools_free(tools);
}

/* ---- memory ---- */

static void any_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] =
        "x<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>" F(P("s", "a") P("a", "[1]"));
    struct tern_call_tools *tools = make_tools();
    bool is_done = false;
    for (unsigned n = 0; !is_done; n++) {
        struct tern_calls *c;
        fail_alloc_after(n);
        tern_status status = tern_calls_create(&c, TERN_CALLS_TAGGED, n % 2, NULL);
        if (status == TERN_OK) {
            tern_calls_set_tools(c, tools);
            status = tern_calls_push(c, text, sizeof text - 1, NULL);
        }
        if (status == TERN_OK)
            status = tern_calls_end(c, NULL);
        fail_alloc_stop();
        is_done = status == TERN_OK;
        assert_true(is_done || status == TERN_MEMORY);
        assert_true(!is_done || tern_calls_count(c) == 2);
        tern_calls_free(c);
        assert_true(n < 100);
    }
    tern_call_tools_free(tools);
}

static void tools_are_read_or_refused(void **state)
{
    (void)state;
    static const char json[] = "[{\"function\":{\"name\":\"f\",\"parameters\":{}}}]";
    struct tern_call_tools *tools;
    tern_status status = TERN_MEMORY;
    assert_int_equal(tern_call_tools_create(&tools, "[", 1, NULL), TERN_INPUT);
    for (unsigned n = 0; status != TERN_OK; n++) {
        fail_alloc_after(n);
        status = tern_call_tools_create(&tools, json, sizeof json - 1, NULL);
        fail_alloc_stop();
        assert_true(status == TERN_OK ? !!tools : status == TERN_MEMORY && !tools);
        assert_true(n < 100);
    }
    tern_call_tools_free(tools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_separated_from_text),
        cmocka_unit_test(early_calls_count_before_they_are_complete),
        cmocka_unit_test(arguments_come_in_pieces),
        cmocka_unit_test(values_between_tags_have_the_types_of_the_schema),
        cmocka_unit_test(strings_of_json_may_contain_tags),
        cmocka_unit_test(text_between_tags_comes_in_pieces),
        cmocka_unit_test(an_object_counts_without_tags_if_it_names_a_function),
        cmocka_unit_test(the_call_format_is_that_of_the_template),
        cmocka_unit_test(what_follows_a_single_call_is_discarded),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(tools_are_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

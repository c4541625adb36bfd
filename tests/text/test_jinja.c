/* SPDX-License-Identifier: MIT
 *
 * Chat templates through the interpreter: every golden conversation with its tools and settings,
 * kinds of refusals, hostile templates that must end soon, and the origin of bytes.
 * test_jinja_oracle.py compares with Jinja2 itself.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "cpu_seconds.h"
#include "failing_alloc.h"
#include "tern/chat.h"
#include "text/jinja/jinja.h"
#include "text_data.h"

#define TEMPLATES TERN_SHARED_DIR "/reference/tokenizers/templates/"

static const struct tern_chat_params plain = {
    .add_generation_prompt = true, .bos = "<s>", .eos = "</s>", .date = {2026, 11, 22, 0, 0, 0}};

/* ---- goldens ---- */

/* The request of a golden case in the format of tern_chat_render_json. */
static char *request_of(const json_t *root, const json_t *item)
{
    json_t *request = json_object();
    static const char *const of_case[] = {"messages", "tools", "kwargs", "add_generation_prompt"};
    static const char *const of_file[] = {"bos_token", "eos_token"};
    for (size_t i = 0; i < TN_COUNT_OF(of_case); i++)
        if (json_object_get(item, of_case[i]))
            json_object_set(request, of_case[i], json_object_get(item, of_case[i]));
    for (size_t i = 0; i < TN_COUNT_OF(of_file); i++)
        json_object_set(request, of_file[i], json_object_get(root, of_file[i]));
    char *text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    return text;
}

static void check_case(const struct tern_chat_template *t, const json_t *root, const json_t *item)
{
    char *text, *request = request_of(root, item);
    size_t n;
    struct tern_error err = {TERN_OK, ""};
    const json_t *expected = json_object_get(item, "text");
    const char *name = json_string_value(json_object_get(item, "name"));
    tern_status status =
        tern_chat_render_json(t, request, strlen(request), &plain, &text, &n, NULL, &err);
    if (!json_is_string(expected)) {
        assert_int_equal(status, TERN_USAGE);
        assert_non_null(strstr(err.detail, json_string_value(json_object_get(item, "error"))));
    } else if (status != TERN_OK || n != json_string_length(expected) ||
               memcmp(text, json_string_value(expected), n) != 0) {
        fail_msg("%s: %s \"%s\"", name, err.detail, text ? text : "");
    }
    free(request);
    tern_text_free(text);
}

static void test_goldens(void **state)
{
    (void)state;
    static const char *const names[] = {"bitnet-2b-4t",    "chatml",         "falcon3-instruct",
                                        "gemma-2",         "jinja-features", "llama2-chat",
                                        "llama3-instruct", "mistral-v0.2",   "mistral-v1-system",
                                        "phi-3-mini",      "phi-3.5-mini",   "qwen3-no-think",
                                        "qwen3",           "zephyr"};
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        char path[512];
        snprintf(path, sizeof path, TEMPLATES "%s.json", names[i]);
        json_t *root = data_json(path), *item;
        const json_t *source = json_object_get(root, "template");
        struct tern_chat_template *t;
        size_t k;
        assert_int_equal(tern_chat_template_parse(&t, json_string_value(source),
                                                  json_string_length(source), NULL),
                         TERN_OK);
        json_array_foreach(json_object_get(root, "cases"), k, item) check_case(t, root, item);
        assert_true(k >= 16);
        tern_chat_template_free(t);
        json_decref(root);
    }
}

/* ---- refusals ---- */

/* Parses and renders one user message "hi"; the caller frees *text. */
static tern_status render_with(const struct tern_chat_params *params, const char *source,
                               size_t n_source, char **text, struct tern_error *err)
{
    static const struct tern_message hi = {"user", 4, "hi", 2};
    struct tern_chat_template *t;
    size_t n;
    *text = NULL;
    tern_status status = tern_chat_template_parse(&t, source, n_source, err);
    if (status == TERN_OK)
        status = tern_chat_render(t, &hi, 1, params, text, &n, NULL, err);
    tern_chat_template_free(t);
    return status;
}

static tern_status render(const char *source, size_t n_source, char **text, struct tern_error *err)
{
    return render_with(&plain, source, n_source, text, err);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        tern_status status;
        const char *detail;
    } cases[] = {
        {"{% include 'x' %}", TERN_UNSUPPORTED, "line 1: the tag \"include\" is not supported"},
        {"a\n{% import 'x' as y %}", TERN_UNSUPPORTED, "line 2: the tag \"import\""},
        {"{% do x %}", TERN_UNSUPPORTED, "\"do\""},
        {"{{ a | nothing }}", TERN_UNSUPPORTED, "the filter \"nothing\" is not supported"},
        {"\n\n{{ a is nothing }}", TERN_UNSUPPORTED, "line 3: the test \"nothing\""},
        {"{{ 'a'.encode() }}", TERN_UNSUPPORTED, "\"encode\" is not known"},
        {"{{ f(*a) }}", TERN_UNSUPPORTED, "* and ** before arguments"},
        {"{% for x in y recursive %}{% endfor %}", TERN_UNSUPPORTED, "recursive"},
        {"{{ 'open }}", TERN_UNSUPPORTED, "no closing quote"},
        {"{{ (1 }}", TERN_UNSUPPORTED, "is not closed by }}"},
        {"{% if a %}", TERN_UNSUPPORTED, "elif else endif is expected"},
        {"{% endif %}", TERN_UNSUPPORTED, "\"endif\""},
        {"{# open", TERN_UNSUPPORTED, "a comment is not closed"},
        {"{% raw %} x", TERN_UNSUPPORTED, "raw"},
        {"{% break %}", TERN_UNSUPPORTED, "outside of a loop"},
        {"{{ 1 ! 2 }}", TERN_UNSUPPORTED, "'!' has no meaning"},
        {"{{ \"\\N{DASH}\" }}", TERN_UNSUPPORTED, "an escape"},
        {"{{ 99999999999999999999 }}", TERN_UNSUPPORTED, "too long"},
        {"\xff", TERN_INPUT, "byte 0 is 0xFF"},
        {"{{ raise_exception('no ' ~ 'way') }}", TERN_USAGE, "line 1: no way"},
        {"{{ x.y }}", TERN_USAGE, "attribute \"y\" of an undefined value"},
        {"{{ messages[7].role }}", TERN_USAGE, "\"role\""},
        {"{{ 1 + 'a' }}", TERN_USAGE, "+ does not work on a int and a str"},
        {"{{ 1 // 0 }}", TERN_USAGE, "division by zero"},
        {"{{ 1 < 'a' }}", TERN_USAGE, "an order does not work"},
        {"{% for x in 3 %}{% endfor %}", TERN_USAGE, "a int is not iterable"},
        {"{% set x.y = 1 %}", TERN_USAGE, "\"x\" is not a namespace"},
        {"{{ messages.append(1) }}", TERN_USAGE, "cannot be changed"},
        {"{% for a, b in [[1]] %}{% endfor %}", TERN_USAGE, "1 values for 2 names"},
        {"{{ namespace }}", TERN_UNSUPPORTED, "a function cannot be written"},
        {"{{ messages | map(attribute='role') }}", TERN_UNSUPPORTED, "a generator cannot be written"},
        {"{{ messages | select | length }}", TERN_USAGE, "a generator has no length"},
        {"{{ (-2) ** 0.5 }}", TERN_UNSUPPORTED, "to a fractional power"},
        {"{{ {[1]: 2} }}", TERN_USAGE, "a list cannot be a key"},
        {"{{ x | int }}", TERN_USAGE, "int does not work on an undefined value"},
        {"{{ 1 is odd(2) }}", TERN_USAGE, "the test \"odd\" takes 0 arguments, not 1"},
        {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", TERN_USAGE, "1 parameters gets 2 arguments"},
        {"{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", TERN_USAGE, "no parameter \"b\""},
        {"{% macro f() %}{% endmacro %}{% call f() %}{% endcall %}", TERN_USAGE, "\"caller\""},
        {"{% filter length %}{% endfilter %}", TERN_USAGE, "the filter returns a int, not text"},
        {"{{ strftime_now('%Q') }}", TERN_UNSUPPORTED, "%Q"},
        {"{{ '%d' % 'a' }}", TERN_USAGE, "%d needs an integer, not a str"},
        {"{{ '%f' % 'a' }}", TERN_USAGE, "%f needs a number, not a str"},
        {"{{ '%c' % 'ab' }}", TERN_USAGE, "%c needs a character"},
        {"{{ '%s %s' % 1 }}", TERN_USAGE, "not enough values"},
        {"{{ '%s' % (1, 2) }}", TERN_USAGE, "more values than"},
        {"{{ 'a' % 1 }}", TERN_USAGE, "more values than"},
        {"{{ '%(k)s' % {'a': 1} }}", TERN_USAGE, "needs the key \"k\""},
        {"{{ '%(k' % {'a': 1} }}", TERN_USAGE, "has no closing )"},
        {"{{ '%y' % 1 }}", TERN_UNSUPPORTED, "%y in a format string"},
        {"{{ '%' % 1 }}", TERN_UNSUPPORTED, "in a format string"},
        {"{{ '%999999999s' % 1 }}", TERN_LIMIT, "a width"},
        {"{{ '%*s' % (-9 * 999999999999999999 - 223372036854775817, 1) }}", TERN_LIMIT, "a width"},
        {"{{ '{}{}'.format(1) }}", TERN_USAGE, "not enough arguments"},
        {"{{ '{99999999999999999999}'.format(1) }}", TERN_USAGE, "not enough arguments"},
        {"{{ '{a}'.format(b=1) }}", TERN_USAGE, "needs the argument \"a\""},
        {"{{ '{} {0}'.format(1) }}", TERN_USAGE, "mixes"},
        {"{{ '{0} {}'.format(1) }}", TERN_USAGE, "mixes"},
        {"{{ 'a{'.format(1) }}", TERN_USAGE, "a single {"},
        {"{{ '}a'.format(1) }}", TERN_USAGE, "a single }"},
        {"{{ '{:>4}'.format(1) }}", TERN_UNSUPPORTED, "{name} only"},
        {"{{ '{0.x}'.format(1) }}", TERN_UNSUPPORTED, "{name} only"},
        {"{{ 9223372036854775807 + 1 }}", TERN_UNSUPPORTED, "too long"},
        {"{{ 999999999999999999 * 99 }}", TERN_LIMIT, "64 bits"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_error err = {TERN_OK, ""};
        char *text;
        tern_status status = render(cases[i].source, strlen(cases[i].source), &text, &err);
        if (status != cases[i].status || !strstr(err.detail, cases[i].detail))
            fail_msg("%s: %s: %s", cases[i].source, tern_status_text(status), err.detail);
        assert_null(text);
    }
}

/* ---- bombs ---- */

static void expect_limit(const char *source, size_t n)
{
    struct tern_error err = {TERN_OK, ""};
    char *text;
    tern_status status = render(source, n, &text, &err);
    if (status != TERN_LIMIT && status != TERN_UNSUPPORTED)
        fail_msg("%.60s: %s %s", source, tern_status_text(status), err.detail);
    assert_null(text);
}

static bool stop_at_zero(void *n_left)
{
    return (*(uint64_t *)n_left)-- == 0;
}

/* A template that reaches a limit.  Without TERN_CI_FULL=1 it is stopped at an eighth of the step
 * limit, still more than the templates below would take if they were charged only for their nodes.
 */
static void expect_charged(const char *source, size_t n)
{
    const char *full = getenv("TERN_CI_FULL");
    uint64_t n_left = full && strcmp(full, "1") == 0
                          ? UINT64_MAX
                          : TN_JINJA_MAX_STEPS / TN_J_STEPS_PER_LOOK / 8;
    struct tern_chat_params params = plain;
    struct tern_error err = {TERN_OK, ""};
    char *text;
    params.should_stop = stop_at_zero;
    params.arg = &n_left;
    tern_status status = render_with(&params, source, n, &text, &err);
    if (status != TERN_INTERRUPTED && status != TERN_LIMIT && status != TERN_UNSUPPORTED)
        fail_msg("%.60s: %s %s", source, tern_status_text(status), err.detail);
    assert_null(text);
}

/* `part` n times between `begin` and `end`. */
static void expect_deep(const char *begin, const char *part, size_t n, const char *end)
{
    struct tn_buf source = {0};
    tn_buf_append_text(&source, begin);
    for (size_t i = 0; i < n; i++)
        tn_buf_append_text(&source, part);
    tn_buf_append_text(&source, end);
    expect_limit(source.data, source.n_bytes);
    tn_buf_fini(&source);
}

static void expect_deep_target(const char *statement)
{
    struct tn_buf source = {0};
    tn_buf_append_text(&source, statement);
    for (size_t i = 0; i < 500000; i++)
        tn_buf_append(&source, i < 250000 ? "(" : i == 250000 ? "a" : ")", 1);
    tn_buf_append_text(&source, ") = 1 %}");
    expect_limit(source.data, source.n_bytes);
    tn_buf_fini(&source);
}

static void test_bombs(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{{ range(99999999999) }}",
        "{{ 'a' * 99999999999 }}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}"
        "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}"
        "{{ ns.x == ns.y }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}"
        "{% endfor %}{{ {ns.x: 1} }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ f() ~ f() }}{% endmacro %}{{ f() }}",
        "{{ 'a' | tojson(indent=99999999999) }}{{ [1] | tojson(indent=99999999999) }}",
        "{{ 2 ** 99999 }}",
        "{{ range(20000) | sort(reverse=true) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}"
        "{% set ns.x = [{'a': 1, 'b': ns.x}] | groupby('a') %}{% endfor %}{{ ns.x }}",
        "{{ '9223372036854775808' | int }}",
        "{{ 1e19 | int }}",
    };
    expect_limit(sources[0], strlen(sources[0]));
    for (size_t i = 1; i < TN_COUNT_OF(sources); i++)
        expect_charged(sources[i], strlen(sources[i]));
    expect_deep("{{ ", "(", 50000, "1 }}");
    expect_deep("{{ ", "-", 50000, "1 }}");
    expect_deep("{{ ", "not ", 50000, "1 }}");
    expect_deep("{{ 1", " + 1", 50000, " }}");
    expect_deep("{{ x", ".x", 50000, " }}");
    expect_deep("{{ x", " | d", 50000, " }}");
    expect_deep("{{ ", "[", 50000, " }}");
    expect_deep("{{ 'a' | map('map'", ",'map'", 100000, ",'upper') | list }}");
    expect_deep("", "{% if 1 %}", 50000, "");
    expect_deep("{% if 1 %}", "{% elif 1 %}", 50000, "{% endif %}");
    expect_deep("{{ ", "1 if 1 else ", 50000, "1 }}");
    expect_deep("", "x", (size_t)2 << 20, "");
    /* A macro that calls itself four times, from the first of 180 filters of a block. */
    expect_deep("{% macro f(n) %}{% filter default(f(n - 1) if n else '')", "|upper", 180,
                " %}a{% endfilter %}{% endmacro %}{{ f(3) }}");
    expect_deep_target("{% set ");
    expect_deep_target("{% for ");
}

/* ---- slow templates ---- */

/* A search takes time proportional to its bytes, wherever the strings begin to differ. */
static void test_searches_are_linear(void **state)
{
    (void)state;
    static const struct {
        const char *source, *text;
    } cases[] = {
        {"{% set n = 'a' * 400000 ~ 'b' %}{{ n in 'a' * 800000 }}", "False"},
        {"{% set n = 'b' ~ 'a' * 400000 %}{{ ('a' * 800000).rfind(n) }}", "-1"},
        {"{% set n = 'a' * 400000 %}{{ ('b' ~ n ~ n).find('b' ~ n) }}", "0"},
        {"{{ 'b' in 'a' * 800000 ~ 'b' }}", "True"},
        {"{{ '' in 'a' }}{{ 'a' in '' }}{{ 'aba'.rfind('a') }}{{ 'aba'.find('ba') }}",
         "TrueFalse21"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tern_error err = {TERN_OK, ""};
        const double begin = cpu_seconds();
        char *text;
        if (render(cases[i].source, strlen(cases[i].source), &text, &err) != TERN_OK)
            fail_msg("%s: %s", cases[i].source, err.detail);
        assert_string_equal(text, cases[i].text);
        assert_true(cpu_seconds() - begin < 1);
        tern_text_free(text);
    }
}

/* Arguments are looked up by name for each field and each item. */
static void test_named_arguments_are_charged(void **state)
{
    (void)state;
    static const char *const begins[] = {"{{ ('{z}' * 200000).format(a=1",
                                         "{{ range(200000) | map('tojson'"};
    static const char *const ends[] = {",z=1) }}", ") | list | length }}"};
    for (size_t i = 0; i < TN_COUNT_OF(begins); i++) {
        struct tn_buf source = {0};
        tn_buf_append_text(&source, begins[i]);
        for (size_t k = 0; k < 20000; k++)
            tn_buf_printf(&source, ",a%zu=1", k);
        tn_buf_append_text(&source, ends[i]);
        expect_charged(source.data, source.n_bytes);
        tn_buf_fini(&source);
    }
}

/* Indexing counts characters from the start of a string, so the step limit stops it. */
static void test_indexing_is_charged(void **state)
{
    (void)state;
    static const char *const bodies[] = {"s[399999]", "s[-1]", "s[1:399998]", "s | length",
                                         "s.isalpha()", "s == t", "s < t", "s.find('x')",
                                         "s.startswith(t)", "s.removesuffix(t)", "s.splitlines()"};
    for (size_t i = 0; i < TN_COUNT_OF(bodies); i++) {
        char source[256];
        const double begin = cpu_seconds();
        snprintf(source, sizeof source,
                 "{%% set s = '\u00e9' * 400000 %%}{%% set t = '\u00e9' * 400000 %%}"
                 "{%% for i in range(90000) %%}{%% if %s %%}{%% endif %%}{%% endfor %%}",
                 bodies[i]);
        expect_charged(source, strlen(source));
        assert_true(cpu_seconds() - begin < 60); /* 17 on a slow machine with sanitizers */
    }
}

/* Appends n times: prefix, letter, number, suffix. */
static void put_names(struct tn_buf *source, size_t n, const char *prefix, const char *suffix)
{
    for (size_t i = 0; i < n; i++)
        tn_buf_printf(source, "%sa%zu%s", prefix, i, suffix);
}

/* Looking up one of many names is charged by their number. */
static void test_names_are_charged(void **state)
{
    (void)state;
    struct tn_buf sets = {0}, members = {0}, call = {0};
    tn_buf_append_text(&sets, "{% for i in range(99) %}");
    put_names(&sets, 5000, "{% set ", " = 1 %}");
    tn_buf_append_text(&sets, "{% endfor %}");

    tn_buf_append_text(&members, "{% set d = {");
    put_names(&members, 2000, "'", "': 1,");
    tn_buf_append_text(&members, "} %}{% for i in range(999) %}{% for k in range(400) %}"
                                 "{% if d.zz %}{% endif %}{% endfor %}{% endfor %}");

    tn_buf_append_text(&call, "{% macro f(");
    put_names(&call, 2000, "", "=1,");
    tn_buf_append_text(&call, ") %}{% endmacro %}{% for i in range(99) %}{{ f(");
    put_names(&call, 2000, "", "=1,");
    tn_buf_append_text(&call, ") }}{% endfor %}");

    struct tn_buf *sources[] = {&sets, &members, &call};
    for (size_t i = 0; i < TN_COUNT_OF(sources); i++) {
        expect_charged(sources[i]->data, sources[i]->n_bytes);
        tn_buf_fini(sources[i]);
    }
}

/* Converting an object takes time proportional to its members. */
static void test_many_members(void **state)
{
    (void)state;
    const char *source = "{{ (tools[0] | length) ~ a7 }}";
    struct tn_buf request = {0};
    struct tern_chat_template *t;
    struct tern_error err = {TERN_OK, ""};
    char *text;
    size_t n;
    tn_buf_append_text(&request, "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], "
                                 "\"tools\": [{\"a\": 0");
    put_names(&request, 100000, ", \"", "\": 1");
    tn_buf_append_text(&request, "}], \"kwargs\": {\"b\": 0");
    put_names(&request, 100000, ", \"", "\": 2");
    tn_buf_append_text(&request, "}}");
    const double begin = cpu_seconds();
    assert_int_equal(tern_chat_template_parse(&t, source, strlen(source), &err), TERN_OK);
    assert_int_equal(
        tern_chat_render_json(t, request.data, request.n_bytes, &plain, &text, &n, NULL, &err),
        TERN_OK);
    assert_string_equal(text, "1000012");
    assert_true(cpu_seconds() - begin < 2);
    tern_text_free(text);
    tern_chat_template_free(t);
    tn_buf_fini(&request);
}

static double stopped_at;

static bool stop_soon(void *arg)
{
    if (cpu_seconds() - *(const double *)arg < 0.02)
        return false;
    if (stopped_at == 0)
        stopped_at = cpu_seconds();
    return true;
}

/* Each would run for longer; it ends within 200 ms after should_stop returns true. */
static void test_stops(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}"
        "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}"
        "{{ ns.x == ns.y }}",
        "{% set s = '\u00e9' * 4000000 %}{% for i in range(9999) %}{{ s[i * 400] }}{% endfor %}",
        "{% set s = 'a' * 4000000 %}{% for i in range(9999) %}{{ s.find('b') }}{% endfor %}",
        "{% set s = 'a' * 4000000 %}{% for i in range(99) %}{{ s | upper }}{% endfor %}",
    };
    for (size_t i = 0; i < TN_COUNT_OF(sources); i++) {
        struct tern_error err = {TERN_OK, ""};
        double begin = cpu_seconds();
        const struct tern_chat_params params = {.should_stop = stop_soon, .arg = &begin};
        char *text;
        stopped_at = 0;
        assert_int_equal(render_with(&params, sources[i], strlen(sources[i]), &text, &err),
                         TERN_INTERRUPTED);
        assert_true(cpu_seconds() - begin < 0.2);
        assert_true(stopped_at > 0 && cpu_seconds() - stopped_at < 0.1);
    }
}

/* Programs may have set a locale; the test machine may lack it. */
static void test_the_locale_does_not_matter(void **state)
{
    (void)state;
    const char *source = "{{ 1.5 + 1 }} {{ '2.5' | float }} {{ '2,5' | float }} {{ '%.2f' % 0.5 }}";
    char *text;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE"))
        skip();
    assert_int_equal(render(source, strlen(source), &text, NULL), TERN_OK);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "2.5 2.5 0.0 0.50");
    tern_text_free(text);
}

/* ---- provenance ---- */

/* Bytes of a message stay marked through every operation; those of the template are never marked.
 */
static void test_marks(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        const char *text;
        const char *marks;
    } cases[] = {
        {"'<' ~ c ~ '>'", "<aBc>", "01110"},
        {"'<' + c + '>'", "<aBc>", "01110"},
        {"'<%5s>' % c", "<  aBc>", "0001110"},
        {"'%(x).2s' % {'x': c}", "aB", "11"},
        {"'%r' % c", "'aBc'", "01110"},
        {"'%s' % 'B' in c", "True", "0000"},
        {"c | upper", "ABC", "111"},
        {"c.title()", "Abc", "111"},
        {"c[1:]", "Bc", "11"},
        {"c[::-1]", "cBa", "111"},
        {"c[0]", "a", "1"},
        {"c * 2", "aBcaBc", "111111"},
        {"c.replace('B', '-')", "a-c", "101"},
        {"'xBx'.replace('B', c)", "xaBcx", "01110"},
        {"c.split('B') | join('+')", "a+c", "101"},
        {"[c] | tojson", "[\"aBc\"]", "0011100"},
        {"[c]", "['aBc']", "0011100"},
        {"c | trim | string | list | join", "aBc", "111"},
        {"c | indent(1, true)", " aBc", "0111"},
        {"c | length", "3", "0"},
        {"messages[0].role", "user", "0000"},
        {"messages[0].items() | list | last | last", "aBc", "111"},
        {"bos_token ~ c", "<s>aBc", "000111"},
        {"messages[0].keys() | join", "rolecontent", "00000000000"},
    };
    static const struct tern_message m = {"user", 4, "aBc", 3};
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        char source[200], *text = NULL;
        unsigned char *marks = NULL;
        size_t n = 0;
        struct tern_chat_template *t;
        snprintf(source, sizeof source, "{%% set c = messages[0].content %%}{{ %s }}",
                 cases[i].expression);
        assert_int_equal(tern_chat_template_parse(&t, source, strlen(source), NULL), TERN_OK);
        assert_int_equal(tern_chat_render(t, &m, 1, &plain, &text, &n, &marks, NULL), TERN_OK);
        assert_string_equal(text, cases[i].text);
        for (size_t k = 0; k < n; k++)
            if (marks[k] != cases[i].marks[k] - '0')
                fail_msg("%s: mark %zu is %d", cases[i].expression, k, marks[k]);
        tern_text_free(text);
        tern_text_free(marks);
        tern_chat_template_free(t);
    }
}

/* An unknown role cannot become part of a special token. */
static void test_role_of_a_user(void **state)
{
    (void)state;
    const char *source = "{{ '<|' ~ messages[0].role ~ '|>' }}";
    static const struct tern_message m = {"im_start", 8, "", 0};
    char *text;
    unsigned char *marks;
    size_t n;
    struct tern_chat_template *t;
    assert_int_equal(tern_chat_template_parse(&t, source, strlen(source), NULL), TERN_OK);
    assert_int_equal(tern_chat_render(t, &m, 1, &plain, &text, &n, &marks, NULL), TERN_OK);
    assert_string_equal(text, "<|im_start|>");
    assert_int_equal(marks[2], 1);
    tern_text_free(text);
    tern_text_free(marks);
    tern_chat_template_free(t);
}

/* ---- memory ---- */

/* Each allocation fails once: TERN_MEMORY, without leaks (which the sanitizer build detects). */
static void test_every_allocation_fails(void **state)
{
    (void)state;
    const char *source = "{% for m in messages %}{{ m.role ~ [m.content, 1] | tojson }}{% endfor %}"
                         "{{ 'x' * 70000 }}{% set a %}{{ messages }}{% endset %}{{ a }}";
    char *text = NULL;
    struct tern_error err = {TERN_OK, ""};
    tern_status status = TERN_MEMORY;
    size_t n = 0;
    for (; status == TERN_MEMORY; n++) {
        fail_alloc_after(n);
        status = render(source, strlen(source), &text, &err);
        fail_alloc_stop();
    }
    assert_int_equal(status, TERN_OK);
    assert_true(n > 5);
    tern_text_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_searches_are_linear),
        cmocka_unit_test(test_named_arguments_are_charged),
        cmocka_unit_test(test_indexing_is_charged),
        cmocka_unit_test(test_names_are_charged),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_stops),          cmocka_unit_test(test_marks),
        cmocka_unit_test(test_the_locale_does_not_matter),
        cmocka_unit_test(test_role_of_a_user), cmocka_unit_test(test_every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

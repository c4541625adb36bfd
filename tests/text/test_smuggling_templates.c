/* SPDX-License-Identifier: MIT
 *
 * test_smuggling_templates FILES: bytes of a conversation never become special ids, in any
 * interpreted template.  Every special token of any of the templates is special in the tokenizer;
 * each of them is written into every field of a conversation, a tool and a document that a user or
 * a tool fills.  If only such text changes, the provenance marks must show exactly the changed
 * bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "tern/chat.h"
#include "text_data.h"

enum { MAX_TEMPLATES = 200, MAX_TOKENS = 1000, MAX_TOKEN_BYTES = 40 };

static struct {
    const char *path;
    char *source;
    size_t n;
    struct tern_chat_template *t;
} templates[MAX_TEMPLATES];
static size_t n_templates;
static char tokens[MAX_TOKENS][MAX_TOKEN_BYTES + 1];
static size_t n_tokens;
static struct data_tokenizer tokenizer;

static const struct tern_chat_params params = {
    .add_generation_prompt = true, .bos = "<s>", .eos = "</s>", .date = {2026, 11, 22, 10, 5, 9}};

/* ---- the tokenizer ---- */

static void add_token(const char *text, size_t n)
{
    for (size_t i = 0; i < n_tokens; i++)
        if (strlen(tokens[i]) == n && memcmp(tokens[i], text, n) == 0)
            return;
    assert_true(n_tokens < MAX_TOKENS);
    memcpy(tokens[n_tokens], text, n);
    tokens[n_tokens++][n] = '\0';
}

/* <|name|>, <name>, [NAME] and the like, without white space or the text that templates put around
 * it. */
static void add_tokens(const char *source, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (source[i] != '<' && source[i] != '[')
            continue;
        char close = source[i] == '<' ? '>' : ']';
        size_t end = i + 1;
        while (end < n && end - i < MAX_TOKEN_BYTES && !strchr(" \n\t'\"{}<>[]()+\\", source[end]))
            end++;
        bool is_word = source[i] == '<' || (end > i + 2 && source[i + 1] < 'a' &&
                                            !strchr("0123456789:-", source[i + 1]));
        if (end < n && source[end] == close && end > i + 1 && end - i < MAX_TOKEN_BYTES && is_word)
            add_token(source + i, end - i + 1);
    }
}

static void open_tokenizer(void)
{
    json_t *root = data_json(DATA_DEMO_TOKENIZER);
    json_t *added = json_object_get(root, "added_tokens");
    uint32_t n = DATA_DEMO_VOCAB;
    for (size_t i = 0; i < n_tokens; i++) {
        bool is_known = false;
        size_t k;
        const json_t *old;
        json_array_foreach(added, k, old) is_known |=
            strcmp(json_string_value(json_object_get(old, "content")), tokens[i]) == 0;
        if (!is_known)
            json_array_append_new(added,
                                  json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (int)n++,
                                            "content", tokens[i], "single_word", 0, "lstrip", 0,
                                            "rstrip", 0, "normalized", 0, "special", 1));
    }
    data_tokenizer_open_json(&tokenizer, root, n);
    json_decref(root);
}

static int open_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_templates; i++) {
        struct tern_error err;
        templates[i].source = data_read(templates[i].path, &templates[i].n);
        if (tern_chat_template_parse(&templates[i].t, templates[i].source, templates[i].n, &err))
            fail_msg("%s: %s", templates[i].path, err.detail);
        add_tokens(templates[i].source, templates[i].n);
    }
    add_token(params.bos, strlen(params.bos));
    open_tokenizer();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_templates; i++) {
        tern_chat_template_free(templates[i].t);
        free(templates[i].source);
    }
    data_tokenizer_close(&tokenizer);
    return 0;
}

/* ---- conversations ---- */

enum { PLAIN, REASONING, TOOLS, ROLE, N_KINDS };

/* t in every field; at the ends and starts of messages t lacks its last or first byte, which the
 * template's text could complete. */
static char *request_of(int kind, const char *t)
{
    char most[MAX_TOKEN_BYTES + 1];
    snprintf(most, sizeof most, "%.*s", (int)strlen(t) - 1, t);
    json_t *request = NULL;
    if (kind == PLAIN)
        request = json_pack("{s:[{s:s, s:s}, {s:s, s:s+}, {s:s, s:s}, {s:s, s:s}]}", "messages",
                            "role", "system", "content", t, "role", "user", "content", "a", t,
                            "role", "assistant", "content", most, "role", "user", "content", t + 1);
    else if (kind == REASONING)
        request = json_pack("{s:[{s:s, s:s, s:s}, {s:s, s:s, s:s, s:s}, {s:s, s:[{s:s, s:s}]}]}",
                            "messages", "role", "user", "content", t, "name", t, "role",
                            "assistant", "content", t, "reasoning_content", t, "thinking", t,
                            "role", "user", "content", "type", "text", "text", t);
    else if (kind == TOOLS)
        request = json_pack(
            "{s:[{s:s, s:s}, {s:s, s:[{s:s, s:s, s:{s:s, s:{s:s, s:[s]}}}]}, {s:s, s:s, s:s}],"
            " s:[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s, s:[s]}}, s:[s]}}}],"
            " s:[{s:s, s:s, s:s}], s:{s:s, s:[s]}}",
            "messages", "role", "user", "content", "x", "role", "assistant", "tool_calls", "type",
            "function", "id", "abcdefghi", "function", "name", t, "arguments", t, t, "k", most,
            "role", "tool", "content", t, "tool_call_id", "abcdefghi", "tools", "type", "function",
            "function", "name", t, "description", t, "parameters", "type", "object", "properties",
            t, "type", "string", "description", t, "enum", t, "required", t, "documents", "title",
            t, "text", t, t, t, "kwargs", "citation_mode", t, "contexts", t);
    else
        request = json_pack("{s:[{s:s, s:s}, {s:s, s:s}]}", "messages", "role", t, "content", "x",
                            "role", most, "content", "y");
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    if (!text)
        fail_msg("a token that is not UTF-8 when it is cut: %s", t);
    json_decref(request);
    return text;
}

struct rendering {
    tern_status status;
    char *text;
    unsigned char *marks;
    size_t n;
};

static void check_ids(const struct tern_ids *ids, const struct rendering *r, const char *where,
                      const char *token)
{
    size_t at = 0;
    for (size_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *bytes = tern_tokenizer_token_bytes(tokenizer.t, ids->ids[i], &n);
        bool is_there = n <= r->n - at && memcmp(r->text + at, bytes, n) == 0;
        if (i == 0 && !is_there)
            continue; /* BOS, which the template does not write */
        assert_true(is_there);
        if (tern_tokenizer_is_special(tokenizer.t, ids->ids[i]) && memchr(r->marks + at, 1, n))
            fail_msg("%s: \"%s\" of a conversation becomes id %u", where, token, ids->ids[i]);
        at += n;
    }
    assert_int_equal(at, r->n);
}

static struct rendering render(size_t i, int kind, const char *token)
{
    struct rendering r;
    struct tern_ids ids = {0};
    char *request = request_of(kind, token);
    r.status = tern_chat_render_json(templates[i].t, request, strlen(request), &params, &r.text,
                                     &r.n, &r.marks, NULL);
    if (r.status == TERN_OK) {
        assert_int_equal(tern_chat_encode_json(tokenizer.t, templates[i].t, request,
                                               strlen(request), &params, &ids, NULL),
                         TERN_OK);
        check_ids(&ids, &r, templates[i].path, token);
    }
    tern_ids_free(&ids);
    free(request);
    return r;
}

static size_t n_compared, n_unlike, n_refused;

/* Bytes that change with the text of the conversation must be marked. */
static void check_pair(size_t i, int kind, const char *token)
{
    char other[MAX_TOKEN_BYTES + 1];
    size_t n = strlen(token);
    memset(other, 'x', n);
    other[n] = '\0';
    struct rendering a = render(i, kind, token), b = render(i, kind, other);
    if (a.status != TERN_OK || b.status != TERN_OK) {
        n_refused++;
    } else if (a.n != b.n) {
        n_unlike++; /* the template searches for this token */
    } else {
        n_compared++;
        for (size_t k = 0; k < a.n; k++)
            if (a.text[k] != b.text[k] && !(a.marks[k] && b.marks[k]))
                fail_msg("%s: byte %zu of \"%s\" is not marked", templates[i].path, k, token);
    }
    tern_text_free(a.text);
    tern_text_free(a.marks);
    tern_text_free(b.text);
    tern_text_free(b.marks);
}

static void test_every_token_in_every_template(void **state)
{
    (void)state;
    assert_true(n_templates >= 45 && n_tokens >= 100);
    for (size_t i = 0; i < n_templates; i++)
        for (size_t k = 0; k < n_tokens; k++)
            for (int kind = 0; kind < N_KINDS; kind++)
                check_pair(i, kind, tokens[k]);
    printf("%zu templates x %zu tokens x %d conversations: %zu compared, %zu with a token that the "
           "template looks for, %zu refused\n",
           n_templates, n_tokens, N_KINDS, n_compared, n_unlike, n_refused);
    assert_true(n_compared > n_templates * n_tokens);
    assert_true(n_unlike < n_compared / 20);
}

/* The tokens are special: written by a template, each becomes one id. */
static void test_a_template_may(void **state)
{
    (void)state;
    for (size_t k = 0; k < n_tokens; k++) {
        char source[MAX_TOKEN_BYTES + 20];
        struct tern_ids ids = {0};
        struct tern_chat_template *t;
        int n = snprintf(source, sizeof source, "{{ '%s' }}x", tokens[k]);
        assert_int_equal(tern_chat_template_parse(&t, source, (size_t)n, NULL), TERN_OK);
        assert_int_equal(tern_chat_encode_json(tokenizer.t, t, "[]", 2, &params, &ids, NULL),
                         TERN_OK);
        uint32_t id = tern_tokenizer_find(tokenizer.t, tokens[k], strlen(tokens[k]));
        assert_true(tern_tokenizer_is_special(tokenizer.t, id));
        assert_true(ids.n >= 2 && ids.ids[ids.n - 2] == id);
        tern_ids_free(&ids);
        tern_chat_template_free(t);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc && n_templates < MAX_TEMPLATES; i++)
        templates[n_templates++].path = argv[i];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_token_in_every_template),
        cmocka_unit_test(test_a_template_may),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

/* SPDX-License-Identifier: MIT
 *
 * Chat templates: rendered text and ids equal the goldens; published sources are recognised in any
 * spelling, modified ones are not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tern/model_format.h"
#include "text/chat.h"
#include "text/jinja/jinja.h"
#include "text_data.h"

#define TEMPLATES TERN_SOURCE_DIR "/tests/data/templates/" /* without ids */
#define TEMPLATES_WITH_IDS TERN_SHARED_DIR "/reference/tokenizers/templates/"

static struct data_tokenizer llama3;

/* A conversation of a golden case; strings belong to the JSON tree. */
struct conversation {
    struct tern_message messages[32];
    size_t n;
};

/* false: a message has other members than role and content. */
static bool read_messages(const json_t *list, struct conversation *c)
{
    c->n = json_array_size(list);
    assert_true(c->n <= 32);
    for (size_t i = 0; i < c->n; i++) {
        const json_t *m = json_array_get(list, i);
        const json_t *role = json_object_get(m, "role"), *content = json_object_get(m, "content");
        if (json_object_size(m) != 2 || !role || !content)
            return false;
        c->messages[i] =
            (struct tern_message){json_string_value(role), json_string_length(role),
                                  json_string_value(content), json_string_length(content)};
    }
    return true;
}

/* The map is 1 exactly for the bytes of messages, which appear in order. */
static void check_map(const struct conversation *c, const char *text, const unsigned char *map,
                      size_t n)
{
    size_t n_user = 0, n_messages = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(map[i] <= 1);
        n_user += map[i];
        /* No built-in template writes these characters itself. */
        if (text[i] == '?' || text[i] == '`')
            assert_int_equal(map[i], 1);
    }
    for (size_t i = 0; i < c->n; i++)
        n_messages += c->messages[i].n_role + c->messages[i].n_content;
    assert_true(n_user <= n_messages);
}

static void check_text(const struct tern_chat_template *t, const json_t *root, const json_t *item,
                       const struct conversation *c)
{
    char *text;
    size_t n;
    unsigned char *map;
    struct tern_error err = {TERN_OK, ""};
    const json_t *expected = json_object_get(item, "text");
    const struct tern_chat_params params = {
        .add_generation_prompt = json_is_true(json_object_get(item, "add_generation_prompt")),
        .bos = json_string_value(json_object_get(root, "bos_token")),
        .eos = json_string_value(json_object_get(root, "eos_token")),
    };
    tern_status status = tern_chat_render(t, c->messages, c->n, &params, &text, &n, &map, &err);
    const char *name = json_string_value(json_object_get(item, "name"));
    if (!json_is_string(expected)) {
        assert_int_equal(status, TERN_USAGE);
        assert_string_equal(err.detail, json_string_value(json_object_get(item, "error")));
        return;
    }
    assert_int_equal(status, TERN_OK);
    if (n != json_string_length(expected) || memcmp(text, json_string_value(expected), n) != 0)
        fail_msg("%s/%s: \"%s\"", tern_chat_template_name(t), name, text);
    check_map(c, text, map, n);
    tern_text_free(text);
    tern_text_free(map);
}

static void check_chat_ids(const struct tern_chat_template *t, const json_t *item,
                           const struct conversation *c)
{
    const json_t *expected = json_object_get(item, "ids_safe");
    if (!expected)
        expected = json_object_get(item, "ids");
    struct tern_ids ids = {0};
    struct tern_error err;
    const struct tern_chat_params params = {
        .add_generation_prompt = json_is_true(json_object_get(item, "add_generation_prompt"))};
    assert_int_equal(tern_chat_encode(llama3.t, t, c->messages, c->n, &params, &ids, &err),
                     TERN_OK);
    const char *name = json_string_value(json_object_get(item, "name"));
    if (ids.n != json_array_size(expected))
        fail_msg("%s: %zu ids, expected %zu", name, ids.n, json_array_size(expected));
    for (size_t i = 0; i < ids.n; i++)
        if (ids.ids[i] != (uint32_t)json_integer_value(json_array_get(expected, i)))
            fail_msg("%s: id %zu is %u", name, i, ids.ids[i]);
    tern_ids_free(&ids);
}

/* All cases of a golden file that the built-in code covers.  Returns their number. */
static size_t check_template(const char *dir, const char *file, const char *name, bool with_ids)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s.json", dir, file);
    json_t *root = data_json(path), *item;
    const json_t *source = json_object_get(root, "template");
    const struct tern_chat_template *t =
        tern_chat_template_recognise(json_string_value(source), json_string_length(source));
    assert_non_null(t);
    assert_string_equal(tern_chat_template_name(t), name);
    assert_ptr_equal(t, tern_chat_template_find(name));
    size_t i, n = 0;
    json_array_foreach(json_object_get(root, "cases"), i, item) {
        struct conversation c;
        if (!read_messages(json_object_get(item, "messages"), &c) ||
            json_object_get(item, "kwargs") || json_object_get(item, "tools"))
            continue;
        check_text(t, root, item, &c);
        if (with_ids)
            check_chat_ids(t, item, &c);
        n++;
    }
    json_decref(root);
    return n;
}

static void test_text(void **state)
{
    (void)state;
    assert_int_equal(check_template(TEMPLATES, "bitnet-2b-4t", "bitnet-2b-4t", false), 16);
    assert_int_equal(check_template(TEMPLATES, "llama3-instruct", "llama3", false), 16);
    assert_int_equal(check_template(TEMPLATES, "chatml", "chatml", false), 16);
    assert_int_equal(check_template(TEMPLATES, "falcon3-instruct", "falcon3", false), 16);
    assert_int_equal(check_template(TEMPLATES, "qwen3", "qwen3", false), 19);
}

static void test_ids(void **state)
{
    (void)state;
    if (data_missing() == 77)
        skip();
    data_tokenizer_open(&llama3, TERN_TEXT_DATA "/llama3.tokenizer.json", 128256);
    assert_int_equal(check_template(TEMPLATES_WITH_IDS, "bitnet-2b-4t", "bitnet-2b-4t", true), 16);
    assert_int_equal(check_template(TEMPLATES_WITH_IDS, "llama3-instruct", "llama3", true), 16);
    data_tokenizer_close(&llama3);
}

static const char *recognised(const char *source)
{
    const struct tern_chat_template *t = tern_chat_template_recognise(source, strlen(source));
    return t ? tern_chat_template_name(t) : "";
}

#define BITNET_HEAD                                                                                \
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "        \
    "message['role'] | capitalize + ': '+ message['content'] | trim + '<|eot_id|>' %}"
#define BITNET_TAIL                                                                                \
    "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}"

static void test_recognise_other_writing(void **state)
{
    (void)state;
    assert_string_equal(recognised(BITNET_HEAD BITNET_TAIL), "bitnet-2b-4t");
    assert_string_equal(recognised(BITNET_HEAD BITNET_TAIL "\n"), "bitnet-2b-4t");
    /* The variant that writes BOS itself: the result always has exactly one BOS. */
    assert_string_equal(recognised(BITNET_HEAD "{% if loop.index0 == 0 %}{% set content = "
                                               "bos_token + content %}{% endif %}" BITNET_TAIL),
                        "bitnet-2b-4t");
    /* Double quotes, escapes instead of newlines, blanks, line breaks that control removes. */
    assert_string_equal(
        recognised("{%- for message in messages -%}\n  {{- \"<|im_start|>\" + message[\"role\"] + "
                   "'\\n'+message['content'] + '<|im_end|>' + '\\n' -}}\n{%- endfor -%}\n"
                   "{# the prompt #}{%- if add_generation_prompt -%}\n"
                   "{{-'<|im_start|>assistant\\n'-}}{%-endif-%}\n"),
        "chatml");
    assert_string_equal(
        recognised("{% for message in messages %}\n"
                   "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
                   "'\n'}}{% endfor %}\n"
                   "    {% if add_generation_prompt %}\n{{ '<|im_start|>assistant\n' }}{% endif %}"),
        "chatml");
    assert_string_equal(
        recognised("{% if not add_generation_prompt is defined %}{% set add_generation_prompt = "
                   "false %}{% endif %}{% for message in messages %}{{'<|im_start|>' + "
                   "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
                   "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"),
        "chatml");
}

static void test_recognise_refuses(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "",
        "\n",
        "bitnet-2b-4t",
        "{% for message in messages %}",
        "{{ 'unfinished",
        "{%",
        "{#",
        "{{-",
        BITNET_HEAD BITNET_TAIL "x",
        "x" BITNET_HEAD BITNET_TAIL,
        BITNET_HEAD "\n\n" BITNET_TAIL, /* one of two line breaks is text */
        BITNET_HEAD " " BITNET_TAIL,
        BITNET_HEAD "{{ content }}{% endfor %}{{ 'Assistant: ' }}",
        "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
        "message['role'] | capitalize + ':  '+ message['content'] | trim + '<|eot_id|>' "
        "%}" BITNET_TAIL,
        "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
        "message['role'] | capitalize + ': '+ message['content'] + '<|eot_id|>' %}" BITNET_TAIL,
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (*recognised(sources[i]))
            fail_msg("source %zu is taken for %s", i, recognised(sources[i]));
}

static bool is_same(const char *a, const char *b)
{
    return tn_jinja_is_same(a, strlen(a), b);
}

/* Words of a tag stay separate, and text between tags counts. */
static void test_canonical_form(void **state)
{
    (void)state;
    assert_true(is_same("{{a b}}", "{{ a   b }}"));
    assert_false(is_same("{{a b}}", "{{ab}}"));
    assert_false(is_same("{{'a b'}}", "{{'ab'}}"));
    assert_false(is_same("{{a}}", "{%a%}"));
    assert_false(is_same("{{-1}}", "{{- -1}}"));
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {"bitnet-2b-4t", "llama3", "chatml", "falcon3", "qwen3"};
    const struct tern_chat_template *t = NULL;
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        t = tern_chat_template_next(t);
        assert_string_equal(tern_chat_template_name(t), names[i]);
        assert_ptr_equal(tern_chat_template_find(names[i]), t);
    }
    assert_null(tern_chat_template_next(t));
    assert_null(tern_chat_template_find("gemma"));
    assert_null(tern_chat_template_find(""));
}

static char *render(const char *name, const struct tern_message *messages, size_t n,
                    const char *bos, const char *eos, struct tern_error *err)
{
    char *text;
    size_t n_text;
    const struct tern_chat_params params = {
        .add_generation_prompt = true, .bos = bos, .eos = eos};
    tern_chat_render(tern_chat_template_find(name), messages, n, &params, &text, &n_text, NULL,
                     err);
    return text;
}

/* Every <|...|> that a template writes is in its list, except Falcon3's roles, which are text. */
static void test_specials_are_listed(void **state)
{
    (void)state;
    const struct tern_message m[] = {{"assistant", 9, "a", 1}, {"user", 4, "u", 1}};
    const struct tern_chat_template *t = NULL;
    while ((t = tern_chat_template_next(t)) != NULL) {
        char *text = render(t->name, m, 2, "", NULL, NULL);
        bool writes_end = false;
        for (const char *p = text; (p = strstr(p, "<|")) != NULL; p++) {
            size_t n = (size_t)(strstr(p, "|>") - p) + 2;
            bool is_listed = strcmp(t->name, "falcon3") == 0 && strncmp(p, "<|end", 5) != 0;
            for (const char *const *special = t->specials; *special; special++)
                is_listed |= strlen(*special) == n && memcmp(*special, p, n) == 0;
            if (!is_listed)
                fail_msg("%s writes %.*s", t->name, (int)n, p);
            writes_end |= strlen(t->answer_end) == n && memcmp(t->answer_end, p, n) == 0;
        }
        if (!writes_end)
            fail_msg("%s does not end an answer with %s", t->name, t->answer_end);
        tern_text_free(text);
    }
}

static void count_end(void *n, uint32_t id)
{
    (void)id;
    ++*(unsigned *)n;
}

/* A model reserves room for tn_chat_ends only, so that no template may end turns otherwise. */
static void test_ends_of_turns(void **state)
{
    (void)state;
    for (const struct tern_chat_template *t = tn_chat_templates; t->name; t++) {
        const uint32_t written = tn_chat_find_ends(t->source, strlen(t->source));
        bool is_listed = false;
        for (uint32_t i = 0; i < TN_CHAT_N_ENDS; i++)
            is_listed |= strcmp(tn_chat_ends[i], t->answer_end) == 0;
        if (!is_listed)
            fail_msg("%s ends answers with %s", t->name, t->answer_end);
        if (strcmp(t->name, "chatml") == 0)
            assert_int_equal(written, 1u << 2); /* <|im_end|> */
    }
    assert_int_equal(tn_chat_find_ends("<|eot_id|", 9), 0);
    assert_int_equal(tn_chat_find_ends("a<|eom_id|><end_of_turn>", 24), 1u << 1 | 1u << 4);
    struct data_tokenizer demo;
    data_tokenizer_open(&demo, DATA_DEMO_TOKENIZER, DATA_DEMO_VOCAB);
    unsigned n = 0;
    tn_chat_visit_ends((1u << TN_CHAT_N_ENDS) - 1, NULL, demo.t, count_end, &n);
    assert_int_equal(n, 2); /* <|eot_id|> and <|end_of_text|> */
    data_tokenizer_close(&demo);
}

static void test_missing_specials(void **state)
{
    (void)state;
    static const struct {
        const char *name, *missing;
    } cases[] = {{"bitnet-2b-4t", NULL},
                 {"llama3", NULL},
                 {"chatml", "<|im_start|>"},
                 {"falcon3", "<|endoftext|>"},
                 {"qwen3", "<|im_start|>"}};
    struct data_tokenizer demo;
    data_tokenizer_open(&demo, DATA_DEMO_TOKENIZER, DATA_DEMO_VOCAB);
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        const char *missing =
            tern_chat_template_missing(tern_chat_template_find(cases[i].name), demo.t);
        assert_int_equal(missing == NULL, cases[i].missing == NULL);
        if (missing)
            assert_string_equal(missing, cases[i].missing);
    }
    data_tokenizer_close(&demo);
}

static void check_render(const char *name, const char *role, const char *content, const char *bos,
                         const char *eos, const char *expected)
{
    struct tern_error err = {TERN_OK, ""};
    struct tern_message m[2] = {{role, strlen(role), content, strlen(content)},
                                {"user", 4, "u", 1}};
    char *text = render(name, m, 2, bos, eos, &err);
    assert_non_null(text);
    assert_string_equal(text, expected);
    tern_text_free(text);
}

static void test_corners(void **state)
{
    (void)state;
    struct tern_error err = {TERN_OK, ""};
    /* Without messages: only Qwen3 reads the first one. */
    char *text = render("bitnet-2b-4t", NULL, 0, NULL, NULL, &err);
    assert_string_equal(text, "Assistant: ");
    tern_text_free(text);
    assert_null(render("qwen3", NULL, 0, NULL, NULL, &err));
    assert_int_equal(err.status, TERN_USAGE);
    assert_non_null(strstr(err.detail, "attribute \"role\" of an undefined value"));
    /* Default tokens if none are given, otherwise the given ones. */
    check_render("falcon3", "assistant", "a", NULL, NULL,
                 "<|assistant|>\na<|endoftext|>\n<|user|>\nu\n<|assistant|>\n");
    check_render("falcon3", "assistant", "a", "", "E",
                 "<|assistant|>\naE\n<|user|>\nu\n<|assistant|>\n");
    check_render("llama3", "x", "a", "B", "",
                 "B<|start_header_id|>x<|end_header_id|>\n\na<|eot_id|><|start_header_id|>user"
                 "<|end_header_id|>\n\nu<|eot_id|><|start_header_id|>assistant<|end_header_id|>"
                 "\n\n");
    /* capitalize: title case first, then lower case, any bytes. */
    check_render("bitnet-2b-4t", "\xC3\xA9L\xC3\x84 x\xFFY", " a ", "", "",
                 "\xC3\x89l\xC3\xA4 x\xFFy: a<|eot_id|>User: u<|eot_id|>Assistant: ");
    check_render("bitnet-2b-4t", "", "", "", "", ": <|eot_id|>User: u<|eot_id|>Assistant: ");
    /* Consecutive tool messages share a turn, whatever surrounds them. */
    check_render("qwen3", "tool", "t", "", "",
                 "<|im_start|>user\n<tool_response>\nt\n</tool_response><|im_end|>\n"
                 "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_recognise_other_writing),
        cmocka_unit_test(test_recognise_refuses),
        cmocka_unit_test(test_canonical_form),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_specials_are_listed),
        cmocka_unit_test(test_ends_of_turns),
        cmocka_unit_test(test_missing_specials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

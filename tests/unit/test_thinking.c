/* SPDX-License-Identifier: MIT
 *
 * Reasoning is separated from the answer, however the text is split; the reasoning support of
 * published templates is detected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/rng.h"
#include "plat/plat.h"
#include "tern/thinking.h"

struct parts {
    struct tn_buf text[2];
};

static bool take_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    return tn_buf_append(&((struct parts *)arg)->text[part], text, n);
}

/* Feeds `text` in pieces of `cut` bytes to an answer after `prompt`. */
static struct tern_thinking *push_all(struct parts *parts, const char *prompt, const char *text,
                                      size_t cut)
{
    struct tern_thinking *t;
    const size_t n = strlen(text);
    assert_int_equal(tern_thinking_create(&t, take_part, parts, NULL), TERN_OK);
    tern_thinking_begin_inside(t, tern_thinking_opened_by(prompt, strlen(prompt)));
    for (size_t i = 0; i < n; i += cut)
        assert_int_equal(tern_thinking_push(t, text + i, n - i < cut ? n - i : cut, NULL), TERN_OK);
    return t;
}

static void check_split(const char *prompt, const char *text, size_t cut, const char *reasoning,
                        const char *said)
{
    struct parts parts = {0};
    struct tern_thinking *t = push_all(&parts, prompt, text, cut);
    assert_int_equal(tern_thinking_end(t, NULL), TERN_OK);
    assert_string_equal(tn_buf_text(&parts.text[TERN_PART_REASONING]), reasoning);
    assert_string_equal(tn_buf_text(&parts.text[TERN_PART_ANSWER]), said);
    if (said[0])
        assert_string_equal(text + tern_thinking_answer_at(t), said);
    else
        assert_true(tern_thinking_answer_at(t) == SIZE_MAX);
    tern_thinking_free(t);
    tn_buf_fini(&parts.text[0]);
    tn_buf_fini(&parts.text[1]);
}

static void reasoning_is_separated_from_the_answer(void **state)
{
    (void)state;
    static const struct {
        const char *prompt, *text, *reasoning, *said;
    } cases[] = {
        {"", "Hello", "", "Hello"},
        {"", "", "", ""},
        {"", "  \n", "", "  \n"},
        {"", " Hello <think>x</think>", "", " Hello <think>x</think>"},
        {"", "<think>\nLet me see.\n</think>\n\nYes.", "Let me see.", "Yes."},
        {"", "\n<think>a < b</thin </think>c", "a < b</thin", "c"},
        {"", "<think></think>Yes", "", "Yes"},
        {"", "<think>\n\n</think>\n\nYes\n", "", "Yes\n"},
        {"", "<think>never closed \n", "never closed", ""},
        {"", "<think>a\n\nb</think>c", "a\n\nb", "c"},
        {"", "<thin air>", "", "<thin air>"},
        {"", "<thinking>a</think>b</thinking> c", "a</think>b", "c"},
        {"", "[THINK]a[/THINK]b", "a", "b"},
        {"", "<|START_THINKING|>a<|END_THINKING|>b", "a", "b"},
        {"<|assistant|><think>\n", "deep</think>\n\nshallow", "deep", "shallow"},
        {"<think>\n\n</think>\n\n", "shallow</think>", "", "shallow</think>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t cut = 1; cut < 12; cut++)
            check_split(cases[i].prompt, cases[i].text, cut, cases[i].reasoning, cases[i].said);
}

/* The same for a complete text. */
static void split_at_once(struct tn_buf *reasoning, struct tn_buf *said, const char *text,
                          const char *close)
{
    static const char *const tags[][2] = {{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}};
    const char *rest = text + (close ? 0 : strspn(text, " \n"));
    for (size_t i = 0; i < 2 && !close; i++)
        if (strncmp(rest, tags[i][0], strlen(tags[i][0])) == 0) {
            close = tags[i][1];
            rest += strlen(tags[i][0]);
        }
    if (!close) {
        tn_buf_append_text(said, text);
        return;
    }
    const char *end = strstr(rest, close), *answer = end ? end + strlen(close) : "";
    size_t n = end ? (size_t)(end - rest) : strlen(rest);
    const size_t n_space = strspn(rest, " \n") < n ? strspn(rest, " \n") : n;
    while (n > n_space && strchr(" \n", rest[n - 1]))
        n--;
    tn_buf_append(reasoning, rest + n_space, n - n_space);
    tn_buf_append_text(said, answer + strspn(answer, " \n"));
}

static void any_text_in_any_pieces(void **state)
{
    (void)state;
    static const char *const words[] = {"<think>", "</think>", "[THINK]", "[/THINK]", "<thi", "nk>",
                                        "</", "<", "/", " ", "\n", "\n\n", "a", "\u00e9", "think>"};
    struct tn_rng rng;
    tn_rng_seed(&rng, 5);
    for (int round = 0; round < 20000; round++) {
        struct tn_buf text = {0}, reasoning = {0}, said = {0};
        struct parts parts = {0};
        struct tern_thinking *t;
        const bool is_open = tn_rng_next(&rng) % 4 == 0;
        const char *close = is_open ? tern_thinking_opened_by("<think>\n", 8) : NULL;
        for (uint64_t n = tn_rng_next(&rng) % 9; n > 0; n--)
            tn_buf_append_text(&text, words[tn_rng_next(&rng) % (sizeof words / sizeof *words)]);
        split_at_once(&reasoning, &said, tn_buf_text(&text), close);
        assert_int_equal(tern_thinking_create(&t, take_part, &parts, NULL), TERN_OK);
        tern_thinking_begin_inside(t, close);
        for (size_t i = 0, n; i < text.n_bytes; i += n) {
            n = 1 + tn_rng_next(&rng) % 6;
            n = n < text.n_bytes - i ? n : text.n_bytes - i;
            assert_int_equal(tern_thinking_push(t, text.data + i, n, NULL), TERN_OK);
        }
        assert_int_equal(tern_thinking_end(t, NULL), TERN_OK);
        if (strcmp(tn_buf_text(&parts.text[TERN_PART_REASONING]), tn_buf_text(&reasoning)) != 0 ||
            strcmp(tn_buf_text(&parts.text[TERN_PART_ANSWER]), tn_buf_text(&said)) != 0)
            fail_msg("\"%s\" became \"%s\" and \"%s\"", tn_buf_text(&text),
                     tn_buf_text(&parts.text[TERN_PART_REASONING]),
                     tn_buf_text(&parts.text[TERN_PART_ANSWER]));
        tern_thinking_free(t);
        tn_buf_fini(&text);
        tn_buf_fini(&reasoning);
        tn_buf_fini(&said);
        tn_buf_fini(&parts.text[0]);
        tn_buf_fini(&parts.text[1]);
    }
}

/* Held text may be the start of a tag; it is emitted if nothing follows. */
static void the_end_emits_held_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *before, *after;
        enum tern_part part;
        bool is_inside;
    } cases[] = {
        {"<thin", "", "<thin", TERN_PART_ANSWER, false},
        {" \n", "", " \n", TERN_PART_ANSWER, false},
        {"<think>so</thi", "so", "so</thi", TERN_PART_REASONING, true},
        {"<think>so <", "so", "so <", TERN_PART_REASONING, true},
        {"<think>so</think>\n", "so", "so", TERN_PART_REASONING, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct parts parts = {0};
        struct tern_thinking *t = push_all(&parts, "", cases[i].text, 3);
        struct tn_buf *text = &parts.text[cases[i].part];
        assert_string_equal(tn_buf_text(text), cases[i].before);
        assert_int_equal(tern_thinking_is_inside(t), cases[i].is_inside);
        assert_int_equal(tern_thinking_end(t, NULL), TERN_OK);
        assert_string_equal(tn_buf_text(text), cases[i].after);
        assert_int_equal(parts.text[!cases[i].part].n_bytes, 0);
        tern_thinking_free(t);
        tn_buf_fini(text);
    }
}

static void a_continued_answer_continues_at_its_end(void **state)
{
    (void)state;
    for (int was_inside = 0; was_inside < 2; was_inside++) {
        struct parts parts = {0};
        struct tern_thinking *t;
        assert_int_equal(tern_thinking_create(&t, take_part, &parts, NULL), TERN_OK);
        tern_thinking_resume(t, was_inside);
        assert_int_equal(tern_thinking_push(t, " a</think>b", 11, NULL), TERN_OK);
        assert_string_equal(tn_buf_text(&parts.text[TERN_PART_REASONING]), was_inside ? " a" : "");
        assert_string_equal(tn_buf_text(&parts.text[TERN_PART_ANSWER]),
                            was_inside ? "b" : " a</think>b");
        tern_thinking_free(t);
        tn_buf_fini(&parts.text[0]);
        tn_buf_fini(&parts.text[1]);
    }
}

static void an_answer_continues_inside_another_tag(void **state)
{
    (void)state;
    struct parts parts = {0};
    struct tern_thinking *t;
    assert_int_equal(tern_thinking_create(&t, take_part, &parts, NULL), TERN_OK);
    tern_thinking_begin_inside(t, "[/THINK]");
    tern_thinking_resume(t, true);
    assert_int_equal(tern_thinking_push(t, " a</think>[/THINK] b", 20, NULL), TERN_OK);
    assert_string_equal(tn_buf_text(&parts.text[TERN_PART_REASONING]), " a</think>");
    assert_string_equal(tn_buf_text(&parts.text[TERN_PART_ANSWER]), "b");
    tern_thinking_free(t);
    tn_buf_fini(&parts.text[0]);
    tn_buf_fini(&parts.text[1]);
}

static bool refuse(void *arg, enum tern_part part, const char *text, size_t n)
{
    (void)part, (void)text, (void)n;
    ++*(int *)arg;
    return false;
}

static void a_refusing_callback_is_not_called_again(void **state)
{
    (void)state;
    int n_calls = 0;
    struct tern_thinking *t;
    assert_int_equal(tern_thinking_create(&t, refuse, &n_calls, NULL), TERN_OK);
    assert_int_equal(tern_thinking_push(t, "<think>a</think>b", 17, NULL), TERN_INTERRUPTED);
    assert_int_equal(tern_thinking_push(t, "c", 1, NULL), TERN_INTERRUPTED);
    assert_int_equal(tern_thinking_end(t, NULL), TERN_INTERRUPTED);
    assert_int_equal(n_calls, 1);
    tern_thinking_free(t);
}

static void reasoning_support_of_templates_is_detected(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct tern_chat_reasoning known; /* is_known, has_switch, is_opened */
    } cases[] = {
        {"qwen3-thinking", {true, true, false}},  {"qwq-32b", {true, false, true}},
        {"deepseek-r1-distill", {true, false, true}}, {"smollm3", {true, true, false}},
        {"glm-4.5", {true, true, false}},         {"granite-3.3", {true, true, false}},
        {"bitcpm4-tools", {true, true, false}},   {"chatml", {false, false, false}},
        {"falcon-e", {false, false, false}},      {"bitnet-2b-4t", {false, false, false}},
        {"llama-3.1-tools", {false, false, false}}, {"gpt-oss", {false, false, false}},
    };
    static const struct tern_chat_params params = {.bos = "<s>", .eos = "</s>"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tern_chat_template *t;
        struct tern_chat_reasoning known;
        struct tn_buf path = {0};
        char *source;
        size_t n;
        tn_buf_printf(&path, "%s/tests/text/templates/%s.jinja", TERN_SOURCE_DIR, cases[i].name);
        assert_int_equal(tn_file_read_all(&source, &n, tn_buf_text(&path), 1 << 20, NULL), TERN_OK);
        assert_int_equal(tern_chat_template_parse(&t, source, n, NULL), TERN_OK);
        assert_int_equal(tern_chat_reasoning(&known, t, &params, NULL), TERN_OK);
        if (memcmp(&known, &cases[i].known, sizeof known) != 0)
            fail_msg("%s: %d %d %d", cases[i].name, known.is_known, known.has_switch,
                     known.is_opened);
        tern_chat_template_free(t);
        tn_free(source);
        tn_buf_fini(&path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasoning_is_separated_from_the_answer),
        cmocka_unit_test(any_text_in_any_pieces),
        cmocka_unit_test(the_end_emits_held_text),
        cmocka_unit_test(a_continued_answer_continues_at_its_end),
        cmocka_unit_test(an_answer_continues_inside_another_tag),
        cmocka_unit_test(a_refusing_callback_is_not_called_again),
        cmocka_unit_test(reasoning_support_of_templates_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

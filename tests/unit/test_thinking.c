/* SPDX-License-Identifier: MIT
 *
 * What a model thinks is told from what it answers, however the text is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "chat/thinking.h"

struct parts {
    struct tn_buf text[2];
};

static bool take_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    return tn_buf_append(&((struct parts *)arg)->text[part], text, n);
}

static void check_split(const char *prompt, const char *text, size_t cut, const char *reasoning,
                        const char *said)
{
    struct parts parts = {0};
    struct tn_thinking t = {.on_part = take_part, .arg = &parts};
    size_t n = strlen(text);
    tn_thinking_start(&t, prompt, strlen(prompt));
    for (size_t i = 0; i < n; i += cut)
        assert_true(tn_thinking_push(&t, text + i, n - i < cut ? n - i : cut));
    assert_true(tn_thinking_end(&t));
    assert_string_equal(tn_buf_text(&parts.text[TERN_PART_REASONING]), reasoning);
    assert_string_equal(tn_buf_text(&parts.text[TERN_PART_ANSWER]), said);
    tn_thinking_fini(&t);
    tn_buf_fini(&parts.text[0]);
    tn_buf_fini(&parts.text[1]);
}

static void reasoning_is_told_from_the_answer(void **state)
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

static bool refuse(void *arg, enum tern_part part, const char *text, size_t n)
{
    (void)part, (void)text, (void)n;
    ++*(int *)arg;
    return false;
}

static void who_refuses_is_not_asked_again(void **state)
{
    (void)state;
    int n_calls = 0;
    struct tn_thinking t = {.on_part = refuse, .arg = &n_calls};
    assert_false(tn_thinking_push(&t, "<think>a</think>b", 17));
    assert_false(tn_thinking_push(&t, "c", 1));
    assert_false(tn_thinking_end(&t));
    assert_int_equal(n_calls, 1);
    tn_thinking_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasoning_is_told_from_the_answer),
        cmocka_unit_test(who_refuses_is_not_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

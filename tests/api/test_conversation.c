/* SPDX-License-Identifier: MIT
 *
 * A conversation is the ids of its rendering, whatever happened before: answers, regenerated ones,
 * interruptions, contexts that are full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "failing_alloc.h"
#include "tern/grammar.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_conversation.tern"
#define SAVED_PATH TERN_BUILD_DIR "/test_conversation.json"
#include "conversation_fixture.h"

/* ---- ids ---- */

static void ids_are_those_of_the_whole_conversation(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    assert_ok(tern_conversation_set_system(c, SYSTEM, strlen(SYSTEM), &e));
    for (int i = 0; i < 5; i++) {
        char question[40];
        snprintf(question, sizeof question, "Question %d, please?", i);
        say(c, "user", question);
        struct tern_ids before = ids_of(c);
        const uint32_t n_past = tern_session_n_past(session);
        uint32_t n_same = 0;
        while (n_same < n_past && n_same + 1 < before.n &&
               tern_session_ids(session)[n_same] == before.ids[n_same])
            n_same++;
        struct tern_answer_result result = answer(c, 12);
        assert_int_equal(result.generate.n_prompt, before.n);
        assert_int_equal(result.generate.n_prompt_evaluated, before.n - n_same);
        assert_int_equal(result.n_ids, before.n + 12);
        if (i > 0)
            assert_true(n_same > 10); /* at least the system message */

        /* The same messages through another function. */
        const struct tern_chat_template *t;
        struct tern_chat_params params;
        struct tn_buf json = {0};
        struct tern_ids whole = {0}, after = {0};
        assert_ok(tern_model_chat_template(&t, model, &e));
        tern_model_chat_params(model, t, &params);
        struct tern_message messages[16] = {{"system", 6, SYSTEM, strlen(SYSTEM)}};
        size_t n = 1;
        for (; n <= tern_conversation_n_turns(c); n++) {
            struct tern_turn turn;
            tern_conversation_get(c, n - 1, &turn);
            messages[n] = (struct tern_message){turn.role.bytes, turn.role.n, turn.content.bytes,
                                                turn.content.n};
        }
        assert_ok(
            tern_chat_encode(tern_model_tokenizer(model), t, messages, n, &params, &whole, &e));
        after = ids_of(c);
        assert_same_ids(&whole, &after);
        tern_ids_free(&whole);
        tern_ids_free(&after);
        tern_ids_free(&before);
        tn_buf_fini(&json);
    }
    tern_conversation_free(c);
}

static const char tool_template[] =
    "{%- for t in tools or [] %}[{{ t.name }}]{% endfor %}"
    "{%- for m in messages %}<{{ m.role }}{% if m.name %}:{{ m.name }}{% endif %}>"
    "{%- if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
    "{%- for c in m.tool_calls or [] %}!{{ c.function.name }}{% endfor %}"
    "{%- if m.tool_call_id %}#{{ m.tool_call_id }}{% endif %}{{ m.content }}{% endfor %}"
    "{%- if loud %}LOUD{% endif %}";

static void assert_renders(struct tern_conversation *c, const char *expected)
{
    struct tern_ids ids = ids_of(c), want = {0};
    assert_ok(tern_tokenizer_encode(tern_model_tokenizer(model), expected, strlen(expected),
                                    TERN_ENCODE_ADD_SPECIAL, &want, &e));
    assert_same_ids(&ids, &want);
    tern_ids_free(&ids);
    tern_ids_free(&want);
}

static void templates_see_every_field(void **state)
{
    (void)state;
    struct tern_chat_template *t;
    struct tern_conversation *c = begin();
    struct tern_error err;
    assert_ok(tern_chat_template_parse(&t, tool_template, sizeof tool_template - 1, &e));
    use_template(c, t);
    struct tern_turn turn = {
        .role = text_of("user"), .content = text_of("\"Hi\"\n\x01"), .name = text_of("Ada")};
    assert_ok(tern_conversation_add(c, &turn, &e));
    turn = (struct tern_turn){.role = text_of("assistant"),
                              .reasoning = text_of("why"),
                              .content = text_of(""),
                              .tool_calls = text_of("[{\"function\": {\"name\": \"sum\"}}]")};
    assert_ok(tern_conversation_add(c, &turn, &e));
    turn = (struct tern_turn){
        .role = text_of("tool"), .content = text_of("3"), .tool_call_id = text_of("id7")};
    assert_ok(tern_conversation_add(c, &turn, &e));
    assert_renders(c, "<user:Ada>\"Hi\"\n\x01<assistant>(why)!sum<tool>#id7"
                      "3");
    assert_ok(tern_conversation_set_tools(c, "[{\"name\": \"sum\"}]", 17, &e));
    assert_ok(tern_conversation_set_variables(c, "{\"loud\": true}", 14, &e));
    assert_renders(c, "[sum]<user:Ada>\"Hi\"\n\x01<assistant>(why)!sum<tool>#id7"
                      "3LOUD");
    /* A refused call changes nothing. */
    assert_int_equal(tern_conversation_set_tools(c, "{}", 2, &err), TERN_USAGE);
    assert_int_equal(tern_conversation_set_variables(c, "[", 1, &err), TERN_USAGE);
    turn.tool_calls = text_of("x");
    assert_int_equal(tern_conversation_add(c, &turn, &err), TERN_USAGE);
    assert_int_equal(tern_conversation_add(c, &(struct tern_turn){0}, &err), TERN_USAGE);
    assert_renders(c, "[sum]<user:Ada>\"Hi\"\n\x01<assistant>(why)!sum<tool>#id7"
                      "3LOUD");
    assert_int_equal(tern_conversation_n_turns(c), 3);
    tern_conversation_free(c);
    tern_chat_template_free(t);
}

static size_t n_special(struct tern_conversation *c)
{
    struct tern_ids ids = ids_of(c);
    size_t n = 0;
    for (size_t i = 0; i < ids.n; i++)
        n += tern_tokenizer_is_special(tern_model_tokenizer(model), ids.ids[i]);
    tern_ids_free(&ids);
    return n;
}

static void no_special_id_comes_from_a_message(void **state)
{
    (void)state;
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    const struct tern_chat_template *built_in;
    struct tern_chat_template *parsed;
    uint32_t n_tried = 0;
    assert_ok(tern_model_chat_template(&built_in, model, &e));
    assert_ok(tern_chat_template_parse(&parsed, tool_template, sizeof tool_template - 1, &e));
    for (int way = 0; way < 2; way++)
        for (uint32_t id = 0; id < tern_tokenizer_n_tokens(tokenizer); id++) {
            size_t n;
            const char *bytes = tern_tokenizer_token_bytes(tokenizer, id, &n);
            if (!tern_tokenizer_is_special(tokenizer, id) || !bytes)
                continue;
            struct tern_conversation *c = begin();
            use_template(c, way ? parsed : built_in);
            say(c, "user", "x");
            say(c, "assistant", "x");
            size_t expected = n_special(c);
            tern_conversation_clear(c);
            struct tern_turn turn = {.role = text_of("user"), .content = {bytes, n}};
            assert_ok(tern_conversation_add(c, &turn, &e));
            turn = (struct tern_turn){.role = text_of("assistant"), .content = {bytes, n}};
            if (way)
                turn.reasoning = turn.name = turn.content;
            assert_ok(tern_conversation_add(c, &turn, &e));
            assert_int_equal(n_special(c), expected);
            tern_conversation_free(c);
            n_tried++;
        }
    assert_true(n_tried > 4);
    tern_chat_template_free(parsed);
}

/* ---- answers ---- */

static void going_on_is_as_if_there_had_been_no_break(void **state)
{
    (void)state;
    struct tern_conversation *whole = begin(), *parts = begin();
    struct tern_answer_params params = answer_params(9);
    struct tern_answer_result result;
    say(whole, "user", "Tell me a story.");
    say(parts, "user", "Tell me a story.");
    answer(whole, 27);
    answer(parts, 9);
    for (int i = 0; i < 2; i++) {
        assert_ok(tern_conversation_continue(parts, session, &params, &result, &e));
        assert_int_equal(result.generate.n_prompt_evaluated, 1);
    }
    assert_int_equal(tern_conversation_n_turns(parts), 2);
    assert_same_text(last_turn(whole).content, last_turn(parts).content);
    tern_conversation_free(whole);
    tern_conversation_free(parts);
}

static void continuing_without_memory_changes_nothing(void **state)
{
    (void)state;
    struct tern_answer_params params = answer_params(60);
    struct tern_answer_result result;
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        struct tern_conversation *c = begin();
        say(c, "user", "Tell me a story.");
        answer(c, 9);
        struct tn_buf kept = {0};
        tn_buf_append(&kept, last_turn(c).content.bytes, last_turn(c).content.n);
        fail_alloc_after(n);
        const tern_status status = tern_conversation_continue(c, session, &params, &result, NULL);
        has_failed = fail_alloc_stop();
        if (status != TERN_OK)
            assert_same_text(last_turn(c).content, (struct tern_text){kept.data, kept.n_bytes});
        tn_buf_fini(&kept);
        tern_conversation_free(c);
    }
}

static void another_answer_and_none(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    struct tern_answer_params params = answer_params(20);
    struct tern_answer_result result;
    struct tern_error err;
    assert_int_equal(tern_conversation_regenerate(c, session, &params, &result, &err), TERN_USAGE);
    assert_int_equal(tern_conversation_continue(c, session, &params, &result, &err), TERN_USAGE);
    assert_false(tern_conversation_undo(c));
    say(c, "user", "Tell me a story.");
    params.generate.sampler = random_sampler;
    assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
    struct tn_buf first = {0};
    tn_buf_append(&first, last_turn(c).content.bytes, last_turn(c).content.n);
    assert_ok(tern_conversation_regenerate(c, session, &params, &result, &e));
    assert_int_equal(tern_conversation_n_turns(c), 2);
    assert_int_equal(result.generate.n_prompt_evaluated, 1);
    struct tern_text second = last_turn(c).content;
    assert_false(second.n == first.n_bytes && memcmp(second.bytes, first.data, second.n) == 0);
    tn_buf_fini(&first);

    /* A failed attempt loses nothing. */
    params.generate.stop_strings = (const char *const[]){""};
    params.generate.n_stop_strings = 1;
    struct tn_buf kept = {0};
    tn_buf_append(&kept, second.bytes, second.n);
    assert_int_equal(tern_conversation_regenerate(c, session, &params, &result, &err), TERN_USAGE);
    assert_int_equal(tern_conversation_continue(c, session, &params, &result, &err), TERN_USAGE);
    assert_same_text(last_turn(c).content, (struct tern_text){kept.data, kept.n_bytes});
    tn_buf_fini(&kept);
    assert_true(tern_conversation_undo(c));
    assert_int_equal(tern_conversation_n_turns(c), 0);
    tern_conversation_free(c);
}

static void a_question_in_place_of_another(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    struct tern_answer_params params = answer_params(9);
    struct tern_answer_result result;
    struct tern_error err;
    struct tern_turn turn;
    assert_int_equal(tern_conversation_replace(c, session, &params, &result, &err), TERN_USAGE);
    say(c, "user", "Hello.");
    assert_int_equal(tern_conversation_replace(c, session, &params, &result, &err), TERN_USAGE);
    answer(c, 9);
    assert_int_equal(tern_conversation_replace(c, session, &params, &result, &err), TERN_USAGE);
    say(c, "user", "Tell me a story.");
    answer(c, 9);

    /* A failed attempt loses nothing. */
    say(c, "user", "Tell me another.");
    params.generate.stop_strings = (const char *const[]){""};
    params.generate.n_stop_strings = 1;
    assert_int_equal(tern_conversation_replace(c, session, &params, &result, &err), TERN_USAGE);
    assert_int_equal(tern_conversation_n_turns(c), 5);
    tern_conversation_get(c, 2, &turn);
    assert_same_text(turn.content, (struct tern_text){"Tell me a story.", 16});
    tern_conversation_get(c, 3, &turn);
    assert_same_text(turn.role, (struct tern_text){"assistant", 9});
    assert_same_text(last_turn(c).content, (struct tern_text){"Tell me another.", 16});

    params.generate.n_stop_strings = 0;
    assert_ok(tern_conversation_replace(c, session, &params, &result, &e));
    assert_int_equal(tern_conversation_n_turns(c), 4);
    tern_conversation_get(c, 2, &turn);
    assert_same_text(turn.content, (struct tern_text){"Tell me another.", 16});
    assert_same_text(last_turn(c).role, (struct tern_text){"assistant", 9});
    tern_conversation_free(c);
}

static bool stop_at_once(void *arg, enum tern_part part, const char *text, size_t n)
{
    (void)part, (void)text, (void)n;
    ++*(int *)arg;
    return false;
}

/* The last bytes of an answer may look like the start of a tag; they are kept. */
static void the_end_of_an_answer_may_look_like_a_tag(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *reasoning, *content;
    } cases[] = {
        {"<think>\nso", " </thi", "5 </thi", ""},
        {"<think>so</think>", " <think", "so", "5 <think"},
        {"<think>so", "</think> \n", "5", ""},
        {"so", "", "", "5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tern_conversation *c = begin();
        struct tern_grammar *grammar;
        struct tern_answer_params params = answer_params(60);
        struct tern_answer_result result;
        const struct tern_grammar_part part = {.before = cases[i].before, .after = cases[i].after,
                                               .schema = "{\"const\":5}", .n_bytes = 11};
        assert_ok(tern_grammar_from_parts(&grammar, &part, 1, NULL, NULL, &e));
        params.generate.grammar = grammar;
        say(c, "user", "Hi");
        assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
        assert_ends_with(last_turn(c).reasoning, cases[i].reasoning);
        assert_ends_with(last_turn(c).content, cases[i].content);
        tern_grammar_free(grammar);
        tern_conversation_free(c);
    }
}

static void nothing_is_carried_over_a_cancel(void **state)
{
    (void)state;
    struct tern_conversation *c = begin(), *plain = begin();
    int n_calls = 0;
    struct tern_answer_params params = answer_params(30);
    struct tern_answer_result result;
    params.on_part = stop_at_once;
    params.arg = &n_calls;
    say(c, "user", "Tell me a story.");
    assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
    assert_int_equal(result.generate.stop, TERN_STOP_INTERRUPT);
    assert_int_equal(n_calls, 1);
    assert_true(last_turn(c).content.n > 0); /* text that was shown stays */
    assert_true(tern_conversation_undo(c));
    say(c, "user", "Hello");
    say(plain, "user", "Hello");
    answer(c, 16);
    answer(plain, 16);
    assert_same_text(last_turn(c).content, last_turn(plain).content);
    tern_conversation_free(c);
    tern_conversation_free(plain);
}

static void a_long_conversation_continues(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    struct tern_error err;
    size_t n_forgotten = 0, n_times = 0;
    assert_ok(tern_conversation_set_system(c, SYSTEM, strlen(SYSTEM), &e));
    struct tern_ids start = {0};
    say(c, "user", "x");
    start = ids_of(c);
    tern_conversation_clear(c);
    for (int i = 0; i < 60; i++) {
        say(c, "user", "Tell me more about the fox and the goose.");
        struct tern_answer_result result = answer(c, 20);
        assert_true(result.n_ids <= N_CTX);
        assert_int_equal(result.generate.stop, TERN_STOP_LENGTH); /* there was room for it */
        assert_memory_equal(tern_session_ids(session), start.ids, 8 * sizeof *start.ids);
        n_forgotten += result.n_forgotten;
        n_times += result.n_forgotten > 0;
        assert_int_equal(tern_conversation_n_forgotten(c), n_forgotten);
    }
    assert_true(n_forgotten > 90 && n_forgotten % 2 == 0);
    assert_true(n_times < 30); /* not for every answer */
    assert_int_equal(tern_conversation_n_turns(c), 120);

    /* A message that cannot fit forgets nothing. */
    struct tn_buf longer = {0};
    while (longer.n_bytes < 4000)
        tn_buf_append_text(&longer, "word ");
    struct tern_answer_params params = answer_params(20);
    struct tern_answer_result result;
    say(c, "user", tn_buf_text(&longer));
    assert_int_equal(tern_conversation_answer(c, session, &params, &result, &err), TERN_LIMIT);
    assert_non_null(strstr(err.detail, "256"));
    assert_int_equal(tern_conversation_n_forgotten(c), n_forgotten);
    tn_buf_fini(&longer);
    while (tern_conversation_undo(c))
        ;
    assert_int_equal(tern_conversation_n_forgotten(c), 0);
    tern_ids_free(&start);
    tern_conversation_free(c);
}

static bool count_calls(void *arg)
{
    ++*(int *)arg;
    return false;
}

static bool stop_now(void *arg)
{
    (void)arg;
    return true;
}

static size_t n_ids_from(const struct tern_conversation *c, size_t first)
{
    struct tern_conversation *end = begin();
    for (size_t i = first; i < tern_conversation_n_turns(c); i++) {
        struct tern_turn turn;
        tern_conversation_get(c, i, &turn);
        assert_ok(tern_conversation_add(end, &turn, &e));
    }
    struct tern_ids ids = ids_of(end);
    const size_t n = ids.n;
    tern_ids_free(&ids);
    tern_conversation_free(end);
    return n;
}

/* The longest suffix that fills at most three quarters of the context, found with few renderings.
 */
static void a_conversation_is_shortened_by_bisection(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    struct tern_answer_params params = answer_params(8);
    struct tern_answer_result result;
    struct tern_error err;
    int n_calls = 0;
    for (int i = 0; i < 4001; i++) {
        char text[80];
        snprintf(text, sizeof text, "Message %d%.*s", i, i % 7 * 5, " of words of words of words of");
        say(c, i % 2 ? "assistant" : "user", text);
    }
    params.should_stop = stop_now;
    assert_int_equal(tern_conversation_answer(c, session, &params, &result, &err),
                     TERN_INTERRUPTED);
    assert_int_equal(tern_conversation_n_turns(c), 4001);
    assert_int_equal(tern_conversation_n_forgotten(c), 0);
    params.should_stop = count_calls;
    params.arg = &n_calls;
    assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
    assert_in_range(n_calls, 2, 20);
    const size_t first = tern_conversation_n_forgotten(c);
    assert_int_equal(result.n_forgotten, first);
    assert_int_equal(first % 2, 0);
    tern_conversation_truncate(c, 4001);
    assert_int_equal(tern_conversation_n_forgotten(c), first);
    assert_in_range(n_ids_from(c, first), 1, N_CTX * 3 / 4);
    assert_in_range(n_ids_from(c, first - 2), N_CTX * 3 / 4 + 1, N_CTX);

    /* Forgotten messages stay forgotten while there are messages after them. */
    tern_conversation_truncate(c, first);
    assert_int_equal(tern_conversation_n_turns(c), first);
    assert_int_equal(tern_conversation_n_forgotten(c), 0);
    tern_conversation_truncate(c, 9999);
    assert_int_equal(tern_conversation_n_turns(c), first);
    tern_conversation_free(c);
}

static void overrides_replace_variables(void **state)
{
    (void)state;
    static const char source[] = "{{ loud }}{{ mood }}{{ quiet }}";
    struct tern_chat_template *t;
    struct tern_conversation *c = begin();
    struct tern_error err;
    assert_ok(tern_chat_template_parse(&t, source, sizeof source - 1, &e));
    use_template(c, t);
    say(c, "user", "Hi");
    assert_ok(tern_conversation_set_variables(c, "{\"loud\": 1, \"mood\": \"grim\"}", 27, &e));
    assert_renders(c, "1grim");
    assert_ok(tern_conversation_set_overrides(c, "{\"loud\": 2, \"quiet\": 3}", 23, &e));
    assert_renders(c, "2grim3");
    assert_same_text(tern_conversation_variables(c), text_of("{\"loud\":1,\"mood\":\"grim\"}"));
    assert_int_equal(tern_conversation_set_overrides(c, "[1]", 3, &err), TERN_USAGE);
    assert_ok(tern_conversation_set_variables(c, NULL, 0, &e));
    assert_null(tern_conversation_variables(c).bytes);
    assert_renders(c, "23");
    assert_ok(tern_conversation_set_overrides(c, NULL, 0, &e));
    assert_renders(c, "");
    tern_conversation_free(c);
    tern_chat_template_free(t);
}

static void a_refused_system_message_changes_nothing(void **state)
{
    (void)state;
    static const char source[] = "{% if messages[0].role == 'system' %}"
                                 "{{ raise_exception('no system here') }}{% endif %}x";
    struct tern_chat_template *t;
    struct tern_conversation *c = begin();
    struct tern_error err;
    assert_ok(tern_conversation_set_system(c, SYSTEM, strlen(SYSTEM), &e));
    assert_ok(tern_chat_template_parse(&t, source, sizeof source - 1, &e));
    use_template(c, t);
    assert_int_equal(tern_conversation_set_system(c, "other", 5, &err), TERN_USAGE);
    assert_non_null(strstr(err.detail, "no system here"));
    assert_same_text(tern_conversation_system(c), text_of(SYSTEM));
    assert_ok(tern_conversation_set_system(c, NULL, 0, &e));
    assert_null(tern_conversation_system(c).bytes);
    tern_conversation_free(c);
    tern_chat_template_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_the_whole_conversation),
        cmocka_unit_test(templates_see_every_field),
        cmocka_unit_test(no_special_id_comes_from_a_message),
        cmocka_unit_test(going_on_is_as_if_there_had_been_no_break),
        cmocka_unit_test(continuing_without_memory_changes_nothing),
        cmocka_unit_test(another_answer_and_none),
        cmocka_unit_test(a_question_in_place_of_another),
        cmocka_unit_test(the_end_of_an_answer_may_look_like_a_tag),
        cmocka_unit_test(nothing_is_carried_over_a_cancel),
        cmocka_unit_test(a_long_conversation_continues),
        cmocka_unit_test(a_conversation_is_shortened_by_bisection),
        cmocka_unit_test(overrides_replace_variables),
        cmocka_unit_test(a_refused_system_message_changes_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

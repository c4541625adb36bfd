/* SPDX-License-Identifier: MIT
 *
 * Conversations through the public API, on the demo model: ids, answers, trimming, continuing, and
 * damaged files.
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
#include "base/rng.h"
#include "demo.h"
#include "failing_alloc.h"
#include "plat/plat.h"
#include "tern/conversation.h"
#include "tern/grammar.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_conversation.tern"
#define SAVED_PATH TERN_BUILD_DIR "/test_conversation.json"
#define N_CTX 256u
#define SYSTEM "Be kind."

static struct demo demo;
static struct tern_engine *engine;
static struct tern_model *model;
static struct tern_session *session;
static struct tern_sampler *greedy, *random_sampler;

static int setup(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_sampler_params sampling;
    struct tern_session_params params = {.n_ctx = N_CTX};
    if (!demo_open(&demo, MODEL_PATH, 1))
        return 1;
    engine = demo.engine;
    model = demo.model;
    tern_sampler_params_default(&sampling);
    if (tern_session_create(&session, engine, model, &params, &e) != TERN_OK ||
        tern_sampler_create(&random_sampler, &sampling, tern_model_config(model)->vocab, &e) !=
            TERN_OK)
        return 1;
    sampling = (struct tern_sampler_params){.top_p = 1.0f, .repeat_penalty = 1.0f};
    return tern_sampler_create(&greedy, &sampling, tern_model_config(model)->vocab, &e) != TERN_OK;
}

static int teardown(void **state)
{
    (void)state;
    tern_sampler_free(greedy);
    tern_sampler_free(random_sampler);
    tern_session_free(session);
    demo_close(&demo);
    tn_file_remove(SAVED_PATH);
    return 0;
}

static void use_template(struct tern_conversation *c, const struct tern_chat_template *t)
{
    struct tern_chat_params params;
    tern_model_chat_params(model, t, &params);
    tern_conversation_set_template(c, tern_model_tokenizer(model), t, &params);
}

static struct tern_conversation *begin(void)
{
    struct tern_conversation *c;
    const struct tern_chat_template *t;
    assert_ok(tern_conversation_create(&c, &e));
    assert_ok(tern_model_chat_template(&t, model, &e));
    use_template(c, t);
    return c;
}

static struct tern_text text_of(const char *text)
{
    return (struct tern_text){text, strlen(text)};
}

static void say(struct tern_conversation *c, const char *role, const char *text)
{
    struct tern_turn turn = {.role = text_of(role), .content = text_of(text)};
    assert_ok(tern_conversation_add(c, &turn, &e));
}

static struct tern_answer_params answer_params(uint32_t max_tokens)
{
    return (struct tern_answer_params){
        .generate = {.sampler = greedy, .max_tokens = max_tokens, .ignore_eos = true}, .seed = 1};
}

static struct tern_answer_result answer(struct tern_conversation *c, uint32_t max_tokens)
{
    struct tern_answer_params params = answer_params(max_tokens);
    struct tern_answer_result result;
    assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
    return result;
}

static struct tern_turn last_turn(const struct tern_conversation *c)
{
    struct tern_turn turn;
    tern_conversation_get(c, tern_conversation_n_turns(c) - 1, &turn);
    return turn;
}

static void assert_same_text(struct tern_text a, struct tern_text b)
{
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.bytes, b.bytes, a.n);
}

static void assert_same_ids(const struct tern_ids *a, const struct tern_ids *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->ids, b->ids, a->n * sizeof *a->ids);
}

static struct tern_ids ids_of(const struct tern_conversation *c)
{
    struct tern_ids ids = {0};
    assert_ok(tern_conversation_encode(c, &ids, &e));
    return ids;
}

/* "" expects no text. */
static void assert_ends_with(struct tern_text text, const char *tail)
{
    const size_t n = strlen(tail);
    if (n == 0 ? text.n > 0 : text.n < n || memcmp(text.bytes + text.n - n, tail, n) != 0)
        fail_msg("\"%.*s\" does not end with \"%s\"", (int)text.n, text.bytes, tail);
}

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
        assert_ok(tern_grammar_from_schema_between(&grammar, cases[i].before, "{\"const\":5}", 11,
                                                   cases[i].after, 0, &e));
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

/* ---- files ---- */

static struct tern_saved saved_with(uint64_t hash)
{
    return (struct tern_saved){"demo", hash, "{\"temp\": \"0.5\"}"};
}

static void a_loaded_conversation_continues_unchanged(void **state)
{
    (void)state;
    struct tern_conversation *c = begin(), *loaded = begin();
    struct tern_answer_params params = answer_params(20);
    struct tern_answer_result result;
    struct tern_saved saved = saved_with(tern_model_hash(model));
    char *settings;
    params.generate.sampler = random_sampler;
    tn_file_remove(SAVED_PATH);
    assert_ok(tern_conversation_set_system(c, SYSTEM, strlen(SYSTEM), &e));
    say(loaded, "user", "of another time");
    for (int i = 0; i < 3; i++) {
        say(c, "user", "Tell me \"more\"\t\x7F of \xE2\x82\xAC and \x01.");
        assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
        assert_ok(tern_conversation_save(c, SAVED_PATH, &saved, &e)); /* replaces the older one */
    }
    assert_ok(tern_conversation_load(loaded, SAVED_PATH, &saved, &settings, &e));
    assert_non_null(strstr(settings, "\"temp\":\"0.5\""));
    tern_text_free(settings);
    struct tern_ids a = ids_of(c), b = ids_of(loaded);
    assert_same_ids(&a, &b);
    tern_ids_free(&a);
    tern_ids_free(&b);
    say(c, "user", "And then?");
    say(loaded, "user", "And then?");
    assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
    assert_ok(tern_conversation_answer(loaded, session, &params, &result, &e));
    assert_same_text(last_turn(c).content, last_turn(loaded).content);
    assert_ok(tern_conversation_continue(loaded, session, &params, &result, &e));
    tern_conversation_free(c);
    tern_conversation_free(loaded);
}

/* Sets every member of the format, some of them with blanks. */
static void fill(struct tern_conversation *c)
{
    assert_ok(tern_conversation_set_system(c, "Be \"kind\"\t\x7F\xE2\x82\xAC\0.", 17, &e));
    for (int i = 0; i < 14; i++) {
        say(c, "user", "Tell me more about the fox and the goose.");
        answer(c, 20);
    }
    assert_in_range(tern_conversation_n_forgotten(c), 2, 26);
    struct tern_turn turn = {.role = text_of("user"),
                             .content = text_of("Hi \\ \"you\"\n\x01\xF0\x9F\x91\xA9"),
                             .name = text_of("Ada")};
    assert_ok(tern_conversation_add(c, &turn, &e));
    turn = (struct tern_turn){
        .role = text_of("assistant"),
        .reasoning = text_of("why"),
        .tool_calls = text_of("[ {\"function\": {\"name\": \"sum\", \"arguments\": {\"b\": 0.1,"
                              " \"a\": [1e3, -0.0, null, \"\\u0000\\u00e4\"]}}} ]")};
    assert_ok(tern_conversation_add(c, &turn, &e));
    turn = (struct tern_turn){
        .role = text_of("tool"), .content = text_of(""), .tool_call_id = text_of("id7")};
    assert_ok(tern_conversation_add(c, &turn, &e));
    assert_ok(tern_conversation_set_tools(c, "[ {\"name\": \"sum\"} ]", 19, &e));
    assert_ok(tern_conversation_set_variables(c, "{\"z\": 1, \"a\": {\"b\": [1.5]}}", 27, &e));
    assert_ok(tern_conversation_set_overrides(c, "{\"unsaved\": \"here\"}", 19, &e));
}

static void saving_loading_and_saving_gives_the_same_bytes(void **state)
{
    (void)state;
    struct tern_conversation *c = begin(), *loaded = begin();
    struct tern_saved saved = saved_with(tern_model_hash(model));
    char *bytes, *again, *settings;
    size_t n, n_again;
    tn_file_remove(SAVED_PATH);
    fill(c);
    assert_ok(tern_conversation_save(c, SAVED_PATH, &saved, &e));
    assert_ok(tn_file_read_all(&bytes, &n, SAVED_PATH, 1 << 20, &e));
    static const char *const members[] = {
        "system",  "tools", "variables",         "forgotten", "answers",    "messages",    "role",
        "content", "name",  "reasoning_content", "settings",  "tool_calls", "tool_call_id"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        assert_non_null(strstr(bytes, members[i]));
    assert_null(strstr(bytes, "unsaved"));
    assert_ok(tern_conversation_load(loaded, SAVED_PATH, &saved, &settings, &e));
    assert_string_equal(settings, "{\"temp\":\"0.5\"}");
    saved.settings = "{\"temp\": \"0.5\"}";
    assert_ok(tern_conversation_save(loaded, SAVED_PATH, &saved, &e));
    assert_ok(tn_file_read_all(&again, &n_again, SAVED_PATH, 1 << 20, &e));
    assert_int_equal(n_again, n);
    assert_memory_equal(again, bytes, n);
    tern_text_free(settings);
    tn_free(bytes);
    tn_free(again);
    tern_conversation_free(c);
    tern_conversation_free(loaded);
}

/* n nested arrays. */
static struct tern_text nested(char room[200], int n)
{
    memset(room, '[', (size_t)n);
    memset(room + n, ']', (size_t)n);
    return (struct tern_text){room, (size_t)n * 2};
}

/* Whatever can be set can be saved and loaded. */
static void values_that_a_file_cannot_store_are_refused(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    struct tern_saved saved = saved_with(tern_model_hash(model));
    struct tern_error err;
    char room[200];
    struct tern_turn turn = {.role = text_of("assistant"), .tool_calls = nested(room, 62)};
    tn_file_remove(SAVED_PATH);
    assert_int_equal(tern_conversation_add(c, &turn, &err), TERN_USAGE);
    assert_non_null(strstr(err.detail, "62 levels deep, a conversation can hold 61"));
    assert_int_equal(tern_conversation_n_turns(c), 0);
    turn.tool_calls = nested(room, 61);
    assert_ok(tern_conversation_add(c, &turn, &e));
    struct tern_text tools = nested(room, 64);
    assert_int_equal(tern_conversation_set_tools(c, tools.bytes, tools.n, &err), TERN_USAGE);
    tools = nested(room, 63);
    assert_ok(tern_conversation_set_tools(c, tools.bytes, tools.n, &e));
    assert_ok(tern_conversation_save(c, SAVED_PATH, &saved, &e));
    assert_ok(tern_conversation_load(c, SAVED_PATH, &saved, NULL, &e));
    assert_int_equal(tern_conversation_n_turns(c), 1);

    turn = (struct tern_turn){.role = text_of("user"), .content = text_of("a\xFF")};
    assert_int_equal(tern_conversation_add(c, &turn, &err), TERN_USAGE);
    assert_non_null(strstr(err.detail, "content is not UTF-8: byte 1 is 0xFF"));
    assert_int_equal(tern_conversation_set_system(c, "\xC3", 1, &err), TERN_USAGE);
    assert_int_equal(tern_conversation_n_turns(c), 1);
    tern_conversation_free(c);
}

static void put_file(const char *bytes, size_t n)
{
    FILE *f = fopen(SAVED_PATH, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void damage_is_refused_and_kept(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    struct tern_saved saved = saved_with(tern_model_hash(model));
    struct tern_error err;
    struct tn_rng rng;
    char *bytes, *settings, *again;
    size_t n, n_again;
    tn_rng_seed(&rng, 5);
    tn_file_remove(SAVED_PATH);
    say(c, "user", "one");
    say(c, "assistant", "two");
    assert_ok(tern_conversation_save(c, SAVED_PATH, &saved, &e));
    assert_ok(tn_file_read_all(&bytes, &n, SAVED_PATH, 1 << 20, &e));
    for (int i = 0; i < 1000; i++) {
        size_t bit = (size_t)(tn_rng_next(&rng) % (n * 8));
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        put_file(bytes, n);
        assert_int_equal(tern_conversation_load(c, SAVED_PATH, &saved, &settings, &err),
                         TERN_INPUT);
        assert_null(settings);
        assert_int_equal(tern_conversation_save(c, SAVED_PATH, &saved, &err), TERN_OUTPUT);
        assert_ok(tn_file_read_all(&again, &n_again, SAVED_PATH, 1 << 20, &e));
        assert_int_equal(n_again, n);
        assert_memory_equal(again, bytes, n);
        tn_free(again);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < n; cut++) {
        put_file(bytes, cut);
        assert_int_equal(tern_conversation_load(c, SAVED_PATH, &saved, NULL, &err), TERN_INPUT);
    }
    assert_int_equal(tern_conversation_n_turns(c), 2);
    put_file(bytes, n);
    saved.model_hash ^= 1;
    saved.model_name = "another";
    assert_int_equal(tern_conversation_load(c, SAVED_PATH, &saved, NULL, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "demo"));
    assert_non_null(strstr(err.detail, "another"));
    tn_free(bytes);
    tern_conversation_free(c);
}

/* ---- memory ---- */

static void short_memory_leaves_the_conversation_whole(void **state)
{
    (void)state;
    struct tern_conversation *c = begin();
    struct tern_answer_params params = answer_params(6);
    struct tern_answer_result result;
    struct tern_error err;
    struct tern_turn turn = {.role = text_of("user"), .content = text_of("Hello")};
    tern_status status;
    size_t n = 0;
    say(c, "user", "Hi");
    answer(c, 4);
    do {
        fail_alloc_after(n++);
        status = tern_conversation_add(c, &turn, &err);
        bool is_added = status == TERN_OK;
        if (is_added)
            status = tern_conversation_answer(c, session, &params, &result, &err);
        fail_alloc_stop();
        if (status == TERN_OK)
            break;
        assert_int_equal(status, TERN_MEMORY);
        assert_int_equal(tern_conversation_n_turns(c), is_added ? 3 : 2);
        if (is_added)
            assert_true(tern_conversation_undo(c));
    } while (n < 2000);
    assert_true(n > 5);
    assert_int_equal(status, TERN_OK);
    tern_conversation_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_the_whole_conversation),
        cmocka_unit_test(templates_see_every_field),
        cmocka_unit_test(no_special_id_comes_from_a_message),
        cmocka_unit_test(going_on_is_as_if_there_had_been_no_break),
        cmocka_unit_test(another_answer_and_none),
        cmocka_unit_test(a_question_in_place_of_another),
        cmocka_unit_test(the_end_of_an_answer_may_look_like_a_tag),
        cmocka_unit_test(nothing_is_carried_over_a_cancel),
        cmocka_unit_test(a_long_conversation_continues),
        cmocka_unit_test(a_conversation_is_shortened_by_bisection),
        cmocka_unit_test(overrides_replace_variables),
        cmocka_unit_test(a_refused_system_message_changes_nothing),
        cmocka_unit_test(a_loaded_conversation_continues_unchanged),
        cmocka_unit_test(saving_loading_and_saving_gives_the_same_bytes),
        cmocka_unit_test(values_that_a_file_cannot_store_are_refused),
        cmocka_unit_test(damage_is_refused_and_kept),
        cmocka_unit_test(short_memory_leaves_the_conversation_whole),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

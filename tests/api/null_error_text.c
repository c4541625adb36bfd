/* SPDX-License-Identifier: MIT
 *
 * The tests of test_null_error for functions of text: tokenizers, templates, grammars, tool calls,
 * reasoning and conversations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "null_error.h"
#include "plat/plat.h"
#include "tern/calls.h"
#include "tern/conversation.h"
#include "tern/grammar.h"

/* ---- text ---- */

static void call_text(void)
{
    static char run[4000]; /* one piece, for which the tokenizer allocates memory */
    const struct tern_tokenizer *t = tern_model_tokenizer(model);
    const struct tern_message message = {"user", 4, "hello", 5};
    const struct tern_chat_template *qwen3 = tern_chat_template_find("qwen3");
    const struct tern_chat_params params = {.add_generation_prompt = true};
    struct tern_ids ids = {0};
    unsigned char *map = NULL;
    char *text = NULL;
    size_t n;
    memset(run, 'a', sizeof run);
    struct tern_chat_template *own;
    const struct tern_chat_template *of_model;
    CALL(TERN_UNSUPPORTED, tern_chat_template_parse, &own, "{% x %}", 7);
    CALL(TERN_OK, tern_chat_template_parse, &own, "{{ x.y }}", 9);
    if (own) {
        CALL(TERN_USAGE, tern_chat_render_json, own, "[]", 2, &params, &text, &n, &map);
        CALL(TERN_USAGE, tern_chat_encode_json, t, own, "nonsense", 8, &params, &ids);
        CALL(TERN_USAGE, tern_chat_encode_json_within, t, own, "nonsense", 8, &params, 5, &n,
             &ids);
    }
    tern_chat_template_free(own);
    CALL(TERN_OK, tern_model_chat_template, &of_model, model);
    assert_non_null(of_model);
    CALL(TERN_OK, tern_tokenizer_encode, t, run, sizeof run, TERN_ENCODE_ADD_SPECIAL, &ids);
    CALL(TERN_OK, tern_tokenizer_add_special, t, &ids, 0, NULL);
    CALL(TERN_OK, tern_tokenizer_decode, t, ids.ids, ids.n, true, &text, &n);
    tern_text_free(text);
    text = NULL;
    CALL(TERN_USAGE, tern_tokenizer_decode, t, &(uint32_t){TERN_NO_ID}, 1, true, &text, &n);
    CALL(TERN_OK, tern_chat_encode, t, qwen3, &message, 1, &params, &ids);
    CALL(TERN_USAGE, tern_chat_encode, t, qwen3, NULL, 0, &params, &ids);
    tern_ids_free(&ids);
    CALL(TERN_USAGE, tern_chat_render, qwen3, NULL, 0, &params, &text, &n, &map);
    CALL(TERN_OK, tern_chat_render, qwen3, &message, 1, &params, &text, &n, &map);
    tern_text_free(text);
    tern_text_free(map);
}

static void call_grammar(void)
{
    static const char schema[] = "{\"enum\":[1,12]}";
    const struct tern_grammar_part part = {.before = "<", .after = ">", .schema = schema,
                                           .n_bytes = strlen(schema)};
    struct tern_grammar *g;
    size_t n_fit;
    bool is_whole;
    CALL(TERN_UNSUPPORTED, tern_grammar_from_schema, &g, "{\"not\":{}}", 10, 0);
    CALL(TERN_OK, tern_grammar_json_object, &g);
    tern_grammar_free(g);
    CALL(TERN_OK, tern_grammar_from_parts, &g, &part, 1, NULL, NULL);
    tern_grammar_free(g);
    CALL(TERN_OK, tern_grammar_from_gbnf, &g, "root ::= \"a\"", 12, NULL);
    tern_grammar_free(g);
    CALL(TERN_USAGE, tern_grammar_from_gbnf, &g, "root = 1", 8, NULL);
    CALL(TERN_OK, tern_grammar_from_regex, &g, "a+", NULL);
    tern_grammar_free(g);
    CALL(TERN_UNSUPPORTED, tern_grammar_from_regex, &g, "\\b", NULL);
    CALL(TERN_OK, tern_grammar_from_schema, &g, schema, strlen(schema), 0);
    if (g)
        CALL(TERN_OK, tern_grammar_match, g, "12", 2, &n_fit, &is_whole);
    tern_grammar_free(g);
}

static void call_calls(void)
{
    static const char request[] = "{\"messages\":[],\"tools\":[{}]}";
    static const char answer[] = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
    static const char template[] = "{% if tools %}<tool_call>{% endif %}";
    const struct tern_chat_params params = {.add_generation_prompt = true};
    struct tern_chat_template *t;
    enum tern_call_form form;
    struct tern_calls *calls;
    struct tern_call_tools *tools;
    CALL(TERN_OK, tern_chat_template_parse, &t, template, strlen(template));
    if (t)
        CALL(TERN_OK, tern_chat_call_form, &form, t, request, strlen(request), &params);
    tern_chat_template_free(t);
    CALL(TERN_OK, tern_call_tools_create, &tools, "[]", 2);
    tern_call_tools_free(tools);
    CALL(TERN_OK, tern_calls_create, &calls, TERN_CALLS_TAGGED, false);
    if (calls) {
        CALL(TERN_OK, tern_calls_push, calls, answer, strlen(answer));
        CALL(TERN_OK, tern_calls_end, calls);
    }
    tern_calls_free(calls);
}

static bool take_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    (void)arg, (void)part, (void)text, (void)n;
    return true;
}

static void call_thinking(void)
{
    static const char answer[] = "<think>a</think>b";
    static const char template[] = "{{ enable_thinking }}";
    const struct tern_chat_params params = {.add_generation_prompt = true};
    struct tern_chat_template *t;
    struct tern_chat_reasoning known;
    struct tern_thinking *thinking;
    const struct tern_ids none = {0};
    struct tern_ids closed = {0};
    const char *close;
    CALL(TERN_OK, tern_thinking_opened_by_ids, &close, tern_model_tokenizer(model), &none);
    CALL(TERN_OK, tern_thinking_close_ids, &closed, "</think>", tern_model_tokenizer(model));
    tern_ids_free(&closed);
    CALL(TERN_OK, tern_chat_template_parse, &t, template, strlen(template));
    if (t)
        CALL(TERN_OK, tern_chat_reasoning, &known, t, &params);
    tern_chat_template_free(t);
    CALL(TERN_OK, tern_thinking_create, &thinking, take_part, NULL);
    if (thinking) {
        CALL(TERN_OK, tern_thinking_push, thinking, answer, strlen(answer));
        CALL(TERN_OK, tern_thinking_end, thinking);
    }
    tern_thinking_free(thinking);
}

/* ---- conversations ---- */

static struct tern_sampler *sampler_of_talk;

static void talk(void)
{
    const struct tern_saved saved = {"demo", 1, NULL};
    const struct tern_turn question = {.role = {"user", 4}, .content = {"Hi", 2}};
    const struct tern_chat_template *t = tern_chat_template_find("chatml");
    const struct tern_chat_params chat = {.add_generation_prompt = true};
    const struct tern_answer_params params = {
        .generate = {.sampler = sampler_of_talk, .max_tokens = 2}};
    struct tern_answer_result result;
    struct tern_conversation *c;
    struct tern_ids ids = {0};
    tn_file_remove(OUT);
    CALL(TERN_OK, tern_conversation_create, &c);
    if (!c)
        return;
    CALL(TERN_USAGE, tern_conversation_encode, c, &ids);
    tern_conversation_set_template(c, tern_model_tokenizer(model), t, &chat);
    CALL(TERN_OK, tern_conversation_set_system, c, "Be kind.", 8);
    CALL(TERN_USAGE, tern_conversation_set_tools, c, "{}", 2);
    CALL(TERN_USAGE, tern_conversation_set_variables, c, "[]", 2);
    CALL(TERN_USAGE, tern_conversation_set_overrides, c, "[]", 2);
    CALL(TERN_USAGE, tern_conversation_regenerate, c, session, &params, &result);
    CALL(TERN_USAGE, tern_conversation_replace, c, session, &params, &result);
    CALL(TERN_USAGE, tern_conversation_continue, c, session, &params, &result);
    CALL(TERN_OK, tern_conversation_add, c, &question);
    CALL(TERN_OK, tern_conversation_encode, c, &ids);
    CALL(TERN_OK, tern_conversation_save, c, OUT, &saved);
    CALL(TERN_OK, tern_conversation_save, c, OUT, &saved);
    if (tn_path_kind(OUT) == TN_PATH_FILE)
        CALL(TERN_OK, tern_conversation_load, c, OUT, &saved, NULL);
    CALL(TERN_OUTPUT, tern_conversation_save, c, DEMO, &saved);
    CALL(TERN_INPUT, tern_conversation_load, c, DEMO, &saved, NULL);
    if (tern_conversation_n_turns(c) == 1)
        CALL(TERN_OK, tern_conversation_answer, c, session, &params, &result);
    tn_file_remove(OUT);
    if (tern_session_n_past(session) > 0)
        CALL(TERN_OK, tern_session_save_cache, session, OUT);
    if (tn_path_kind(OUT) == TN_PATH_FILE)
        CALL(TERN_OK, tern_session_load_cache, session, OUT);
    tn_file_remove(OUT);
    CALL(TERN_INPUT, tern_session_load_cache, session, OUT);
    CALL(TERN_USAGE, tern_session_save_cache, session, OUT);
    tern_ids_free(&ids);
    tern_conversation_free(c);
}

void test_conversation(void **state)
{
    (void)state;
    const struct tern_sampler_params greedy = {.top_p = 1.0f, .repeat_penalty = 1.0f};
    assert_int_equal(tern_sampler_create(&sampler_of_talk, &greedy, vocab, NULL), TERN_OK);
    with_short_memory(talk, 1);
    tern_sampler_free(sampler_of_talk);
}

void test_text(void **state)
{
    (void)state;
    with_short_memory(call_text, 1);
}

void test_grammar(void **state)
{
    (void)state;
    with_short_memory(call_grammar, 1);
    with_short_memory(call_calls, 1);
    with_short_memory(call_thinking, 1);
}

/* SPDX-License-Identifier: MIT
 *
 * Saved conversations: the same ids after loading, the same bytes after saving again, damage that
 * is refused, and memory that runs out.
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
#include "failing_alloc.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_conversation_files.tern"
#define SAVED_PATH TERN_BUILD_DIR "/test_conversation_files.json"
#include "conversation_fixture.h"

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
        cmocka_unit_test(a_loaded_conversation_continues_unchanged),
        cmocka_unit_test(saving_loading_and_saving_gives_the_same_bytes),
        cmocka_unit_test(values_that_a_file_cannot_store_are_refused),
        cmocka_unit_test(damage_is_refused_and_kept),
        cmocka_unit_test(short_memory_leaves_the_conversation_whole),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

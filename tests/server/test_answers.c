/* SPDX-License-Identifier: MIT
 *
 * Answers that are lists of reasoning, texts and calls keep the order in which they were written,
 * in complete answers and in streams.  Errors after the head keep the format of their API, and
 * waiting streams send heartbeats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "server/conn_limits.h"
#include "server/list_stream.h"
#include "server/ollama.h"
#include "server/waiting.h"

/* ---- lists ---- */

/* Entries of a stream as "(reasoning|", "text|" and "name arguments|", concatenated. */
static struct tn_buf streamed;

static void open(struct tn_task *task, struct tn_choice *choice)
{
    (void)task;
    if (choice->open == TN_OPEN_REASONING)
        tn_buf_append_text(&streamed, "(");
    if (choice->open == TN_OPEN_CALL)
        tn_buf_printf(&streamed, "%s ",
                      tern_calls_get(choice->calls, choice->n_calls_sent - 1).name);
}

static void piece(struct tn_task *task, struct tn_choice *choice, const char *text, size_t n)
{
    (void)task, (void)choice;
    assert_true(n > 0);
    tn_buf_append(&streamed, text, n);
}

static void close(struct tn_task *task, struct tn_choice *choice)
{
    (void)task, (void)choice;
    tn_buf_append_text(&streamed, "|");
}

static void take_text(struct tn_choice *choice)
{
    size_t n;
    const char *text = tern_calls_take_text(choice->calls, &n);
    tn_buf_append(&choice->text, text, n);
}

/* Reads an answer that arrives `cut` bytes at a time after its reasoning.  Returns its list of
 * entries; `streamed` receives those of the stream. */
static struct tn_buf read_answer(const char *reasoning, const char *text, size_t cut,
                                  bool is_early)
{
    static const struct tn_list_stream stream = {.open = open, .piece = piece, .close = close};
    struct tn_choice choice = {0};
    struct tn_buf whole = {0};
    const size_t n = strlen(text), n_reasoning = strlen(reasoning);
    assert_int_equal(tern_calls_create(&choice.calls, TERN_CALLS_TAGGED, is_early, NULL), TERN_OK);
    tn_buf_clear(&streamed);
    for (size_t i = 0; i < n_reasoning; i += cut) {
        tn_buf_append(&choice.reasoning, reasoning + i, TN_MIN(cut, n_reasoning - i));
        tn_list_more(&stream, NULL, &choice);
    }
    for (size_t i = 0; i < n; i += cut) {
        assert_int_equal(tern_calls_push(choice.calls, text + i, TN_MIN(cut, n - i), NULL),
                         TERN_OK);
        take_text(&choice);
        tn_list_more(&stream, NULL, &choice);
    }
    assert_int_equal(tern_calls_end(choice.calls, NULL), TERN_OK);
    take_text(&choice);
    tn_list_more(&stream, NULL, &choice);
    tn_list_end(&stream, NULL, &choice);
    uint32_t n_entries = 0;
    for (struct tn_list_entry e = {0}; tn_list_next(&choice, &e); n_entries++) {
        assert_int_equal(e.i, n_entries);
        tn_buf_append_text(&whole, e.kind == TN_OPEN_REASONING ? "(" : "");
        if (e.kind != TN_OPEN_CALL)
            tn_buf_append(&whole, e.text, e.n);
        else
            tn_buf_printf(&whole, "%s %s", tern_calls_get(choice.calls, e.i_call).name,
                          tern_calls_get(choice.calls, e.i_call).arguments);
        tn_buf_append_text(&whole, "|");
    }
    assert_int_equal(n_entries, choice.i_open);
    tern_calls_free(choice.calls);
    tn_buf_fini(&choice.text);
    tn_buf_fini(&choice.reasoning);
    return whole;
}

#define CALL(name) "<tool_call>{\"name\":\"" name "\",\"arguments\":{\"a\":1}}</tool_call>"

static void entries_keep_their_order(void **state)
{
    static const char *const cases[][3] = {
        {"", "", "|"},
        {"", "Hello.", "Hello.|"},
        {"", CALL("f"), "f {\"a\":1}|"},
        {"", CALL("f") " Done.", "f {\"a\":1}|Done.|"},
        {"", "I look." CALL("f") "\n" CALL("g"), "I look.|f {\"a\":1}|g {\"a\":1}|"},
        {"Hm.", "", "(Hm.|"},
        {"Hm.", "Hello.", "(Hm.|Hello.|"},
        {"Hm.", CALL("f") " Done.", "(Hm.|f {\"a\":1}|Done.|"},
        {"Hm.", "I look." CALL("f"), "(Hm.|I look.|f {\"a\":1}|"},
        {"", "One" CALL("f") " two" CALL("g") " three", "One|f {\"a\":1}| two|g {\"a\":1}| three|"},
    };
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++)
        for (size_t cut = 1; cut < 100; cut++)
            for (int is_early = 0; is_early < 2; is_early++) {
                struct tn_buf whole = read_answer(cases[i][0], cases[i][1], cut, is_early);
                assert_string_equal(tn_buf_text(&whole), cases[i][2]);
                assert_string_equal(tn_buf_text(&streamed), cases[i][2]);
                tn_buf_fini(&whole);
            }
    tn_buf_fini(&streamed);
}

/* ---- errors ---- */

static void check_late_error(tn_error_fn *error, const char *expected)
{
    const struct tn_conn_host host = {0};
    struct tn_conn conn = {.state = TN_CONN_BUSY, .host = &host};
    const struct tn_waiting waiting = {.has_head = true};
    struct tn_refusal refusal;
    tn_refuse(&refusal, 503, NULL, "no memory for the answer");
    tn_waiting_refuse(&waiting, &conn, &refusal, error);
    assert_string_equal(tn_buf_text(&conn.out), expected);
    assert_true(conn.is_answered);
    tn_buf_fini(&conn.out);
}

static void late_errors_have_their_shape(void **state)
{
    (void)state;
    check_late_error(tn_ollama_error, "{\"error\":\"no memory for the answer\"}");
    check_late_error(tn_anthropic_error, "{\"type\":\"error\",\"error\":{\"type\":"
                                         "\"overloaded_error\",\"message\":"
                                         "\"no memory for the answer\"}}");
    check_late_error(tn_openai_error,
                     "{\"error\":{\"message\":\"no memory for the answer\",\"type\":"
                     "\"server_error\",\"param\":null,\"code\":null}}");
}

/* ---- heartbeats ---- */

static void check_beat(bool is_chat, const char *end)
{
    static const char begin[] = "{\"model\":\"m\",\"created_at\":\"";
    static struct tn_task task;
    const struct tn_conn_host host = {0};
    const struct tn_server_model model = {.id = "m"};
    struct tn_conn conn = {.state = TN_CONN_BUSY, .host = &host};
    task = (struct tn_task){.conn = &conn, .model = &model, .format = &tn_ollama_format,
                            .gen.streams = true, .is_chat = is_chat};
    tn_task_tick(&task, 2 * TN_HEARTBEAT_NS); /* nothing is in progress */
    task.n_choices = 1;
    tn_task_tick(&task, TN_HEARTBEAT_NS);
    assert_int_equal(conn.out.n_bytes, 0);
    tn_task_tick(&task, TN_HEARTBEAT_NS + 1);
    const char *line = tn_buf_text(&conn.out);
    assert_memory_equal(line, begin, sizeof begin - 1);
    assert_non_null(strstr(line, end));
    assert_string_equal(strstr(line, end), end);
    tn_task_tick(&task, task.waiting.written_ns + 1);
    assert_string_equal(strstr(tn_buf_text(&conn.out), end), end);
    tn_buf_fini(&conn.out);
}

static void streams_of_lines_send_heartbeats(void **state)
{
    (void)state;
    check_beat(true, "\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},"
                     "\"done\":false}\n");
    check_beat(false, "\",\"response\":\"\",\"done\":false}\n");
}

/* A client that shut down its side may be gone: it is probed sooner than others. */
static void clients_that_may_be_gone_are_probed(void **state)
{
    const struct tn_conn_host host = {0};
    const uint64_t began_ns = 1000ull * TN_SECOND_NS;
    (void)state;
    for (int has_ended = 0; has_ended < 2; has_ended++) {
        struct tn_conn conn = {.state = TN_CONN_BUSY, .host = &host, .has_ended = has_ended,
                               .ended_ns = began_ns};
        struct tn_waiting waiting = {.request_ns = began_ns, .written_ns = began_ns};
        tn_waiting_tick(&waiting, &conn, began_ns + TN_CONN_PROBE_NS);
        assert_int_equal(conn.out.n_bytes, 0);
        tn_waiting_tick(&waiting, &conn, began_ns + TN_HEARTBEAT_NS);
        assert_int_equal(conn.out.n_bytes > 0, has_ended);
        tn_buf_fini(&conn.out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_keep_their_order),
        cmocka_unit_test(late_errors_have_their_shape),
        cmocka_unit_test(streams_of_lines_send_heartbeats),
        cmocka_unit_test(clients_that_may_be_gone_are_probed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

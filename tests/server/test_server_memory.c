/* SPDX-License-Identifier: MIT
 *
 * Requests for which the n-th allocation fails, for every n: the client gets an error, a complete
 * answer, or one that is recognisably truncated; the next request succeeds.  Sanitizers find leaks.
 *
 * Only tern's allocations fail, not those of jansson: its scanner may read past its buffer when
 * that cannot grow (base/json_load.c prevents requests from growing it).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "api/demo.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "plat/plat.h"
#include "server/serve.h"
#include "tern/chat.h"

#define NEVER INT64_MAX
#define PATIENCE_S 120

/* ---- the failing allocation ---- */

static _Atomic int64_t n_until_failure = NEVER;
static _Atomic bool is_armed;

static int allow(void *arg, size_t n_bytes)
{
    (void)arg;
    (void)n_bytes;
    return !atomic_load(&is_armed) || atomic_fetch_sub(&n_until_failure, 1) != 1;
}

/* ---- the server ---- */

static struct {
    struct demo demo;
    struct tern_scheduler *scheduler;
    struct tn_server_model model;
    struct tn_server *server;
    struct tn_thread *thread;
    tern_status status;
    _Atomic bool must_stop;
} t;

static bool should_stop(void *arg)
{
    (void)arg;
    return atomic_load(&t.must_stop);
}

static void take_line(void *arg, const char *line, size_t n)
{
    (void)arg;
    (void)line;
    (void)n;
}

static void serve(void *arg)
{
    struct tern_error err;
    (void)arg;
    t.status = tn_server_run(t.server, &err);
}

static int start(void **state)
{
    struct tern_error err;
    struct tern_scheduler_params params;
    (void)state;
    json_set_alloc_funcs(tn_alloc, tn_free);
    if (!demo_open(&t.demo, "test_server_memory.tern", 1))
        return -1;
    tern_scheduler_params_default(&params, t.demo.model);
    params.n_sequences = 2;
    params.n_queue = 4;
    params.n_ctx = 256;
    assert_ok(tern_scheduler_create(&t.scheduler, t.demo.engine, t.demo.model, &params, &e));
    t.model = (struct tn_server_model){
        .id = "demo", .model = t.demo.model, .scheduler = t.scheduler, .n_sequences = 2,
        .n_queue = 4, .n_ctx = 256, .kv = params.kv, .default_new_tokens = 8,
        .cap_new_tokens = 64};
    (void)tern_model_chat_template(&t.model.chat, t.demo.model, NULL);
    const struct tn_server_config config = {
        .models = &t.model, .n_models = 1, .host = "127.0.0.1", .has_page = true,
        .request_bytes = (size_t)32 << 20,
        .should_stop = should_stop, .log = take_line};
    if (tn_server_open(&t.server, &config, &err) != TERN_OK) {
        fprintf(stderr, "%s\n", err.detail);
        return -1;
    }
    tn_alloc_set_hook(allow, NULL);
    t.thread = tn_thread_start(serve, NULL);
    return t.thread ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    atomic_store(&t.must_stop, true);
    tn_thread_join(t.thread);
    tn_alloc_set_hook(NULL, NULL);
    tn_server_close(t.server);
    tern_scheduler_free(t.scheduler);
    demo_close(&t.demo);
    return t.status == TERN_OK ? 0 : -1;
}

/* ---- the client, whose memory never fails ---- */

static char answer[1 << 20];

/* Sends a request and reads until the server closes. */
static const char *ask(const char *request, size_t n_request)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(tn_server_port(t.server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t n = 0;
    ssize_t n_now;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)(void *)&address, sizeof address), 0);
    const uint64_t began_ns = tn_now_ns();
    for (size_t i = 0; i < n_request && (n_now = send(fd, request + i, n_request - i,
                                                      MSG_NOSIGNAL)) > 0; i += (size_t)n_now)
        ;
    do { /* select with a timeout is interrupted when the process is stopped and continued */
        n_now = recv(fd, answer + n, sizeof answer - 1 - n, 0);
        n += n_now > 0 ? (size_t)n_now : 0;
    } while (n_now > 0 || (n_now < 0 && errno == EINTR));
    close(fd);
    assert_true(tn_seconds_since(began_ns) < PATIENCE_S);
    answer[n] = '\0';
    return answer;
}

static struct tn_buf make(const char *method_and_path, const char *fields, const char *body)
{
    struct tn_buf request = {0};
    tn_buf_printf(&request, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s",
                  method_and_path, fields);
    if (body)
        tn_buf_printf(&request, "Content-Length: %zu\r\n", strlen(body));
    tn_buf_printf(&request, "\r\n%s", body ? body : "");
    assert_false(request.failed);
    return request;
}

/* ---- checking answers ---- */

static int status_of(const char *a)
{
    return strncmp(a, "HTTP/1.1 ", 9) == 0 ? atoi(a + 9) : 0;
}

static const char *body_of(const char *a)
{
    const char *end = strstr(a, "\r\n\r\n");
    return end ? end + 4 : "";
}

static bool is_whole(const char *a)
{
    const char *length = strstr(a, "Content-Length: ");
    const size_t n = strlen(a);
    if (strstr(a, "Transfer-Encoding: chunked"))
        return n > 5 && strcmp(a + n - 5, "0\r\n\r\n") == 0;
    return length && strlen(body_of(a)) == (size_t)atoi(length + 16);
}

/* Removes times, ids and lengths: digits, and anything that looks hexadecimal. */
static void normalise(struct tn_buf *out, const char *body)
{
    tn_buf_clear(out);
    for (const char *c = body; *c; c++)
        tn_buf_append(out, c, !strchr("0123456789abcdef.-+", *c));
    (void)tn_buf_text(out);
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Errors have the format of the path's API, or OpenAI's if there was no memory to parse the path.
 */
static bool has_shape(const char *method_and_path, const char *body)
{
    const char *path = strchr(method_and_path, '/');
    const bool has_path = !strstr(body, "all connections are in use") &&
                          !strstr(body, "no memory for the request: other");
    if (has_path && begins_with(path, "/api/"))
        return begins_with(body, "{\"error\":\"");
    if (has_path && begins_with(path, "/v1/messages"))
        return begins_with(body, "{\"type\":\"error\",\"error\":{\"type\":\"");
    return begins_with(body, "{\"error\":{\"message\":\"") && strstr(body, "\"code\":");
}

static void wait_for_rest(void)
{
    const uint64_t began_ns = tn_now_ns();
    for (;;) {
        static const char metrics[] =
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        const char *a = ask(metrics, sizeof metrics - 1);
        if (strstr(a, "tern_jobs{model=\"demo\"} 0\n") &&
            strstr(a, "\ntern_request_memory_bytes 0\n"))
            return;
        if (tn_seconds_since(began_ns) > PATIENCE_S)
            fail_msg("requests are still held:\n%s", a);
        usleep(1000);
    }
}

/* Fails every allocation of one request in turn; each time the same request succeeds afterwards. */
static void sweep(const char *name, struct tn_buf request, int64_t step)
{
    struct tn_buf expected = {0}, got = {0};
    uint32_t n_refused = 0, n_cut = 0, n_whole = 0;
    const char *a = ask(request.data, request.n_bytes);
    const int status = status_of(a);
    normalise(&expected, body_of(a));
    if (!is_whole(a) || status >= 500)
        fail_msg("%s: %.300s", name, a);
    wait_for_rest();
    for (int64_t k = 1;; k += step) {
        atomic_store(&n_until_failure, k);
        atomic_store(&is_armed, true);
        a = ask(request.data, request.n_bytes);
        atomic_store(&is_armed, false);
        const bool is_error = status_of(a) == 500 || status_of(a) == 503;
        normalise(&got, body_of(a));
        if (is_error)
            n_refused++;
        else if (status_of(a) != status && status_of(a) != 0)
            fail_msg("%s: allocation %lld: %.2000s", name, (long long)k, a);
        else if (!is_whole(a) || strstr(body_of(a), "\"error\":"))
            n_cut++;
        else if (status_of(a) == status && strcmp(got.data, expected.data) == 0)
            n_whole++;
        else
            fail_msg("%s: allocation %lld: %.2000s", name, (long long)k, a);
        if (is_error && !(is_whole(a) && has_shape(name, body_of(a))))
            fail_msg("%s: allocation %lld: %.2000s", name, (long long)k, a);
        wait_for_rest();
        if (atomic_load(&n_until_failure) > 0)
            break;
    }
    a = ask(request.data, request.n_bytes);
    normalise(&got, body_of(a));
    assert_int_equal(status_of(a), status);
    assert_string_equal(got.data, expected.data);
    printf("%s: %u refused, %u cut, %u whole\n", name, n_refused, n_cut, n_whole);
    assert_true(n_refused + n_cut > 0);
    tn_buf_fini(&expected);
    tn_buf_fini(&got);
    tn_buf_fini(&request);
}

/* ---- requests ---- */

/* More tokens than the context of 256 has: without its text, the message would get an answer. */
#define TEN(text) text text text text text text text text text text
#define TOO_LONG TEN(TEN("Once upon a "))

static const struct {
    const char *path, *fields, *body;
} requests[] = {
    {"GET /health", "", NULL},
    {"GET /v1/models", "", NULL},
    {"GET /props", "", NULL},
    {"GET /slots", "", NULL},
    {"GET /nothing/here", "", NULL},
    {"GET /api/tags", "", NULL},
    {"GET /", "Accept: text/html\r\n", NULL},
    {"POST /v1/completions", "",
     "{\"prompt\":\"Once upon a time\",\"max_tokens\":3,\"temperature\":0,\"stop\":[\"zzz\"],"
     "\"logprobs\":2,\"echo\":true,\"logit_bias\":{\"5\":1}}"},
    {"POST /v1/completions", "",
     "{\"prompt\":\"Once upon\",\"max_tokens\":3,\"temperature\":0,\"stream\":true,\"echo\":true,"
     "\"logprobs\":1,\"stream_options\":{\"include_usage\":true}}"},
    {"POST /v1/completions", "",
     "{\"prompt\":[\"Once\",\"A fox\"],\"max_tokens\":3,\"seed\":1,\"n\":2}"},
    {"POST /v1/chat/completions", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}]}],"
     "\"max_tokens\":3,\"temperature\":0,\"stream\":true,\"logprobs\":true,\"top_logprobs\":1}"},
    {"POST /v1/chat/completions", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"" TOO_LONG
     "\"}]}],\"max_tokens\":3}"},
    {"POST /v1/chat/completions", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"max_tokens\":4,"
     "\"temperature\":0,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
     "{\"name\":\"x\",\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"}"
     "},\"required\":[\"a\"],\"additionalProperties\":false}}}}"},
    {"POST /v1/chat/completions", "",
     "{\"messages\":[{\"role\":\"developer\",\"content\":\"Be brief.\"},{\"role\":\"user\","
     "\"content\":\"Hello\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"type\":"
     "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},"
     "{\"role\":\"user\",\"content\":\"Go on\"}],\"max_tokens\":3,\"temperature\":0}"},
    {"POST /v1/chat/completions", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\","
     "\"reasoning\":\"Well\"},{\"role\":\"user\",\"content\":\"Go on\"}],\"max_tokens\":3,"
     "\"temperature\":0,\"reasoning_effort\":\"low\"}"},
    {"POST /api/chat", "",
     "{\"model\":\"demo\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],"
     "\"options\":{\"num_predict\":3,\"temperature\":0}}"},
    {"POST /api/generate", "",
     "{\"model\":\"demo\",\"prompt\":\"Once\",\"raw\":true,\"stream\":false,"
     "\"options\":{\"num_predict\":3,\"temperature\":0}}"},
    {"POST /v1/messages", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"max_tokens\":3,"
     "\"temperature\":0,\"stream\":true}"},
    {"POST /v1/messages", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"max_tokens\":3,"
     "\"temperature\":0}"},
    {"POST /v1/messages", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\","
     "\"content\":[{\"type\":\"thinking\",\"thinking\":\"Well\"},{\"type\":\"text\",\"text\":"
     "\"Yes?\"}]},{\"role\":\"user\",\"content\":\"Go on\"}],\"max_tokens\":3,"
     "\"temperature\":0,\"thinking\":{\"type\":\"adaptive\"}}"},
    {"POST /v1/messages/count_tokens", "",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}"},
    {"POST /v1/messages", "", "{}"},
    {"POST /v1/responses", "",
     "{\"input\":\"Hello\",\"max_output_tokens\":3,\"temperature\":0,\"stream\":true}"},
    {"POST /v1/responses", "",
     "{\"input\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"instructions\":\"Be brief.\","
     "\"max_output_tokens\":3,\"temperature\":0,\"metadata\":{\"a\":\"b\"}}"},
    {"POST /v1/responses", "",
     "{\"input\":[{\"role\":\"user\",\"content\":\"Hello\"},{\"type\":\"reasoning\",\"content\":"
     "[{\"type\":\"reasoning_text\",\"text\":\"Well\"}]},{\"role\":\"assistant\",\"content\":"
     "\"Yes?\"},{\"role\":\"user\",\"content\":\"Go on\"}],\"max_output_tokens\":3,"
     "\"temperature\":0,\"reasoning\":{\"effort\":\"none\"}}"},
    {"POST /api/show", "", "{\"model\":\"demo\"}"},
    {"POST /tokenize", "", "{\"content\":\"Once upon a time\",\"with_pieces\":true}"},
    {"POST /detokenize", "", "{\"tokens\":[5,6,7]}"},
    {"POST /completion", "", "{\"prompt\":\"Once\",\"n_predict\":3,\"temperature\":0}"},
    {"POST /v1/completions", "", "{\"prompt\":"},
    {"POST /v1/completions", "Origin: null\r\n", "{}"},
};

static void test_small_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        sweep(requests[i].path, make(requests[i].path, requests[i].fields, requests[i].body), 1);
}

/* Uses the parser thread, and pages for the body. */
static void test_a_large_body(void **state)
{
    static char body[100000];
    (void)state;
    size_t n = (size_t)snprintf(body, sizeof body, "%s",
                                "{\"prompt\":\"Once\",\"max_tokens\":2,\"temperature\":0,\"x\":\"");
    memset(body + n, 'x', 90000);
    snprintf(body + n + 90000, sizeof body - n - 90000, "\",\"y\":[1,{\"z\":2}]}");
    sweep("POST /v1/completions with a large body", make("POST /v1/completions", "", body), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_requests),
        cmocka_unit_test(test_a_large_body),
    };
    return cmocka_run_group_tests(tests, start, stop);
}

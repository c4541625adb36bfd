/* SPDX-License-Identifier: MIT
 *
 * The parser of HTTP requests, and the guard that precedes the routes: every request of the tables
 * is fed whole, split in two at every offset, and byte by byte, always with the same result.
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
#include "server/guard.h"
#include "server/http.h"

#define HOST "Host: localhost\r\n"

/* Feeds two pieces, [0, cut) and [cut, n).  Returns the number of consumed bytes. */
static size_t feed(struct tn_http_request *r, const char *bytes, size_t n, size_t cut)
{
    size_t i = 0;
    while (i < n && r->state != TN_HTTP_FAILED && r->state != TN_HTTP_DONE) {
        size_t end = i < cut ? cut : n;
        i += tn_http_feed(r, bytes + i, end - i);
        if (r->state == TN_HTTP_HEAD_DONE)
            tn_http_continue(r);
    }
    return i;
}

static size_t feed_bytes(struct tn_http_request *r, const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && r->state != TN_HTTP_FAILED && r->state != TN_HTTP_DONE) {
        i += tn_http_feed(r, bytes + i, 1);
        if (r->state == TN_HTTP_HEAD_DONE)
            tn_http_continue(r);
    }
    return i;
}

/* The status of a request: 200 if complete, 100 if incomplete. */
static int status_of(const struct tn_http_request *r)
{
    if (r->state == TN_HTTP_FAILED)
        return r->status;
    return r->state == TN_HTTP_DONE ? 200 : 100;
}

static void expect(const char *bytes, size_t n, int status, const char *body)
{
    for (size_t cut = 0; cut <= n + 1; cut++) {
        struct tn_http_request r = {0};
        size_t n_taken = cut > n ? feed_bytes(&r, bytes, n) : feed(&r, bytes, n, cut);
        if (status_of(&r) != status)
            fail_msg("\"%.80s\" cut at %zu: status %d (%s), not %d", bytes, cut, status_of(&r),
                     r.why ? r.why : "", status);
        if (body) {
            assert_int_equal(r.body.n, strlen(body));
            assert_memory_equal(r.body.data, body, strlen(body));
            assert_int_equal(n_taken, n);
        }
        tn_http_fini(&r);
        if (n > 2000 && cut > 4 && cut < n - 4)
            cut += 997;
    }
}

static void whole_requests(void **state)
{
    static const struct {
        const char *bytes, *body;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", ""},
        {"\r\nGET / HTTP/1.1\r\n" HOST "\r\n", ""},
        {"\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", ""},
        {"GET http://localhost:8080/a?b HTTP/1.1\r\n" HOST "\r\n", ""},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", ""},
        {"GET / HTTP/1.0\r\n" HOST "\r\n", ""},
        {"GET / HTTP/1.0\r\n\r\n", ""},
        {"POST / HTTP/1.1\r\n" HOST "Content-Encoding: Identity\r\nContent-Length: 1\r\n\r\na",
         "a"},
        {"GET / HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\n\r\n", ""},
        {"POST / HTTP/1.1\r\nhOsT:localhost\r\ncontent-length:\t3 \r\n\r\nabc", "abc"},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", ""},
        {"POST / HTTP/1.1\r\n" HOST "Content-Length: 003\r\n\r\nabc", "abc"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
         "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n\r\n", "abc0123456789"},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
         "00001\r\na\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", "a"},
        {"POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\na", "a"},
        {"GET / HTTP/1.1\r\n" HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
         "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", ""},
        {"GET / HTTP/1.1\r\n" HOST "X: \xC3\xA4\r\n\r\n", ""},
    };
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++)
        expect(cases[i].bytes, strlen(cases[i].bytes), 200, cases[i].body);
}

static void wrong_requests(void **state)
{
    static const struct {
        int status;
        const char *bytes;
    } cases[] = {
        /* line endings */
        {400, "GET / HTTP/1.1\nHost: localhost\n\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\nC: d\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\rC: d\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\r\n\r\n"},
        {400, "\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: \x01\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: \x7F\r\n\r\n"},
        /* the request line */
        {400, "GET /\r\n" HOST "\r\n"},
        {400, "GET\r\n" HOST "\r\n"},
        {400, "GET  / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1 \r\n" HOST "\r\n"},
        {400, "GET /a b HTTP/1.1\r\n" HOST "\r\n"},
        {400, " GET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "G\"T / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET * HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET https://localhost/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "CONNECT localhost:80 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /#a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\xC3\xA4 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /%00 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /%4 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /%zz HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / http/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/11\r\n" HOST "\r\n"},
        {505, "GET / HTTP/2.0\r\n" HOST "\r\n"},
        {505, "GET / HTTP/1.2\r\n" HOST "\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        /* fields */
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A\x80: b\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\n" HOST "Expect: more\r\nContent-Length: 1\r\n\r\na"},
        /* body length */
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\na"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 4194305\r\n\r\na"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1152921504606846976\r\n\r\na"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999999\r\n\r\na"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n\r\na"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n"
              "Transfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
        {400, "GET / HTTP/1.0\r\n" HOST HOST "\r\n"},
        {415, "POST / HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"},
        {415, "POST / HTTP/1.1\r\n" HOST "Content-Encoding: zstd\r\n"
              "Transfer-Encoding: chunked\r\n\r\n"},
        {415, "POST / HTTP/1.1\r\n" HOST "Content-Encoding: identity\r\n"
              "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0C" "chunked\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        int status = strchr(cases[i].bytes, '\x0C') ? 400 : cases[i].status;
        expect(cases[i].bytes, strlen(cases[i].bytes), status, NULL);
    }
    expect("GET /\0 HTTP/1.1\r\n" HOST "\r\n", 35, 400, NULL);
}

static void wrong_chunks(void **state)
{
    static const struct {
        int status;
        const char *body;
    } cases[] = {
        {400, "\r\n"}, {400, "x\r\n"}, {400, "-1\r\n"}, {400, "0x1\r\na"}, {400, " 1\r\na"},
        {400, "1 \r\na"}, {400, "1\na\r\n"}, {400, "1\r\nab\r\n"}, {400, "1\r\na\n0\r\n\r\n"},
        {400, "000000001\r\na"}, {413, "FFFFFFFF\r\na"}, {413, "400001\r\na"}, {400, "1;\x01\r\na"},
        {400, "0\r\n\x02: b\r\n\r\n"}, {400, "0\r\n\rx"}, {400, ";\r\n"}, {400, "1;a\nb\r\n"},
    };
    char bytes[512];
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        int n = snprintf(bytes, sizeof bytes,
                         "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%s",
                         cases[i].body);
        expect(bytes, (size_t)n, cases[i].status, NULL);
    }
}

/* n bytes of `c` between two texts; new memory. */
static char *stuffed(const char *before, char c, size_t n, const char *after, size_t *n_bytes)
{
    size_t n_before = strlen(before), n_after = strlen(after);
    char *bytes = malloc(n_before + n + n_after + 1);
    assert_non_null(bytes);
    memcpy(bytes, before, n_before);
    memset(bytes + n_before, c, n);
    memcpy(bytes + n_before + n, after, n_after + 1);
    *n_bytes = n_before + n + n_after;
    return bytes;
}

static void expect_stuffed(const char *before, size_t n, const char *after, int status)
{
    size_t n_bytes;
    char *bytes = stuffed(before, 'a', n, after, &n_bytes);
    expect(bytes, n_bytes, status, NULL);
    free(bytes);
}

static void sizes(void **state)
{
    static const char end[] = " HTTP/1.1\r\n" HOST "\r\n";
    (void)state;
    expect_stuffed("GET /", TN_HTTP_MAX_LINE - 16, end, 200);
    expect_stuffed("GET /", TN_HTTP_MAX_LINE - 15, end, 414);
    expect_stuffed("GET /", 100000, end, 414);
    expect_stuffed("GET / HTTP/1.1\r\n" HOST "A:", 16000, "\r\n\r\n", 200);
    expect_stuffed("GET / HTTP/1.1\r\n" HOST "A:", 16384, "\r\n\r\n", 431);
    expect_stuffed("GET / HTTP/1.1\r\n" HOST "A:", 65536, "\r\n\r\n", 431);
    expect_stuffed("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;", 4000,
                   "\r\na\r\n0\r\n\r\n", 200);
    expect_stuffed("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;", 5000,
                   "\r\na\r\n0\r\n\r\n", 431);
    expect_stuffed("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA:", 5000,
                   "\r\n\r\n", 431);
}

static void number_of_fields(void **state)
{
    char bytes[4096];
    (void)state;
    for (int n_more = 62; n_more <= 65; n_more++) {
        int n = snprintf(bytes, sizeof bytes, "GET / HTTP/1.1\r\n" HOST);
        for (int i = 0; i < n_more; i++)
            n += snprintf(bytes + n, sizeof bytes - (size_t)n, "A%d: b\r\n", i);
        n += snprintf(bytes + n, sizeof bytes - (size_t)n, "\r\n");
        expect(bytes, (size_t)n, n_more <= 63 ? 200 : 431, NULL);
    }
}

/* The limit applies to the sum of the chunks. */
static void chunks_add_up(void **state)
{
    struct tn_http_request r = {0};
    static const char head[] = "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n";
    static char chunk[8 + 65536 + 2];
    size_t n = (size_t)snprintf(chunk, sizeof chunk, "10000\r\n");
    memset(chunk + n, 'x', 65536);
    memcpy(chunk + n + 65536, "\r\n", 2);
    (void)state;
    tn_http_feed(&r, head, sizeof head - 1);
    tn_http_continue(&r);
    for (int i = 0; i < 64; i++)
        assert_int_equal(tn_http_feed(&r, chunk, n + 65538), n + 65538);
    assert_int_equal(r.body.n, TN_HTTP_MAX_BODY);
    tn_http_feed(&r, chunk, n + 65538);
    assert_int_equal(r.state, TN_HTTP_FAILED);
    assert_int_equal(r.status, 413);
    tn_http_fini(&r);
}

/* Bytes after a request belong to the next one. */
static void stops_at_the_end(void **state)
{
    static const char two[] = "POST /a HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhiGET /b HTTP/1.1";
    struct tn_http_request r = {0};
    (void)state;
    assert_int_equal(feed(&r, two, sizeof two - 1, 0), sizeof two - 1 - strlen("GET /b HTTP/1.1"));
    assert_int_equal(r.state, TN_HTTP_DONE);
    assert_string_equal(tn_buf_text(&r.path), "/a");
    tn_http_fini(&r);
}

static void what_is_read(void **state)
{
    static const char bytes[] = "POST /v1/m%2Fx%20y?q=%41 HTTP/1.1\r\n" HOST
                                "X-A:  one \r\nx-a: two\r\nConnection: a, CLOSE\r\n"
                                "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n";
    struct tn_http_request r = {0};
    uint32_t n_times;
    (void)state;
    assert_int_equal(tn_http_feed(&r, bytes, sizeof bytes - 1), sizeof bytes - 1);
    assert_int_equal(r.state, TN_HTTP_HEAD_DONE);
    assert_int_equal(r.method, TN_HTTP_POST);
    assert_string_equal(tn_buf_text(&r.path), "/v1/m/x y");
    assert_int_equal(r.query.n, 5);
    assert_false(r.keeps_alive);
    assert_true(r.expects_continue);
    assert_true(tn_http_is(tn_http_field(&r, "x-a", &n_times), "one"));
    assert_int_equal(n_times, 2);
    assert_null(tn_http_field(&r, "x-b", &n_times).data);
    assert_int_equal(n_times, 0);
    tn_http_fini(&r);
}

/* ---- the guard ---- */

static const char *const hosts[] = {"tern.example.com"};
static const char *const origins[] = {"https://app.example.com"};
static const struct tn_guard open_guard = {hosts, 1, origins, 1, NULL, true};
static const struct tn_guard key_guard = {hosts, 1, origins, 1, "secret", false};
static const struct tn_guard page_guard = {hosts, 1, origins, 1, "secret", true};

static int look(const struct tn_guard *guard, const char *method, const char *path,
                const char *fields)
{
    struct tn_http_request r = {0};
    struct tn_guard_result result;
    char bytes[1024];
    int n = snprintf(bytes, sizeof bytes, "%s %s HTTP/1.1\r\n%s\r\n", method, path, fields);
    feed(&r, bytes, (size_t)n, 0);
    assert_int_equal(r.state, TN_HTTP_DONE);
    tn_guard_look(guard, &r, &result);
    tn_http_fini(&r);
    return result.status;
}

static void hosts_are_known(void **state)
{
    static const char *const good[] = {
        "localhost", "LocalHost", "localhost:8080", "localhost:1", "127.0.0.1", "127.0.0.1:8080",
        "[::1]", "[::1]:8080", "tern.example.com", "tern.example.com:443", "TERN.example.com"};
    static const char *const bad[] = {
        "", "localhost.", "localhost:", "localhost:x", "localhost:123456", "localhost:80:80",
        "localhost.example.com", "example.com", "example.com:8080", "127.0.0.2", "127.0.0.1.",
        "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1.nip.io", "0.0.0.0", "::1",
        "[::1", "::1]", "[::1].example.com", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]",
        "localhost@example.com", "example.com@localhost", "localhost, example.com",
        "localhost/", "http://localhost", "xtern.example.com", "tern.example.com.", "*", "null",
        "local host", "localhost\xC2\xA0", "[localhost]", ":8080"};
    char fields[128];
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(good); i++) {
        snprintf(fields, sizeof fields, "Host: %s\r\n", good[i]);
        assert_int_equal(look(&open_guard, "GET", "/", fields), 0);
    }
    for (size_t i = 0; i < TN_COUNT_OF(bad); i++) {
        snprintf(fields, sizeof fields, "Host: %s\r\n", bad[i]);
        if (look(&open_guard, "GET", "/", fields) != 403)
            fail_msg("Host \"%s\" is let in", bad[i]);
    }
    assert_int_equal(look(&open_guard, "GET", "http://evil.example/", HOST), 403);
    assert_int_equal(look(&open_guard, "GET", "http://127.0.0.1:80/", HOST), 0);
}

static void origins_are_known(void **state)
{
    static const struct {
        int status;
        const char *fields;
    } cases[] = {
        {0, "Host: localhost:1\r\nOrigin: http://localhost:1\r\n"},
        {0, "Host: localhost:1\r\nOrigin: http://localhost:1\r\nSec-Fetch-Site: same-origin\r\n"},
        {0, HOST "Sec-Fetch-Site: none\r\n"},
        {0, HOST "Sec-Fetch-Mode: cors\r\n"},
        {0, HOST "Origin: https://app.example.com\r\nSec-Fetch-Site: cross-site\r\n"},
        {403, HOST "Origin: https://evil.example\r\n"},
        {403, HOST "Origin: http://app.example.com\r\n"},
        {403, HOST "Origin: https://app.example.com.evil.example\r\n"},
        {403, HOST "Origin: null\r\n"},
        {403, HOST "Origin:\r\n"},
        {403, HOST "Origin: file://\r\n"},
        {403, "Host: localhost:1\r\nOrigin: http://localhost:2\r\n"},
        {403, "Host: localhost:1\r\nOrigin: http://localhost\r\n"},
        {403, HOST "Origin: http://127.0.0.1\r\n"},
        {403, HOST "Origin: https://app.example.com\r\nOrigin: https://evil.example\r\n"},
        {403, HOST "Sec-Fetch-Site: cross-site\r\n"},
        {403, HOST "Sec-Fetch-Site: same-site\r\n"},
        {403, HOST "Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++)
        if (look(&open_guard, "POST", "/", cases[i].fields) != cases[i].status)
            fail_msg("%s", cases[i].fields);
}

static void keys_are_compared(void **state)
{
    static const struct {
        int status;
        const char *path, *fields;
    } cases[] = {
        {401, "/v1/models", HOST},
        {401, "/", HOST},
        {0, "/health", HOST},
        {0, "/v1/health", HOST},
        {401, "/health/", HOST},
        {401, "//health", HOST},
        {0, "/%68ealth", HOST}, /* the same path: routes see the decoded one too */
        {0, "/", HOST "Authorization: Bearer secret\r\n"},
        {0, "/", HOST "authorization: bearer secret\r\n"},
        {0, "/", HOST "Authorization: Bearer  secret\r\n"},
        {401, "/", HOST "Authorization: Bearer sec ret\r\n"},
        {0, "/", HOST "X-Api-Key: secret\r\n"},
        {0, "/", HOST "Authorization: Basic dGVybjpzZWNyZXQ=\r\n"}, /* tern:secret */
        {401, "/", HOST "Authorization: Basic c2VjcmV0\r\n"},         /* secret */
        {401, "/", HOST "Authorization: Basic !\r\n"},
        {401, "/", HOST "Authorization: Bearer\r\n"},
        {401, "/", HOST "Authorization: secret\r\n"},
        {401, "/", HOST "Authorization: Bearer secre\r\n"},
        {401, "/", HOST "Authorization: Bearer secretx\r\n"},
        {401, "/", HOST "Authorization: Bearer Secret\r\n"},
        {401, "/", HOST "X-Api-Key:\r\n"},
        {403, "/", HOST "X-Api-Key: secret\r\nOrigin: https://evil.example\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++)
        if (look(&key_guard, "GET", cases[i].path, cases[i].fields) != cases[i].status)
            fail_msg("%s %s", cases[i].path, cases[i].fields);
    assert_int_equal(look(&key_guard, "OPTIONS", "/v1/models",
                          HOST "Origin: https://app.example.com\r\n"), 0);
    assert_int_equal(look(&key_guard, "OPTIONS", "/v1/models", HOST), 401);
    /* The page needs no key; the data it requests does. */
    assert_int_equal(look(&page_guard, "GET", "/", HOST), 0);
    assert_int_equal(look(&page_guard, "GET", "/page/app.js", HOST), 0);
    assert_int_equal(look(&page_guard, "GET", "/page.json", HOST), 401);
    assert_int_equal(look(&page_guard, "GET", "/v1/models", HOST), 401);
    assert_int_equal(look(&page_guard, "GET", "//page/app.js", HOST), 401);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_requests),    cmocka_unit_test(wrong_requests),
        cmocka_unit_test(wrong_chunks),      cmocka_unit_test(sizes),
        cmocka_unit_test(number_of_fields),  cmocka_unit_test(chunks_add_up),
        cmocka_unit_test(stops_at_the_end),  cmocka_unit_test(what_is_read),
        cmocka_unit_test(hosts_are_known),   cmocka_unit_test(origins_are_known),
        cmocka_unit_test(keys_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

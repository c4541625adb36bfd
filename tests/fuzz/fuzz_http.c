/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: bytes from a client.  As one piece and byte by byte they are the same request, and
 * an accepted request is within the limits; then guard and JSON reader process it.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "server/guard.h"
#include "server/http.h"
#include "server/json_body.h"
#include "server/json_out.h"

static size_t feed(struct tn_http_request *r, const char *bytes, size_t n, size_t step)
{
    size_t i = 0;
    while (i < n && r->state != TN_HTTP_FAILED && r->state != TN_HTTP_DONE) {
        i += tn_http_feed(r, bytes + i, TN_MIN(step, n - i));
        if (r->state == TN_HTTP_HEAD_DONE)
            tn_http_continue(r);
    }
    return i;
}

static void check_limits(const struct tn_http_request *r)
{
    if (r->body.n > TN_HTTP_MAX_BODY || r->n_fields > TN_HTTP_MAX_FIELDS ||
        r->head.n_bytes > TN_HTTP_MAX_LINE + TN_HTTP_MAX_HEAD + 4 ||
        memchr(tn_buf_text((struct tn_buf *)&r->path), '\0', r->path.n_bytes))
        abort();
}

static void check_json(const struct tn_http_request *r)
{
    struct tn_refusal refusal;
    struct tn_buf out = {0};
    struct tn_json_wide seed;
    json_t *body = tn_json_body_read(r->body.data, r->body.n, &seed, &refusal);
    if (!body && (refusal.status < 400 || !refusal.message[0]))
        abort();
    json_decref(body);
    /* Any text that is written can be read back. */
    tn_json_string(&out, r->body.data, r->body.n);
    json_t *text = json_loadb(out.data, out.n_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!text)
        abort();
    json_decref(text);
    tn_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct tn_guard guard = {.key = "key"};
    struct tn_http_request whole = {0}, bytewise = {0};
    struct tn_guard_result result;
    size_t n_whole = feed(&whole, (const char *)data, n, n);
    size_t n_bytewise = feed(&bytewise, (const char *)data, n, 1);
    if (whole.state != bytewise.state || whole.status != bytewise.status || n_whole != n_bytewise)
        abort();
    check_limits(&whole);
    if (whole.state == TN_HTTP_DONE) {
        if (whole.body.n != bytewise.body.n ||
            memcmp(whole.body.data, bytewise.body.data, whole.body.n) != 0)
            abort();
        tn_guard_look(&guard, &whole, &result);
        check_json(&whole);
    }
    tn_http_fini(&whole);
    tn_http_fini(&bytewise);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char *const seeds[] = {
        "POST /v1/chat/completions?a=b HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 14\r\n"
        "Origin: http://localhost:8080\r\nAuthorization: Bearer key\r\n\r\n{\"stream\":true}",
        "POST / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n"
        "8;a=b\r\n{\"a\":[1]\r\n1\r\n}\r\n0\r\nA: b\r\n\r\n",
        "GET http://localhost/%41 HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nX-Api-Key: key\r\n"
        "Sec-Fetch-Site: cross-site\r\nAuthorization: Basic dGVybjpzZWNyZXQ=\r\n"
        "Content-Length: 2\r\n\r\n{}",
    };
    if (i >= TN_COUNT_OF(seeds) || strlen(seeds[i]) > capacity)
        return 0;
    memcpy(dst, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

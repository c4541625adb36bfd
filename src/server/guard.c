/* SPDX-License-Identifier: MIT
 *
 * Checks Host, Origin, Sec-Fetch-Site and the key of a request.
 *
 * Names are compared without case; the key in constant time.
 */
#include "server/guard.h"

#include <stdint.h>
#include <string.h>

/* ---- Host ---- */

/* Removes ":1234".  false: the text after the colon is not a port. */
static bool drop_port(struct tn_http_text *host)
{
    size_t n = host->n, n_digits = 0;
    while (n > 0 && host->data[n - 1] >= '0' && host->data[n - 1] <= '9')
        n--, n_digits++;
    if (n == 0 || host->data[n - 1] != ':')
        return true; /* there is no port */
    /* Groups of an IPv6 address are in brackets, so this colon precedes a port. */
    host->n = n - 1;
    return n_digits > 0 && n_digits <= 5;
}

/* True if the Host value names this machine or is one of the configured names. */
static bool knows_host(const struct tn_guard *guard, struct tn_http_text host)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    if (!host.data || !drop_port(&host))
        return false;
    for (size_t i = 0; i < TN_COUNT_OF(own); i++)
        if (tn_http_is(host, own[i]))
            return true;
    for (size_t i = 0; i < guard->n_hosts; i++)
        if (tn_http_is(host, guard->hosts[i]))
            return true;
    return false;
}

/* ---- Origin ---- */

/* Is it "http://" or "https://" (through a proxy) followed by the value of Host? */
static bool is_own_origin(struct tn_http_text origin, struct tn_http_text host)
{
    static const char *const schemes[] = {"http://", "https://"};
    if (!host.data)
        return false;
    for (size_t i = 0; i < TN_COUNT_OF(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (origin.n == n + host.n && memcmp(origin.data, schemes[i], n) == 0 &&
            memcmp(origin.data + n, host.data, host.n) == 0)
            return true;
    }
    return false;
}

static bool is_configured(const struct tn_guard *guard, struct tn_http_text origin)
{
    for (size_t i = 0; i < guard->n_origins; i++)
        if (tn_http_is(origin, guard->origins[i]))
            return true;
    return false;
}

static void check_origin(const struct tn_guard *guard, const struct tn_http_request *request,
                         struct tn_http_text host, struct tn_guard_result *out)
{
    uint32_t n_origins;
    struct tn_http_text origin = tn_http_field(request, "origin", &n_origins);
    struct tn_http_text site = tn_http_field(request, "sec-fetch-site", NULL);
    if (n_origins == 1 && is_configured(guard, origin))
        out->origin = origin;
    else if (n_origins > 1 || (n_origins == 1 && !is_own_origin(origin, host)))
        *out = (struct tn_guard_result){
            .status = 403, .why = "this origin may not use the server; see tern serve "
                                  "--allow-origin"};
    else if (tn_http_is(site, "cross-site") || tn_http_is(site, "same-site"))
        *out = (struct tn_guard_result){
            .status = 403, .why = "a page of another site may not use the server; see tern serve "
                                  "--allow-origin"};
}

/* ---- the key ---- */

/* Takes time that depends on the given text, not on the key. */
static bool is_key(const char *key, const char *given, size_t n)
{
    size_t n_key = strlen(key);
    volatile unsigned char difference = n == n_key ? 0 : 1;
    for (size_t i = 0; i < n; i++)
        difference |= (unsigned char)(given[i] ^ key[i < n_key ? i : n_key]);
    return difference == 0;
}

static int sextet(char c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

/* "Basic" is what browsers prompt for: any name, and the key as the password. */
static bool is_basic_key(const char *key, struct tn_http_text coded)
{
    char text[768];
    size_t n = 0;
    uint32_t bits = 0, n_bits = 0;
    for (size_t i = 0; i < coded.n && coded.data[i] != '='; i++) {
        int value = sextet(coded.data[i]);
        if (value < 0 || n == sizeof text)
            return false;
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            text[n++] = (char)(bits >> n_bits & 0xFF);
        }
    }
    const char *colon = memchr(text, ':', n);
    return colon && is_key(key, colon + 1, (size_t)(text + n - colon - 1));
}

/* Blanks may precede the key, which contains none (RFC 9110, section 11.4). */
static bool is_bearer_key(const char *key, struct tn_http_text given)
{
    while (given.n > 0 && given.data[0] == ' ')
        given.data++, given.n--;
    return is_key(key, given.data, given.n);
}

static bool has_key(const char *key, const struct tn_http_request *request)
{
    struct tn_http_text bearer = tn_http_field(request, "authorization", NULL);
    struct tn_http_text plain = tn_http_field(request, "x-api-key", NULL);
    if (tn_http_begins(bearer, "bearer "))
        return is_bearer_key(key, (struct tn_http_text){bearer.data + 7, bearer.n - 7});
    if (tn_http_begins(bearer, "basic "))
        return is_basic_key(key, (struct tn_http_text){bearer.data + 6, bearer.n - 6});
    return plain.data && is_key(key, plain.data, plain.n);
}

static bool is_public_path(const struct tn_guard *guard, const char *path, size_t n)
{
    if ((n == 7 && memcmp(path, "/health", 7) == 0) ||
        (n == 10 && memcmp(path, "/v1/health", 10) == 0))
        return true;
    return guard->has_page &&
           ((n == 1 && path[0] == '/') || (n > 6 && memcmp(path, "/page/", 6) == 0));
}

void tn_guard_look(const struct tn_guard *guard, const struct tn_http_request *request,
                   struct tn_guard_result *out)
{
    struct tn_http_text host = tn_http_field(request, "host", NULL);
    const char *path = request->path.data;
    size_t n_path = request->path.n_bytes;
    /* Only HTTP/1.0 may lack Host; browsers, which DNS rebinding abuses, always send it. */
    const bool has_no_host = request->is_1_0 && !host.data;
    *out = (struct tn_guard_result){0};
    if ((!has_no_host && !knows_host(guard, host)) ||
        (request->authority.data && !knows_host(guard, request->authority))) {
        out->status = 403;
        out->why = "this host name is not this server's; see tern serve --allow-host";
        return;
    }
    check_origin(guard, request, host, out);
    bool is_public = is_public_path(guard, path, n_path) ||
                     (request->method == TN_HTTP_OPTIONS && out->origin.data);
    if (out->status == 0 && guard->key && !is_public && !has_key(guard->key, request)) {
        out->status = 401;
        out->why = "the API key is missing or wrong";
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Checks addresses and resolves redirects (url.h), more strictly than RFC 3986: downloads need few
 * kinds of addresses.
 */
#include "hub/url.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Characters of an address in RFC 3986.  '#' begins a fragment, which servers never see. */
static bool is_url_character(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-._~:/?[]@!$&'()*+,;=%", c));
}

static bool begins_with(const char *text, const char *prefix)
{
    while (*prefix && tolower((unsigned char)*text) == *prefix) {
        text++;
        prefix++;
    }
    return *prefix == '\0';
}

/* "127." followed by digits and dots, "localhost", "[::1]". */
static bool is_loopback(const char *host, size_t n)
{
    if ((n == 9 && begins_with(host, "localhost")) || (n == 5 && memcmp(host, "[::1]", 5) == 0))
        return true;
    if (n < 5 || memcmp(host, "127.", 4) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)host[i]) && host[i] != '.')
            return false;
    return true;
}

/* Length of the host at the start of "host:port". */
static size_t host_length(const char *authority, size_t n)
{
    const char *start = authority[0] == '[' ? memchr(authority, ']', n) : authority;
    const char *colon = start ? memchr(start, ':', n - (size_t)(start - authority)) : NULL;
    return colon ? (size_t)(colon - authority) : n;
}

static tern_status check_authority(struct tn_url *out, size_t n_scheme, struct tern_error *err)
{
    const char *authority = out->text + n_scheme;
    const size_t n = strcspn(authority, "/?");
    out->n_origin = n_scheme + n;
    const size_t n_host = host_length(authority, n);
    if (memchr(authority, '@', n))
        return tn_fail(err, TERN_NETWORK, "\"%.200s\": an address with a user name is not fetched",
                       out->text);
    if (n_host == 0)
        return tn_fail(err, TERN_NETWORK, "\"%.200s\": the address names no host", out->text);
    if (!out->is_https && !is_loopback(authority, n_host))
        return tn_fail(err, TERN_NETWORK,
                       "\"%.200s\": http is used on this computer only; https is needed",
                       out->text);
    return TERN_OK;
}

tern_status tn_url_parse(struct tn_url *out, const char *text, struct tern_error *err)
{
    const size_t n = strlen(text);
    if (n > TN_URL_MAX_BYTES)
        return tn_fail(err, TERN_NETWORK, "an address has %zu bytes, at most %u are possible", n,
                       TN_URL_MAX_BYTES);
    for (size_t i = 0; i < n; i++)
        if (!is_url_character(text[i]))
            return tn_fail(err, TERN_NETWORK,
                           "\"%.200s\": byte %zu cannot be a part of an address", text, i + 1);
    memcpy(out->text, text, n + 1);
    out->is_https = begins_with(text, "https://");
    if (!out->is_https && !begins_with(text, "http://"))
        return tn_fail(err, TERN_NETWORK, "\"%.200s\" is not an https address", text);
    return check_authority(out, out->is_https ? 8 : 7, err);
}

bool tn_url_is_same_origin(const struct tn_url *a, const struct tn_url *b)
{
    if (a->n_origin != b->n_origin)
        return false;
    for (size_t i = 0; i < a->n_origin; i++)
        if (tolower((unsigned char)a->text[i]) != tolower((unsigned char)b->text[i]))
            return false;
    return true;
}

/* Length of the part of `base` that a relative location keeps. */
static size_t kept_bytes(const struct tn_url *base, const char *location)
{
    if (location[0] == '/' && location[1] == '/')
        return base->is_https ? 6 : 5; /* "https:" */
    if (location[0] == '/')
        return base->n_origin;
    const char *query = strchr(base->text, '?');
    size_t n = query ? (size_t)(query - base->text) : strlen(base->text);
    while (n > base->n_origin && base->text[n - 1] != '/')
        n--;
    return n;
}

tern_status tn_url_follow(struct tn_url *out, const struct tn_url *base, const char *location,
                          struct tern_error *err)
{
    char text[2 * TN_URL_MAX_BYTES + 2];
    const bool is_absolute = strncmp(location, "//", 2) != 0 && strstr(location, "://") &&
                             strcspn(location, ":") < strcspn(location, "/?");
    const size_t n_kept = is_absolute ? 0 : kept_bytes(base, location);
    if (location[0] == '\0')
        return tn_fail(err, TERN_NETWORK, "the server redirects, and does not say where");
    if (strlen(location) > TN_URL_MAX_BYTES)
        return tn_fail(err, TERN_NETWORK,
                       "the server redirects to an address of more than %u bytes",
                       TN_URL_MAX_BYTES);
    const bool needs_slash = n_kept > 0 && n_kept == base->n_origin && location[0] != '/';
    snprintf(text, sizeof text, "%.*s%s%s", (int)n_kept, base->text, needs_slash ? "/" : "",
             location);
    tern_status status = tn_url_parse(out, text, err);
    if (status == TERN_OK && base->is_https && !out->is_https)
        status = tn_fail(err, TERN_NETWORK, "the server redirects from https to \"%.200s\"",
                         out->text);
    if (status != TERN_OK)
        tn_fail_prefix(err, "redirect");
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Who may talk to the server: looked at when the head of a request is there, before its body is
 * read and before any route is chosen.
 *
 *   Host            names this machine or a configured name: a page of another name that resolves
 *                   to 127.0.0.1 (DNS rebinding) is turned away
 *   Origin          this server's own, or a configured one: a page of another site is turned away
 *   Sec-Fetch-Site  the same for requests that carry no Origin
 *   key             if there is one: compared in constant time; /health and the page that asks
 *                   people for it need none
 */
#ifndef TN_GUARD_H
#define TN_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "server/http.h"

struct tn_guard {
    const char *const *hosts; /* configured names, besides localhost, 127.0.0.1 and [::1] */
    size_t n_hosts;
    const char *const *origins; /* configured, such as "https://app.example.com" */
    size_t n_origins;
    const char *key; /* NULL: none */
    bool has_page;   /* whose files need no key */
};

struct tn_guard_result {
    int status;          /* 0: may pass; else 400, 401 or 403 */
    const char *why;
    struct tn_http_text origin; /* a configured one that asks: it is told that it may */
};

void tn_guard_look(const struct tn_guard *guard, const struct tn_http_request *request,
                   struct tn_guard_result *out);


#endif

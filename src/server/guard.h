/* SPDX-License-Identifier: MIT
 *
 * Decides which requests are accepted, from the head alone: before the body is read and before a
 * route is chosen.
 *
 *   Host            must name this machine or a configured name; stops pages of a name that was
 *                   rebound to 127.0.0.1 (DNS rebinding)
 *   Origin          must be this server's or a configured one; stops pages of other sites
 *   Sec-Fetch-Site  the same for requests without Origin
 *   key             if configured, compared in constant time; not required for /health and the
 *                   files of the page, which asks the user for it
 */
#ifndef TN_GUARD_H
#define TN_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "server/http.h"

struct tn_guard {
    const char *const *hosts; /* configured names, besides localhost, 127.0.0.1 and [::1] */
    size_t n_hosts;
    const char *const *origins; /* such as "https://app.example.com" */
    size_t n_origins;
    const char *key; /* NULL: none */
    bool has_page;   /* its files need no key */
};

struct tn_guard_result {
    int status; /* 0: accepted; else 401 or 403 */
    const char *why;
    struct tn_http_text origin; /* configured origin of the request, to be allowed in the answer */
};

void tn_guard_look(const struct tn_guard *guard, const struct tn_http_request *request,
                   struct tn_guard_result *out);

#endif

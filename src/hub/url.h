/* SPDX-License-Identifier: MIT
 *
 * Addresses that may be fetched: https, or http on this computer only.  No user names, no
 * fragments, no characters that would need quoting in curl's configuration.
 */
#ifndef TN_URL_H
#define TN_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

#define TN_URL_MAX_BYTES 4096u /* signed addresses of storage servers have about 1,500 */

/* A checked address. */
struct tn_url {
    char text[TN_URL_MAX_BYTES + 1];
    size_t n_origin; /* length of scheme, host and port */
    bool is_https;   /* else http, to a loopback address */
};

/* TERN_NETWORK with the reason: too long, another scheme, http to another computer, a user name,
 * invalid characters. */
tern_status tn_url_parse(struct tn_url *out, const char *text, struct tern_error *err);

/* Same scheme, host and port, case-insensitive. */
bool tn_url_is_same_origin(const struct tn_url *a, const struct tn_url *b);

/* The target of a redirect from `base` to `location`: an address, "//host/path", "/path", or a path
 * relative to that of `base`.  TERN_NETWORK: as above, or from https to http. */
tern_status tn_url_follow(struct tn_url *out, const struct tn_url *base, const char *location,
                          struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What precedes the body of an HTTP response, as curl's option "include" prints it.
 */
#ifndef TN_RESPONSE_HEAD_H
#define TN_RESPONSE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/url.h"

#define TN_RESPONSE_HEAD_MAX_BYTES 65536u
#define TN_LENGTH_UNKNOWN UINT64_MAX

struct tn_response_head {
    int status;                           /* 200 */
    char location[TN_URL_MAX_BYTES + 1];  /* of a redirect; "" */
    uint64_t content_bytes;               /* of the body; TN_LENGTH_UNKNOWN */
    uint64_t range_first;                 /* of Content-Range; TN_LENGTH_UNKNOWN: there is none */
    uint32_t retry_after_s;               /* 0: not said */
    bool has_next_page;                   /* a Link header with rel="next" */
};

/* Reads the head at the start of n bytes; interim responses (1xx) are skipped.  Returns its bytes,
 * the blank line included; 0: it is not complete.  TERN_NETWORK in *status: this is no HTTP
 * response, or its head is too long. */
size_t tn_response_head_parse(struct tn_response_head *out, const char *bytes, size_t n,
                              tern_status *status, struct tern_error *err);

#endif

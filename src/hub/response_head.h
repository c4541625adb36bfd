/* SPDX-License-Identifier: MIT
 *
 * The head of an HTTP response, in the format of curl's option "include": status, redirect, length,
 * range, retry delay.
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
    char location[TN_URL_MAX_BYTES + 2];  /* of a redirect, "": none; a longer one is cut */
    uint64_t content_bytes;               /* of the body; TN_LENGTH_UNKNOWN */
    uint64_t range_first;                 /* of Content-Range; TN_LENGTH_UNKNOWN: there is none */
    uint32_t retry_after_s;               /* 0: absent */
    bool has_next_page;                   /* a Link header with rel="next" */
};

/* Parses the head at the start of n bytes; skips interim responses (1xx).  Returns its length,
 * including the blank line; 0: incomplete.  TERN_NETWORK in *status: not an HTTP response, or its
 * head is too long. */
size_t tn_response_head_parse(struct tn_response_head *out, const char *bytes, size_t n,
                              tern_status *status, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Fetches one address of the hub to the end: redirects, the token, messages for status codes, and
 * retries after failures that may pass.
 */
#ifndef TN_FETCH_H
#define TN_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/response_head.h"
#include "hub/url.h"
#include "tern/status.h"

#define TN_FETCH_MAX_REDIRECTS 5
#define TN_FETCH_ATTEMPTS 4 /* consecutive attempts without a byte; 1, 2 and 4 seconds apart */

/* The server from which models are downloaded. */
struct tn_hub {
    struct tn_url endpoint; /* $HF_ENDPOINT, or https://huggingface.co; no slash at its end */
    const char *token;      /* $HF_TOKEN; NULL: none, or the endpoint is http */
    char *curl;
    /* Called before a retry, for the user: the reason and the waiting time.  May be NULL. */
    void (*on_retry)(const struct tern_error *why, uint32_t seconds);
};

/* $HF_ENDPOINT or the default, unchecked, for messages. */
const char *tn_hub_address(void);

/* Reads the environment and finds curl.  TERN_USAGE: HF_ENDPOINT is not an address; TERN_NETWORK:
 * curl was not found; then only out->endpoint is valid. */
tern_status tn_hub_open(struct tn_hub *out, struct tern_error *err);
void tn_hub_close(struct tn_hub *hub);

/* The destination of the bytes. */
struct tn_sink {
    /* The first byte to request; called before each attempt. */
    uint64_t (*offset)(void *arg);
    /* A response begins: head->range_first is the requested offset, or the body begins with byte 0
     * and earlier bytes are to be dropped. */
    tern_status (*begin)(void *arg, const struct tn_response_head *head, struct tern_error *err);
    tern_status (*take)(void *arg, const void *bytes, size_t n, struct tern_error *err);
    void *arg;
    uint64_t n_bytes; /* the offset at which it is complete; TN_LENGTH_UNKNOWN: none is */
};

/* Fetches `url`, an address below the hub's endpoint.  `repository` is for messages such as how to
 * accept a licence.  The token is sent only to the endpoint's host, even after redirects.
 * TERN_NETWORK, TERN_INTERRUPTED, TERN_MEMORY, and errors of the sink. */
tern_status tn_fetch(const struct tn_hub *hub, const char *url, const char *repository,
                     const struct tn_sink *sink, struct tern_error *err);

/* The same into memory, at most max_bytes.  *text is new memory (tn_free), NUL-terminated;
 * *has_next_page: the response says that more pages follow. */
tern_status tn_fetch_text(char **text, size_t *n_bytes, bool *has_next_page,
                          const struct tn_hub *hub, const char *url, const char *repository,
                          size_t max_bytes, struct tern_error *err);

#endif

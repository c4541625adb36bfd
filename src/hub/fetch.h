/* SPDX-License-Identifier: MIT
 *
 * Fetching one address of the hub to the end: redirects, the token, what a status means for users,
 * and second attempts after failures that pass.
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
#define TN_FETCH_ATTEMPTS 4 /* in a row that bring no byte; 1, 2 and 4 seconds apart */

/* Where models come from. */
struct tn_hub {
    struct tn_url endpoint; /* $HF_ENDPOINT, or https://huggingface.co; no slash at its end */
    const char *token;      /* $HF_TOKEN; NULL: none, or the endpoint is http */
    char *curl;
    /* Called before a second attempt, for people: why, and how long it waits.  May be NULL. */
    void (*on_retry)(const struct tern_error *why, uint32_t seconds);
};

/* $HF_ENDPOINT or the default, unchecked, for people. */
const char *tn_hub_address(void);

/* Reads the environment and finds curl.  TERN_USAGE: HF_ENDPOINT is no address; TERN_NETWORK: there
 * is no curl; out->endpoint is valid then. */
tern_status tn_hub_open(struct tn_hub *out, struct tern_error *err);
void tn_hub_close(struct tn_hub *hub);

/* What takes the bytes. */
struct tn_sink {
    /* The byte to begin with; asked before each attempt. */
    uint64_t (*offset)(void *arg);
    /* A response begins: head->range_first is the offset that was requested, or the body begins
     * with byte 0 and earlier bytes are dropped. */
    tern_status (*begin)(void *arg, const struct tn_response_head *head, struct tern_error *err);
    tern_status (*take)(void *arg, const void *bytes, size_t n, struct tern_error *err);
    void *arg;
};

/* Fetches `url`, an address below the hub's endpoint.  `repository` is for messages: what to do
 * when a licence must be accepted.  The token goes to the endpoint's host alone, whatever the
 * redirects say.  TERN_NETWORK, TERN_INTERRUPTED, TERN_MEMORY, and what the sink returns. */
tern_status tn_fetch(const struct tn_hub *hub, const char *url, const char *repository,
                     const struct tn_sink *sink, struct tern_error *err);

/* The same into memory, at most max_bytes.  *text is new memory (tn_free), NUL-terminated;
 * *has_next_page: the response says that more follows. */
tern_status tn_fetch_text(char **text, size_t *n_bytes, bool *has_next_page,
                          const struct tn_hub *hub, const char *url, const char *repository,
                          size_t max_bytes, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * One HTTP request by the system's curl.
 *
 * curl is started by its absolute path and without a shell, as `curl -q -K -`: it reads no
 * configuration file of the user, and takes all options from standard input, so that neither the
 * address nor the token appears in the list of processes.  It may use https only (http for an
 * address on this computer, without a proxy), follows no redirect, and takes proxies from the
 * environment.  Its output is the head of the response and the body.
 */
#ifndef TN_CURL_H
#define TN_CURL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/response_head.h"
#include "hub/url.h"
#include "tern/status.h"

/* The path of the system's curl, in new memory (tn_free); searches only the system's folders, never
 * the current one or the program's.  NULL: not found. */
char *tn_curl_find(void);

struct tn_request {
    const char *curl; /* tn_curl_find */
    const struct tn_url *url;
    const char *token;   /* sent as a bearer token; NULL: none */
    uint64_t first_byte; /* above 0: a range request from there to the end */
};

/* The configuration of a request, in curl's syntax, for tests.  TERN_USAGE: the token contains a
 * quote, a backslash or a control byte. */
struct tn_buf;
tern_status tn_curl_config(struct tn_buf *out, const struct tn_request *request,
                           struct tern_error *err);

/* TERN_INTERRUPTED, with the advice to repeat the command. */
tern_status tn_pull_fail_interrupted(struct tern_error *err);

/* Why a transfer failed, which decides whether another may succeed. */
enum tn_failure {
    TN_FAILURE_LASTING,
    TN_FAILURE_TO_CONNECT, /* may pass if an earlier request was answered; else the address may be
                            * wrong, or there is no network */
    TN_FAILURE_TRANSIENT,
};

struct tn_transfer {
    struct tn_response_head head;
    struct tn_process *process;
    char *buffer; /* the head, and the part of the body that came with it */
    size_t n_buffered, n_taken;
    enum tn_failure failure;
};

/* Sends the request and reads the head of the response.  TERN_NETWORK with curl's message;
 * TERN_INTERRUPTED; TERN_MEMORY.  After a failure only its kind is valid. */
tern_status tn_transfer_open(struct tn_transfer *out, const struct tn_request *request,
                             struct tern_error *err);
/* Reads up to n bytes of the body; 0: its end, a failure, or an interruption. */
size_t tn_transfer_read(struct tn_transfer *transfer, void *dst, size_t n);
/* Call after the last byte: TERN_OK only if the body is complete; errors as tn_transfer_open. */
tern_status tn_transfer_close(struct tn_transfer *transfer, struct tern_error *err);
/* Cancels a transfer. */
void tn_transfer_abort(struct tn_transfer *transfer);

#endif

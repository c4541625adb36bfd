/* SPDX-License-Identifier: MIT
 *
 * Fetches an address (fetch.h): one attempt follows redirects, and failures that may pass are
 * retried.
 */
#include "hub/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "hub/curl.h"
#include "plat/plat.h"

#if defined(_WIN32)
#define HOW_TO_GET_CURL "update Windows (it has curl since Windows 10 version 1803)"
#else
#define HOW_TO_GET_CURL "install it (Debian: apt install curl)"
#endif

#define DEFAULT_ENDPOINT "https://huggingface.co"
#define PIECE_BYTES 65536u
#define MAX_WAIT_S 300u /* if a server asks for more, the fetch fails */

/* ---- the hub ---- */

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && value[0] ? value : otherwise;
}

const char *tn_hub_address(void)
{
    return variable("HF_ENDPOINT", DEFAULT_ENDPOINT);
}

tern_status tn_hub_open(struct tn_hub *out, struct tern_error *err)
{
    *out = (struct tn_hub){0};
    tern_status status = tn_url_parse(&out->endpoint, tn_hub_address(), err);
    if (status != TERN_OK) {
        tn_fail_prefix(err, "HF_ENDPOINT");
        if (err)
            err->status = TERN_USAGE;
        return TERN_USAGE;
    }
    size_t n = strlen(out->endpoint.text);
    while (n > out->endpoint.n_origin && out->endpoint.text[n - 1] == '/')
        out->endpoint.text[--n] = '\0';
    out->token = out->endpoint.is_https ? variable("HF_TOKEN", NULL) : NULL;
    out->curl = tn_curl_find();
    return out->curl ? tn_ok(err)
                     : tn_fail(err, TERN_NETWORK,
                               "curl was not found in the system's folders; " HOW_TO_GET_CURL
                               ", or fetch the model another way");
}

void tn_hub_close(struct tn_hub *hub)
{
    tn_free(hub->curl);
    hub->curl = NULL;
}

/* ---- what a status means ---- */

struct attempt {
    const struct tn_hub *hub;
    const char *repository;
    const struct tn_sink *sink;
    uint32_t retry_after_s; /* requested by the server */
    bool was_answered;      /* an earlier request, of any attempt */
    bool is_transient;
};

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static tern_status refused(const struct attempt *a, const struct tn_url *url, int status,
                           struct tern_error *err)
{
    const char *endpoint = a->hub->endpoint.text;
    if (!tn_url_is_same_origin(url, &a->hub->endpoint))
        return tn_fail(err, TERN_NETWORK,
                       "%s: the hub redirects to %.*s, which answers with status %d",
                       a->repository, (int)TN_MIN(url->n_origin, 80u), url->text, status);
    if (status == 401 && a->hub->token)
        return tn_fail(err, TERN_NETWORK,
                       "%s: the hub does not accept the token in HF_TOKEN (status 401), or there "
                       "is no such repository; make a new token at %s/settings/tokens",
                       a->repository, endpoint);
    if (status == 401)
        return tn_fail(err, TERN_NETWORK,
                       "%s: there is no such repository, or it needs an account (status 401): "
                       "accept its licence at %s/%s, make a token at %s/settings/tokens and set "
                       "HF_TOKEN to it",
                       a->repository, endpoint, a->repository, endpoint);
    if (status == 403)
        return tn_fail(err, TERN_NETWORK,
                       "%s: the hub refuses access (status 403): accept its licence at %s/%s with "
                       "the account of the token in HF_TOKEN (%s/settings/tokens)",
                       a->repository, endpoint, a->repository, endpoint);
    if (status == 404)
        return tn_fail(err, TERN_NETWORK,
                       "%s: there is no such repository, revision or file (status 404)",
                       a->repository);
    if (status == 429)
        return tn_fail(err, TERN_NETWORK,
                       "%s: too many requests (status 429); try again later, the download "
                       "continues where it is",
                       a->repository);
    return tn_fail(err, TERN_NETWORK, "%s: the server answers with status %d", a->repository,
                   status);
}

/* ---- one attempt ---- */

static bool may_pass(const struct attempt *a, enum tn_failure failure)
{
    return failure == TN_FAILURE_TRANSIENT ||
           (failure == TN_FAILURE_TO_CONNECT && a->was_answered);
}

static tern_status receive(struct attempt *a, struct tn_transfer *transfer, struct tern_error *err)
{
    char *piece = tn_alloc(PIECE_BYTES);
    tern_status status = piece ? a->sink->begin(a->sink->arg, &transfer->head, err)
                               : tn_fail(err, TERN_MEMORY, "no memory for a download");
    for (size_t n; status == TERN_OK && (n = tn_transfer_read(transfer, piece, PIECE_BYTES)) > 0;)
        status = a->sink->take(a->sink->arg, piece, n, err);
    tn_free(piece);
    if (status != TERN_OK) {
        tn_transfer_abort(transfer);
        return status;
    }
    status = tn_transfer_close(transfer, err);
    a->is_transient = may_pass(a, transfer->failure);
    return status;
}

/* Status 416: the file no longer has this range, and is fetched again from its first byte. */
static tern_status restart(struct attempt *a, struct tern_error *err)
{
    const struct tn_response_head from_start = {.status = 200, .range_first = TN_LENGTH_UNKNOWN,
                                                .content_bytes = TN_LENGTH_UNKNOWN};
    const tern_status status = a->sink->begin(a->sink->arg, &from_start, err);
    if (status != TERN_OK)
        return status;
    a->is_transient = true;
    return tn_fail(err, TERN_NETWORK, "%s: the server does not have the rest of a file (416)",
                   a->repository);
}

static tern_status handle_response(struct attempt *a, struct tn_transfer *transfer,
                                   const struct tn_url *url, struct tern_error *err)
{
    const int code = transfer->head.status;
    if (code == 200 || code == 206)
        return receive(a, transfer, err);
    a->retry_after_s = transfer->head.retry_after_s;
    tn_transfer_abort(transfer);
    if (code == 416 && a->sink->offset(a->sink->arg) > 0)
        return restart(a, err);
    a->is_transient = (code == 429 || code >= 500) && a->retry_after_s <= MAX_WAIT_S;
    return refused(a, url, code, err);
}

static tern_status request_once(struct attempt *a, struct tn_transfer *transfer,
                                const struct tn_url *url, struct tern_error *err)
{
    const struct tn_request request = {
        .curl = a->hub->curl,
        .url = url,
        .token = tn_url_is_same_origin(url, &a->hub->endpoint) ? a->hub->token : NULL,
        .first_byte = a->sink->offset(a->sink->arg),
    };
    const tern_status status = tn_transfer_open(transfer, &request, err);
    a->was_answered = a->was_answered || status == TERN_OK;
    a->is_transient = may_pass(a, transfer->failure);
    return status;
}

static tern_status attempt(struct attempt *a, const char *address, struct tern_error *err)
{
    struct tn_url urls[2]; /* each is made from the other */
    struct tn_transfer transfer;
    a->retry_after_s = 0;
    a->is_transient = false;
    tern_status status = tn_url_parse(&urls[0], address, err);
    for (int i = 0; status == TERN_OK; i++) {
        const struct tn_url *url = &urls[i % 2];
        status = request_once(a, &transfer, url, err);
        if (status != TERN_OK)
            return status;
        if (!is_redirect(transfer.head.status))
            return handle_response(a, &transfer, url, err);
        tn_transfer_abort(&transfer);
        if (i >= TN_FETCH_MAX_REDIRECTS)
            return tn_fail(err, TERN_NETWORK, "%s: more than %d redirects", a->repository,
                           TN_FETCH_MAX_REDIRECTS);
        status = tn_url_follow(&urls[(i + 1) % 2], url, transfer.head.location, err);
    }
    return status;
}

/* ---- attempts ---- */

/* False: interrupted. */
static bool wait_to_retry(const struct tn_hub *hub, uint32_t seconds,
                          const struct tern_error *why)
{
    _Atomic uint32_t never = 0;
    if (hub->on_retry && why)
        hub->on_retry(why, seconds);
    const uint64_t end = tn_now_ns() + (uint64_t)seconds * 1000000000u;
    while (tn_now_ns() < end && !tn_stop_requested())
        tn_wait_on(&never, 0, 100000000u);
    return !tn_stop_requested();
}

tern_status tn_fetch(const struct tn_hub *hub, const char *url, const char *repository,
                     const struct tn_sink *sink, struct tern_error *err)
{
    struct attempt a = {.hub = hub, .repository = repository, .sink = sink};
    uint64_t furthest = sink->offset(sink->arg);
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < TN_FETCH_ATTEMPTS; i++) {
        if (i > 0 && !wait_to_retry(hub, TN_MAX(a.retry_after_s, 1u << (i - 1)), err))
            return tn_pull_fail_interrupted(err);
        status = attempt(&a, url, err);
        if (status != TERN_NETWORK || !a.is_transient)
            return status;
        const uint64_t reached = sink->offset(sink->arg);
        if (reached == sink->n_bytes)
            return tn_ok(err); /* only the end of the response is missing */
        if (reached > furthest) {
            furthest = reached;
            i = 0; /* the next retry follows after one second */
        }
    }
    return status;
}

/* ---- into memory ---- */

struct text_sink {
    struct tn_buf text;
    size_t max_bytes;
    const char *repository;
    bool has_next_page;
};

static uint64_t text_offset(void *arg)
{
    (void)arg;
    return 0;
}

static tern_status text_begin(void *arg, const struct tn_response_head *head,
                              struct tern_error *err)
{
    struct text_sink *s = arg;
    (void)err;
    tn_buf_clear(&s->text);
    s->has_next_page = head->has_next_page;
    return TERN_OK;
}

static tern_status text_take(void *arg, const void *bytes, size_t n, struct tern_error *err)
{
    struct text_sink *s = arg;
    if (n > s->max_bytes - s->text.n_bytes)
        return tn_fail(err, TERN_NETWORK, "%s: the answer of the hub has more than %zu bytes",
                       s->repository, s->max_bytes);
    return tn_buf_append(&s->text, bytes, n)
               ? TERN_OK
               : tn_fail(err, TERN_MEMORY, "no memory for the list of files");
}

tern_status tn_fetch_text(char **text, size_t *n_bytes, bool *has_next_page,
                          const struct tn_hub *hub, const char *url, const char *repository,
                          size_t max_bytes, struct tern_error *err)
{
    struct text_sink s = {.max_bytes = max_bytes, .repository = repository};
    const struct tn_sink sink = {text_offset, text_begin, text_take, &s, TN_LENGTH_UNKNOWN};
    *text = NULL;
    *n_bytes = 0;
    tern_status status = tn_fetch(hub, url, repository, &sink, err);
    if (status == TERN_OK && !tn_buf_append(&s.text, "", 1))
        status = tn_fail(err, TERN_MEMORY, "no memory for the list of files");
    if (status != TERN_OK) {
        tn_buf_fini(&s.text);
        return status;
    }
    *text = s.text.data;
    *n_bytes = s.text.n_bytes - 1;
    *has_next_page = s.has_next_page;
    return TERN_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * Starts curl, writes its configuration to its standard input, and turns its exit codes into errors
 * (curl.h).
 */
#include "hub/curl.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "plat/plat.h"
#include "plat/process.h"
#include "tern/version.h"

/* ---- finding curl ---- */

char *tn_curl_find(void)
{
    char *folders[4];
    char *found = NULL;
    const size_t n = tn_system_program_dirs(folders, TN_COUNT_OF(folders));
    for (size_t i = 0; i < n; i++) {
        char *path = tn_path_join(folders[i], "curl" TN_PROGRAM_SUFFIX);
        if (!found && path && tn_path_kind(path) == TN_PATH_FILE)
            found = path;
        else
            tn_free(path);
        tn_free(folders[i]);
    }
    return found;
}

/* ---- options ---- */

static bool can_be_quoted(const char *value)
{
    for (; *value; value++)
        if ((unsigned char)*value < 0x20 || *value == 0x7F || *value == '"' || *value == '\\')
            return false;
    return true;
}

/* The caller follows redirects, and decides to which of them the token is sent. */
tern_status tn_curl_config(struct tn_buf *out, const struct tn_request *request,
                           struct tern_error *err)
{
    if (!can_be_quoted(request->url->text) || (request->token && !can_be_quoted(request->token)))
        return tn_fail(err, TERN_USAGE,
                       "the token holds a quote, a backslash or a control byte; check HF_TOKEN");
    tn_buf_printf(out, "url = \"%s\"\nproto = \"=%s\"\n", request->url->text,
                  request->url->is_https ? "https" : "http");
    if (!request->url->is_https) /* a proxy would take it away from this computer */
        tn_buf_append_text(out, "noproxy = \"*\"\n");
    tn_buf_append_text(out, "globoff\ninclude\nsilent\nshow-error\nno-buffer\n"
                            "suppress-connect-headers\nconnect-timeout = 30\n"
                            "speed-limit = 1\nspeed-time = 60\n"
                            "user-agent = \"tern/" TERN_VERSION_STRING "\"\n");
    if (request->first_byte > 0)
        tn_buf_printf(out, "range = \"%llu-\"\n", (unsigned long long)request->first_byte);
    if (request->token)
        tn_buf_printf(out, "header = \"Authorization: Bearer %s\"\n", request->token);
    if (out->failed)
        return tn_fail(err, TERN_MEMORY, "no memory for a request");
    return out->n_bytes <= TN_PROCESS_MAX_INPUT_BYTES
               ? TERN_OK
               : tn_fail(err, TERN_USAGE, "HF_TOKEN is too long");
}

/* ---- a transfer ---- */

tern_status tn_pull_fail_interrupted(struct tern_error *err)
{
    return tn_fail(err, TERN_INTERRUPTED, "interrupted; the same command continues the download");
}

static enum tn_failure failure_of(int exit_code)
{
    static const struct {
        int exit_code;
        enum tn_failure failure;
    } known[] = {{5, TN_FAILURE_TO_CONNECT},  /* proxy not found */
                 {6, TN_FAILURE_TO_CONNECT},  /* host not found */
                 {7, TN_FAILURE_TO_CONNECT},  /* no connection */
                 {16, TN_FAILURE_TRANSIENT},  /* HTTP/2 framing error */
                 {18, TN_FAILURE_TRANSIENT},  /* incomplete file */
                 {28, TN_FAILURE_TRANSIENT},  /* timeout */
                 {35, TN_FAILURE_TO_CONNECT}, /* no TLS connection */
                 {52, TN_FAILURE_TRANSIENT},  /* empty response */
                 {55, TN_FAILURE_TRANSIENT},  /* sending failed */
                 {56, TN_FAILURE_TRANSIENT},  /* receiving failed */
                 {92, TN_FAILURE_TRANSIENT}}; /* error of a stream */
    for (size_t i = 0; i < TN_COUNT_OF(known); i++)
        if (known[i].exit_code == exit_code)
            return known[i].failure;
    return TN_FAILURE_LASTING;
}

/* "curl: (6) Could not resolve host: x" without curl's name and number. */
static const char *without_code(const char *text)
{
    const char *bracket = strncmp(text, "curl: (", 7) == 0 ? strchr(text, ')') : NULL;
    return bracket && bracket[1] == ' ' ? bracket + 2 : text;
}

tern_status tn_transfer_close(struct tn_transfer *transfer, struct tern_error *err)
{
    char text[256];
    if (tn_stop_requested()) {
        tn_transfer_abort(transfer);
        return tn_pull_fail_interrupted(err);
    }
    const int code = tn_process_wait(transfer->process, text, sizeof text);
    transfer->process = NULL;
    tn_free(transfer->buffer);
    transfer->buffer = NULL;
    transfer->failure = failure_of(code);
    if (code == 0)
        return tn_ok(err);
    if (tn_stop_requested()) /* curl got the Ctrl-C first */
        return tn_pull_fail_interrupted(err);
    if (text[0])
        return tn_fail(err, TERN_NETWORK, "curl: %s (code %d)", without_code(text), code);
    return tn_fail(err, TERN_NETWORK, "curl ended with code %d", code);
}

static tern_status read_head(struct tn_transfer *transfer, struct tern_error *err)
{
    tern_status status = TERN_OK;
    while (transfer->n_taken == 0 && status == TERN_OK) {
        const size_t n =
            tn_process_read(transfer->process, transfer->buffer + transfer->n_buffered,
                            TN_RESPONSE_HEAD_MAX_BYTES - transfer->n_buffered);
        if (n == 0) {
            status = tn_transfer_close(transfer, err);
            if (status == TERN_OK) {
                transfer->failure = TN_FAILURE_TRANSIENT;
                status = tn_fail(err, TERN_NETWORK, "the server sent no complete answer");
            }
            return status;
        }
        transfer->n_buffered += n;
        transfer->n_taken = tn_response_head_parse(&transfer->head, transfer->buffer,
                                                   transfer->n_buffered, &status, err);
    }
    if (status != TERN_OK)
        tn_transfer_abort(transfer);
    return status;
}

static tern_status start(struct tn_transfer *transfer, const struct tn_request *request,
                         struct tern_error *err)
{
    static const char *const arguments[] = {"-q", "-K", "-", NULL};
    struct tn_buf config = {0};
    tern_status status = tn_curl_config(&config, request, err);
    if (status == TERN_OK)
        status = tn_process_start(&transfer->process, request->curl, arguments, config.data,
                                  config.n_bytes, err);
    tn_buf_fini(&config);
    return status;
}

tern_status tn_transfer_open(struct tn_transfer *out, const struct tn_request *request,
                             struct tern_error *err)
{
    *out = (struct tn_transfer){.buffer = tn_alloc(TN_RESPONSE_HEAD_MAX_BYTES)};
    if (!out->buffer)
        return tn_fail(err, TERN_MEMORY, "no memory for a download");
    const tern_status status = start(out, request, err);
    if (status != TERN_OK) {
        tn_transfer_abort(out);
        return status;
    }
    return read_head(out, err);
}

size_t tn_transfer_read(struct tn_transfer *transfer, void *dst, size_t n)
{
    const size_t n_left = transfer->n_buffered - transfer->n_taken;
    if (n_left == 0)
        return tn_process_read(transfer->process, dst, n);
    n = TN_MIN(n, n_left);
    memcpy(dst, transfer->buffer + transfer->n_taken, n);
    transfer->n_taken += n;
    return n;
}

void tn_transfer_abort(struct tn_transfer *transfer)
{
    tn_process_kill(transfer->process);
    transfer->process = NULL;
    tn_free(transfer->buffer);
    transfer->buffer = NULL;
}

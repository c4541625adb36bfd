/* SPDX-License-Identifier: MIT
 *
 * tern serve: checks the flags, reads the key, opens the models (hosted.c), runs the server
 * (src/server) and writes its log.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/error.h"
#include "close_off.h"
#include "hosted.h"
#include "output.h"
#include "plat/browser.h"
#include "plat/net.h"
#include "plat/plat.h"
#include "plat/sandbox.h"
#include "prompt.h"
#include "server/server.h"

#define MAX_KEY_BYTES 512u

struct serve {
    const struct tn_options *o;
    struct tn_hosting hosting;
    char *key;
    struct tn_file *log;
    bool log_failed;
    struct tn_affinity affinity; /* saved before the engine binds this thread */
    bool has_affinity;
};

/* ---- flags ---- */

static bool is_local(const char *host, bool *is_address)
{
    bool is_loopback;
    *is_address = tn_net_is_address(host, &is_loopback);
    return strcmp(host, "localhost") == 0 || (*is_address && is_loopback);
}

static tern_status check_host(const struct serve *s, struct tern_error *err)
{
    bool is_address;
    const char *host = s->o->host;
    if (is_local(host, &is_address))
        return TERN_OK;
    if (!is_address)
        return tn_fail(err, TERN_USAGE,
                       "--host \"%s\": must be localhost or a numeric address such as 0.0.0.0",
                       host);
    if (!s->key)
        return tn_fail(err, TERN_USAGE,
                       "--host %s lets other machines in: give a key with --api-key-file FILE or "
                       "$TERN_API_KEY",
                       host);
    return TERN_OK;
}

/* scheme://host or scheme://host:port, as sent by browsers; null: a page from a file. */
static bool is_origin(const char *text)
{
    const char *host = strstr(text, "://");
    return strcmp(text, "null") == 0 ||
           (host && host > text && host[3] && !host[3 + strcspn(host + 3, "/?#*@ ")]);
}

/* A name or an address without port; IPv6 addresses in brackets. */
static bool is_host_name(const char *text)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    return text[0] && (end ? !end[1] : !text[strcspn(text, "/:?#*@ ")]);
}

/* Refuses values that no client can send, which would have no effect. */
static tern_status check_allowed(const struct tn_options *o, struct tern_error *err)
{
    for (size_t i = 0; i < o->origins.n; i++)
        if (!is_origin(o->origins.items[i]))
            return tn_fail(err, TERN_USAGE,
                           "--allow-origin \"%.80s\": must be as browsers send it, such as "
                           "https://example.com or http://localhost:3000, without a path",
                           o->origins.items[i]);
    for (size_t i = 0; i < o->hosts.n; i++)
        if (!is_host_name(o->hosts.items[i]))
            return tn_fail(err, TERN_USAGE,
                           "--allow-host \"%.80s\": must be a name or an address without scheme "
                           "and port, such as laptop.local",
                           o->hosts.items[i]);
    return TERN_OK;
}

/* The key is the only line of the file, which may end in CR LF. */
static tern_status take_key(struct serve *s, char *text, size_t n, const char *where,
                            struct tern_error *err)
{
    while (n > 0 && strchr("\r\n \t", text[n - 1]))
        n--;
    if (n == 0 || n > MAX_KEY_BYTES)
        return tn_fail(err, TERN_USAGE, "%s: a key has 1 to %u characters, this one has %zu",
                       where, MAX_KEY_BYTES, n);
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] >= 0x7F)
            return tn_fail(err, TERN_USAGE,
                           "%s: a key is one line of ASCII characters without spaces", where);
    s->key = tn_copy_bytes(text, n);
    return s->key ? TERN_OK : tn_fail(err, TERN_MEMORY, "no memory for the key");
}

static tern_status read_key(struct serve *s, struct tern_error *err)
{
    char *text = NULL;
    size_t n;
    char *variable = getenv("TERN_API_KEY");
    if (!s->o->api_key_file)
        return variable && variable[0]
                   ? take_key(s, variable, strlen(variable), "$TERN_API_KEY", err)
                   : TERN_OK;
    tern_status status = tn_file_read_all(&text, &n, s->o->api_key_file, 4096, err);
    if (status == TERN_OK) {
        const size_t start = tn_prompt_mark(text, n);
        status = take_key(s, text + start, n - start, s->o->api_key_file, err);
    }
    tn_free(text);
    return status;
}

/* ---- messages ---- */

static void say_models(const struct tn_hosting *h)
{
    for (uint32_t i = 0; i < h->n_models; i++) {
        const struct tn_server_model *m = &h->models[i];
        struct tn_size_text size = tn_size_binary((double)m->bytes);
        if (m->embedder)
            tn_info_say("model %s: vectors of %u numbers, texts of up to %u tokens, %s when full",
                        m->id, tern_embedder_dim(m->embedder), m->n_ctx, size.text);
        else
            tn_info_say("model %s: %u answers at once, context %u each, kv %s, %s when full",
                        m->id, m->n_sequences, m->n_ctx, tern_kv_text(m->kv), size.text);
    }
    tn_info_say("memory: up to %s of %s, of these %s for bodies and prompts of requests",
                tn_size_binary((double)h->planned_bytes).text,
                tn_size_binary((double)h->available_bytes).text,
                tn_size_binary((double)h->request_bytes).text);
}

/* ---- the log ---- */

/* A write error is reported once: the server continues. */
static void write_log(void *arg, const char *line, size_t n)
{
    struct serve *s = arg;
    struct tern_error err;
    struct tn_buf out = {0};
    tn_buf_append(&out, line, n);
    tn_buf_append(&out, "\n", 1);
    if (!out.failed && !s->log)
        (void)tn_write_stream(TN_STDERR, out.data, out.n_bytes);
    else if (!out.failed && tn_file_append(s->log, out.data, out.n_bytes, &err) != TERN_OK &&
             !s->log_failed) {
        s->log_failed = true;
        tn_warning_say("--log: %s", err.detail);
    }
    tn_buf_fini(&out);
}

/* ---- serving ---- */

/* A closed reader does not matter; but a program that waits for the line must get it at once. */
static tern_status say_url(const char *host, uint16_t port, struct tern_error *err)
{
    bool is_v6 = strchr(host, ':') != NULL;
    const char *name = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    tn_out_printf(is_v6 ? "http://[%s]:%u\n" : "http://%s:%u\n", name, port);
    if (tn_out_has_failed())
        return tn_fail(err, TERN_OUTPUT, "the address cannot be written to standard output "
                                         "(disk full or closed?); without it: > /dev/null");
    return TERN_OK;
}

/* Starts the browser.  Without one the server still runs. */
static void open_page(const char *host, uint16_t port)
{
    char url[128];
    struct tern_error err;
    const bool is_v6 = strchr(host, ':') != NULL;
    const char *name = strcmp(host, "localhost") == 0 || strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1"
                       : strcmp(host, "::") == 0 ? "::1" : host;
    snprintf(url, sizeof url, is_v6 ? "http://[%s]:%u/" : "http://%s:%u/", name, port);
    if (tn_browser_open(url, &err) != TERN_OK)
        tn_warning_say("--open: %s; the page is at %s", err.detail, url);
}

static tern_status serve(struct serve *s, struct tern_error *err)
{
    const struct tn_options *o = s->o;
    struct tn_server *server;
    struct tn_server_config config = {
        .models = s->hosting.models, .n_models = s->hosting.n_models,
        .host = o->host, .port = (uint16_t)o->port, .key = s->key,
        .allow_origins = o->origins.items, .n_allow_origins = o->origins.n,
        .allow_hosts = o->hosts.items, .n_allow_hosts = o->hosts.n,
        .request_bytes = s->hosting.request_bytes,
        .affinity = s->has_affinity ? &s->affinity : NULL,
        .has_page = !o->no_page,
        .should_stop = tn_stop_callback,
        .log = s->log || o->level > 0 ? write_log : NULL,
        .arg = s,
    };
    tern_status status = tn_server_open(&server, &config, err);
    if (status != TERN_OK)
        return status;
    say_models(&s->hosting);
    if (o->n_positional == 0 && !o->model && !getenv("TERN_MODEL"))
        tn_info_say("no model was named; tern pull shows the available models, tern list the "
                    "installed ones");
    status = say_url(o->host, tn_server_port(server), err);
    if (status == TERN_OK) {
        if (o->opens_page)
            open_page(o->host, tn_server_port(server));
        /* All files are open: the rest only uses data from the sockets. */
        tn_close_off(o, TN_SANDBOX_SOCKETS, 0);
        status = tn_server_run(server, err);
    }
    tn_server_close(server);
    return status;
}

static void close_all(struct serve *s)
{
    tn_hosting_close(&s->hosting);
    tn_file_close(s->log);
    tn_free(s->key);
    tn_free(s);
}

int tn_cmd_serve(const struct tn_options *o)
{
    struct tern_error err;
    struct serve *s = tn_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tn_error_say(TERN_MEMORY, "no memory for the server");
    s->o = o;
    s->has_affinity = tn_thread_get_affinity(&s->affinity);
    tern_status status = tn_check_names(o, &err);
    if (status == TERN_OK && o->opens_page && o->no_page)
        status = tn_fail(&err, TERN_USAGE, "--open needs the page that --no-page leaves out");
    if (status == TERN_OK)
        status = read_key(s, &err);
    if (status == TERN_OK)
        status = check_host(s, &err);
    if (status == TERN_OK)
        status = check_allowed(o, &err);
    if (status == TERN_OK)
        status = tn_hosting_open(&s->hosting, o, &err);
    if (status == TERN_OK && o->log_file)
        status = tn_file_open_append(&s->log, o->log_file, &err);
    if (status == TERN_OK)
        status = serve(s, &err);
    close_all(s);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}

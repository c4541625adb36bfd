/* SPDX-License-Identifier: MIT
 *
 * tern serve: from flags to a server.  Models are opened, planned and given their schedulers
 * before anything listens; what does not fit the memory is refused then.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/log.h"
#include "output.h"
#include "plat/browser.h"
#include "plat/net.h"
#include "plat/plat.h"
#include "planned.h"
#include "server/server.h"
#include "template.h"

#define QUEUE 64u
#define DEFAULT_SEQUENCES 4u
#define MAX_KEY_BYTES 512u

struct serve {
    const struct tn_options *o;
    struct tern_engine *engine; /* of all models */
    struct tern_watch *watch;
    struct hosted {
        struct tn_opened opened;
        struct tn_planned *planned;
        struct tn_template template;
        struct tern_scheduler *scheduler;
        char *id;
    } hosted[TN_SERVER_MAX_MODELS];
    struct tn_server_model models[TN_SERVER_MAX_MODELS];
    uint32_t n_models;
    uint64_t planned_bytes; /* of the models so far, filled */
    char *key;
    struct tn_file *log;
    uint64_t n_logged;
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

/* The first line of the file; it may end in CR LF. */
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
    s->key = tn_alloc(n + 1);
    if (!s->key)
        return tn_fail(err, TERN_MEMORY, "no memory for the key");
    memcpy(s->key, text, n);
    s->key[n] = '\0';
    return TERN_OK;
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
    if (status == TERN_OK)
        status = take_key(s, text, n, s->o->api_key_file, err);
    tn_free(text);
    return status;
}

/* ---- models ---- */

/* The name of the file without its suffix; new memory. */
static char *make_id(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if (*c == '/' || *c == '\\')
            name = c + 1;
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".tern") == 0)
        n -= 5;
    char *id = tn_alloc(n + 1);
    if (id) {
        memcpy(id, name, n);
        id[n] = '\0';
    }
    return id;
}

static tern_status check_id(const struct serve *s, const char *id, struct tern_error *err)
{
    for (uint32_t i = 0; i < s->n_models; i++)
        if (strcmp(s->models[i].id, id) == 0)
            return tn_fail(err, TERN_USAGE, "two models have the name \"%s\"", id);
    return TERN_OK;
}

static bool may_grow(void *arg, uint64_t n_bytes)
{
    return tern_watch_may_grow(((struct serve *)arg)->watch, n_bytes);
}

static tern_status create_scheduler(struct serve *s, struct hosted *h, uint32_t n_sequences,
                                    struct tern_error *err)
{
    struct tern_scheduler_params params;
    tern_scheduler_params_default(&params);
    params.n_sequences = n_sequences;
    params.n_queue = QUEUE;
    params.n_ctx = h->planned->plan.n_ctx;
    params.kv = h->planned->plan.kv;
    params.may_grow = may_grow;
    params.arg = s;
    return tern_scheduler_create(&h->scheduler, s->engine, h->opened.model, &params, err);
}

/* Does all that is planned, with this scheduler full, fit what is available? */
static bool fits(const struct serve *s, const struct hosted *h, uint64_t *need, uint64_t *have)
{
    struct tern_scheduler_state state;
    const struct tern_plan *plan = &h->planned->plan;
    tern_scheduler_get_state(h->scheduler, &state);
    *need = state.bytes_full + plan->memory.process_bytes + plan->memory.model_bytes +
            s->planned_bytes;
    *have = plan->available_bytes > plan->reserve_bytes
                ? plan->available_bytes - plan->reserve_bytes : 0;
    return *need <= *have;
}

static tern_status refuse_size(const struct hosted *h, uint32_t n, uint64_t need, uint64_t have,
                               struct tern_error *err)
{
    return tn_fail(err, TERN_MEMORY,
                   "\"%s\" with %u answers at once and a context of %u needs %s, %s may be used; "
                   "lower --parallel or --ctx",
                   h->id, n, h->planned->plan.n_ctx, tn_size_binary((double)need).text,
                   tn_size_binary((double)have).text);
}

/* As many sequences as are asked for; else four, or as many as fit. */
static tern_status fit_sequences(struct serve *s, struct hosted *h, uint32_t *n,
                                 struct tern_error *err)
{
    uint64_t need = 0, have = 0;
    *n = s->o->parallel ? (uint32_t)s->o->parallel : DEFAULT_SEQUENCES;
    for (;; (*n)--) {
        tern_status status = create_scheduler(s, h, *n, err);
        if (status == TERN_OK && fits(s, h, &need, &have)) {
            s->planned_bytes += need - s->planned_bytes;
            return TERN_OK;
        }
        tern_scheduler_free(h->scheduler);
        h->scheduler = NULL;
        if (status != TERN_OK && status != TERN_MEMORY)
            return status;
        if (status != TERN_OK && (s->o->parallel || *n == 1))
            return status;
        if (s->o->parallel || *n == 1)
            return refuse_size(h, *n, need, have, err);
    }
}

/* The engine is made with the first model's plan; threads do not depend on the model. */
static tern_status create_engine(struct serve *s, const struct hosted *h, struct tern_error *err)
{
    tern_status status = tn_planned_create_engine(&s->engine, h->planned, err);
    if (status == TERN_OK)
        status = tern_watch_create(&s->watch, &h->planned->plan, NULL, err);
    return status;
}

static tern_status choose_template(struct serve *s, struct hosted *h, struct tern_error *err)
{
    const struct tern_chat_template *t;
    if (!s->o->template_name) { /* a model without one still continues texts */
        (void)tern_model_chat_template(&t, h->opened.model, NULL);
        if (!t)
            return TERN_OK;
    }
    return tn_template_choose(&h->template, s->o, h->opened.model, err);
}

static tern_status add_model(struct serve *s, const char *name, struct tern_error *err)
{
    struct hosted *h = &s->hosted[s->n_models];
    uint32_t n_sequences = 0;
    tern_status status =
        tn_open(&h->opened, s->o, name, TN_OPEN_TOKENIZER | TN_OPEN_MACHINE, err);
    if (status != TERN_OK)
        return status;
    const struct tern_model_config *config = tern_model_config(h->opened.model);
    h->id = make_id(tern_model_path(h->opened.model));
    if (!h->id)
        status = tn_fail(err, TERN_MEMORY, "no memory for a name");
    else if (s->o->ctx > config->context)
        status = tn_fail(err, TERN_USAGE, "--ctx %" PRIu64 ": \"%s\" has a context of %u",
                         s->o->ctx, h->id, config->context);
    else
        status = check_id(s, h->id, err);
    if (status == TERN_OK)
        status = tn_planned_make(&h->planned, s->o, &h->opened, 0, err);
    if (status == TERN_OK && !s->engine)
        status = create_engine(s, h, err);
    if (status == TERN_OK)
        status = choose_template(s, h, err);
    if (status == TERN_OK)
        status = fit_sequences(s, h, &n_sequences, err);
    if (status != TERN_OK)
        return status;
    struct tern_scheduler_state state;
    tern_scheduler_get_state(h->scheduler, &state);
    s->models[s->n_models++] = (struct tn_server_model){
        .id = h->id, .model = h->opened.model, .scheduler = h->scheduler,
        .n_sequences = n_sequences, .n_queue = QUEUE,
        .chat = h->template.t, .chat_params = h->template.params,
        .has_fixed_date = s->o->date != NULL,
        .n_ctx = h->planned->plan.n_ctx, .kv = h->planned->plan.kv,
        .default_new_tokens = h->planned->plan.default_new_tokens,
        .cap_new_tokens = h->planned->plan.cap_new_tokens,
        .bytes = state.bytes_full};
    return TERN_OK;
}

static tern_status add_models(struct serve *s, struct tern_error *err)
{
    const struct tn_options *o = s->o;
    tern_status status = TERN_OK;
    if (o->n_positional == 0)
        return add_model(s, NULL, err);
    if (o->n_positional > TN_SERVER_MAX_MODELS)
        return tn_fail(err, TERN_USAGE, "%u models are given, at most %u can be served",
                       o->n_positional, TN_SERVER_MAX_MODELS);
    for (uint32_t i = 0; i < o->n_positional && status == TERN_OK; i++)
        status = add_model(s, o->positional[i], err);
    return status;
}

static void say_models(const struct serve *s)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        const struct tn_server_model *m = &s->models[i];
        tn_info_say("model %s: %u answers at once, context %u each, kv %s, %s when full", m->id,
                    m->n_sequences, m->n_ctx, tern_kv_text(m->kv),
                    tn_size_binary((double)m->bytes).text);
    }
}

/* ---- the log ---- */

static void write_log(void *arg, const char *line, size_t n)
{
    struct serve *s = arg;
    struct tn_buf out = {0};
    tn_buf_append(&out, line, n);
    tn_buf_append(&out, "\n", 1);
    if (!out.failed && s->log &&
        tn_file_write_at(s->log, s->n_logged, out.data, out.n_bytes, NULL) == TERN_OK)
        s->n_logged += out.n_bytes;
    else if (!out.failed && !s->log)
        (void)tn_write_stream(TN_STDERR, out.data, out.n_bytes);
    tn_buf_fini(&out);
}

static bool should_stop(void *arg)
{
    (void)arg;
    return tn_stop_requested();
}

/* ---- serving ---- */

static void say_url(const char *host, uint16_t port)
{
    bool is_v6 = strchr(host, ':') != NULL;
    const char *name = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    tn_out_printf(is_v6 ? "http://[%s]:%u\n" : "http://%s:%u\n", name, port);
}

/* The one program that tern ever starts.  Without a browser the server runs all the same. */
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
        .models = s->models, .n_models = s->n_models,
        .host = o->host, .port = (uint16_t)o->port, .key = s->key,
        .allow_origins = o->origins.items, .n_allow_origins = o->origins.n,
        .allow_hosts = o->hosts.items, .n_allow_hosts = o->hosts.n,
        .has_page = !o->no_page,
        .cpu_level = tern_engine_cpu_level(s->engine),
        .should_stop = should_stop,
        .log = s->log || o->level > 0 ? write_log : NULL,
        .arg = s,
    };
    tern_status status = tn_server_open(&server, &config, err);
    if (status != TERN_OK)
        return status;
    say_models(s);
    say_url(o->host, tn_server_port(server));
    if (o->opens_page)
        open_page(o->host, tn_server_port(server));
    status = tn_server_run(server, err);
    tn_server_close(server);
    return status;
}

static void close_all(struct serve *s)
{
    for (uint32_t i = 0; i < TN_SERVER_MAX_MODELS; i++) {
        struct hosted *h = &s->hosted[i];
        tern_scheduler_free(h->scheduler);
        tn_template_fini(&h->template);
        tn_free(h->planned);
        tn_free(h->id);
    }
    tern_watch_free(s->watch);
    tern_engine_free(s->engine);
    for (uint32_t i = 0; i < TN_SERVER_MAX_MODELS; i++)
        tn_close(&s->hosted[i].opened);
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
    tern_status status = tn_check_names(o, &err);
    if (status == TERN_OK && o->opens_page && o->no_page)
        status = tn_fail(&err, TERN_USAGE, "--open needs the page that --no-page leaves out");
    if (status == TERN_OK)
        status = read_key(s, &err);
    if (status == TERN_OK)
        status = check_host(s, &err);
    if (status == TERN_OK)
        status = add_models(s, &err);
    if (status == TERN_OK && o->log_file)
        status = tn_file_create(&s->log, o->log_file, &err);
    if (status == TERN_OK)
        status = serve(s, &err);
    close_all(s);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}

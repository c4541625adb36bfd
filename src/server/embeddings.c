/* SPDX-License-Identifier: MIT
 *
 * POST /v1/embeddings, /api/embed and /api/embeddings: embeds texts.
 *
 * A reader thread converts all texts to ids first.  The engine thread then computes one text after
 * the other in batches and yields in between: to answers of other models, and to requests whose
 * texts are all short, which have their own embedder and queue.  The vectors are those of `tern
 * embed`.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "plat/plat.h"
#include "server/query.h"
#include "server/json_out.h"

#define MAX_INPUTS 2048u
#define MAX_NUMBERS ((uint64_t)2 << 20) /* numbers in one answer: 8 MiB, 26 as text */

struct vectors {
    struct tn_query query;
    const json_t *input;   /* of the request: one input, or an array of n_inputs */
    bool is_list;
    uint32_t n_inputs, i_input;
    uint32_t n_dim;
    bool as_base64;
    bool truncates;        /* truncate long texts instead of refusing them */
    struct tern_ids *texts; /* [n_inputs] */
    struct tern_embedder *embedder;
    bool is_begun;
    float *vector;         /* [n_dim] */
};

/* ---- the request ---- */

/* A text, or ids used unchanged; an array of either is not a single input. */
static bool is_one_input(const json_t *input)
{
    return json_is_string(input) ||
           (json_is_array(input) && json_is_number(json_array_get(input, 0)));
}

static bool read_input(struct vectors *v, const char *key, struct tn_refusal *r)
{
    v->input = tn_json_member(v->query.body, key);
    if (!v->input)
        return tn_refuse(r, 400, key, "\"%s\" is missing", key);
    if (strcmp(key, "prompt") == 0 && !json_is_string(v->input)) /* Ollama's older route */
        return tn_refuse(r, 400, key, "\"%s\" must be a string", key);
    v->is_list = json_is_array(v->input) && !is_one_input(v->input);
    size_t n = v->is_list ? json_array_size(v->input) : 1;
    if (n > MAX_INPUTS)
        return tn_refuse(r, 400, key, "\"%s\" has %zu texts; the limit is %u", key, n,
                         MAX_INPUTS);
    v->n_inputs = (uint32_t)n;
    return true;
}

static bool read_dimensions(struct vectors *v, struct tn_refusal *r)
{
    const uint32_t hidden = tern_model_config(v->query.model->model)->hidden;
    double n_dim = hidden;
    if (!tn_json_get_count(v->query.body, "dimensions", 1, hidden, &n_dim, r))
        return false;
    v->n_dim = (uint32_t)n_dim;
    if (v->n_dim * (uint64_t)v->n_inputs > MAX_NUMBERS)
        return tn_refuse(r, 400, "input",
                         "%u texts of %u numbers: an answer has at most %" PRIu64 " numbers",
                         v->n_inputs, v->n_dim, MAX_NUMBERS);
    v->vector = tn_alloc(v->n_dim * sizeof *v->vector);
    return v->vector || tn_refuse(r, 503, NULL, "no memory for a vector");
}

static bool read_encoding(struct vectors *v, struct tn_refusal *r)
{
    const char *format = "float";
    if (!tn_json_get_text(v->query.body, "encoding_format", &format, NULL, r))
        return false;
    v->as_base64 = strcmp(format, "base64") == 0;
    if (!v->as_base64 && strcmp(format, "float") != 0)
        return tn_refuse(r, 400, "encoding_format",
                         "\"encoding_format\" must be \"float\" or \"base64\"");
    return true;
}

/* ---- converting texts to ids ---- */

static bool refuse_length(const struct vectors *v, uint32_t i, bool is_bound, size_t n,
                          struct tn_refusal *r)
{
    tn_refuse(r, 400, "input",
              "This model's maximum context length is %u tokens. However, text %u of the input has "
              "%s%zu tokens. Please reduce its length.", v->query.model->n_ctx, i,
              is_bound ? "at least " : "", n);
    r->code = "context_length_exceeded";
    return false;
}

static bool encode(struct vectors *v, uint32_t i, const json_t *input, struct tn_refusal *r)
{
    const struct tern_model *model = v->query.model->model;
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    const size_t n_bytes = json_string_length(input);
    struct tern_error err;
    if (json_is_array(input))
        return tn_json_take_ids(input, "input", tern_model_config(model)->vocab, &v->texts[i], r);
    if (!json_is_string(input))
        return tn_refuse(r, 400, "input",
                         "\"input\" must be a string, an array of strings, ids, or arrays of ids");
    const size_t n_least = tern_tokenizer_min_ids(tokenizer, n_bytes);
    if (n_least > v->query.model->n_ctx && !v->truncates)
        return refuse_length(v, i, true, n_least, r);
    if (tern_tokenizer_encode(tokenizer, json_string_value(input), n_bytes,
                              TERN_ENCODE_ADD_SPECIAL, &v->texts[i], &err) == TERN_OK)
        return true;
    tn_refuse_error(r, &err);
    return false;
}

/* Keeps the tokens that the tokenizer appends: some models pool them. */
static void truncate(const struct vectors *v, struct tern_ids *ids)
{
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(v->query.model->model);
    const uint32_t last = ids->ids[ids->n - 1];
    ids->n = v->query.model->n_ctx;
    if (tern_tokenizer_is_special(tokenizer, last))
        ids->ids[ids->n - 1] = last;
}

static bool check_length(const struct vectors *v, uint32_t i, struct tn_refusal *r)
{
    const uint32_t n_ctx = v->query.model->n_ctx;
    struct tern_ids *ids = &v->texts[i];
    if (ids->n == 0)
        return tn_refuse(r, 400, "input", "text %u of \"input\" is empty", i);
    if (ids->n > n_ctx && v->truncates)
        truncate(v, ids);
    return ids->n <= n_ctx || refuse_length(v, i, false, ids->n, r);
}

/* Converts all texts; their memory is held until the request is answered. */
static bool encode_all(struct vectors *v, struct tn_refusal *r)
{
    struct tn_query *query = &v->query;
    query->is_long = !query->model->quick_embedder;
    v->texts = tn_alloc_zeroed(v->n_inputs + 1, sizeof *v->texts);
    if (!v->texts)
        return tn_refuse_memory(r);
    for (uint32_t i = 0; i < v->n_inputs; i++) {
        const json_t *input = v->is_list ? json_array_get(v->input, i) : v->input;
        const struct tern_ids *ids = &v->texts[i];
        if (!encode(v, i, input, r) || !check_length(v, i, r) ||
            !tn_body_hold(query->server, &query->request, ids->capacity * sizeof *ids->ids, r))
            return false;
        query->is_long = query->is_long || ids->n > TN_SERVER_QUICK_IDS;
    }
    v->embedder = query->is_long ? query->model->embedder : query->model->quick_embedder;
    return true;
}

/* ---- one text ---- */

static void append_vector(struct vectors *v)
{
    struct tn_buf *out = &v->query.out;
    if (v->as_base64) { /* little-endian, like all of tern's formats */
        tn_buf_append_text(out, "\"");
        tn_base64_append(out, v->vector, v->n_dim * sizeof *v->vector);
        tn_buf_append_text(out, "\"");
        return;
    }
    for (uint32_t i = 0; i < v->n_dim; i++)
        tn_buf_printf(out, "%c%.9g", i ? ',' : '[', (double)v->vector[i]);
    tn_buf_append_text(out, "]");
}

/* Runs a slice of the current text. */
static enum tn_slice run_text(struct vectors *v)
{
    const struct tern_ids *ids = &v->texts[v->i_input];
    struct tern_error err;
    bool is_done = false;
    const uint64_t start_ns = tn_now_ns();
    tern_status status = TERN_OK;
    if (!v->is_begun)
        status = tern_embedder_set_dim(v->embedder, v->n_dim, &err);
    if (status == TERN_OK && !v->is_begun)
        status = tern_embed_begin(v->embedder, ids->ids, ids->n, &err);
    if (status == TERN_OK)
        status = tern_embed_step(v->embedder, v->vector, &is_done, &err);
    v->query.prompt_s += tn_seconds_since(start_ns);
    if (status != TERN_OK)
        return tn_query_fail(&v->query, &err);
    v->is_begun = !is_done;
    if (!is_done)
        return TN_SLICE_STAYS;
    v->query.n_prompt_tokens += ids->n;
    return TN_SLICE_LAST;
}

static void fini(struct tn_query *query)
{
    struct vectors *v = (struct vectors *)query;
    for (uint32_t i = 0; v->texts && i < v->n_inputs; i++)
        tern_ids_free(&v->texts[i]);
    tn_free(v->texts);
    tn_free(v->vector);
}

/* ---- OpenAI ---- */

static bool read_openai(struct vectors *v, struct tn_refusal *r)
{
    if (!read_input(v, "input", r) || !read_encoding(v, r))
        return false;
    if (v->n_inputs == 0)
        return tn_refuse(r, 400, "input", "\"input\" is empty");
    return read_dimensions(v, r) && encode_all(v, r);
}

static void prepare_openai(struct tn_query *query)
{
    if (read_openai((struct vectors *)query, &query->refusal))
        tn_buf_append_text(&query->out, "{\"object\":\"list\",\"data\":[");
}

static enum tn_slice run_openai(struct tn_query *query)
{
    struct vectors *v = (struct vectors *)query;
    enum tn_slice slice = run_text(v);
    if (slice != TN_SLICE_LAST || query->refusal.status)
        return slice;
    tn_buf_printf(&query->out, "%s{\"object\":\"embedding\",\"index\":%u,\"embedding\":",
                  v->i_input ? "," : "", v->i_input);
    append_vector(v);
    tn_buf_append_text(&query->out, "}");
    if (++v->i_input < v->n_inputs)
        return TN_SLICE_YIELDS;
    tn_buf_append_text(&query->out, "],\"model\":");
    tn_json_text(&query->out, query->model->id);
    tn_buf_printf(&query->out,
                  ",\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"total_tokens\":%" PRIu64 "}}",
                  v->query.n_prompt_tokens, v->query.n_prompt_tokens);
    return TN_SLICE_LAST;
}

void tn_route_embeddings(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_query_kind kind = {
        .n_bytes = sizeof(struct vectors), .use = TN_USE_VECTORS, .error = tn_openai_error,
        .prepare = prepare_openai, .run = run_openai, .fini = fini};
    tn_query_start(server, conn, &kind);
}

/* ---- Ollama ---- */

/* Texts only.  The text "" gets an empty vector without an error. */
static bool read_ollama(struct vectors *v, const char *key, struct tn_refusal *r)
{
    v->truncates = true;
    if (!tn_json_get_bool(v->query.body, "truncate", &v->truncates, r) || !read_input(v, key, r))
        return false;
    if (json_is_array(v->input) && !v->is_list)
        return tn_refuse(r, 400, key, "\"%s\" must be a string or an array of strings", key);
    if (!v->is_list && json_string_length(v->input) == 0 && json_is_string(v->input))
        v->n_inputs = 0;
    return read_dimensions(v, r) && encode_all(v, r);
}

static void prepare_embed(struct tn_query *query)
{
    if (read_ollama((struct vectors *)query, "input", &query->refusal))
        tn_buf_append_text(&query->out, "{\"embeddings\":[");
}

static enum tn_slice end_ollama(struct vectors *v)
{
    struct tn_buf *out = &v->query.out;
    const char *called = json_string_value(json_object_get(v->query.body, "model"));
    tn_buf_append_text(out, "],\"model\":");
    tn_json_text(out, called ? called : v->query.model->id);
    tn_buf_printf(out,
                  ",\"total_duration\":%" PRIu64 ",\"load_duration\":1,"
                  "\"prompt_eval_count\":%" PRIu64 "}",
                  tn_now_ns() - v->query.waiting.request_ns + 1, v->query.n_prompt_tokens);
    return TN_SLICE_LAST;
}

static enum tn_slice run_ollama(struct tn_query *query)
{
    struct vectors *v = (struct vectors *)query;
    if (v->n_inputs > 0) {
        enum tn_slice slice = run_text(v);
        if (slice != TN_SLICE_LAST || query->refusal.status)
            return slice;
        tn_buf_append_text(&query->out, v->i_input ? "," : "");
        append_vector(v);
        v->i_input++;
    }
    return v->i_input < v->n_inputs ? TN_SLICE_YIELDS : end_ollama(v);
}

void tn_route_ollama_embed(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_query_kind kind = {
        .n_bytes = sizeof(struct vectors), .use = TN_USE_VECTORS, .error = tn_ollama_error,
        .prepare = prepare_embed, .run = run_ollama, .fini = fini};
    tn_query_start(server, conn, &kind);
}

/* The older route: a single text. */
static void prepare_prompt(struct tn_query *query)
{
    (void)read_ollama((struct vectors *)query, "prompt", &query->refusal);
}

static enum tn_slice run_prompt(struct tn_query *query)
{
    struct vectors *v = (struct vectors *)query;
    enum tn_slice slice = v->n_inputs > 0 ? run_text(v) : TN_SLICE_LAST;
    if (slice != TN_SLICE_LAST || query->refusal.status)
        return slice;
    tn_buf_append_text(&query->out, "{\"embedding\":");
    if (v->n_inputs > 0)
        append_vector(v);
    else
        tn_buf_append_text(&query->out, "[]");
    tn_buf_append_text(&query->out, "}");
    return TN_SLICE_LAST;
}

void tn_route_ollama_embeddings(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_query_kind kind = {
        .n_bytes = sizeof(struct vectors), .use = TN_USE_VECTORS, .error = tn_ollama_error,
        .prepare = prepare_prompt, .run = run_prompt, .fini = fini};
    tn_query_start(server, conn, &kind);
}

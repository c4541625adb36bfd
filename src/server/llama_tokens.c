/* SPDX-License-Identifier: MIT
 *
 * Further routes of llama.cpp's server: POST /tokenize and /detokenize, GET /props and /slots;
 * of vLLM's, GET /tokenizer_info and the names that its /tokenize has.
 *
 * /tokenize and /detokenize are queries on a reader thread; the others answer at once.
 */
#include <string.h>

#include "base/utf8.h"
#include "plat/sandbox.h"
#include "server/query.h"
#include "server/json_out.h"
#include "server/llama.h"
#include "tern/version.h"

/* ---- text and ids ---- */

static bool is_utf8(const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint32_t c;
        size_t n_character = tn_utf8_character(bytes + i, n - i, &c);
        if (n_character == 0)
            return false;
        i += n_character;
    }
    return true;
}

/* {"id":5,"piece":"a"}; the piece is a list of bytes if it is not valid text. */
static void append_piece(struct tn_buf *out, const struct tern_tokenizer *tokenizer, uint32_t id)
{
    size_t n;
    const char *bytes = tern_tokenizer_token_bytes(tokenizer, id, &n);
    tn_buf_printf(out, "{\"id\":%u,\"piece\":", id);
    if (is_utf8(bytes, n))
        tn_json_string(out, bytes, n);
    else
        tn_json_bytes(out, bytes, n);
    tn_buf_append_text(out, "}");
}

/* Bytes of an id and a comma; with a piece also its member name and the piece, escaped. */
#define ID_BYTES 11u
#define PIECE_BYTES 24u

static size_t n_token_bytes(const struct tern_tokenizer *tokenizer, const struct tern_ids *ids)
{
    size_t sum = 0, n;
    for (size_t i = 0; i < ids->n; i++) {
        (void)tern_tokenizer_token_bytes(tokenizer, ids->ids[i], &n);
        sum += n;
    }
    return sum;
}

/* Holds memory before the answer is written: a short text can have a long answer. */
static bool hold_ids(struct tn_query *query, const struct tern_tokenizer *tokenizer,
                     const struct tern_ids *ids, bool with_pieces)
{
    size_t bound = ids->n * ID_BYTES;
    if (with_pieces)
        bound += ids->n * PIECE_BYTES + n_token_bytes(tokenizer, ids) * TN_JSON_ESCAPED;
    return tn_body_hold_out(query->server, &query->request, bound, &query->refusal);
}

/* Reads the text, llama.cpp's "content" or vLLM's "prompt", and the flags for encoding it. */
static bool read_text(const json_t *body, const char **text, size_t *n, uint32_t *flags,
                      struct tn_refusal *r)
{
    bool adds_special = tn_json_member(body, "prompt") != NULL, parses_special = true;
    if (tn_json_member(body, "messages"))
        return tn_refuse(r, 400, "messages",
                         "\"messages\" are not supported here; /v1/messages/count_tokens counts "
                         "the tokens of a conversation");
    if (!tn_json_get_text(body, "prompt", text, n, r) ||
        !tn_json_get_text(body, "content", text, n, r) ||
        !tn_json_get_bool(body, "add_special", &adds_special, r) ||
        !tn_json_get_bool(body, "add_special_tokens", &adds_special, r) ||
        !tn_json_get_bool(body, "parse_special", &parses_special, r))
        return false;
    *flags = (adds_special ? TERN_ENCODE_ADD_SPECIAL : 0) |
             (parses_special ? TERN_ENCODE_PARSE_SPECIAL : 0);
    return true;
}

static enum tn_slice tokenize(struct tn_query *query)
{
    struct tn_refusal *r = &query->refusal;
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(query->model->model);
    const char *text = NULL;
    size_t n = 0;
    uint32_t flags = 0;
    bool with_pieces = false;
    struct tern_ids ids = {0};
    struct tern_error err;
    if (!read_text(query->body, &text, &n, &flags, r) ||
        !tn_json_get_bool(query->body, "with_pieces", &with_pieces, r))
        return TN_SLICE_LAST;
    if (text && tern_tokenizer_encode(tokenizer, text, n, flags, &ids, &err) != TERN_OK) {
        tern_ids_free(&ids);
        return tn_query_fail(query, &err);
    }
    const size_t n_ids = hold_ids(query, tokenizer, &ids, with_pieces) ? ids.n : 0;
    tn_buf_append_text(&query->out, "{\"tokens\":[");
    for (size_t i = 0; i < n_ids; i++) {
        tn_buf_append_text(&query->out, i ? "," : "");
        if (with_pieces)
            append_piece(&query->out, tokenizer, ids.ids[i]);
        else
            tn_buf_printf(&query->out, "%u", ids.ids[i]);
    }
    tn_buf_printf(&query->out, "],\"count\":%zu,\"max_model_len\":%u}", n_ids,
                  query->model->n_ctx);
    tern_ids_free(&ids);
    return TN_SLICE_LAST;
}

static enum tn_slice detokenize(struct tn_query *query)
{
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(query->model->model);
    const json_t *tokens = tn_json_member(query->body, "tokens");
    struct tern_ids ids = {0};
    struct tern_error err;
    char *text = NULL;
    size_t n = 0;
    if (tokens && !json_is_array(tokens)) {
        tn_refuse(&query->refusal, 400, "tokens", "\"tokens\" must be an array of ids");
        return TN_SLICE_LAST;
    }
    bool is_good = tn_json_take_ids(tokens, "tokens", tern_tokenizer_n_tokens(tokenizer), &ids,
                                    &query->refusal);
    is_good = is_good && tn_body_hold_out(query->server, &query->request,
                                          n_token_bytes(tokenizer, &ids) * (TN_JSON_ESCAPED + 1),
                                          &query->refusal);
    if (is_good && tern_tokenizer_decode(tokenizer, ids.ids, ids.n, false, &text, &n, &err) ==
                       TERN_OK) {
        tn_buf_append_text(&query->out, "{\"content\":");
        tn_json_string(&query->out, text, n);
        tn_buf_append_text(&query->out, "}");
    } else if (is_good) {
        tn_refuse_error(&query->refusal, &err);
    }
    tern_text_free(text);
    tern_ids_free(&ids);
    return TN_SLICE_LAST;
}

void tn_route_tokenize(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_query_kind kind = {.n_bytes = sizeof(struct tn_query),
                                             .use = TN_USE_ANY,
                                             .error = tn_openai_error,
                                             .run = tokenize};
    tn_query_start(server, conn, &kind);
}

void tn_route_detokenize(struct tn_server *server, struct tn_conn *conn)
{
    static const struct tn_query_kind kind = {.n_bytes = sizeof(struct tn_query),
                                             .use = TN_USE_ANY,
                                             .error = tn_openai_error,
                                             .run = detokenize};
    tn_query_start(server, conn, &kind);
}

/* ---- status of the server ---- */

void tn_llama_append_settings(struct tn_buf *out, const struct tn_gen *gen)
{
    const struct tern_sampler_params *s = &gen->sampler;
    tn_buf_printf(out,
                  "{\"n_predict\":%u,\"max_tokens\":%u,\"seed\":%llu,\"temperature\":%g,"
                  "\"top_k\":%u,\"top_p\":%g,\"min_p\":%g,\"repeat_last_n\":%u,"
                  "\"repeat_penalty\":%g,\"presence_penalty\":%g,\"frequency_penalty\":%g,"
                  "\"ignore_eos\":%s,\"stream\":%s,\"n_probs\":%u,\"stop\":[",
                  gen->max_tokens, gen->max_tokens, (unsigned long long)s->seed,
                  (double)s->temperature, s->top_k, (double)s->top_p, (double)s->min_p,
                  s->penalty_last, (double)s->repeat_penalty, (double)s->presence_penalty,
                  (double)s->frequency_penalty, gen->ignores_eos ? "true" : "false",
                  gen->streams ? "true" : "false", gen->n_top);
    for (uint32_t i = 0; i < gen->n_stops; i++) {
        tn_buf_append_text(out, i ? "," : "");
        tn_json_text(out, gen->stops[i]);
    }
    tn_buf_append_text(out, "]}");
}

/* The model named by "?model=", else the first that generates text.  NULL: refused. */
static const struct tn_server_model *find_model(struct tn_server *server,
                                                const struct tn_http_request *request,
                                                struct tn_refusal *refusal)
{
    struct tn_buf name = {0};
    const struct tn_server_model *model = &server->config.models[0];
    if (tn_http_query(request, "model", &name)) {
        model = tn_server_find_model(server, tn_buf_text(&name), TN_USE_TEXT, refusal);
    } else {
        for (uint32_t i = server->config.n_models; i-- > 0;)
            if (!server->config.models[i].embedder)
                model = &server->config.models[i];
    }
    tn_buf_fini(&name);
    return model;
}

static uint32_t n_processing(const struct tn_server *server, const struct tn_server_model *model)
{
    return TN_MIN(server->n_jobs[tn_server_index(server, model)], model->n_sequences);
}

static void append_slot(struct tn_buf *out, const struct tn_server *server,
                        const struct tn_server_model *model, uint32_t i)
{
    tn_buf_printf(out, "{\"id\":%u,\"n_ctx\":%u,\"speculative\":false,\"is_processing\":%s}", i,
                  model->n_ctx, i < n_processing(server, model) ? "true" : "false");
}

static void append_token(struct tn_buf *out, const char *key, const struct tern_model *model,
                         uint32_t id)
{
    size_t n = 0;
    const char *bytes =
        id == TERN_NO_ID ? NULL
                         : tern_tokenizer_token_bytes(tern_model_tokenizer(model), id, &n);
    tn_buf_printf(out, ",\"%s\":", key);
    tn_json_string(out, bytes, n);
}

/* ,"chat_template":...,"chat_template_caps":{...} */
static void append_template(struct tn_buf *out, const struct tn_server *server,
                            const struct tn_server_model *model)
{
    const char *knows_tools =
        server->has_tools[tn_server_index(server, model)] ? "true" : "false";
    tn_buf_append_text(out, ",\"chat_template\":");
    tn_json_text(out, model->chat ? tern_chat_template_source(model->chat) : "");
    tn_buf_printf(out,
                  ",\"chat_template_caps\":{\"supports_tools\":%s,\"supports_tool_calls\":%s,"
                  "\"supports_parallel_tool_calls\":%s}", knows_tools, knows_tools, knows_tools);
}

/* ,"bos_token":...,"eos_token":... */
static void append_limits(struct tn_buf *out, const struct tern_model *model)
{
    const struct tern_model_config *config = tern_model_config(model);
    append_token(out, "bos_token", model, config->bos_id);
    append_token(out, "eos_token", model,
                 config->n_stop_ids ? config->stop_ids[0] : TERN_NO_ID);
}

void tn_route_tokenizer_info(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf body = {0};
    struct tn_refusal refusal;
    const struct tn_server_model *model = find_model(server, &conn->request, &refusal);
    if (!model) {
        tn_reply_error(conn, tn_openai_error, &refusal);
        return;
    }
    tn_buf_printf(&body, "{\"model_max_length\":%u", model->n_ctx);
    append_limits(&body, model->model);
    tn_buf_append_text(&body, "}");
    tn_reply_json(conn, 200, &body);
}

void tn_route_props(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf body = {0};
    struct tn_gen gen;
    struct tn_refusal refusal;
    const struct tn_server_model *model = find_model(server, &conn->request, &refusal);
    if (!model) {
        tn_reply_error(conn, tn_openai_error, &refusal);
        return;
    }
    tn_gen_init(&gen, model);
    tn_buf_printf(&body, "{\"default_generation_settings\":{\"n_ctx\":%u,\"params\":",
                  model->n_ctx);
    tn_llama_append_settings(&body, &gen);
    tn_buf_printf(&body, "},\"total_slots\":%u,\"model_alias\":", model->n_sequences);
    tn_json_text(&body, model->id);
    tn_buf_append_text(&body, ",\"model_path\":"); /* the file name only, not its folder */
    tn_json_text(&body, model->id);
    append_limits(&body, model->model);
    append_template(&body, server, model);
    tn_buf_append_text(&body, ",\"modalities\":{\"vision\":false,\"audio\":false},"
                              "\"build_info\":\"tern-" TERN_VERSION_STRING "\","
                              "\"is_sleeping\":false,\"sandboxed\":");
    tn_buf_append_text(&body, tn_sandbox_is_active() ? "true}" : "false}");
    tn_gen_fini(&gen);
    tn_reply_json(conn, 200, &body);
}

static bool asks_for_a_free_slot(const struct tn_http_request *request)
{
    struct tn_buf value = {0};
    const bool asks = tn_http_query(request, "fail_on_no_slot", &value) &&
                      strcmp(tn_buf_text(&value), "1") == 0;
    tn_buf_fini(&value);
    return asks;
}

void tn_route_slots(struct tn_server *server, struct tn_conn *conn)
{
    struct tn_buf body = {0};
    struct tn_refusal refusal;
    const struct tn_server_model *model = find_model(server, &conn->request, &refusal);
    bool is_good = model != NULL;
    if (is_good && asks_for_a_free_slot(&conn->request) &&
        n_processing(server, model) == model->n_sequences)
        is_good = tn_refuse(&refusal, 503, NULL, "no slot is free");
    if (!is_good) {
        tn_reply_error(conn, tn_openai_error, &refusal);
        return;
    }
    tn_buf_append_text(&body, "[");
    for (uint32_t i = 0; i < model->n_sequences; i++) {
        tn_buf_append_text(&body, i ? "," : "");
        append_slot(&body, server, model, i);
    }
    tn_buf_append_text(&body, "]");
    tn_reply_json(conn, 200, &body);
}

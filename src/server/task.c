/* SPDX-License-Identifier: MIT
 *
 * Answers: from jobs to clients.
 */
#include "server/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "server/answer_schema.h"
#include "server/choice.h"
#include "server/conn_limits.h"
#include "server/metrics.h"

/* ---- beginning ---- */

static void set_date(struct tern_date *date)
{
    struct tm t;
    if (tn_local_time(&t))
        *date = (struct tern_date){t.tm_year + 1900, (uint8_t)(t.tm_mon + 1),
                                   (uint8_t)t.tm_mday, (uint8_t)t.tm_hour, (uint8_t)t.tm_min,
                                   (uint8_t)TN_MIN(t.tm_sec, 59)};
}

/* Asked on the thread that renders: nobody waits for the text when the client is gone or the server
 * stops. */
static bool should_stop_rendering(void *arg)
{
    const struct tn_task *answer = arg;
    const struct tern_chat_params *params = &answer->model->chat_params;
    return tn_work_errand_is_cancelled(&answer->errand) ||
           atomic_load(&answer->server->is_stopping) ||
           (params->should_stop && params->should_stop(params->arg));
}

struct tn_task *tn_task_new(struct tn_server *server, struct tn_conn *conn,
                                const struct tn_task_format *format)
{
    struct tn_refusal refusal;
    const struct tn_server_model *model;
    struct tn_body body;
    const bool is_read =
        tn_request_read(server, conn, TN_USE_TEXT, &body, &model, &refusal);
    struct tn_task *answer = is_read ? tn_alloc_zeroed(1, sizeof *answer) : NULL;
    if (is_read && !answer)
        tn_refuse(&refusal, 503, NULL, "no memory for the request");
    if (!answer) {
        tn_body_free(server, &body);
        tn_reply_error(conn, format->error, &refusal);
        return NULL;
    }
    answer->server = server;
    answer->conn = conn;
    answer->format = format;
    answer->model = model;
    answer->request = body;
    answer->body = body.root;
    answer->n_prompts = 1;
    answer->created = (int64_t)time(NULL);
    answer->waiting.began_ns = answer->waiting.written_ns = tn_now_ns();
    snprintf(answer->id, sizeof answer->id, "%016" PRIx64 "%" PRIx64,
             server->random * 0x9E3779B97F4A7C15u + server->n_ids, server->n_ids);
    server->n_ids++;
    answer->chat_params = model->chat_params;
    answer->chat_params.should_stop = should_stop_rendering;
    answer->chat_params.arg = answer;
    if (!model->has_fixed_date)
        set_date(&answer->chat_params.date);
    tn_gen_init(&answer->gen, model);
    answer->gen.seed = body.seed;
    return answer;
}

void tn_task_free(struct tn_task *answer)
{
    for (uint32_t i = 0; i < TN_GEN_MAX_CHOICES; i++) {
        tn_choice_fini(&answer->choices[i]);
        tern_ids_free(&answer->more_ids[i]);
    }
    tn_gen_fini(&answer->gen);
    tern_ids_free(&answer->ids);
    if (answer->body != answer->request.root)
        json_decref(answer->body);
    tn_body_free(answer->server, &answer->request);
    tn_free(answer);
}

void tn_task_refuse(struct tn_task *answer, const struct tn_refusal *refusal)
{
    tn_reply_error(answer->conn, answer->format->error, refusal);
    tn_task_free(answer);
}

static const struct tern_ids *ids_of(const struct tn_task *answer, uint32_t i_prompt)
{
    return i_prompt == 0 ? &answer->ids : &answer->more_ids[i_prompt];
}

bool tn_task_refuse_length(const struct tn_task *answer, bool is_bound, size_t n_ids,
                           struct tn_refusal *refusal)
{
    tn_refuse(refusal, 400, answer->gen.api->conversation,
              "This model's maximum context length is %u tokens. However, your messages resulted "
              "in %s%zu tokens. Please reduce the length of the messages.",
              answer->model->n_ctx, is_bound ? "at least " : "", n_ids);
    refusal->code = "context_length_exceeded";
    return false;
}

bool tn_task_may_fit(const struct tn_task *answer, size_t n_bytes, struct tn_refusal *refusal)
{
    const size_t n =
        tern_tokenizer_min_ids(tern_model_tokenizer(answer->model->model), n_bytes);
    const bool is_counted = answer->gen.n_choices == 0; /* of any length */
    return is_counted || n <= answer->model->n_ctx ||
           tn_task_refuse_length(answer, true, n, refusal);
}

static bool check_prompts(const struct tn_task *answer, uint32_t n_choices,
                          struct tn_refusal *refusal)
{
    for (uint32_t i = 0; i < answer->n_prompts; i++) {
        size_t n = ids_of(answer, i)->n;
        if (n == 0)
            return tn_refuse(refusal, 400, "prompt", "the prompt is empty");
        if (n >= answer->model->n_ctx && !(n == answer->model->n_ctx && !answer->gen.max_tokens))
            return tn_task_refuse_length(answer, false, n, refusal);
    }
    uint32_t room = answer->model->n_sequences + answer->model->n_queue;
    uint32_t n_jobs = answer->server->n_jobs[answer->model - answer->server->config.models];
    if (n_jobs + n_choices > room)
        return tn_refuse(refusal, 503, NULL, "the server is busy: %u requests wait", n_jobs);
    return true;
}

static void prepare_job(struct tn_task *answer, uint32_t i)
{
    struct tn_job *job = &answer->choices[i].job;
    const struct tn_gen *gen = &answer->gen;
    const struct tern_ids *ids = ids_of(answer, i / gen->n_choices);
    job->i_model = (uint32_t)(answer->model - answer->server->config.models);
    job->request = (struct tern_request){
        .ids = ids->ids, .n_ids = ids->n,
        .sampler = gen->sampler,
        .max_tokens = gen->max_tokens,
        .ignore_eos = gen->ignores_eos,
        .stop_strings = gen->stops, .n_stop_strings = gen->n_stops,
        .grammar = gen->grammar,
        .n_logprobs = gen->has_logprobs ? 1 + gen->n_top : 0,
        .prompt_logprobs = answer->echoes && gen->has_logprobs,
        .n_draft = answer->model->n_draft,
        .n_system = answer->marks.n_system, .n_turn = answer->marks.n_turn,
    };
    job->request.sampler.seed += i % gen->n_choices;
    job->biases = gen->biases;
    job->n_biases = gen->n_biases;
    job->owner = answer;
    job->i_choice = i;
    answer->choices[i].end_id = TERN_NO_ID;
}

static void on_gone(void *arg)
{
    struct tn_task *answer = arg;
    answer->conn = NULL;
    tn_work_cancel_errand(&answer->errand);
    for (uint32_t i = 0; i < answer->n_choices; i++)
        if (!answer->choices[i].has_ended)
            tn_work_cancel(answer->server->work, &answer->choices[i].job);
}

void tn_task_write(struct tn_task *answer, const char *bytes, size_t n)
{
    if (!answer->conn)
        return;
    tn_stream_write(answer->conn, bytes, n);
    answer->waiting.written_ns = tn_now_ns();
}

void tn_task_break(struct tn_task *answer)
{
    if (answer->conn)
        tn_conn_drop(answer->conn);
}

static void begin_stream(struct tn_task *answer)
{
    tn_stream_begin(answer->conn, 200, answer->format->stream_type);
    answer->format->begin(answer);
}

static bool has_stream(const struct tn_task *answer)
{
    return answer->gen.streams && answer->n_choices > 0;
}

static void beat(struct tn_task *answer)
{
    const struct tn_task_format *format = answer->format;
    if (format->beat)
        format->beat(answer);
    else if (format->heartbeat)
        tn_task_write(answer, format->heartbeat, strlen(format->heartbeat));
}

void tn_task_tick(struct tn_task *answer, uint64_t now_ns)
{
    if (!answer->gen.streams)
        tn_waiting_tick(&answer->waiting, answer->conn, now_ns);
    else if (has_stream(answer) && now_ns - answer->waiting.written_ns > TN_HEARTBEAT_NS)
        beat(answer);
}

/* To a client that is gone this write fails; before a stream has begun, its head does the same. */
static void on_end(void *arg)
{
    struct tn_task *answer = arg;
    if (has_stream(answer))
        beat(answer);
}

/* The client is told what went wrong, in a stream as its last event. */
static void refuse(struct tn_task *answer, const struct tn_refusal *refusal)
{
    struct tn_conn *conn = answer->conn;
    bool is_counted = false; /* by the status of the answer */
    answer->is_ended = true;
    conn->user = (struct tn_conn_user){0};
    if (has_stream(answer)) {
        answer->format->fail(answer, refusal);
        tn_stream_end(conn);
    } else {
        is_counted = tn_waiting_refuse(&answer->waiting, conn, refusal, answer->format->error);
    }
    if (!is_counted)
        tn_metrics_count_refusal(answer->server, refusal->status, refusal->code);
}

/* The same, once, and what is still computed for it ends. */
static void fail(struct tn_task *answer, const struct tn_refusal *refusal)
{
    if (!answer->conn)
        return;
    refuse(answer, refusal);
    on_gone(answer);
}

static void on_stop(void *arg)
{
    struct tn_refusal refusal;
    tn_refuse_end(&refusal);
    fail(arg, &refusal);
}

static void on_tick(void *arg, uint64_t now_ns)
{
    tn_task_tick(arg, now_ns);
}

static void forget(struct tn_server *server, struct tn_task *answer)
{
    for (struct tn_task **p = &server->answers; *p; p = &(*p)->next)
        if (*p == answer) {
            *p = answer->next;
            break;
        }
    tn_task_free(answer);
}

static void submit(struct tn_task *answer)
{
    struct tn_server *server = answer->server;
    if (answer->gen.streams)
        begin_stream(answer);
    for (uint32_t i = 0; i < answer->n_choices; i++) {
        prepare_job(answer, i);
        server->n_jobs[answer->choices[i].job.i_model]++;
        tn_work_submit(server->work, &answer->choices[i].job);
    }
}

static enum tn_part run_prepare(void *arg)
{
    struct tn_task *answer = arg;
    struct tn_refusal *refusal = &answer->refusal;
    const bool has_schema = answer->gen.form.kind != TN_FORM_TEXT;
    if ((!has_schema || tn_answer_schema_compile(answer, refusal)) &&
        answer->prepare(answer, refusal))
        refusal->status = 0;
    return TN_PART_LAST;
}

/* An id of a prompt or an answer: the task's, the scheduler's, its text, two for drafts. */
#define ID_BYTES 24u
/* Its text again, as it came. */
#define RAW_BYTES 8u
/* A log-probability and the JSON of it. */
#define LOGPROB_BYTES 64u

/* Of all choices, each with its prompt and the most that it may become. */
static size_t answer_bytes(const struct tn_task *answer)
{
    const size_t per_id =
        ID_BYTES + (answer->keeps_raw ? RAW_BYTES : 0) +
        (answer->gen.has_logprobs ? (1 + answer->gen.n_top) * LOGPROB_BYTES : 0);
    size_t n = 0;
    for (uint32_t i = 0; i < answer->n_prompts; i++)
        n += ids_of(answer, i)->n + answer->gen.max_tokens;
    return n * answer->gen.n_choices * per_id;
}

/* Of a whole answer. */
static void refuse_memory(struct tn_task *answer)
{
    struct tn_refusal refusal;
    tn_refuse(&refusal, 503, NULL, "no memory for the answer");
    refuse(answer, &refusal);
}

static void end_answer(struct tn_task *answer)
{
    struct tn_conn *conn = answer->conn;
    struct tn_buf body = {0};
    if (!conn)
        return;
    conn->user = (struct tn_conn_user){0};
    answer->is_ended = true;
    answer->format->end(answer, &body);
    if (answer->gen.streams)
        tn_stream_end(conn);
    else if (body.failed)
        refuse_memory(answer);
    else
        tn_waiting_end(&answer->waiting, conn, body.data, body.n_bytes);
    tn_buf_fini(&body);
    answer->conn = NULL;
}

static void refuse_started(struct tn_task *answer)
{
    refuse(answer, &answer->refusal);
    forget(answer->server, answer);
}

static void on_prepared(void *arg)
{
    struct tn_task *answer = arg;
    uint32_t n_choices = answer->n_prompts * answer->gen.n_choices;
    if (answer->conn && answer->refusal.status == 0 && n_choices == 0)
        end_answer(answer); /* it only counted */
    if (!answer->conn) {
        forget(answer->server, answer);
        return;
    }
    if (answer->refusal.status == 0 && check_prompts(answer, n_choices, &answer->refusal) &&
        tn_body_hold_answer(answer->server, &answer->request, answer_bytes(answer),
                            &answer->refusal)) {
        answer->n_choices = n_choices;
        submit(answer);
        return;
    }
    refuse_started(answer);
}

void tn_task_start(struct tn_task *answer, tn_task_prepare_fn *prepare)
{
    struct tn_server *server = answer->server;
    answer->prepare = prepare;
    answer->next = server->answers;
    server->answers = answer;
    tn_conn_hold(answer->conn,
                 &(struct tn_conn_user){
                     .on_gone = on_gone, .on_end = on_end, .on_tick = on_tick,
                     .on_stop = on_stop, .arg = answer});
    answer->errand =
        (struct tn_errand){.run = run_prepare, .done = on_prepared, .owner = answer};
    tn_work_run_errand(tn_body_thread(server, answer->gen.has_form), &answer->errand);
}

void tn_task_answer(struct tn_server *server, struct tn_conn *conn,
                    const struct tn_task_format *format, tn_task_read_fn *read,
                    tn_task_prepare_fn *prepare)
{
    struct tn_refusal refusal;
    struct tn_task *answer = tn_task_new(server, conn, format);
    if (answer && read(answer, &refusal))
        tn_task_start(answer, prepare);
    else if (answer)
        tn_task_refuse(answer, &refusal);
}

/* ---- going on ---- */

static void take_token(struct tn_task *answer, struct tn_choice *choice,
                       const struct tn_message *m)
{
    tn_choice_take(answer, choice, m);
    if (answer->gen.streams && answer->conn && !tn_choice_has_lost(choice) &&
        (tn_choice_has_more(answer, choice) || answer->gen.has_logprobs))
        answer->format->more(answer, choice);
}

/* The first id of a prompt has no log-probabilities: its entries are empty. */
static void take_prompt_id(struct tn_task *answer, struct tn_choice *choice,
                           const struct tn_message *m)
{
    struct tern_token_logprob none = {.id = TERN_NO_ID};
    uint32_t n = 1 + answer->gen.n_top;
    for (uint32_t i = 0; i < n; i++) {
        const struct tern_token_logprob *entry = i < m->n_logprobs ? &m->logprobs[i] : &none;
        struct tern_token_logprob copy = *entry;
        if (i == 0)
            copy.id = m->id;
        tn_buf_append(&choice->prompt_logprobs, &copy, sizeof copy);
    }
    choice->n_prompt_tokens++;
}

static void take_progress(struct tn_task *answer, const struct tn_choice *choice,
                          const struct tn_message *m)
{
    const uint32_t n = (uint32_t)choice->job.request.n_ids;
    const struct tn_prompt_progress progress = {
        .n_total = n,
        .n_cached = n - m->n_total,
        .n_processed = n - m->n_total + m->n_done,
        .ms = (tn_now_ns() - answer->waiting.began_ns) / 1000000,
    };
    if (answer->gen.streams && answer->gen.returns_progress && answer->conn &&
        answer->format->progress)
        answer->format->progress(answer, choice, &progress);
}

static void count(struct tn_server *server, const struct tern_generate_result *r)
{
    server->totals.n_prompt_tokens += r->n_prompt;
    server->totals.n_cached_tokens += r->n_prompt - r->n_prompt_evaluated;
    server->totals.n_new_tokens += r->n_new;
    server->totals.prompt_s += r->prompt_s;
    server->totals.decode_s += r->decode_s;
}

static void take_end(struct tn_task *answer, struct tn_choice *choice)
{
    struct tn_refusal refusal;
    struct tn_job *job = &choice->job;
    choice->has_ended = true;
    answer->n_ended++;
    answer->server->n_jobs[job->i_model]--;
    count(answer->server, &job->result);
    tn_choice_end(answer, choice);
    if (answer->conn && job->status != TERN_OK) {
        tn_refuse_error(&refusal, &job->error);
        fail(answer, &refusal);
    } else if (answer->conn && tn_choice_has_lost(choice)) {
        tn_refuse(&refusal, 503, NULL, "no memory for the answer");
        fail(answer, &refusal);
    } else if (answer->conn && answer->gen.streams) {
        if ((choice->calls || choice->thinking) && tn_choice_has_more(answer, choice))
            answer->format->more(answer, choice);
        answer->format->end_choice(answer, choice);
    }
    if (answer->n_ended == answer->n_choices)
        end_answer(answer);
}

void tn_task_take(struct tn_server *server, struct tn_message *m)
{
    struct tn_task *answer = m->job->owner;
    struct tn_choice *choice = &answer->choices[m->job->i_choice];
    if (m->kind == TERN_EVENT_END) {
        take_end(answer, choice); /* the message is part of the choice */
        if (answer->n_ended == answer->n_choices)
            forget(server, answer);
        return;
    }
    if (m->kind == TERN_EVENT_TOKEN)
        take_token(answer, choice, m);
    else if (m->kind == TERN_EVENT_PREFILL)
        take_progress(answer, choice, m);
    else if (m->kind == TERN_EVENT_PROMPT && answer->echoes)
        take_prompt_id(answer, choice, m);
    tn_free(m);
}

void tn_task_free_all(struct tn_server *server)
{
    while (server->answers)
        forget(server, server->answers);
}

/* ---- for formats ---- */

void tn_task_usage(const struct tn_task *answer, struct tn_usage_counts *out)
{
    *out = (struct tn_usage_counts){0};
    for (uint32_t i = 0; i < answer->n_choices; i++) {
        const struct tern_generate_result *r = &answer->choices[i].job.result;
        if (i % answer->gen.n_choices == 0) { /* once for each prompt */
            out->n_prompt += r->n_prompt;
            out->n_cached += r->n_prompt - r->n_prompt_evaluated;
        }
        out->n_new += r->n_new;
        out->n_reasoning += answer->choices[i].n_reasoning_tokens;
        out->prompt_s += r->prompt_s;
        out->decode_s += r->decode_s;
    }
}

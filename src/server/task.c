/* SPDX-License-Identifier: MIT
 *
 * Tasks: from a request's parameters to jobs, and from the engine's messages to the client.
 *
 * The life of a task: new, read, prepared on another thread, jobs submitted, answered, freed.
 */
#include "server/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "server/answer_grammar.h"
#include "server/choice.h"
#include "server/infill.h"
#include "server/metrics.h"

/* ---- creation ---- */

static void set_date(struct tern_date *date)
{
    struct tm t;
    if (tn_local_time(&t))
        *date = (struct tern_date){t.tm_year + 1900, (uint8_t)(t.tm_mon + 1),
                                   (uint8_t)t.tm_mday, (uint8_t)t.tm_hour, (uint8_t)t.tm_min,
                                   (uint8_t)TN_MIN(t.tm_sec, 59)};
}

/* Called on the thread that renders: stops when the client is gone or the server stops. */
static bool should_stop_rendering(void *arg)
{
    const struct tn_task *task = arg;
    const struct tern_chat_params *params = &task->model->chat_params;
    return tn_work_item_is_cancelled(&task->item) ||
           atomic_load(&task->server->is_stopping) ||
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
    struct tn_task *task = is_read ? tn_alloc_zeroed(1, sizeof *task) : NULL;
    if (is_read && !task)
        tn_refuse_memory(&refusal);
    if (!task) {
        tn_body_free(server, &body);
        tn_reply_error(conn, format->error, &refusal);
        return NULL;
    }
    task->server = server;
    task->conn = conn;
    task->format = format;
    task->model = model;
    task->request = body;
    task->body = body.root;
    task->n_prompts = 1;
    task->created = (int64_t)time(NULL);
    task->waiting.request_ns = task->waiting.written_ns = tn_now_ns();
    snprintf(task->id, sizeof task->id, "%016" PRIx64 "%" PRIx64,
             server->random * 0x9E3779B97F4A7C15u + server->n_ids, server->n_ids);
    server->n_ids++;
    task->chat_params = model->chat_params;
    task->chat_params.should_stop = should_stop_rendering;
    task->chat_params.arg = task;
    if (!model->has_fixed_date)
        set_date(&task->chat_params.date);
    tn_gen_init(&task->gen, model);
    task->gen.seed = body.seed;
    return task;
}

void tn_task_free(struct tn_task *task)
{
    for (uint32_t i = 0; i < TN_GEN_MAX_CHOICES; i++) {
        tn_choice_fini(&task->choices[i]);
        tern_ids_free(&task->more_ids[i]);
    }
    tn_gen_fini(&task->gen);
    tern_call_tools_free(task->call_tools);
    tern_ids_free(&task->ids);
    if (task->body != task->request.root)
        json_decref(task->body);
    tn_body_free(task->server, &task->request);
    tn_free(task);
}

void tn_task_refuse(struct tn_task *task, const struct tn_refusal *refusal)
{
    tn_reply_error(task->conn, task->format->error, refusal);
    tn_task_free(task);
}

static const struct tern_ids *ids_of(const struct tn_task *task, uint32_t i_prompt)
{
    return i_prompt == 0 ? &task->ids : &task->more_ids[i_prompt];
}

bool tn_task_refuse_length(const struct tn_task *task, bool is_bound, size_t n_ids,
                           struct tn_refusal *refusal)
{
    const char *param = task->gen.api->conversation;
    tn_refuse(refusal, 400, param,
              "This model's maximum context length is %u tokens. However, your %s resulted in "
              "%s%zu tokens. Please reduce the length of the %s.",
              task->model->n_ctx, param, is_bound ? "at least " : "", n_ids, param);
    refusal->code = "context_length_exceeded";
    return false;
}

bool tn_task_may_fit(const struct tn_task *task, size_t n_bytes, struct tn_refusal *refusal)
{
    const size_t n = tern_tokenizer_min_ids(tn_task_tokenizer(task), n_bytes);
    const bool is_counted = task->gen.n_choices == 0; /* any length is allowed */
    return is_counted || n <= task->model->n_ctx ||
           tn_task_refuse_length(task, true, n, refusal);
}

bool tn_task_encode(const struct tn_task *task, struct tern_ids *ids, const char *text, size_t n,
                    uint32_t flags, struct tn_refusal *refusal)
{
    return tern_tokenizer_encode(tn_task_tokenizer(task), text, n, flags, ids, NULL) == TERN_OK ||
           tn_refuse_memory(refusal);
}

bool tn_task_add_ids(struct tern_ids *ids, const uint32_t *more, size_t n,
                     struct tn_refusal *refusal)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t *grown = tn_grow(ids->ids, sizeof *grown, ids->n, &ids->capacity);
        if (!grown)
            return tn_refuse_memory(refusal);
        ids->ids = grown;
        ids->ids[ids->n++] = more[i];
    }
    return true;
}

static bool check_prompts(const struct tn_task *task, uint32_t n_choices,
                          struct tn_refusal *refusal)
{
    for (uint32_t i = 0; i < task->n_prompts; i++) {
        size_t n = ids_of(task, i)->n;
        if (n == 0)
            return tn_refuse(refusal, 400, "prompt", "the prompt is empty");
        if (n >= task->model->n_ctx && !(n == task->model->n_ctx && !task->gen.max_tokens))
            return tn_task_refuse_length(task, false, n, refusal);
    }
    uint32_t room = task->model->n_sequences + task->model->n_queue;
    uint32_t n_jobs = task->server->n_jobs[tn_server_index(task->server, task->model)];
    if (n_jobs + n_choices > room)
        return tn_refuse(refusal, 503, NULL, "the server is busy: %u requests are queued", n_jobs);
    return true;
}

static void prepare_job(struct tn_task *task, uint32_t i)
{
    struct tn_choice *choice = &task->choices[i];
    struct tn_job *job = &choice->job;
    const struct tn_gen *gen = &task->gen;
    const struct tern_ids *ids = ids_of(task, i / gen->n_choices);
    job->i_model = tn_server_index(task->server, task->model);
    job->request = (struct tern_request){
        .ids = ids->ids, .n_ids = ids->n,
        .sampler = gen->sampler,
        .max_tokens = gen->max_tokens,
        .ignore_eos = gen->ignores_eos,
        .fits_gap = gen->fits_gap,
        .end_ids = choice->end_ids,
        .n_end_ids = tn_infill_end_ids(task, ids, choice->end_ids),
        .stop_strings = gen->stops, .n_stop_strings = gen->n_stops,
        .grammar = gen->grammar,
        .n_logprobs = gen->has_logprobs ? 1 + gen->n_top : 0,
        .prompt_logprobs = task->echoes && gen->has_logprobs,
        .n_draft = task->model->n_draft,
        .n_system = task->marks.n_system, .n_turn = task->marks.n_turn,
    };
    job->request.sampler.seed += i % gen->n_choices;
    job->biases = gen->biases;
    job->n_biases = gen->n_biases;
    job->owner = task;
    job->i_choice = i;
    choice->end_id = TERN_NO_ID;
}

static void on_gone(void *arg)
{
    struct tn_task *task = arg;
    task->conn = NULL;
    tn_work_cancel_item(&task->item);
    for (uint32_t i = 0; i < task->n_choices; i++)
        if (!task->choices[i].has_ended)
            tn_work_cancel(task->server->work, &task->choices[i].job);
}

void tn_task_write(struct tn_task *task, const char *bytes, size_t n)
{
    if (!task->conn)
        return;
    tn_stream_write(task->conn, bytes, n);
    task->waiting.written_ns = tn_now_ns();
}

void tn_task_break(struct tn_task *task)
{
    if (task->conn)
        tn_conn_drop(task->conn);
}

static void begin_stream(struct tn_task *task)
{
    tn_stream_begin(task->conn, 200, task->format->stream_type);
    if (task->format->begin_stream)
        task->format->begin_stream(task);
}

static bool has_stream(const struct tn_task *task)
{
    return task->gen.streams && task->n_choices > 0;
}

static void write_heartbeat(struct tn_task *task)
{
    const struct tn_task_format *format = task->format;
    if (format->write_heartbeat)
        format->write_heartbeat(task);
    else if (format->heartbeat)
        tn_task_write(task, format->heartbeat, strlen(format->heartbeat));
}

void tn_task_tick(struct tn_task *task, uint64_t now_ns)
{
    if (!task->gen.streams)
        tn_waiting_tick(&task->waiting, task->conn, now_ns);
    else if (has_stream(task) && now_ns - task->waiting.written_ns > TN_HEARTBEAT_NS)
        write_heartbeat(task);
}

/* Probes a client that shut down its side: the write fails if it is gone.  Before a stream has
 * begun, its head serves as the probe. */
static void on_end(void *arg)
{
    struct tn_task *task = arg;
    if (has_stream(task))
        write_heartbeat(task);
}

/* Reports the error to the client, in a stream as its last event. */
static void refuse(struct tn_task *task, const struct tn_refusal *refusal)
{
    struct tn_conn *conn = task->conn;
    bool is_counted = false; /* counted by the status of the answer */
    task->is_ended = true;
    conn->user = (struct tn_conn_user){0};
    if (has_stream(task)) {
        task->format->send_error(task, refusal);
        tn_stream_end(conn);
    } else {
        is_counted = tn_waiting_refuse(&task->waiting, conn, refusal, task->format->error);
    }
    if (!is_counted)
        tn_metrics_count_refusal(task->server, refusal->status, refusal->code);
}

/* The same, at most once; cancels the remaining jobs. */
static void fail(struct tn_task *task, const struct tn_refusal *refusal)
{
    if (!task->conn)
        return;
    refuse(task, refusal);
    on_gone(task);
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

static void forget(struct tn_server *server, struct tn_task *task)
{
    for (struct tn_task **p = &server->tasks; *p; p = &(*p)->next)
        if (*p == task) {
            *p = task->next;
            break;
        }
    tn_task_free(task);
}

static void submit(struct tn_task *task)
{
    struct tn_server *server = task->server;
    for (uint32_t i = 0; i < task->n_choices; i++)
        prepare_job(task, i);
    if (task->gen.streams)
        begin_stream(task);
    for (uint32_t i = 0; i < task->n_choices; i++) {
        server->n_jobs[task->choices[i].job.i_model]++;
        tn_work_submit(server->work, &task->choices[i].job);
    }
}

static enum tn_slice run_prepare(void *arg)
{
    struct tn_task *task = arg;
    struct tn_refusal *refusal = &task->refusal;
    if (task->prepare(task, refusal) &&
        (!task->gen.is_structured || tn_answer_grammar_compile(task, refusal)))
        refusal->status = 0;
    return TN_SLICE_LAST;
}

/* Bytes per id of a prompt or answer: in the task, in the scheduler, its text, and two copies for
 * drafts. */
#define ID_BYTES 24u
/* Additional bytes for the raw text. */
#define RAW_BYTES 8u
/* Additional bytes for an id that is reported, including its JSON. */
#define KEPT_ID_BYTES 24u
/* Bytes per log-probability, including its JSON. */
#define LOGPROB_BYTES 64u

/* Upper bound over all choices, each with its prompt and its maximum length. */
static size_t answer_bytes(const struct tn_task *task)
{
    const size_t per_id =
        ID_BYTES + (task->keeps_raw ? RAW_BYTES : 0) + (task->gen.keeps_ids ? KEPT_ID_BYTES : 0) +
        (task->gen.has_logprobs ? (1 + task->gen.n_top) * LOGPROB_BYTES : 0);
    size_t n = 0;
    for (uint32_t i = 0; i < task->n_prompts; i++)
        n += ids_of(task, i)->n + task->gen.max_tokens;
    return n * task->gen.n_choices * per_id;
}

/* Refuses a complete answer for lack of memory. */
static void refuse_memory(struct tn_task *task)
{
    struct tn_refusal refusal;
    tn_refuse(&refusal, 503, NULL, "no memory for the answer");
    refuse(task, &refusal);
}

static void end_answer(struct tn_task *task)
{
    struct tn_conn *conn = task->conn;
    struct tn_buf body = {0};
    if (!conn)
        return;
    conn->user = (struct tn_conn_user){0};
    task->is_ended = true;
    task->format->end_answer(task, &body);
    if (task->gen.streams)
        tn_stream_end(conn);
    else if (body.failed)
        refuse_memory(task);
    else
        tn_waiting_end(&task->waiting, conn, body.data, body.n_bytes);
    tn_buf_fini(&body);
    task->conn = NULL;
}

static void on_prepared(void *arg)
{
    struct tn_task *task = arg;
    uint32_t n_choices = task->n_prompts * task->gen.n_choices;
    if (task->conn && task->refusal.status == 0 && n_choices == 0)
        end_answer(task); /* it only counted tokens */
    if (!task->conn) {
        forget(task->server, task);
        return;
    }
    if (task->refusal.status == 0 && check_prompts(task, n_choices, &task->refusal) &&
        tn_body_hold_answer(task->server, &task->request, answer_bytes(task),
                            &task->refusal)) {
        task->n_choices = n_choices;
        submit(task);
        return;
    }
    refuse(task, &task->refusal);
    forget(task->server, task);
}

void tn_task_start(struct tn_task *task, tn_task_prepare_fn *prepare)
{
    struct tn_server *server = task->server;
    task->prepare = prepare;
    task->next = server->tasks;
    server->tasks = task;
    tn_conn_hold(task->conn,
                 &(struct tn_conn_user){
                     .on_gone = on_gone, .on_end = on_end, .on_tick = on_tick,
                     .on_stop = on_stop, .arg = task});
    task->item =
        (struct tn_work_item){.run = run_prepare, .done = on_prepared, .owner = task};
    tn_work_run_item(tn_body_thread(server, task->gen.is_structured), &task->item);
}

void tn_task_answer(struct tn_server *server, struct tn_conn *conn,
                    const struct tn_task_format *format, tn_task_read_fn *read,
                    tn_task_prepare_fn *prepare)
{
    struct tn_refusal refusal;
    struct tn_task *task = tn_task_new(server, conn, format);
    if (!task)
        return;
    if (!read(task, &refusal)) {
        tn_task_refuse(task, &refusal);
        return;
    }
    if (format->is_of_prompt) {
        task->gen.n_choices = 0;
        task->gen.streams = false;
    }
    tn_task_start(task, prepare);
}

/* ---- messages of the engine ---- */

static void take_token(struct tn_task *task, struct tn_choice *choice,
                       const struct tn_message *m)
{
    if (choice->is_complete)
        return;
    tn_choice_take(task, choice, m);
    if (choice->is_complete)
        tn_work_cancel(task->server->work, &choice->job);
    if (task->gen.streams && task->conn && !tn_choice_has_lost(choice) &&
        (tn_choice_has_more(task, choice) || task->gen.has_logprobs))
        task->format->send_more(task, choice);
}

/* The first id of a prompt has no log-probabilities: its entries are empty. */
static void take_prompt_id(struct tn_task *task, struct tn_choice *choice,
                           const struct tn_message *m)
{
    struct tern_token_logprob none = {.id = TERN_NO_ID};
    uint32_t n = 1 + task->gen.n_top;
    for (uint32_t i = 0; i < n; i++) {
        const struct tern_token_logprob *entry = i < m->n_logprobs ? &m->logprobs[i] : &none;
        struct tern_token_logprob copy = *entry;
        if (i == 0)
            copy.id = m->id;
        tn_buf_append(&choice->prompt_logprobs, &copy, sizeof copy);
    }
    choice->n_prompt_tokens++;
}

static void take_progress(struct tn_task *task, const struct tn_choice *choice,
                          const struct tn_message *m)
{
    const uint32_t n = (uint32_t)choice->job.request.n_ids;
    const struct tn_prompt_progress progress = {
        .n_total = n,
        .n_cached = n - m->n_total,
        .n_processed = n - m->n_total + m->n_done,
        .ms = (tn_now_ns() - task->waiting.request_ns) / 1000000,
    };
    if (task->gen.streams && task->gen.returns_progress && task->conn &&
        task->format->send_progress)
        task->format->send_progress(task, choice, &progress);
}

/* The rest of a prompt that was interrupted is neither computed nor cached. */
static void count(struct tn_server *server, const struct tn_job *job)
{
    const struct tern_generate_result *r = &job->result;
    const bool has_failed = job->status != TERN_OK || r->stop == TERN_STOP_INTERRUPT;
    const uint32_t n_prompt =
        has_failed && r->n_new == 0 ? r->n_prompt_evaluated : r->n_prompt;
    server->totals.n_prompt_tokens += n_prompt;
    server->totals.n_cached_tokens += n_prompt - r->n_prompt_evaluated;
    server->totals.n_new_tokens += r->n_new;
    server->totals.prompt_s += r->prompt_s;
    server->totals.decode_s += r->decode_s;
}

static void take_end(struct tn_task *task, struct tn_choice *choice)
{
    struct tn_refusal refusal;
    struct tn_job *job = &choice->job;
    choice->has_ended = true;
    task->n_ended++;
    task->server->n_jobs[job->i_model]--;
    count(task->server, job);
    if (choice->is_complete && job->status == TERN_OK) {
        job->result.stop = choice->is_cut ? TERN_STOP_LENGTH : TERN_STOP_EOS;
        job->result.n_new = choice->n_taken;
    }
    tn_choice_end(task, choice);
    if (task->conn && job->status != TERN_OK) {
        tn_refuse_error(&refusal, &job->error);
        fail(task, &refusal);
    } else if (task->conn && tn_choice_has_lost(choice)) {
        tn_refuse(&refusal, 503, NULL, "no memory for the answer");
        fail(task, &refusal);
    } else if (task->conn && task->gen.streams) {
        if ((choice->calls || choice->thinking) && tn_choice_has_more(task, choice))
            task->format->send_more(task, choice);
        if (task->format->end_choice)
            task->format->end_choice(task, choice);
    }
    if (task->n_ended == task->n_choices)
        end_answer(task);
}

void tn_task_take(struct tn_server *server, struct tn_message *m)
{
    struct tn_task *task = m->job->owner;
    struct tn_choice *choice = &task->choices[m->job->i_choice];
    if (m->kind == TERN_EVENT_END) {
        take_end(task, choice); /* the message is embedded in the choice */
        if (task->n_ended == task->n_choices)
            forget(server, task);
        return;
    }
    if (m->kind == TERN_EVENT_TOKEN)
        take_token(task, choice, m);
    else if (m->kind == TERN_EVENT_PREFILL)
        take_progress(task, choice, m);
    else if (m->kind == TERN_EVENT_PROMPT && task->echoes)
        take_prompt_id(task, choice, m);
    tn_free(m);
}

void tn_task_free_all(struct tn_server *server)
{
    while (server->tasks)
        forget(server, server->tasks);
}

/* ---- for formats ---- */

void tn_task_usage(const struct tn_task *task, struct tn_usage_counts *out)
{
    *out = (struct tn_usage_counts){0};
    for (uint32_t i = 0; i < task->n_choices; i++) {
        const struct tern_generate_result *r = &task->choices[i].job.result;
        if (i % task->gen.n_choices == 0) { /* once per prompt */
            out->n_prompt += r->n_prompt;
            out->n_cached += r->n_prompt - r->n_prompt_evaluated;
        }
        out->n_new += r->n_new;
        out->n_reasoning += task->choices[i].n_reasoning_tokens;
        out->prompt_s += r->prompt_s;
        out->decode_s += r->decode_s;
    }
}

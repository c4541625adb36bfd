/* SPDX-License-Identifier: MIT
 *
 * POST /v1/completions: continues a text or ids verbatim.
 *
 * No chat template is applied; special tokens in the text are parsed.
 */
#include <string.h>

#include "base/compiler.h"
#include "server/answer_schema.h"
#include "server/infill.h"
#include "server/json_out.h"
#include "server/logprobs.h"
#include "server/openai.h"

/* ---- prompts ---- */

/* Special tokens are parsed in raw prompts: programs render templates themselves. */
static bool add_text(struct tn_task *task, struct tern_ids *ids, const json_t *text,
                     struct tn_refusal *r)
{
    const size_t n = json_string_length(text);
    return tn_task_may_fit(task, n, r) &&
           tn_task_encode(task, ids, json_string_value(text), n, TERN_ENCODE_PARSE_SPECIAL, r);
}

static bool holds_number(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_number(json_array_get(list, i)))
            return true;
    return false;
}

static bool add_part(struct tn_task *task, struct tern_ids *ids, const json_t *part,
                     struct tn_refusal *r)
{
    const uint32_t n_vocab = tern_model_config(task->model->model)->vocab;
    double id = -1;
    if (json_is_string(part))
        return add_text(task, ids, part, r);
    if (!tn_json_is_whole(part, &id) || id < 0 || id >= n_vocab)
        return tn_refuse(r, 400, "prompt",
                         "\"prompt\": an entry is neither a text nor an id below %u",
                         n_vocab);
    return tn_task_add_ids(ids, &(uint32_t){(uint32_t)id}, 1, r);
}

/* [12, 34, "text", 56]: ids, and texts that are encoded in place. */
static bool add_mixed(struct tn_task *task, struct tern_ids *ids, const json_t *prompt,
                      struct tn_refusal *r)
{
    for (size_t i = 0; i < json_array_size(prompt); i++)
        if (!add_part(task, ids, json_array_get(prompt, i), r))
            return false;
    return true;
}

/* Adds what the tokenizer puts around a text; ids stay as the client sent them. */
static bool add_special(struct tn_task *task, uint32_t i_prompt, struct tern_ids *ids,
                        struct tn_refusal *r)
{
    if (tern_tokenizer_add_special(tn_task_tokenizer(task), ids, 0, &task->n_added[i_prompt],
                                   NULL) != TERN_OK)
        return tn_refuse_memory(r);
    if (ids->n == 0) /* an empty text, with a tokenizer that adds nothing */
        return tn_refuse(r, 400, "prompt", "the prompt is empty");
    return true;
}

static bool add_prompt(struct tn_task *task, uint32_t i_prompt, const json_t *prompt,
                       struct tn_refusal *r)
{
    struct tern_ids *ids = i_prompt ? &task->more_ids[i_prompt] : &task->ids;
    if (json_is_string(prompt))
        return add_text(task, ids, prompt, r) && add_special(task, i_prompt, ids, r);
    if (json_array_size(prompt) > 0)
        return add_mixed(task, ids, prompt, r) &&
               (!json_is_string(json_array_get(prompt, 0)) ||
                add_special(task, i_prompt, ids, r));
    return tn_refuse(r, 400, "prompt",
                     "\"prompt\" must be a string, an array of strings, ids, or arrays of ids");
}

/* An array without numbers has several prompts. */
bool tn_text_ids(struct tn_task *task, struct tn_refusal *r)
{
    const json_t *prompt = tn_json_member(task->body, "prompt");
    bool is_list =
        json_is_array(prompt) && json_array_size(prompt) > 0 && !holds_number(prompt);
    if (!prompt)
        return tn_refuse(r, 400, "prompt", "\"prompt\" is missing");
    if (!is_list)
        return add_prompt(task, 0, prompt, r);
    size_t n = json_array_size(prompt);
    if (n * task->gen.n_choices > TN_GEN_MAX_CHOICES)
        return tn_refuse(r, 400, "prompt", "%zu prompts with n = %u: at most %u answers", n,
                         task->gen.n_choices, TN_GEN_MAX_CHOICES);
    task->n_prompts = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        if (!add_prompt(task, (uint32_t)i, json_array_get(prompt, i), r))
            return false;
    return true;
}

/* ---- log-probabilities in the legacy format ---- */

/* Four parallel lists. */
struct lists {
    struct tn_buf tokens, logprobs, tops, offsets;
    uint64_t offset; /* of the next token, in characters */
    uint32_t n;
};

static void append_token(struct tn_buf *out, const struct tn_task *task, uint32_t id)
{
    size_t n;
    const char *bytes = tern_tokenizer_token_bytes(tn_task_tokenizer(task), id, &n);
    tn_json_string(out, bytes, n);
}

static uint64_t count_characters(const char *bytes, size_t n)
{
    uint64_t n_characters = 0;
    for (size_t i = 0; i < n; i++)
        n_characters += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return n_characters;
}

/* Control tokens have text in a prompt. */
static uint64_t characters_of(const struct tn_task *task, uint32_t id)
{
    size_t n;
    const char *bytes = tern_tokenizer_token_bytes(tn_task_tokenizer(task), id, &n);
    return count_characters(bytes, n);
}

/* Characters in [from, to) of the answer. */
static uint64_t characters_between(const struct tn_choice *choice, size_t from, size_t to)
{
    const size_t n = choice->text.n_bytes - choice->n_prompt_bytes;
    from = TN_MIN(from, n);
    to = TN_MIN(to, n);
    return n > 0 ? count_characters(choice->text.data + choice->n_prompt_bytes + from, to - from)
                 : 0;
}

/* entries[0] is the token itself.  The first token of a prompt has no value, because nothing
 * precedes it. */
static void add_entry(struct lists *l, const struct tn_task *task,
                      const struct tern_token_logprob *entries, bool is_first_of_prompt)
{
    const char *comma = l->n++ ? "," : "";
    tn_buf_append_text(&l->tokens, comma);
    append_token(&l->tokens, task, entries[0].id);
    tn_buf_printf(&l->offsets, "%s%llu", comma, (unsigned long long)l->offset);
    tn_buf_append_text(&l->logprobs, comma);
    tn_buf_append_text(&l->tops, comma);
    if (is_first_of_prompt) {
        tn_buf_append_text(&l->logprobs, "null");
        tn_buf_append_text(&l->tops, "null");
        return;
    }
    tn_json_real(&l->logprobs, entries[0].logprob, TN_LOGPROB_FLOOR);
    tn_buf_append_text(&l->tops, "{");
    for (uint32_t j = 1; j <= task->gen.n_top; j++) {
        tn_buf_append_text(&l->tops, j > 1 ? "," : "");
        append_token(&l->tops, task, entries[j].id);
        tn_buf_append_text(&l->tops, ":");
        tn_json_real(&l->tops, entries[j].logprob, TN_LOGPROB_FLOOR);
    }
    tn_buf_append_text(&l->tops, "}");
}

static void append_lists(struct tn_buf *out, struct lists *l)
{
    const struct {
        const char *name;
        struct tn_buf *list;
    } rows[] = {{"{\"tokens\":[", &l->tokens},
                {"],\"token_logprobs\":[", &l->logprobs},
                {"],\"top_logprobs\":[", &l->tops},
                {"],\"text_offset\":[", &l->offsets}};
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        tn_buf_append_text(out, rows[i].name);
        tn_buf_append(out, rows[i].list->data, rows[i].list->n_bytes);
        out->failed = out->failed || rows[i].list->failed;
        tn_buf_fini(rows[i].list);
    }
    tn_buf_append_text(out, "]}");
}

/* Ids before the prompt that the client did not send; they are not echoed. */
static size_t n_added(const struct tn_task *task, const struct tn_choice *choice)
{
    return task->n_added[choice->job.i_choice / task->gen.n_choices];
}

/* Appends those of the prompt, if it is echoed and nothing was sent yet, and of the tokens
 * [n_shown, to). */
static void append_logprobs(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice, uint32_t to)
{
    struct lists l = {0};
    const struct tern_token_logprob *prompt =
        (const struct tern_token_logprob *)(void *)choice->prompt_logprobs.data;
    for (size_t i = n_added(task, choice); i < choice->n_prompt_tokens; i++) {
        const struct tern_token_logprob *entries = prompt + i * (1 + task->gen.n_top);
        if (choice->n_shown == 0)
            add_entry(&l, task, entries, i == 0);
        l.offset += characters_of(task, entries[0].id);
    }
    size_t at = choice->n_shown_bytes;
    l.offset += characters_between(choice, 0, at);
    for (uint32_t i = choice->n_shown; i < to; i++) {
        const size_t n = tn_choice_token_bytes(choice, i);
        add_entry(&l, task, tn_choice_logprobs(choice, i), false);
        l.offset += characters_between(choice, at, at + n);
        at += n;
    }
    append_lists(out, &l);
}

/* ---- text ---- */

/* Prepends the prompt's text, for "echo". */
static void prepend_prompt(struct tn_task *task, struct tn_choice *choice)
{
    struct tern_error err;
    struct tn_buf whole = {0};
    char *text;
    size_t n;
    const struct tern_request *request = &choice->job.request;
    const struct tern_tokenizer *tokenizer = tn_task_tokenizer(task);
    const size_t skip = n_added(task, choice);
    if (tern_tokenizer_decode(tokenizer, request->ids + skip, request->n_ids - skip, false, &text,
                              &n, &err) != TERN_OK) {
        choice->text.failed = true;
        return;
    }
    tn_buf_append(&whole, text, n);
    tn_buf_append(&whole, choice->text.data, choice->text.n_bytes);
    tern_text_free(text);
    whole.failed = whole.failed || choice->text.failed;
    tn_buf_fini(&choice->text);
    choice->text = whole;
    choice->n_prompt_bytes = TN_MIN(n, whole.n_bytes); /* less without memory */
}

/* Appends the unsent text and the tokens [n_shown, to); `finish` may be NULL. */
static void append_choice(struct tn_buf *out, const struct tn_task *task,
                          const struct tn_choice *choice, uint32_t to, const char *finish)
{
    /* Those of the prompt are sent with the first token, or at the end if there is none. */
    const bool has_tokens = to > choice->n_shown || !task->gen.streams ||
                            (finish && choice->n_shown == 0 && choice->n_prompt_tokens > 0);
    tn_buf_printf(out, "{\"index\":%u,\"text\":", choice->job.i_choice);
    tn_json_tail(out, &choice->text, choice->n_sent);
    tn_buf_append_text(out, ",\"logprobs\":");
    if (task->gen.has_logprobs && has_tokens)
        append_logprobs(out, task, choice, to);
    else
        tn_buf_append_text(out, "null");
    tn_buf_append_text(out, ",\"finish_reason\":");
    tn_json_text(out, finish);
    tn_buf_append_text(out, "}");
}

/* ---- streams ---- */

static void send_chunk(struct tn_task *task, struct tn_choice *choice, uint32_t to,
                       const char *finish)
{
    struct tn_buf json = {0};
    tn_openai_begin_answer(&json, task, "cmpl", "text_completion");
    append_choice(&json, task, choice, to, finish);
    tn_openai_end_event(&json, task, choice, finish != NULL);
    json.failed = json.failed || choice->text.failed;
    choice->n_sent = choice->text.n_bytes;
    tn_openai_send_event(task, &json);
}

static void begin_stream(struct tn_task *task)
{
    for (uint32_t i = 0; task->echoes && i < task->n_choices; i++) {
        struct tn_choice *choice = &task->choices[i];
        prepend_prompt(task, choice);
        send_chunk(task, choice, 0, NULL);
        tn_buf_fini(&choice->text);
        choice->n_sent = choice->n_prompt_bytes = 0;
    }
}

static void send_more(struct tn_task *task, struct tn_choice *choice)
{
    size_t n_bytes;
    uint32_t to = tn_choice_tokens_of(choice, choice->text.n_bytes, &n_bytes);
    if (choice->text.n_bytes == choice->n_sent && to == choice->n_shown)
        return;
    send_chunk(task, choice, to, NULL);
    choice->n_shown = to;
    choice->n_shown_bytes = n_bytes;
}

static void end_choice(struct tn_task *task, struct tn_choice *choice)
{
    if (task->gen.has_logprobs)
        send_more(task, choice);
    send_chunk(task, choice, choice->n_shown, tn_choice_finish(choice));
}

static void end_answer(struct tn_task *task, struct tn_buf *out)
{
    if (task->gen.streams) {
        tn_openai_end_stream(task, "cmpl", "text_completion");
        return;
    }
    tn_openai_begin_answer(out, task, "cmpl", "text_completion");
    for (uint32_t i = 0; i < task->n_choices; i++) {
        struct tn_choice *choice = &task->choices[i];
        size_t n_bytes;
        uint32_t to = tn_choice_tokens_of(choice, choice->text.n_bytes, &n_bytes);
        if (task->echoes)
            prepend_prompt(task, choice);
        tn_buf_append_text(out, i ? "," : "");
        append_choice(out, task, choice, to, tn_choice_finish(choice));
        out->failed = out->failed || choice->text.failed;
    }
    tn_openai_end_answer(out, task);
}

static const struct tn_task_format text_format = {
    .stream_type = "text/event-stream",
    .heartbeat = ": waiting\n\n",
    .error = tn_openai_error,
    .begin_stream = begin_stream,
    .send_more = send_more,
    .end_choice = end_choice,
    .send_error = tn_openai_send_error,
    .end_answer = end_answer,
};

/* ---- the request ---- */

static bool read_logprobs(struct tn_task *task, struct tn_refusal *r)
{
    const json_t *value = tn_json_member(task->body, "logprobs");
    double n_top = 0;
    if (!value || json_is_false(value))
        return true;
    if (!json_is_true(value) && !tn_json_get_count(task->body, "logprobs", 0, 5, &n_top, r))
        return false;
    task->gen.has_logprobs = true;
    task->gen.n_top = (uint32_t)n_top;
    return true;
}

static bool read_others(struct tn_task *task, struct tn_refusal *r)
{
    double best_of = 1; /* more than "n" would mean answers that are discarded */
    if (!tn_json_get_count(task->body, "best_of", 1, task->gen.n_choices, &best_of, r) ||
        !tn_json_get_bool(task->body, "echo", &task->echoes, r))
        return false;
    return !(task->echoes && task->gen.fills_in) ||
           tn_refuse(r, 400, "echo", "\"echo\" cannot be combined with \"suffix\"");
}

static bool read_request(struct tn_task *task, struct tn_refusal *r)
{
    task->gen.api = &tn_gen_text_api;
    return tn_gen_refuse_others(task->body, "response_format", r) &&
           tn_infill_read_suffix(task, r) &&
           tn_gen_read_added_formats(&task->gen, task->body, r) &&
           tn_gen_read_response_format(&task->gen, task->body, r) &&
           tn_gen_read_openai(&task->gen, task->body, task->model, r) &&
           read_logprobs(task, r) && read_others(task, r);
}

static bool prepare(struct tn_task *task, struct tn_refusal *r)
{
    return task->gen.fills_in ? tn_infill_prepare(task, r) : tn_text_ids(task, r);
}

void tn_route_completions(struct tn_server *server, struct tn_conn *conn)
{
    tn_task_answer(server, conn, &text_format, read_request, prepare);
}

/* SPDX-License-Identifier: MIT
 *
 * Splits the text of a choice into reasoning, tool calls and content:
 *
 *   text -> reasoning separated -> tool calls separated -> content
 *
 * Also selects the log-probabilities of the tokens that are shown.
 */
#include "server/choice.h"

#include "base/compiler.h"
#include "server/line_limits.h"

void tn_choice_fini(struct tn_choice *choice)
{
    tern_thinking_free(choice->thinking);
    tern_calls_free(choice->calls);
    tn_buf_fini(&choice->text);
    tn_buf_fini(&choice->reasoning);
    tn_buf_fini(&choice->raw);
    tn_buf_fini(&choice->logprobs);
    tn_buf_fini(&choice->lengths);
    tn_buf_fini(&choice->prompt_logprobs);
}

/* ---- splitting the text ---- */

/* Takes text after the reasoning. */
static bool take_answer(const struct tn_task *task, struct tn_choice *choice, const char *text,
                        size_t n)
{
    if (!task->tools)
        return tn_buf_append(&choice->text, text, n);
    if (!choice->calls) {
        if (tern_calls_create(&choice->calls, task->call_form,
                              task->gen.streams && task->format->streams_arguments,
                              NULL) != TERN_OK)
            return false;
        tern_calls_set_tools(choice->calls, task->call_tools);
        if (task->is_single_call)
            tern_calls_set_single(choice->calls);
    }
    if (tern_calls_push(choice->calls, text, n, NULL) != TERN_OK)
        return false;
    text = tern_calls_take_text(choice->calls, &n);
    return tn_buf_append(&choice->text, text, n);
}

static bool take_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    struct tn_choice *choice = arg;
    const struct tn_task *task = choice->job.owner;
    if (part == TERN_PART_ANSWER)
        return take_answer(task, choice, text, n);
    return task->hides_reasoning || tn_buf_append(&choice->reasoning, text, n);
}

/* Takes any text of an answer whose reasoning is separated. */
static bool take_raw(const struct tn_task *task, struct tn_choice *choice, const char *text,
                     size_t n)
{
    if (!choice->thinking) {
        if (tern_thinking_create(&choice->thinking, take_part, choice, NULL) != TERN_OK)
            return false;
        tern_thinking_begin_inside(choice->thinking, task->reasoning_close);
        if (task->continues_answer)
            tern_thinking_resume(choice->thinking, task->reasoning_close != NULL);
    }
    return (!task->keeps_raw || tn_buf_append(&choice->raw, text, n)) &&
           tern_thinking_push(choice->thinking, text, n, NULL) == TERN_OK;
}

/* Offset of the answer in the text of the tokens, after the reasoning and its tags; SIZE_MAX
 * before the answer begins. */
static size_t answer_offset(const struct tn_choice *choice)
{
    return choice->thinking ? tern_thinking_answer_at(choice->thinking) : 0;
}

/* True for the tokens that end an answer without being part of it. */
static bool hides_token(const struct tn_task *task, const struct tn_choice *choice, uint32_t id)
{
    const struct tern_request *request = &choice->job.request;
    bool is_end = tern_model_is_stop_id(task->model->model, id);
    for (size_t i = 0; i < request->n_end_ids; i++)
        is_end = is_end || request->end_ids[i] == id;
    return is_end && !task->gen.ignores_eos;
}

/* Bytes that a token adds to the text, with those that wait for the rest of their character.  They
 * differ from the token's bytes where these are not UTF-8, and where a text begins without the
 * space of its first token. */
static uint32_t length_in_text(const struct tn_task *task, struct tn_choice *choice, uint32_t id)
{
    const struct tern_tokenizer *tokenizer = tn_task_tokenizer(task);
    struct tern_decoder *decoder = &choice->decoder;
    struct tn_buf text = {0};
    size_t n_bytes, n = 0;
    const size_t n_held = decoder->n_held;
    (void)tern_tokenizer_token_bytes(tokenizer, id, &n_bytes);
    if (tn_buf_reserve(&text, 3 * n_bytes + 12))
        n = tern_decoder_push_id(decoder, tokenizer, id, text.data) + decoder->n_held - n_held;
    choice->lengths.failed = choice->lengths.failed || text.failed;
    tn_buf_fini(&text);
    return (uint32_t)n;
}

/* True for tokens without a text. */
static bool is_control(const struct tn_task *task, uint32_t id)
{
    return tern_tokenizer_is_special(tn_task_tokenizer(task), id) ||
           tern_model_is_stop_id(task->model->model, id);
}

/* Keeps the log-probabilities of a token, or only its id, and its length in the text. */
static void take_token(const struct tn_task *task, struct tn_choice *choice,
                       const struct tn_message *m, bool is_hidden)
{
    const struct tern_token_logprob id_only = {.id = m->id};
    const struct tern_request *request = &choice->job.request;
    const bool has_text = !is_hidden && !is_control(task, m->id);
    if (choice->n_tokens == 0 && is_control(task, request->ids[request->n_ids - 1]))
        tern_decoder_start(&choice->decoder, tn_task_tokenizer(task));
    const uint32_t n = has_text ? length_in_text(task, choice, m->id) : 0;
    tn_buf_append(&choice->lengths, &n, sizeof n);
    if (m->n_logprobs > 0)
        tn_buf_append(&choice->logprobs, m->logprobs, m->n_logprobs * sizeof *m->logprobs);
    else
        tn_buf_append(&choice->logprobs, &id_only, sizeof id_only);
    choice->n_tokens++;
}

/* Counts reasoning and its tags, through the token that starts the answer. */
static void count_reasoning(struct tn_choice *choice)
{
    const bool has_begun =
        choice->n_reasoning_tokens > 0 || tern_thinking_is_inside(choice->thinking);
    if (has_begun && tern_thinking_answer_at(choice->thinking) == SIZE_MAX)
        choice->n_reasoning_tokens = choice->n_taken;
}

/* Drops the log-probabilities of tokens before the answer. */
static void skip_reasoning(struct tn_choice *choice)
{
    const size_t at = answer_offset(choice);
    if (at == SIZE_MAX)
        return;
    for (; choice->n_shown < choice->n_tokens && choice->n_shown_bytes < at; choice->n_shown++) {
        const size_t n = tn_choice_token_bytes(choice, choice->n_shown);
        if (choice->n_shown_bytes + n > at)
            return;
        choice->n_shown_bytes += n;
        choice->n_skipped++;
    }
}

void tn_choice_take(const struct tn_task *task, struct tn_choice *choice,
                    const struct tn_message *m)
{
    const bool is_hidden = hides_token(task, choice, m->id);
    const size_t n_before = choice->text.n_bytes;
    choice->n_taken += m->id != TERN_NO_ID;
    if (!(task->separates_reasoning ? take_raw : take_answer)(task, choice, m->text, m->n_text))
        choice->has_lost = true;
    if (choice->thinking)
        count_reasoning(choice);
    if (is_hidden)
        choice->end_id = m->id;
    /* Clients that score a prompt discard the token after it. */
    if ((m->n_logprobs > 0 || (task->gen.keeps_ids && m->id != TERN_NO_ID)) &&
        (!is_hidden || task->echoes))
        take_token(task, choice, m, is_hidden);
    if (choice->thinking && !tn_choice_has_lost(choice))
        skip_reasoning(choice);
    choice->is_complete = choice->calls && tern_calls_has_ended(choice->calls);
    if (!choice->is_complete)
        tn_line_limits_apply(task, choice, n_before);
}

void tn_choice_end(const struct tn_task *task, struct tn_choice *choice)
{
    size_t n;
    if (choice->thinking && tern_thinking_end(choice->thinking, NULL) != TERN_OK)
        choice->has_lost = true;
    if (choice->calls) {
        if (tern_calls_end(choice->calls, NULL) != TERN_OK)
            choice->has_lost = true;
        const char *text = tern_calls_take_text(choice->calls, &n);
        if (!task->must_call) /* the start of a truncated call is not content */
            tn_buf_append(&choice->text, text, n);
    }
    if (choice->thinking && !tn_choice_has_lost(choice))
        skip_reasoning(choice);
}

bool tn_choice_has_lost(const struct tn_choice *choice)
{
    return choice->has_lost || choice->text.failed || choice->reasoning.failed ||
           choice->raw.failed || choice->logprobs.failed || choice->lengths.failed ||
           choice->prompt_logprobs.failed;
}

bool tn_choice_has_more(const struct tn_task *task, const struct tn_choice *choice)
{
    return choice->text.n_bytes > choice->n_sent ||
           choice->reasoning.n_bytes > choice->n_reasoning_sent ||
           tn_choice_n_calls(choice) > choice->n_calls_sent ||
           (task->format->streams_arguments && tn_choice_more_arguments(choice)[0]);
}

/* ---- for formats ---- */

const char *tn_choice_more_arguments(const struct tn_choice *choice)
{
    if (choice->n_calls_sent == 0)
        return "";
    return tern_calls_get(choice->calls, choice->n_calls_sent - 1).arguments +
           choice->n_arguments_sent;
}

const char *tn_choice_finish(const struct tn_choice *choice)
{
    enum tern_stop stop = choice->job.result.stop;
    return stop == TERN_STOP_EOS || stop == TERN_STOP_STRING ? "stop" : "length";
}

const struct tern_token_logprob *tn_choice_logprobs(const struct tn_choice *choice, uint32_t i)
{
    return (const struct tern_token_logprob *)(void *)choice->logprobs.data +
           (size_t)i * TN_MAX(choice->job.request.n_logprobs, 1u);
}

size_t tn_choice_token_bytes(const struct tn_choice *choice, uint32_t i)
{
    return ((const uint32_t *)(void *)choice->lengths.data)[i];
}

/* One past the last token, from the first that was not shown, whose bytes are all in the first
 * n_bytes of the answer; with takes_begun also one that begins there.  has_all: the last token. */
static uint32_t tokens_within(const struct tn_choice *choice, size_t n_bytes, bool takes_begun,
                              bool has_all, size_t *n_token_bytes)
{
    const size_t at = answer_offset(choice);
    uint32_t i = choice->n_shown;
    *n_token_bytes = choice->n_shown_bytes;
    for (; at != SIZE_MAX && i < choice->n_tokens; i++) {
        const size_t n = tn_choice_token_bytes(choice, i);
        const bool is_whole = *n_token_bytes + n <= n_bytes + at;
        const bool is_begun = *n_token_bytes < n_bytes + at && takes_begun;
        if (!is_whole && !is_begun && !has_all)
            break;
        *n_token_bytes += n;
    }
    return i;
}

uint32_t tn_choice_tokens_of(const struct tn_choice *choice, size_t n_bytes,
                             size_t *n_token_bytes)
{
    const bool has_calls = tn_choice_n_calls(choice) > 0;
    const bool has_all = choice->has_ended && (has_calls || choice->job.result.stop !=
                                                                TERN_STOP_STRING);
    if (!has_calls || choice->has_ended)
        return tokens_within(choice, n_bytes, choice->has_ended, has_all, n_token_bytes);
    *n_token_bytes = choice->n_shown_bytes;
    return choice->n_shown;
}

uint32_t tn_choice_tokens_before_calls(const struct tn_task *task, const struct tn_choice *choice,
                                       size_t n_bytes, size_t *n_token_bytes)
{
    const bool has_calls = tn_choice_n_calls(choice) > 0;
    if (!has_calls && !task->must_call)
        return tn_choice_tokens_of(choice, n_bytes, n_token_bytes);
    if (has_calls)
        n_bytes = TN_MIN(n_bytes, tern_calls_get(choice->calls, 0).n_text);
    return tokens_within(choice, n_bytes, true, false, n_token_bytes);
}

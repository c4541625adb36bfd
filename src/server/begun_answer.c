/* SPDX-License-Identifier: MIT
 *
 * Continues an answer that the last message of a conversation begins.
 *
 * Removes it from the messages before the template renders them, and appends its ids to the prompt.
 */
#include "server/begun_answer.h"

#include "server/reasoning.h"

/* ---- requests ---- */

bool tn_begun_answer_read(struct tn_task *task, struct tn_refusal *r)
{
    static const char continues[] = "continue_final_message", prompts[] = "add_generation_prompt";
    bool is_continued = true, is_prompted = false;
    if (!tn_json_get_bool(task->body, continues, &is_continued, r) ||
        !tn_json_get_bool(task->body, prompts, &is_prompted, r))
        return false;
    const bool is_named = tn_json_member(task->body, continues) != NULL;
    if (is_named && is_continued && is_prompted)
        return tn_refuse(r, 400, continues, "\"%s\" and \"%s\" exclude each other", continues,
                         prompts);
    if (!is_continued || is_prompted)
        task->begun_answers = TN_BEGUN_ANSWERED;
    else
        task->begun_answers = is_named ? TN_BEGUN_REQUIRED : TN_BEGUN_CONTINUED;
    return true;
}

/* ---- conversations ---- */

bool tn_begun_answer_take(json_t **out, const struct tn_task *task, json_t *messages,
                          struct tn_refusal *r)
{
    const size_t n = json_array_size(messages);
    const char *param = task->gen.api->conversation;
    json_t *last = n > 0 ? json_array_get(messages, n - 1) : NULL;
    const bool has_calls = json_object_get(last, "tool_calls") != NULL;
    const bool is_begun = tn_json_has_role(last, "assistant") && !has_calls;
    *out = NULL;
    if (task->begun_answers == TN_BEGUN_REQUIRED && !is_begun)
        return tn_refuse(r, 400, param,
                         has_calls ? "the last message calls tools: their results come next"
                                   : "the last message must be the assistant's to be continued");
    if (task->begun_answers == TN_BEGUN_ANSWERED || !is_begun)
        return true;
    if (task->gen.is_structured)
        return tn_refuse(r, 400, param,
                         "the last message is the assistant's: structured output and forced tool "
                         "calls cannot continue an answer, end with a message of the user");
    *out = json_incref(last);
    json_array_remove(messages, n - 1);
    return true;
}

/* ---- prompts ---- */

/* Appends the text that the model wrote after these ids.  The space that the tokenizer puts after a
 * control token is not part of the text (engine/generation.c). */
static bool append_said(struct tn_task *task, const json_t *text, struct tn_refusal *r)
{
    const struct tern_tokenizer *tokenizer = tn_task_tokenizer(task);
    const struct tern_ids *ids = &task->ids;
    const bool is_start = ids->n > 0 && tern_tokenizer_is_special(tokenizer, ids->ids[ids->n - 1]);
    const size_t n = json_string_length(text);
    return n == 0 || (tn_task_may_fit(task, n, r) &&
                      tn_task_encode(task, &task->ids, json_string_value(text), n,
                                     is_start ? 0 : TERN_ENCODE_CONTINUE, r));
}

bool tn_begun_answer_append(struct tn_task *task, const json_t *answer, struct tn_refusal *r)
{
    static const char open[] = TERN_THINKING_OPEN;
    const json_t *content = json_object_get(answer, "content");
    const json_t *reasoning = json_object_get(answer, "reasoning_content");
    const bool has_content = json_string_length(content) > 0;
    const bool has_reasoning =
        json_string_length(reasoning) > 0 && !tn_reasoning_is_off(task);
    if (!tn_reasoning_begin(task, r))
        return false;
    const size_t n_prompt = task->ids.n;
    task->continues_answer = has_content || has_reasoning;
    if (has_reasoning && !task->reasoning_close) {
        if (!tn_task_encode(task, &task->ids, open, sizeof open - 1, TERN_ENCODE_PARSE_SPECIAL,
                            r))
            return false;
        task->reasoning_close = tern_thinking_opened_by(open, sizeof open - 1);
    }
    if (has_reasoning && !append_said(task, reasoning, r))
        return false;
    if (has_content && !(tn_reasoning_end(task, r) && append_said(task, content, r)))
        return false;
    task->gen.sampler.n_drawn = (uint32_t)(task->ids.n - n_prompt);
    return true;
}

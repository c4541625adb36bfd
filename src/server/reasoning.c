/* SPDX-License-Identifier: MIT
 *
 * Reads how a request wants reasoning handled, and prepares prompts accordingly.
 *
 * Every API spells it differently; all end up in the same members of struct tn_task.
 */
#include "server/reasoning.h"

#include <string.h>

#include "base/compiler.h"
#include "base/text_match.h"

/* ---- abilities of models ---- */

struct tern_chat_reasoning tn_reasoning_of(const struct tn_server_model *model)
{
    struct tern_chat_reasoning known = {0};
    if (model->chat)
        (void)tern_chat_reasoning(&known, model->chat, &model->chat_params, NULL);
    return known;
}

static bool can_think(const struct tn_task *task)
{
    return task->server->reasoning[tn_server_index(task->server, task->model)].is_known;
}

/* Built-in templates render role and content only. */
static bool takes_variables(const struct tn_server_model *model)
{
    return tern_chat_template_find(tern_chat_template_name(model->chat)) != model->chat;
}

/* ---- requests ---- */

/* The last setting counts; requested reasoning is shown. */
static void want(struct tn_task *task, bool is_on)
{
    task->reasoning = is_on ? TN_REASONING_ON : TN_REASONING_OFF;
    task->hides_reasoning = task->hides_reasoning && !is_on;
}

/* "none" turns it off, and hides reasoning that the model produces nevertheless. */
static bool read_effort(struct tn_task *task, const json_t *holder, struct tn_refusal *r)
{
    static const char name[] = "reasoning_effort";
    static const char *const words[] = {"none", "minimal", "low", "medium",
                                        "high", "xhigh",   "max"};
    const char *effort = NULL;
    if (!tn_json_get_text(holder, name, &effort, NULL, r))
        return false;
    if (!effort)
        return true;
    if (!tn_text_is_one_of(effort, words, TN_COUNT_OF(words)))
        return tn_refuse(r, 400, name,
                         "\"%s\" must be none, minimal, low, medium, high, xhigh or max", name);
    const bool is_on = strcmp(effort, "none") != 0;
    want(task, is_on);
    task->hides_reasoning = !is_on;
    task->effort = is_on ? effort : NULL;
    return true;
}

/* Of the template's variables, only those about reasoning are accepted from requests. */
static bool read_kwargs(struct tn_task *task, struct tn_refusal *r)
{
    static const char name[] = "chat_template_kwargs";
    static const char *const known[] = {"enable_thinking", "thinking", "reasoning_effort"};
    /* jansson's iterators are not const-correct */
    json_t *kwargs = (json_t *)tn_json_member(task->body, name);
    if (!kwargs)
        return true;
    if (!json_is_object(kwargs))
        return tn_refuse(r, 400, name, "\"%s\" must be an object", name);
    for (void *i = json_object_iter(kwargs); i; i = json_object_iter_next(kwargs, i))
        if (!tn_text_is_one_of(json_object_iter_key(i), known, TN_COUNT_OF(known)))
            return tn_refuse(r, 400, name,
                             "\"%s\": \"%.60s\" is not supported in requests, only "
                             "enable_thinking, thinking and reasoning_effort",
                             name, json_object_iter_key(i));
    bool is_on = false;
    if (!read_effort(task, kwargs, r))
        return false;
    for (size_t i = 0; i < 2; i++) {
        if (!tn_json_get_bool(kwargs, known[i], &is_on, r))
            return false;
        if (tn_json_member(kwargs, known[i]))
            want(task, is_on);
    }
    return true;
}

bool tn_reasoning_read(struct tn_task *task, struct tn_refusal *r)
{
    return read_effort(task, task->body, r) && read_kwargs(task, r);
}

/* Reads a level, which turns reasoning on. */
static bool read_level(struct tn_task *task, const json_t *think, struct tn_refusal *r)
{
    static const char *const words[] = {"low", "medium", "high", "max"};
    const char *level = json_string_value(think);
    if (!level)
        return tn_refuse(r, 400, "think",
                         "think must be a boolean or string (\"high\", "
                         "\"medium\", \"low\", \"max\", true, or false)");
    if (!tn_text_is_one_of(level, words, TN_COUNT_OF(words)))
        return tn_refuse(r, 400, "think",
                         "invalid think value: \"%.40s\" (must be \"high\", "
                         "\"medium\", \"low\", \"max\", true, or false)",
                         level);
    want(task, true);
    task->effort = strcmp(level, "max") == 0 ? "high" : level;
    return true;
}

bool tn_reasoning_read_think(struct tn_task *task, struct tn_refusal *r)
{
    const json_t *think = tn_json_member(task->body, "think");
    if (!think) {
        if (can_think(task) && !task->gen.is_structured)
            want(task, true);
        return true;
    }
    if (json_is_boolean(think))
        want(task, json_is_true(think));
    else if (!read_level(task, think, r))
        return false;
    task->hides_reasoning = task->reasoning == TN_REASONING_OFF;
    return task->reasoning == TN_REASONING_OFF || can_think(task) ||
           tn_refuse(r, 400, "think", "\"%s\" does not support thinking", task->model->id);
}

/* ---- prompts ---- */

static enum tn_reasoning reasoning_of(const struct tn_task *task)
{
    return task->gen.is_structured && task->reasoning == TN_REASONING_AUTO ? TN_REASONING_OFF
                                                                           : task->reasoning;
}

bool tn_reasoning_variables(json_t **out, const struct tn_task *task, struct tn_refusal *r)
{
    const enum tn_reasoning reasoning = reasoning_of(task);
    const bool is_on = reasoning == TN_REASONING_ON;
    *out = NULL;
    if (reasoning == TN_REASONING_AUTO || !takes_variables(task->model))
        return true;
    *out = json_object();
    if (tn_json_put(*out, "enable_thinking", json_boolean(is_on), r) &&
        tn_json_put(*out, "thinking", json_boolean(is_on), r) &&
        (!is_on || !task->effort ||
         tn_json_put(*out, "reasoning_effort", json_string(task->effort), r)))
        return true;
    json_decref(*out);
    *out = NULL;
    return false;
}

bool tn_reasoning_normalise(json_t *message, bool *has_some, struct tn_refusal *r)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};
    json_t *reasoning = NULL;
    for (size_t i = 0; i < TN_COUNT_OF(names) && json_string_length(reasoning) == 0; i++)
        reasoning = json_object_get(message, names[i]);
    *has_some = json_string_length(reasoning) > 0;
    if (*has_some)
        return tn_json_put(message, names[0], json_incref(reasoning), r);
    json_object_del(message, names[0]);
    return true;
}

void tn_reasoning_strip(const struct tn_task *task, json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages) && !takes_variables(task->model); i++)
        json_object_del(json_array_get(messages, i), "reasoning_content");
}

bool tn_reasoning_is_off(const struct tn_task *task)
{
    return reasoning_of(task) == TN_REASONING_OFF;
}

bool tn_reasoning_end(struct tn_task *task, struct tn_refusal *r)
{
    const char *close = task->reasoning_close;
    task->reasoning_close = NULL;
    return !close ||
           tern_thinking_close_ids(&task->ids, close, tn_task_tokenizer(task), NULL) == TERN_OK ||
           tn_refuse_memory(r);
}

bool tn_reasoning_begin(struct tn_task *task, struct tn_refusal *r)
{
    if (tern_thinking_opened_by_ids(&task->reasoning_close, tn_task_tokenizer(task), &task->ids,
                                    NULL) != TERN_OK)
        return tn_refuse_memory(r);
    task->separates_reasoning = !task->gen.is_structured || !tn_reasoning_is_off(task);
    return !tn_reasoning_is_off(task) || tn_reasoning_end(task, r);
}

/* Without a prompt that opens the reasoning, only a template with a switch shows that the model
 * opens it by itself. */
const char *tn_reasoning_tags(const char **close, const struct tn_task *task)
{
    const size_t i = tn_server_index(task->server, task->model);
    *close = task->reasoning_close;
    if (*close)
        return "";
    if (!task->separates_reasoning || !task->server->reasoning[i].has_switch)
        return NULL;
    *close = "</think>";
    return "<think>";
}

/* SPDX-License-Identifier: MIT
 *
 * Translates requests of POST /v1/responses to those of chat completions.
 *
 * translate.h has the common parts.  Fields that need stored conversations are refused.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/json_object.h"
#include "server/translate.h"

/* ---- parameters ---- */

static bool add_tools(struct tn_translation *t, json_t *out, const json_t *request,
                      struct tn_refusal *r)
{
    /* Codex lists a web search with every request: a model can do without, if it has functions. */
    static const struct tn_tool_form form = {"function", "parameters", .is_default = false,
                                             .group = "namespace", .omitted = "web_search"};
    const json_t *choice = tn_json_member(request, "tool_choice");
    if (!tn_translation_tools(t, out, request, &form, r))
        return false;
    if (tn_json_has_type(choice, "function"))
        tn_translation_set(t, out, "tool_choice", tn_translation_function(t, choice));
    else
        tn_translation_share(t, out, "tool_choice", request, "tool_choice");
    return true;
}

/* Refuses fields that need stored conversations, that change the answer and are not supported, or
 * that have a different name here. */
static bool refuse_others(const json_t *request, struct tn_refusal *r)
{
    static const char *const names[] = {"previous_response_id", "conversation", "prompt",
                                        "background"};
    double n_new = 0;
    if (!tn_translation_is_object(request, "text", r) ||
        !tn_translation_is_object(request, "reasoning", r))
        return false;
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        const json_t *value = tn_json_member(request, names[i]);
        if (value && !json_is_false(value))
            return tn_refuse(r, 400, names[i], "\"%s\": this server stores no answers", names[i]);
    }
    return tn_json_get_count(request, "max_output_tokens", -1, TN_JSON_NO_LIMIT, &n_new, r);
}

static bool includes_logprobs(const json_t *request)
{
    return tn_json_list_has(tn_json_member(request, "include"), "message.output_text.logprobs") ||
           json_number_value(tn_json_member(request, "top_logprobs")) > 0;
}

json_t *tn_responses_parameters(const json_t *request, struct tn_refusal *r)
{
    static const char *const shared[] = {"temperature", "top_p", "top_k", "min_p", "seed", "stream",
                                         "presence_penalty", "frequency_penalty",
                                         "repeat_penalty", "repetition_penalty", "logit_bias",
                                         "parallel_tool_calls", "top_logprobs", "stop"};
    struct tn_translation t = {0};
    if (!refuse_others(request, r))
        return NULL;
    json_t *out = json_object();
    for (size_t i = 0; i < TN_COUNT_OF(shared); i++)
        tn_translation_share(&t, out, shared[i], request, shared[i]);
    tn_translation_share(&t, out, "max_tokens", request, "max_output_tokens");
    tn_translation_set(&t, out, "logprobs", json_boolean(includes_logprobs(request)));
    tn_translation_share(&t, out, "reasoning_effort", tn_json_member(request, "reasoning"),
                         "effort");
    tn_translation_format(&t, out, tn_json_member(request, "text"));
    if (!out || add_tools(&t, out, request, r))
        return tn_translation_end(&t, out, r);
    json_decref(out);
    return NULL;
}

/* ---- the conversation ---- */

/* Adds a call to the message before it if that is the model's, else to a new one. */
static void add_call(struct tn_translation *t, json_t *messages, const json_t *item)
{
    const size_t n = json_array_size(messages);
    json_t *message = n > 0 ? json_array_get(messages, n - 1) : NULL;
    if (!tn_json_has_role(message, "assistant"))
        message = tn_translation_message(t, messages, "assistant");
    if (!json_object_get(message, "tool_calls"))
        tn_translation_set(t, message, "tool_calls", json_array());
    tn_translation_add(t, json_object_get(message, "tool_calls"),
                       tn_translation_call(t, item, "call_id", "arguments"));
}

static void add_output(struct tn_translation *t, json_t *messages, const json_t *item)
{
    json_t *message = tn_translation_message(t, messages, "tool");
    tn_translation_share(t, message, "tool_call_id", item, "call_id");
    tn_translation_share(t, message, "content", item, "output");
}

/* Reasoning before the next item starts an answer.  Its text may be given in full, as a summary, or
 * encrypted, which cannot be read. */
static void add_reasoning(struct tn_translation *t, json_t *messages, const json_t *item)
{
    json_t *reasoning =
        tn_translation_join(t, tn_json_member(item, "content"), "reasoning_text", "text");
    if (!reasoning)
        reasoning = tn_translation_join(t, tn_json_member(item, "summary"), "summary_text", "text");
    if (reasoning)
        tn_translation_set(t, tn_translation_message(t, messages, "assistant"),
                           "reasoning_content", reasoning);
}

/* The answer that the previous item, reasoning, began; NULL: none. */
static json_t *begun_answer(json_t *messages)
{
    const size_t n = json_array_size(messages);
    json_t *last = n > 0 ? json_array_get(messages, n - 1) : NULL;
    const bool is_begun = json_object_get(last, "reasoning_content") &&
                          !json_object_get(last, "content") && !json_object_get(last, "tool_calls");
    return is_begun ? last : NULL;
}

static void add_message(struct tn_translation *t, json_t *messages, const json_t *item)
{
    json_t *message = tn_json_has_role(item, "assistant") ? begun_answer(messages) : NULL;
    if (!message) {
        message = json_object();
        tn_translation_add(t, messages, message);
    }
    if (t->failed) /* a message that could not be added was freed */
        return;
    tn_translation_share(t, message, "role", item, "role");
    tn_translation_share(t, message, "content", item, "content");
}

static bool add_item(struct tn_translation *t, json_t *messages, const json_t *item, size_t i,
                     struct tn_refusal *r)
{
    const char *type = json_string_value(tn_json_member(item, "type"));
    if (!type || strcmp(type, "message") == 0) {
        add_message(t, messages, item);
    } else if (strcmp(type, "function_call") == 0) {
        add_call(t, messages, item);
    } else if (strcmp(type, "function_call_output") == 0) {
        add_output(t, messages, item);
    } else if (strcmp(type, "reasoning") == 0) {
        add_reasoning(t, messages, item);
    } else if (strcmp(type, "item_reference") == 0) {
        return tn_refuse(r, 400, "input",
                         "\"input\": item %zu refers to an earlier answer, but this server stores "
                         "none: with \"store\": false clients send the items themselves", i);
    } else {
        return tn_refuse(r, 400, "input",
                         "\"input\": item %zu has the type \"%.60s\", which is not supported", i,
                         type);
    }
    return true;
}

json_t *tn_responses_conversation(const json_t *request, struct tn_refusal *r)
{
    struct tn_translation t = {0};
    const json_t *input = tn_json_member(request, "input");
    json_t *messages = json_array();
    bool is_good = json_is_string(input) || json_array_size(input) > 0 ||
                   tn_refuse(r, 400, "input",
                             "\"input\" must be a string or an array of items, not empty");
    const json_t *instructions = tn_json_member(request, "instructions");
    if (is_good && instructions && !json_is_string(instructions))
        is_good = tn_refuse(r, 400, "instructions", "\"instructions\" must be a string");
    if (instructions)
        tn_translation_share(&t, tn_translation_message(&t, messages, "system"), "content", request,
                             "instructions");
    if (json_is_string(input))
        tn_translation_share(&t, tn_translation_message(&t, messages, "user"), "content", request,
                             "input");
    for (size_t i = 0; is_good && i < json_array_size(input); i++)
        is_good = add_item(&t, messages, json_array_get(input, i), i, r);
    if (is_good)
        return tn_translation_end(&t, messages, r);
    json_decref(messages);
    return NULL;
}

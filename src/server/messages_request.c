/* SPDX-License-Identifier: MIT
 *
 * Translates requests of POST /v1/messages to those of chat completions.
 *
 * translate.h has the common parts; the result is read by the same functions as OpenAI's requests.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/json_object.h"
#include "server/translate.h"

/* ---- parameters ---- */

/* Reads {"type":"auto"}, "any", "none", or {"type":"tool","name":...}. */
static bool add_choice(struct tn_translation *t, json_t *out, const json_t *request,
                       struct tn_refusal *r)
{
    static const char *const words[][2] = {{"auto", "auto"}, {"any", "required"}, {"none", "none"}};
    const json_t *choice = tn_json_member(request, "tool_choice");
    if (!choice)
        return true;
    if (json_is_true(tn_json_member(choice, "disable_parallel_tool_use")))
        tn_translation_set(t, out, "parallel_tool_calls", json_false());
    if (tn_json_has_type(choice, "tool")) {
        tn_translation_set(t, out, "tool_choice", tn_translation_function(t, choice));
        return true;
    }
    for (size_t i = 0; i < TN_COUNT_OF(words); i++)
        if (tn_json_has_type(choice, words[i][0])) {
            tn_translation_set(t, out, "tool_choice", json_string(words[i][1]));
            return true;
        }
    return tn_refuse(r, 400, "tool_choice",
                     "\"tool_choice\" must have the \"type\" auto, any, none or tool");
}

static bool add_tools(struct tn_translation *t, json_t *out, const json_t *request,
                      struct tn_refusal *r)
{
    static const struct tn_tool_form form = {"custom", "input_schema", .is_default = true};
    return tn_translation_tools(t, out, request, &form, r) && add_choice(t, out, request, r);
}

/* Reads {"type":"enabled"}, "adaptive", or "disabled" (the default): without blocks of reasoning.
 * The model decides how many tokens it takes; "budget_tokens" is ignored. */
static bool add_thinking(struct tn_translation *t, json_t *out, const json_t *request,
                         struct tn_refusal *r)
{
    const json_t *thinking = tn_json_member(request, "thinking");
    const json_t *config = tn_json_member(request, "output_config");
    if (!thinking || tn_json_has_type(thinking, "disabled")) {
        tn_translation_set(t, out, "reasoning_effort", json_string("none"));
        return true;
    }
    if (!tn_json_has_type(thinking, "enabled") && !tn_json_has_type(thinking, "adaptive"))
        return tn_refuse(r, 400, "thinking",
                         "\"thinking\" must have the \"type\" enabled, adaptive or disabled");
    json_t *variables = json_object();
    tn_translation_set(t, variables, "enable_thinking", json_true());
    tn_translation_set(t, out, "chat_template_kwargs", variables);
    tn_translation_share(t, out, "reasoning_effort", config, "effort");
    return true;
}

json_t *tn_messages_parameters(const json_t *request, struct tn_refusal *r)
{
    static const char *const others[] = {"stop", "n", "tools", "tool_choice", "stream_options",
                                         "response_format", "reasoning_effort",
                                         "chat_template_kwargs", "parallel_tool_calls"};
    struct tn_translation t = {0};
    if (!tn_translation_is_object(request, "output_config", r))
        return NULL;
    json_t *out = json_object();
    t.failed = !tn_json_add_missing(out, request);
    for (size_t i = 0; i < TN_COUNT_OF(others); i++)
        json_object_del(out, others[i]);
    tn_translation_format(&t, out, tn_json_member(request, "output_config"));
    if (!out || (add_thinking(&t, out, request, r) && add_tools(&t, out, request, r)))
        return tn_translation_end(&t, out, r);
    json_decref(out);
    return NULL;
}

/* ---- the conversation ---- */

/* A tool's result becomes a separate message. */
static void add_result(struct tn_translation *t, json_t *messages, const json_t *block)
{
    json_t *message = tn_translation_message(t, messages, "tool");
    tn_translation_share(t, message, "tool_call_id", block, "tool_use_id");
    tn_translation_share(t, message, "content", block, "content");
    if (!tn_json_member(block, "content"))
        tn_translation_set(t, message, "content", json_string(""));
}

/* Adds from[key], if present, as a part. */
static void add_text(struct tn_translation *t, json_t *parts, const json_t *from, const char *key)
{
    if (!tn_json_member(from, key))
        return;
    json_t *part = json_object();
    tn_translation_set(t, part, "type", json_string("text"));
    tn_translation_share(t, part, "text", from, key);
    tn_translation_add(t, parts, part);
}

/* A document of plain text becomes texts, without citations. */
static void add_document(struct tn_translation *t, json_t *parts, const json_t *block)
{
    add_text(t, parts, block, "title");
    add_text(t, parts, block, "context");
    add_text(t, parts, tn_json_member(block, "source"), "data");
}

static bool is_document(const json_t *block)
{
    return tn_json_has_type(block, "document") &&
           tn_json_has_type(tn_json_member(block, "source"), "text");
}

/* Texts stay parts; reasoning, tool calls and results take the form of chat completions. */
static void add_blocks(struct tn_translation *t, json_t *messages, const char *role,
                       const json_t *blocks)
{
    json_t *parts = json_array(), *calls = json_array();
    json_t *reasoning = tn_translation_join(t, blocks, "thinking", "thinking");
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        json_t *block = json_array_get(blocks, i);
        if (tn_json_has_type(block, "tool_use"))
            tn_translation_add(t, calls, tn_translation_call(t, block, "id", "input"));
        else if (tn_json_has_type(block, "tool_result"))
            add_result(t, messages, block);
        else if (is_document(block))
            add_document(t, parts, block);
        else if (!tn_json_has_type(block, "thinking") &&
                 !tn_json_has_type(block, "redacted_thinking"))
            tn_translation_add(t, parts, json_incref(block));
    }
    const bool has_calls = json_array_size(calls) > 0;
    if (json_array_size(parts) > 0 || has_calls || reasoning || json_array_size(blocks) == 0) {
        json_t *message = tn_translation_message(t, messages, role);
        tn_translation_set(t, message, "content", json_incref(parts));
        if (reasoning)
            tn_translation_set(t, message, "reasoning_content", json_incref(reasoning));
        if (has_calls)
            tn_translation_set(t, message, "tool_calls", json_incref(calls));
    }
    t->failed = t->failed || !parts || !calls;
    json_decref(parts);
    json_decref(calls);
    json_decref(reasoning);
}

static bool add_message(struct tn_translation *t, json_t *messages, json_t *message, size_t i,
                        struct tn_refusal *r)
{
    const char *role = json_string_value(tn_json_member(message, "role"));
    const json_t *content = tn_json_member(message, "content");
    if (!role || (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 &&
                  strcmp(role, "system") != 0))
        return tn_refuse(r, 400, "messages",
                         "message %zu: \"role\" must be user, assistant or system", i);
    if (json_is_array(content))
        add_blocks(t, messages, role, content);
    else
        tn_translation_add(t, messages, json_incref(message));
    return true;
}

json_t *tn_messages_conversation(const json_t *request, struct tn_refusal *r)
{
    struct tn_translation t = {0};
    const json_t *from = tn_json_member(request, "messages");
    json_t *messages = json_array();
    bool is_good = json_is_array(from) ||
                   tn_refuse(r, 400, "messages", "\"messages\" must be an array of messages");
    const json_t *system = tn_json_member(request, "system");
    if (is_good && system && !json_is_string(system) && !json_is_array(system))
        is_good = tn_refuse(r, 400, "system", "\"system\" must be a string or an array of parts");
    if (system)
        tn_translation_share(&t, tn_translation_message(&t, messages, "system"), "content", request,
                             "system");
    for (size_t i = 0; is_good && i < json_array_size(from); i++)
        is_good = add_message(&t, messages, json_array_get(from, i), i, r);
    if (is_good)
        return tn_translation_end(&t, messages, r);
    json_decref(messages);
    return NULL;
}

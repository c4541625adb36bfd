/* SPDX-License-Identifier: MIT
 *
 * Reasoning is turned off by the template's variables, or closed where the prompt opens it, as the
 * server does for structured output (server/reasoning.h).
 */
#include "turn_prompt.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_dump.h"
#include "tern/thinking.h"

/* {"messages": [...], "kwargs": {...}}, with reasoning off.  false: out of memory. */
static bool write_conversation(struct tn_buf *out, const struct tern_message *messages, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s%, s:s%}", "role", messages[i].role,
                                              messages[i].n_role, "content", messages[i].content,
                                              messages[i].n_content));
    const bool is_whole = json_array_size(list) == n;
    json_t *conversation = json_pack("{s:o, s:{s:b, s:b}}", "messages", list, "kwargs",
                                     "enable_thinking", 0, "thinking", 0);
    const bool is_written = is_whole && conversation && tn_json_dump(out, conversation);
    json_decref(conversation);
    return is_written;
}

static tern_status encode_without_reasoning(struct tern_ids *ids,
                                            const struct tern_tokenizer *tokenizer,
                                            const struct tn_template *template,
                                            const struct tern_message *messages, size_t n,
                                            struct tern_error *err)
{
    struct tn_buf json = {0};
    tern_status status =
        write_conversation(&json, messages, n)
            ? tern_chat_encode_json(tokenizer, template->t, json.data, json.n_bytes,
                                    &template->params, ids, err)
            : tn_fail(err, TERN_MEMORY, "no memory for the prompt");
    tn_buf_fini(&json);
    return status;
}

/* Closes reasoning that the prompt opens, if any. */
static tern_status close_reasoning(struct tern_ids *ids, const struct tern_tokenizer *tokenizer,
                                   struct tern_error *err)
{
    const char *close;
    char text[64];
    tern_status status = tern_thinking_opened_by_ids(&close, tokenizer, ids, err);
    if (status != TERN_OK || !close)
        return status;
    const int n = snprintf(text, sizeof text, "\n%s\n\n", close);
    return tern_tokenizer_encode(tokenizer, text, (size_t)n, TERN_ENCODE_PARSE_SPECIAL, ids, err);
}

tern_status tn_turn_encode(struct tern_ids *ids, const struct tn_options *o,
                           const struct tern_tokenizer *tokenizer, const struct tn_buf *prompt,
                           const struct tn_template *template, struct tern_error *err)
{
    struct tern_message messages[2];
    struct tern_chat_reasoning reasoning = {0};
    tern_status status = TERN_OK;
    size_t n = 0;
    if (o->system)
        messages[n++] = (struct tern_message){"system", 6, o->system, strlen(o->system)};
    messages[n++] = (struct tern_message){"user", 4, prompt->data, prompt->n_bytes};
    if (o->schema)
        status = tern_chat_reasoning(&reasoning, template->t, &template->params, err);
    if (status == TERN_OK)
        status = reasoning.has_switch
                     ? encode_without_reasoning(ids, tokenizer, template, messages, n, err)
                     : tern_chat_encode(tokenizer, template->t, messages, n, &template->params, ids,
                                        err);
    return status == TERN_OK && o->schema ? close_reasoning(ids, tokenizer, err) : status;
}

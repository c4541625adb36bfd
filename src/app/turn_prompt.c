/* SPDX-License-Identifier: MIT
 *
 * Reasoning is turned off by the template's variables, or closed where the prompt opens it, as the
 * server does for structured output (server/reasoning.h).
 */
#include "turn_prompt.h"

#include <string.h>

#include "chat.h"
#include "tern/conversation.h"

static tern_status encode_without_reasoning(struct tern_ids *ids,
                                            const struct tern_tokenizer *tokenizer,
                                            const struct tn_template *template,
                                            const char *system, const struct tn_buf *prompt,
                                            struct tern_error *err)
{
    static const char off[] = TN_CHAT_THINK_OFF;
    const struct tern_turn turn = {.role = {"user", 4},
                                   .content = {tn_buf_bytes(prompt), prompt->n_bytes}};
    struct tern_conversation *c;
    tern_status status = tern_conversation_create(&c, err);
    if (status != TERN_OK)
        return status;
    tern_conversation_set_template(c, tokenizer, template->t, &template->params);
    status = tern_conversation_set_overrides(c, off, sizeof off - 1, err);
    if (status == TERN_OK && system)
        status = tern_conversation_set_system(c, system, strlen(system), err);
    if (status == TERN_OK)
        status = tern_conversation_add(c, &turn, err);
    if (status == TERN_OK)
        status = tern_conversation_encode(c, ids, err);
    tern_conversation_free(c);
    return status;
}

static tern_status encode(struct tern_ids *ids, const struct tern_tokenizer *tokenizer,
                          const struct tn_template *template, const char *system,
                          const struct tn_buf *prompt, struct tern_error *err)
{
    struct tern_message messages[2];
    size_t n = 0;
    if (system)
        messages[n++] = (struct tern_message){"system", 6, system, strlen(system)};
    messages[n++] = (struct tern_message){"user", 4, prompt->data, prompt->n_bytes};
    return tern_chat_encode(tokenizer, template->t, messages, n, &template->params, ids, err);
}

tern_status tn_turn_encode(struct tern_ids *ids, const struct tn_options *o,
                           const struct tern_tokenizer *tokenizer, const struct tn_buf *prompt,
                           const struct tn_template *template, struct tern_error *err)
{
    struct tern_chat_reasoning reasoning;
    const char *close;
    if (!tn_options_has_format(o))
        return encode(ids, tokenizer, template, o->system, prompt, err);
    tern_status status = tern_chat_reasoning(&reasoning, template->t, &template->params, err);
    if (status == TERN_OK)
        status = (reasoning.has_switch ? encode_without_reasoning : encode)(
            ids, tokenizer, template, o->system, prompt, err);
    if (status == TERN_OK)
        status = tern_thinking_opened_by_ids(&close, tokenizer, ids, err);
    return status == TERN_OK && close ? tern_thinking_close_ids(ids, close, tokenizer, err)
                                      : status;
}

/* SPDX-License-Identifier: MIT
 *
 * Reasoning of models that think before they answer: whether a request wants it, how the
 * chat template learns of it, and which ids the prompt needs.
 *
 * Structured output and forced calls come without reasoning unless the request asks for it: the
 * default of models that think would take most of the tokens of a short answer.
 */
#ifndef TN_REASONING_H
#define TN_REASONING_H

#include "server/task.h"
#include "tern/thinking.h"

/* What the model's chat template supports; nothing without a template. */
struct tern_chat_reasoning tn_reasoning_of(const struct tn_server_model *model);

/* Reads "reasoning_effort" and "chat_template_kwargs" of an OpenAI request.  false: refused. */
bool tn_reasoning_read(struct tn_task *task, struct tn_refusal *refusal);
/* Reads "think" of an Ollama request.  The default is on for models that support it, except for
 * structured output; others refuse a request to think.  false: refused. */
bool tn_reasoning_read_think(struct tn_task *task, struct tn_refusal *refusal);

/* The template variables that control it, "kwargs" of a conversation.  *out is NULL (none) or must
 * be freed by json_decref.  false: refused. */
bool tn_reasoning_variables(json_t **out, const struct tn_task *task, struct tn_refusal *refusal);
/* Renames a message's reasoning to "reasoning_content", the name that templates use.  *has_some:
 * there is some.  false: refused. */
bool tn_reasoning_normalise(json_t *message, bool *has_some, struct tn_refusal *refusal);
/* Removes reasoning from all messages if the model's template is built-in and cannot render it. */
void tn_reasoning_strip(const struct tn_task *task, json_t *messages);
/* Starts separating reasoning from the text once the prompt is encoded.  If the prompt opens
 * reasoning that is not wanted, it is closed there.  false: refused. */
bool tn_reasoning_begin(struct tn_task *task, struct tn_refusal *refusal);
/* Closes reasoning that the prompt has opened, if any.  false: refused. */
bool tn_reasoning_end(struct tn_task *task, struct tn_refusal *refusal);
/* Does the request turn reasoning off? */
bool tn_reasoning_is_off(const struct tn_task *task);
/* The tags between which a structured answer reasons, once the prompt is prepared: the first, ""
 * if the prompt opens the reasoning, and *close.  NULL: it does not reason. */
const char *tn_reasoning_tags(const char **close, const struct tn_task *task);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Reasoning of models that think before they answer: whether a request wants it, how the chat
 * template learns of it, and which ids of the prompt it needs.  An answer of a form (gen.h) is
 * given without: it is bound from its first token on.
 */
#ifndef TN_REASONING_H
#define TN_REASONING_H

#include "server/task.h"
#include "tern/thinking.h"

/* What the model's chat template knows; nothing when it has none. */
struct tern_chat_reasoning tn_reasoning_of(const struct tn_server_model *model);

/* "reasoning_effort" and "chat_template_kwargs" of an OpenAI request.  false: refused. */
bool tn_reasoning_read(struct tn_task *task, struct tn_refusal *refusal);
/* "think" of an Ollama request.  Models that can think do so unless told otherwise; others are
 * refused when they are asked to.  false: refused. */
bool tn_reasoning_read_think(struct tn_task *task, struct tn_refusal *refusal);

/* What the template is given for it, "kwargs" of a conversation.  *out is NULL: nothing, else
 * json_decref.  false: refused. */
bool tn_reasoning_variables(json_t **out, const struct tn_task *task, struct tn_refusal *refusal);
/* A message's reasoning becomes "reasoning_content", by which templates know it.  *has_some: there
 * is some.  false: refused. */
bool tn_reasoning_normalise(json_t *message, bool *has_some, struct tn_refusal *refusal);
/* Removes it from all messages where the model's template is a built-in one, which takes none. */
void tn_reasoning_strip(const struct tn_task *task, json_t *messages);
/* The prompt is there: from here on reasoning is told from the text of the answers.  When the
 * prompt opens it and it is not wanted, it is closed there.  false: refused. */
bool tn_reasoning_begin(struct tn_task *task, struct tn_refusal *refusal);
/* Closes reasoning that the prompt has begun, if it has.  false: refused. */
bool tn_reasoning_end(struct tn_task *task, struct tn_refusal *refusal);
/* The request wants none. */
bool tn_reasoning_is_off(const struct tn_task *task);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Tools of a request, and their calls in its answers; of conversations in all APIs.
 */
#ifndef TN_TOOLS_H
#define TN_TOOLS_H

#include "server/task.h"

/* Does the model's chat template know tools, in a form of calls that is known? */
bool tn_tools_are_known(const struct tn_server_model *model);

/* The "tools" of a request of any API, NULL where it has none.  false: refused, before anything is
 * made of a list that is too long. */
bool tn_tools_list(const json_t **out, const json_t *request, struct tn_refusal *refusal);

/* answer->tools becomes the request's "tools", unless there are none or "tool_choice" is "none".
 * false: refused.  Read behind the form of the answer and before its other parameters. */
bool tn_tools_read(struct tn_task *task, struct tn_refusal *refusal);

/* Binds an answer that must be a call to the grammar of one, when the form of calls is known.  A
 * part of a tn_task_prepare_fn.  false: refused. */
bool tn_tools_bind(struct tn_task *task, struct tn_refusal *refusal);

/* ,"tool_calls":[...] with all calls of a choice, as OpenAI writes them in messages. */
void tn_tools_append_openai(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice);
/* The next delta of an OpenAI stream, {"tool_calls":[...]}: a call without arguments, or more of
 * the arguments of the last one.  false: there is none yet. */
bool tn_tools_append_delta(struct tn_buf *out, const struct tn_task *task,
                           struct tn_choice *choice);
/* ,"tool_calls":[...] with the calls from number `first` on, as Ollama writes them. */
void tn_tools_append_ollama(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice, size_t first);

#endif

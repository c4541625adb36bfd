/* SPDX-License-Identifier: MIT
 *
 * The tools of a request, and tool calls in answers, for the conversations of all APIs.
 *
 * chat/call_form.c knows the formats in which models write calls.
 */
#ifndef TN_TOOLS_H
#define TN_TOOLS_H

#include "server/task.h"

#define TN_MAX_TOOLS 128u

/* Does the model's chat template support tools, with a known format of calls? */
bool tn_tools_are_known(const struct tn_server_model *model);

/* Finds the "tools" of a request of any API; NULL: none.  false: refused, because the list is too
 * long to be processed. */
bool tn_tools_list(const json_t **out, const json_t *request, struct tn_refusal *refusal);
/* Refuses more than TN_MAX_TOOLS functions; false. */
bool tn_tools_refuse_number(struct tn_refusal *refusal);

/* Sets task->tools unless there are none or "tool_choice" is "none".  Must be called after the
 * output format is read and before other parameters.  false: refused. */
bool tn_tools_read(struct tn_task *task, struct tn_refusal *refusal);

/* Reads the tools' schemas for the answer, whose form of calls is known.  For use in a
 * tn_task_prepare_fn.  false: refused. */
bool tn_tools_bind(struct tn_task *task, struct tn_refusal *refusal);

/* ,"tool_calls":[...] with all calls of a choice, in OpenAI's format. */
void tn_tools_append_openai(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice);
/* The next delta of an OpenAI stream, {"tool_calls":[...]}: a call without arguments, or more
 * arguments of the last call.  false: none yet. */
bool tn_tools_append_delta(struct tn_buf *out, const struct tn_task *task,
                           struct tn_choice *choice);
/* ,"tool_calls":[...] with the calls from index `first` on, in Ollama's format. */
void tn_tools_append_ollama(struct tn_buf *out, const struct tn_task *task,
                            const struct tn_choice *choice, size_t first);

#endif

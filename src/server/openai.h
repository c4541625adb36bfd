/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by OpenAI's routes.
 *
 * Chat completions are also the internal form to which other APIs' requests are translated.
 */
#ifndef TN_OPENAI_H
#define TN_OPENAI_H

#include "server/task.h"

/* An answer or an event of a stream up to its choices: {"id":"PREFIX-...","object":"OBJECT",
 * "created":...,"model":"...","system_fingerprint":"...","choices":[ */
void tn_openai_begin_answer(struct tn_buf *out, const struct tn_task *task, const char *prefix,
                            const char *object);
/* ],"usage":{...},"timings":{...}} of a complete answer, or the last event of a stream. */
void tn_openai_end_answer(struct tn_buf *out, const struct tn_task *task);
/* Ends a stream: an event with the usage, if requested, and [DONE]. */
void tn_openai_end_stream(struct tn_task *task, const char *prefix, const char *object);
/* The number of tokens of a prompt.  The callback `end_answer` of formats that count them. */
void tn_openai_end_count(struct tn_task *task, struct tn_buf *out);
/* ,"timings":{...} of an ended choice, as in llama.cpp. */
void tn_openai_append_timings(struct tn_buf *out, const struct tn_choice *choice);
/* Ends the object of an event after its choice.  The choice's last event has its timings, unless
 * one with the usage follows. */
void tn_openai_end_event(struct tn_buf *out, const struct tn_task *task,
                         const struct tn_choice *choice, bool is_last);
/* ,"prompt_progress":{...} as in llama.cpp. */
void tn_openai_append_progress(struct tn_buf *out, const struct tn_prompt_progress *progress);
/* Sends an event of a stream: data: {...} and a blank line. */
void tn_openai_send_event(struct tn_task *task, struct tn_buf *json);
/* The same, preceded by event: NAME. */
void tn_openai_send_named(struct tn_task *task, const char *name, struct tn_buf *json);
/* The callback `send_error` of formats with these events. */
void tn_openai_send_error(struct tn_task *task, const struct tn_refusal *refusal);

/* Reads output format, tools and parameters from a body in the form of chat completions.  false:
 * refused. */
bool tn_chat_read(struct tn_task *task, struct tn_refusal *refusal);
/* Encodes a conversation: "messages" of OpenAI or Ollama, and the task's tools.  false: refused. */
bool tn_chat_ids(struct tn_task *task, const json_t *messages, struct tn_refusal *refusal);
/* The same for the "messages" of the task's body.  A tn_task_prepare_fn. */
bool tn_chat_prepare(struct tn_task *task, struct tn_refusal *refusal);

/* Encodes a request's "prompt": a text, a mix of ids and texts, or an array of those, each a
 * separate prompt.  A tn_task_prepare_fn. */
bool tn_text_ids(struct tn_task *task, struct tn_refusal *refusal);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What the OpenAI routes share.
 */
#ifndef TN_OPENAI_H
#define TN_OPENAI_H

#include "server/task.h"

/* "id":"chatcmpl-...","object":"...","created":...,"model":"...","system_fingerprint":"..." */
void tn_openai_append_head(struct tn_buf *out, const struct tn_task *task, const char *prefix,
                           const char *object);
/* A whole answer, or the last event of a stream, but for its choices: {HEAD,"choices":[ and
 * ],"usage":{...}} */
void tn_openai_begin_answer(struct tn_buf *out, const struct tn_task *task, const char *prefix,
                            const char *object);
void tn_openai_end_answer(struct tn_buf *out, const struct tn_task *task);
/* The end of a stream: an event with the usage, where it is wanted, and [DONE]. */
void tn_openai_end_stream(struct tn_task *task, const char *prefix, const char *object);
/* ,"prompt_progress":{...} as llama.cpp has it. */
void tn_openai_append_progress(struct tn_buf *out, const struct tn_prompt_progress *progress);
/* The events of a stream: data: {...} and a blank line. */
void tn_openai_send_event(struct tn_task *task, struct tn_buf *json);
/* The same with event: NAME in front. */
void tn_openai_send_named(struct tn_task *task, const char *name, struct tn_buf *json);
/* For formats: fail and the last event. */
void tn_openai_stream_fail(struct tn_task *task, const struct tn_refusal *refusal);

/* The form, the tools and the parameters of an answer, from a body as chat completions have it.
 * false: refused. */
bool tn_chat_read(struct tn_task *task, struct tn_refusal *refusal);
/* The ids of a conversation: "messages" as OpenAI and Ollama write them, and the answer's tools.
 * false: refused. */
bool tn_chat_ids(struct tn_task *task, const json_t *messages, struct tn_refusal *refusal);

/* The ids of a request's "prompt": a text, ids and texts mixed, or an array of either, each a
 * prompt of its own.  A tn_task_prepare_fn. */
bool tn_text_ids(struct tn_task *task, struct tn_refusal *refusal);

#endif

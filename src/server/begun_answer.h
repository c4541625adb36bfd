/* SPDX-License-Identifier: MIT
 *
 * An answer that the last message of a conversation begins: the prompt ends with its text, and the
 * model continues it.  Clients use it to continue after max_tokens, a lost connection or a stop by
 * the user, and to prefill answers.  The server returns the continuation alone.
 *
 * The prompt is the one that the answer had when it was begun, plus the ids of its text, for each
 * of which a random number of the seed is skipped.  At temperature 0, or with the same seed, an
 * answer continues with the bytes of the uninterrupted one, unless its reasoning was cut within
 * white space, or the model's tokens differ from those of the tokenizer.
 */
#ifndef TN_BEGUN_ANSWER_H
#define TN_BEGUN_ANSWER_H

#include "server/task.h"

/* Reads "continue_final_message" and "add_generation_prompt" as in vLLM.  Without them a final
 * assistant message is continued, as in llama.cpp's server and Ollama.  false: refused. */
bool tn_begun_answer_read(struct tn_task *task, struct tn_refusal *refusal);

/* Removes the begun answer from the end of normalised messages.  *out: the answer (json_decref), or
 * NULL if the task continues none.  false: refused. */
bool tn_begun_answer_take(json_t **out, const struct tn_task *task, json_t *messages,
                          struct tn_refusal *refusal);

/* Appends the answer to the task's prompt, which must end where an answer begins, and records
 * whether the model continues inside its reasoning.  Replaces tn_reasoning_begin.  false: refused.
 */
bool tn_begun_answer_append(struct tn_task *task, const json_t *answer,
                            struct tn_refusal *refusal);

#endif

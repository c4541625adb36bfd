/* SPDX-License-Identifier: MIT
 *
 * An answer that the last message of a conversation begins: the prompt ends with its text, and the
 * model continues it.  So clients continue what max_tokens, a lost connection or a user cut off,
 * and put words into the model's mouth.  The answer of the server is the continuation alone.
 *
 * The prompt is the one that the answer had when it was begun, followed by the ids of its text:
 * a greedy answer continues with the bytes of the uninterrupted one, unless reasoning was cut
 * within the white space around it, or the model wrote its text in other tokens than the tokenizer.
 */
#ifndef TN_BEGUN_ANSWER_H
#define TN_BEGUN_ANSWER_H

#include "server/task.h"

/* "continue_final_message" and "add_generation_prompt", as vLLM has them.  Without them the
 * assistant's message at the end is continued, as by llama.cpp's server and Ollama.  false:
 * refused. */
bool tn_begun_answer_read(struct tn_task *task, struct tn_refusal *refusal);

/* Removes the begun answer from the end of normalised messages.  *out is NULL: there is none that
 * the task continues; else json_decref.  false: refused. */
bool tn_begun_answer_take(json_t **out, const struct tn_task *task, json_t *messages,
                          struct tn_refusal *refusal);

/* Appends the answer to the task's prompt, which ends where an answer begins, and notes whether the
 * model continues inside its reasoning.  Replaces tn_reasoning_begin.  false: refused. */
bool tn_begun_answer_append(struct tn_task *task, const json_t *answer,
                            struct tn_refusal *refusal);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Log-probabilities of an answer's tokens, as in chats of OpenAI and Ollama and in completions of
 * llama.cpp.
 *
 * openai_text.c has the older format of OpenAI's completions.
 */
#ifndef TN_LOGPROBS_H
#define TN_LOGPROBS_H

#include "server/task.h"

#define TN_LOGPROB_FLOOR (-9999.0)

/* Reads "logprobs" and "top_logprobs".  false: refused. */
bool tn_logprobs_read(struct tn_task *task, struct tn_refusal *refusal);

/* [{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[...]}] for the tokens [from, to);
 * has_ids adds ids as llama.cpp does. */
void tn_logprobs_append(struct tn_buf *out, const struct tn_task *task,
                        const struct tn_choice *choice, uint32_t from, uint32_t to, bool has_ids);

#endif

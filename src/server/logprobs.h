/* SPDX-License-Identifier: MIT
 *
 * Log-probabilities of an answer's tokens, as conversations of OpenAI and Ollama and completions of
 * llama.cpp write them.
 */
#ifndef TN_LOGPROBS_H
#define TN_LOGPROBS_H

#include "server/task.h"

#define TN_LOGPROB_FLOOR (-9999.0)

/* "logprobs" and "top_logprobs" of a request.  false: refused. */
bool tn_logprobs_read(struct tn_task *task, struct tn_refusal *refusal);

/* [{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[...]}], of the tokens [from, to); with
 * their ids as llama.cpp has them. */
void tn_logprobs_append(struct tn_buf *out, const struct tn_task *task,
                        const struct tn_choice *choice, uint32_t from, uint32_t to, bool has_ids);

#endif

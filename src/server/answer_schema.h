/* SPDX-License-Identifier: MIT
 *
 * What form an answer has to have: "response_format" of OpenAI, "format" of Ollama, "json_schema"
 * of llama.cpp.
 *
 * The form is read with the rest of the request.  Its grammar is made beside the loop: a schema may
 * take a tenth of a second.
 */
#ifndef TN_ANSWER_SCHEMA_H
#define TN_ANSWER_SCHEMA_H

#include "server/task.h"

/* gen->form becomes what a request's "response_format" asks for.  false: refused. */
bool tn_gen_read_response_format(struct tn_gen *gen, const json_t *body,
                                 struct tn_refusal *refusal);
/* The same for "format": "json", or a schema. */
bool tn_gen_read_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *refusal);
/* The same for "json_schema": a schema. */
bool tn_gen_read_json_schema(struct tn_gen *gen, const json_t *body, struct tn_refusal *refusal);

/* The grammar of an answer's form, which is not any text; what it takes is held.  Any thread that
 * owns the answer.  false: refused, with the place in the schema. */
bool tn_answer_schema_compile(struct tn_task *task, struct tn_refusal *refusal);

#endif

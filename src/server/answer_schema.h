/* SPDX-License-Identifier: MIT
 *
 * Structured output: "response_format" of OpenAI, "format" of Ollama, "json_schema" and "grammar"
 * of llama.cpp, "structured_outputs" of vLLM.
 *
 * The format is read with the rest of the request; answer_grammar.c compiles it.
 */
#ifndef TN_ANSWER_SCHEMA_H
#define TN_ANSWER_SCHEMA_H

#include "server/task.h"

/* Sets the output format from "response_format".  false: refused. */
bool tn_gen_read_response_format(struct tn_gen *gen, const json_t *body,
                                 struct tn_refusal *refusal);
/* The same from "format": "json", or a schema. */
bool tn_gen_read_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *refusal);
/* The same from llama.cpp's "json_schema", a schema, or "grammar", GBNF. */
bool tn_gen_read_llama_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *refusal);
/* The same from what llama.cpp and vLLM add to OpenAI's routes: the members above, "guided_json",
 * "guided_regex", "guided_choice", "guided_grammar" or "structured_outputs". */
bool tn_gen_read_added_formats(struct tn_gen *gen, const json_t *body,
                               struct tn_refusal *refusal);

/* Appends the schema to *text, and holds memory for compiling it. false: refused. */
bool tn_answer_schema_write(struct tn_buf *text, struct tn_task *task, struct tn_refusal *refusal);
/* Refuses with the error of compiling it, and the path in the schema. */
bool tn_answer_schema_refuse(const struct tn_task *task, const struct tern_error *err,
                             struct tn_refusal *refusal);

#endif

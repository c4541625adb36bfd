/* SPDX-License-Identifier: MIT
 *
 * What form an answer has to have: "response_format" of OpenAI, "format" of Ollama, "json_schema"
 * of llama.cpp.
 */
#ifndef TN_ANSWER_SCHEMA_H
#define TN_ANSWER_SCHEMA_H

#include "server/gen.h"

/* gen->grammar becomes what a request's "response_format" asks for; NULL: any text.  false:
 * refused, with the place in the schema. */
bool tn_gen_read_response_format(struct tn_gen *gen, const json_t *body,
                                 struct tn_refusal *refusal);
/* The same for "format": "json", or a schema. */
bool tn_gen_read_format(struct tn_gen *gen, const json_t *body, struct tn_refusal *refusal);
/* The same for "json_schema": a schema. */
bool tn_gen_read_json_schema(struct tn_gen *gen, const json_t *body, struct tn_refusal *refusal);

#endif

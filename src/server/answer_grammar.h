/* SPDX-License-Identifier: MIT
 *
 * The grammar of an answer: structured output, tool calls that are valid for the schemas of their
 * arguments, or either, after reasoning if the request asks for it.
 *
 * Compiling may take a tenth of a second and happens on the parser thread.
 */
#ifndef TN_ANSWER_GRAMMAR_H
#define TN_ANSWER_GRAMMAR_H

#include "server/task.h"

/* Compiles task->gen.grammar, and holds its memory.  The prompt is prepared.  false: refused. */
bool tn_answer_grammar_compile(struct tn_task *task, struct tn_refusal *refusal);

#endif

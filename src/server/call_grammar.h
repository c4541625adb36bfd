/* SPDX-License-Identifier: MIT
 *
 * The grammar of answers that are tool calls, valid for the schemas that a request's tools give for
 * their arguments.
 *
 * Called by tools.c.
 */
#ifndef TN_CALL_GRAMMAR_H
#define TN_CALL_GRAMMAR_H

#include "server/task.h"

#define TN_MAX_TOOLS 128u

/* Compiles task->gen.grammar, and holds its memory: a forced call, or otherwise any number of calls
 * or structured output.  The tools are checked, and task->call_form is known.  false: refused. */
bool tn_call_grammar_compile(struct tn_task *task, struct tn_refusal *refusal);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The JSON schema of a tool call, built from the schemas that a request's tools give for their
 * arguments.
 *
 * Called by tools.c to force a call.
 */
#ifndef TN_CALL_SCHEMA_H
#define TN_CALL_SCHEMA_H

#include <jansson.h>

/* The schema of one call of any tool, or of the named one: {"name": ..., ARGUMENTS: ...}.
 * References inside the schemas of arguments are rebased.
 *
 *   tools      checked by tn_tools_read
 *   name       NULL: any tool
 *   arguments  member name in this call format, "arguments" or "parameters"
 *
 * json_decref; NULL: out of memory. */
json_t *tn_calls_schema(const json_t *tools, const char *name, const char *arguments);

#endif

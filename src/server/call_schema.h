/* SPDX-License-Identifier: MIT
 *
 * The JSON schema of a call, made of those that a request's tools state for their arguments.
 */
#ifndef TN_CALL_SCHEMA_H
#define TN_CALL_SCHEMA_H

#include <jansson.h>

/* The schema of one call of any of the tools, or of the one that is named: {"name": ..., ARGUMENTS:
 * ...}.  References in the schemas of arguments go on meaning the schema that they stand in.
 *
 *   tools      checked by tn_tools_read
 *   name       NULL: any tool
 *   arguments  the word of the form of calls, "arguments" or "parameters"
 *
 * json_decref; NULL: no memory. */
json_t *tn_calls_schema(const json_t *tools, const char *name, const char *arguments);

#endif

/* SPDX-License-Identifier: MIT
 *
 * JSON of the command: the output of --json, and the input of `tern tokenize --chat`.
 *
 * jansson ignores some failed allocations and drops a member, and reports others as syntax errors.
 * So failures are recorded, and a value that may be incomplete is neither printed nor used.
 */
#ifndef TN_JSON_IO_H
#define TN_JSON_IO_H

#include <jansson.h>

#include "tern/status.h"

/* Call before the first use of jansson, while there is one thread: its allocation functions are
 * global. */
void tn_json_io_init(void);

/* Prints and releases the value: one line on standard output.  TERN_MEMORY if an allocation has
 * failed since it was created; then nothing is printed. */
tern_status tn_json_io_print(json_t *value, struct tern_error *err);

/* Parses n bytes of JSON.  `name` is the text's name for messages; `flags` are jansson's.
 * *value is released by json_decref; NULL after a failure: TERN_USAGE with line and column, or
 * TERN_MEMORY. */
tern_status tn_json_io_read(json_t **value, const char *name, const char *text, size_t n,
                            size_t flags, struct tern_error *err);

/* A string; null if the text is NULL or not UTF-8, such as a path on a system without UTF-8. */
json_t *tn_json_io_text(const char *text);

/* A value to be printed as part of another; NULL: the text contains none.  If memory was short,
 * printing fails. */
json_t *tn_json_io_part(const char *text);

#endif

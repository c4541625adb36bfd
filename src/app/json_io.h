/* SPDX-License-Identifier: MIT
 *
 * JSON of the command: what --json prints, and what `tern tokenize --chat` reads.
 *
 * jansson overlooks some failed allocations, and leaves a member out, and takes others for errors
 * of syntax.  So they are noted, and a value that may lack something is neither printed nor used.
 */
#ifndef TN_JSON_IO_H
#define TN_JSON_IO_H

#include <jansson.h>

#include "tern/status.h"

/* Before the first use of jansson, in a program of one thread: its allocation functions are
 * global. */
void tn_json_io_init(void);

/* What json_dumps gave; NULL is allowed. */
void tn_json_io_free(char *text);

/* Prints and releases the value: one line on standard output.  TERN_MEMORY when an allocation has
 * failed since it was begun; nothing is printed then. */
tern_status tn_json_io_print(json_t *value, struct tern_error *err);

/* The value that a text of n bytes holds.  `name` is the text's, for messages; `flags` are
 * jansson's.  *value is released by json_decref; NULL after a failure: TERN_USAGE with line and
 * column, or TERN_MEMORY. */
tern_status tn_json_io_read(json_t **value, const char *name, const char *text, size_t n,
                            size_t flags, struct tern_error *err);

/* A value that becomes a part of what is printed; NULL: the text holds none.  When memory was short
 * for it, the printing fails. */
json_t *tn_json_io_part(const char *text);

#endif

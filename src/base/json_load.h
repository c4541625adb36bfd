/* SPDX-License-Identifier: MIT
 *
 * Reading JSON from outside, where texts are hostile and memory may be short.
 */
#ifndef TN_JSON_LOAD_H
#define TN_JSON_LOAD_H

#include <jansson.h>
#include <stddef.h>

#include "tern/status.h"

/* Published files nest less than 12 levels deep. */
#define TN_JSON_MAX_DEPTH 64u

/* Reads the whole text: an object or an array, with JSON_DECODE_ANY any value.  `name` is the
 * file's name, for messages.  `flags` are jansson's: JSON_DECODE_ANY, JSON_DECODE_INT_AS_REAL,
 * JSON_ALLOW_NUL and JSON_REJECT_DUPLICATES (else the last member of a name counts).  *out is
 * released by json_decref; NULL after a failure: TERN_INPUT with line and column (in bytes, from 1)
 * or the depth, or TERN_MEMORY.  O(n), no recursion.  Any thread may load at any time; values are
 * made with the allocation functions that jansson has. */
tern_status tn_json_load(json_t **out, const char *name, const char *text, size_t n, size_t flags,
                         struct tern_error *err);

#endif

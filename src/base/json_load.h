/* SPDX-License-Identifier: MIT
 *
 * Safe loading of JSON from outside: the nesting is measured before the parser,
 * which recurses, sees the text.
 */
#ifndef TN_JSON_LOAD_H
#define TN_JSON_LOAD_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* Published files nest less than 12 levels deep. */
#define TN_JSON_MAX_DEPTH 64u

/* TERN_INPUT when objects and arrays nest deeper than max_depth; brackets inside strings do not
 * count.  Iterative, O(n), no memory.  Does not check anything else about the syntax. */
tern_status tn_json_check_depth(const char *text, size_t n, uint32_t max_depth,
                                struct tern_error *err);

/* Checks the depth (TN_JSON_MAX_DEPTH) and parses the whole text, an object or an array.  `name` is
 * the file's name, for messages; `flags` are jansson's (JSON_REJECT_DUPLICATES and so on).  *out is
 * released by json_decref; NULL after a failure: TERN_INPUT with line and column, or TERN_MEMORY. A
 * value that came out is whole, also where allocations failed. Any thread may load at any time, and
 * the allocation functions that a program gave jansson stay as they are. */
tern_status tn_json_load(json_t **out, const char *name, const char *text, size_t n, size_t flags,
                         struct tern_error *err);

#endif

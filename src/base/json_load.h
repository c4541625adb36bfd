/* SPDX-License-Identifier: MIT
 *
 * Reading JSON from outside, where texts are hostile and memory may be short.
 */
#ifndef TN_JSON_LOAD_H
#define TN_JSON_LOAD_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* Published files nest less than 12 levels deep. */
#define TN_JSON_MAX_DEPTH 64u

/* A flag beside jansson's: a whole number beyond 64 bits becomes a real one, and is not refused.
 * JSON_DECODE_INT_AS_REAL is of all numbers. */
#define TN_JSON_LARGE_AS_REAL ((size_t)1 << 16)

/* Reads the whole text: an object or an array, with JSON_DECODE_ANY any value.  `name` is the
 * file's name, for messages.  `flags` are TN_JSON_LARGE_AS_REAL and of jansson's JSON_DECODE_ANY,
 * JSON_DECODE_INT_AS_REAL, JSON_ALLOW_NUL and JSON_REJECT_DUPLICATES (else the last member of a
 * name counts).  *out is released by json_decref; NULL after a failure: TERN_INPUT with line and
 * column (in bytes, from 1) or the depth, or TERN_MEMORY.  O(n), no recursion.  Any thread may load
 * at any time; values are made with the allocation functions that jansson has. */
tern_status tn_json_load(json_t **out, const char *name, const char *text, size_t n, size_t flags,
                         struct tern_error *err);

/* A whole number from 2^63 to 2^64 - 1, which jansson's integers cannot hold and its reals round.
 * `name` is the caller's: members of this name are looked for.  Found: the last of those at the
 * smallest depth; `value` is the rounded number in the tree, to be compared by its address while
 * the tree exists, and NULL where there is none. */
struct tn_json_wide {
    const char *name;
    const json_t *value;
    uint64_t whole;
    uint32_t depth; /* of the object around it, from 1 */
};

/* As tn_json_load with TN_JSON_LARGE_AS_REAL; *wide gets the exact value of one such number. */
tern_status tn_json_load_wide(json_t **out, struct tn_json_wide *wide, const char *name,
                              const char *text, size_t n, size_t flags, struct tern_error *err);

#endif

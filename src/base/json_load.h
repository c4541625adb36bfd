/* SPDX-License-Identifier: MIT
 *
 * Reads JSON from outside: safe for hostile text and for memory shortage, which jansson's parser is
 * not.
 */
#ifndef TN_JSON_LOAD_H
#define TN_JSON_LOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* Limits the depth of nesting; published files are less than 12 levels deep. */
#define TN_JSON_MAX_DEPTH 64u

/* A flag in addition to jansson's: an integer that does not fit 64 bits becomes a real number
 * instead of an error.  JSON_DECODE_INT_AS_REAL does so for all integers. */
#define TN_JSON_LARGE_AS_REAL ((size_t)1 << 16)
/* Another one: NaN, Infinity and -Infinity, which Python writes and JSON does not have, become
 * strings of that name instead of an error. */
#define TN_JSON_NOT_FINITE_AS_TEXT ((size_t)1 << 17)

/* For members that may be missing: null means the same. */
static inline bool tn_json_is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

/* Reads the whole text: an object or an array, with JSON_DECODE_ANY any value.  `name` is the
 * file's name for messages.  `flags` are TN_JSON_LARGE_AS_REAL, TN_JSON_NOT_FINITE_AS_TEXT and
 * jansson's JSON_DECODE_ANY, JSON_DECODE_INT_AS_REAL, JSON_ALLOW_NUL and JSON_REJECT_DUPLICATES
 * (else the last of several members with the same name wins).  *out is released by json_decref;
 * NULL after a failure: TERN_INPUT with line and column (in bytes, from 1) or the depth, or
 * TERN_MEMORY.  O(n), no recursion.  Thread-safe; values are allocated with jansson's allocation
 * functions. */
tern_status tn_json_load(json_t **out, const char *name, const char *text, size_t n, size_t flags,
                         struct tern_error *err);

/* An integer from 2^63 to 2^64 - 1, which jansson's integers cannot hold and its reals round.  The
 * caller sets `name`: members of this name are examined.  The result is the last one at the
 * smallest depth; `value` is the rounded number in the tree, to be compared by address while the
 * tree exists, or NULL if there is none. */
struct tn_json_wide {
    const char *name;
    const json_t *value;
    uint64_t whole;
    uint32_t depth; /* of the object that contains it, from 1 */
};

/* As tn_json_load with TN_JSON_LARGE_AS_REAL; *wide receives the exact value of one such number. */
tern_status tn_json_load_wide(json_t **out, struct tn_json_wide *wide, const char *name,
                              const char *text, size_t n, size_t flags, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * "pattern", "format", "minLength" and "maxLength" of a schema.
 */
#ifndef TN_SCHEMA_STRING_H
#define TN_SCHEMA_STRING_H

#include <jansson.h>

#include "grammar/grammar.h"

/* The rule that begins at `start`: strings that fit these words of s, one of which is there.
 * Details name the word.  Takes off *steps what it costs.  TERN_USAGE, TERN_LIMIT,
 * TERN_UNSUPPORTED: a word with a wrong value, an expression or a format that is not understood;
 * TERN_MEMORY. */
tern_status tn_schema_string(struct tern_grammar *g, uint32_t start, const json_t *s,
                             uint64_t *steps, struct tern_error *err);

/* Does a string of UTF-8 fit these words of s?  The same costs and errors. */
tern_status tn_schema_string_takes(bool *fits, const json_t *s, const char *text, uint64_t *steps,
                                   struct tern_error *err);

#endif

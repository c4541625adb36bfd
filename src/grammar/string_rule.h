/* SPDX-License-Identifier: MIT
 *
 * Strings that match expressions or have a length, as rules of a grammar.
 *
 * Expressions describe the characters that a JSON string represents.  Each character has one
 * spelling, the one that JSON.stringify writes: verbatim, except \" and \\ and, below U+0020, \b \t
 * \n \f \r and \u0001 with lower-case digits.
 *
 * Between tags (schema_tags.h) strings are raw: without quotes, each character verbatim, and
 * without "</" where the rule limits them.
 */
#ifndef TN_STRING_RULE_H
#define TN_STRING_RULE_H

#include <jansson.h>

#include "grammar/grammar.h"
#include "grammar/schema_count.h"

#define TN_MAX_LENGTH 65536u

/* Adds the rule that begins at `start`: strings of that length that match all n expressions (n >=
 * 1).  Subtracts the cost from *steps.  Errors of tn_regex_add and tn_dfa_create, or the grammar's
 * own failure. */
tern_status tn_string_rule(struct tern_grammar *g, bool is_raw, uint32_t start,
                           const char *const *expressions, uint32_t n,
                           struct tn_count_range length, uint64_t *steps, struct tern_error *err);
/* Adds a rule for plain text: all of it matches the expression.  The same costs and errors. */
tern_status tn_string_rule_of_text(struct tern_grammar *g, uint32_t start, const char *expression,
                                   uint64_t *steps, struct tern_error *err);
/* Does a UTF-8 text match all n expressions?  The same costs and errors. */
tern_status tn_string_fits(bool *fits, const char *const *expressions, uint32_t n,
                           const char *text, uint64_t *steps, struct tern_error *err);
/* Adds the rule for any string except the member names of `object`; is_name: for the rest of a tag,
 * a raw string that is not empty, and '>'.  TERN_MEMORY, or the grammar's own failure. */
tern_status tn_string_rule_of_others(struct tern_grammar *g, bool is_name, uint32_t start,
                                     const json_t *object, struct tern_error *err);
/* Adds the rule for any string of that length: one state for each of length.max characters, or of
 * length.min where there is no maximum. */
void tn_string_rule_of_length(struct tern_grammar *g, uint32_t start,
                              struct tn_count_range length);
/* The same for raw strings, with two states for each character. */
void tn_string_rule_of_raw_length(struct tern_grammar *g, uint32_t start,
                                  struct tn_count_range length);
/* Adds edges for the raw characters low..high, without surrogates; low >= 1. */
void tn_string_range(struct tern_grammar *g, uint32_t from, uint32_t low, uint32_t high,
                     uint32_t to);
/* Adds edges for any raw character but those of `except`, which are ascending and below U+0080. */
void tn_string_characters(struct tern_grammar *g, uint32_t from, const char *except, uint32_t to);

#endif

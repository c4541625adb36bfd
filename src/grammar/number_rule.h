/* SPDX-License-Identifier: MIT
 *
 * Compiles numbers within bounds, and multiples of a number, into rules of a grammar.
 *
 * Numbers are written without exponent and leading zeros, zero without a sign.  Integers have at
 * most 16 digits, or as many as the larger bound (up to 19); other numbers have at most 15, because
 * up to 15 digits survive a round-trip through a double.  All comparisons are exact, in decimal
 * digits.
 */
#ifndef TN_NUMBER_RULE_H
#define TN_NUMBER_RULE_H

#include "grammar/decimal.h"
#include "grammar/grammar.h"

#define TN_MAX_MULTIPLE 10000u

struct tn_bound {
    bool exists;
    bool is_open; /* excludes the bound itself */
    struct tn_decimal at;
};

struct tn_number_limits {
    struct tn_bound lower, upper;
    bool is_integer;
    /* a multiple of multiple / 10^scale; 0: unconstrained. At most TN_MAX_MULTIPLE */
    uint32_t multiple;
    uint32_t scale;
};

/* Adds the rule that begins at `start`.  Subtracts the cost from *steps.  TERN_USAGE: no number is
 * within the limits; TERN_LIMIT: too many states, or *steps is exhausted; TERN_MEMORY; or the
 * grammar's own failure. */
tern_status tn_number_rule(struct tern_grammar *g, uint32_t start,
                           const struct tn_number_limits *limits, uint64_t *steps,
                           struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Numbers between bounds, and multiples of a number, as rules of a grammar.
 *
 * They are written without an exponent, without leading zeros, and zero without a sign.  Integers
 * have at most 16 digits, or as many as the larger of their bounds (19); others 15 in all, since
 * so many are still different numbers where they are read as doubles.  All comparisons are exact,
 * in decimal digits.
 */
#ifndef TN_NUMBER_RULE_H
#define TN_NUMBER_RULE_H

#include "grammar/decimal.h"
#include "grammar/grammar.h"

#define TN_MAX_MULTIPLE 10000u

struct tn_bound {
    bool exists;
    bool is_open; /* the number itself is beyond it */
    struct tn_decimal at;
};

struct tn_number_limits {
    struct tn_bound lower, upper;
    bool is_integer;
    uint32_t multiple; /* of multiple / 10^scale; 0: of nothing. At most TN_MAX_MULTIPLE */
    uint32_t scale;
};

/* The rule that begins at `start`.  Takes off *steps what it costs.  TERN_USAGE: no number fits;
 * TERN_LIMIT: no steps are left, or too many states; TERN_MEMORY; a grammar that is full has
 * failed. */
tern_status tn_number_rule(struct tern_grammar *g, uint32_t start,
                           const struct tn_number_limits *limits, uint64_t *steps,
                           struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Numbers of a schema as exact decimal digits; binary fractions would round them.
 *
 * Called by schema_number.c (bounds and multiples) and number_rule.c (digits of the automaton).
 */
#ifndef TN_DECIMAL_H
#define TN_DECIMAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define TN_DECIMAL_DIGITS 20u

/* Value: 0.d1d2d3... * 10^exponent, where d1 and the last digit are not 0.  Zero has no digits. */
struct tn_decimal {
    uint8_t digits[TN_DECIMAL_DIGITS];
    uint32_t n;
    int32_t exponent;
    bool is_negative; /* false for zero */
};

/* A real number becomes the shortest digits that parse to the same double. */
struct tn_decimal tn_decimal_of(const json_t *number);
/* Below 0, 0 or above 0 when a is less than, equal to or greater than b. */
int tn_decimal_compare(const struct tn_decimal *a, const struct tn_decimal *b);
/* The digit with the value 10^place; 0 beyond the stored digits. */
uint32_t tn_decimal_digit(const struct tn_decimal *d, int32_t place);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Numbers of a schema as their decimal digits: exact, where binary fractions are not.
 */
#ifndef TN_DECIMAL_H
#define TN_DECIMAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define TN_DECIMAL_DIGITS 20u

/* 0.d1d2d3... * 10^exponent, d1 and the last digit not 0; without digits: 0. */
struct tn_decimal {
    uint8_t digits[TN_DECIMAL_DIGITS];
    uint32_t n;
    int32_t exponent;
    bool is_negative; /* not of 0 */
};

/* A real number is that with the fewest digits that is read as the same. */
struct tn_decimal tn_decimal_of(const json_t *number);
/* Below 0, 0, or above it, as a is below b, equal, or above it. */
int tn_decimal_compare(const struct tn_decimal *a, const struct tn_decimal *b);
/* The digit that stands for 10^place. */
uint32_t tn_decimal_digit(const struct tn_decimal *d, int32_t place);

#endif

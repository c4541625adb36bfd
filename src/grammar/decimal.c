/* SPDX-License-Identifier: MIT
 *
 * Exact decimal digits of JSON numbers.
 *
 * Numbers of a schema are compared digit by digit: doubles would round bounds and multiples.
 */
#include "grammar/decimal.h"

#include <math.h>
#include <stdio.h>

#include "base/float_text.h"

static struct tn_decimal of_real(double value)
{
    char digits[TN_FLOAT_TEXT];
    struct tn_decimal d = {.is_negative = value < 0};
    if (value == 0)
        return d;
    d.n = (uint32_t)tn_float_digits(digits, &d.exponent, fabs(value));
    for (uint32_t i = 0; i < d.n; i++)
        d.digits[i] = (uint8_t)(digits[i] - '0');
    return d;
}

static struct tn_decimal of_integer(long long value)
{
    char text[TN_DECIMAL_DIGITS + 2];
    struct tn_decimal d = {.is_negative = value < 0};
    snprintf(text, sizeof text, "%lld", value);
    for (const char *c = text + d.is_negative; *c; c++)
        d.digits[d.exponent++] = (uint8_t)(*c - '0');
    d.n = (uint32_t)d.exponent;
    while (d.n > 0 && d.digits[d.n - 1] == 0)
        d.n--;
    return d.n > 0 ? d : (struct tn_decimal){0};
}

struct tn_decimal tn_decimal_of(const json_t *number)
{
    return json_is_integer(number) ? of_integer(json_integer_value(number))
                                   : of_real(json_real_value(number));
}

uint32_t tn_decimal_digit(const struct tn_decimal *d, int32_t place)
{
    const int32_t i = d->exponent - 1 - place;
    return i >= 0 && (uint32_t)i < d->n ? d->digits[i] : 0;
}

static int compare_sizes(const struct tn_decimal *a, const struct tn_decimal *b)
{
    if (a->n == 0 || b->n == 0)
        return (a->n > 0) - (b->n > 0);
    if (a->exponent != b->exponent)
        return a->exponent < b->exponent ? -1 : 1;
    for (uint32_t i = 0; i < TN_DECIMAL_DIGITS; i++) {
        const uint8_t x = i < a->n ? a->digits[i] : 0, y = i < b->n ? b->digits[i] : 0;
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

int tn_decimal_compare(const struct tn_decimal *a, const struct tn_decimal *b)
{
    if (a->is_negative != b->is_negative)
        return a->is_negative ? -1 : 1;
    return a->is_negative ? compare_sizes(b, a) : compare_sizes(a, b);
}

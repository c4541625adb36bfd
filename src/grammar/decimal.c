/* SPDX-License-Identifier: MIT
 *
 * Decimal digits of JSON numbers.
 */
#include "grammar/decimal.h"

#include <stdio.h>
#include <stdlib.h>

/* From "-d.ddde+xx", whatever the point looks like here. */
static struct tn_decimal from_text(const char *text)
{
    struct tn_decimal d = {.is_negative = *text == '-'};
    const char *c = text;
    for (; *c && *c != 'e'; c++)
        if (*c >= '0' && *c <= '9' && d.n < TN_DECIMAL_DIGITS)
            d.digits[d.n++] = (uint8_t)(*c - '0');
    d.exponent = (*c ? atoi(c + 1) : 0) + 1;
    while (d.n > 0 && d.digits[d.n - 1] == 0)
        d.n--;
    return d.n > 0 ? d : (struct tn_decimal){0};
}

struct tn_decimal tn_decimal_of(const json_t *number)
{
    char text[64];
    if (json_is_integer(number)) {
        const int n = snprintf(text, sizeof text, "%lld", (long long)json_integer_value(number));
        struct tn_decimal d = from_text(text);
        if (d.n > 0)
            d.exponent = n - d.is_negative;
        return d;
    }
    const double value = json_real_value(number);
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, value);
    while (precision++ < 17 && strtod(text, NULL) != value);
    return from_text(text);
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

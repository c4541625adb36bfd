/* SPDX-License-Identifier: MIT
 *
 * Floats as text in Python's format, from the shortest digits that read back as the same number.
 * float_text.h has the contracts.
 */
#include "base/float_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char decimal_point(void)
{
    char half[8];
    return snprintf(half, sizeof half, "%.1f", 0.5) > 1 ? half[1] : '.';
}

/* strtod stops at a decimal point of the locale that is none here. */
double tn_float_parse(char *text, char **end)
{
    const char point = decimal_point();
    for (char *c = text; *c && point != '.'; c++)
        *c = *c == '.' ? point : *c == point ? '.' : *c;
    return strtod(text, end);
}

void tn_float_put_point(char *text)
{
    char *point = strchr(text, decimal_point());
    if (point)
        *point = '.';
}

size_t tn_float_digits(char *digits, int *exponent, double x)
{
    char text[TN_FLOAT_TEXT];
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, x);
    while (precision++ < 17 && strtod(text, NULL) != x);
    size_t n = 0;
    const char *c = text;
    for (; *c && *c != 'e'; c++)
        if (*c >= '0' && *c <= '9')
            digits[n++] = *c;
    *exponent = atoi(c + 1) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

/* As in Python, an exponent is written if it is below -4 or at least 16. */
static void put_digits(char *dst, const char *digits, size_t n, int exponent)
{
    size_t at = 0;
    if (exponent < -3 || exponent > 16) {
        at += (size_t)snprintf(dst, TN_FLOAT_TEXT, "%c%s%.*se%c%02d", digits[0], n > 1 ? "." : "",
                               (int)n - 1, digits + 1, exponent > 0 ? '+' : '-', abs(exponent - 1));
        return;
    }
    if (exponent <= 0) {
        memcpy(dst, "0.0000", 6);
        at = 2 + (size_t)-exponent;
    }
    for (size_t i = 0; i < n || (int)i < exponent; i++) {
        if ((int)i == exponent && exponent > 0)
            dst[at++] = '.';
        dst[at++] = i < n ? digits[i] : '0';
    }
    if ((int)n <= exponent) {
        dst[at++] = '.';
        dst[at++] = '0';
    }
    dst[at] = '\0';
}

const char *tn_float_text(char *dst, double x)
{
    char digits[TN_FLOAT_TEXT];
    int exponent;
    if (isnan(x))
        return "nan";
    if (isinf(x))
        return x > 0 ? "inf" : "-inf";
    if (x == 0)
        return signbit(x) ? "-0.0" : "0.0";
    dst[0] = '-';
    size_t n = tn_float_digits(digits, &exponent, fabs(x));
    put_digits(dst + (x < 0), digits, n, exponent);
    return dst;
}

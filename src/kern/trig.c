/* SPDX-License-Identifier: MIT
 *
 * The rope table: power, cosine and sine from + - * / and integer operations only, so that the bits
 * do not depend on a C library.  trig.h has the contracts; each function states its error bound.
 */
#include "kern/trig.h"

#include <string.h>

/* ln(m), 1/sqrt(2) <= m <= sqrt(2):  2 atanh(s) with s = (m - 1) / (m + 1), |s| <= 0.172; the first
 * omitted term is below 2^-60. */
static double log_mantissa(double m)
{
    double s = (m - 1.0) / (m + 1.0);
    double s2 = s * s;
    double sum = 0.0;
    for (int k = 25; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * s2;
    return 2.0 * s + 2.0 * s * sum;
}

/* exp(a), |a| < 1.2:  Taylor to a^22, 1.2^23 / 23! < 2^-68. */
static double exp_small(double a)
{
    double sum = 0.0;
    for (int k = 22; k >= 1; k--)
        sum = (1.0 + sum) * (a / k);
    return 1.0 + sum;
}

/* 2^-n for 0 <= n < 1023 */
static double pow2_negative(uint64_t n)
{
    uint64_t bits = (1023 - n) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* theta = 2^k * m.  The exponent of 2 is reduced in integers, so that exp is called with a number
 * below 1.2 only:  theta^(-2j/d) = 2^-whole * exp(-(rest * ln 2 + 2j * ln m) / d), 2jk = whole * d
 * + rest. */
void tn_rope_inv_freq(double *inv_freq, uint32_t head_dim, double theta)
{
    const double ln2 = 0x1.62e42fefa39efp-1;
    uint64_t bits;
    memcpy(&bits, &theta, sizeof bits);
    uint64_t k = (bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | (uint64_t)1023 << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp0) { /* sqrt(2) */
        m *= 0.5;
        k += 1;
    }
    double ln_m = log_mantissa(m);
    for (uint64_t j = 0; j < head_dim / 2; j++) {
        uint64_t whole = 2 * j * k / head_dim;
        uint64_t rest = 2 * j * k % head_dim;
        double a = -((double)rest * ln2 + (double)(2 * j) * ln_m) / (double)head_dim;
        inv_freq[j] = exp_small(a) * pow2_negative(whole);
    }
}

/* Taylor on |r| <= pi/4; the omitted terms are below 2^-45 of the value. */
static double sin_reduced(double r)
{
    const double c3 = -1.0 / 6, c5 = 1.0 / 120, c7 = -1.0 / 5040, c9 = 1.0 / 362880;
    const double c11 = -1.0 / 39916800, c13 = 1.0 / 6227020800.0;
    double r2 = r * r;
    return r + r * r2 * (c3 + r2 * (c5 + r2 * (c7 + r2 * (c9 + r2 * (c11 + r2 * c13)))));
}

static double cos_reduced(double r)
{
    const double c2 = -0.5, c4 = 1.0 / 24, c6 = -1.0 / 720, c8 = 1.0 / 40320;
    const double c10 = -1.0 / 3628800, c12 = 1.0 / 479001600, c14 = -1.0 / 87178291200.0;
    double r2 = r * r;
    return 1.0 + r2 * (c2 + r2 * (c4 + r2 * (c6 + r2 * (c8 + r2 * (c10 + r2 * (c12 + r2 * c14))))));
}

void tn_rope_fill(float *cos, float *sin, const double *inv_freq, uint32_t half, uint32_t position)
{
    const double two_over_pi = 0x1.45f306dc9c883p-1;
    /* pi / 2 in three parts; the first two have at most 28 bits, so that their products with a
     * quadrant number below 2^25 are exact. */
    const double pio2_a = 0x1.921fb54p+0, pio2_b = 0x1.10b461p-30, pio2_c = 0x1.a62633145c06ep-58;
    /* Adding this constant rounds a double below 2^51 to the nearest integer. */
    const double round_to_int = 0x1.8p52;
    for (uint32_t j = 0; j < half; j++) {
        double angle = (double)position * inv_freq[j];
        double quadrant = (angle * two_over_pi + round_to_int) - round_to_int;
        double r = ((angle - quadrant * pio2_a) - quadrant * pio2_b) - quadrant * pio2_c;
        double s = sin_reduced(r);
        double c = cos_reduced(r);
        switch ((int64_t)quadrant & 3) {
        case 0:
            cos[j] = (float)c;
            sin[j] = (float)s;
            break;
        case 1:
            cos[j] = (float)-s;
            sin[j] = (float)c;
            break;
        case 2:
            cos[j] = (float)-c;
            sin[j] = (float)-s;
            break;
        default:
            cos[j] = (float)s;
            sin[j] = (float)-c;
            break;
        }
    }
}

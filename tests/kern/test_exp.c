/* SPDX-License-Identifier: MIT
 *
 * exp and the rotary table, compared with the C library in double precision and with the
 * definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "kern/exp.h"
#include "kern/gauss.h"
#include "kern/tanh.h"
#include "kern/trig.h"

/* got - want| in ulps of (float)want. */
static double ulp_error(float got, double want)
{
    float nearest = fabsf((float)want);
    double ulp = (double)nextafterf(nearest, INFINITY) - (double)nearest;
    return fabs((double)got - want) / ulp;
}

/* Every 251st float of the range (about 17 million values). */
static void test_exp_is_accurate(void **state)
{
    (void)state;
    const float ends[2] = {TN_EXP_MAX, -TN_EXP_MIN};
    for (uint32_t negative = 0; negative < 2; negative++) {
        uint32_t last = tn_f32_to_bits(ends[negative]);
        for (uint32_t bits = 0x00000001u; bits <= last; bits += 251) {
            float x = tn_f32_from_bits(bits | negative << 31);
            float y = tn_exp_f32(x);
            double error = ulp_error(y, exp((double)x));
            if (!(error <= 1.0))
                fail_msg("exp(%a) = %a is %f ulp off", (double)x, (double)y, error);
        }
    }
}

static void test_exp_borders(void **state)
{
    (void)state;
    const float infinity = tn_f32_from_bits(0x7F800000u);
    assert_true(tn_exp_f32(0.0f) == 1.0f);
    assert_true(tn_exp_f32(-0.0f) == 1.0f);
    assert_int_equal(tn_f32_to_bits(tn_exp_f32(-infinity)), 0);
    assert_int_equal(tn_f32_to_bits(tn_exp_f32(nextafterf(TN_EXP_MIN, -infinity))), 0);
    assert_true(tn_exp_f32(TN_EXP_MIN) >= 0x1p-126f);
    assert_true(tn_exp_f32(TN_EXP_MAX) < infinity);
    assert_true(tn_exp_f32(nextafterf(TN_EXP_MAX, infinity)) == infinity);
    assert_true(tn_exp_f32(infinity) == infinity);
    assert_true(isnan(tn_exp_f32(tn_f32_from_bits(0x7FC00000u))));
    /* The limits are exact. */
    assert_true(exp((double)nextafterf(TN_EXP_MIN, -infinity)) < 0x1p-126);
    assert_true(exp((double)nextafterf(TN_EXP_MAX, infinity)) > 0x1.fffffep127);
}

/* A larger argument never gives a smaller result; near 0, which matters for softmax, every float is
 * tested. */
static void test_exp_is_monotonic(void **state)
{
    (void)state;
    float last = 0.0f;
    for (float x = -4.0f; x < 0.0f; x = nextafterf(x, 1.0f) + 0x1p-22f) {
        float y = tn_exp_f32(x);
        assert_true(y >= last);
        last = y;
    }
}

/* About 4 million values, up to where the result is 1. */
static void test_tanh_is_accurate(void **state)
{
    (void)state;
    const uint32_t last = tn_f32_to_bits(12.0f);
    for (uint32_t bits = tn_f32_to_bits(1e-30f); bits <= last; bits += 251) {
        const float x = tn_f32_from_bits(bits), y = tn_tanh_f32(x);
        const double error = ulp_error(y, tanh((double)x));
        if (!(error <= 3.0))
            fail_msg("tanh(%a) = %a is %f ulp off", (double)x, (double)y, error);
        assert_true(tn_tanh_f32(-x) == -y);
    }
    assert_true(tn_tanh_f32(0.0f) == 0.0f && tn_tanh_f32(INFINITY) == 1.0f);
    assert_true(isnan(tn_tanh_f32(NAN)));
}

static void test_gelu_erf_is_accurate(void **state)
{
    (void)state;
    for (uint32_t bits = tn_f32_to_bits(1e-30f); bits <= tn_f32_to_bits(64.0f); bits += 251)
        for (float sign = -1; sign <= 1; sign += 2) {
            const float z = sign * tn_f32_from_bits(bits), y = tn_gelu_erf_f32(z);
            const double want = (double)z / 2 * erfc(-(double)z / sqrt(2));
            if (!(fabs((double)y - want) <= 3e-7 * fmax(1, fabs((double)z))))
                fail_msg("gelu(%a) = %a, expected %a", (double)z, (double)y, want);
        }
    assert_true(tn_gelu_erf_f32(0.0f) == 0.0f);
    assert_true(isnan(tn_gelu_erf_f32(NAN)));
}

static const double thetas[] = {1.0, 2.0, 10000.0, 12345.678, 500000.0, 1e6, 1e9};
static const uint32_t head_dims[] = {2, 16, 64, 80, 96, 128, 256};

static void test_rope_frequencies(void **state)
{
    (void)state;
    double inv_freq[128];
    for (size_t a = 0; a < TN_COUNT_OF(thetas); a++) {
        for (size_t b = 0; b < TN_COUNT_OF(head_dims); b++) {
            tn_rope_inv_freq(inv_freq, head_dims[b], thetas[a]);
            assert_true(inv_freq[0] == 1.0);
            for (uint32_t j = 0; j < head_dims[b] / 2; j++) {
                double want = pow(thetas[a], -2.0 * j / head_dims[b]);
                /* pow's argument is rounded too, which a large theta magnifies. */
                if (fabs(inv_freq[j] - want) > 0x1p-48 * want)
                    fail_msg("theta %g, head %u, pair %u: %a, the library has %a", thetas[a],
                             head_dims[b], j, inv_freq[j], want);
            }
        }
    }
}

static void check_position(const double *inv_freq, uint32_t half, uint32_t position)
{
    float c[128], s[128];
    tn_rope_fill(c, s, inv_freq, half, position);
    for (uint32_t j = 0; j < half; j++) {
        double angle = (double)position * inv_freq[j];
        if (ulp_error(c[j], cos(angle)) > 1.0 || ulp_error(s[j], sin(angle)) > 1.0)
            fail_msg("position %u, frequency %a: %a %a, the library has %a %a", position,
                     inv_freq[j], (double)c[j], (double)s[j], cos(angle), sin(angle));
    }
}

static void test_rope_table(void **state)
{
    (void)state;
    double inv_freq[128];
    struct tn_rng rng;
    tn_rng_seed(&rng, 4);
    for (size_t a = 0; a < TN_COUNT_OF(thetas); a++) {
        tn_rope_inv_freq(inv_freq, 128, thetas[a]);
        for (uint32_t position = 0; position < 4096; position++)
            check_position(inv_freq, 64, position);
        for (uint32_t i = 0; i < 4096; i++)
            check_position(inv_freq, 64, (uint32_t)(tn_rng_next(&rng) % ((1u << 24) + 1)));
        check_position(inv_freq, 64, 1u << 24);
    }
}

/* The bits that every machine must produce. */
static void test_rope_bits(void **state)
{
    (void)state;
    double inv_freq[64];
    float c[64], s[64];
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a over the bits */
    tn_rope_inv_freq(inv_freq, 128, 500000.0);
    for (uint32_t position = 0; position < 4096; position++) {
        tn_rope_fill(c, s, inv_freq, 64, position);
        for (uint32_t j = 0; j < 64; j++) {
            hash = (hash ^ tn_f32_to_bits(c[j])) * 0x100000001B3u;
            hash = (hash ^ tn_f32_to_bits(s[j])) * 0x100000001B3u;
        }
    }
    for (int i = 0; i < 100000; i++)
        hash = (hash ^ tn_f32_to_bits(tn_exp_f32(-0.0008f * (float)i))) * 0x100000001B3u;
    if (hash != 0x62B7A71B0636B41Du)
        fail_msg("hash 0x%08X%08X", (unsigned)(hash >> 32), (unsigned)hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_is_accurate),  cmocka_unit_test(test_exp_borders),
        cmocka_unit_test(test_exp_is_monotonic), cmocka_unit_test(test_tanh_is_accurate),
        cmocka_unit_test(test_gelu_erf_is_accurate),
        cmocka_unit_test(test_rope_frequencies),
        cmocka_unit_test(test_rope_table),       cmocka_unit_test(test_rope_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

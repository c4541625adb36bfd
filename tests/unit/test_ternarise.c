/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of conversion against its definitions: the trit threshold for every 16-bit float,
 * absmean computed in pieces, q8 at its limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "convert/row_order.h"
#include "convert/ternarise.h"

/* clamp(rne(w * (1 / mean)), -1, 1), as written in the paper. */
static int trit_of(float w, double mean)
{
    const double t = nearbyint((double)w * (1.0 / mean));
    return t > 1 ? 1 : t < -1 ? -1 : (int)t;
}

static const double means[] = {1e-5, 0.0123456789, 0.05965992293477029, 0.25, 1.0 / 3, 1, 1.21875,
                               2, 77.7, 65504, 1e38};
#define N_MEANS (sizeof means / sizeof *means)

static void check_16(enum tn_dtype dtype, uint32_t infinity, float (*value)(uint16_t))
{
    for (size_t m = 0; m < N_MEANS; m++) {
        const uint32_t threshold = tn_trit_threshold(dtype, means[m]);
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            const uint16_t half = (uint16_t)bits;
            if ((bits & 0x7FFF) >= infinity)
                continue;
            int8_t trit = 7;
            tn_trits_from_floats(&trit, dtype, &half, 1, threshold);
            assert_int_equal(trit, trit_of(value(half), means[m]));
        }
    }
}

static void test_bf16(void **state)
{
    (void)state;
    check_16(TN_DTYPE_BF16, 0x7F80, tn_bf16_to_f32);
}

static void test_f16(void **state)
{
    (void)state;
    check_16(TN_DTYPE_F16, 0x7C00, tn_f16_to_f32);
}

/* Values around the threshold, and random ones. */
static void test_f32(void **state)
{
    (void)state;
    struct tn_rng rng;
    tn_rng_seed(&rng, 5);
    for (size_t m = 0; m < N_MEANS; m++) {
        const uint32_t threshold = tn_trit_threshold(TN_DTYPE_F32, means[m]);
        for (uint32_t i = 0; i < 20000; i++) {
            uint32_t bits = i < 1000 ? threshold - 500 + i : (uint32_t)tn_rng_next(&rng);
            if ((bits & 0x7FFFFFFF) >= 0x7F800000)
                continue;
            const float w = tn_f32_from_bits(i < 1000 && i % 2 ? bits | 0x80000000u : bits);
            int8_t trit = 7;
            tn_trits_from_floats(&trit, TN_DTYPE_F32, &w, 1, threshold);
            assert_int_equal(trit, trit_of(w, means[m]));
        }
    }
}

static void test_absmean(void **state)
{
    (void)state;
    enum { N = 5003 };
    static float w[N];
    struct tn_rng rng;
    tn_rng_seed(&rng, 9);
    double lanes[16] = {0};
    for (size_t i = 0; i < N; i++) {
        w[i] = (tn_rng_f32(&rng) - 0.5f) * (i % 7 ? 1.0f : 1e4f);
        lanes[i % 16] += fabs((double)w[i]);
    }
    for (size_t half = 8; half >= 1; half /= 2)
        for (size_t j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    static const size_t steps[] = {16, 48, 1024, 1040, 4096, 5008};
    for (size_t s = 0; s < 6; s++) {
        struct tn_absmean sum = {{0}, 0};
        for (size_t at = 0; at < N; at += steps[s])
            tn_absmean_add(&sum, TN_DTYPE_F32, w + at, N - at < steps[s] ? N - at : steps[s]);
        assert_int_equal(sum.n, N);
        assert_true(tn_absmean_get(&sum) == lanes[0] / N);
    }
    struct tn_absmean zeros = {{0}, 16};
    assert_true(tn_absmean_get(&zeros) == 1e-5);
}

static void test_nonfinite(void **state)
{
    (void)state;
    uint16_t half[40] = {0};
    float single[40] = {0};
    assert_int_equal(tn_floats_find_nonfinite(TN_DTYPE_BF16, half, 40), 40);
    assert_int_equal(tn_floats_find_nonfinite(TN_DTYPE_F32, single, 40), 40);
    half[39] = 0xFBFF; /* the largest negative f16; as bf16 a small number */
    assert_int_equal(tn_floats_find_nonfinite(TN_DTYPE_F16, half, 40), 40);
    half[33] = 0xFC00;
    assert_int_equal(tn_floats_find_nonfinite(TN_DTYPE_F16, half, 40), 33);
    assert_int_equal(tn_floats_find_nonfinite(TN_DTYPE_BF16, half, 40), 40);
    single[17] = -INFINITY;
    single[18] = NAN;
    assert_int_equal(tn_floats_find_nonfinite(TN_DTYPE_F32, single, 40), 17);
}

static void test_codes(void **state)
{
    (void)state;
    const uint8_t byte = 0xA1; /* 10 10 00 01 */
    static const int8_t expected[] = {0, -1, 1, 1};
    for (uint32_t i = 0; i < 4; i++) {
        int8_t trit;
        assert_true(tn_trits_from_codes(&trit, &byte, 1, 2 * i));
        assert_int_equal(trit, expected[i]);
    }
    const uint8_t bad[2] = {0x00, 0x30};
    int8_t trits[2];
    assert_true(tn_trits_from_codes(trits, bad, 2, 0));
    assert_false(tn_trits_from_codes(trits, bad, 2, 4));
}

static void test_q8(void **state)
{
    (void)state;
    static const float row[] = {1.0f, -1.0f, 0.5f, 0.0f, 0.5f / 127, 1.5f / 127, -2.5f / 127};
    static const int8_t expected[] = {127, -127, 64, 0, 0, 2, -2};
    int8_t q[7];
    assert_true(tn_round_row(q, row, 7, 127) == 1.0f / 127.0f);
    assert_memory_equal(q, expected, 7);
    static const float zeros[3] = {0.0f, -0.0f, 0.0f};
    memset(q, 1, sizeof q);
    assert_true(tn_round_row(q, zeros, 3, 127) == 0.0f);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(q[i], 0);
    /* Subnormal scales are coarse; q stays in range. */
    for (uint32_t bits = 1; bits < 1000; bits++) {
        const float tiny[2] = {tn_f32_from_bits(bits), -tn_f32_from_bits(bits)};
        tn_round_row(q, tiny, 2, 127);
        assert_in_range(q[0], 0, 127);
        assert_int_equal(q[1], -q[0]);
    }
    static const float huge[2] = {3.4028235e38f, -3.4028235e38f};
    assert_true(isfinite(tn_round_row(q, huge, 2, 127)));
    assert_int_equal(q[0], 127);
    assert_int_equal(q[1], -127);
}

/* The rows of q, k and v in a fused tensor of three heads of 4 rows each: one after the other, and
 * interleaved by head. */
static void test_row_order(void **state)
{
    (void)state;
    const struct tn_row_order k_block = tn_row_order_straight(12, 12);
    const struct tn_row_order k_heads = {.sections = {{12, 4, 4, 12}}};
    static const uint32_t heads[12] = {4, 5, 6, 7, 16, 17, 18, 19, 28, 29, 30, 31};
    for (uint32_t r = 0; r < 12; r++) {
        assert_int_equal(tn_row_order_get(&k_block, r), 12 + r);
        assert_int_equal(tn_row_order_get(&k_heads, r), heads[r]);
    }
    /* The source has pairs (0, 1), (2, 3) of a head where the model has (0, 2), (1, 3). */
    const struct tn_row_order permuted = {
        .sections = {{12, 4, 4, 12}}, .head_dim = 4, .permuted_dim = 4};
    static const uint32_t pairs[8] = {4, 6, 5, 7, 16, 18, 17, 19};
    for (uint32_t r = 0; r < 8; r++) {
        assert_int_equal(tn_row_order_get(&permuted, r), pairs[r]);
        uint32_t n_run;
        assert_int_equal(tn_row_order_run(&permuted, r, &n_run), heads[r]);
        assert_int_equal(n_run, 4 - r % 4);
    }
    /* Of heads of 6 rows only the first 4 are paired. */
    const struct tn_row_order partial = {
        .sections = {{12, 0, 12, 12}}, .head_dim = 6, .permuted_dim = 4};
    static const uint32_t rows[12] = {0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11};
    for (uint32_t r = 0; r < 12; r++)
        assert_int_equal(tn_row_order_get(&partial, r), rows[r]);
    /* Two heads of 1 + 1 + 2 + 2 rows of q, k, v and another matrix, of which q, k, v are selected,
     * in the third matrix of a stack. */
    const struct tn_row_order qkv = {.first = 24,
                                     .sections = {{2, 0, 1, 6}, {2, 1, 1, 6}, {4, 2, 2, 6}}};
    static const uint32_t parts[8] = {24, 30, 25, 31, 26, 27, 32, 33};
    for (uint32_t r = 0; r < 8; r++)
        assert_int_equal(tn_row_order_get(&qkv, r), parts[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16),      cmocka_unit_test(test_f16),
        cmocka_unit_test(test_f32),       cmocka_unit_test(test_absmean),
        cmocka_unit_test(test_nonfinite), cmocka_unit_test(test_codes),
        cmocka_unit_test(test_q8),        cmocka_unit_test(test_row_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

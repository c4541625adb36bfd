/* SPDX-License-Identifier: MIT
 *
 * The float kernels of the reference level, compared with a second, direct implementation of the
 * formulas in kern.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/half.h"
#include "base/rng.h"
#include "kern/exp.h"
#include "kern/guard.h"
#include "kern/kern.h"

static struct tn_rng rng;

/* Between -2 and 2, times 2^-20 ... 2^20 if the range is wide. */
static void fill_f32(float *x, size_t n, bool is_wide)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = tn_rng_f32(&rng) * 4.0f - 2.0f;
        if (is_wide)
            x[i] = ldexpf(x[i], (int)(tn_rng_next(&rng) % 41) - 20);
    }
}

static void fill_bytes(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)(tn_rng_next(&rng) >> 20);
}

/* Finite as f16 and as bf16. */
static void fill_halves(uint16_t *x, size_t n)
{
    fill_bytes(x, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] &= 0xBFFFu;
}

static float lane_order_sum(const float *x, size_t n)
{
    float l[16] = {0};
    for (size_t i = 0; i < n; i++)
        l[i % 16] += x[i];
    float a = ((l[0] + l[8]) + (l[4] + l[12])) + ((l[2] + l[10]) + (l[6] + l[14]));
    float b = ((l[1] + l[9]) + (l[5] + l[13])) + ((l[3] + l[11]) + (l[7] + l[15]));
    return a + b;
}

static void assert_same(float got, float want)
{
    if (tn_f32_to_bits(got) != tn_f32_to_bits(want))
        fail_msg("%a, expected %a", (double)got, (double)want);
}

static void test_quant_rounds_to_even(void **state)
{
    (void)state;
    /* 127 / 127 = 1: values equal their codes. */
    const float x[] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -126.5f, 0.0f, 3.49f};
    const int8_t want[] = {127, 0, 2, 2, 0, -2, -126, 0, 3};
    int8_t q[TN_X_PAD];
    assert_same(tn_quant_i8_ref(q, x, TN_COUNT_OF(x)), 1.0f);
    assert_memory_equal(q, want, sizeof want);
    for (size_t i = sizeof want; i < sizeof q; i++)
        assert_int_equal(q[i], 0);

    const float zeros[3] = {0.0f, -0.0f, 1e-7f};
    assert_same(tn_quant_i8_ref(q, zeros, 3), 1e-5f / 127.0f);
    assert_int_equal(q[0] | q[1], 0);
    assert_int_equal(q[2], 1);
}

static void test_rms_norm_formula(void **state)
{
    (void)state;
    float x[100], w[100], squares[100], y[100];
    fill_f32(x, 100, false);
    fill_f32(w, 100, false);
    for (size_t i = 0; i < 100; i++)
        squares[i] = x[i] * x[i];
    float factor = 1.0f / sqrtf(lane_order_sum(squares, 100) / 100.0f + 1e-5f);
    tn_rms_norm_f32_ref(y, x, w, 100, 1e-5f);
    for (size_t i = 0; i < 100; i++)
        assert_same(y[i], w[i] * (x[i] * factor));

    int8_t q[TN_X_PAD], want[TN_X_PAD];
    float scale = tn_rms_norm_quant_ref(q, x, w, 100, 1e-5f);
    assert_same(scale, tn_quant_i8_ref(want, y, 100));
    assert_memory_equal(q, want, sizeof q);
}

static void test_small_formulas(void **state)
{
    (void)state;
    const float gate[] = {-1.0f, 0.0f, -0.0f, 2.0f, 3.0f};
    const float up[] = {5.0f, 5.0f, 5.0f, -1.0f, 0.5f};
    const float want[] = {0.0f, 0.0f, 0.0f, -4.0f, 4.5f};
    float y[5];
    tn_relu2_mul_f32_ref(y, gate, up, 5);
    assert_memory_equal(y, want, sizeof want);

    const int32_t sum[] = {3, -2};
    const float scaled[] = {1.5f, -1.0f}, added[] = {3.0f, -2.0f};
    tn_scale_i32_f32_ref(y, sum, 2, 0.5f);
    assert_memory_equal(y, scaled, sizeof scaled);
    tn_add_i32_f32_ref(y, sum, 2, 0.5f);
    assert_memory_equal(y, added, sizeof added);

    /* A quarter turn, then none; two heads with a gap. */
    float x[] = {1, 2, 3, 4, 99, 5, 6, 7, 8};
    const float turned[] = {-3, 2, 1, 4, 99, -7, 6, 5, 8};
    const float cos[] = {0, 1}, sin[] = {1, 0};
    tn_rope_f32_ref(x, cos, sin, 2, 4, 5);
    assert_memory_equal(x, turned, sizeof turned);

    const float zeros[] = {-1.0f, -0.0f, -2.0f};
    assert_same(tn_max_f32_ref(zeros, 3), 0.0f);
}

/* Compared with the definition on integers, whose sums are exact; a block of 8 is scaled by 8^-1/2.
 */
static void test_hadamard_is_the_definition(void **state)
{
    (void)state;
    enum { N = 24, BLOCK = 8 };
    float x[N], want[N];
    for (uint32_t i = 0; i < N; i++)
        x[i] = (float)((i * 37 + 11) % 19) - 9;
    for (uint32_t i = 0; i < N; i++) {
        float sum = 0;
        for (uint32_t j = 0; j < BLOCK; j++)
            sum += (__builtin_popcount(i & j) & 1 ? -1.0f : 1.0f) * x[i / BLOCK * BLOCK + j];
        want[i] = sum * 0.353553391f;
    }
    tn_hadamard_f32_ref(x, N, BLOCK);
    for (uint32_t i = 0; i < N; i++)
        assert_same(x[i], want[i]);
    for (uint32_t i = 0; i < 4; i++)
        x[i] = (float)(i == 2);
    tn_hadamard_f32_ref(x, 4, 4); /* 4^-1/2 is exact, and the transform is its own inverse */
    tn_hadamard_f32_ref(x, 4, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_same(x[i], (float)(i == 2));
}

static void test_dot_products_are_lane_order(void **state)
{
    (void)state;
    enum { COLS = 75 };
    float x[COLS], w32[COLS], products[COLS], y;
    int8_t w8[COLS];
    uint16_t w16[COLS];
    fill_f32(x, COLS, true);
    fill_bytes(w8, sizeof w8);
    fill_halves(w16, COLS);
    const float scale = 0.3f;
    for (size_t i = 0; i < COLS; i++)
        products[i] = (float)w8[i] * x[i];
    tn_gemv_q8_f32_ref(&y, 1, w8, &scale, 1, COLS, x, COLS, 1);
    assert_same(y, lane_order_sum(products, COLS) * scale);
    for (size_t i = 0; i < COLS; i++)
        products[i] = x[COLS - 1 - i] * x[i];
    for (size_t i = 0; i < COLS; i++)
        w32[i] = x[COLS - 1 - i];
    tn_gemv_f32_f32_ref(&y, 1, w32, 1, COLS, x, COLS, 1);
    assert_same(y, lane_order_sum(products, COLS));
    for (size_t i = 0; i < COLS; i++)
        products[i] = tn_f16_to_f32(w16[i]) * x[i];
    tn_gemv_f16_f32_ref(&y, 1, w16, 1, COLS, x, COLS, 1);
    assert_same(y, lane_order_sum(products, COLS));
    for (size_t i = 0; i < COLS; i++)
        products[i] = tn_bf16_to_f32(w16[i]) * x[i];
    tn_gemv_bf16_f32_ref(&y, 1, w16, 1, COLS, x, COLS, 1);
    assert_same(y, lane_order_sum(products, COLS));
}

/* i16 of kern.h; returns a / 32639. */
static float round_i16(int32_t *dst, const float *x, uint32_t n)
{
    float a = 1e-30f;
    for (uint32_t i = 0; i < n; i++)
        a = fmaxf(a, fabsf(x[i]));
    for (uint32_t i = 0; i < n; i++)
        dst[i] = (int32_t)rintf(x[i] * ((float)TN_I16_MAX / a));
    return a / 32639.0f;
}

enum { DIM = 80, POS = TN_KV_BLOCK - 3, HEADS = 2 };

struct small_cache {
    uint8_t tiles[TN_KV_BLOCK * DIM];
    uint16_t scales[2 * TN_KV_BLOCK];
    int8_t q[HEADS * DIM];
    uint16_t q_scales[HEADS * 2];
    float p[HEADS * POS];
};

static void fill_small_cache(struct small_cache *c)
{
    fill_bytes(c->tiles, sizeof c->tiles);
    fill_bytes(c->q, sizeof c->q);
    for (size_t i = 0; i < TN_COUNT_OF(c->q_scales); i++)
        c->q_scales[i] = tn_f32_to_f16(0.01f + 0.01f * tn_rng_f32(&rng));
    for (int i = 0; i < HEADS * POS; i++)
        c->p[i] = tn_exp_f32(-6.0f * tn_rng_f32(&rng));
    for (size_t i = 0; i < TN_COUNT_OF(c->scales); i++)
        c->scales[i] = tn_f32_to_f16(0.01f + 0.01f * tn_rng_f32(&rng));
}

static int32_t key_of(const struct small_cache *c, int t, int d)
{
    return c->tiles[(t / 32 * (DIM / 4) + d / 4) * 128 + t % 32 * 4 + d % 4] - 128;
}

static int32_t value_of(const struct small_cache *c, int t, int d)
{
    int lanes = d / 32 < DIM / 32 ? 32 : DIM % 32;
    return c->tiles[d / 32 * 32 * (int)TN_KV_BLOCK + (t / 4 * lanes + d % 32) * 4 + t % 4] - 128;
}

static float scale_of(const struct small_cache *c, int t, int d)
{
    return tn_f16_to_f32(c->scales[d / 64 * (int)TN_KV_BLOCK + t]);
}

/* kern.h's formula, bit by bit. */
static void test_q8_scores(void **state)
{
    (void)state;
    static struct small_cache c;
    static float s[HEADS * POS];
    fill_small_cache(&c);
    tn_attn_qk_q8_ref(s, POS, c.q, c.q_scales, HEADS, c.tiles, c.scales, POS, DIM, 0.25f);
    for (int h = 0; h < HEADS; h++) {
        for (int t = 0; t < POS; t++) {
            int32_t dots[2] = {0, 0};
            for (int d = 0; d < DIM; d++)
                dots[d / 64] += c.q[h * DIM + d] * key_of(&c, t, d);
            float score = 0.0f;
            for (int b = 0; b < 2; b++)
                score += (float)dots[b] * scale_of(&c, t, 64 * b) *
                         tn_f16_to_f32(c.q_scales[2 * h + b]);
            assert_same(s[h * POS + t], score * 0.25f);
        }
    }
}

/* The same, and within rounding of the plain product. */
static void test_q8_weighted_sums(void **state)
{
    (void)state;
    static struct small_cache c;
    static float o[HEADS * DIM];
    fill_small_cache(&c);
    tn_attn_pv_q8_ref(o, c.p, POS, HEADS, c.tiles, c.scales, POS, DIM, NULL);
    for (int h = 0; h < HEADS; h++) {
        for (int d = 0; d < DIM; d++) {
            static float w[POS];
            static int32_t w16[POS];
            int32_t dot = 0;
            double plain = 0.0, magnitude = 0.0;
            for (int t = 0; t < POS; t++)
                w[t] = c.p[h * POS + t] * scale_of(&c, t, d);
            float a = round_i16(w16, w, POS);
            for (int t = 0; t < POS; t++) {
                dot += w16[t] * value_of(&c, t, d);
                plain += (double)w[t] * value_of(&c, t, d);
                magnitude += 0.02 * abs(value_of(&c, t, d));
            }
            float sum = (float)dot * a;
            assert_same(o[h * DIM + d], sum);
            assert_true(fabs((double)sum - plain) < magnitude / 65000.0);
        }
    }
}

/* Zero weights after the last valid position change nothing: prefill relies on it. */
static void test_zero_weights_change_nothing(void **state)
{
    (void)state;
    static struct small_cache c;
    static float with[HEADS * DIM], without[HEADS * DIM];
    fill_small_cache(&c);
    for (int h = 0; h < HEADS; h++)
        memset(c.p + h * POS + 37, 0, (POS - 37) * sizeof(float));
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        const struct tn_kernel_row *row = &tn_kernel_rows[i];
        if (strcmp(row->op, "attn_pv_q8") || (row->needs & ~tn_test_cpu_features()))
            continue;
        ((tn_attn_pv_q8_fn *)row->fn)(with, c.p, POS, HEADS, c.tiles, c.scales, 200, DIM, NULL);
        ((tn_attn_pv_q8_fn *)row->fn)(without, c.p, POS, HEADS, c.tiles, c.scales, 37, DIM,
                                      NULL);
        assert_memory_equal(with, without, sizeof with);
    }
}

static void test_softmax_formula(void **state)
{
    (void)state;
    float x[37], want[37];
    fill_f32(x, 37, false);
    x[3] = -INFINITY;
    for (size_t i = 0; i < 37; i++)
        want[i] = tn_exp_f32(x[i] - 2.0f);
    assert_same(tn_exp_sum_f32_ref(x, 37, 2.0f), lane_order_sum(want, 37));
    assert_memory_equal(x, want, sizeof want);
    assert_same(x[3], 0.0f);
}

static void test_kv_rows(void **state)
{
    (void)state;
    float x[128] = {0};
    int8_t q[128];
    uint16_t scales[2], halves[128];
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i - 20); /* the largest is 43 */
    tn_kv_store_q8_ref(q, scales, x, 128);
    float scale = tn_f16_to_f32(scales[0]);
    assert_int_equal(scales[0], tn_f32_to_f16(43.0f / 127.0f));
    for (int i = 0; i < 64; i++)
        assert_int_equal(q[i], (int)fmaxf(-127.0f, fminf(127.0f, rintf(x[i] / scale))));
    assert_int_equal(scales[1], 0);
    for (int i = 64; i < 128; i++)
        assert_int_equal(q[i], 0);

    x[0] = 1e30f; /* its scale exceeds f16 */
    x[1] = -INFINITY;
    tn_kv_store_q8_ref(q, scales, x, 64);
    assert_int_equal(scales[0], 0x7BFF);
    assert_int_equal(q[0], 127);
    assert_int_equal(q[1], -127);
    tn_kv_store_f16_ref(halves, NULL, x, 16);
    assert_int_equal(halves[0], 0x7BFF);
    assert_int_equal(halves[1], 0xFBFF);
    assert_int_equal(halves[2], tn_f32_to_f16(-18.0f));
}

int main(void)
{
    tn_rng_seed(&rng, 21);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quant_rounds_to_even),
        cmocka_unit_test(test_rms_norm_formula),
        cmocka_unit_test(test_small_formulas),
        cmocka_unit_test(test_hadamard_is_the_definition),
        cmocka_unit_test(test_dot_products_are_lane_order),
        cmocka_unit_test(test_q8_scores),
        cmocka_unit_test(test_q8_weighted_sums),
        cmocka_unit_test(test_zero_weights_change_nothing),
        cmocka_unit_test(test_softmax_formula),
        cmocka_unit_test(test_kv_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

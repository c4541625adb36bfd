/* SPDX-License-Identifier: MIT
 *
 * Rounding of inputs to 16 and 8 bits, and the scaled sum of vectors: every row of kern_list.h that
 * this CPU supports writes the bytes that kern.h specifies.  Buffers end at inaccessible pages.
 */
#include <math.h>
#include <stdlib.h>

#include "kern/rounded_inputs.h"

/* Checks that the negated sums of `part` columns each, in a block of n_block, start at byte `at`.
 */
static void check_minus_sums(const uint8_t *x16, uint32_t n, uint32_t block, uint32_t n_block,
                             uint32_t part, size_t at)
{
    for (uint32_t c = block; c < block + n_block; c += part) {
        int32_t sum = 0, got;
        for (uint32_t i = 0; i < part; i++)
            sum -= q_at(x16, n, c + i);
        memcpy(&got, x16 + at + c / part * sizeof got, sizeof got);
        assert_int_equal(got, sum);
    }
}

static void check_quant_block(const struct tn_kernel_row *row, const float *x, uint32_t n,
                              const uint8_t *x16, uint32_t block)
{
    float most = 1e-30f;
    for (uint32_t c = block; c < block + 128 && c < n; c++)
        most = fabsf(x[c]) > most ? fabsf(x[c]) : most;
    if (factor_at(x16, n, block) != most / 32639.0f)
        fail_msg("%s_%s: wrong factor", row->op, row->isa);
    for (uint32_t c = block; c < block + 128; c++) {
        float want = 0.0f;
        if (c < n) {
            want = nearbyintf(x[c] * (32639.0f / most));
            want = isnan(want) || want > 32639.0f ? 32639.0f : want < -32639.0f ? -32639.0f : want;
        }
        if (q_at(x16, n, c) != (int32_t)want || abs((int8_t)x16[c]) > 127)
            fail_msg("%s_%s: %.9g of %.9g became %d", row->op, row->isa, (double)(c < n ? x[c] : 0),
                     (double)most, q_at(x16, n, c));
    }
    for (uint32_t part = 0; part < 2; part++) {
        int32_t sum = 0, got;
        for (uint32_t c = 0; c < 64; c++)
            sum += q_at(x16, n, block + 64 * part + c);
        memcpy(&got, x16 + tn_x16_half(n) + tn_kern_pad(n) + (block / 64 + part) * sizeof got,
               sizeof got);
        assert_int_equal(got, sum);
    }
    check_minus_sums(x16, n, block, 128, 32, tn_kern_pad(n) / 32 * 33);
    check_minus_sums(x16, n, block, 128, 16, tn_x16_half(n) + tn_kern_pad(n) / 16 * 17);
}

static void check_quant8_block(const struct tn_kernel_row *row, const float *x, uint32_t n,
                               const uint8_t *x8, uint32_t block)
{
    float most = 1e-30f;
    int32_t sum = 0, start;
    for (uint32_t c = block; c < block + 32 && c < n; c++)
        most = fabsf(x[c]) > most ? fabsf(x[c]) : most;
    if (factor8_at(x8, n, block) != most / 127.0f)
        fail_msg("%s_%s: wrong factor", row->op, row->isa);
    for (uint32_t c = block; c < block + 32; c++) {
        float want = c < n ? nearbyintf(x[c] * (127.0f / most)) : 0.0f;
        want = isnan(want) || want > 127.0f ? 127.0f : want < -127.0f ? -127.0f : want;
        if ((int8_t)x8[c] != (int32_t)want)
            fail_msg("%s_%s: %.9g of %.9g became %d", row->op, row->isa, (double)(c < n ? x[c] : 0),
                     (double)most, (int8_t)x8[c]);
        sum += (int8_t)x8[c];
    }
    memcpy(&start, x8 + tn_kern_pad(n) / 8 * 9 + block / 32 * sizeof start, sizeof start);
    assert_int_equal(start, -sum);
    for (uint32_t c = block; c < block + 32; c += 16) {
        sum = 0;
        for (uint32_t i = 0; i < 16; i++)
            sum -= (int8_t)x8[c + i];
        memcpy(&start, x8 + tn_kern_pad(n) / 8 * 10 + c / 16 * sizeof start, sizeof start);
        assert_int_equal(start, sum);
    }
}

static void fill_inputs(float *x, uint32_t n, enum fill fill, struct tn_rng *rng)
{
    for (uint32_t c = 0; c < n; c++)
        x[c] = random_input(rng, fill, c);
}

static void run_quant(const struct tn_kernel_row *row, uint32_t cols, enum fill fill,
                      enum tn_guard_side side, struct tn_rng *rng)
{
    const bool is_x8 = !strcmp(row->op, "quant_x8");
    struct tn_guard x, made;
    float *values = tn_guard_new(&x, cols * sizeof(float), sizeof(float), side);
    tn_guard_new(&made, is_x8 ? TN_X8_BYTES(cols) : TN_X16_BYTES(cols), 64, side);
    fill_inputs(values, cols, fill, rng);
    if (fill == FILL_WIDE && cols > 400) {
        values[1] = NAN;
        values[200] = INFINITY;
        memset(values + 256, 0, 128 * sizeof *values);
        values[390] = 1e-38f;
    }
    if (is_x8)
        ((tn_quant_x8_fn *)row->fn)(made.data, values, cols);
    else
        ((tn_quant_x16_fn *)row->fn)(made.data, values, cols);
    check_intact(row, &made);
    for (uint32_t block = 0; block < tn_kern_pad(cols); block += is_x8 ? 32 : 128)
        (is_x8 ? check_quant8_block : check_quant_block)(row, values, cols, made.data, block);
    tn_guard_free(&x);
    tn_guard_free(&made);
}

static void quant_row(const struct tn_kernel_row *row)
{
    static const uint32_t cols[] = {1, 2, 15, 64, 100, 127, 128, 129, 255, 256, 257, 700, 2560};
    for (size_t k = 0; k < 2 * TN_COUNT_OF(cols); k++)
        for (int fill = 0; fill < N_FILLS; fill++) {
            struct tn_rng rng;
            tn_rng_seed(&rng, k);
            run_quant(row, cols[k / 2], (enum fill)fill,
                      k % 2 ? TN_GUARD_AT_END : TN_GUARD_AT_START, &rng);
        }
}

static void quant_of(const char *op)
{
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (runs_here(&tn_kernel_rows[i], op))
            quant_row(&tn_kernel_rows[i]);
}

static void test_quant(void **state)
{
    (void)state;
    quant_of("quant_x16");
}

static void test_quant_x8(void **state)
{
    (void)state;
    quant_of("quant_x8");
}

static void test_add_scaled(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        for (uint32_t n = 1; n < 70 && runs_here(&tn_kernel_rows[i], "add_scaled_f32"); n++) {
            struct tn_rng rng;
            struct tn_guard dst, src;
            float *d = tn_guard_new(&dst, n * sizeof *d, sizeof *d, TN_GUARD_AT_END);
            float *s = tn_guard_new(&src, n * sizeof *s, sizeof *s, TN_GUARD_AT_END);
            float want[70];
            tn_rng_seed(&rng, n);
            fill_inputs(d, n, FILL_RANDOM, &rng);
            fill_inputs(s, n, FILL_RANDOM, &rng);
            for (uint32_t k = 0; k < n; k++)
                want[k] = d[k] + s[k] * 0.3f;
            ((tn_add_scaled_f32_fn *)tn_kernel_rows[i].fn)(d, s, n, 0.3f);
            check_intact(&tn_kernel_rows[i], &dst);
            assert_memory_equal(d, want, n * sizeof *d);
            tn_guard_free(&dst);
            tn_guard_free(&src);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quant),
        cmocka_unit_test(test_quant_x8),
        cmocka_unit_test(test_add_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

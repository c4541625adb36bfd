/* SPDX-License-Identifier: MIT
 *
 * Ternary products of inputs that are not rounded to int8, with scales per group: every row of
 * kern_list.h that this CPU supports returns the bits of the formulas of kern.h, which are
 * implemented here again, and stays within the stated error of float64.  Inputs and outputs end at
 * inaccessible pages.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/layout_spec.h"
#include "base/bits.h"
#include "base/half.h"
#include "base/rng.h"
#include "kern/guard.h"
#include "kern/kern.h"
#include "kern/pack.h"
#include "kern/rounded_inputs.h"

struct problem {
    enum fill fill;
    enum tn_guard_side side;
    uint32_t rows, cols, group;
    int8_t *trits;      /* [rows][cols] */
    float *row_scales;  /* [rows][groups] */
    struct tn_guard data, scales;
    struct tn_scaled_ternary m;
    struct tn_rng rng;
};

static float random_scale(struct problem *p)
{
    const float v = 0.01f + tn_rng_f32(&p->rng) * 0.2f;
    const float scale = p->fill == FILL_WIDE && tn_rng_next(&p->rng) % 2 ? -v * 1e-4f : v;
    return p->m.is_f16 ? tn_f16_to_f32(tn_f32_to_f16(scale)) : scale;
}

static int8_t random_trit(struct problem *p)
{
    return p->fill >= FILL_LARGEST ? 1 : (int8_t)((int)(tn_rng_next(&p->rng) % 3) - 1);
}

static void problem_init(struct problem *p, uint32_t rows, uint32_t cols, uint32_t group,
                         bool is_f16, enum fill fill, enum tn_guard_side side)
{
    *p = (struct problem){.fill = fill, .side = side, .rows = rows, .cols = cols, .group = group};
    p->m.is_f16 = is_f16;
    tn_rng_seed(&p->rng, rows * 65537u + cols + group);
    const size_t n_groups = tn_n_groups(cols, group);
    p->trits = malloc((size_t)rows * cols);
    p->row_scales = malloc(rows * n_groups * sizeof *p->row_scales);
    assert_true(p->trits && p->row_scales);
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        p->trits[i] = random_trit(p);
    for (size_t i = 0; i < rows * n_groups; i++)
        p->row_scales[i] = random_scale(p);
    tn_guard_new(&p->data, (size_t)tn_layout_size(TERN_LAYOUT_T2, rows, cols), 64, side);
    tn_pack_rows(p->data.data, TERN_LAYOUT_T2, rows, cols, 0, rows, p->trits);
    tn_guard_new(&p->scales, tn_n_scales(rows, cols, group) * (is_f16 ? 2 : 4), 64, side);
    tn_pack_scales(p->scales.data, is_f16, rows, cols, group, 0, rows, p->row_scales);
    p->m = (struct tn_scaled_ternary){
        {p->data.data, rows, cols, TERN_LAYOUT_T2}, p->scales.data, group, is_f16};
}

static void problem_fini(struct problem *p)
{
    free(p->trits);
    free(p->row_scales);
    tn_guard_free(&p->data);
    tn_guard_free(&p->scales);
}

static void fill_inputs(struct problem *p, float *x)
{
    for (uint32_t c = 0; c < p->cols; c++)
        x[c] = random_input(&p->rng, p->fill, c);
}

/* ---- the formulas ---- */

static uint32_t run_cols(const struct problem *p)
{
    return p->group < p->cols && p->group % 128 ? 64 : 128;
}

static float expected_x16(const struct problem *p, uint32_t row, const uint8_t *x16)
{
    float y = 0.0f;
    if (row >= p->rows)
        return y;
    const uint32_t n_groups = tn_n_groups(p->cols, p->group), run = run_cols(p);
    for (uint32_t begin = 0; begin < p->cols; begin += run) {
        int64_t sum = 0;
        for (uint32_t c = begin; c < begin + run && c < p->cols; c++)
            sum += (int64_t)p->trits[(size_t)row * p->cols + c] * q_at(x16, p->cols, c);
        const float scale = p->row_scales[(size_t)row * n_groups + begin / p->group];
        y += ((float)sum * scale) * factor_at(x16, p->cols, begin);
    }
    return y;
}

static float expected_x8(const struct problem *p, uint32_t row, const uint8_t *x8)
{
    float y = 0.0f;
    if (row >= p->rows)
        return y;
    const uint32_t n_groups = tn_n_groups(p->cols, p->group), run = run_cols(p);
    for (uint32_t begin = 0; begin < p->cols; begin += run) {
        float t = 0.0f;
        for (uint32_t block = begin; block < begin + run && block < p->cols; block += 32) {
            int32_t sum = 0;
            for (uint32_t c = block; c < block + 32 && c < p->cols; c++)
                sum += p->trits[(size_t)row * p->cols + c] * (int8_t)x8[c];
            t += (float)sum * factor8_at(x8, p->cols, block);
        }
        y += t * p->row_scales[(size_t)row * n_groups + begin / p->group];
    }
    return y;
}

static float expected_f32(const struct problem *p, uint32_t row, const float *x)
{
    float y = 0.0f;
    if (row >= p->rows)
        return y;
    const uint32_t n_groups = tn_n_groups(p->cols, p->group), run = run_cols(p);
    for (uint32_t begin = 0; begin < p->cols; begin += run) {
        float sum = 0.0f;
        for (uint32_t c = begin; c < begin + run && c < p->cols; c++)
            sum += (float)p->trits[(size_t)row * p->cols + c] * x[c];
        y += sum * p->row_scales[(size_t)row * n_groups + begin / p->group];
    }
    return y;
}

/* The largest magnitude of each block of 128 inputs. */
static void block_maximums(float *most, const float *x, uint32_t cols)
{
    for (uint32_t c = 0; c < cols; c++)
        most[c / 128] = c % 128 ? TN_MAX(most[c / 128], fabsf(x[c])) : fabsf(x[c]);
}

/* In float64; *size: the sum of the magnitudes that were added, with block maximums as inputs. */
static double exact(const struct problem *p, uint32_t row, const float *x, const float *most,
                    double *size)
{
    double y = 0;
    *size = 0;
    const uint32_t n_groups = tn_n_groups(p->cols, p->group);
    for (uint32_t begin = 0; begin < p->cols; begin += 64) {
        const double scale = (double)p->row_scales[(size_t)row * n_groups + begin / p->group];
        for (uint32_t c = begin; c < begin + 64 && c < p->cols; c++)
            y += p->trits[(size_t)row * p->cols + c] * (double)x[c] * scale;
        *size += 64 * (double)most[begin / 128] * fabs(scale);
    }
    return y;
}

static void check(const struct problem *p, const struct tn_kernel_row *row, uint32_t r, float got,
                  float want)
{
    if (tn_f32_to_bits(got) != tn_f32_to_bits(want))
        fail_msg("%s_%s, %u x %u, groups of %u, fill %d: row %u is %.9g, expected %.9g", row->op,
                 row->isa, p->rows, p->cols, p->group, (int)p->fill, r, (double)got, (double)want);
}

/* An activation format: its size, how it is made, and the expected result of a row. */
struct form {
    const char *name; /* suffix of the operations' names */
    size_t (*n_bytes)(uint32_t cols);
    void (*make)(void *dst, const float *x, uint32_t n);
    float (*expected)(const struct problem *p, uint32_t row, const uint8_t *x);
    double error; /* half a step, and the rounding of f32 sums */
    uint32_t n_few; /* maximum inputs of a gemv */
};

static size_t f32_bytes(uint32_t cols)
{
    return tn_kern_pad(cols) * sizeof(float);
}

static size_t x16_bytes(uint32_t cols)
{
    return TN_X16_BYTES(cols);
}

static size_t x8_bytes(uint32_t cols)
{
    return TN_X8_BYTES(cols);
}

static void make_f32(void *dst, const float *x, uint32_t n)
{
    memset(dst, 0, f32_bytes(n));
    memcpy(dst, x, n * sizeof *x);
}

static float expected_floats(const struct problem *p, uint32_t row, const uint8_t *x)
{
    return expected_f32(p, row, (const float *)(const void *)x);
}

static const struct form forms[] = {
    {"f32", f32_bytes, make_f32, expected_floats, 2e-6, TN_X8_FEW},
    {"x16", x16_bytes, tn_quant_x16_ref, expected_x16, 0.5 / 32639 + 1e-6, TN_X16_FEW},
    {"x8", x8_bytes, tn_quant_x8_ref, expected_x8, 0.5 / 127 + 1e-6, TN_X8_FEW},
};

static const struct form *form_of(const char *op)
{
    for (size_t i = 0; i < TN_COUNT_OF(forms); i++)
        if (!strcmp(strrchr(op, '_') + 1, forms[i].name))
            return &forms[i];
    fail_msg("%s: no such form of inputs", op);
    return NULL;
}

static void call(const struct tn_kernel_row *row, float *dst, size_t dst_stride,
                 const struct problem *p, uint32_t row_begin, uint32_t row_end, const void *x,
                 uint32_t n_tokens, void *scratch)
{
    if (!strcmp(row->op, "gemv_t2_x16"))
        ((tn_gemv_t2_x16_fn *)row->fn)(dst, dst_stride, &p->m, row_begin, row_end, x, n_tokens);
    else if (!strcmp(row->op, "gemv_t2_x8"))
        ((tn_gemv_t2_x8_fn *)row->fn)(dst, dst_stride, &p->m, row_begin, row_end, x, n_tokens);
    else if (!strcmp(row->op, "gemm_t2_x16"))
        ((tn_gemm_t2_x16_fn *)row->fn)(dst, dst_stride, &p->m, row_begin, row_end, x, n_tokens,
                                       scratch);
    else if (!strcmp(row->op, "gemm_t2_x8"))
        ((tn_gemm_t2_x8_fn *)row->fn)(dst, dst_stride, &p->m, row_begin, row_end, x, n_tokens,
                                      scratch);
    else
        for (uint32_t t = 0; t < n_tokens; t++)
            ((tn_gemv_t2_f32_fn *)row->fn)(dst + t * dst_stride, &p->m, row_begin, row_end,
                                           (const float *)x + t * tn_kern_pad(p->cols));
}

/* ---- the operands ---- */

#define MAX_INPUTS 19u
_Static_assert(TN_X8_FEW <= MAX_INPUTS && TN_X16_FEW <= MAX_INPUTS, "inputs of a gemv");

/* The inputs of a problem in the form of an operation, and the results of the formula. */
struct inputs {
    const struct form *form;
    struct tn_guard made; /* [MAX_INPUTS][form->n_bytes(cols)] */
    float *want;          /* [MAX_INPUTS][padded rows] */
    uint32_t padded;
};

/* The formula's results must be close to those of float64. */
static void expect(const struct problem *p, struct inputs *in, uint32_t t, const float *values,
                   const char *op)
{
    const uint8_t *made = in->made.data + t * in->form->n_bytes(p->cols);
    float *most = malloc((p->cols / 128 + 1) * sizeof *most);
    assert_non_null(most);
    block_maximums(most, values, p->cols);
    for (uint32_t r = 0; r < in->padded; r++) {
        const float want = in->want[t * in->padded + r] = in->form->expected(p, r, made);
        if (r >= p->rows)
            continue;
        double size;
        const double y = exact(p, r, values, most, &size);
        if (!(fabs((double)want - y) <= size * in->form->error))
            fail_msg("%s, %u x %u, fill %d: row %u is %.9g, exactly %.9g", op, p->rows, p->cols,
                     (int)p->fill, r, (double)want, y);
    }
    free(most);
}

static void inputs_init(struct inputs *in, struct problem *p, const char *op)
{
    *in = (struct inputs){.form = form_of(op)};
    in->padded = tn_div_ceil_u32(p->rows, TN_GEMM_ROWS) * TN_GEMM_ROWS;
    in->want = malloc((size_t)MAX_INPUTS * in->padded * sizeof *in->want);
    float *values = malloc(p->cols * sizeof *values);
    assert_true(in->want && values);
    const size_t n_bytes = in->form->n_bytes(p->cols);
    tn_guard_new(&in->made, MAX_INPUTS * n_bytes, 64, p->side);
    for (uint32_t t = 0; t < MAX_INPUTS; t++) {
        fill_inputs(p, values);
        in->form->make(in->made.data + t * n_bytes, values, p->cols);
        expect(p, in, t, values, op);
    }
    free(values);
}

static void inputs_fini(struct inputs *in)
{
    free(in->want);
    tn_guard_free(&in->made);
}

/* Multiplies the last n_tokens inputs, so that they end at the border of their buffer. */
static void run(const struct problem *p, const struct inputs *in, const struct tn_kernel_row *row,
                uint32_t row_begin, uint32_t row_end, uint32_t n_tokens)
{
    const uint32_t first = p->side == TN_GUARD_AT_END ? MAX_INPUTS - n_tokens : 0;
    const uint8_t *x = in->made.data + first * in->form->n_bytes(p->cols);
    const bool is_gemm = !strncmp(row->op, "gemm", 4); /* may leave padding rows untouched */
    const size_t n = row_end - row_begin, dst_stride = n + n_tokens % 3 * 16;
    struct tn_guard dst, scratch;
    float untouched, *got =
        tn_guard_new(&dst, ((n_tokens - 1) * dst_stride + n) * sizeof *got, 64, p->side);
    tn_guard_new(&scratch, TN_GEMM_SCRATCH_BYTES, 64, p->side);
    memset(&untouched, TN_GUARD_BYTE, sizeof untouched);
    call(row, got, dst_stride, p, row_begin, row_end, x, n_tokens, scratch.data);
    check_intact(row, &dst);
    check_intact(row, &scratch);
    for (uint32_t t = 0; t < n_tokens; t++, got += dst_stride) {
        const float *want = in->want + (first + t) * in->padded + row_begin;
        for (uint32_t i = 0; i < n; i++)
            if (!is_gemm || row_begin + i < p->rows ||
                tn_f32_to_bits(got[i]) != tn_f32_to_bits(untouched))
                check(p, row, row_begin + i, got[i], want[i]);
        for (size_t i = n; t + 1 < n_tokens && i < dst_stride; i++)
            check(p, row, row_end, got[i], untouched);
    }
    tn_guard_free(&dst);
    tn_guard_free(&scratch);
}

/* ---- gemv and gemm ---- */

static void run_gemv(const struct problem *p, const struct inputs *in,
                     const struct tn_kernel_row *row)
{
    const uint32_t padded = tn_div_ceil_u32(p->rows, 64) * 64;
    for (uint32_t n = 1; n <= (p->cols < 200 ? in->form->n_few : 1); n++)
        run(p, in, row, 0, padded, n);
    if (padded > 256) {
        run(p, in, row, 256, padded, 3);
        run(p, in, row, 0, 256, 4);
    }
}

static void run_gemm(const struct problem *p, const struct inputs *in,
                     const struct tn_kernel_row *row)
{
    /* Numbers of tokens around the tile sizes of every level. */
    static const uint32_t few[] = {1, 2, 3, 4, 5, 6, 7, 9, 16, 17};
    for (size_t k = 0; p->cols < 200 && k < TN_COUNT_OF(few); k++)
        run(p, in, row, 0, in->padded, few[k]);
    run(p, in, row, in->padded - TN_GEMM_ROWS, in->padded, 4);
    run(p, in, row, in->padded - TN_GEMM_ROWS, in->padded, MAX_INPUTS);
    run(p, in, row, in->padded - TN_GEMM_ROW_ALIGN, in->padded, 5);
    run(p, in, row, TN_GEMM_ROW_ALIGN, 3 * TN_GEMM_ROW_ALIGN, 2);
}

/* ---- the sizes ---- */

typedef void run_fn(const struct problem *p, const struct inputs *in,
                    const struct tn_kernel_row *row);

struct op {
    const char *name;
    run_fn *run;
    bool takes_t5;
};

static const struct op ops[] = {
    {"gemv_t2_x16", run_gemv, true}, {"gemm_t2_x16", run_gemm, false},
    {"gemv_t2_f32", run_gemv, false}, {"gemv_t2_x8", run_gemv, true},
    {"gemm_t2_x8", run_gemm, false}};

static void test_levels(const struct op *op, const struct problem *p, const struct inputs *in)
{
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (runs_here(&tn_kernel_rows[i], op->name))
            op->run(p, in, &tn_kernel_rows[i]);
}

/* The same with the weights in T5. */
static void test_levels_t5(const struct op *op, struct problem *p, const struct inputs *in)
{
    struct tn_guard data;
    tn_guard_new(&data, (size_t)tn_layout_size(TERN_LAYOUT_T5, p->rows, p->cols), 64, p->side);
    tn_pack_rows(data.data, TERN_LAYOUT_T5, p->rows, p->cols, 0, p->rows, p->trits);
    p->m.w = (struct tn_ternary){data.data, p->rows, p->cols, TERN_LAYOUT_T5};
    test_levels(op, p, in);
    tn_guard_free(&data);
}

static void test_shape(const struct op *op, uint32_t rows, uint32_t cols, uint32_t group,
                       enum fill fill)
{
    struct problem p;
    struct inputs in;
    problem_init(&p, rows, cols, group, cols % 2, fill,
                 rows % 2 ? TN_GUARD_AT_END : TN_GUARD_AT_START);
    inputs_init(&in, &p, op->name);
    test_levels(op, &p, &in);
    if (op->takes_t5)
        test_levels_t5(op, &p, &in);
    inputs_fini(&in);
    problem_fini(&p);
}

static void test_sizes(void **state)
{
    static const uint32_t cols[] = {1,   3,   4,   5,   63,  64,  65,  127, 128,
                                    129, 191, 192, 193, 255, 256, 257, 511, 513};
    static const uint32_t rows[] = {1, 15, 63, 64, 65, 128, 129, 255, 256, 257, 449, 600};
    static const uint32_t groups[] = {64, 128, 192, 256, 1u << 20};
    for (size_t i = 0; i < TN_COUNT_OF(cols); i++)
        for (size_t g = 0; g < TN_COUNT_OF(groups); g++)
            test_shape(*state, 65 - i % 2, cols[i], groups[g], FILL_RANDOM);
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++)
        test_shape(*state, rows[i], 130 + i % 2, groups[i % TN_COUNT_OF(groups)], FILL_WIDE);
    test_shape(*state, 300, 2560, 128, FILL_WIDE);
    test_shape(*state, 65, 2560, 2560, FILL_WIDE);
}

static void test_extremes(void **state)
{
    static const uint32_t groups[] = {64, 128, 256, 100000};
    for (int fill = 0; fill < N_FILLS; fill++)
        for (uint32_t g = 0; g < TN_COUNT_OF(groups); g++)
            test_shape(*state, 64, 1024 + g, groups[g], (enum fill)fill);
}

static void test_long_rows(void **state)
{
    test_shape(*state, 2, (1u << 17) + 1, 1u << 20, FILL_LARGEST);
    test_shape(*state, 2, 100003, 256, FILL_SMALLEST);
}

#define OP_TEST(name, fn, i) {name, fn, NULL, NULL, (void *)&ops[i]}
#define OP_TESTS(name, i)                                                                          \
    OP_TEST(name ": sizes", test_sizes, i), OP_TEST(name ": extremes", test_extremes, i),          \
        OP_TEST(name ": long rows", test_long_rows, i)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OP_TESTS("gemv_t2_x16", 0), OP_TESTS("gemm_t2_x16", 1), OP_TESTS("gemv_t2_f32", 2),
        OP_TESTS("gemv_t2_x8", 3), OP_TESTS("gemm_t2_x8", 4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks: every row of kern_list.h that this CPU supports returns the bits
 * of the formulas of kern.h, which are implemented here again, for every layout, and stays within
 * the stated error of float64.  Inputs and outputs end at inaccessible pages.
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

#include "base/bits.h"
#include "kern/blocks_source.h"
#include "kern/guard.h"
#include "kern/kern.h"

#define MAX_COLS 2560u
#define MAX_INPUTS 9u
#define FEW_INPUTS 5u

enum input_fill {
    INPUT_RANDOM,
    INPUT_WIDE,      /* of many magnitudes, also across blocks */
    INPUT_LARGEST,   /* every value rounds to the largest integer */
    INPUT_SMALLEST,  /* every value rounds to the smallest integer */
    INPUT_LOW_DIGIT, /* low digits of -128 */
    N_INPUT_FILLS
};

struct problem {
    const struct blocks_type *type;
    enum tn_guard_side side;
    enum blocks_fill fill;
    enum input_fill input;
    struct tn_guard data;
    struct tn_blocks w;
    float *scale, *minimum; /* [padded rows][cols / 16] */
    int32_t *code;          /* [padded rows][cols] */
    float *values;          /* [MAX_INPUTS][cols] inputs */
    struct tn_guard x8, x16, f32;
    float *want;            /* [MAX_INPUTS][rows] expected results of an operation */
    struct exact {
        double y, size;
    } *exact;               /* [MAX_INPUTS][rows] results in float64 */
    struct tn_rng rng;
};

static uint32_t features;

static uint32_t padded_rows(const struct problem *p)
{
    return tn_div_ceil_u32(p->w.rows, 16) * 16;
}

static float random_input(struct problem *p, uint32_t col)
{
    const float v = tn_rng_f32(&p->rng) * 2.0f - 1.0f;
    switch (p->input) {
    case INPUT_RANDOM:
        return v;
    case INPUT_WIDE:
        return v * expf(v * 12.0f) * (col / 128 % 3 ? 1.0f : 1e-5f);
    case INPUT_LARGEST:
        return 3.0f;
    case INPUT_SMALLEST:
        return -3.0f;
    default: /* 32639 makes the 16-bit factor 1 */
        return col % 128 == 0 ? 32639.0f : -128.0f;
    }
}

static void make_inputs(struct problem *p)
{
    const uint32_t cols = p->w.cols;
    tn_guard_new(&p->x8, MAX_INPUTS * TN_X8_BYTES(cols), 64, p->side);
    tn_guard_new(&p->x16, MAX_INPUTS * TN_X16_BYTES(cols), 64, p->side);
    tn_guard_new(&p->f32, MAX_INPUTS * cols * sizeof(float), 4, p->side);
    for (uint32_t t = 0; t < MAX_INPUTS; t++) {
        float *x = p->values + (size_t)t * cols;
        for (uint32_t c = 0; c < cols; c++)
            x[c] = random_input(p, c);
        tn_quant_x8_ref(p->x8.data + t * TN_X8_BYTES(cols), x, cols);
        tn_quant_x16_ref(p->x16.data + t * TN_X16_BYTES(cols), x, cols);
    }
    memcpy(p->f32.data, p->values, MAX_INPUTS * cols * sizeof(float));
}

static void make_matrix(struct problem *p)
{
    const uint32_t rows = p->w.rows, cols = p->w.cols, padded = padded_rows(p);
    const size_t n_blocks = (size_t)rows * (cols / p->type->block);
    uint8_t *source = malloc(n_blocks * p->type->n_bytes);
    p->scale = malloc((size_t)padded * cols / 16 * sizeof *p->scale);
    p->minimum = malloc((size_t)padded * cols / 16 * sizeof *p->minimum);
    p->code = malloc((size_t)padded * cols * sizeof *p->code);
    assert_true(source && p->scale && p->minimum && p->code);
    blocks_fill(source, p->type, n_blocks, p->fill, &p->rng);
    p->w.data = tn_guard_new(&p->data, tn_blocks_bytes(p->w.layout, rows, cols), 64, p->side);
    tn_blocks_pack(p->data.data, p->w.layout, source, rows, cols);
    for (uint32_t r = 0; r < padded; r++)
        for (uint32_t c = 0; c < cols; c += 16) {
            const size_t i = (size_t)r * cols + c;
            tn_blocks_codes(p->code + i, &p->w, r, c, 16);
            tn_blocks_scale(&p->scale[i / 16], &p->minimum[i / 16], &p->w, r, c);
        }
    free(source);
}

static void problem_init(struct problem *p, uint32_t layout, uint32_t rows, uint32_t cols,
                         enum blocks_fill fill, enum input_fill input, enum tn_guard_side side)
{
    *p = (struct problem){.type = blocks_type_of(layout), .side = side, .fill = fill,
                          .input = input, .w = {NULL, rows, cols, layout}};
    tn_rng_seed(&p->rng, rows * 65537u + cols * 13u + layout);
    p->values = malloc(MAX_INPUTS * cols * sizeof *p->values);
    p->want = malloc(MAX_INPUTS * rows * sizeof *p->want);
    p->exact = malloc(MAX_INPUTS * rows * sizeof *p->exact);
    assert_true(p->values && p->want && p->exact);
    make_matrix(p);
    make_inputs(p);
}

static void problem_fini(struct problem *p)
{
    free(p->scale);
    free(p->minimum);
    free(p->code);
    free(p->values);
    free(p->want);
    free(p->exact);
    tn_guard_free(&p->data);
    tn_guard_free(&p->x8);
    tn_guard_free(&p->x16);
    tn_guard_free(&p->f32);
}

/* ---- the formulas ---- */

/* Columns that share a scale, and whether there are minimums. */
static uint32_t part_cols(uint32_t layout)
{
    return layout == TERN_LAYOUT_Q2_K || layout == TERN_LAYOUT_Q3_K ||
                   layout == TERN_LAYOUT_Q6_K || layout == TERN_LAYOUT_IQ2_S
               ? 16
               : 32;
}

static bool has_minima(uint32_t layout)
{
    return layout == TERN_LAYOUT_Q4_1 || layout == TERN_LAYOUT_Q5_1 || layout == TERN_LAYOUT_Q2_K ||
           layout == TERN_LAYOUT_Q4_K || layout == TERN_LAYOUT_Q5_K;
}

static int32_t value_8(const uint8_t *x8, uint32_t cols, uint32_t c, float *factor)
{
    memcpy(factor, x8 + tn_kern_pad(cols) + c / 32 * 4, 4);
    return (int8_t)x8[c];
}

static int32_t value_16(const uint8_t *x16, uint32_t cols, uint32_t c, float *factor)
{
    memcpy(factor, x16 + tn_kern_pad(cols) + c / 128 * 4, 4);
    return (int8_t)x16[c] * 256 + (int8_t)x16[tn_x16_half(cols) + c];
}

typedef int32_t value_fn(const uint8_t *x, uint32_t cols, uint32_t c, float *factor);

static float expected(const struct problem *p, uint32_t row, const uint8_t *x, value_fn *value)
{
    const uint32_t cols = p->w.cols, part = part_cols(p->w.layout);
    float y = 0.0f, factor = 0.0f;
    for (uint32_t begin = 0; begin < cols; begin += part) {
        const size_t first = (size_t)row * cols + begin;
        int64_t sum = 0, minus_x = 0;
        for (uint32_t c = 0; c < part; c++) {
            const int32_t v = value(x, cols, begin + c, &factor);
            sum += (int64_t)p->code[first + c] * v;
            minus_x -= v;
        }
        float t = (float)sum * p->scale[first / 16];
        if (has_minima(p->w.layout))
            t += p->minimum[first / 16] * (float)minus_x;
        y += t * factor;
    }
    return y;
}

static float expected_8(const struct problem *p, uint32_t row, uint32_t t)
{
    return expected(p, row, p->x8.data + t * TN_X8_BYTES(p->w.cols), value_8);
}

static float expected_16(const struct problem *p, uint32_t row, uint32_t t)
{
    return expected(p, row, p->x16.data + t * TN_X16_BYTES(p->w.cols), value_16);
}

static float weight(const struct problem *p, uint32_t row, uint32_t c)
{
    const size_t i = (size_t)row * p->w.cols + c, part = part_cols(p->w.layout);
    const float v = p->scale[i / part * part / 16] * (float)p->code[i];
    return has_minima(p->w.layout) ? v - p->minimum[i / part * part / 16] : v;
}

static float expected_f32(const struct problem *p, uint32_t row, uint32_t t)
{
    const float *x = p->values + (size_t)t * p->w.cols;
    float y = 0.0f;
    for (uint32_t begin = 0; begin < p->w.cols; begin += 32) {
        float sum = 0.0f;
        for (uint32_t c = begin; c < begin + 32; c++)
            sum += weight(p, row, c) * x[c];
        y += sum;
    }
    return y;
}

/* In float64; size: the sum of the magnitudes that were added, assuming the largest input of each
 * 128 columns, most[col / 128], for all of them. */
static struct exact exact(const struct problem *p, uint32_t row, uint32_t t, const float *most)
{
    const float *x = p->values + (size_t)t * p->w.cols;
    struct exact sum = {0, 0};
    for (uint32_t begin = 0; begin < p->w.cols; begin += 16) {
        const size_t i = ((size_t)row * p->w.cols + begin) / 16;
        for (uint32_t c = begin; c < begin + 16; c++)
            sum.y += (double)weight(p, row, c) * (double)x[c];
        sum.size += 16 * (double)most[begin / 128] *
                    (fabs((double)p->scale[i] * 128) + fabs((double)p->minimum[i]));
    }
    return sum;
}

static void make_exact(struct problem *p, uint32_t n_inputs)
{
    for (uint32_t t = 0; t < n_inputs; t++) {
        float most[MAX_COLS / 128] = {0};
        for (uint32_t c = 0; c < p->w.cols; c++)
            most[c / 128] = TN_MAX(most[c / 128], fabsf(p->values[(size_t)t * p->w.cols + c]));
        for (uint32_t r = 0; r < p->w.rows; r++)
            p->exact[t * p->w.rows + r] = exact(p, r, t, most);
    }
}

/* ---- the operations ---- */

struct op {
    const char *name;
    float (*expected)(const struct problem *p, uint32_t row, uint32_t t);
    bool is_gemm;
    double error; /* relative: half a step, and the rounding of f32 sums */
};

static const struct op ops[] = {
    {"gemv_blocks_x8", expected_8, false, 0.5 / 127 + 2e-6},
    {"gemm_blocks_x8", expected_8, true, 0.5 / 127 + 2e-6},
    {"gemv_blocks_x16", expected_16, false, 0.5 / 32639 + 2e-6},
    {"gemm_blocks_x16", expected_16, true, 0.5 / 32639 + 2e-6},
    {"gemv_blocks_f32", expected_f32, false, 2e-6},
};

static void call(const struct tn_kernel_row *row, const struct op *op, float *dst, size_t stride,
                 const struct problem *p, uint32_t begin, uint32_t end, uint32_t n, void *scratch)
{
    const uint32_t cols = p->w.cols;
    const uint8_t *x = op->expected == expected_8 ? p->x8.data : p->x16.data;
    const size_t x_bytes = op->expected == expected_8 ? TN_X8_BYTES(cols) : TN_X16_BYTES(cols);
    if (op->is_gemm)
        ((tn_gemm_blocks_fn *)row->fn)(dst, stride, &p->w, begin, end, x, n, scratch);
    else
        for (uint32_t t = 0; t < n; t++)
            if (op->expected == expected_f32)
                ((tn_gemv_blocks_f32_fn *)row->fn)(
                    dst + t * stride, &p->w, begin, end,
                    (const float *)(const void *)p->f32.data + (size_t)t * cols);
            else
                ((tn_gemv_blocks_fn *)row->fn)(dst + t * stride, &p->w, begin, end,
                                               x + t * x_bytes);
}

/* The result of the formula, which must be close to that of float64. */
static void expect(struct problem *p, const struct op *op, uint32_t n_inputs)
{
    for (uint32_t t = 0; t < n_inputs; t++)
        for (uint32_t r = 0; r < p->w.rows; r++) {
            const float want = p->want[t * p->w.rows + r] = op->expected(p, r, t);
            const struct exact exact = p->exact[t * p->w.rows + r];
            if (!(fabs((double)want - exact.y) <= exact.size * op->error))
                fail_msg("%s, %s, %u x %u: row %u is %.9g, exactly %.9g", op->name, p->type->name,
                         p->w.rows, p->w.cols, r, (double)want, exact.y);
        }
}

static void check(const struct problem *p, const struct tn_kernel_row *row, uint32_t r, uint32_t t,
                  float got)
{
    const float want = p->want[t * p->w.rows + r];
    if (tn_f32_to_bits(got) != tn_f32_to_bits(want))
        fail_msg("%s_%s, %s, %u x %u, fills %d and %d: row %u of input %u is %.9g, expected %.9g",
                 row->op, row->isa, p->type->name, p->w.rows, p->w.cols, (int)p->fill,
                 (int)p->input, r, t, (double)got, (double)want);
}

static void run(const struct problem *p, const struct tn_kernel_row *row, const struct op *op,
                uint32_t begin, uint32_t end, uint32_t n)
{
    const size_t stride = end - begin + n % 3 * 16;
    struct tn_guard dst, scratch;
    float untouched, *got = tn_guard_new(&dst, ((n - 1) * stride + end - begin) * sizeof *got, 64,
                                         p->side);
    memset(&untouched, TN_GUARD_BYTE, sizeof untouched);
    tn_guard_new(&scratch, TN_GEMM_SCRATCH_BYTES, 64, p->side);
    call(row, op, got, stride, p, begin, end, n, scratch.data);
    if (!tn_guard_is_intact(&dst) || !tn_guard_is_intact(&scratch))
        fail_msg("%s_%s wrote beyond a buffer", row->op, row->isa);
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < end - begin; i++) {
            const float y = got[t * stride + i];
            if (begin + i < p->w.rows)
                check(p, row, begin + i, t, y);
            else if (tn_f32_to_bits(y) != 0 && tn_f32_to_bits(y) != tn_f32_to_bits(untouched))
                fail_msg("%s_%s: padding row %u became %.9g", row->op, row->isa, begin + i,
                         (double)y);
        }
    for (uint32_t t = 0; t + 1 < n; t++)
        for (size_t i = end - begin; i < stride; i++)
            assert_int_equal(tn_f32_to_bits(got[t * stride + i]), tn_f32_to_bits(untouched));
    tn_guard_free(&dst);
    tn_guard_free(&scratch);
}

/* Runs every kernel of the operation; with `all` for every number of inputs, which a gemv takes one
 * by one. */
static void run_all(const struct problem *p, const struct op *op, bool all)
{
    const uint32_t align = op->is_gemm ? TN_GEMM_ROW_ALIGN : 16;
    const uint32_t end = tn_div_ceil_u32(p->w.rows, align) * align;
    const uint32_t most = all ? MAX_INPUTS : 1;
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        const struct tn_kernel_row *row = &tn_kernel_rows[i];
        if (strcmp(row->op, op->name) || (row->needs & ~features))
            continue;
        for (uint32_t n = op->is_gemm ? 1 : most; n <= most; n++)
            run(p, row, op, 0, end, n);
        run(p, row, op, end - align, end, FEW_INPUTS);
        if (end > 2 * align)
            run(p, row, op, align, 2 * align, 2);
    }
}

static void test_shape(uint32_t layout, uint32_t rows, uint32_t cols, enum blocks_fill fill,
                       enum input_fill input, bool all)
{
    struct problem p;
    problem_init(&p, layout, rows, cols, fill, input,
                 rows % 2 ? TN_GUARD_AT_END : TN_GUARD_AT_START);
    const uint32_t n_inputs = all ? MAX_INPUTS : FEW_INPUTS;
    make_exact(&p, n_inputs);
    for (size_t i = 0; i < TN_COUNT_OF(ops); i++) {
        expect(&p, &ops[i], n_inputs);
        run_all(&p, &ops[i], all);
    }
    problem_fini(&p);
}

static void test_sizes(void **state)
{
    static const uint32_t rows[] = {1, 15, 16, 17, 31, 63, 64, 65, 129, 300};
    (void)state;
    for (size_t i = 0; i < N_BLOCKS_TYPES; i++) {
        const struct blocks_type *type = &blocks_types[i];
        for (size_t k = 0; k < TN_COUNT_OF(rows); k++)
            test_shape(type->layout, rows[k], 256, FILL_BLOCKS_RANDOM, INPUT_RANDOM, k < 4);
        for (uint32_t cols = type->block; cols < 900; cols += type->block)
            test_shape(type->layout, 18, cols, FILL_BLOCKS_RANDOM, INPUT_WIDE, false);
        test_shape(type->layout, 80, MAX_COLS, FILL_BLOCKS_RANDOM, INPUT_WIDE, false);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BLOCKS_TYPES; i++)
        for (int fill = 0; fill < N_BLOCKS_FILLS; fill++)
            for (int input = 0; input < N_INPUT_FILLS; input++)
                test_shape(blocks_types[i].layout, 17, 256, (enum blocks_fill)fill,
                           (enum input_fill)input, true);
}

int main(void)
{
    features = tn_test_cpu_features();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * The ternary kernels: every row of kern_list.h that this CPU supports, compared with sums computed
 * here from the weights.  Inputs and outputs end at inaccessible pages; memory that a kernel must
 * not write is checked byte by byte.
 */
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
#include "base/cpu_bits.h"
#include "base/rng.h"
#include "kern/guard.h"
#include "kern/kern.h"
#include "kern/pack.h"

enum fill {
    FILL_RANDOM,
    FILL_LARGE,       /* random weights, inputs +-127 */
    FILL_ALL_PLUS,    /* weights +1, inputs 127: the largest sum */
    FILL_PLUS_TIMES_MINUS, /* weights +1, inputs -127: the smallest */
    FILL_MINUS_TIMES_MINUS,
    N_FILLS
};

struct problem {
    enum fill fill;
    enum tn_guard_side side;
    uint32_t rows, cols;
    int8_t *trits; /* [rows][cols] */
    struct tn_guard data;
    struct tn_ternary w;
    struct tn_rng rng;
};

static uint32_t features;

static int8_t random_input(struct problem *p)
{
    switch (p->fill) {
    case FILL_RANDOM:
        return (int8_t)((int)(tn_rng_next(&p->rng) % 255) - 127);
    case FILL_LARGE:
        return tn_rng_next(&p->rng) & 1 ? 127 : -127;
    case FILL_ALL_PLUS:
        return 127;
    default:
        return -127;
    }
}

static int8_t random_trit(struct problem *p)
{
    if (p->fill == FILL_RANDOM || p->fill == FILL_LARGE)
        return (int8_t)((int)(tn_rng_next(&p->rng) % 3) - 1);
    return p->fill == FILL_MINUS_TIMES_MINUS ? -1 : 1;
}

static void problem_init(struct problem *p, uint32_t layout, uint32_t rows, uint32_t cols,
                         enum fill fill, enum tn_guard_side side)
{
    memset(p, 0, sizeof *p);
    p->fill = fill;
    p->side = side;
    p->rows = rows;
    p->cols = cols;
    tn_rng_seed(&p->rng, rows * 65537u + cols);
    p->trits = malloc((size_t)rows * cols);
    assert_non_null(p->trits);
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        p->trits[i] = random_trit(p);
    const size_t n_bytes = (size_t)tn_layout_size(layout, rows, cols);
    tn_guard_new(&p->data, n_bytes, 64, side);
    tn_pack_rows(p->data.data, layout, rows, cols, 0, rows, p->trits);
    p->w = (struct tn_ternary){p->data.data, rows, cols, layout};
}

static void problem_fini(struct problem *p)
{
    free(p->trits);
    tn_guard_free(&p->data);
}

/* x [tn_kern_pad(cols)] with zeros beyond cols. */
static void fill_inputs(struct problem *p, int8_t *x)
{
    memset(x, 0, tn_kern_pad(p->cols));
    for (uint32_t c = 0; c < p->cols; c++)
        x[c] = random_input(p);
}

/* The sum of one row; rows beyond the last are padding. */
static int32_t expected_sum(const struct problem *p, uint32_t row, const int8_t *x)
{
    int32_t sum = 0;
    if (row < p->rows)
        for (uint32_t c = 0; c < p->cols; c++)
            sum += p->trits[(size_t)row * p->cols + c] * x[c];
    return sum;
}

static void check(const struct problem *p, const char *isa, const char *what, uint32_t index,
                  int32_t got, int32_t want)
{
    if (got != want)
        fail_msg("%s %s, %u x %u, fill %d: sum %u is %d, expected %d", what, isa, p->rows, p->cols,
                 (int)p->fill, index, got, want);
}

static void check_intact(const struct problem *p, const char *isa, const char *what,
                         const struct tn_guard *g)
{
    if (!tn_guard_is_intact(g))
        fail_msg("%s %s, %u x %u: wrote beyond a buffer of %zu bytes", what, isa, p->rows, p->cols,
                 g->n_bytes);
}

static const struct tn_kernel_row *find_row(const char *op, const char *isa)
{
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (!strcmp(tn_kernel_rows[i].op, op) && !strcmp(tn_kernel_rows[i].isa, isa))
            return &tn_kernel_rows[i];
    fail_msg("kern_list.h has no %s for %s", op, isa);
    return NULL;
}

/* ---- gemv_t2 ---- */

static void run_t2(struct problem *p, const struct tn_kernel_row *row, uint32_t row_begin,
                   uint32_t row_end)
{
    tn_lut_t2_fn *lut_fn = (tn_lut_t2_fn *)find_row("lut_t2", row->isa)->fn;
    tn_gemv_t2_i8_fn *gemv = (tn_gemv_t2_i8_fn *)row->fn;
    struct tn_guard x, lut, dst;
    tn_guard_new(&x, tn_kern_pad(p->cols), 64, p->side);
    tn_guard_new(&lut, TN_LUT_BYTES(p->cols), 64, p->side);
    tn_guard_new(&dst, (row_end - row_begin) * sizeof(int32_t), 64, p->side);
    fill_inputs(p, (int8_t *)x.data);
    lut_fn(lut.data, (int8_t *)x.data, p->cols);
    check_intact(p, row->isa, "lut_t2", &lut);
    gemv((int32_t *)(void *)dst.data, &p->w, row_begin, row_end, lut.data);
    check_intact(p, row->isa, "gemv_t2_i8", &dst);
    for (uint32_t r = row_begin; r < row_end; r++)
        check(p, row->isa, "gemv_t2_i8", r, ((int32_t *)(void *)dst.data)[r - row_begin],
              expected_sum(p, r, (int8_t *)x.data));
    tn_guard_free(&x);
    tn_guard_free(&lut);
    tn_guard_free(&dst);
}

static void test_t2(const struct tn_kernel_row *row, struct problem *p)
{
    const uint32_t padded = tn_div_ceil_u32(p->rows, 64) * 64;
    run_t2(p, row, 0, padded);
    if (padded > 256) {
        run_t2(p, row, 256, padded);
        run_t2(p, row, 0, 256);
    }
}

/* ---- gemv_r2 ---- */

/* About one row in `step`, ascending. */
static uint32_t pick(struct problem *p, uint32_t *list, uint32_t n, uint32_t step)
{
    uint32_t n_picked = 0;
    for (uint32_t i = 0; i < n; i++)
        if (tn_rng_next(&p->rng) % step == 0)
            list[n_picked++] = i;
    return n_picked;
}

static void run_r2(struct problem *p, const struct tn_kernel_row *row, uint32_t step)
{
    tn_prep_r2_fn *prep_fn = (tn_prep_r2_fn *)find_row("prep_r2", row->isa)->fn;
    tn_gemv_r2_i8_fn *gemv = (tn_gemv_r2_i8_fn *)row->fn;
    struct tn_guard x, prep, rows, dst;
    uint32_t *picked = malloc(p->rows * sizeof *picked);
    assert_non_null(picked);
    const uint32_t n_rows = pick(p, picked, p->rows, step);
    tn_guard_new(&x, tn_kern_pad(p->cols), 64, p->side);
    tn_guard_new(&prep, TN_PREP_R2_BYTES(p->cols), 64, p->side);
    tn_guard_new(&rows, n_rows * sizeof *picked, sizeof *picked, p->side);
    tn_guard_new(&dst, n_rows * sizeof(int32_t), sizeof(int32_t), p->side);
    memcpy(rows.data, picked, n_rows * sizeof *picked);
    fill_inputs(p, (int8_t *)x.data);
    prep_fn(prep.data, (int8_t *)x.data, p->cols);
    check_intact(p, row->isa, "prep_r2", &prep);
    gemv((int32_t *)(void *)dst.data, &p->w, (uint32_t *)(void *)rows.data, n_rows, prep.data);
    check_intact(p, row->isa, "gemv_r2_i8", &dst);
    for (uint32_t i = 0; i < n_rows; i++)
        check(p, row->isa, "gemv_r2_i8", picked[i], ((int32_t *)(void *)dst.data)[i],
              expected_sum(p, picked[i], (int8_t *)x.data));
    free(picked);
    tn_guard_free(&x);
    tn_guard_free(&prep);
    tn_guard_free(&rows);
    tn_guard_free(&dst);
}

static void test_r2(const struct tn_kernel_row *row, struct problem *p)
{
    run_r2(p, row, 1);
    run_r2(p, row, 3);
    run_r2(p, row, 1000000);
}

/* ---- few_r2 ---- */

#define FEW_INPUTS 8u
#define UNTOUCHED 0x5A5A5A5A

/* A list of rows, and the inputs that use each. */
struct few_list {
    struct tn_guard rows, takers, x, dst;
    int32_t x_sum[FEW_INPUTS];
    uint32_t n_rows;
};

static void few_list_init(struct problem *p, struct few_list *l, uint32_t step)
{
    const size_t x_stride = tn_kern_pad(p->cols);
    uint32_t *picked = malloc(p->rows * sizeof *picked);
    assert_non_null(picked);
    l->n_rows = pick(p, picked, p->rows, step);
    tn_guard_new(&l->rows, l->n_rows * sizeof *picked, sizeof *picked, p->side);
    tn_guard_new(&l->takers, l->n_rows, 1, p->side);
    tn_guard_new(&l->x, FEW_INPUTS * x_stride, 64, p->side);
    tn_guard_new(&l->dst, FEW_INPUTS * l->n_rows * sizeof(int32_t), sizeof(int32_t), p->side);
    memcpy(l->rows.data, picked, l->n_rows * sizeof *picked);
    for (uint32_t i = 0; i < l->n_rows; i++)
        l->takers.data[i] = (uint8_t)tn_rng_next(&p->rng);
    memset(l->dst.data, 0x5A, FEW_INPUTS * l->n_rows * sizeof(int32_t));
    for (uint32_t t = 0; t < FEW_INPUTS; t++) {
        int8_t *x = (int8_t *)l->x.data + t * x_stride;
        fill_inputs(p, x);
        l->x_sum[t] = 0;
        for (uint32_t c = 0; c < p->cols; c++)
            l->x_sum[t] += x[c];
    }
    free(picked);
}

static void run_few_r2(struct problem *p, const struct tn_kernel_row *row, uint32_t step)
{
    const size_t x_stride = tn_kern_pad(p->cols);
    struct few_list l;
    few_list_init(p, &l, step);
    const uint32_t *rows = (const uint32_t *)(void *)l.rows.data;
    const int32_t *dst = (const int32_t *)(void *)l.dst.data;
    ((tn_few_r2_i8_fn *)row->fn)((int32_t *)(void *)l.dst.data, l.n_rows, &p->w, rows,
                                 l.takers.data, l.n_rows, (int8_t *)l.x.data, x_stride, l.x_sum);
    check_intact(p, row->isa, "few_r2_i8", &l.dst);
    for (uint32_t t = 0; t < FEW_INPUTS; t++)
        for (uint32_t i = 0; i < l.n_rows; i++)
            check(p, row->isa, "few_r2_i8", rows[i], dst[t * l.n_rows + i],
                  l.takers.data[i] >> t & 1
                      ? expected_sum(p, rows[i], (int8_t *)l.x.data + t * x_stride)
                      : UNTOUCHED);
    tn_guard_free(&l.rows);
    tn_guard_free(&l.takers);
    tn_guard_free(&l.x);
    tn_guard_free(&l.dst);
}

static void test_few_r2(const struct tn_kernel_row *row, struct problem *p)
{
    run_few_r2(p, row, 1);
    run_few_r2(p, row, 3);
    run_few_r2(p, row, 1000000);
}

/* ---- gemv_c2 ---- */

static void run_c2(struct problem *p, const struct tn_kernel_row *row, uint32_t row_begin,
                   uint32_t row_end, uint32_t step)
{
    tn_gemv_c2_i8_fn *gemv = (tn_gemv_c2_i8_fn *)row->fn;
    struct tn_guard x, cols, dst;
    uint32_t *picked = malloc(p->cols * sizeof *picked);
    int8_t *all = calloc(tn_kern_pad(p->cols), 1);
    assert_true(picked && all);
    const uint32_t n_cols = step == 0 ? 0 : pick(p, picked, p->cols, step);
    tn_guard_new(&x, n_cols, 1, p->side);
    tn_guard_new(&cols, n_cols * sizeof *picked, sizeof *picked, p->side);
    tn_guard_new(&dst, (row_end - row_begin) * sizeof(int32_t), 64, p->side);
    memcpy(cols.data, picked, n_cols * sizeof *picked);
    for (uint32_t i = 0; i < n_cols; i++)
        x.data[i] = (unsigned char)(all[picked[i]] = random_input(p));
    gemv((int32_t *)(void *)dst.data, &p->w, row_begin, row_end, (uint32_t *)(void *)cols.data,
         (int8_t *)x.data, n_cols);
    check_intact(p, row->isa, "gemv_c2_i8", &dst);
    for (uint32_t r = row_begin; r < row_end; r++)
        check(p, row->isa, "gemv_c2_i8", r, ((int32_t *)(void *)dst.data)[r - row_begin],
              expected_sum(p, r, all));
    free(picked);
    free(all);
    tn_guard_free(&x);
    tn_guard_free(&cols);
    tn_guard_free(&dst);
}

static void test_c2(const struct tn_kernel_row *row, struct problem *p)
{
    const uint32_t padded = tn_div_ceil_u32(p->rows, 256) * 256;
    run_c2(p, row, 0, TN_MIN(padded, TN_C2_MAX_ROWS), 1);
    run_c2(p, row, 0, TN_MIN(padded, TN_C2_MAX_ROWS), 3);
    run_c2(p, row, padded - 256, padded, 7);
    run_c2(p, row, 0, 256, 1000000);
    run_c2(p, row, 0, 256, 0); /* none */
}

/* ---- sum_i8 ---- */

static void test_sum(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {256, 512, 2560, 6912, 1u << 20};
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        const struct tn_kernel_row *row = &tn_kernel_rows[i];
        if (strcmp(row->op, "sum_i8") || (row->needs & ~features))
            continue;
        for (int fill = 0; fill < N_FILLS; fill++)
            for (size_t k = 0; k < TN_COUNT_OF(sizes); k++) {
                struct problem p = {.fill = (enum fill)fill, .rows = 1, .cols = sizes[k]};
                struct tn_guard x;
                int32_t sum = 0;
                tn_rng_seed(&p.rng, sizes[k]);
                tn_guard_new(&x, sizes[k], 64, k % 2 ? TN_GUARD_AT_START : TN_GUARD_AT_END);
                fill_inputs(&p, (int8_t *)x.data);
                for (uint32_t c = 0; c < sizes[k]; c++)
                    sum += (int8_t)x.data[c];
                check(&p, row->isa, row->op, 0,
                      ((tn_sum_i8_fn *)row->fn)((int8_t *)x.data, sizes[k]), sum);
                tn_guard_free(&x);
            }
    }
}

/* ---- gemm ---- */

/* The sums of its inputs that the caller of a gemm computes. */
static void sum_inputs(struct tn_guard *x_sum, const int8_t *x, size_t x_stride, uint32_t cols,
                       uint32_t n_tokens)
{
    int32_t *sum = (int32_t *)(void *)x_sum->data;
    for (uint32_t t = 0; t < n_tokens; t++) {
        sum[t] = 0;
        for (uint32_t c = 0; c < cols; c++)
            sum[t] += x[t * x_stride + c];
    }
}

static void run_gemm(struct problem *p, const struct tn_kernel_row *row, uint32_t row_begin,
                     uint32_t row_end, uint32_t n_tokens)
{
    tn_gemm_i8_fn *gemm = (tn_gemm_i8_fn *)row->fn;
    const size_t x_stride = tn_kern_pad(p->cols) + n_tokens % 2 * 64;
    const size_t dst_stride = row_end - row_begin + n_tokens % 3 * 16;
    struct tn_guard x, x_sum, scratch, dst;
    tn_guard_new(&x, n_tokens * x_stride, 64, p->side);
    tn_guard_new(&x_sum, n_tokens * sizeof(int32_t), sizeof(int32_t), p->side);
    tn_guard_new(&scratch, TN_GEMM_SCRATCH_BYTES, 64, p->side);
    tn_guard_new(&dst, n_tokens * dst_stride * sizeof(int32_t), 64, p->side);
    memset(x.data, 0, x.n_bytes);
    for (uint32_t t = 0; t < n_tokens; t++)
        fill_inputs(p, (int8_t *)x.data + t * x_stride);
    sum_inputs(&x_sum, (int8_t *)x.data, x_stride, p->cols, n_tokens);
    gemm((int32_t *)(void *)dst.data, dst_stride, &p->w, row_begin, row_end, (int8_t *)x.data,
         x_stride, (int32_t *)(void *)x_sum.data, n_tokens, scratch.data);
    check_intact(p, row->isa, row->op, &dst);
    check_intact(p, row->isa, row->op, &scratch);
    int32_t untouched;
    memset(&untouched, TN_GUARD_BYTE, sizeof untouched);
    for (uint32_t t = 0; t < n_tokens; t++) {
        const int32_t *got = (const int32_t *)(void *)dst.data + t * dst_stride;
        const int8_t *xt = (int8_t *)x.data + t * x_stride;
        for (uint32_t r = row_begin; r < row_end; r++)
            if (r < p->rows || got[r - row_begin] != untouched)
                check(p, row->isa, row->op, r, got[r - row_begin], expected_sum(p, r, xt));
        for (size_t i = row_end - row_begin; i < dst_stride; i++)
            check(p, row->isa, row->op, row_end, got[i], untouched);
    }
    tn_guard_free(&x);
    tn_guard_free(&x_sum);
    tn_guard_free(&scratch);
    tn_guard_free(&dst);
}

static void test_gemm(const struct tn_kernel_row *row, struct problem *p)
{
    /* Numbers of tokens around the tile sizes of every level. */
    static const uint32_t few[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17};
    const uint32_t padded = tn_div_ceil_u32(p->rows, TN_GEMM_ROWS) * TN_GEMM_ROWS;
    if (p->cols < 300)
        for (size_t i = 0; i < TN_COUNT_OF(few); i++)
            run_gemm(p, row, 0, padded, few[i]);
    else {
        run_gemm(p, row, padded - TN_GEMM_ROWS, padded, 7);
        run_gemm(p, row, padded - TN_GEMM_ROWS, padded, 19);
    }
    run_gemm(p, row, padded - TN_GEMM_ROW_ALIGN, padded, 5);
    run_gemm(p, row, TN_GEMM_ROW_ALIGN, 3 * TN_GEMM_ROW_ALIGN, 2);
}

static void test_gemm_many_tokens(void **state)
{
    (void)state;
    static const uint32_t layouts[] = {TERN_LAYOUT_T2, TERN_LAYOUT_R2, TERN_LAYOUT_C2};
    static const char *const ops[] = {"gemm_t2_i8", "gemm_r2_i8", "gemm_c2_i8"};
    for (size_t k = 0; k < TN_COUNT_OF(ops); k++) {
        struct problem p;
        problem_init(&p, layouts[k], 70, 40, FILL_RANDOM, TN_GUARD_AT_END);
        for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
            if (!strcmp(tn_kernel_rows[i].op, ops[k]) && !(tn_kernel_rows[i].needs & ~features))
                run_gemm(&p, &tn_kernel_rows[i], 0, 256, 1100);
        problem_fini(&p);
    }
}

/* ---- unpacking ---- */

/* Runs of arbitrary bytes, compared with the reference. */
static void check_unpack(const struct tn_kernel_row *row, uint32_t n_runs, size_t stride,
                         struct tn_rng *rng)
{
    struct tn_guard src, dst;
    const size_t n = (n_runs - 1) * stride + TERN_T2_RUN_BYTES;
    uint8_t *want = calloc(1, n);
    tn_guard_new(&src, (size_t)n_runs * TERN_T5_RUN_BYTES, 64, TN_GUARD_AT_END);
    tn_guard_new(&dst, n, 64, TN_GUARD_AT_END);
    for (size_t i = 0; i < (size_t)n_runs * TERN_T5_RUN_BYTES; i++)
        ((uint8_t *)src.data)[i] = (uint8_t)tn_rng_next(rng);
    memset(dst.data, 0, n);
    tn_unpack_t5_ref(want, stride, src.data, n_runs);
    ((tn_unpack_t5_fn *)row->fn)(dst.data, stride, src.data, n_runs);
    if (memcmp(dst.data, want, n) != 0)
        fail_msg("unpack_t5 %s: %u runs, %zu bytes apart", row->isa, n_runs, stride);
    tn_guard_free(&src);
    tn_guard_free(&dst);
    free(want);
}

static void test_unpack_t5(void **state)
{
    (void)state;
    struct tn_rng rng;
    tn_rng_seed(&rng, 5);
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (!strcmp(tn_kernel_rows[i].op, "unpack_t5") && !(tn_kernel_rows[i].needs & ~features))
            for (uint32_t n = 1; n < 8; n++)
                for (size_t stride = TERN_T2_RUN_BYTES; stride < 6 * TERN_T2_RUN_BYTES;
                     stride += TERN_T2_RUN_BYTES)
                    check_unpack(&tn_kernel_rows[i], n, stride, &rng);
}

/* ---- all kernels ---- */

typedef void test_fn(const struct tn_kernel_row *row, struct problem *p);

struct op {
    const char *name;
    uint32_t layout;
    test_fn *test;
};

static const struct op ops[] = {
    {"gemv_t2_i8", TERN_LAYOUT_T2, test_t2},   {"gemv_r2_i8", TERN_LAYOUT_R2, test_r2},
    {"gemv_c2_i8", TERN_LAYOUT_C2, test_c2},   {"gemm_t2_i8", TERN_LAYOUT_T2, test_gemm},
    {"gemm_r2_i8", TERN_LAYOUT_R2, test_gemm}, {"gemm_c2_i8", TERN_LAYOUT_C2, test_gemm},
    {"few_r2_i8", TERN_LAYOUT_R2, test_few_r2}, {"gemv_t2_i8", TERN_LAYOUT_T5, test_t2},
};

static void test_shape(const struct op *op, uint32_t rows, uint32_t cols, enum fill fill,
                       enum tn_guard_side side)
{
    struct problem p;
    problem_init(&p, op->layout, rows, cols, fill, side);
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (!strcmp(tn_kernel_rows[i].op, op->name) && !(tn_kernel_rows[i].needs & ~features)) {
            op->test(&tn_kernel_rows[i], &p);
            check_intact(&p, tn_kernel_rows[i].isa, op->name, &p.data);
        }
    problem_fini(&p);
}

/* Sizes around the borders of lanes, groups, blocks and tiles. */
static void test_sizes(void **state)
{
    const struct op *op = *state;
    static const uint32_t cols[] = {1,   2,   3,   4,   5,   15,  16,  17,  23,  24,  25,
                                    31,  32,  33,  47,  48,  49,  63,  64,  65,  95,  96,
                                    97,  127, 128, 129, 191, 192, 193, 240, 255, 256, 257};
    static const uint32_t rows[] = {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257};
    for (size_t i = 0; i < TN_COUNT_OF(cols); i++)
        test_shape(op, 65, cols[i], FILL_RANDOM, i % 2 ? TN_GUARD_AT_END : TN_GUARD_AT_START);
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++)
        test_shape(op, rows[i], 130, FILL_RANDOM, i % 2 ? TN_GUARD_AT_START : TN_GUARD_AT_END);
    test_shape(op, 600, 300, FILL_RANDOM, TN_GUARD_AT_END);
    test_shape(op, 449, 513, FILL_RANDOM, TN_GUARD_AT_START);
}

/* The largest sums, at sizes around the points where narrow accumulators are flushed. */
static void test_extremes(void **state)
{
    const struct op *op = *state;
    static const uint32_t cols[] = {239,  240,  241,  256,  504,  512,  1023, 1024,
                                    1025, 2560, 4079, 4080, 4081, 6336, 6337, 6912};
    for (int fill = FILL_LARGE; fill < N_FILLS; fill++)
        for (size_t i = 0; i < TN_COUNT_OF(cols); i++)
            test_shape(op, 64, cols[i], (enum fill)fill, TN_GUARD_AT_END);
}

static void test_long_rows(void **state)
{
    const struct op *op = *state;
    test_shape(op, 3, 100003, FILL_ALL_PLUS, TN_GUARD_AT_END);
    test_shape(op, 3, 70001, FILL_PLUS_TIMES_MINUS, TN_GUARD_AT_END);
}

/* The longest row that the contract allows, in the layout where it is small. */
static void test_longest_row(void **state)
{
    (void)state;
    test_shape(&ops[1], 1, 1u << 24, FILL_ALL_PLUS, TN_GUARD_AT_END);
    test_shape(&ops[1], 1, 1u << 24, FILL_PLUS_TIMES_MINUS, TN_GUARD_AT_END);
}

static void test_many_rows(void **state)
{
    const struct op *op = *state;
    test_shape(op, 4200, 130, FILL_RANDOM, TN_GUARD_AT_END);
}

/* A table and the kernel that reads it come from the same level, whatever the CPU supports. */
static void test_selection_is_consistent(void **state)
{
    (void)state;
    for (uint32_t mask = 0; mask < 1u << 12; mask++) {
        struct tn_kernels k;
        tn_kernels_select(&k, mask);
        const char *isa[4] = {0};
        for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
            const struct tn_kernel_row *row = &tn_kernel_rows[i];
            if (row->fn == (void (*)(void))k.lut_t2)
                isa[0] = row->isa;
            if (row->fn == (void (*)(void))k.gemv_t2_i8)
                isa[1] = row->isa;
            if (row->fn == (void (*)(void))k.prep_r2)
                isa[2] = row->isa;
            if (row->fn == (void (*)(void))k.gemv_r2_i8)
                isa[3] = row->isa;
        }
        assert_string_equal(isa[0], isa[1]);
        assert_string_equal(isa[2], isa[3]);
    }
}

#define OP_TEST(name, fn, i) {name, fn, NULL, NULL, (void *)&ops[i]}
#define OP_TESTS(name, i)                                                                          \
    OP_TEST(name ": sizes", test_sizes, i), OP_TEST(name ": extremes", test_extremes, i),          \
        OP_TEST(name ": long rows", test_long_rows, i),                                            \
        OP_TEST(name ": many rows", test_many_rows, i)

int main(void)
{
    features = tn_test_cpu_features();
    printf("kernel rows on this CPU (features %#x):", features);
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (!(tn_kernel_rows[i].needs & ~features))
            for (size_t k = 0; k < TN_COUNT_OF(ops); k++)
                if (!strcmp(ops[k].name, tn_kernel_rows[i].op))
                    printf(" %s_%s", tn_kernel_rows[i].op, tn_kernel_rows[i].isa);
    printf("\n");
    const struct CMUnitTest tests[] = {
        OP_TESTS("gemv_t2_i8", 0),
        OP_TESTS("gemv_r2_i8", 1),
        OP_TESTS("gemv_c2_i8", 2),
        OP_TESTS("gemm_t2_i8", 3),
        OP_TESTS("gemm_r2_i8", 4),
        OP_TESTS("gemm_c2_i8", 5),
        OP_TESTS("few_r2_i8", 6),
        OP_TESTS("gemv_t2_i8, T5", 7),
        cmocka_unit_test(test_unpack_t5),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_gemm_many_tokens),
        cmocka_unit_test(test_longest_row),
        cmocka_unit_test(test_selection_is_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

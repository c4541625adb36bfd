/* SPDX-License-Identifier: MIT
 *
 * Every format of the list with every precision of activations it supports: products are compared
 * with double-precision sums of the unpacked rows and the rounded inputs, for one, few and many
 * inputs, with and without adding.  An input gives the same bits in any batch and at every kernel
 * level.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/layout_spec.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/cpu_bits.h"
#include "base/half.h"
#include "base/rng.h"
#include "kern/blocks.h"
#include "kern/guard.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/weights.h"
#include "model/workspace_size.h"

#define MAX_ROWS 320u
#define MAX_COLS 512u
#define MAX_INPUTS 20u

static const struct tn_format *const formats[] = {
#define ROW(name) &tn_format_##name,
    TN_FORMAT_LIST(ROW)
#undef ROW
};

static struct tn_rng rng;
static struct tn_team *team;
static struct tn_kernels best;

static void *take(size_t n_bytes)
{
    void *p = tn_alloc_aligned(n_bytes + 1, 64);
    assert_non_null(p);
    memset(p, 0, n_bytes + 1);
    return p;
}

/* ---- a random matrix in its layout ---- */

static float random_f32(void)
{
    return tn_rng_f32(&rng) * 2 - 1;
}

static void fill_data(const struct tn_format *format, uint8_t *data, uint64_t n_bytes,
                      const struct tern_file_tensor *t)
{
    for (uint64_t i = 0; i < n_bytes; i++)
        data[i] = (uint8_t)tn_rng_next(&rng);
    for (uint64_t i = 0; i < n_bytes / 4 && format->layout == TERN_LAYOUT_F32; i++)
        ((float *)(void *)data)[i] = random_f32();
    for (uint64_t i = 0; i < n_bytes / 2 && format->layout == TERN_LAYOUT_BF16; i++)
        ((uint16_t *)(void *)data)[i] = (uint16_t)(tn_f32_to_bits(random_f32()) >> 16);
    uint64_t bad;
    while (format->find_bad && (bad = format->find_bad(data, n_bytes, t)) < n_bytes)
        data[bad] = data[bad + 1 < n_bytes ? bad + 1 : bad] = 0;
}

/* One kind of scales of the format; offsets and shifts of planes stay zero. */
static void fill_scales(uint8_t *scales, const struct tern_file_tensor *t)
{
    const uint64_t n_bytes = t->scale_kind == TERN_SCALE_ROW
                                 ? (uint64_t)t->rows * tn_layout_scales(t->layout) * 4
                                 : tn_tensor_scale_bytes(t);
    for (uint64_t i = 0; i < n_bytes / 2 && t->scale_kind == TERN_SCALE_COL_GROUP_F16; i++)
        ((uint16_t *)(void *)scales)[i] = tn_f32_to_f16(random_f32());
    for (uint64_t i = 0; i < n_bytes / 4 && t->scale_kind != TERN_SCALE_COL_GROUP_F16; i++)
        ((float *)(void *)scales)[i] = tn_rng_f32(&rng);
}

static void matrix_init(struct tn_matrix *w, const struct tn_format *format, uint32_t scale_kind,
                        uint32_t rows, uint32_t cols)
{
    const struct tn_layout_spec *spec = tn_layout_find(format->layout);
    cols = spec->is_whole ? tn_div_ceil_u32(cols, spec->tile_cols) * spec->tile_cols : cols;
    const bool has_groups = tn_is_col_group(scale_kind);
    const struct tern_file_tensor t = {.layout = format->layout, .scale_kind = scale_kind,
                                       .rows = rows, .cols = cols,
                                       .scale_group = has_groups ? 128 : 0};
    const uint64_t n_bytes = tn_layout_size(format->layout, rows, cols);
    uint8_t *data = take((size_t)n_bytes), *scales = take((size_t)tn_tensor_scale_bytes(&t));
    fill_data(format, data, n_bytes, &t);
    fill_scales(scales, &t);
    *w = (struct tn_matrix){.format = format, .data = data, .scales = scales,
                            .layout = format->layout, .rows = rows, .cols = cols, .scale = 0.125f};
    if (format->bind)
        format->bind(w, &t);
}

static void matrix_fini(struct tn_matrix *w)
{
    tn_free_aligned((void *)(uintptr_t)w->data);
    tn_free_aligned((void *)(uintptr_t)w->scales);
}

/* ---- inputs and memory ---- */

struct bench {
    struct tn_acts acts;
    struct tn_thread_scratch scratch;
    struct tn_worker worker;
    float *x;       /* [MAX_INPUTS][cols] */
    float *weights; /* [rows][cols]; NULL: the format is not for tables and unpacks nothing */
};

static void bench_init(struct bench *b, const struct tn_matrix *w)
{
    const size_t padded = tn_kern_pad(w->cols);
    *b = (struct bench){0};
    b->acts.i8_stride = padded;
    b->acts.i8 = take(MAX_INPUTS * padded);
    b->acts.i8_scale = take(MAX_INPUTS * sizeof(float));
    b->acts.i8_sum = take(MAX_INPUTS * sizeof(int32_t));
    b->acts.prep = take(TN_PREP_R2_BYTES(w->cols));
    b->acts.x16 = take(MAX_INPUTS * TN_X16_BYTES(w->cols));
    b->acts.x8 = take(MAX_INPUTS * TN_X8_BYTES(w->cols));
    b->acts.f32_own = take(MAX_INPUTS * padded * sizeof(float));
    b->scratch.sum = take(TN_MAX(MAX_INPUTS * TN_SUM_STRIDE, TN_C2_MAX_ROWS) * sizeof(int32_t));
    b->scratch.kernel = take(TN_KERNEL_SCRATCH_BYTES);
    b->scratch.lut = take(TN_LUT_BYTES(w->cols));
    b->scratch.lut_input = take(sizeof(uint64_t));
    b->scratch.unpacked = take(w->format->row_bytes ? w->format->row_bytes(w->cols) : 0);
    b->worker = (struct tn_worker){&best, &b->scratch};
    b->x = take(MAX_INPUTS * w->cols * sizeof(float));
    for (size_t i = 0; i < (size_t)MAX_INPUTS * w->cols; i++)
        b->x[i] = random_f32();
    if (!w->format->unpack_row)
        return;
    b->weights = take((size_t)w->rows * w->cols * sizeof(float));
    for (uint32_t r = 0; r < w->rows; r++)
        w->format->unpack_row(b->weights + (size_t)r * w->cols, w, r, &b->worker);
}

static void bench_fini(struct bench *b)
{
    void *const all[] = {b->acts.i8, b->acts.i8_scale, b->acts.i8_sum, b->acts.prep, b->acts.x16,
                         b->acts.x8, b->acts.f32_own, b->scratch.sum, b->scratch.kernel,
                         b->scratch.lut, b->scratch.lut_input, b->scratch.unpacked, b->x,
                         b->weights};
    for (size_t i = 0; i < TN_COUNT_OF(all); i++)
        tn_free_aligned(all[i]);
}

/* Value c of input t after rounding. */
static double input_at(const struct tn_acts *a, enum tn_act act, uint32_t t, uint32_t c)
{
    const size_t padded = tn_kern_pad(a->cols), half = tn_x16_half(a->cols);
    const int8_t *x16 = (const int8_t *)a->x16 + t * TN_X16_BYTES(a->cols);
    const int8_t *x8 = (const int8_t *)a->x8 + t * TN_X8_BYTES(a->cols);
    switch (act) {
    case TN_ACT_I8:
        return (double)a->i8[t * a->i8_stride + c] * (double)a->i8_scale[t];
    case TN_ACT_X16:
        return (x16[c] * 256.0 + x16[half + c]) *
               (double)((const float *)(const void *)(x16 + padded))[c / TN_X16_BLOCK];
    case TN_ACT_X8:
        return x8[c] * (double)((const float *)(const void *)(x8 + padded))[c / TN_X8_BLOCK];
    default:
        assert_int_equal(act, TN_ACT_F32);
        return (double)a->f32[t * a->f32_stride + c];
    }
}

/* ---- products ---- */

/* dst [n][rows] for inputs first ... first + n - 1, in calls of as many rows as allowed. */
static void multiply(struct bench *b, const struct tn_matrix *w, float *dst, float add,
                     uint32_t first, uint32_t n)
{
    const struct tn_format *format = w->format;
    const uint32_t step = n <= TN_FEW_TOKENS ? TN_GEMM_ROWS : TN_GEMM_ROW_ALIGN;
    tn_acts_set(&b->acts, b->x + (size_t)first * w->cols, NULL, 0, n, w->cols);
    tn_acts_derive(&b->acts, format->act, b->worker.kernels, team);
    for (uint32_t row = 0; row < w->rows; row += step) {
        const struct tn_mul m = {dst + row, w->rows, add, w, row, TN_MIN(step, w->rows - row),
                                 &b->acts, &b->worker};
        tn_format_mul(format, &m);
    }
}

/* The results y [MAX_INPUTS][rows] of all inputs, which `b` holds rounded. */
static void check_values(struct bench *b, const struct tn_matrix *w, const float *y)
{
    double x[MAX_COLS];
    /* The kernels' tests check formats that unpack nothing. */
    for (uint32_t t = 0; b->weights && t < MAX_INPUTS; t++) {
        for (uint32_t c = 0; c < w->cols; c++)
            x[c] = input_at(&b->acts, w->format->act, t, c);
        for (uint32_t r = 0; r < w->rows; r++) {
            const float *row = b->weights + (size_t)r * w->cols;
            double sum = 0, size = 0;
            for (uint32_t c = 0; c < w->cols; c++) {
                const double term = (double)row[c] * x[c];
                sum += term;
                size += fabs(term);
            }
            assert_true(fabs((double)y[(size_t)t * w->rows + r] - sum) <= size * 1e-5);
        }
    }
}

static void check_adding(struct bench *b, const struct tn_matrix *w, const float *y, uint32_t n)
{
    const size_t n_values = (size_t)n * w->rows;
    const float adds[] = {1, 0.75f};
    float *sum = take(n_values * sizeof(float));
    for (size_t k = 0; k < TN_COUNT_OF(adds); k++) {
        for (size_t i = 0; i < n_values; i++)
            sum[i] = (float)(i % 7);
        multiply(b, w, sum, adds[k], 0, n);
        for (size_t i = 0; i < n_values; i++) {
            const double expected = (double)(i % 7) + (double)adds[k] * (double)y[i];
            assert_true(fabs((double)sum[i] - expected) <= 1e-6 * (fabs((double)y[i]) + 7));
        }
    }
    tn_free_aligned(sum);
}

/* y: the results of the first n inputs at the best level. */
static void check_levels(struct bench *b, const struct tn_matrix *w, const float *y, uint32_t n)
{
    static const uint32_t masks[] = {0, TN_CPU_SSSE3, TN_CPU_SSSE3 | TN_CPU_AVX2, TN_CPU_NEON};
    const uint32_t features = tn_test_cpu_features();
    float *other = take((size_t)n * w->rows * sizeof(float));
    struct tn_kernels level;
    b->worker.kernels = &level;
    for (size_t i = 0; i < TN_COUNT_OF(masks); i++) {
        if (i && !(features & masks[i] & ~masks[i - 1]))
            continue; /* this CPU has nothing new there */
        tn_kernels_select(&level, features & masks[i]);
        multiply(b, w, other, 0, 0, n);
        assert_memory_equal(other, y, (size_t)n * w->rows * sizeof(float));
    }
    b->worker.kernels = &best;
    tn_free_aligned(other);
}

/* y: the result of each input by itself; batches must give the same bits. */
static void check_batches(struct bench *b, const struct tn_matrix *w, const float *y)
{
    static const uint32_t numbers[] = {1, 4, 5, 8, MAX_INPUTS};
    float *batch = take((size_t)MAX_INPUTS * w->rows * sizeof(float));
    for (size_t i = 0; i < TN_COUNT_OF(numbers); i++) {
        const uint32_t n = numbers[i], first = n < MAX_INPUTS ? n : 0;
        const float *expected = y + (size_t)first * w->rows;
        multiply(b, w, batch, 0, first, n);
        assert_memory_equal(batch, expected, (size_t)n * w->rows * sizeof(float));
        check_adding(b, w, y, n);
        check_levels(b, w, y, n);
    }
    tn_free_aligned(batch);
}

static void check_matrix(struct tn_matrix *w)
{
    struct bench b;
    bench_init(&b, w);
    float *y = take((size_t)MAX_INPUTS * w->rows * sizeof(float));
    for (uint32_t t = 0; t < MAX_INPUTS; t++)
        multiply(&b, w, y + (size_t)t * w->rows, 0, t, 1);
    check_batches(&b, w, y);
    multiply(&b, w, y, 0, 0, MAX_INPUTS);
    check_values(&b, w, y);
    tn_free_aligned(y);
    bench_fini(&b);
}

static void every_format_multiplies(void **state)
{
    (void)state;
    static const struct {
        uint32_t rows, cols;
    } sizes[] = {{1, 1}, {17, 33}, {64, 128}, {257, 300}, {MAX_ROWS, MAX_COLS}};
    for (size_t i = 0; i < TN_COUNT_OF(formats); i++)
        for (uint32_t kind = 0; kind < 32; kind++)
            for (size_t k = 0; k < TN_COUNT_OF(sizes) && formats[i]->scale_kinds >> kind & 1; k++) {
                struct tn_matrix w;
                matrix_init(&w, formats[i], kind, sizes[k].rows, sizes[k].cols);
                for (int as = 0; as < TN_N_INPUTS_AS; as++) {
                    w.format = tn_format_with(formats[i], (enum tn_inputs_as)as);
                    check_matrix(&w);
                }
                matrix_fini(&w);
            }
}

/* Matrix 2 of a stack multiplies like a single matrix. */
static void check_stack(const struct tn_format *format, uint32_t scale_kind)
{
    struct tn_matrix one, stack, slice;
    matrix_init(&one, format, scale_kind, 70, 130);
    struct tern_file_tensor t = {.layout = one.layout, .scale_kind = scale_kind, .rows = one.rows,
                                 .cols = one.cols, .n_stacked = 3,
                                 .scale_group = tn_is_col_group(scale_kind) ? 128 : 0};
    assert_true(tn_tensor_bytes(&t, &t.bytes));
    t.scale_bytes = tn_tensor_scale_bytes(&t);
    const struct tern_file_tensor last = tn_tensor_slice(&t, 2);
    uint8_t *data = take((size_t)t.bytes), *scales = take((size_t)t.scale_bytes);
    memcpy(data + last.offset, one.data, (size_t)last.bytes);
    memcpy(scales + last.scale_offset, one.scales, (size_t)last.scale_bytes);
    stack = one;
    stack.data = data;
    stack.scales = scales;
    stack.tensor = &t;
    tn_matrix_slice(&slice, &stack, 2);
    struct bench b;
    bench_init(&b, &one);
    float *y = take(2 * one.rows * sizeof(float)), *y_slice = take(2 * one.rows * sizeof(float));
    multiply(&b, &one, y, 0, 0, 2);
    multiply(&b, &slice, y_slice, 0, 0, 2);
    assert_memory_equal(y, y_slice, 2 * one.rows * sizeof(float));
    bench_fini(&b);
    tn_free_aligned(y);
    tn_free_aligned(y_slice);
    matrix_fini(&one);
    matrix_fini(&stack);
}

static void every_format_stacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(formats); i++)
        for (uint32_t kind = 0; kind < 32; kind++)
            if (formats[i]->scale_kinds >> kind & 1)
                check_stack(formats[i], kind);
}

static void layouts_and_formats_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(formats); i++) {
        const struct tn_layout_spec *spec = tn_layout_find(formats[i]->layout);
        assert_non_null(spec);
        assert_int_equal(formats[i]->scale_kinds & ~spec->scale_kinds, 0);
        assert_true(formats[i]->unpack_row || spec->use != TN_USE_ANY);
        assert_true(formats[i]->n_few <= TN_FEW_TOKENS);
        assert_true(!formats[i]->mul_rows == !formats[i]->mul_rows_few);
    }
    for (uint32_t layout = 0; layout < TERN_N_LAYOUTS; layout++)
        for (uint32_t cols = 256; cols < 1024 && tn_is_blocks(layout); cols += 256)
            assert_int_equal(tn_layout_size(layout, 33, cols), tn_blocks_bytes(layout, 33, cols));
    for (uint32_t layout = 0; layout < TERN_N_LAYOUTS; layout++) {
        const struct tn_layout_spec *spec = tn_layout_find(layout);
        for (uint32_t kind = 0; kind < 32 && spec; kind++)
            assert_int_equal(tn_format_find(layout, kind) != NULL, spec->scale_kinds >> kind & 1);
    }
}

int main(void)
{
    struct tern_error err;
    tn_rng_seed(&rng, 27);
    tn_kernels_select(&best, tn_test_cpu_features());
    if (tn_team_create(&team, 1, NULL, &err) != TERN_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_and_formats_agree),
        cmocka_unit_test(every_format_multiplies),
        cmocka_unit_test(every_format_stacks),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    tn_team_free(team);
    return n_failed;
}

/* SPDX-License-Identifier: MIT
 *
 * The kernels of the head's bit planes: every row of kern_list.h that this CPU supports must return
 * the bits of ref, for every size around its blocks, with inputs and outputs that end at
 * inaccessible pages.  test_head_planes.c checks the results of ref.
 */
#include <stdio.h>
#include <string.h>

#include "kern/operands.h"

#include "base/bits.h"
#include "base/compiler.h"
#include "kern/bit_planes.h"

/* An input of n columns for the planes of the head, followed by zeros. */
static int16_t *take_plane_input(uint32_t n, enum fill fill, uint32_t t)
{
    const size_t n_x = tn_plane_row_bytes(n, 8);
    int16_t *x = take(n_x * sizeof *x, sizeof *x);
    fill_bytes(x, n * sizeof *x);
    memset(x + n, 0, (n_x - n) * sizeof *x);
    for (uint32_t i = 0; i < n; i++)
        x[i] = (int16_t)TN_MAX(TN_MIN((int)x[i], (int)TN_PLANE_X_MAX), -(int)TN_PLANE_X_MAX);
    for (uint32_t i = 0; i < n && fill == FILL_HUGE; i++)
        x[i] = (int16_t)TN_MIN(TN_PLANE_X_MAX, 0x7FFFFFFFu / (31u * n));
    /* One digit for most columns, as in a search, and the smallest values that need two. */
    for (uint32_t i = 0; i < n && fill == FILL_PLAIN; i++)
        x[i] = (int16_t)(i % 700 == 90 + t ? -129 : i % 700 == 400 - t ? 128 : x[i] % 129);
    return x;
}

/* n is the number of columns; rows in order and from a list, for each number of inputs. */
static void check_dot_plane(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const uint32_t bits = (uint32_t)(row->op[strlen("dot_u")] - '0');
    const size_t row_bytes[] = {tn_plane_row_bytes(n, bits == 5 ? 4 : bits),
                                tn_plane_row_bytes(n, 1)};
    const size_t n_dst = (TN_PLANE_MAX_X - 1) * 11 + 9;
    const int16_t *x[TN_PLANE_MAX_X];
    struct tn_plane_rows all = {.n_rows = 9, .cols = n}, listed = {.n_rows = 3, .cols = n};
    uint32_t *rows = take(3 * sizeof *rows, sizeof *rows);
    int32_t *got = take(n_dst * sizeof *got, sizeof *got);
    int32_t *want = take(n_dst * sizeof *want, sizeof *want);
    void *scratch = take(TN_PLANE_SCRATCH_BYTES, 64);
    /* The padding of a row is arbitrary; the zeros of x make it harmless. */
    for (uint32_t k = 0; k < (bits == 5 ? 2u : 1u); k++) {
        uint8_t *plane = take(9 * row_bytes[k], 1);
        fill_bytes(plane, 9 * row_bytes[k]);
        if (fill == FILL_HUGE)
            memset(plane, 0xFF, 9 * row_bytes[k]);
        all.plane[k] = all.next[k] = listed.plane[k] = plane;
    }
    for (uint32_t t = 0; t < TN_PLANE_MAX_X; t++)
        x[t] = take_plane_input(n, fill, t);
    rows[0] = 1, rows[1] = 4, rows[2] = 8;
    listed.rows = rows;
    tn_dot_plane_fn *ref = bits == 5   ? tn_dot_u5_i16_ref
                           : bits == 4 ? tn_dot_u4_i16_ref
                           : bits == 2 ? tn_dot_u2_i16_ref
                                       : tn_dot_u1_i16_ref;
    tn_dot_plane_fn *fn = (tn_dot_plane_fn *)row->fn;
    for (uint32_t n_x = 1; n_x <= TN_PLANE_MAX_X; n_x++) {
        memset(got, 0x5A, n_dst * sizeof *got);
        memset(want, 0x5A, n_dst * sizeof *want);
        ref(want, 11, &all, x, n_x, scratch);
        fn(got, 11, &all, x, n_x, scratch);
        check_bytes(row, got, want, n_dst * sizeof *want, SHAPE("%u columns, %u inputs", n, n_x));
        ref(want, 11, &listed, x, n_x, scratch);
        fn(got, 11, &listed, x, n_x, scratch);
        check_bytes(row, got, want, n_dst * sizeof *want,
                    SHAPE("%u columns, %u inputs, listed rows", n, n_x));
    }
}

/* With and without undetermined bits; also infinities and NaN, which no file that opens contains.
 */
static void check_bound_logits(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const struct tn_bound_terms terms = {.factor = 0.01, .add = -3.0, .base = 0.75, .slope = 0.125,
                                         .norm_x = 1.5, .lost = 0.01, .slack = 1e-4};
    const struct tn_bound_rows open = {take_filled(n, fill), take_filled(n, fill),
                                       take_filled(n, fill)};
    const struct tn_bound_rows closed = {open.scales, open.norms, NULL};
    const double *sums = take_f64(n, fill == FILL_SPECIAL ? FILL_PLAIN : fill);
    float *low = take(n * sizeof *low, sizeof *low), *high = take(n * sizeof *high, sizeof *high);
    float *want_low = take(n * sizeof *low, sizeof *low);
    float *want_high = take(n * sizeof *high, sizeof *high);
    for (uint32_t i = 0; i < 2; i++) {
        const struct tn_bound_rows *rows = i ? &closed : &open;
        tn_bound_logits_ref(want_low, want_high, sums, n, rows, &terms);
        ((tn_bound_logits_fn *)row->fn)(low, high, sums, n, rows, &terms);
        check_f32(row, low, want_low, n, SHAPE("n %u fill %d, low %u", n, (int)fill, i));
        check_f32(row, high, want_high, n, SHAPE("n %u fill %d, high %u", n, (int)fill, i));
    }
}

/* n is the number of columns: rows of any pattern and number of bits, in a whole block and in the
 * last one. */
static void check_unpack_planes(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const uint32_t n_rows = TERN_PLANE_BLOCK_ROWS + 2;
    const uint32_t n_planes = 1 + (uint32_t)fill % TN_MAX_PLANES;
    const size_t n_data = tn_bit_planes_block_bytes(n_rows, n, n_planes);
    uint8_t *data = take(n_data, 1), *forms = take(n_rows, 1);
    int8_t *offsets = take(n, 1), *got = take(n, 1), *want = take(n, 1);
    fill_bytes(data, n_data);
    fill_bytes(forms, n_rows);
    fill_bytes(offsets, n);
    const struct tn_bit_planes w = {.data = data, .offsets = offsets, .forms = forms,
                                    .rows = n_rows, .cols = n, .n_planes = n_planes};
    const uint32_t rows[] = {0, 1, 77, n_rows - 3, n_rows - 2, n_rows - 1};
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        tn_unpack_planes_ref(want, &w, rows[i]);
        ((tn_unpack_planes_fn *)row->fn)(got, &w, rows[i]);
        check_bytes(row, got, want, n, SHAPE("%u columns, %u planes", n, n_planes));
    }
}

static void test_dot_planes(void **state)
{
    (void)state;
    check_sizes("dot_u5_i16", check_dot_plane);
    check_sizes("dot_u4_i16", check_dot_plane);
    check_sizes("dot_u2_i16", check_dot_plane);
    check_sizes("dot_u1_i16", check_dot_plane);
}

static void test_bound_logits(void **state)
{
    (void)state;
    check_sizes("bound_logits", check_bound_logits);
}

static void test_unpack_planes(void **state)
{
    (void)state;
    check_sizes("unpack_planes", check_unpack_planes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dot_planes),
        cmocka_unit_test(test_bound_logits),
        cmocka_unit_test(test_unpack_planes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * The float kernels: every row of kern_list.h that this CPU supports must return the bits of ref,
 * for every size around its blocks, with inputs and outputs that end at inaccessible pages.
 * test_kern_formula.c checks the results of ref.
 *
 * "The same bits" for NaN only means NaN: sign and payload differ between architectures, and kern.h
 * does not promise them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/rng.h"
#include "kern/bit_planes.h"
#include "kern/exp.h"
#include "kern/guard.h"
#include "kern/tanh.h"

static uint32_t features;
static struct tn_rng rng;

/* ---- guarded buffers of a check ---- */

static struct {
    struct tn_guard guards[16];
    size_t n;
    enum tn_guard_side side;
} memory;

static void *take(size_t n_bytes, size_t align)
{
    assert_true(memory.n < TN_COUNT_OF(memory.guards));
    return tn_guard_new(&memory.guards[memory.n++], n_bytes, align, memory.side);
}

static float *take_f32(size_t n)
{
    return take(n * sizeof(float), sizeof(float));
}

/* Ends a check; the next one uses the other side of the guard. */
static void release_all(const struct tn_kernel_row *row)
{
    for (size_t i = 0; i < memory.n; i++) {
        if (!tn_guard_is_intact(&memory.guards[i]))
            fail_msg("%s %s wrote beyond a buffer of %zu bytes", row->op, row->isa,
                     memory.guards[i].n_bytes);
        tn_guard_free(&memory.guards[i]);
    }
    memory.n = 0;
    memory.side = memory.side == TN_GUARD_AT_END ? TN_GUARD_AT_START : TN_GUARD_AT_END;
}

/* ---- values ---- */

enum fill {
    FILL_PLAIN,   /* between -2 and 2 */
    FILL_WIDE,    /* 2^-40 ... 2^40 */
    FILL_TINY,    /* subnormal numbers and the smallest normal ones */
    FILL_HUGE,    /* near the largest: sums overflow */
    FILL_SPARSE,  /* mostly zeros of both signs */
    FILL_SPECIAL, /* some infinities and NaNs */
    N_FILLS
};

static float random_f32(enum fill fill)
{
    uint64_t bits = tn_rng_next(&rng);
    uint32_t sign = (uint32_t)(bits >> 63) << 31;
    uint32_t mantissa = (uint32_t)bits & 0x7FFFFFu;
    uint32_t pick = (uint32_t)(bits >> 32) & 0xFFFFu;
    switch (fill) {
    case FILL_PLAIN:
        return tn_rng_f32(&rng) * 4.0f - 2.0f;
    case FILL_WIDE:
        return tn_f32_from_bits(sign | (87 + pick % 80) << 23 | mantissa);
    case FILL_TINY:
        return tn_f32_from_bits(sign | (pick % 3) << 23 | mantissa);
    case FILL_HUGE:
        return tn_f32_from_bits(sign | (250 + pick % 5) << 23 | mantissa);
    case FILL_SPARSE:
        return pick % 4 ? tn_f32_from_bits(sign) : tn_f32_from_bits(sign | 127u << 23 | mantissa);
    default:
        if (pick % 16 == 0)
            return tn_f32_from_bits(sign | 0x7F800000u);
        return pick % 16 == 1 ? tn_f32_from_bits(0x7FC00000u) : random_f32(FILL_PLAIN);
    }
}

static void fill_f32(float *x, size_t n, enum fill fill)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_f32(fill);
}

static void fill_bytes(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)(tn_rng_next(&rng) >> 20);
}

/* f16 values: all finite ones, with FILL_SPECIAL also infinities. */
static void fill_f16(uint16_t *x, size_t n, enum fill fill)
{
    fill_bytes(x, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        if ((x[i] & 0x7C00u) == 0x7C00u)
            x[i] = fill == FILL_SPECIAL ? (uint16_t)(x[i] & 0xFC00u) : 0x3C00u;
}

static float *take_filled(size_t n, enum fill fill)
{
    float *x = take_f32(n);
    fill_f32(x, n, fill);
    return x;
}

static bool is_same(float a, float b)
{
    return tn_f32_to_bits(a) == tn_f32_to_bits(b) || (isnan(a) && isnan(b));
}

static void check_f32(const struct tn_kernel_row *row, const float *got, const float *want,
                      size_t n, const char *shape)
{
    for (size_t i = 0; i < n; i++)
        if (!is_same(got[i], want[i]))
            fail_msg("%s %s, %s: value %zu is %a, ref has %a", row->op, row->isa, shape, i,
                     (double)got[i], (double)want[i]);
}

static void check_bytes(const struct tn_kernel_row *row, const void *got, const void *want,
                        size_t n, const char *shape)
{
    for (size_t i = 0; i < n; i++)
        if (((const int8_t *)got)[i] != ((const int8_t *)want)[i])
            fail_msg("%s %s, %s: byte %zu is %d, ref has %d", row->op, row->isa, shape, i,
                     ((const int8_t *)got)[i], ((const int8_t *)want)[i]);
}

static char shape_text[120];

#define SHAPE(...) (snprintf(shape_text, sizeof shape_text, __VA_ARGS__), shape_text)

/* ---- a check per operation: fn against ref ---- */

typedef void check_fn(const struct tn_kernel_row *row, uint32_t n, enum fill fill);

static void check_quant_i8(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const float *x = take_filled(n, fill);
    int8_t *got = take(tn_kern_pad(n), 1);
    int8_t *want = take(tn_kern_pad(n), 1);
    float scale = ((tn_quant_i8_fn *)row->fn)(got, x, n);
    float want_scale = tn_quant_i8_ref(want, x, n);
    check_f32(row, &scale, &want_scale, 1, SHAPE("n %u fill %d, the scale", n, (int)fill));
    check_bytes(row, got, want, tn_kern_pad(n), SHAPE("n %u fill %d", n, (int)fill));
}

static void check_rms_norm_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const float *x = take_filled(n, fill);
    const float *w = take_filled(n, fill == FILL_SPECIAL ? FILL_WIDE : FILL_PLAIN);
    float *got = take_f32(n);
    float *want = take_f32(n);
    tn_rms_norm_f32_ref(want, x, w, n, 1e-5f);
    ((tn_rms_norm_f32_fn *)row->fn)(got, x, w, n, 1e-5f);
    check_f32(row, got, want, n, SHAPE("n %u fill %d", n, (int)fill));
    memcpy(got, x, n * sizeof *x);
    ((tn_rms_norm_f32_fn *)row->fn)(got, got, w, n, 1e-5f);
    check_f32(row, got, want, n, SHAPE("n %u fill %d, in place", n, (int)fill));
}

/* n values in blocks of the largest power of two that divides n, and of every smaller one. */
static void check_hadamard_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const float *x = take_filled(n, fill);
    float *got = take_f32(n);
    float *want = take_f32(n);
    for (uint32_t block = 2; n % block == 0; block *= 2) {
        memcpy(want, x, n * sizeof *x);
        memcpy(got, x, n * sizeof *x);
        tn_hadamard_f32_ref(want, n, block);
        ((tn_hadamard_f32_fn *)row->fn)(got, n, block);
        check_f32(row, got, want, n, SHAPE("n %u block %u fill %d", n, block, (int)fill));
    }
}

static void check_rms_norm_quant(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const float *x = take_filled(n, fill);
    const float *w = take_filled(n, FILL_PLAIN);
    int8_t *got = take(tn_kern_pad(n), 1);
    int8_t *want = take(tn_kern_pad(n), 1);
    /* Without eps a row of zeros gives 0 * infinity. */
    float eps = n % 2 ? 1e-6f : 0.0f;
    float want_scale = tn_rms_norm_quant_ref(want, x, w, n, eps);
    float scale = ((tn_rms_norm_quant_fn *)row->fn)(got, x, w, n, eps);
    check_f32(row, &scale, &want_scale, 1, SHAPE("n %u fill %d, the scale", n, (int)fill));
    check_bytes(row, got, want, tn_kern_pad(n), SHAPE("n %u fill %d", n, (int)fill));
}

static int32_t *take_sums(uint32_t n)
{
    int32_t *sum = take(n * sizeof(int32_t), sizeof(int32_t));
    fill_bytes(sum, n * sizeof *sum);
    return sum;
}

static void check_scale_i32_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const int32_t *sum = take_sums(n);
    float *got = take_f32(n);
    float *want = take_f32(n);
    float scale = random_f32(fill);
    tn_scale_i32_f32_ref(want, sum, n, scale);
    ((tn_scale_i32_f32_fn *)row->fn)(got, sum, n, scale);
    check_f32(row, got, want, n, SHAPE("n %u fill %d", n, (int)fill));
    memcpy(got, sum, n * sizeof *sum);
    ((tn_scale_i32_f32_fn *)row->fn)(got, (int32_t *)got, n, scale);
    check_f32(row, got, want, n, SHAPE("n %u fill %d, dst is sum", n, (int)fill));
}

static void check_add_i32_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const int32_t *sum = take_sums(n);
    float *want = take_filled(n, fill);
    float *got = take_f32(n);
    memcpy(got, want, n * sizeof *got);
    float scale = random_f32(fill);
    tn_add_i32_f32_ref(want, sum, n, scale);
    ((tn_add_i32_f32_fn *)row->fn)(got, sum, n, scale);
    check_f32(row, got, want, n, SHAPE("n %u fill %d", n, (int)fill));
}

typedef tn_relu2_mul_f32_fn gate_fn; /* also for silu and gelu */

static void check_gate(const struct tn_kernel_row *row, gate_fn *ref, uint32_t n, enum fill fill)
{
    /* Where exp begins to overflow, and where its results become subnormal. */
    const float edges[] = {-TN_EXP_MAX, nextafterf(-TN_EXP_MAX, -INFINITY), -TN_EXP_MIN,
                           nextafterf(-TN_EXP_MIN, INFINITY)};
    float *gate = take_filled(n, fill);
    float *up = take_filled(n, fill);
    float *got = take_f32(n);
    float *want = take_f32(n);
    for (uint32_t i = 0; i < TN_MIN(n / 8, TN_COUNT_OF(edges)); i++)
        gate[i] = edges[i];
    ref(want, gate, up, n);
    gate_fn *fn = (gate_fn *)row->fn;
    fn(got, gate, up, n);
    check_f32(row, got, want, n, SHAPE("n %u fill %d", n, (int)fill));
    memcpy(got, up, n * sizeof *up);
    fn(got, gate, got, n);
    check_f32(row, got, want, n, SHAPE("n %u fill %d, dst is up", n, (int)fill));
    fn(gate, gate, up, n);
    check_f32(row, gate, want, n, SHAPE("n %u fill %d, dst is gate", n, (int)fill));
}

static void check_relu2_mul_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    check_gate(row, tn_relu2_mul_f32_ref, n, fill);
}

static void check_silu_mul_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    check_gate(row, tn_silu_mul_f32_ref, n, fill);
}

static void check_gelu_mul_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    check_gate(row, tn_gelu_mul_f32_ref, n, fill);
}

static void check_cap_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    /* Both sides of the limit of the polynomial, and values at which exp overflows. */
    const float cap = 8.0f, limit = cap * TN_TANH_SMALL;
    const float edges[] = {limit, nextafterf(limit, 0), -limit, nextafterf(-limit, 0),
                           cap * TN_EXP_MAX / 2, -cap * TN_EXP_MAX};
    float *want = take_filled(n, fill);
    float *got = take_f32(n);
    for (uint32_t i = 0; i < TN_MIN(n / 8, TN_COUNT_OF(edges)); i++)
        want[i] = edges[i];
    memcpy(got, want, n * sizeof *got);
    tn_cap_f32_ref(want, n, cap);
    ((tn_cap_f32_fn *)row->fn)(got, n, cap);
    check_f32(row, got, want, n, SHAPE("n %u fill %d", n, (int)fill));
}

/* n is half of a head. */
static void check_rope_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const uint32_t n_heads = 1 + n % 4, stride = 2 * n + n % 3 * 5;
    const size_t n_floats = (size_t)(n_heads - 1) * stride + 2 * n;
    const float *cos = take_filled(n, FILL_PLAIN);
    const float *sin = take_filled(n, FILL_PLAIN);
    float *want = take_filled(n_floats, fill);
    float *got = take_f32(n_floats);
    memcpy(got, want, n_floats * sizeof *got);
    tn_rope_f32_ref(want, cos, sin, n_heads, 2 * n, stride);
    ((tn_rope_f32_fn *)row->fn)(got, cos, sin, n_heads, 2 * n, stride);
    check_f32(row, got, want, n_floats, SHAPE("half %u heads %u", n, n_heads));
}

/* n is the number of columns. */
static void check_gemv(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const bool is_q8 = !strcmp(row->op, "gemv_q8_f32"), is_f32 = !strcmp(row->op, "gemv_f32_f32");
    const size_t value_bytes = is_q8 ? 1 : is_f32 ? 4 : 2;
    const uint32_t n_rows = 1 + (uint32_t)(tn_rng_next(&rng) % 9);
    const uint32_t n_tokens = 1 + (uint32_t)(tn_rng_next(&rng) % 9);
    const size_t x_stride = n + n % 3, dst_stride = n_rows + n % 2;
    const size_t n_x = (n_tokens - 1) * x_stride + n;
    const size_t n_dst = (n_tokens - 1) * dst_stride + n_rows;
    const size_t w_bytes = (size_t)n_rows * n * value_bytes;
    const float *x = take_filled(n_x, fill);
    const float *scales = take_filled(n_rows, FILL_WIDE);
    void *w = is_f32 ? take_filled(w_bytes / 4, fill) : take(w_bytes, value_bytes);
    float *got = take_f32(n_dst);
    float *want = take_f32(n_dst);
    if (!is_f32)
        fill_bytes(w, w_bytes);
    if (is_f32) {
        tn_gemv_f32_f32_ref(want, dst_stride, w, n_rows, n, x, x_stride, n_tokens);
        ((tn_gemv_f32_f32_fn *)row->fn)(got, dst_stride, w, n_rows, n, x, x_stride, n_tokens);
    } else if (is_q8) {
        tn_gemv_q8_f32_ref(want, dst_stride, w, scales, n_rows, n, x, x_stride, n_tokens);
        ((tn_gemv_q8_f32_fn *)row->fn)(got, dst_stride, w, scales, n_rows, n, x, x_stride,
                                       n_tokens);
    } else {
        if (!strcmp(row->op, "gemv_f16_f32")) {
            fill_f16(w, w_bytes / 2, fill);
            tn_gemv_f16_f32_ref(want, dst_stride, w, n_rows, n, x, x_stride, n_tokens);
        } else {
            tn_gemv_bf16_f32_ref(want, dst_stride, w, n_rows, n, x, x_stride, n_tokens);
        }
        ((tn_gemv_f16_f32_fn *)row->fn)(got, dst_stride, w, n_rows, n, x, x_stride, n_tokens);
    }
    check_f32(row, got, want, n_dst, SHAPE("%u x %u, %u tokens", n_rows, n, n_tokens));
}

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

static double *take_f64(uint32_t n, enum fill fill)
{
    double *x = take(n * sizeof *x, sizeof *x);
    for (uint32_t i = 0; i < n; i++)
        x[i] = (double)random_f32(fill);
    return x;
}

static void check_add_i32_f64(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    double *got = take_f64(n, fill), *want = take(n * sizeof *want, sizeof *want);
    int32_t *src = take(n * sizeof *src, sizeof *src);
    memcpy(want, got, n * sizeof *want);
    fill_bytes(src, n * sizeof *src);
    for (uint32_t i = 0; i < n && fill == FILL_SPECIAL; i++) /* integers, as in a search */
        want[i] = got[i] = (double)(src[i] % 1000);
    tn_add_i32_f64_ref(want, src, n, 16.0);
    ((tn_add_i32_f64_fn *)row->fn)(got, src, n, 16.0);
    check_bytes(row, got, want, n * sizeof *want, SHAPE("n %u fill %d", n, (int)fill));
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
    float *low = take_f32(n), *high = take_f32(n), *want_low = take_f32(n),
          *want_high = take_f32(n);
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

struct cache {
    uint32_t dim;
    uint32_t n_pos;
    uint32_t n_q;
    void *rows;
    uint16_t *scales;
};

/* A cache of the row's type; n_pos and n_q around the tiles, sometimes a whole block; n / 16 + 1
 * sixteens. */
static struct cache take_cache(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const char *type = strrchr(row->op, '_') + 1;
    struct cache c = {.dim = 16 * (1 + n / 16)};
    c.n_pos = (uint32_t)(tn_rng_next(&rng) % (n % 8 ? 12 : n < 70 ? 400 : 70));
    c.n_pos = TN_MIN(c.n_pos, TN_KV_BLOCK);
    c.n_q = 1 + (uint32_t)(tn_rng_next(&rng) % 9);
    size_t n_values = (size_t)c.n_pos * c.dim;
    if (!strcmp(type, "f32")) {
        c.rows = take_filled(n_values, fill);
    } else if (!strcmp(type, "f16")) {
        c.rows = take(n_values * 2, 2);
        fill_f16(c.rows, n_values, fill);
    } else {
        size_t n_scales = (size_t)TN_KV_BLOCK * ((c.dim + 63) / 64);
        n_values = (size_t)TN_KV_BLOCK * c.dim;
        c.rows = take(n_values, 1);
        fill_bytes(c.rows, n_values);
        c.scales = take(n_scales * 2, 2);
        fill_f16(c.scales, n_scales, fill);
    }
    return c;
}

static void check_attn_qk(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    struct cache c = take_cache(row, n, fill);
    tn_attn_qk_fn *ref =
        !strcmp(row->op, "attn_qk_f16") ? tn_attn_qk_f16_ref : tn_attn_qk_f32_ref;
    const size_t s_stride = c.n_pos + n % 3;
    const size_t n_s = (c.n_q - 1) * s_stride + c.n_pos;
    const float *q = take_filled((size_t)c.n_q * c.dim, fill);
    float *got = take_f32(n_s);
    float *want = take_f32(n_s);
    ref(want, s_stride, q, c.n_q, c.rows, c.n_pos, c.dim, 0.088f);
    ((tn_attn_qk_fn *)row->fn)(got, s_stride, q, c.n_q, c.rows, c.n_pos, c.dim, 0.088f);
    check_f32(row, got, want, n_s, SHAPE("dim %u, %u heads, %u positions", c.dim, c.n_q, c.n_pos));
}

static void check_attn_qk_q8(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    struct cache c = take_cache(row, n, fill);
    const size_t s_stride = c.n_pos + n % 3;
    const size_t n_s = (c.n_q - 1) * s_stride + c.n_pos;
    const size_t n_scales = (size_t)c.n_q * ((c.dim + 63) / 64);
    int8_t *q = take((size_t)c.n_q * c.dim, 1);
    uint16_t *q_scales = take(n_scales * 2, 2);
    fill_bytes(q, (size_t)c.n_q * c.dim);
    fill_f16(q_scales, n_scales, fill);
    float *got = take_f32(n_s);
    float *want = take_f32(n_s);
    tn_attn_qk_q8_ref(want, s_stride, q, q_scales, c.n_q, c.rows, c.scales, c.n_pos, c.dim, 0.088f);
    ((tn_attn_qk_q8_fn *)row->fn)(got, s_stride, q, q_scales, c.n_q, c.rows, c.scales, c.n_pos,
                                  c.dim, 0.088f);
    check_f32(row, got, want, n_s, SHAPE("dim %u, %u heads, %u positions", c.dim, c.n_q, c.n_pos));
}

static void check_attn_pv(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    struct cache c = take_cache(row, n, fill);
    tn_attn_pv_fn *ref =
        !strcmp(row->op, "attn_pv_f16") ? tn_attn_pv_f16_ref : tn_attn_pv_f32_ref;
    const size_t p_stride = c.n_pos + n % 3;
    const size_t n_o = (size_t)c.n_q * c.dim;
    const float *p = take_filled((c.n_q - 1) * p_stride + c.n_pos, fill);
    float *got = take_f32(n_o);
    float *want = take_f32(n_o);
    if (c.scales) {
        const void *next = n % 2 ? c.rows : NULL;
        tn_attn_pv_q8_ref(want, p, p_stride, c.n_q, c.rows, c.scales, c.n_pos, c.dim, next);
        ((tn_attn_pv_q8_fn *)row->fn)(got, p, p_stride, c.n_q, c.rows, c.scales, c.n_pos, c.dim,
                                      next);
    } else {
        ref(want, p, p_stride, c.n_q, c.rows, c.n_pos, c.dim);
        ((tn_attn_pv_fn *)row->fn)(got, p, p_stride, c.n_q, c.rows, c.n_pos, c.dim);
    }
    check_f32(row, got, want, n_o, SHAPE("dim %u, %u heads, %u positions", c.dim, c.n_q, c.n_pos));
}

static void check_max_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    float *x = take_filled(n, fill == FILL_SPECIAL ? FILL_SPARSE : fill);
    if (fill == FILL_SPECIAL)
        for (uint32_t i = 0; i < n; i++)
            x[i] = i % 5 ? -INFINITY : -0.0f - (float)(i % 2);
    float want = tn_max_f32_ref(x, n);
    float got = ((tn_max_f32_fn *)row->fn)(x, n);
    check_f32(row, &got, &want, 1, SHAPE("n %u fill %d", n, (int)fill));
}

static void check_exp_sum_f32(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    float *want = take_filled(n, fill);
    if (fill == FILL_WIDE)
        for (uint32_t i = 0; i < n; i++)
            want[i] = (tn_rng_f32(&rng) - 1.0f) * 110.0f;
    float *got = take_f32(n);
    memcpy(got, want, n * sizeof *got);
    float max = fill == FILL_SPECIAL ? 0.5f : tn_max_f32_ref(want, n);
    float want_sum = tn_exp_sum_f32_ref(want, n, max);
    float sum = ((tn_exp_sum_f32_fn *)row->fn)(got, n, max);
    check_f32(row, got, want, n, SHAPE("n %u fill %d", n, (int)fill));
    check_f32(row, &sum, &want_sum, 1, SHAPE("n %u fill %d, the sum", n, (int)fill));
}

/* A list that ends at an inaccessible page. */
static void check_list(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    uint32_t *got = take(n * sizeof *got, sizeof *got);
    uint32_t *want = take(n * sizeof *want, sizeof *want);
    uint32_t n_got, n_want;
    if (!strcmp(row->op, "list_positive_f32")) {
        float *x = take_filled(n, fill);
        for (uint32_t i = 0; i < n; i += 3)
            x[i] = i % 2 ? -0.0f : 0.0f;
        float *same = take(n * sizeof *same, sizeof *same);
        memcpy(same, x, n * sizeof *same);
        n_want = tn_list_positive_f32_ref(want, same, n);
        n_got = ((tn_list_positive_f32_fn *)row->fn)(got, x, n);
        check_f32(row, x, same, n, SHAPE("n %u fill %d, remaining values", n, (int)fill));
    } else {
        int8_t *x = take(n, 1);
        fill_bytes(x, n);
        for (uint32_t i = 0; i < n && fill != FILL_WIDE; i++)
            x[i] = (int8_t)(x[i] % 2); /* half of them are zero */
        n_want = tn_list_nonzero_i8_ref(want, x, n);
        n_got = ((tn_list_nonzero_i8_fn *)row->fn)(got, x, n);
    }
    check_bytes(row, &n_got, &n_want, sizeof n_got, SHAPE("n %u fill %d, how many", n, (int)fill));
    check_bytes(row, got, want, n_want * sizeof *want, SHAPE("n %u fill %d", n, (int)fill));
}

static void check_kv_store(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    const uint32_t dim = 16 * (1 + n / 16), n_scales = (dim + 63) / 64;
    const char *type = strrchr(row->op, '_') + 1;
    tn_kv_store_fn *ref = !strcmp(type, "f32")   ? tn_kv_store_f32_ref
                          : !strcmp(type, "f16") ? tn_kv_store_f16_ref
                                                 : tn_kv_store_q8_ref;
    const size_t value_bytes = !strcmp(type, "f32") ? 4 : !strcmp(type, "f16") ? 2 : 1;
    const float *x = take_filled(dim, fill);
    void *got = take(dim * value_bytes, value_bytes);
    void *want = take(dim * value_bytes, value_bytes);
    uint16_t *scales = take(n_scales * sizeof *scales, sizeof *scales);
    uint16_t *want_scales = take(n_scales * sizeof *scales, sizeof *scales);
    ref(want, want_scales, x, dim);
    ((tn_kv_store_fn *)row->fn)(got, scales, x, dim);
    check_bytes(row, got, want, dim * value_bytes, SHAPE("dim %u fill %d", dim, (int)fill));
    check_bytes(row, scales, want_scales, n_scales * sizeof *scales, SHAPE("dim %u, scales", dim));
}

static const struct op {
    const char *name;
    check_fn *check;
} ops[] = {
    {"quant_i8", check_quant_i8},
    {"rms_norm_f32", check_rms_norm_f32},
    {"hadamard_f32", check_hadamard_f32},
    {"rms_norm_quant", check_rms_norm_quant},
    {"scale_i32_f32", check_scale_i32_f32},
    {"add_i32_f32", check_add_i32_f32},
    {"relu2_mul_f32", check_relu2_mul_f32},
    {"silu_mul_f32", check_silu_mul_f32},
    {"gelu_mul_f32", check_gelu_mul_f32},
    {"cap_f32", check_cap_f32},
    {"rope_f32", check_rope_f32},
    {"list_positive_f32", check_list},
    {"list_nonzero_i8", check_list},
    {"gemv_q8_f32", check_gemv},
    {"gemv_f32_f32", check_gemv},
    {"gemv_f16_f32", check_gemv},
    {"gemv_bf16_f32", check_gemv},
    {"dot_u5_i16", check_dot_plane},
    {"dot_u4_i16", check_dot_plane},
    {"dot_u2_i16", check_dot_plane},
    {"dot_u1_i16", check_dot_plane},
    {"add_i32_f64", check_add_i32_f64},
    {"bound_logits", check_bound_logits},
    {"unpack_planes", check_unpack_planes},
    {"attn_qk_f32", check_attn_qk},
    {"attn_qk_f16", check_attn_qk},
    {"attn_qk_q8", check_attn_qk_q8},
    {"attn_pv_f32", check_attn_pv},
    {"attn_pv_f16", check_attn_pv},
    {"attn_pv_q8", check_attn_pv},
    {"max_f32", check_max_f32},
    {"exp_sum_f32", check_exp_sum_f32},
    {"kv_store_f32", check_kv_store},
    {"kv_store_f16", check_kv_store},
    {"kv_store_q8", check_kv_store},
};

static void test_like_ref(void **state)
{
    const struct op *op = *state;
    static const uint32_t large[] = {127, 128, 129, 143,  144,  191,  192,  255,
                                     256, 257, 500, 1000, 2560, 4095, 4096, 6912};
    uint32_t n_checked = 0;
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        const struct tn_kernel_row *row = &tn_kernel_rows[i];
        if (strcmp(row->op, op->name) || (row->needs & ~features))
            continue;
        for (int fill = 0; fill < N_FILLS; fill++) {
            for (uint32_t n = 1; n <= 70 + TN_COUNT_OF(large); n++) {
                op->check(row, n <= 70 ? n : large[n - 71], (enum fill)fill);
                release_all(row);
            }
        }
        n_checked++;
    }
    assert_true(n_checked >= 1);
}

/* Every operation has a check, here, in test_kern_ternary.c, test_kern_x16.c or test_kern_blocks.c.
 */
static void test_no_row_is_forgotten(void **state)
{
    (void)state;
    static const char *const ternary[] = {"lut_t2",     "gemv_t2_i8", "prep_r2",    "gemv_r2_i8",
                                          "few_r2_i8",  "gemv_c2_i8", "sum_i8",     "unpack_t5",
                                          "gemm_t2_i8",
                                          "gemm_r2_i8", "gemm_c2_i8"};
    static const char *const x16[] = {"quant_x16", "gemv_t2_x16", "gemm_t2_x16", "gemv_t2_f32",
                                      "quant_x8",  "gemv_t2_x8",  "gemm_t2_x8",
                                      "add_scaled_f32"};
    static const char *const blocks[] = {"gemv_blocks_x8", "gemm_blocks_x8", "gemv_blocks_x16",
                                         "gemm_blocks_x16", "gemv_blocks_f32"};
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        bool is_known = false;
        for (size_t k = 0; k < TN_COUNT_OF(ternary); k++)
            is_known |= !strcmp(ternary[k], tn_kernel_rows[i].op);
        for (size_t k = 0; k < TN_COUNT_OF(x16); k++)
            is_known |= !strcmp(x16[k], tn_kernel_rows[i].op);
        for (size_t k = 0; k < TN_COUNT_OF(blocks); k++)
            is_known |= !strcmp(blocks[k], tn_kernel_rows[i].op);
        for (size_t k = 0; k < TN_COUNT_OF(ops); k++)
            is_known |= !strcmp(ops[k].name, tn_kernel_rows[i].op);
        if (!is_known)
            fail_msg("%s has no kernel test", tn_kernel_rows[i].op);
    }
}

int main(void)
{
    features = tn_test_cpu_features();
    tn_rng_seed(&rng, 20);
    struct CMUnitTest tests[TN_COUNT_OF(ops) + 1] = {
        cmocka_unit_test(test_no_row_is_forgotten),
    };
    for (size_t i = 0; i < TN_COUNT_OF(ops); i++)
        tests[1 + i] = (struct CMUnitTest){.name = ops[i].name,
                                           .test_func = test_like_ref,
                                           .initial_state = (void *)(uintptr_t)&ops[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

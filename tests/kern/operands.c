/* SPDX-License-Identifier: MIT
 *
 * Guarded and filled operands for the kernel tests, and the sizes that test_kern_calls.c and
 * test_kern_head.c try: each to 70, then those around the blocks of kernels.
 */
#include "kern/operands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/rng.h"

static struct tn_rng rng;

/* ---- guarded buffers ---- */

static struct {
    struct tn_guard guards[16];
    size_t n;
    enum tn_guard_side side;
} memory;

void *take(size_t n_bytes, size_t align)
{
    assert_true(memory.n < TN_COUNT_OF(memory.guards));
    return tn_guard_new(&memory.guards[memory.n++], n_bytes, align, memory.side);
}

void release_all(const struct tn_kernel_row *row)
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

uint32_t random_u32(void)
{
    return (uint32_t)tn_rng_next(&rng);
}

float random_f32(enum fill fill)
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

void fill_f32(float *x, size_t n, enum fill fill)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_f32(fill);
}

void fill_bytes(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)(tn_rng_next(&rng) >> 20);
}

void fill_f16(uint16_t *x, size_t n, enum fill fill)
{
    fill_bytes(x, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        if ((x[i] & 0x7C00u) == 0x7C00u)
            x[i] = fill == FILL_SPECIAL ? (uint16_t)(x[i] & 0xFC00u) : 0x3C00u;
}

float *take_filled(size_t n, enum fill fill)
{
    float *x = take(n * sizeof *x, sizeof *x);
    fill_f32(x, n, fill);
    return x;
}

double *take_f64(size_t n, enum fill fill)
{
    double *x = take(n * sizeof *x, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)random_f32(fill);
    return x;
}

/* ---- comparing ---- */

static bool is_same(float a, float b)
{
    return tn_f32_to_bits(a) == tn_f32_to_bits(b) || (isnan(a) && isnan(b));
}

void check_f32(const struct tn_kernel_row *row, const float *got, const float *want,
                      size_t n, const char *shape)
{
    for (size_t i = 0; i < n; i++)
        if (!is_same(got[i], want[i]))
            fail_msg("%s %s, %s: value %zu is %a, ref has %a", row->op, row->isa, shape, i,
                     (double)got[i], (double)want[i]);
}

void check_bytes(const struct tn_kernel_row *row, const void *got, const void *want,
                        size_t n, const char *shape)
{
    for (size_t i = 0; i < n; i++)
        if (((const int8_t *)got)[i] != ((const int8_t *)want)[i])
            fail_msg("%s %s, %s: byte %zu is %d, ref has %d", row->op, row->isa, shape, i,
                     ((const int8_t *)got)[i], ((const int8_t *)want)[i]);
}

char shape_text[120];

/* ---- sizes ---- */

void check_sizes(const char *op, check_fn *check)
{
    static const uint32_t large[] = {127, 128, 129, 143,  144,  191,  192,  255,
                                     256, 257, 500, 1000, 2560, 4095, 4096, 6912};
    const uint32_t features = tn_test_cpu_features();
    uint32_t n_checked = 0;
    tn_rng_seed(&rng, 20);
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        const struct tn_kernel_row *row = &tn_kernel_rows[i];
        if (strcmp(row->op, op) || (row->needs & ~features))
            continue;
        for (int fill = 0; fill < N_FILLS; fill++) {
            for (uint32_t n = 1; n <= 70 + TN_COUNT_OF(large); n++) {
                check(row, n <= 70 ? n : large[n - 71], (enum fill)fill);
                release_all(row);
            }
        }
        n_checked++;
    }
    assert_true(n_checked >= 1);
}

/* SPDX-License-Identifier: MIT
 *
 * Inputs rounded to 16 and 8 bits, as the tests of rounding and of products read them (kern.h
 * specifies the bytes), and floats that rounding or sums get wrong.
 */
#ifndef TEST_ROUNDED_INPUTS_H
#define TEST_ROUNDED_INPUTS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kern/guard.h"
#include "kern/kern.h"

enum fill {
    FILL_RANDOM,
    FILL_WIDE,      /* inputs of many magnitudes, also across blocks, and scales of both signs */
    FILL_LARGEST,   /* weights +1, every input rounds to 32639: the largest sums */
    FILL_SMALLEST,  /* weights +1, inputs -32639 */
    FILL_LOW_DIGIT, /* weights +1, low digits -128: their smallest sums */
    N_FILLS
};

static inline float random_input(struct tn_rng *rng, enum fill fill, uint32_t col)
{
    const float v = tn_rng_f32(rng) * 2.0f - 1.0f;
    switch (fill) {
    case FILL_RANDOM:
        return v;
    case FILL_WIDE:
        return v * expf(v * 12.0f) * (col / 128 % 3 ? 1.0f : 1e-5f);
    case FILL_LARGEST:
        return 3.0f;
    case FILL_SMALLEST:
        return -3.0f;
    default: /* 32639 makes the factor 1 */
        return col % 128 == 0 ? 32639.0f : -128.0f;
    }
}

/* Value c of an x16 vector of `cols` values, and the factor of its block. */
static inline int32_t q_at(const uint8_t *x16, uint32_t cols, uint32_t c)
{
    return (int8_t)x16[c] * 256 + (int8_t)x16[tn_x16_half(cols) + c];
}

static inline float factor_at(const uint8_t *x16, uint32_t cols, uint32_t c)
{
    float f;
    memcpy(&f, x16 + tn_kern_pad(cols) + c / 128 * sizeof f, sizeof f);
    return f;
}

/* The factor of value c of an x8 vector. */
static inline float factor8_at(const uint8_t *x8, uint32_t cols, uint32_t c)
{
    float f;
    memcpy(&f, x8 + tn_kern_pad(cols) + c / 32 * sizeof f, sizeof f);
    return f;
}

/* Whether this CPU can run the kernel, and it is one of the operation. */
static inline bool runs_here(const struct tn_kernel_row *row, const char *op)
{
    return !strcmp(row->op, op) && !(row->needs & ~tn_test_cpu_features());
}

static inline void check_intact(const struct tn_kernel_row *row, const struct tn_guard *g)
{
    if (!tn_guard_is_intact(g))
        fail_msg("%s_%s wrote beyond a buffer of %zu bytes", row->op, row->isa, g->n_bytes);
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * Operands of kernel tests: buffers between inaccessible pages, filled with values that kernels get
 * wrong, and comparisons with the results of ref.
 *
 * "The same bits" for NaN only means NaN: sign and payload differ between architectures, and kern.h
 * does not promise them.
 */
#ifndef TN_TEST_OPERANDS_H
#define TN_TEST_OPERANDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kern/guard.h"
#include "kern/kern.h"

enum fill {
    FILL_PLAIN,   /* between -2 and 2 */
    FILL_WIDE,    /* 2^-40 ... 2^40 */
    FILL_TINY,    /* subnormal numbers and the smallest normal ones */
    FILL_HUGE,    /* near the largest: sums overflow */
    FILL_SPARSE,  /* mostly zeros of both signs */
    FILL_SPECIAL, /* some infinities and NaNs */
    N_FILLS
};

/* A buffer of a check. */
void *take(size_t n_bytes, size_t align);
float *take_filled(size_t n, enum fill fill);
double *take_f64(size_t n, enum fill fill);
/* Ends a check; the next one uses the other side of the guard. */
void release_all(const struct tn_kernel_row *row);

uint32_t random_u32(void);
float random_f32(enum fill fill);
void fill_f32(float *x, size_t n, enum fill fill);
/* f16 values: all finite ones, with FILL_SPECIAL also infinities. */
void fill_f16(uint16_t *x, size_t n, enum fill fill);
void fill_bytes(void *p, size_t n);

/* Fail with the first value that differs, named by `shape`. */
void check_f32(const struct tn_kernel_row *row, const float *got, const float *want, size_t n,
               const char *shape);
void check_bytes(const struct tn_kernel_row *row, const void *got, const void *want, size_t n,
                 const char *shape);

extern char shape_text[120];
#define SHAPE(...) (snprintf(shape_text, sizeof shape_text, __VA_ARGS__), shape_text)

typedef void check_fn(const struct tn_kernel_row *row, uint32_t n, enum fill fill);

/* Calls the check with each kernel of an operation that this CPU supports, for every n around the
 * blocks of kernels and every fill. */
void check_sizes(const char *op, check_fn *check);

#endif

/* SPDX-License-Identifier: MIT
 *
 * One view of the two input formats of matrices in blocks, which quant_x8 and quant_x16 write
 * (kern.h).  Private to blocks_<isa>.c.
 */
#ifndef TN_BLOCKS_X_H
#define TN_BLOCKS_X_H

#include "kern/kern.h"

/* Bits per integer of an input. */
enum blocks_form { FORM_8 = 8, FORM_16 = 16 };

/* An input from a column on, which is a multiple of 256. */
struct blocks_x {
    const int8_t *digit[2]; /* 8 bits: the value; 16 bits: high byte, low byte */
    const float *factors;   /* one per TN_X8_BLOCK or TN_X16_BLOCK columns */
    const int32_t *minus_32, *minus_16; /* minus the sums of 32 and 16 columns */
};

static TN_ALWAYS_INLINE size_t blocks_x_bytes(const enum blocks_form form, uint32_t cols)
{
    return form == FORM_8 ? TN_X8_BYTES(cols) : TN_X16_BYTES(cols);
}

static TN_ALWAYS_INLINE struct blocks_x blocks_x_of(const enum blocks_form form, const void *memory,
                                                    uint32_t cols, uint32_t col)
{
    const uint8_t *first = memory, *second = first + (form == FORM_16 ? tn_x16_half(cols) : 0);
    const uint32_t padded = tn_kern_pad(cols);
    const size_t at_32 = form == FORM_8 ? padded / 8 * 9 : padded / 32 * 33;
    const size_t at_16 = form == FORM_8 ? padded / 8 * 10 : padded / 16 * 17;
    return (struct blocks_x){
        .digit = {(const int8_t *)first + col, (const int8_t *)second + col},
        .factors = (const float *)(const void *)(first + padded) +
                   col / (form == FORM_8 ? TN_X8_BLOCK : TN_X16_BLOCK),
        .minus_32 = (const int32_t *)(const void *)(first + at_32) + col / 32,
        .minus_16 = (const int32_t *)(const void *)(second + at_16) + col / 16,
    };
}

/* The factor of a cell of 32 columns. */
static TN_ALWAYS_INLINE float blocks_x_factor(const enum blocks_form form, const struct blocks_x *x,
                                              uint32_t i_cell)
{
    return x->factors[form == FORM_8 ? i_cell : i_cell / (TN_X16_BLOCK / TN_CELL_COLS)];
}

#endif

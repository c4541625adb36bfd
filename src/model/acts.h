/* SPDX-License-Identifier: MIT
 *
 * The input of linear layers, and the forms in which products take it.  A form
 * is made when the first product asks for it, once for all that share the input.
 */
#ifndef TN_ACTS_H
#define TN_ACTS_H

#include "model/format.h"
#include "par/team.h"

struct tn_acts {
    /* The input: rows of x, or their RMSNorms with the weights `norm` when that is not NULL. */
    const float *x;    /* [n][cols] */
    const float *norm; /* [cols] */
    float eps;
    const struct tn_rotation *rotation; /* of these, before any form is made; NULL: none */
    uint32_t n; /* tokens */
    uint32_t cols;
    uint64_t number; /* of this input; look-up tables made of it carry the number */
    uint32_t made;   /* bit i: form i is there */
    /* Forms, in scratch memory; workspace_size.h has the sizes. */
    const float *f32;  /* [n][f32_stride] */
    size_t f32_stride;
    float *f32_own;    /* where they are made, unless x can be taken as it is */
    int8_t *i8;        /* [n][i8_stride] zero-padded */
    size_t i8_stride;
    float *i8_scale;   /* [n] factor that undoes the rounding */
    int32_t *i8_sum;   /* [n] sum_i8 */
    void *prep;        /* TN_PREP_R2_BYTES, of one token */
    void *x16;         /* [n] TN_X16_BYTES each, without gaps */
    void *x8;          /* [n] TN_X8_BYTES each, without gaps */
};

/* A new input, which is not rotated unless the caller says so afterwards; forms of the one before
 * it are void.  Its number, and those of its rows (tn_acts_rows), are new. */
void tn_acts_set(struct tn_acts *acts, const float *x, const float *norm, float eps, uint32_t n,
                 uint32_t cols);
/* Makes a form unless it is there. */
void tn_acts_derive(struct tn_acts *acts, enum tn_act form, const struct tn_kernels *kernels,
                    struct tn_team *team);


/* acts counts its numbers on from those of `before`. */
void tn_acts_follow(struct tn_acts *acts, const struct tn_acts *before);
/* Rows [row, row + n) of an input with the forms that are made, as an input.  A single row of
 * several has a number of its own. */
struct tn_acts tn_acts_rows(const struct tn_acts *acts, uint32_t row, uint32_t n);
/* `to`, which has memory for n rows, becomes rows[i] of from, i < n, in the forms of these bits. */
void tn_acts_gather(struct tn_acts *to, const struct tn_acts *from, const uint32_t *rows,
                    uint32_t n, uint32_t forms);

#endif

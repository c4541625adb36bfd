/* SPDX-License-Identifier: MIT
 *
 * The input of linear layers, and the formats in which products take it.  A format is made when the
 * first product requests it, once for all products that share the input.
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
    const struct tn_rotation *rotation; /* applied before any format is made; NULL: none */
    uint32_t n; /* tokens */
    uint32_t cols;
    uint64_t number; /* of this input; look-up tables made from it carry the same number */
    uint32_t made;   /* bit i: format i is ready */
    /* The formats, in scratch memory; workspace_size.h has the sizes. */
    const float *f32;  /* [n][f32_stride] */
    size_t f32_stride;
    float *f32_own;    /* memory for f32, used unless x can be taken unchanged */
    int8_t *i8;        /* [n][i8_stride] zero-padded */
    size_t i8_stride;
    float *i8_scale;   /* [n] factor that reverses the rounding */
    int32_t *i8_sum;   /* [n] sum_i8 */
    void *prep;        /* TN_PREP_R2_BYTES, of one token */
    void *x16;         /* [n] TN_X16_BYTES each, without gaps */
    void *x8;          /* [n] TN_X8_BYTES each, without gaps */
};

/* Sets a new input, not rotated unless the caller sets `rotation` afterwards; formats of the
 * previous input become invalid.  Its number, and those of its rows (tn_acts_rows), are new. */
void tn_acts_set(struct tn_acts *acts, const float *x, const float *norm, float eps, uint32_t n,
                 uint32_t cols);
/* Makes a format unless it is ready. */
void tn_acts_derive(struct tn_acts *acts, enum tn_act form, const struct tn_kernels *kernels,
                    struct tn_team *team);

/* acts continues numbering after `before`. */
void tn_acts_follow(struct tn_acts *acts, const struct tn_acts *before);
/* Rows [row, row + n) of an input, with the formats made so far, as an input.  A single row out of
 * several gets a new number. */
struct tn_acts tn_acts_rows(const struct tn_acts *acts, uint32_t row, uint32_t n);
/* Copies rows[i] of `from`, i < n, in the formats of these bits, to `to`, which has memory for n
 * rows. */
void tn_acts_gather(struct tn_acts *to, const struct tn_acts *from, const uint32_t *rows,
                    uint32_t n, uint32_t forms);

#endif

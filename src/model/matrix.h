/* SPDX-License-Identifier: MIT
 *
 * Products with the matrices of a layer, spread over threads.  Callers pass matrices of any layout;
 * their format (format.h) selects the kernels.
 */
#ifndef TN_MATRIX_H
#define TN_MATRIX_H

#include "model/forward.h"

/* The format of a matrix for the precision of this pass's inputs. */
static inline const struct tn_format *tn_matrix_format(const struct tn_forward *f,
                                                       const struct tn_matrix *w)
{
    return tn_format_with(w->format, f->inputs);
}

/* One product of an input x [n][cols]. */
struct tn_product {
    const struct tn_matrix *w;
    const float *in_norm; /* the input is the RMSNorm of x with these weights; NULL: x */
    float *dst;           /* [n][rows]: y = W x, or += add * y when add is not 0 */
    float add;
    const struct tn_matrix *up; /* not NULL: dst becomes act(y) * (up x), with the same input */
    bool is_up;                 /* w is up: dst holds the gates and becomes act(gate) * y */
};

#define TN_MAX_PRODUCTS 4u

/* Up to TN_MAX_PRODUCTS products of x, or of its RMSNorm with the weights `norm` if that is not
 * NULL. Those without in_norm share one input and one parallel loop, except for those that rotate
 * it. Overwrites x, unless it is f->s.h.  No dst is x. */
void tn_multiply(struct tn_forward *f, float *x, const float *norm, uint32_t cols,
                 const struct tn_product *products, uint32_t n);

/* h += residual_scale * post_norm(W in_norm(norm(x)) + bias); members that are NULL are omitted. */
struct tn_branch {
    const struct tn_matrix *w;
    const float *norm, *in_norm, *bias, *post_norm;
};
void tn_add_branch(struct tn_forward *f, float *x, uint32_t cols, const struct tn_branch *branch);

/* dst [n][cols] += bias [cols]; NULL: nothing. */
void tn_add_bias(float *dst, const float *bias, uint32_t n, uint32_t cols);
/* dst [n][cols] = RMSNorm of x, token by token in parallel; dst may be x. */
void tn_norm_rows(struct tn_forward *f, float *dst, const float *x, const float *norm, float eps,
                  uint32_t cols);

/* gate [n][rows of up] = act(gate) * (up x), for the input of the previous product. */
void tn_multiply_up(struct tn_forward *f, const struct tn_matrix *up, float *gate);

/* One token, f->in prepared as TN_ACT_PREP: gate[r] = act(gate[r]) * (row r of up), for n_active
 * rows in ascending order; the format of up has mul_rows. */
void tn_multiply_rows(struct tn_forward *f, const struct tn_matrix *up, float *gate,
                      const uint32_t *rows, uint32_t n_active);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Products that skip zeros, for 2 to TN_FEW_TOKENS tokens, and the functions that they share with
 * those for one token.  Only for matrix.c and ffns/gated.c.
 */
#ifndef TN_MATRIX_FEW_H
#define TN_MATRIX_FEW_H

#include "model/matrix.h"

/* sum [padded] = or += the n columns `cols` of w times x; padded: rows of w, padded. */
void tn_add_columns(int32_t *sum, bool is_first, const struct tn_matrix *w, uint32_t padded,
                    const uint32_t *cols, const int8_t *x, uint32_t n,
                    const struct tn_worker *worker);

/* Adds the threads' sums in col_sum, [f->n_tokens][padded] for each thread that took part in
 * product number f->n_col_sums, and writes the result of the product. */
void tn_finish_cols(struct tn_forward *f, const struct tn_product *p, uint32_t padded);

/* p->dst of each token from the columns of p->w whose input is not zero; needs TN_ACT_I8 of
 * f->s.in. */
void tn_multiply_cols_few(struct tn_forward *f, const struct tn_product *p);

/* gate [n][rows of up] = act(gate) * (up x) where gate > 0, else +0: squared ReLU. */
void tn_multiply_rows_few(struct tn_forward *f, const struct tn_matrix *up, float *gate);

#endif

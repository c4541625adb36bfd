/* SPDX-License-Identifier: MIT
 *
 * Reads the rows of a ternary matrix of any source as trits and scales, for the survey and for
 * streaming.
 */
#ifndef TN_TRITS_H
#define TN_TRITS_H

#include <stdbool.h>
#include <stdint.h>

#include "convert/stream.h"

/* The distance of a weight from -1, 0 and +1 times its scale. */
struct tn_distance {
    double value; /* in units of the scale, 0 to 0.5; 0: it is ternary */
    uint32_t row, col;
};

struct tn_trit_reader {
    struct tn_streamer *stream;
    const struct tn_tensor_plan_row *tensor;
    uint32_t unit;    /* columns that share a scale in the source, at most cols */
    uint32_t n_units; /* per row */
    float factor;     /* of all scales */
    uint32_t threshold; /* LATENT: see tn_trit_threshold */
    float *row_scales;  /* ROUNDED: [rows], else NULL */
    struct tn_distance worst; /* EXACT: of all rows so far */
    /* EXACT: units of these rows that are not all zero, and are ternary, almost, or not. */
    uint64_t n_exact, n_near, n_far;
};

/* Reads the data of the whole matrix: mean, scale tensors.  TERN_INPUT: a value that is not finite,
 * a scale that is not above 0. */
tern_status tn_trit_reader_init(struct tn_trit_reader *out, struct tn_streamer *stream,
                                const struct tn_tensor_plan_row *tensor, struct tern_error *err);
void tn_trit_reader_fini(struct tn_trit_reader *reader);

/* Rows [row, row + n) in the model's order.
 *   trits   [n][cols]
 *   scales  [n][n_units], 0 for a unit with only zero weights
 * TERN_INPUT names a value or code that no ternary weight has.  Weights of EXACT that are not
 * ternary are recorded in `worst`, and their trits are undefined. */
tern_status tn_trit_reader_rows(struct tn_trit_reader *reader, int8_t *trits, float *scales,
                                uint32_t row, uint32_t n, struct tern_error *err);

/* Only the scales of these rows; for CODED tensors whose units are inside a row, with heads in the
 * order of the source.  Codes are not decoded. */
tern_status tn_trit_reader_scales(struct tn_trit_reader *reader, float *scales, uint32_t row,
                                  uint32_t n, struct tern_error *err);

/* Whether the source states one scale for the whole matrix; otherwise the units have scales. */
bool tn_trit_scale_is_stated(const struct tn_tensor_plan_row *tensor);

/* Bytes read from the source when all rows are read once. */
uint64_t tn_trit_reader_cost(const struct tn_tensor_plan_row *tensor);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The rows of a ternary matrix of any source as trits and scales.
 */
#ifndef TN_TRITS_H
#define TN_TRITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convert/stream.h"

/* How far a weight is from -1, 0 and +1 times its scale. */
struct tn_distance {
    double value; /* in units of the scale, 0 to 0.5; 0: it is ternary */
    uint32_t row, col;
};

struct tn_trit_reader {
    struct tn_streamer *stream;
    const struct tn_tensor_plan_row *tensor;
    uint32_t unit;    /* columns that share a scale in the source, at most cols */
    uint32_t n_units; /* in a row */
    float factor;     /* of all scales */
    uint32_t threshold; /* LATENT: see tn_trit_threshold */
    float *row_scales;  /* ROUNDED: [rows], else NULL */
    struct tn_distance worst; /* EXACT: of all rows so far */
    /* EXACT: units of these rows that hold more than zeros, and are ternary, almost, or not. */
    uint64_t n_exact, n_near, n_far;
};

/* Reads what belongs to the whole matrix: mean, scale tensors.  TERN_INPUT: a value that is not
 * finite, a scale that is not above 0. */
tern_status tn_trit_reader_init(struct tn_trit_reader *out, struct tn_streamer *stream,
                                const struct tn_tensor_plan_row *tensor, struct tern_error *err);
void tn_trit_reader_fini(struct tn_trit_reader *reader);

/* Rows [row, row + n), as the model counts them.
 *   trits   [n][cols]
 *   scales  [n][n_units], 0 for a unit without weights but 0
 * TERN_INPUT names a value or code that no ternary weight has.  Weights of EXACT that are not
 * ternary are noted in `worst` and come out as anything. */
tern_status tn_trit_reader_rows(struct tn_trit_reader *reader, int8_t *trits, float *scales,
                                uint32_t row, uint32_t n, struct tern_error *err);

/* The scales of these rows alone; for CODED tensors whose units lie inside a row, with heads in the
 * order of the source.  Codes are not looked at. */
tern_status tn_trit_reader_scales(struct tn_trit_reader *reader, float *scales, uint32_t row,
                                  uint32_t n, struct tern_error *err);

/* Does the source state one scale for the whole matrix?  Else the units have them. */
bool tn_trit_scale_is_stated(const struct tn_tensor_plan_row *tensor);

/* Bytes of the source that reading all rows once takes. */
uint64_t tn_trit_reader_cost(const struct tn_tensor_plan_row *tensor);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A first pass over weights whose scales only the data reveal: whether floats are ternary, and how
 * many weights share a scale.
 */
#ifndef TN_SURVEY_H
#define TN_SURVEY_H

#include "convert/stream.h"
#include "convert/tensor_plan.h"

/* Fills in `scales` of all ternary tensors.  Tables with ternary values become ternary; float
 * matrices without them become TN_TENSOR_FLOATS.  TERN_UNSUPPORTED, with the tensor and its
 * distance: one that is almost ternary, or one that is not ternary although the model should be
 * (plan->says_ternary).  TERN_INPUT: values that are not finite, codes that no ternary weight has,
 * a plan->twin whose numbers differ from the embeddings. */
tern_status tn_survey(struct tn_streamer *stream, struct tn_tensor_plan *plan,
                      struct tern_error *err);

/* Bytes that the survey will read. */
uint64_t tn_survey_cost(const struct tn_tensor_plan *plan);

/* ---- for tests ---- */

#define TN_SURVEY_MAX_GROUPS 24u

/* The tilings that the scales of the rows so far allow. */
struct tn_scale_survey {
    uint32_t cols, unit, n_units;
    uint32_t n_groups; /* widths to try, widest first; all multiples of unit and of 64 */
    uint32_t groups[TN_SURVEY_MAX_GROUPS];
    bool group_fits[TN_SURVEY_MAX_GROUPS];
    bool has_value, is_one, row_fits, are_f16;
    float value;
};
void tn_scale_survey_init(struct tn_scale_survey *out, uint32_t cols, uint32_t unit);
/* scales [n_units] of a row; 0: a unit that fits any scale. */
void tn_scale_survey_row(struct tn_scale_survey *survey, const float *scales);
/* False if scales change within less than 64 columns. */
bool tn_scale_survey_result(struct tn_scale_facts *out, const struct tn_scale_survey *survey);

#endif

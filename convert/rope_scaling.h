/* SPDX-License-Identifier: MIT
 *
 * Rotations that a longer context than that of training slows down: the factors
 * that divide their frequencies, and what multiplies rotated queries and keys.
 */
#ifndef TN_ROPE_SCALING_H
#define TN_ROPE_SCALING_H

#include "convert/config_import.h"

/* YaRN (Peng et al. 2023, arXiv 2309.00071), as transformers and llama.cpp compute it. */
struct tn_yarn {
    double factor;    /* at least 1; pairs of a head that turn slowly are slowed so much */
    double original;  /* positions of training */
    double beta_fast; /* pairs that turn so often within them stay as they are, 32 usually; */
    double beta_slow; /* those of so few turns are slowed fully, 1 usually */
};

/* out->rope_factors = memory for rope_dims / 2 of them. */
tern_status tn_rope_factors_alloc(struct tn_config_import *out, struct tern_error *err);

/* Fills out->rope_factors with one for all pairs. */
tern_status tn_linear_factors(struct tn_config_import *out, double factor, struct tern_error *err);

/* Fills out->rope_factors.  TERN_INPUT: numbers that leave no pair between fast and slow. */
tern_status tn_yarn_factors(struct tn_config_import *out, const struct tn_yarn *yarn, double theta,
                            struct tern_error *err);

/* LLaMA 3.1: pairs with long waves are slowed by `factor`, those with short waves keep their speed,
 * and between them it changes smoothly (transformers, modeling_rope_utils.py). */
struct tn_llama3 {
    double factor;    /* at least 1 */
    double low, high; /* waves in `original`: fewer are slowed, more are kept; low < high */
    double original;  /* positions of training */
};
/* Fills out->rope_factors. */
tern_status tn_llama3_factors(struct tn_config_import *out, const struct tn_llama3 *llama3,
                              double theta, struct tern_error *err);

/* What YaRN multiplies rotated queries and keys by. */
double tn_yarn_magnitude(double factor);

/* Multiplies the cosines and sines of all layers.  TERN_INPUT: the result is out of its range. */
tern_status tn_magnify_rotations(struct tn_config_import *out, double magnitude,
                                 struct tern_error *err);

#endif

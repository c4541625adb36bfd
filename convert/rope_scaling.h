/* SPDX-License-Identifier: MIT
 *
 * Rotations slowed down for a context longer than in training: the factors that divide their
 * frequencies, and the factor of rotated queries and keys.
 */
#ifndef TN_ROPE_SCALING_H
#define TN_ROPE_SCALING_H

#include "convert/config_import.h"

/* YaRN (Peng et al. 2023, arXiv 2309.00071), computed as in transformers and llama.cpp. */
struct tn_yarn {
    double factor;    /* at least 1; slow pairs of a head are slowed down by this factor */
    double original;  /* positions of training */
    double beta_fast; /* pairs with at least this many turns within them are unchanged, usually
                       * 32; */
    double beta_slow; /* those with at most this many are slowed down fully, usually 1 */
    bool is_exact;    /* the two bounds between which pairs are slowed down in part are not rounded
                       * to whole pairs */
};

/* Allocates out->rope_factors [rope_dims / 2]. */
tern_status tn_rope_factors_alloc(struct tn_config_import *out, struct tern_error *err);

/* Sets out->rope_factors to one factor for all pairs. */
tern_status tn_linear_factors(struct tn_config_import *out, double factor, struct tern_error *err);

/* Fills out->rope_factors.  TERN_INPUT: numbers that leave no pair between fast and slow. */
tern_status tn_yarn_factors(struct tn_config_import *out, const struct tn_yarn *yarn, double theta,
                            struct tern_error *err);

/* LLaMA 3.1: pairs with long wavelengths are slowed down by `factor`, those with short ones are
 * unchanged, with a smooth transition in between (transformers, modeling_rope_utils.py). */
struct tn_llama3 {
    double factor;    /* at least 1 */
    double low, high; /* waves in `original`: below low slowed down, above high unchanged; low <
                       * high */
    double original;  /* positions of training */
};
/* Fills out->rope_factors. */
tern_status tn_llama3_factors(struct tn_config_import *out, const struct tn_llama3 *llama3,
                              double theta, struct tern_error *err);

/* YaRN's factor of rotated queries and keys; mscale: usually 1. */
double tn_yarn_magnitude(double factor, double mscale);

/* Multiplies the cosines and sines of all layers that are not local.  TERN_INPUT: the result is out
 * of range. */
tern_status tn_magnify_rotations(struct tn_config_import *out, double magnitude,
                                 struct tern_error *err);

#endif

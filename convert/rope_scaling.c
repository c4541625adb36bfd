/* SPDX-License-Identifier: MIT
 *
 * Computes the factors of scaled rotations (rope_scaling.h) in double, in the formulas of
 * transformers and llama.cpp.
 */
#include "convert/rope_scaling.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"

#define PI 3.14159265358979323846

tern_status tn_rope_factors_alloc(struct tn_config_import *out, struct tern_error *err)
{
    const uint32_t n = out->rope_dims / 2;
    tn_free(out->rope_factors);
    out->rope_factors = tn_alloc(n * sizeof *out->rope_factors);
    return out->rope_factors ? TERN_OK
                             : tn_fail(err, TERN_MEMORY, "no memory for %u rope factors", n);
}

tern_status tn_linear_factors(struct tn_config_import *out, double factor, struct tern_error *err)
{
    tern_status status = tn_rope_factors_alloc(out, err);
    for (uint32_t j = 0; j < out->rope_dims / 2 && status == TERN_OK; j++)
        out->rope_factors[j] = (float)factor;
    return status;
}

/* The pair of a head that makes n_turns turns in the original context. */
static double pair_of_turns(const struct tn_yarn *yarn, double dim, double theta, double n_turns)
{
    return dim * log(yarn->original / (n_turns * 2 * PI)) / (2 * log(theta));
}

tern_status tn_yarn_factors(struct tn_config_import *out, const struct tn_yarn *yarn, double theta,
                            struct tern_error *err)
{
    const double dim = out->rope_dims;
    const double fast = pair_of_turns(yarn, dim, theta, yarn->beta_fast);
    const double slow = pair_of_turns(yarn, dim, theta, yarn->beta_slow);
    const double first = fmax(yarn->is_exact ? fast : floor(fast), 0);
    const double last = fmin(yarn->is_exact ? slow : ceil(slow), dim - 1);
    if (!(last >= first)) /* theta 1: NaN */
        return tn_fail(err, TERN_INPUT,
                       "YaRN with an original context of %g, beta_fast %g, beta_slow %g and a rope "
                       "theta of %g slows no pair of a head of %g",
                       yarn->original, yarn->beta_fast, yarn->beta_slow, theta, dim);
    const double width = fmax(last - first, 0.001);
    tern_status status = tn_rope_factors_alloc(out, err);
    for (uint32_t j = 0; j < out->rope_dims / 2 && status == TERN_OK; j++) {
        const double slowed = fmin(fmax((j - first) / width, 0), 1);
        out->rope_factors[j] = (float)(1 / (slowed / yarn->factor + (1 - slowed)));
    }
    return status;
}

tern_status tn_llama3_factors(struct tn_config_import *out, const struct tn_llama3 *llama3,
                              double theta, struct tern_error *err)
{
    const double dim = out->rope_dims;
    tern_status status = tn_rope_factors_alloc(out, err);
    for (uint32_t j = 0; j < out->rope_dims / 2 && status == TERN_OK; j++) {
        const double wave = 2 * PI * pow(theta, 2 * j / dim);
        const double smooth =
            (llama3->original / wave - llama3->low) / (llama3->high - llama3->low);
        const double kept = fmin(fmax(smooth, 0), 1);
        out->rope_factors[j] = (float)(1 / ((1 - kept) / llama3->factor + kept));
    }
    return status;
}

double tn_yarn_magnitude(double factor, double mscale)
{
    return 0.1 * mscale * log(factor) + 1;
}

tern_status tn_magnify_rotations(struct tn_config_import *out, double magnitude,
                                 struct tern_error *err)
{
    for (uint32_t i = 0; i < out->config.n_layer && magnitude != 1; i++) {
        float *scale = &out->layers[i].rope_scale;
        if (out->layers[i].mixer != TERN_MIXER_ATTENTION || tn_config_is_local(out, i))
            continue;
        *scale = (float)((*scale != 0 ? (double)*scale : 1) * magnitude);
        if (!(*scale >= TERN_MIN_ROPE_SCALE && *scale <= TERN_MAX_ROPE_SCALE))
            return tn_fail(err, TERN_INPUT,
                           "rope scaling multiplies rotated values by %g, allowed are %g to %g",
                           (double)*scale, (double)TERN_MIN_ROPE_SCALE,
                           (double)TERN_MAX_ROPE_SCALE);
    }
    return TERN_OK;
}

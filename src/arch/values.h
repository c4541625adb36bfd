/* SPDX-License-Identifier: MIT
 *
 * What a source says about its model, as a family asks for it (family.h): one question, whether
 * config.json or the keys of a GGUF file answer.  convert/ has one implementation for each.
 */
#ifndef TN_VALUES_H
#define TN_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

/* What one layer is, where the source has a list of its layers. */
enum tn_layer_kind {
    TN_LAYER_UNSAID,
    TN_LAYER_FULL,    /* sees all positions before it */
    TN_LAYER_SLIDING, /* sees a window */
    TN_LAYER_LINEAR,  /* keeps a state instead of keys and values */
};

/* The names of a number, and the range [min, max] that it must be in.  hf: "a|b" are spellings, of
 * which the first that is present counts, and errors name the last; "a.b" is member b of object a.
 * gguf: without the architecture.  NULL: that kind of source does not hold it. */
struct tn_value {
    const char *hf, *gguf;
    double min, max;
};

/* A source.  Functions get the keys of its own kind; callers use those below. */
struct tn_values {
    bool is_gguf;
    void *source;
    struct tern_error *err;
    /* A number, and an integer.  Absent: *out stays, or TERN_INPUT where it is required. */
    tern_status (*number)(const struct tn_values *values, double *out, const char *name,
                          double min, double max, bool is_required);
    tern_status (*integer)(const struct tn_values *values, uint32_t *out, const char *name,
                           uint32_t min, uint32_t max, bool is_required);
    /* TERN_UNSUPPORTED: a kind that tern does not have. */
    tern_status (*layer_kind)(const struct tn_values *values, enum tn_layer_kind *out,
                              uint32_t layer);
    /* True or false; absent: *out stays.  TERN_INPUT: something else. */
    tern_status (*truth)(const struct tn_values *values, bool *out, const char *name);
    /* Element i of a list of numbers.  Absent: *out stays. */
    tern_status (*element)(const struct tn_values *values, double *out, const char *name,
                           uint32_t i);
    bool (*has_key)(const struct tn_values *values, const char *name);
    /* A tensor of the first layer, by its whole name within the layer. */
    bool (*has_tensor)(const struct tn_values *values, const char *name);
};

tern_status tn_values_number(const struct tn_values *values, double *out,
                             const struct tn_value *value, bool is_required);
tern_status tn_values_integer(const struct tn_values *values, uint32_t *out,
                              const struct tn_value *value, bool is_required);
/* TERN_UNSUPPORTED: "`what` is not supported". */
tern_status tn_values_refuse(const struct tn_values *values, const char *what);
/* NULL: not in that kind of source. */
tern_status tn_values_truth(const struct tn_values *values, bool *out, const char *hf,
                            const char *gguf);
bool tn_values_has_key(const struct tn_values *values, const char *hf, const char *gguf);
bool tn_values_has_tensor(const struct tn_values *values, const char *hf, const char *gguf);

#endif

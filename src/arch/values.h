/* SPDX-License-Identifier: MIT
 *
 * The values of a source that a family reads (family.h): one interface for config.json and the keys
 * of a GGUF file.  convert/ implements it once for each.
 */
#ifndef TN_VALUES_H
#define TN_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

/* The kind of one layer, if the source lists its layers. */
enum tn_layer_kind {
    TN_LAYER_UNSAID,
    TN_LAYER_FULL,    /* sees all positions before it */
    TN_LAYER_SLIDING, /* sees a window */
    TN_LAYER_LINEAR,  /* keeps a state instead of keys and values */
};

/* The names of a number, and its range [min, max].  hf: "a|b" are spellings; the first one present
 * is used, and errors name the last; "a.b" is member b of object a.  gguf: without the
 * architecture. NULL: that kind of source does not have it. */
struct tn_value {
    const char *hf, *gguf;
    double min, max;
};

/* A source.  These functions take names of its kind; callers use the functions below. */
struct tn_values {
    bool is_gguf;
    void *source;
    struct tern_error *err;
    /* A number, and an integer.  Absent: *out stays unchanged, or TERN_INPUT if it is required. */
    tern_status (*number)(const struct tn_values *values, double *out, const char *name,
                          double min, double max, bool is_required);
    tern_status (*integer)(const struct tn_values *values, uint32_t *out, const char *name,
                           uint32_t min, uint32_t max, bool is_required);
    /* TERN_UNSUPPORTED: a kind that tern does not implement. */
    tern_status (*layer_kind)(const struct tn_values *values, enum tn_layer_kind *out,
                              uint32_t layer);
    /* A boolean; absent: *out stays unchanged.  TERN_INPUT: another type. */
    tern_status (*truth)(const struct tn_values *values, bool *out, const char *name);
    /* Element i of a list of numbers.  Absent: *out stays unchanged. */
    tern_status (*element)(const struct tn_values *values, double *out, const char *name,
                           uint32_t i);
    bool (*has_key)(const struct tn_values *values, const char *name);
    /* Whether the first layer has a tensor of this name, relative to the layer. */
    bool (*has_tensor)(const struct tn_values *values, const char *name);
};

tern_status tn_values_number(const struct tn_values *values, double *out,
                             const struct tn_value *value, bool is_required);
tern_status tn_values_integer(const struct tn_values *values, uint32_t *out,
                              const struct tn_value *value, bool is_required);
/* Fails with TERN_UNSUPPORTED: "`what` is not supported". */
tern_status tn_values_refuse(const struct tn_values *values, const char *what);
/* A name of NULL: that kind of source does not have the value. */
tern_status tn_values_truth(const struct tn_values *values, bool *out, const char *hf,
                            const char *gguf);
bool tn_values_has_tensor(const struct tn_values *values, const char *hf, const char *gguf);
/* Whether config.json has a key; false for a GGUF file. */
bool tn_values_has_folder_key(const struct tn_values *values, const char *name);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The keys "ARCH.name" of a GGUF file, for gguf_import.c and, as struct tn_values, for families.
 */
#ifndef TN_GGUF_VALUES_H
#define TN_GGUF_VALUES_H

#include "arch/values.h"
#include "convert/gguf/gguf.h"
#include "convert/source.h"

#define TN_GGUF_NAME_BYTES 128u

struct tn_gguf_values {
    struct tn_values values;
    const struct tn_source *source;
    const char *arch;  /* prefix of all names */
    uint32_t n_layer;  /* must be set before values of layers are read */
    /* [n_layer] once layer_kind has read them; NULL: the file has no list */
    uint8_t *sliding, *linear;
    bool has_lists;
};
/* out must not move afterwards. */
void tn_gguf_values_init(struct tn_gguf_values *out, const struct tn_source *source,
                         struct tern_error *err);
void tn_gguf_values_fini(struct tn_gguf_values *values);

/* Finds "ARCH.name", which is written to `full`; NULL if absent. */
const struct tn_gguf_key *tn_gguf_values_find(const struct tn_gguf_values *values,
                                              char full[TN_GGUF_NAME_BYTES], const char *name);
/* An integer from 1 to max, or an array with one per layer: they must be equal, but for zeros if
 * those are allowed, and *out becomes that value.  Absent: *out is unchanged, or TERN_INPUT if it
 * is required.  TERN_INPUT: out of range; TERN_UNSUPPORTED: layers differ. */
tern_status tn_gguf_values_per_layer(const struct tn_gguf_values *values, uint32_t *out,
                                     const char *name, bool may_be_0, uint32_t max,
                                     bool is_required);
/* TERN_INPUT: d is outside [min, max]. */
tern_status tn_gguf_check_range(const struct tn_gguf_values *values, const struct tn_gguf_key *key,
                                double d, double min, double max);

#endif

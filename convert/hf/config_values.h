/* SPDX-License-Identifier: MIT
 *
 * Checked values of config.json, for the files that read it and, as struct tn_values, for families.
 */
#ifndef TN_CONFIG_VALUES_H
#define TN_CONFIG_VALUES_H

#include <jansson.h>
#include <stdint.h>

#include "convert/config_import.h"

/* A number in [min, max]. */
tern_status tn_config_number(double *out, const char *key, const json_t *value, double min,
                             double max, struct tern_error *err);
/* An integer in [min, max]. */
tern_status tn_config_integer(uint32_t *out, const char *key, const json_t *value, uint32_t min,
                              uint32_t max, struct tern_error *err);
/* The text of a key, or `otherwise` if it is absent or null. */
const char *tn_config_text(const json_t *object, const char *key, const char *otherwise);
/* The first name in "architectures", else the model_type. */
const char *tn_config_architecture(const json_t *root);

/* hf_values.c: the values of a folder, as families read them.  root, source: NULL while unknown. */
struct tn_hf_values {
    struct tn_values values;
    const struct tn_family *family; /* has the prefixes of tensor names */
    const json_t *root;
    const struct tn_source *source;
};
/* out must not move afterwards. */
void tn_hf_values_init(struct tn_hf_values *out, const struct tn_family *family,
                       const json_t *root, const struct tn_source *source,
                       struct tern_error *err);

/* hf_family.c: family, scheme, rule and inputs, as far as config.json determines them. */
tern_status tn_config_family(struct tn_config_import *out, const json_t *root,
                             struct tern_error *err);
/* Sets *root to the configuration of the text model: its "text_config" if the family has one,
 * merged with members of the outer object and with the family's defaults. */
tern_status tn_config_text_model(json_t **root, struct tern_error *err);
/* hf_layers.c: one record per layer, rope_factors, scales of the states; sizes and the family must
 * be known. */
tern_status tn_config_layers(struct tn_config_import *out, const json_t *root,
                             struct tern_error *err);

#endif

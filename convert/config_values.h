/* SPDX-License-Identifier: MIT
 *
 * Values of config.json, checked: for the files that read it.
 */
#ifndef TN_CONFIG_VALUES_H
#define TN_CONFIG_VALUES_H

#include <jansson.h>
#include <stdint.h>

#include "config_import.h"

#define TN_CONFIG_FILE "config.json"

/* A number in [min, max]. */
tern_status tn_config_number(double *out, const char *key, const json_t *value, double min,
                             double max, struct tern_error *err);
/* An integer in [min, max]. */
tern_status tn_config_integer(uint32_t *out, const char *key, const json_t *value, uint32_t min,
                              uint32_t max, struct tern_error *err);
/* The text of a key, or `otherwise` when it is absent or null. */
const char *tn_config_text(const json_t *object, const char *key, const char *otherwise);
/* The first name in "architectures", else the model_type. */
const char *tn_config_architecture(const json_t *root);

/* hf_family.c: rule, inputs and scales of the states, as far as config.json says. */
tern_status tn_config_family(struct tn_config_import *out, const json_t *root,
                             struct tern_error *err);
/* hf_layers.c: one record for each layer, and rope_factors; sizes are known. */
tern_status tn_config_layers(struct tn_config_import *out, const json_t *root,
                             struct tern_error *err);

#endif

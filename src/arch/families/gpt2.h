/* SPDX-License-Identifier: MIT
 *
 * Names that GPT-2 and GPT-BigCode share for their tensors and, together with CodeGen, for keys of
 * config.json.
 */
#ifndef TN_GPT2_H
#define TN_GPT2_H

#include "arch/family.h"

extern const struct tn_family_name tn_gpt2_names[];
extern const struct tn_family_key tn_gpt2_keys[];

/* The `spec`: scores are scaled by 1 / sqrt(head_dim), 1 / (layer + 1), both or neither. */
tern_status tn_gpt2_spec(struct tn_family_spec *out, const struct tn_values *values);

#endif

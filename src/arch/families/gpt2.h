/* SPDX-License-Identifier: MIT
 *
 * What GPT-2 and GPT-BigCode call their tensors, and with CodeGen the keys of config.json.
 */
#ifndef TN_GPT2_H
#define TN_GPT2_H

#include "arch/family.h"

extern const struct tn_family_name tn_gpt2_names[];
extern const struct tn_family_key tn_gpt2_keys[];

/* For `spec`: scores are scaled by 1 / sqrt(head_dim).  TERN_UNSUPPORTED: otherwise. */
tern_status tn_gpt2_check_scores(const struct tn_values *values);

#endif

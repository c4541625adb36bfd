/* SPDX-License-Identifier: MIT
 *
 * The scales of embeddings, branches, attention and logits that Granite 3 (granite.c) and Granite 4
 * without H (granite_dense.c) read from config.json.
 */
#ifndef TN_GRANITE_H
#define TN_GRANITE_H

#include "arch/family.h"

/* For `spec`: the scales of embeddings, branches, scores and logits in config.json. */
tern_status tn_granite_spec(struct tn_family_spec *out, const struct tn_values *values);

#endif

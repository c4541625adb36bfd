/* SPDX-License-Identifier: MIT
 *
 * The scheme of deepgrove's Bonsai and ParetoQ: weights near -1, 0 and +1, and a separate tensor
 * with a scale for each row.
 */
#include "arch/family.h"

static bool is_deepgrove(const struct tn_values *v)
{
    return tn_values_has_tensor(v, "self_attn.q_proj.scales", NULL);
}

const struct tn_scheme tn_scheme_deepgrove = {
    .name = "deepgrove",
    .is_evident = is_deepgrove,
    .rule = TN_WEIGHTS_ROUNDED,
    .inputs = TN_INPUTS_FLOAT,
};

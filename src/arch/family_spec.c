/* SPDX-License-Identifier: MIT
 *
 * What several families have in common.
 */
#include "arch/family.h"

tern_status tn_spec_windows(struct tn_family_spec *s, const struct tn_values *v)
{
    static const struct tn_value window_value = {"sliding_window", "attention.sliding_window", 0,
                                                 TERN_MAX_CONTEXT};
    uint32_t window = 0;
    tern_status status = tn_values_integer(v, &window, &window_value, false);
    for (uint32_t i = 0; i < s->config->n_layer; i++)
        s->layers[i].window = window;
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * "Did you mean": finds the known name nearest to a mistyped one, for commands, flags, models and
 * settings.
 */
#ifndef TN_NEAREST_H
#define TN_NEAREST_H

#include <stddef.h>
#include <stdint.h>

struct tn_nearest {
    const char *typed;
    size_t n_typed;
    const char *best; /* NULL while none is near enough */
    uint32_t distance;
};

void tn_nearest_init(struct tn_nearest *nearest, const char *typed, size_t n_typed);
/* Considers `prefix` followed by `name`; `best` becomes `name`. */
void tn_nearest_try(struct tn_nearest *nearest, const char *prefix, const char *name);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Count ranges of a schema: "minItems" and "maxItems", "minLength" and "maxLength".
 *
 * Used for arrays (schema.c) and strings (schema_string.c).
 */
#ifndef TN_SCHEMA_COUNT_H
#define TN_SCHEMA_COUNT_H

#include <jansson.h>
#include <stdint.h>

#include "tern/status.h"

#define TN_NO_MAXIMUM UINT32_MAX

struct tn_count_range {
    uint32_t min, max; /* defaults: 0 and TN_NO_MAXIMUM */
};

/* TERN_USAGE: not a non-negative integer, or the minimum exceeds the maximum; TERN_LIMIT: above
 * `limit`. */
tern_status tn_schema_count(struct tn_count_range *out, const json_t *s, const char *min_word,
                            const char *max_word, uint32_t limit, struct tern_error *err);

#endif

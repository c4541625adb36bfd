/* SPDX-License-Identifier: MIT
 *
 * Counts of a schema: "minItems" and "maxItems", "minLength" and "maxLength".
 */
#ifndef TN_SCHEMA_COUNT_H
#define TN_SCHEMA_COUNT_H

#include <jansson.h>
#include <stdint.h>

#include "tern/status.h"

#define TN_NO_MAXIMUM UINT32_MAX

struct tn_count_range {
    uint32_t min, max; /* 0 and TN_NO_MAXIMUM where s says nothing */
};

/* TERN_USAGE: not a whole number from 0 on, or the least is more than the most; TERN_LIMIT: more
 * than `limit`. */
tern_status tn_schema_count(struct tn_count_range *out, const json_t *s, const char *min_word,
                            const char *max_word, uint32_t limit, struct tern_error *err);

#endif

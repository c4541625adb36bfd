/* SPDX-License-Identifier: MIT
 *
 * Reads and checks a pair of minimum and maximum keywords.
 *
 * Schemas are hostile input: every value is checked for type, sign, order and the caller's limit.
 */
#include "grammar/schema_count.h"

#include "base/error.h"

static tern_status read_count(uint32_t *out, const json_t *s, const char *word, uint32_t limit,
                              struct tern_error *err)
{
    const json_t *value = json_object_get(s, word);
    if (!value)
        return tn_ok(err);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return tn_fail(err, TERN_USAGE, "\"%s\" must be a whole number, not below 0", word);
    if (json_integer_value(value) > limit)
        return tn_fail(err, TERN_LIMIT, "\"%s\" is more than %u", word, limit);
    *out = (uint32_t)json_integer_value(value);
    return tn_ok(err);
}

tern_status tn_schema_count(struct tn_count_range *out, const json_t *s, const char *min_word,
                            const char *max_word, uint32_t limit, struct tern_error *err)
{
    *out = (struct tn_count_range){0, TN_NO_MAXIMUM};
    tern_status status = read_count(&out->min, s, min_word, limit, err);
    if (status == TERN_OK)
        status = read_count(&out->max, s, max_word, limit, err);
    if (status == TERN_OK && out->min > out->max)
        return tn_fail(err, TERN_USAGE, "\"%s\" is %u, \"%s\" only %u", min_word, out->min,
                       max_word, out->max);
    return status;
}

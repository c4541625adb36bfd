/* SPDX-License-Identifier: MIT
 *
 * From the words about a number to its limits.
 */
#include "grammar/schema_number.h"

#include "base/compiler.h"
#include "base/log.h"
#include "grammar/number_rule.h"

/* Digits of "multipleOf" behind the point. */
#define MAX_SCALE 15

static const struct word {
    const char *name;
    bool is_upper, is_open;
} words[] = {{"minimum", false, false},
             {"exclusiveMinimum", false, true},
             {"maximum", true, false},
             {"exclusiveMaximum", true, true}};

static const char multiple_of[] = "multipleOf";

/* Of two bounds on the same side the narrower one is left. */
static void narrow(struct tn_bound *bound, const struct tn_decimal *at, const struct word *word)
{
    const int order = bound->exists ? tn_decimal_compare(at, &bound->at) : 0;
    if (!bound->exists || (word->is_upper ? order < 0 : order > 0))
        *bound = (struct tn_bound){true, word->is_open, *at};
    else if (order == 0)
        bound->is_open = bound->is_open || word->is_open;
}

static tern_status read_bounds(const json_t *s, struct tn_number_limits *limits,
                               struct tern_error *err)
{
    for (size_t i = 0; i < TN_COUNT_OF(words); i++) {
        const json_t *value = json_object_get(s, words[i].name);
        if (!value)
            continue;
        if (!json_is_number(value))
            return tn_fail(err, TERN_USAGE, "\"%s\" must be a number", words[i].name);
        const struct tn_decimal at = tn_decimal_of(value);
        narrow(words[i].is_upper ? &limits->upper : &limits->lower, &at, &words[i]);
    }
    return tn_ok(err);
}

static tern_status read_multiple(const json_t *s, struct tn_number_limits *limits,
                                 struct tern_error *err)
{
    const json_t *value = json_object_get(s, multiple_of);
    if (!value)
        return tn_ok(err);
    if (!json_is_number(value) || !(json_number_value(value) > 0))
        return tn_fail(err, TERN_USAGE, "\"%s\" must be a number above 0", multiple_of);
    const struct tn_decimal d = tn_decimal_of(value);
    const int32_t scale = (int32_t)d.n - d.exponent; /* digits behind the point */
    uint32_t multiple = 0;
    for (int32_t place = d.exponent - 1; place >= -TN_MAX(scale, 0); place--)
        multiple = TN_MIN(multiple * 10 + tn_decimal_digit(&d, place), TN_MAX_MULTIPLE + 1);
    if (multiple > TN_MAX_MULTIPLE || scale > MAX_SCALE)
        return tn_fail(err, TERN_LIMIT, "\"%s\" must be at most %u without its point, and have at "
                                        "most %d digits behind it", multiple_of, TN_MAX_MULTIPLE,
                       MAX_SCALE);
    limits->multiple = multiple;
    limits->scale = scale > 0 ? (uint32_t)scale : 0;
    return tn_ok(err);
}

tern_status tn_schema_number(struct tern_grammar *g, uint32_t start, const json_t *s,
                             bool is_integer, uint64_t *steps, struct tern_error *err)
{
    struct tn_number_limits limits = {.is_integer = is_integer};
    tern_status status = read_bounds(s, &limits, err);
    if (status == TERN_OK)
        status = read_multiple(s, &limits, err);
    if (status != TERN_OK)
        return status;
    status = tn_number_rule(g, start, &limits, steps, err);
    const char *multiple = limits.multiple ? " and \"multipleOf\"" : "";
    if (status == TERN_USAGE)
        return tn_fail(err, status, "no number fits its bounds%s", multiple);
    if (status != TERN_OK && limits.multiple)
        tn_fail_prefix(err, "\"multipleOf\"");
    return status;
}

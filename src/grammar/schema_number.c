/* SPDX-License-Identifier: MIT
 *
 * Reads the numeric keywords of a schema and turns them into limits for number_rule.c.
 *
 * "minimum" with "exclusiveMinimum" and the like are combined; the narrower bound counts.
 */
#include "grammar/schema_number.h"

#include "base/compiler.h"
#include "base/error.h"
#include "grammar/number_rule.h"

/* Digits of "multipleOf" after the point. */
#define MAX_SCALE 15

static const struct word {
    const char *name;
    bool is_upper, is_open;
} words[] = {{"minimum", false, false},
             {"exclusiveMinimum", false, true},
             {"maximum", true, false},
             {"exclusiveMaximum", true, true}};

static const char multiple_of[] = "multipleOf";

/* Replaces `bound` if the new one is narrower. */
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
    const int32_t scale = (int32_t)d.n - d.exponent; /* digits after the point */
    uint32_t multiple = 0;
    for (int32_t place = d.exponent - 1; place >= -TN_MAX(scale, 0); place--)
        multiple = TN_MIN(multiple * 10 + tn_decimal_digit(&d, place), TN_MAX_MULTIPLE + 1);
    if (multiple > TN_MAX_MULTIPLE || scale > MAX_SCALE)
        return tn_fail(err, TERN_LIMIT, "\"%s\" must be at most %u without its decimal point, "
                                        "with at most %d digits after it",
                       multiple_of, TN_MAX_MULTIPLE, MAX_SCALE);
    limits->multiple = multiple;
    limits->scale = scale > 0 ? (uint32_t)scale : 0;
    return tn_ok(err);
}

static tern_status read_limits(const json_t *s, struct tn_number_limits *limits,
                               struct tern_error *err)
{
    tern_status status = read_bounds(s, limits, err);
    return status == TERN_OK ? read_multiple(s, limits, err) : status;
}

static bool is_within(const struct tn_decimal *d, const struct tn_number_limits *limits)
{
    const int above = limits->lower.exists ? tn_decimal_compare(d, &limits->lower.at) : 1;
    const int below = limits->upper.exists ? tn_decimal_compare(&limits->upper.at, d) : 1;
    return (above > 0 || (above == 0 && !limits->lower.is_open)) &&
           (below > 0 || (below == 0 && !limits->upper.is_open));
}

/* A multiple of multiple / 10^scale has at most `scale` digits after the point and, scaled, no
 * remainder. */
static bool is_multiple(const struct tn_decimal *d, const struct tn_number_limits *limits)
{
    const int32_t last = -(int32_t)limits->scale;
    uint32_t rest = 0;
    if (limits->multiple == 0 || d->n == 0)
        return true;
    if (d->exponent - (int32_t)d->n < last)
        return false;
    for (int32_t place = d->exponent - 1; place >= last; place--)
        rest = (rest * 10 + tn_decimal_digit(d, place)) % limits->multiple;
    return rest == 0;
}

tern_status tn_schema_number_takes(bool *fits, const json_t *s, const json_t *number,
                                   struct tern_error *err)
{
    struct tn_number_limits limits = {0};
    const struct tn_decimal d = tn_decimal_of(number);
    tern_status status = read_limits(s, &limits, err);
    *fits = status == TERN_OK && is_within(&d, &limits) && is_multiple(&d, &limits);
    return status;
}

tern_status tn_schema_number(struct tern_grammar *g, uint32_t start, const json_t *s,
                             bool is_integer, uint64_t *steps, struct tern_error *err)
{
    struct tn_number_limits limits = {.is_integer = is_integer};
    tern_status status = read_limits(s, &limits, err);
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

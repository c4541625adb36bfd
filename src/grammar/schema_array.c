/* SPDX-License-Identifier: MIT
 *
 * Compiles the items of an array.
 *
 * A tuple has a schema for each of its first items: "prefixItems", or an array in "items" in drafts
 * before 2020-12.  Items that must differ need a state for each set of earlier items, so they come
 * from a short list.
 */
#include "grammar/schema_array.h"

#include "grammar/decimal.h"
#include "grammar/schema_count.h"
#include "grammar/schema_enum.h"

/* Arrays are unrolled up to this many items. */
#define MAX_ITEMS 4096u
/* Values that items may have which must differ; the rule has 2^n sets of them. */
#define MAX_UNIQUE 10u

/* The array keywords of a schema. */
struct array {
    const json_t *first;    /* schemas of the first items; NULL: none */
    const char *first_word; /* the keyword that contains them */
    uint32_t n_first;
    const json_t *rest;    /* schema of the other items; NULL: any value */
    const char *rest_word; /* the keyword that contains it */
    struct tn_count_range range;
    bool is_unique;
};

/* ---- reading keywords ---- */

/* Reads the schemas of the first items and of the others.  *has_rest: others are allowed. */
static bool read_items(struct tn_schema_compiler *c, const json_t *s, struct array *a,
                       bool *has_rest)
{
    const json_t *items = json_object_get(s, "items");
    a->first_word = "prefixItems";
    a->first = json_object_get(s, a->first_word);
    a->rest_word = "items";
    if (!a->first && json_is_array(items)) {
        a->first_word = "items";
        a->first = items;
        a->rest_word = "additionalItems";
    }
    if (a->first && (!json_is_array(a->first) || json_array_size(a->first) == 0))
        return tn_schema_refuse(c, TERN_USAGE, "\"%s\" must be an array of schemas, not empty",
                                a->first_word);
    if (json_array_size(a->first) > MAX_ITEMS)
        return tn_schema_refuse(c, TERN_LIMIT, "\"%s\" has more than %u schemas", a->first_word,
                                MAX_ITEMS);
    a->n_first = (uint32_t)json_array_size(a->first);
    a->rest = json_object_get(s, a->rest_word);
    if (!a->rest && !a->first && c->is_strict)
        return tn_schema_refuse(c, TERN_USAGE, "an array needs \"items\"");
    *has_rest = a->first ? a->rest && !json_is_false(a->rest) : !json_is_false(a->rest);
    return true;
}

/* Tuples are complete unless "minItems" allows less, and end after their schemas unless another
 * one follows. */
static bool read_array(struct tn_schema_compiler *c, const json_t *s, struct array *a)
{
    const json_t *unique = json_object_get(s, "uniqueItems");
    bool has_rest = true;
    tern_status status = tn_schema_count(&a->range, s, "minItems", "maxItems", MAX_ITEMS, c->err);
    if (status != TERN_OK)
        return tn_schema_refuse_as_said(c, status);
    if (unique && !json_is_boolean(unique))
        return tn_schema_refuse(c, TERN_USAGE, "\"uniqueItems\" must be true or false");
    if (!read_items(c, s, a, &has_rest))
        return false;
    if (!has_rest && a->range.min > a->n_first)
        return tn_schema_refuse(c, TERN_USAGE, "\"minItems\" is %u, but there are schemas for %u "
                                               "items", a->range.min, a->n_first);
    if (!has_rest)
        a->range.max = TN_MIN(a->range.max, a->n_first);
    if (!json_object_get(s, "minItems"))
        a->range.min = TN_MIN(a->n_first, a->range.max);
    a->is_unique = json_is_true(unique) && a->range.max > 1;
    return true;
}

/* ---- items in sequence ---- */

/* The rule for item i, counted from 0. */
static uint32_t rule_of_item(struct tn_schema_compiler *c, const struct array *a, uint32_t i)
{
    if (i < a->n_first)
        return tn_schema_rule_of(c, json_array_get(a->first, i), a->first_word, NULL, i);
    return a->rest ? tn_schema_rule_of(c, a->rest, a->rest_word, NULL, TN_NO_PARENT)
                   : c->rules.value;
}

/* [ item , item ... ]: the required items, then the optional ones; a loop where there is no
 * maximum. */
static void add_items(struct tn_schema_compiler *c, const struct array *a, uint32_t start)
{
    struct tern_grammar *g = c->g;
    const uint32_t min = a->range.min, max = a->range.max;
    const uint32_t close = tn_grammar_state(g), first = tn_grammar_state(g);
    tn_grammar_call(g, tn_grammar_text(g, start, "[", 1), c->rules.space, first);
    tn_grammar_end(g, tn_grammar_text(g, close, "]", 1));
    if (min == 0)
        tn_grammar_empty(g, first, close);
    uint32_t before = first;
    for (uint32_t i = 1; i <= max && !g->failed; i++) {
        const uint32_t after = tn_grammar_state(g);
        tn_grammar_call(g, before, rule_of_item(c, a, i - 1), after);
        if (i >= min)
            tn_grammar_call(g, after, c->rules.space, close);
        if (i == max)
            return;
        const uint32_t comma = tn_grammar_text(g, after, ",", 1);
        /* the first loop state may also close */
        const bool is_loop =
            max == TN_NO_MAXIMUM && i >= TN_MAX(min, 2) && i > a->n_first;
        const uint32_t next = is_loop ? before : tn_grammar_state(g);
        tn_grammar_call(g, comma, c->rules.space, next);
        if (is_loop)
            return;
        before = next;
    }
}

/* ---- items that differ ---- */

/* Follows references; NULL: they do not end at a schema, or have other keywords beside them. */
static const json_t *target_of(struct tn_schema_compiler *c, const json_t *s)
{
    static const char *const words[] = {"$ref"};
    for (uint32_t i = 0; i < TERN_GRAMMAR_MAX_DEPTH; i++) {
        const char *reference = json_string_value(json_object_get(s, "$ref"));
        if (!reference)
            return s;
        if (!tn_schema_check_words(c, s, words, 1, " together with \"$ref\""))
            return NULL;
        s = tn_schema_find(c->root, reference);
    }
    return NULL;
}

/* JSON has no integers: 1 and 1.0 are equal. */
static bool is_same(const json_t *a, const json_t *b)
{
    const struct tn_decimal x = tn_decimal_of(a), y = tn_decimal_of(b);
    return json_is_number(a) && json_is_number(b) ? tn_decimal_compare(&x, &y) == 0
                                                  : json_equal(a, b);
}

/* The rules of the distinct values.  0: there are none, or too many, or numbers within a value. */
static uint32_t find_values(struct tn_schema_compiler *c, const json_t *values,
                            uint32_t rules[MAX_UNIQUE])
{
    const json_t *distinct[MAX_UNIQUE];
    uint32_t n = 0;
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        uint32_t k = 0;
        while (k < n && !is_same(distinct[k], value))
            k++;
        if (k < n)
            continue;
        if (n == MAX_UNIQUE || json_is_array(value) || json_is_object(value))
            return 0;
        distinct[n] = value;
        rules[n] = tn_grammar_state(c->g);
        tn_schema_add_value(c, value, rules[n++]);
    }
    return n;
}

static uint32_t count_bits(uint32_t set)
{
    uint32_t n = 0;
    for (; set; set &= set - 1)
        n++;
    return n;
}

/* after[set]: the state after the items of the set, in any order; before[set]: a comma later. */
static void add_sets(struct tn_schema_compiler *c, const struct array *a, uint32_t start,
                     const uint32_t *rules, uint32_t n)
{
    struct tern_grammar *g = c->g;
    uint32_t after[1u << MAX_UNIQUE] = {0};
    const uint32_t close = tn_grammar_state(g), max = TN_MIN(a->range.max, n);
    after[0] = tn_grammar_text(g, start, "[", 1);
    tn_grammar_end(g, tn_grammar_text(g, close, "]", 1));
    for (uint32_t set = 0; set < 1u << n && !g->failed; set++) {
        const uint32_t n_items = count_bits(set);
        if (n_items <= max && n_items >= a->range.min)
            tn_grammar_call(g, after[set], c->rules.space, close);
        if (n_items >= max)
            continue;
        const uint32_t before = tn_grammar_state(g);
        tn_grammar_call(g, set ? tn_grammar_text(g, after[set], ",", 1) : after[set],
                        c->rules.space, before);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t with = set | 1u << i;
            if (with == set)
                continue;
            after[with] = after[with] ? after[with] : tn_grammar_state(g);
            tn_grammar_call(g, before, rules[i], after[with]);
        }
    }
}

static bool add_unique(struct tn_schema_compiler *c, const struct array *a, uint32_t start)
{
    const json_t *s = a->first ? NULL : target_of(c, a->rest), *values = NULL;
    uint32_t rules[MAX_UNIQUE], n = 0, types;
    if (json_object_get(s, "enum") || json_object_get(s, "const")) {
        values = tn_schema_enum_values(c, s);
        if (!values)
            return c->g->failed;
        n = find_values(c, values, rules);
    } else if (s && tn_schema_read_types(c, s, &types) && types == 1u << TN_TYPE_BOOLEAN) {
        json_t *both = json_pack("[b, b]", 0, 1);
        n = tn_schema_keep(c, both) ? find_values(c, both, rules) : 0;
    }
    if (c->g->failed || c->status != TERN_OK)
        return c->g->failed;
    if (n == 0)
        return tn_schema_refuse(c, TERN_UNSUPPORTED,
                                "\"uniqueItems\" is supported for items that are an \"enum\" of at "
                                "most %u strings, numbers, booleans and null: a grammar cannot "
                                "remember other items", MAX_UNIQUE);
    if (a->range.min > n)
        return tn_schema_refuse(c, TERN_USAGE, "\"minItems\" is %u, but only %u different items "
                                               "exist", a->range.min, n);
    add_sets(c, a, start, rules, n);
    return true;
}

bool tn_schema_array(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    struct array a = {0};
    if (!read_array(c, s, &a))
        return false;
    if (a.is_unique)
        return add_unique(c, &a, start);
    add_items(c, &a, start);
    return true;
}

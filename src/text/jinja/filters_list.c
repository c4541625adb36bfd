/* SPDX-License-Identifier: MIT
 *
 * Filters on sequences: selection, order, grouping.
 *
 * Python evaluates several of them lazily; here they are computed at once and marked as iterators,
 * so that templates see the same errors.
 */
#include "text/jinja/filters.h"

#include <string.h>

#include "text/jinja/strings.h"

static struct tn_jvalue new_list(struct tn_jrun *run)
{
    return tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, 0));
}

/* Python returns a lazy iterator here; the computed list behaves like one. */
static struct tn_jvalue as_iterator(struct tn_jvalue list)
{
    if (list.type == TN_J_LIST)
        list.type = TN_J_ITERATOR;
    return list;
}

static struct tn_jname name_of(const struct tn_jstring *s)
{
    return (struct tn_jname){s->bytes, s->n};
}

/* item.a.b.0: attributes and indexes separated by dots; or item[number]. */
static struct tn_jvalue follow(struct tn_jrun *run, struct tn_jvalue item,
                               struct tn_jvalue attribute)
{
    if (attribute.type == TN_J_INT)
        return tn_jrun_item(run, item, attribute);
    const struct tn_jstring *path = tn_jrun_string(run, attribute, "an attribute");
    for (size_t at = 0; at <= path->n && run->status == TERN_OK;) {
        const char *dot = at < path->n ? memchr(path->bytes + at, '.', path->n - at) : NULL;
        size_t end = dot ? (size_t)(dot - path->bytes) : path->n;
        bool is_number = end > at;
        int64_t number = 0;
        for (size_t i = at; i < end && is_number; i++) {
            is_number = path->bytes[i] >= '0' && path->bytes[i] <= '9' && i - at < 9;
            number = number * 10 + (path->bytes[i] - '0');
        }
        item = is_number ? tn_jrun_item(run, item, tn_j_int(number))
                         : tn_jrun_attribute(run, item,
                                             (struct tn_jname){path->bytes + at, end - at}, true);
        at = end + 1;
    }
    return item;
}

struct tn_jvalue tn_jrun_map_attribute(struct tn_jrun *run, struct tn_jvalue items,
                                       struct tn_jvalue attribute,
                                       const struct tn_jvalue *otherwise)
{
    struct tn_jvalue list = new_list(run);
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++) {
        struct tn_jvalue item = follow(run, items.list->items[i], attribute);
        if (item.type == TN_J_UNDEFINED && otherwise)
            item = *otherwise;
        tn_jrun_add(run, list, item);
    }
    return list;
}

/* The arguments from `first` on. */
static struct tn_jargs rest_of(const struct tn_jargs *args, size_t first)
{
    struct tn_jargs rest = *args;
    if (args->n == 0)
        return rest; /* items may be NULL */
    rest.items += TN_MIN(first, args->n);
    rest.n -= TN_MIN(first, args->n);
    return rest;
}

struct tn_jvalue tn_jfilter_map(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    if (!tn_j_is_true(v))
        return as_iterator(new_list(run));
    struct tn_jvalue items = tn_jrun_items(run, v);
    if (args->n == 0) {
        const struct tn_jvalue *attribute = tn_jargs_get(args, 0, "attribute");
        return attribute ? as_iterator(tn_jrun_map_attribute(run, items, *attribute,
                                                             tn_jargs_get(args, 1, "default")))
                         : tn_jrun_fail(run, TERN_USAGE, "map needs an attribute or a filter");
    }
    const struct tn_jstring *filter = tn_jrun_string(run, args->items[0], "the filter of map");
    struct tn_jargs rest = rest_of(args, 1);
    struct tn_jvalue list = new_list(run);
    if (!tn_jrun_enter(run)) /* the filter may be map */
        return v;
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++)
        tn_jrun_add(run, list, tn_jrun_filter(run, name_of(filter), items.list->items[i], &rest));
    run->depth--;
    return as_iterator(list);
}

/* ---- select and its relatives ---- */

/* Keeps the items whose test (the first argument; default: truth) holds, or does not; the test may
 * be of an attribute of each item, which precedes it in the arguments. */
struct tn_jvalue tn_jfilter_select(struct tn_jrun *run, const struct tn_jargs *args)
{
    const bool wanted = args->how & TN_SELECT, by_attribute = args->how & TN_BY_ATTRIBUTE;
    if (!tn_j_is_true(args->self))
        return as_iterator(new_list(run));
    struct tn_jvalue items = tn_jrun_items(run, args->self), list = new_list(run);
    size_t first = by_attribute;
    if (by_attribute && args->n == 0)
        return tn_jrun_fail(run, TERN_USAGE, "selectattr and rejectattr need an attribute");
    const struct tn_jstring *test =
        args->n > first ? tn_jrun_string(run, args->items[first], "the name of a test") : NULL;
    struct tn_jargs rest = rest_of(args, first + 1);
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++) {
        struct tn_jvalue item = items.list->items[i];
        struct tn_jvalue tested = by_attribute ? follow(run, item, args->items[0]) : item;
        bool holds = test ? tn_jrun_test(run, name_of(test), tested, &rest) : tn_j_is_true(tested);
        if (holds == wanted)
            tn_jrun_add(run, list, item);
    }
    return as_iterator(list);
}

/* ---- first, last, list, reverse ---- */

struct tn_jvalue tn_jfilter_first(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue items = tn_jrun_items(run, args->self);
    return run->status == TERN_OK && items.list->n ? items.list->items[0] : (struct tn_jvalue){0};
}

struct tn_jvalue tn_jfilter_last(struct tn_jrun *run, const struct tn_jargs *args)
{
    if (args->self.type == TN_J_ITERATOR)
        return tn_jrun_fail(run, TERN_USAGE,
                            "the result of a filter has no last item; convert it with |list");
    struct tn_jvalue items = tn_jrun_items(run, args->self);
    return run->status == TERN_OK && items.list->n ? items.list->items[items.list->n - 1]
                                                   : (struct tn_jvalue){0};
}

/* Copies the items, so that the caller may reorder them without changing v. */
static struct tn_jvalue copy_items(struct tn_jrun *run, struct tn_jvalue v)
{
    struct tn_jvalue items = tn_jrun_items(run, v), list = new_list(run);
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++)
        tn_jrun_add(run, list, items.list->items[i]);
    return list;
}

struct tn_jvalue tn_jfilter_list(struct tn_jrun *run, const struct tn_jargs *args)
{
    return copy_items(run, args->self);
}

struct tn_jvalue tn_jfilter_reverse(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    struct tn_jvalue items = tn_jrun_items(run, v), list = new_list(run);
    for (size_t i = run->status == TERN_OK ? items.list->n : 0; i-- > 0 && run->status == TERN_OK;)
        tn_jrun_add(run, list, items.list->items[i]);
    if (v.type == TN_J_STRING && run->status == TERN_OK)
        return tn_jrun_join(run, NULL, list.list);
    return v.type == TN_J_ITERATOR ? list : as_iterator(list);
}

struct tn_jvalue tn_jfilter_items(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    if (v.type == TN_J_UNDEFINED)
        return as_iterator(new_list(run));
    if (v.type != TN_J_DICT)
        return tn_jrun_fail(run, TERN_USAGE, "items does not work on a %s", tn_j_type_name(v));
    struct tn_jmethod method = {v, {"items", 5}};
    return as_iterator(tn_jrun_method(run, &method, args));
}

/* ---- order ---- */

/* The sort key of an item: itself or an attribute, folded to lower case unless is_case_sensitive.
 */
static struct tn_jvalue order_key(struct tn_jrun *run, struct tn_jvalue item,
                                  const struct tn_jvalue *attribute, bool is_case_sensitive)
{
    if (attribute && attribute->type != TN_J_NONE)
        item = follow(run, item, *attribute);
    return item.type == TN_J_STRING && !is_case_sensitive
               ? tn_jrun_case(run, item.string, TN_CASE_LOWER)
               : item;
}

/* Sorts pairs by key.  Stable, also when reversed.  may_be_equal: keys without an order (such as
 * none) are allowed if all of them are equal. */
static void sort_pairs(struct tn_jrun *run, struct tn_jpair *pairs, size_t n, bool is_reverse,
                       bool may_be_equal)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && run->status == TERN_OK; k--) {
            int order;
            if (may_be_equal && tn_j_equal(pairs[k].key, pairs[k - 1].key, &run->work))
                break;
            if (!tn_j_compare(pairs[k].key, pairs[k - 1].key, &order, &run->work)) {
                tn_jrun_fail(run, TERN_USAGE, "a %s and a %s cannot be ordered",
                             tn_j_type_name(pairs[k].key), tn_j_type_name(pairs[k - 1].key));
                return;
            }
            if (!tn_jrun_step(run, 1) || (is_reverse ? order != 1 : order != -1))
                break;
            struct tn_jpair pair = pairs[k];
            pairs[k] = pairs[k - 1];
            pairs[k - 1] = pair;
        }
}

/* Items with their sort keys, unsorted; NULL on failure. */
static struct tn_jpair *make_pairs(struct tn_jrun *run, struct tn_jvalue items,
                                   const struct tn_jvalue *attribute, bool is_case_sensitive)
{
    if (run->status != TERN_OK)
        return NULL;
    struct tn_jpair *pairs = tn_jrun_take(run, (items.list->n + 1) * sizeof *pairs);
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++)
        pairs[i] =
            (struct tn_jpair){order_key(run, items.list->items[i], attribute, is_case_sensitive),
                              items.list->items[i]};
    return run->status == TERN_OK ? pairs : NULL;
}

static struct tn_jvalue list_of_values(struct tn_jrun *run, const struct tn_jpair *pairs, size_t n)
{
    struct tn_jvalue list = new_list(run);
    for (size_t i = 0; i < n && run->status == TERN_OK; i++)
        tn_jrun_add(run, list, pairs[i].value);
    return list;
}

struct tn_jvalue tn_jfilter_sort(struct tn_jrun *run, const struct tn_jargs *args)
{
    bool is_reverse = tn_j_is_true(tn_jargs_or(args, 0, "reverse", tn_j_bool(false)));
    bool is_case_sensitive = tn_j_is_true(tn_jargs_or(args, 1, "case_sensitive", tn_j_bool(false)));
    struct tn_jvalue items = tn_jrun_items(run, args->self);
    const struct tn_jvalue *attribute = tn_jargs_get(args, 2, "attribute");
    if (attribute && attribute->type == TN_J_STRING && attribute->string->n &&
        memchr(attribute->string->bytes, ',', attribute->string->n))
        return tn_jrun_fail(run, TERN_UNSUPPORTED, "sort by several attributes is not supported");
    struct tn_jpair *pairs = make_pairs(run, items, attribute, is_case_sensitive);
    if (!pairs)
        return args->self;
    sort_pairs(run, pairs, items.list->n, is_reverse, true); /* the keys of Jinja2 are lists */
    return list_of_values(run, pairs, items.list->n);
}

/* Sorts by key, or by value with by="value". */
struct tn_jvalue tn_jfilter_dictsort(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    struct tn_jvalue by = tn_jargs_or(args, 1, "by", tn_jrun_text(run, "key"));
    struct tn_jvalue column = tn_j_int(tn_j_is_text(by, "value", 5));
    bool is_case_sensitive = tn_j_is_true(tn_jargs_or(args, 0, "case_sensitive", tn_j_bool(false)));
    bool is_reverse = tn_j_is_true(tn_jargs_or(args, 2, "reverse", tn_j_bool(false)));
    struct tn_jargs none = {0};
    if (v.type != TN_J_DICT)
        return tn_jrun_fail(run, TERN_USAGE, "dictsort does not work on a %s", tn_j_type_name(v));
    struct tn_jmethod method = {v, {"items", 5}};
    struct tn_jvalue items = tn_jrun_method(run, &method, &none);
    struct tn_jpair *pairs = make_pairs(run, items, &column, is_case_sensitive);
    if (!pairs)
        return v;
    sort_pairs(run, pairs, items.list->n, is_reverse, false);
    return list_of_values(run, pairs, items.list->n);
}

/* The first item of which no other is greater (how: 1) or less (-1). */
struct tn_jvalue tn_jfilter_extreme(struct tn_jrun *run, const struct tn_jargs *args)
{
    bool is_case_sensitive = tn_j_is_true(tn_jargs_or(args, 0, "case_sensitive", tn_j_bool(false)));
    struct tn_jvalue items = tn_jrun_items(run, args->self);
    struct tn_jpair *pairs =
        make_pairs(run, items, tn_jargs_get(args, 1, "attribute"), is_case_sensitive);
    size_t best = 0;
    for (size_t i = 1; pairs && i < items.list->n; i++) {
        int order;
        if (!tn_j_compare(pairs[i].key, pairs[best].key, &order, &run->work))
            return tn_jrun_fail(run, TERN_USAGE, "a %s and a %s cannot be ordered",
                                tn_j_type_name(pairs[i].key), tn_j_type_name(pairs[best].key));
        if (order == args->how)
            best = i;
    }
    return pairs && items.list->n ? pairs[best].value : (struct tn_jvalue){0};
}

struct tn_jvalue tn_jfilter_unique(struct tn_jrun *run, const struct tn_jargs *args)
{
    bool is_case_sensitive = tn_j_is_true(tn_jargs_or(args, 0, "case_sensitive", tn_j_bool(false)));
    struct tn_jvalue items = tn_jrun_items(run, args->self);
    struct tn_jvalue seen = new_list(run), list = new_list(run);
    struct tn_jpair *pairs =
        make_pairs(run, items, tn_jargs_get(args, 1, "attribute"), is_case_sensitive);
    for (size_t i = 0; pairs && i < items.list->n && run->status == TERN_OK; i++) {
        if (!tn_j_is_hashable(pairs[i].key, &run->work))
            return tn_jrun_fail(run, TERN_USAGE, "unique does not work on a %s",
                                tn_j_type_name(pairs[i].key));
        if (tn_jrun_contains(run, seen, pairs[i].key))
            continue;
        tn_jrun_add(run, seen, pairs[i].key);
        tn_jrun_add(run, list, pairs[i].value);
    }
    return as_iterator(list);
}

/* (key, values of n pairs).  The list is complete before it is added to the tuple, which takes its
 * depth then. */
static struct tn_jvalue make_group(struct tn_jrun *run, struct tn_jvalue key,
                                   const struct tn_jpair *pairs, size_t n)
{
    struct tn_jvalue members = list_of_values(run, pairs, n);
    struct tn_jvalue group = tn_jrun_made(run, tn_j_list(run->pool, TN_J_TUPLE, 2));
    if (run->status == TERN_OK && tn_jrun_add(run, group, key))
        tn_jrun_add(run, group, members);
    return group;
}

/* An item's attribute, or `otherwise` (none: no default) if it is missing. */
static struct tn_jvalue group_key(struct tn_jrun *run, struct tn_jvalue item,
                                  struct tn_jvalue attribute, struct tn_jvalue otherwise)
{
    struct tn_jvalue key = follow(run, item, attribute);
    return key.type == TN_J_UNDEFINED && otherwise.type != TN_J_NONE ? otherwise : key;
}

/* A list of (key, items with that key), sorted by key.  The case of keys counts only with
 * case_sensitive; otherwise a group has the key of its first item. */
struct tn_jvalue tn_jfilter_groupby(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue items = tn_jrun_items(run, args->self), groups = new_list(run);
    struct tn_jvalue otherwise = tn_jargs_or(args, 1, "default", tn_j_none());
    bool has_case = tn_j_is_true(tn_jargs_or(args, 2, "case_sensitive", tn_j_bool(false)));
    const struct tn_jvalue *attribute = tn_jargs_get(args, 0, "attribute");
    if (!attribute)
        return tn_jrun_fail(run, TERN_USAGE, "groupby needs an attribute");
    struct tn_jpair *pairs = make_pairs(run, items, NULL, true);
    for (size_t i = 0; pairs && i < items.list->n && run->status == TERN_OK; i++)
        pairs[i].key = order_key(run, group_key(run, pairs[i].value, *attribute, otherwise), NULL,
                                 has_case);
    if (!pairs || run->status != TERN_OK)
        return args->self;
    sort_pairs(run, pairs, items.list->n, false, false);
    for (size_t i = 0, end; i < items.list->n && run->status == TERN_OK; i = end) {
        for (end = i + 1; end < items.list->n; end++)
            if (!tn_j_equal(pairs[end].key, pairs[i].key, &run->work))
                break;
        struct tn_jvalue key = group_key(run, pairs[i].value, *attribute, otherwise);
        tn_jrun_add(run, groups, make_group(run, key, pairs + i, end - i));
    }
    return groups;
}

struct tn_jvalue tn_jfilter_sum(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jvalue *attribute = tn_jargs_get(args, 0, "attribute");
    struct tn_jvalue items = tn_jrun_items(run, args->self),
                     sum = tn_jargs_or(args, 1, "start", tn_j_int(0));
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++) {
        struct tn_jvalue item = items.list->items[i];
        if (attribute && attribute->type != TN_J_NONE)
            item = follow(run, item, *attribute);
        sum = tn_jrun_binary(run, TN_OP_ADD, sum, item);
    }
    return sum;
}

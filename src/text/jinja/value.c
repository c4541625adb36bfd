/* SPDX-License-Identifier: MIT
 *
 * Construction, comparison and lookup of values.
 *
 * Comparison charges steps, because values may share parts and then take far longer to compare than
 * to build.
 */
#include "text/jinja/value.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"

/* ---- constructors ---- */

struct tn_jvalue tn_j_view(struct tn_pool *pool, const char *bytes, const uint8_t *marks, size_t n)
{
    struct tn_jstring *s = tn_pool_take(pool, sizeof *s);
    if (!s)
        return (struct tn_jvalue){0};
    *s = (struct tn_jstring){bytes, marks, n};
    return (struct tn_jvalue){.type = TN_J_STRING, .string = s};
}

struct tn_jvalue tn_j_text(struct tn_pool *pool, const char *bytes, size_t n, bool from_outside)
{
    char *copy = tn_pool_take(pool, n + 1);
    uint8_t *marks = from_outside ? tn_pool_take(pool, n + 1) : NULL;
    if (!copy || (from_outside && !marks))
        return (struct tn_jvalue){0};
    if (n)
        memcpy(copy, bytes, n);
    if (marks)
        memset(marks, 1, n + 1);
    return tn_j_view(pool, copy, marks, n);
}

struct tn_jvalue tn_j_list(struct tn_pool *pool, enum tn_jtype type, size_t capacity)
{
    struct tn_jlist *list = tn_pool_take(pool, sizeof *list);
    if (!list)
        return (struct tn_jvalue){0};
    if (capacity) {
        list->items = tn_pool_take(pool, capacity * sizeof *list->items);
        if (!list->items)
            return (struct tn_jvalue){0};
        list->capacity = capacity;
    }
    return (struct tn_jvalue){.type = type, .list = list};
}

/* Updates *depth for a container that holds v.  false: too deep.  A namespace counts as flat
 * because nothing recurses into it. */
static bool deepen(struct tn_pool *pool, uint32_t *depth, struct tn_jvalue v)
{
    bool is_list = v.type == TN_J_LIST || v.type == TN_J_TUPLE || v.type == TN_J_ITERATOR;
    uint32_t below = is_list ? v.list->depth : v.type == TN_J_DICT ? v.dict->depth : 0;
    if (below >= TN_J_MAX_DEPTH) {
        pool->is_deep = true;
        return false;
    }
    *depth = *depth > below + 1 ? *depth : below + 1;
    return true;
}

bool tn_j_list_add(struct tn_pool *pool, struct tn_jlist *list, struct tn_jvalue item)
{
    struct tn_jvalue *items = NULL;
    if (deepen(pool, &list->depth, item))
        items = tn_pool_grow(pool, list->items, sizeof *items, list->n, &list->capacity);
    if (!items)
        return false;
    list->items = items;
    list->items[list->n++] = item;
    return true;
}

struct tn_jvalue tn_j_dict(struct tn_pool *pool, enum tn_jtype type)
{
    struct tn_jdict *dict = tn_pool_take(pool, sizeof *dict);
    if (!dict)
        return (struct tn_jvalue){0};
    return (struct tn_jvalue){.type = type, .dict = dict};
}

bool tn_j_dict_add(struct tn_pool *pool, struct tn_jdict *dict, struct tn_jvalue key,
                   struct tn_jvalue value)
{
    struct tn_jpair *pairs = NULL;
    if (deepen(pool, &dict->depth, key) && deepen(pool, &dict->depth, value))
        pairs = tn_pool_grow(pool, dict->pairs, sizeof *pairs, dict->n, &dict->capacity);
    if (!pairs)
        return false;
    dict->pairs = pairs;
    dict->pairs[dict->n++] = (struct tn_jpair){key, value};
    return true;
}

bool tn_j_dict_set(struct tn_pool *pool, struct tn_jdict *dict, struct tn_jvalue key,
                   struct tn_jvalue value, struct tn_jwork *work)
{
    struct tn_jvalue *old = (struct tn_jvalue *)tn_j_dict_get(dict, key, work);
    if (!old)
        return tn_j_dict_add(pool, dict, key, value);
    if (!deepen(pool, &dict->depth, key) || !deepen(pool, &dict->depth, value))
        return false;
    *old = value;
    return true;
}

const struct tn_jvalue *tn_j_dict_get(const struct tn_jdict *dict, struct tn_jvalue key,
                                      struct tn_jwork *work)
{
    for (size_t i = 0; i < dict->n; i++)
        if (tn_j_equal(dict->pairs[i].key, key, work))
            return &dict->pairs[i].value;
    return NULL;
}

const struct tn_jvalue *tn_j_dict_find(const struct tn_jdict *dict, const char *key, size_t n_key)
{
    for (size_t i = 0; i < dict->n; i++)
        if (tn_j_is_text(dict->pairs[i].key, key, n_key))
            return &dict->pairs[i].value;
    return NULL;
}

/* ---- steps ---- */

bool tn_jwork_take(struct tn_jwork *work, uint64_t n)
{
    if (work->steps_left < n) {
        work->steps_left = 0;
        return false;
    }
    work->steps_left -= n;
    if (work->steps_left >= work->next_look)
        return work->steps_left > 0;
    work->next_look =
        work->steps_left > TN_J_STEPS_PER_LOOK ? work->steps_left - TN_J_STEPS_PER_LOOK : 0;
    if (work->should_stop && work->should_stop(work->arg)) {
        work->is_stopped = true;
        work->steps_left = 0;
    }
    return work->steps_left > 0;
}

/* ---- comparison ---- */

double tn_j_real(struct tn_jvalue v)
{
    return v.type == TN_J_FLOAT ? v.real : (double)tn_j_integer(v);
}

int64_t tn_j_integer(struct tn_jvalue v)
{
    return v.type == TN_J_BOOL ? v.boolean : v.integer;
}

bool tn_j_is_true(struct tn_jvalue v)
{
    switch (v.type) {
    case TN_J_UNDEFINED:
    case TN_J_NONE:
        return false;
    case TN_J_BOOL:
        return v.boolean;
    case TN_J_INT:
        return v.integer != 0;
    case TN_J_FLOAT:
        return v.real != 0;
    case TN_J_STRING:
        return v.string->n > 0;
    case TN_J_LIST:
    case TN_J_TUPLE:
        return v.list->n > 0;
    case TN_J_DICT:
        return v.dict->n > 0;
    default:
        return true;
    }
}

/* -1, 0 or 1; 2: one of them is NaN. */
static int order_numbers(struct tn_jvalue a, struct tn_jvalue b)
{
    if (a.type != TN_J_FLOAT && b.type != TN_J_FLOAT) {
        int64_t x = tn_j_integer(a), y = tn_j_integer(b);
        return (x > y) - (x < y);
    }
    double x = tn_j_real(a), y = tn_j_real(b);
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

bool tn_j_is_hashable(struct tn_jvalue v, struct tn_jwork *work)
{
    if (v.type == TN_J_TUPLE)
        for (size_t i = 0; i < v.list->n && tn_jwork_take(work, 1); i++)
            if (!tn_j_is_hashable(v.list->items[i], work))
                return false;
    return v.type != TN_J_LIST && v.type != TN_J_DICT;
}

static bool equal_lists(const struct tn_jlist *a, const struct tn_jlist *b, struct tn_jwork *work)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!tn_j_equal(a->items[i], b->items[i], work))
            return false;
    return true;
}

static bool equal_dicts(const struct tn_jdict *a, const struct tn_jdict *b, struct tn_jwork *work)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct tn_jvalue *other = tn_j_dict_get(b, a->pairs[i].key, work);
        if (!other || !tn_j_equal(a->pairs[i].value, *other, work))
            return false;
    }
    return true;
}

bool tn_j_equal(struct tn_jvalue a, struct tn_jvalue b, struct tn_jwork *work)
{
    if (!tn_jwork_take(work, 1))
        return false;
    if (tn_j_is_number(a) && tn_j_is_number(b))
        return order_numbers(a, b) == 0;
    if (a.type != b.type)
        return false;
    switch (a.type) {
    case TN_J_UNDEFINED:
    case TN_J_NONE:
        return true;
    case TN_J_STRING:
        return a.string->n == b.string->n && tn_jwork_take(work, a.string->n / 64) &&
               tn_j_is_text(a, b.string->bytes, b.string->n);
    case TN_J_LIST:
    case TN_J_TUPLE:
        return equal_lists(a.list, b.list, work);
    case TN_J_DICT:
        return equal_dicts(a.dict, b.dict, work);
    default:
        return a.loop == b.loop; /* identity */
    }
}

/* UTF-8 byte order equals code point order. */
static int order_strings(const struct tn_jstring *a, const struct tn_jstring *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int order = n ? memcmp(a->bytes, b->bytes, n) : 0;
    return order ? (order > 0) - (order < 0) : (a->n > b->n) - (a->n < b->n);
}

bool tn_j_compare(struct tn_jvalue a, struct tn_jvalue b, int *order, struct tn_jwork *work)
{
    *order = 0;
    if (tn_j_is_number(a) && tn_j_is_number(b)) {
        *order = order_numbers(a, b);
        return true;
    }
    if (a.type != b.type)
        return false;
    if (a.type == TN_J_STRING) {
        (void)tn_jwork_take(work, TN_MIN(a.string->n, b.string->n) / 64);
        *order = order_strings(a.string, b.string);
        return true;
    }
    if (a.type != TN_J_LIST && a.type != TN_J_TUPLE)
        return false;
    for (size_t i = 0; i < a.list->n && i < b.list->n; i++)
        if (!tn_j_equal(a.list->items[i], b.list->items[i], work))
            return tn_j_compare(a.list->items[i], b.list->items[i], order, work);
    *order = (a.list->n > b.list->n) - (a.list->n < b.list->n);
    return true;
}

const char *tn_j_type_name(struct tn_jvalue v)
{
    static const char *const names[] = {
        [TN_J_UNDEFINED] = "Undefined", [TN_J_NONE] = "NoneType",
        [TN_J_BOOL] = "bool",           [TN_J_INT] = "int",
        [TN_J_FLOAT] = "float",         [TN_J_STRING] = "str",
        [TN_J_LIST] = "list",           [TN_J_TUPLE] = "tuple",
        [TN_J_ITERATOR] = "generator",  [TN_J_DICT] = "dict",
        [TN_J_NAMESPACE] = "namespace", [TN_J_LOOP] = "loop",
        [TN_J_MACRO] = "macro",         [TN_J_FUNCTION] = "function",
        [TN_J_METHOD] = "method",
    };
    return names[v.type];
}

/* ---- characters ---- */

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

size_t tn_j_n_characters(const struct tn_jstring *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += begins_character(s->bytes[i]);
    return n;
}

size_t tn_j_offset(const struct tn_jstring *s, size_t i)
{
    size_t at = 0;
    for (; at < s->n; at++)
        if (begins_character(s->bytes[at]) && i-- == 0)
            return at;
    return s->n;
}

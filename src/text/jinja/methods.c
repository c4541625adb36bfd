/* SPDX-License-Identifier: MIT
 *
 * Methods of strings, dictionaries, lists and loops.
 *
 * Methods that would change a value are refused, as in the sandbox that templates are written for.
 */
#include <string.h>

#include "text/jinja/strings.h"
#include "text/unicode.h"

/* ---- strings ---- */

enum { FROM_START, FROM_END };

/* Argument i as a string; NULL: absent or none. */
static const struct tn_jstring *optional_string(struct tn_jrun *run, const struct tn_jargs *args,
                                                size_t i, const char *name)
{
    const struct tn_jvalue *v = tn_jargs_get(args, i, name);
    return v && v->type != TN_J_NONE ? tn_jrun_string(run, *v, "an argument") : NULL;
}

static const struct tn_jstring *needed_string(struct tn_jrun *run, const struct tn_jargs *args,
                                              size_t i)
{
    return tn_jrun_string(run, tn_jargs_or(args, i, NULL, (struct tn_jvalue){0}), "an argument");
}

static int64_t optional_integer(struct tn_jrun *run, const struct tn_jargs *args, size_t i,
                                const char *name, int64_t otherwise)
{
    return tn_jrun_integer(run, tn_jargs_or(args, i, name, tn_j_int(otherwise)), "an argument");
}

static struct tn_jvalue str_case(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_case(run, args->self.string, (enum tn_jcase)args->how);
}

static struct tn_jvalue str_format(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_format(run, args->self.string, args);
}

static struct tn_jvalue str_strip(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_strip(run, args->self.string, optional_string(run, args, 0, NULL),
                         (enum tn_jside)args->how);
}

static struct tn_jvalue str_split(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_split(run, args->self.string, optional_string(run, args, 0, "sep"),
                         optional_integer(run, args, 1, "maxsplit", -1), args->how == FROM_END);
}

static struct tn_jvalue str_splitlines(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_split_lines(run, args->self.string,
                               optional_integer(run, args, 0, "keepends", 0) != 0);
}

static struct tn_jvalue str_replace(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_replace(run, args->self.string, needed_string(run, args, 0),
                           needed_string(run, args, 1),
                           optional_integer(run, args, 2, "count", -1));
}

static struct tn_jvalue str_join(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue items = tn_jrun_items(run, tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0}));
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++)
        tn_jrun_string(run, items.list->items[i], "an item of join");
    return run->status == TERN_OK ? tn_jrun_join(run, args->self.string, items.list) : items;
}

/* startswith, endswith: with a string or a tuple of strings. */
static struct tn_jvalue str_fits(struct tn_jrun *run, const struct tn_jargs *args)
{
    bool (*fits)(struct tn_jrun *, const struct tn_jstring *, const struct tn_jstring *) =
        args->how == FROM_END ? tn_jstring_ends : tn_jstring_starts;
    struct tn_jvalue what = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    if (args->n > 1)
        return tn_jrun_fail(run, TERN_UNSUPPORTED,
                            "startswith and endswith with a range are not supported");
    if (what.type != TN_J_TUPLE)
        return tn_j_bool(fits(run, args->self.string, tn_jrun_string(run, what, "an argument")));
    for (size_t i = 0; i < what.list->n && run->status == TERN_OK; i++)
        if (fits(run, args->self.string, tn_jrun_string(run, what.list->items[i], "an argument")))
            return tn_j_bool(true);
    return tn_j_bool(false);
}

static struct tn_jvalue str_removeprefix(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *part = needed_string(run, args, 0);
    return tn_jstring_starts(run, args->self.string, part)
               ? tn_jrun_part(run, args->self.string, part->n, args->self.string->n)
               : args->self;
}

static struct tn_jvalue str_removesuffix(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *part = needed_string(run, args, 0);
    return tn_jstring_ends(run, args->self.string, part)
               ? tn_jrun_part(run, args->self.string, 0, args->self.string->n - part->n)
               : args->self;
}

/* Position of the substring in characters; -1: not found. */
static struct tn_jvalue str_find(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *s = args->self.string, *part = needed_string(run, args, 0);
    if (args->n > 1)
        return tn_jrun_fail(run, TERN_UNSUPPORTED, "find with a range is not supported");
    size_t at = args->how == FROM_END ? tn_jstring_find_last(run, s, part, s->n)
                                      : tn_jstring_find(run, s, part, 0);
    if (at > s->n)
        return tn_j_int(-1);
    struct tn_jstring before = {s->bytes, NULL, at};
    return tn_j_int((int64_t)tn_jrun_n_characters(run, &before));
}

static struct tn_jvalue str_index(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue at = str_find(run, args);
    return at.type == TN_J_INT && at.integer < 0
               ? tn_jrun_fail(run, TERN_USAGE, "index: substring not found")
               : at;
}

static struct tn_jvalue str_count(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *part = needed_string(run, args, 0);
    int64_t n = 0;
    if (part->n == 0)
        return tn_j_int((int64_t)tn_jrun_n_characters(run, args->self.string) + 1);
    for (size_t at = 0; run->status == TERN_OK; n++) {
        size_t found = tn_jstring_find(run, args->self.string, part, at);
        if (found > args->self.string->n)
            break;
        at = found + part->n;
    }
    return tn_j_int(n);
}

enum kind { KIND_DIGIT, KIND_LETTER, KIND_ALPHANUMERIC, KIND_SPACE };

static bool is_of_kind(uint32_t c, enum kind kind)
{
    const enum tn_char_class class = tn_char_class(c);
    switch (kind) {
    case KIND_DIGIT: /* ASCII only: others are rare, and Python distinguishes several kinds */
        return c >= '0' && c <= '9';
    case KIND_LETTER:
        return class == TN_CHAR_LETTER;
    case KIND_ALPHANUMERIC:
        return class == TN_CHAR_LETTER || class == TN_CHAR_NUMBER;
    default:
        return tn_char_is_stripped(c);
    }
}

/* isdigit and so on: the string is not empty, and all its characters are of this kind. */
static struct tn_jvalue str_is(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *s = args->self.string;
    for (size_t i = 0; i < s->n && tn_jrun_step(run, 1);) {
        uint32_t c;
        i += tn_utf8_next(s->bytes + i, s->n - i, &c);
        if (!is_of_kind(c, (enum kind)args->how))
            return tn_j_bool(false);
    }
    return tn_j_bool(s->n > 0);
}

/* isupper, islower: some character has the case `how`, and none has the other. */
static struct tn_jvalue str_has_case(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *s = args->self.string;
    bool any = false;
    for (size_t i = 0; i < s->n && tn_jrun_step(run, 1);) {
        uint32_t c;
        i += tn_utf8_next(s->bytes + i, s->n - i, &c);
        bool is_lower = tn_char_upper(c) != c, is_upper = tn_char_lower(c) != c;
        if (args->how == TN_CASE_UPPER ? is_lower : is_upper)
            return tn_j_bool(false);
        any = any || is_lower || is_upper;
    }
    return tn_j_bool(any);
}

/* ---- dictionaries ---- */

enum part { PART_KEY = 1, PART_VALUE = 2, PART_BOTH = 3 };

static struct tn_jvalue dict_list(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jdict *dict = args->self.dict;
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, dict->n));
    for (size_t i = 0; i < dict->n && run->status == TERN_OK; i++) {
        struct tn_jvalue item = args->how == PART_VALUE ? dict->pairs[i].value : dict->pairs[i].key;
        if (args->how == PART_BOTH) {
            item = tn_jrun_made(run, tn_j_list(run->pool, TN_J_TUPLE, 2));
            if (run->status != TERN_OK || !tn_jrun_add(run, item, dict->pairs[i].key) ||
                !tn_jrun_add(run, item, dict->pairs[i].value))
                break;
        }
        tn_jrun_add(run, list, item);
    }
    return list;
}

static struct tn_jvalue dict_get(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue key = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    if (!tn_j_is_hashable(key, &run->work))
        return tn_jrun_fail(run, TERN_USAGE, "a %s cannot be a key", tn_j_type_name(key));
    const struct tn_jvalue *found = tn_j_dict_get(args->self.dict, key, &run->work);
    return found ? *found : tn_jargs_or(args, 1, NULL, tn_j_none());
}

static struct tn_jvalue same(struct tn_jrun *run, const struct tn_jargs *args)
{
    (void)run;
    return args->self;
}

/* ---- lists ---- */

static struct tn_jvalue list_count(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue item = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    int64_t n = 0;
    for (size_t i = 0; i < args->self.list->n; i++)
        n += tn_j_equal(args->self.list->items[i], item, &run->work);
    return tn_j_int(n);
}

static struct tn_jvalue list_index(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue item = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    for (size_t i = 0; i < args->self.list->n; i++)
        if (tn_j_equal(args->self.list->items[i], item, &run->work))
            return tn_j_int((int64_t)i);
    return tn_jrun_fail(run, TERN_USAGE, "index: the value is not in the list");
}

/* Mutating methods, which the sandbox forbids. */
static struct tn_jvalue refuse_change(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_fail(run, TERN_USAGE, "a %s cannot be changed by a template",
                        tn_j_type_name(args->self));
}

/* ---- loops ---- */

static struct tn_jvalue loop_cycle(struct tn_jrun *run, const struct tn_jargs *args)
{
    return args->n ? args->items[args->self.loop->index0 % args->n]
                   : tn_jrun_fail(run, TERN_USAGE, "loop.cycle has nothing to choose from");
}

static struct tn_jvalue loop_changed(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue now = tn_jrun_made(run, tn_j_list(run->pool, TN_J_TUPLE, args->n));
    for (size_t i = 0; i < args->n && run->status == TERN_OK; i++)
        tn_jrun_add(run, now, args->items[i]);
    bool changed =
        !args->self.loop->was_changed_called ||
        (run->status == TERN_OK && !tn_j_equal(args->self.loop->changed, now, &run->work));
    args->self.loop->was_changed_called = true;
    args->self.loop->changed = now;
    return tn_j_bool(changed);
}

/* ---- the table ---- */

static const struct method {
    enum tn_jtype type;
    const char *name;
    tn_jfunction_fn *call;
    int how;
} methods[] = {
    {TN_J_STRING, "upper", str_case, TN_CASE_UPPER},
    {TN_J_STRING, "lower", str_case, TN_CASE_LOWER},
    {TN_J_STRING, "capitalize", str_case, TN_CASE_CAPITAL},
    {TN_J_STRING, "title", str_case, TN_CASE_TITLE},
    {TN_J_STRING, "strip", str_strip, TN_SIDE_BOTH},
    {TN_J_STRING, "lstrip", str_strip, TN_SIDE_LEFT},
    {TN_J_STRING, "rstrip", str_strip, TN_SIDE_RIGHT},
    {TN_J_STRING, "split", str_split, FROM_START},
    {TN_J_STRING, "rsplit", str_split, FROM_END},
    {TN_J_STRING, "splitlines", str_splitlines, 0},
    {TN_J_STRING, "replace", str_replace, 0},
    {TN_J_STRING, "format", str_format, 0},
    {TN_J_STRING, "join", str_join, 0},
    {TN_J_STRING, "startswith", str_fits, FROM_START},
    {TN_J_STRING, "endswith", str_fits, FROM_END},
    {TN_J_STRING, "removeprefix", str_removeprefix, 0},
    {TN_J_STRING, "removesuffix", str_removesuffix, 0},
    {TN_J_STRING, "find", str_find, FROM_START},
    {TN_J_STRING, "rfind", str_find, FROM_END},
    {TN_J_STRING, "index", str_index, FROM_START},
    {TN_J_STRING, "count", str_count, 0},
    {TN_J_STRING, "isdigit", str_is, KIND_DIGIT},
    {TN_J_STRING, "isdecimal", str_is, KIND_DIGIT},
    {TN_J_STRING, "isnumeric", str_is, KIND_DIGIT},
    {TN_J_STRING, "isalpha", str_is, KIND_LETTER},
    {TN_J_STRING, "isalnum", str_is, KIND_ALPHANUMERIC},
    {TN_J_STRING, "isspace", str_is, KIND_SPACE},
    {TN_J_STRING, "isupper", str_has_case, TN_CASE_UPPER},
    {TN_J_STRING, "islower", str_has_case, TN_CASE_LOWER},
    {TN_J_DICT, "items", dict_list, PART_BOTH},
    {TN_J_DICT, "keys", dict_list, PART_KEY},
    {TN_J_DICT, "values", dict_list, PART_VALUE},
    {TN_J_DICT, "get", dict_get, 0},
    {TN_J_DICT, "copy", same, 0},
    {TN_J_DICT, "update", refuse_change, 0},
    {TN_J_DICT, "pop", refuse_change, 0},
    {TN_J_DICT, "popitem", refuse_change, 0},
    {TN_J_DICT, "clear", refuse_change, 0},
    {TN_J_DICT, "setdefault", refuse_change, 0},
    {TN_J_LIST, "count", list_count, 0},
    {TN_J_LIST, "index", list_index, 0},
    {TN_J_LIST, "copy", same, 0},
    {TN_J_LIST, "append", refuse_change, 0},
    {TN_J_LIST, "extend", refuse_change, 0},
    {TN_J_LIST, "insert", refuse_change, 0},
    {TN_J_LIST, "pop", refuse_change, 0},
    {TN_J_LIST, "remove", refuse_change, 0},
    {TN_J_LIST, "clear", refuse_change, 0},
    {TN_J_LIST, "reverse", refuse_change, 0},
    {TN_J_LIST, "sort", refuse_change, 0},
    {TN_J_TUPLE, "count", list_count, 0},
    {TN_J_TUPLE, "index", list_index, 0},
    {TN_J_LOOP, "cycle", loop_cycle, 0},
    {TN_J_LOOP, "changed", loop_changed, 0},
};

static const struct method *find_method(struct tn_jvalue v, struct tn_jname name)
{
    for (size_t i = 0; i < TN_COUNT_OF(methods); i++)
        if (methods[i].type == v.type && tn_jname_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}

bool tn_jrun_has_method(struct tn_jvalue v, struct tn_jname name)
{
    return find_method(v, name) != NULL;
}

struct tn_jvalue tn_jrun_method(struct tn_jrun *run, const struct tn_jmethod *method,
                                const struct tn_jargs *args)
{
    const struct method *row = find_method(method->self, method->name);
    const struct tn_jargs own = tn_jargs_for(method->self, row->how, args);
    return row->call(run, &own);
}

/* SPDX-License-Identifier: MIT
 *
 * Methods of strings, dictionaries, lists and loops.
 *
 * Methods that would change a value are refused, as in the sandbox that templates are written for.
 */
#include <string.h>

#include "text/jinja/strings.h"
#include "text/unicode.h"

typedef struct tn_jvalue method_fn(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args);

/* ---- strings ---- */

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

static struct tn_jvalue str_upper(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    (void)args;
    return tn_jrun_case(run, self.string, TN_CASE_UPPER);
}

static struct tn_jvalue str_lower(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    (void)args;
    return tn_jrun_case(run, self.string, TN_CASE_LOWER);
}

static struct tn_jvalue str_format(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    return tn_jrun_format(run, self.string, args);
}

static struct tn_jvalue str_capitalize(struct tn_jrun *run, struct tn_jvalue self,
                                       const struct tn_jargs *args)
{
    (void)args;
    return tn_jrun_case(run, self.string, TN_CASE_CAPITAL);
}

static struct tn_jvalue str_title(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    (void)args;
    return tn_jrun_case(run, self.string, TN_CASE_TITLE);
}

static struct tn_jvalue str_strip(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    return tn_jrun_strip(run, self.string, optional_string(run, args, 0, NULL), TN_SIDE_BOTH);
}

static struct tn_jvalue str_lstrip(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    return tn_jrun_strip(run, self.string, optional_string(run, args, 0, NULL), TN_SIDE_LEFT);
}

static struct tn_jvalue str_rstrip(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    return tn_jrun_strip(run, self.string, optional_string(run, args, 0, NULL), TN_SIDE_RIGHT);
}

static struct tn_jvalue str_split(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    return tn_jrun_split(run, self.string, optional_string(run, args, 0, "sep"),
                         optional_integer(run, args, 1, "maxsplit", -1), false);
}

static struct tn_jvalue str_rsplit(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    return tn_jrun_split(run, self.string, optional_string(run, args, 0, "sep"),
                         optional_integer(run, args, 1, "maxsplit", -1), true);
}

static struct tn_jvalue str_splitlines(struct tn_jrun *run, struct tn_jvalue self,
                                       const struct tn_jargs *args)
{
    return tn_jrun_split_lines(run, self.string,
                               optional_integer(run, args, 0, "keepends", 0) != 0);
}

static struct tn_jvalue str_replace(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    return tn_jrun_replace(run, self.string, needed_string(run, args, 0),
                           needed_string(run, args, 1),
                           optional_integer(run, args, 2, "count", -1));
}

static struct tn_jvalue str_join(struct tn_jrun *run, struct tn_jvalue self,
                                 const struct tn_jargs *args)
{
    struct tn_jvalue items = tn_jrun_items(run, tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0}));
    for (size_t i = 0; run->status == TERN_OK && i < items.list->n; i++)
        tn_jrun_string(run, items.list->items[i], "an item of join");
    return run->status == TERN_OK ? tn_jrun_join(run, self.string, items.list) : items;
}

typedef bool fits_fn(struct tn_jrun *run, const struct tn_jstring *s,
                     const struct tn_jstring *part);

/* startswith, endswith: with a string or a tuple of strings. */
static struct tn_jvalue str_fits(struct tn_jrun *run, struct tn_jvalue self,
                                 const struct tn_jargs *args, fits_fn *fits)
{
    struct tn_jvalue what = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    if (args->n > 1)
        return tn_jrun_fail(run, TERN_UNSUPPORTED,
                            "startswith and endswith with a range are not supported");
    if (what.type != TN_J_TUPLE)
        return tn_j_bool(fits(run, self.string, tn_jrun_string(run, what, "an argument")));
    for (size_t i = 0; i < what.list->n && run->status == TERN_OK; i++)
        if (fits(run, self.string, tn_jrun_string(run, what.list->items[i], "an argument")))
            return tn_j_bool(true);
    return tn_j_bool(false);
}

static struct tn_jvalue str_startswith(struct tn_jrun *run, struct tn_jvalue self,
                                       const struct tn_jargs *args)
{
    return str_fits(run, self, args, tn_jstring_starts);
}

static struct tn_jvalue str_endswith(struct tn_jrun *run, struct tn_jvalue self,
                                     const struct tn_jargs *args)
{
    return str_fits(run, self, args, tn_jstring_ends);
}

static struct tn_jvalue str_removeprefix(struct tn_jrun *run, struct tn_jvalue self,
                                         const struct tn_jargs *args)
{
    const struct tn_jstring *part = needed_string(run, args, 0);
    return tn_jstring_starts(run, self.string, part)
               ? tn_jrun_part(run, self.string, part->n, self.string->n)
               : self;
}

static struct tn_jvalue str_removesuffix(struct tn_jrun *run, struct tn_jvalue self,
                                         const struct tn_jargs *args)
{
    const struct tn_jstring *part = needed_string(run, args, 0);
    return tn_jstring_ends(run, self.string, part)
               ? tn_jrun_part(run, self.string, 0, self.string->n - part->n)
               : self;
}

/* Position of the substring in characters; -1: not found. */
static struct tn_jvalue str_position(struct tn_jrun *run, struct tn_jvalue self,
                                     const struct tn_jargs *args, bool is_last)
{
    const struct tn_jstring *part = needed_string(run, args, 0);
    if (args->n > 1)
        return tn_jrun_fail(run, TERN_UNSUPPORTED, "find with a range is not supported");
    size_t at = is_last ? tn_jstring_find_last(run, self.string, part, self.string->n)
                        : tn_jstring_find(run, self.string, part, 0);
    if (at > self.string->n)
        return tn_j_int(-1);
    struct tn_jstring before = {self.string->bytes, NULL, at};
    return tn_j_int((int64_t)tn_jrun_n_characters(run, &before));
}

static struct tn_jvalue str_find(struct tn_jrun *run, struct tn_jvalue self,
                                 const struct tn_jargs *args)
{
    return str_position(run, self, args, false);
}

static struct tn_jvalue str_rfind(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    return str_position(run, self, args, true);
}

static struct tn_jvalue str_index(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    struct tn_jvalue at = str_position(run, self, args, false);
    return at.type == TN_J_INT && at.integer < 0
               ? tn_jrun_fail(run, TERN_USAGE, "index: substring not found")
               : at;
}

static struct tn_jvalue str_count(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    const struct tn_jstring *part = needed_string(run, args, 0);
    int64_t n = 0;
    if (part->n == 0)
        return tn_j_int((int64_t)tn_jrun_n_characters(run, self.string) + 1);
    for (size_t at = 0; run->status == TERN_OK; n++) {
        size_t found = tn_jstring_find(run, self.string, part, at);
        if (found > self.string->n)
            break;
        at = found + part->n;
    }
    return tn_j_int(n);
}

/* True if the string is not empty and all its characters are of this kind. */
static struct tn_jvalue all_are(struct tn_jrun *run, struct tn_jvalue self,
                                bool (*is_kind)(uint32_t c))
{
    const struct tn_jstring *s = self.string;
    for (size_t i = 0; i < s->n && tn_jrun_step(run, 1);) {
        uint32_t c;
        i += tn_utf8_next(s->bytes + i, s->n - i, &c);
        if (!is_kind(c))
            return tn_j_bool(false);
    }
    return tn_j_bool(s->n > 0);
}

static bool is_decimal(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_alphabetic(uint32_t c)
{
    return tn_char_class(c) == TN_CHAR_LETTER;
}

static bool is_alphanumeric(uint32_t c)
{
    return is_alphabetic(c) || tn_char_class(c) == TN_CHAR_NUMBER;
}

static bool is_blank(uint32_t c)
{
    return tn_char_class(c) == TN_CHAR_SPACE || (c >= 0x1C && c <= 0x1F);
}

/* ASCII digits only: others are rare, and Python distinguishes several kinds of them. */
static struct tn_jvalue str_isdigit(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    (void)args;
    return all_are(run, self, is_decimal);
}

static struct tn_jvalue str_isalpha(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    (void)args;
    return all_are(run, self, is_alphabetic);
}

static struct tn_jvalue str_isalnum(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    (void)args;
    return all_are(run, self, is_alphanumeric);
}

static struct tn_jvalue str_isspace(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    (void)args;
    return all_are(run, self, is_blank);
}

/* isupper, islower: some character has a case, and none has the other. */
static struct tn_jvalue has_only(struct tn_jrun *run, struct tn_jvalue self, bool wants_upper)
{
    bool any = false;
    for (size_t i = 0; i < self.string->n && tn_jrun_step(run, 1);) {
        uint32_t c;
        i += tn_utf8_next(self.string->bytes + i, self.string->n - i, &c);
        bool is_lower = tn_char_upper(c) != c, is_upper = tn_char_lower(c) != c;
        if (wants_upper ? is_lower : is_upper)
            return tn_j_bool(false);
        any = any || is_lower || is_upper;
    }
    return tn_j_bool(any);
}

static struct tn_jvalue str_isupper(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    (void)args;
    return has_only(run, self, true);
}

static struct tn_jvalue str_islower(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    (void)args;
    return has_only(run, self, false);
}

/* ---- dictionaries ---- */

static struct tn_jvalue dict_list(struct tn_jrun *run, const struct tn_jdict *dict, bool keys,
                                  bool values)
{
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, dict->n));
    for (size_t i = 0; i < dict->n && run->status == TERN_OK; i++) {
        struct tn_jvalue item = keys ? dict->pairs[i].key : dict->pairs[i].value;
        if (keys && values) {
            item = tn_jrun_made(run, tn_j_list(run->pool, TN_J_TUPLE, 2));
            if (run->status != TERN_OK || !tn_jrun_add(run, item, dict->pairs[i].key) ||
                !tn_jrun_add(run, item, dict->pairs[i].value))
                break;
        }
        tn_jrun_add(run, list, item);
    }
    return list;
}

static struct tn_jvalue dict_items(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    (void)args;
    return dict_list(run, self.dict, true, true);
}

static struct tn_jvalue dict_keys(struct tn_jrun *run, struct tn_jvalue self,
                                  const struct tn_jargs *args)
{
    (void)args;
    return dict_list(run, self.dict, true, false);
}

static struct tn_jvalue dict_values(struct tn_jrun *run, struct tn_jvalue self,
                                    const struct tn_jargs *args)
{
    (void)args;
    return dict_list(run, self.dict, false, true);
}

static struct tn_jvalue dict_get(struct tn_jrun *run, struct tn_jvalue self,
                                 const struct tn_jargs *args)
{
    struct tn_jvalue key = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    if (!tn_j_is_hashable(key, &run->work))
        return tn_jrun_fail(run, TERN_USAGE, "a %s cannot be a key", tn_j_type_name(key));
    const struct tn_jvalue *found = tn_j_dict_get(self.dict, key, &run->work);
    return found ? *found : tn_jargs_or(args, 1, NULL, tn_j_none());
}

static struct tn_jvalue same(struct tn_jrun *run, struct tn_jvalue self,
                             const struct tn_jargs *args)
{
    (void)run, (void)args;
    return self;
}

/* ---- lists ---- */

static struct tn_jvalue list_count(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    struct tn_jvalue item = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    int64_t n = 0;
    for (size_t i = 0; i < self.list->n; i++)
        n += tn_j_equal(self.list->items[i], item, &run->work);
    return tn_j_int(n);
}

static struct tn_jvalue list_index(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    struct tn_jvalue item = tn_jargs_or(args, 0, NULL, (struct tn_jvalue){0});
    for (size_t i = 0; i < self.list->n; i++)
        if (tn_j_equal(self.list->items[i], item, &run->work))
            return tn_j_int((int64_t)i);
    return tn_jrun_fail(run, TERN_USAGE, "index: the value is not in the list");
}

/* Mutating methods, which the sandbox forbids. */
static struct tn_jvalue refuse_change(struct tn_jrun *run, struct tn_jvalue self,
                                      const struct tn_jargs *args)
{
    (void)args;
    return tn_jrun_fail(run, TERN_USAGE, "a %s cannot be changed by a template",
                        tn_j_type_name(self));
}

/* ---- loops ---- */

static struct tn_jvalue loop_cycle(struct tn_jrun *run, struct tn_jvalue self,
                                   const struct tn_jargs *args)
{
    return args->n ? args->items[self.loop->index0 % args->n]
                   : tn_jrun_fail(run, TERN_USAGE, "loop.cycle has nothing to choose from");
}

static struct tn_jvalue loop_changed(struct tn_jrun *run, struct tn_jvalue self,
                                     const struct tn_jargs *args)
{
    struct tn_jvalue now = tn_jrun_made(run, tn_j_list(run->pool, TN_J_TUPLE, args->n));
    for (size_t i = 0; i < args->n && run->status == TERN_OK; i++)
        tn_jrun_add(run, now, args->items[i]);
    bool changed =
        !self.loop->was_changed_called ||
        (run->status == TERN_OK && !tn_j_equal(self.loop->changed, now, &run->work));
    self.loop->was_changed_called = true;
    self.loop->changed = now;
    return tn_j_bool(changed);
}

/* ---- the table ---- */

static const struct {
    enum tn_jtype type;
    const char *name;
    method_fn *call;
} methods[] = {
    {TN_J_STRING, "upper", str_upper},
    {TN_J_STRING, "lower", str_lower},
    {TN_J_STRING, "capitalize", str_capitalize},
    {TN_J_STRING, "title", str_title},
    {TN_J_STRING, "strip", str_strip},
    {TN_J_STRING, "lstrip", str_lstrip},
    {TN_J_STRING, "rstrip", str_rstrip},
    {TN_J_STRING, "split", str_split},
    {TN_J_STRING, "rsplit", str_rsplit},
    {TN_J_STRING, "splitlines", str_splitlines},
    {TN_J_STRING, "replace", str_replace},
    {TN_J_STRING, "format", str_format},
    {TN_J_STRING, "join", str_join},
    {TN_J_STRING, "startswith", str_startswith},
    {TN_J_STRING, "endswith", str_endswith},
    {TN_J_STRING, "removeprefix", str_removeprefix},
    {TN_J_STRING, "removesuffix", str_removesuffix},
    {TN_J_STRING, "find", str_find},
    {TN_J_STRING, "rfind", str_rfind},
    {TN_J_STRING, "index", str_index},
    {TN_J_STRING, "count", str_count},
    {TN_J_STRING, "isdigit", str_isdigit},
    {TN_J_STRING, "isdecimal", str_isdigit},
    {TN_J_STRING, "isnumeric", str_isdigit},
    {TN_J_STRING, "isalpha", str_isalpha},
    {TN_J_STRING, "isalnum", str_isalnum},
    {TN_J_STRING, "isspace", str_isspace},
    {TN_J_STRING, "isupper", str_isupper},
    {TN_J_STRING, "islower", str_islower},
    {TN_J_DICT, "items", dict_items},
    {TN_J_DICT, "keys", dict_keys},
    {TN_J_DICT, "values", dict_values},
    {TN_J_DICT, "get", dict_get},
    {TN_J_DICT, "copy", same},
    {TN_J_DICT, "update", refuse_change},
    {TN_J_DICT, "pop", refuse_change},
    {TN_J_DICT, "popitem", refuse_change},
    {TN_J_DICT, "clear", refuse_change},
    {TN_J_DICT, "setdefault", refuse_change},
    {TN_J_LIST, "count", list_count},
    {TN_J_LIST, "index", list_index},
    {TN_J_LIST, "copy", same},
    {TN_J_LIST, "append", refuse_change},
    {TN_J_LIST, "extend", refuse_change},
    {TN_J_LIST, "insert", refuse_change},
    {TN_J_LIST, "pop", refuse_change},
    {TN_J_LIST, "remove", refuse_change},
    {TN_J_LIST, "clear", refuse_change},
    {TN_J_LIST, "reverse", refuse_change},
    {TN_J_LIST, "sort", refuse_change},
    {TN_J_TUPLE, "count", list_count},
    {TN_J_TUPLE, "index", list_index},
    {TN_J_LOOP, "cycle", loop_cycle},
    {TN_J_LOOP, "changed", loop_changed},
};

static method_fn *find_method(struct tn_jvalue v, struct tn_jname name)
{
    for (size_t i = 0; i < TN_COUNT_OF(methods); i++)
        if (methods[i].type == v.type && tn_jname_is(name, methods[i].name))
            return methods[i].call;
    return NULL;
}

bool tn_jrun_has_method(struct tn_jvalue v, struct tn_jname name)
{
    return find_method(v, name) != NULL;
}

struct tn_jvalue tn_jrun_method(struct tn_jrun *run, const struct tn_jmethod *method,
                                const struct tn_jargs *args)
{
    return find_method(method->self, method->name)(run, method->self, args);
}

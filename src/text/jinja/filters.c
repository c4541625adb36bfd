/* SPDX-License-Identifier: MIT
 *
 * Filters: value | name(arguments).
 *
 * Holds the table of all filters and those on single values; filters_list.c has those on sequences.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_text.h"
#include "text/jinja/filters.h"
#include "text/jinja/strings.h"
#include "text/unicode.h"

/* ---- text ---- */

/* Most text filters convert their input with str() first. */
static const struct tn_jstring *text_of(struct tn_jrun *run, struct tn_jvalue v)
{
    static const struct tn_jstring empty = {"", NULL, 0};
    struct tn_jvalue text = tn_jrun_str(run, v);
    return run->status == TERN_OK ? text.string : &empty;
}

static struct tn_jvalue filter_case(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_case(run, text_of(run, args->self), (enum tn_jcase)args->how);
}

static struct tn_jvalue filter_trim(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jvalue *chars = tn_jargs_get(args, 0, "chars");
    return tn_jrun_strip(
        run, text_of(run, args->self),
        chars && chars->type != TN_J_NONE ? tn_jrun_string(run, *chars, "chars of trim") : NULL,
        TN_SIDE_BOTH);
}

static struct tn_jvalue filter_replace(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jvalue *old = tn_jargs_get(args, 0, "old");
    const struct tn_jvalue *new_text = tn_jargs_get(args, 1, "new");
    struct tn_jvalue count = tn_jargs_or(args, 2, "count", tn_j_none());
    int64_t most = count.type == TN_J_NONE ? -1 : tn_jrun_integer(run, count, "count of replace");
    if (!old || !new_text)
        return tn_jrun_fail(run, TERN_USAGE, "replace needs two texts");
    return tn_jrun_replace(run, text_of(run, args->self), text_of(run, *old),
                           text_of(run, *new_text), most);
}

static struct tn_jvalue filter_string(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_str(run, args->self);
}

/* 'format' | format(a, b) is 'format' % (a, b); names are the keys of a dictionary. */
static struct tn_jvalue filter_format(struct tn_jrun *run, const struct tn_jargs *args)
{
    if (args->n && args->n_keywords)
        return tn_jrun_fail(run, TERN_USAGE, "format takes values or names, not both");
    struct tn_jvalue values =
        args->n_keywords ? tn_jinja_find_function((struct tn_jname){"dict", 4})->call(run, args)
                         : tn_jrun_made(run, tn_j_list(run->pool, TN_J_TUPLE, args->n));
    for (size_t i = 0; i < args->n && run->status == TERN_OK; i++)
        tn_jrun_add(run, values, args->items[i]);
    const struct tn_jstring *format = text_of(run, args->self);
    return run->status == TERN_OK ? tn_jrun_percent(run, format, values) : args->self;
}

static struct tn_jvalue filter_join(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue items = tn_jrun_items(run, args->self);
    struct tn_jvalue separator = tn_jargs_or(args, 0, "d", tn_jrun_text(run, ""));
    const struct tn_jvalue *attribute = tn_jargs_get(args, 1, "attribute");
    if (attribute && attribute->type != TN_J_NONE)
        items = tn_jrun_map_attribute(run, items, *attribute, NULL);
    if (run->status != TERN_OK)
        return args->self;
    return tn_jrun_join(run, text_of(run, separator), items.list);
}

/* Inserts `width` blanks (or a string) before every line that is not empty; before the first line
 * only with `first`, and then even if it is empty. */
static struct tn_jvalue filter_indent(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jsink sink = {0};
    struct tn_jvalue width = tn_jargs_or(args, 0, "width", tn_j_int(4));
    bool first = tn_j_is_true(tn_jargs_or(args, 1, "first", tn_j_bool(false)));
    bool blank = tn_j_is_true(tn_jargs_or(args, 2, "blank", tn_j_bool(false)));
    struct tn_jvalue pad = width.type == TN_J_STRING
                               ? width
                               : tn_jrun_binary(run, TN_OP_MUL, tn_jrun_text(run, " "), width);
    struct tn_jvalue text = tn_jrun_binary(run, TN_OP_ADD, args->self, tn_jrun_text(run, "\n"));
    if (run->status != TERN_OK)
        return args->self;
    struct tn_jvalue lines = tn_jrun_split_lines(run, text.string, false);
    for (size_t i = 0; run->status == TERN_OK && i < lines.list->n; i++) {
        const struct tn_jstring *line = lines.list->items[i].string;
        if (i)
            tn_jsink_puts(run, &sink, "\n");
        if (i ? blank || line->n > 0 : first)
            tn_jsink_put_string(run, &sink, pad.string, 0, pad.string->n);
        tn_jsink_put_string(run, &sink, line, 0, line->n);
    }
    return tn_jsink_take(run, &sink);
}

/* Counts runs of letters, digits and underscores. */
static struct tn_jvalue filter_wordcount(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *s = text_of(run, args->self);
    bool was_word = false;
    int64_t n = 0;
    for (size_t i = 0; i < s->n && tn_jrun_step(run, 1);) {
        uint32_t c;
        i += tn_utf8_next(s->bytes + i, s->n - i, &c);
        enum tn_char_class class = tn_char_class(c);
        bool is_word = class == TN_CHAR_LETTER || class == TN_CHAR_NUMBER || c == '_';
        n += is_word && !was_word;
        was_word = is_word;
    }
    return tn_j_int(n);
}

/* ---- numbers ---- */

static struct tn_jvalue filter_abs(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    if (!tn_j_is_number(v))
        return tn_jrun_fail(run, TERN_USAGE, "abs does not work on a %s", tn_j_type_name(v));
    if (tn_j_real(v) >= 0)
        return v.type == TN_J_BOOL ? tn_j_int(v.boolean) : v;
    return tn_jrun_binary(run, TN_OP_SUB, tn_j_int(0), v);
}

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Copies a number without its underscores, which separate digits.  false: too long, or one does
 * not. */
static bool copy_digits(char *dst, size_t n_dst, const struct tn_jstring *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const bool separates = i > 0 && i + 1 < s->n && is_alphanumeric(s->bytes[i - 1]) &&
                               is_alphanumeric(s->bytes[i + 1]);
        if (n + 1 == n_dst || (s->bytes[i] == '_' && !separates))
            return false;
        if (s->bytes[i] != '_')
            dst[n++] = s->bytes[i];
    }
    dst[n] = '\0';
    return n > 0;
}

/* Parses a number; false if anything but white space follows it in the string.  An integer of more
 * than 64 bits becomes a float. */
static bool parse_number(const struct tn_jstring *s, int base, bool is_float, struct tn_jvalue *out)
{
    char digits[64], *end;
    if (!copy_digits(digits, sizeof digits, s) ||
        ((is_float || base != 16) && strpbrk(digits, "xX")))
        return false;
    errno = 0;
    if (is_float)
        *out = tn_j_float(tn_float_parse(digits, &end));
    else
        *out = tn_j_int(strtoll(digits, &end, base));
    if (!is_float && errno == ERANGE)
        *out = tn_j_float(0x1p64);
    if (end == digits)
        return false;
    return end[strspn(end, " \t\r\n")] == '\0';
}

static struct tn_jvalue filter_int(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    struct tn_jvalue otherwise = tn_jargs_or(args, 0, "default", tn_j_int(0)), x;
    int64_t base = tn_jrun_integer(run, tn_jargs_or(args, 1, "base", tn_j_int(10)), "base of int");
    if (v.type == TN_J_UNDEFINED)
        return tn_jrun_fail(run, TERN_USAGE, "int does not work on an undefined value");
    if (v.type == TN_J_INT || v.type == TN_J_BOOL)
        return tn_j_int(tn_j_integer(v));
    if (v.type == TN_J_STRING && ((base >= 2 && base <= 36 &&
                                   parse_number(v.string, (int)base, false, &x)) ||
                                  parse_number(v.string, 10, true, &x)))
        v = x;
    if (v.type == TN_J_INT)
        return v;
    if (v.type != TN_J_FLOAT || !isfinite(v.real))
        return otherwise;
    return fabs(v.real) < 0x1p63 ? tn_j_int((int64_t)v.real) : tn_jrun_fail_overflow(run);
}

static struct tn_jvalue filter_float(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    struct tn_jvalue x;
    if (v.type == TN_J_UNDEFINED)
        return tn_jrun_fail(run, TERN_USAGE, "float does not work on an undefined value");
    if (tn_j_is_number(v))
        return tn_j_float(tn_j_real(v));
    if (v.type == TN_J_STRING && parse_number(v.string, 10, true, &x))
        return x;
    return tn_jargs_or(args, 0, "default", tn_j_float(0));
}

/* Rounds to a multiple of 10^-places, half to even; changes an integer only for places < 0. */
static struct tn_jvalue round_integer(struct tn_jrun *run, int64_t x, int64_t places)
{
    int64_t unit = 1;
    for (; places < 0; places++)
        if (__builtin_mul_overflow(unit, 10, &unit))
            return tn_j_int(0);
    int64_t n_units = x / unit, rest = x % unit, rounded;
    rest = rest < 0 ? -rest : rest;
    if (rest > unit - rest || (rest == unit - rest && n_units % 2 != 0))
        n_units += x < 0 ? -1 : 1;
    return __builtin_mul_overflow(n_units, unit, &rounded) ? tn_jrun_fail_overflow(run)
                                                           : tn_j_int(rounded);
}

/* Rounds correctly from all digits of x, like Python. */
static double round_float(double x, int64_t places)
{
    char digits[700];
    if (!isfinite(x))
        return x;
    if (places < 0)
        return rint(x / pow(10, (double)-places)) * pow(10, (double)-places);
    snprintf(digits, sizeof digits, "%.*f", (int)places, x);
    return strtod(digits, NULL);
}

/* Python's round(), or "ceil" and "floor" by name. */
static struct tn_jvalue filter_round(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    struct tn_jvalue method = tn_jargs_or(args, 1, "method", tn_jrun_text(run, "common"));
    int64_t places =
        tn_jrun_integer(run, tn_jargs_or(args, 0, "precision", tn_j_int(0)), "precision of round");
    if (!tn_j_is_number(v) || places < -300 || places > 300)
        return tn_jrun_fail(run, TERN_USAGE, "round does not work on a %s and %lld places",
                            tn_j_type_name(v), (long long)places);
    double scale = pow(10, (double)places), x = tn_j_real(v) * scale;
    if (tn_j_is_text(method, "ceil", 4))
        return tn_j_float(ceil(x) / scale);
    if (tn_j_is_text(method, "floor", 5))
        return tn_j_float(floor(x) / scale);
    if (!tn_j_is_text(method, "common", 6))
        return tn_jrun_fail(run, TERN_USAGE, "the methods of round are common, ceil and floor");
    return v.type == TN_J_FLOAT ? tn_j_float(round_float(v.real, places))
                                : round_integer(run, tn_j_integer(v), places);
}

/* ---- size, type ---- */

static struct tn_jvalue filter_default(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    bool for_false = tn_j_is_true(tn_jargs_or(args, 1, "boolean", tn_j_bool(false)));
    if (v.type != TN_J_UNDEFINED && !(for_false && !tn_j_is_true(v)))
        return v;
    return tn_jargs_or(args, 0, "default_value", tn_jrun_text(run, ""));
}

static struct tn_jvalue filter_length(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    switch (v.type) {
    case TN_J_UNDEFINED:
        return tn_j_int(0);
    case TN_J_STRING:
        return tn_j_int((int64_t)tn_jrun_n_characters(run, v.string));
    case TN_J_LIST:
    case TN_J_TUPLE:
        return tn_j_int((int64_t)v.list->n);
    case TN_J_DICT:
        return tn_j_int((int64_t)v.dict->n);
    default:
        return tn_jrun_fail(run, TERN_USAGE, "a %s has no length", tn_j_type_name(v));
    }
}

static struct tn_jvalue filter_same(struct tn_jrun *run, const struct tn_jargs *args)
{
    (void)run;
    return args->self;
}

static struct tn_jvalue filter_attr(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self;
    const struct tn_jstring *name =
        tn_jrun_string(run, tn_jargs_or(args, 0, "name", (struct tn_jvalue){0}), "attr");
    const struct tn_jname attribute = {name->bytes, name->n};
    if (v.type == TN_J_DICT && !tn_jrun_has_method(v, attribute))
        return (struct tn_jvalue){0}; /* not an item */
    return tn_jrun_attribute(run, v, attribute, false);
}

/* ---- the table ---- */

static const struct filter {
    const char *name;
    tn_jfunction_fn *call;
    int how;
} filters[] = {
    {"abs", filter_abs, 0},
    {"attr", filter_attr, 0},
    {"capitalize", filter_case, TN_CASE_CAPITAL},
    {"count", filter_length, 0},
    {"d", filter_default, 0},
    {"default", filter_default, 0},
    {"dictsort", tn_jfilter_dictsort, 0},
    {"first", tn_jfilter_first, 0},
    {"float", filter_float, 0},
    {"format", filter_format, 0},
    {"groupby", tn_jfilter_groupby, 0},
    {"indent", filter_indent, 0},
    {"int", filter_int, 0},
    {"items", tn_jfilter_items, 0},
    {"join", filter_join, 0},
    {"last", tn_jfilter_last, 0},
    {"length", filter_length, 0},
    {"list", tn_jfilter_list, 0},
    {"lower", filter_case, TN_CASE_LOWER},
    {"map", tn_jfilter_map, 0},
    {"max", tn_jfilter_extreme, 1},
    {"min", tn_jfilter_extreme, -1},
    {"reject", tn_jfilter_select, 0},
    {"rejectattr", tn_jfilter_select, TN_BY_ATTRIBUTE},
    {"replace", filter_replace, 0},
    {"reverse", tn_jfilter_reverse, 0},
    {"round", filter_round, 0},
    {"safe", filter_same, 0},
    {"select", tn_jfilter_select, TN_SELECT},
    {"selectattr", tn_jfilter_select, TN_SELECT | TN_BY_ATTRIBUTE},
    {"sort", tn_jfilter_sort, 0},
    {"string", filter_string, 0},
    {"sum", tn_jfilter_sum, 0},
    {"title", filter_case, TN_CASE_WORDS},
    {"tojson", tn_jrun_to_json, 0},
    {"trim", filter_trim, 0},
    {"unique", tn_jfilter_unique, 0},
    {"upper", filter_case, TN_CASE_UPPER},
    {"wordcount", filter_wordcount, 0},
};

static const struct filter *find_filter(struct tn_jname name)
{
    for (size_t i = 0; i < TN_COUNT_OF(filters); i++)
        if (tn_jname_is(name, filters[i].name))
            return &filters[i];
    return NULL;
}

bool tn_jrun_has_filter(struct tn_jname name)
{
    return find_filter(name) != NULL;
}

struct tn_jvalue tn_jrun_filter(struct tn_jrun *run, struct tn_jname name, struct tn_jvalue v,
                                const struct tn_jargs *args)
{
    const struct filter *filter = find_filter(name);
    if (!filter)
        return tn_jrun_fail(run, TERN_UNSUPPORTED, "the filter \"%.*s\" is not supported",
                            (int)TN_MIN(name.n, (size_t)40), name.text);
    const struct tn_jargs own = tn_jargs_for(v, filter->how, args);
    return tn_jrun_step(run, args->n_keywords / 8) ? filter->call(run, &own) : v;
}

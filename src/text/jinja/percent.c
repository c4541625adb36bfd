/* SPDX-License-Identifier: MIT
 *
 * The operator % of a string, as Python defines it: "%s has %d" % (name, n), "%(name)s" % {...}.
 *
 *   %[(key)][flags][width][.precision]type    flags: - + blank 0 #; width, precision: digits or *
 *   types: s r d i u x X o e E f F g G c %
 *
 * Text from a string argument keeps its marks.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/float_text.h"
#include "text/jinja/strings.h"
#include "text/unicode.h"

#define MAX_WIDTH 100000
#define MAX_PRECISION 1000

struct directive {
    bool is_left, has_plus, has_blank, is_zero, is_alternate;
    int64_t width;
    int64_t precision; /* -1: none */
    char type;
};

/* One application of the operator. */
struct formatter {
    struct tn_jrun *run;
    const struct tn_jstring *format;
    size_t at; /* offset of the next byte in format */
    struct tn_jvalue args;
    size_t n_used; /* consumed items of a tuple, or of the single value */
    struct tn_jsink sink;
};

/* ---- arguments ---- */

static struct tn_jvalue next_argument(struct formatter *f)
{
    const bool is_tuple = f->args.type == TN_J_TUPLE;
    if (f->n_used >= (is_tuple ? f->args.list->n : 1))
        return tn_jrun_fail(f->run, TERN_USAGE, "not enough values for the format string");
    return is_tuple ? f->args.list->items[f->n_used++] : (f->n_used++, f->args);
}

/* After "%(". */
static struct tn_jvalue keyed_argument(struct formatter *f)
{
    const size_t begin = f->at;
    const char *end = memchr(f->format->bytes + begin, ')', f->format->n - begin);
    if (!end)
        return tn_jrun_fail(f->run, TERN_USAGE, "a key in a format string has no closing )");
    const size_t n = (size_t)(end - f->format->bytes) - begin;
    f->at = begin + n + 1;
    const struct tn_jvalue *found =
        f->args.type == TN_J_DICT
            ? tn_jrun_find(f->run, f->args.dict, f->format->bytes + begin, n)
            : NULL;
    return found ? *found
                 : tn_jrun_fail(f->run, TERN_USAGE, "the format string needs the key \"%.*s\"",
                                (int)TN_MIN(n, (size_t)60), f->format->bytes + begin);
}

/* ---- directives ---- */

static char peek(const struct formatter *f)
{
    return f->at < f->format->n ? f->format->bytes[f->at] : '\0';
}

static void read_flags(struct formatter *f, struct directive *d)
{
    for (;; f->at++) {
        const char c = peek(f);
        d->is_left |= c == '-';
        d->has_plus |= c == '+';
        d->has_blank |= c == ' ';
        d->is_zero |= c == '0';
        d->is_alternate |= c == '#';
        if (!c || !strchr("-+ 0#", c))
            return;
    }
}

/* Reads digits, or takes the next argument for *. */
static int64_t read_number(struct formatter *f, int64_t most)
{
    int64_t n = 0;
    if (peek(f) == '*') {
        f->at++;
        n = tn_jrun_integer(f->run, next_argument(f), "a width");
    } else {
        for (; peek(f) >= '0' && peek(f) <= '9' && n <= most; f->at++)
            n = 10 * n + (peek(f) - '0');
    }
    if (n <= most && n >= -most)
        return n;
    tn_jrun_fail(f->run, TERN_LIMIT, "a width in a format string is more than %lld",
                 (long long)most);
    return 0;
}

static struct directive read_directive(struct formatter *f)
{
    struct directive d = {.precision = -1};
    read_flags(f, &d);
    d.width = read_number(f, MAX_WIDTH);
    if (d.width < 0) {
        d.is_left = true;
        d.width = -d.width;
    }
    if (peek(f) == '.') {
        f->at++;
        d.precision = read_number(f, MAX_PRECISION);
        d.precision = TN_MAX(d.precision, (int64_t)0);
    }
    while (peek(f) && strchr("hlL", peek(f)))
        f->at++;
    d.type = peek(f);
    f->at += d.type != '\0';
    return d;
}

/* ---- values ---- */

static void pad(struct formatter *f, const char *with, int64_t n)
{
    for (; n > 0 && f->run->status == TERN_OK; n--)
        tn_jsink_puts(f->run, &f->sink, with);
}

static void put_text(struct formatter *f, const struct directive *d, const struct tn_jstring *s)
{
    int64_t n = (int64_t)tn_jrun_n_characters(f->run, s);
    size_t end = s->n;
    if (d->precision >= 0 && d->precision < n) {
        n = d->precision;
        end = tn_jrun_offset(f->run, s, (size_t)n);
    }
    pad(f, " ", d->is_left ? 0 : d->width - n);
    tn_jsink_put_string(f->run, &f->sink, s, 0, end);
    pad(f, " ", d->is_left ? d->width - n : 0);
}

/* Writes sign, prefix and digits; zero padding goes between prefix and digits. */
static void put_number(struct formatter *f, const struct directive *d, bool is_negative,
                       const char *prefix, const char *digits)
{
    const char *sign = is_negative ? "-" : d->has_plus ? "+" : d->has_blank ? " " : "";
    const int64_t n = (int64_t)(strlen(sign) + strlen(prefix) + strlen(digits));
    const bool zeros = d->is_zero && !d->is_left;
    pad(f, " ", d->is_left || zeros ? 0 : d->width - n);
    tn_jsink_puts(f->run, &f->sink, sign);
    tn_jsink_puts(f->run, &f->sink, prefix);
    pad(f, "0", zeros ? d->width - n : 0);
    tn_jsink_puts(f->run, &f->sink, digits);
    pad(f, " ", d->is_left ? d->width - n : 0);
}

static void put_integer(struct formatter *f, const struct directive *d, struct tn_jvalue v)
{
    char digits[MAX_PRECISION + 32];
    const bool is_decimal = strchr("diu", d->type) != NULL;
    if (is_decimal && v.type == TN_J_FLOAT && fabs(v.real) < 0x1p63)
        v = tn_j_int((int64_t)v.real);
    if (v.type != TN_J_INT && v.type != TN_J_BOOL) {
        tn_jrun_fail(f->run, TERN_USAGE, "%%%c needs an integer, not a %s", d->type,
                     tn_j_type_name(v));
        return;
    }
    const int64_t i = tn_j_integer(v);
    const unsigned long long size = i < 0 ? 0 - (unsigned long long)i : (unsigned long long)i;
    const int precision = (int)TN_MAX(d->precision, (int64_t)1);
    snprintf(digits, sizeof digits,
             is_decimal       ? "%.*llu"
             : d->type == 'o' ? "%.*llo"
             : d->type == 'x' ? "%.*llx"
                              : "%.*llX",
             precision, size);
    const char *prefix = !d->is_alternate || is_decimal ? ""
                         : d->type == 'o'               ? "0o"
                         : d->type == 'x'               ? "0x"
                                                        : "0X";
    put_number(f, d, i < 0, prefix, digits);
}

static void put_float(struct formatter *f, const struct directive *d, struct tn_jvalue v)
{
    char digits[MAX_PRECISION + 400], spec[8];
    if (!tn_j_is_number(v)) {
        tn_jrun_fail(f->run, TERN_USAGE, "%%%c needs a number, not a %s", d->type,
                     tn_j_type_name(v));
        return;
    }
    const double x = tn_j_real(v);
    snprintf(spec, sizeof spec, d->is_alternate ? "%%#.*%c" : "%%.*%c", d->type);
    snprintf(digits, sizeof digits, spec, (int)(d->precision < 0 ? 6 : d->precision), fabs(x));
    tn_float_put_point(digits);
    put_number(f, d, signbit(x) && !isnan(x), "", digits);
}

static bool is_character(int64_t c)
{
    return c >= 0 && c < 0x110000 && (c < 0xD800 || c > 0xDFFF);
}

static void put_character(struct formatter *f, const struct directive *d, struct tn_jvalue v)
{
    char utf8[4];
    if (v.type == TN_J_STRING && tn_jrun_n_characters(f->run, v.string) == 1) {
        put_text(f, d, v.string);
    } else if ((v.type == TN_J_INT || v.type == TN_J_BOOL) && is_character(tn_j_integer(v))) {
        const struct tn_jstring s = {utf8, NULL, tn_utf8_put((uint32_t)tn_j_integer(v), utf8)};
        put_text(f, d, &s);
    } else {
        tn_jrun_fail(f->run, TERN_USAGE, "%%c needs a character or its number, not a %s",
                     tn_j_type_name(v));
    }
}

static struct tn_jvalue repr_of(struct tn_jrun *run, struct tn_jvalue v)
{
    struct tn_jsink sink = {0};
    tn_jsink_put_repr(run, &sink, v);
    return tn_jsink_take(run, &sink);
}

static void put_value(struct formatter *f, const struct directive *d, struct tn_jvalue v)
{
    if (d->type == 's' || d->type == 'r') {
        struct tn_jvalue text = d->type == 's' ? tn_jrun_str(f->run, v) : repr_of(f->run, v);
        if (f->run->status == TERN_OK)
            put_text(f, d, text.string);
    } else if (strchr("diuxXo", d->type)) {
        put_integer(f, d, v);
    } else if (d->type == 'c') {
        put_character(f, d, v);
    } else {
        put_float(f, d, v);
    }
}

/* ---- whole format ---- */

/* After a %. */
static void put_directive(struct formatter *f)
{
    const bool is_keyed = peek(f) == '(';
    struct tn_jvalue v = {0};
    if (is_keyed) {
        f->at++;
        v = keyed_argument(f);
    }
    const struct directive d = read_directive(f);
    if (f->run->status != TERN_OK)
        return;
    if (d.type == '%') {
        tn_jsink_puts(f->run, &f->sink, "%");
    } else if (!d.type || !strchr("srdiuxXoeEfFgGc", d.type)) {
        tn_jrun_fail(f->run, TERN_UNSUPPORTED, "%%%c in a format string is not supported",
                     d.type >= ' ' && d.type < 0x7F ? d.type : '?');
    } else {
        v = is_keyed ? v : next_argument(f);
        if (f->run->status == TERN_OK)
            put_value(f, &d, v);
    }
}

struct tn_jvalue tn_jrun_percent(struct tn_jrun *run, const struct tn_jstring *format,
                                 struct tn_jvalue args)
{
    struct formatter f = {.run = run, .format = format, .args = args};
    while (f.at < format->n && run->status == TERN_OK) {
        const char *percent = memchr(format->bytes + f.at, '%', format->n - f.at);
        const size_t end = percent ? (size_t)(percent - format->bytes) : format->n;
        tn_jsink_put_string(run, &f.sink, format, f.at, end);
        f.at = end;
        if (percent) {
            f.at++;
            put_directive(&f);
        }
    }
    const size_t n_args = args.type == TN_J_TUPLE ? args.list->n : 1;
    const bool may_ignore = args.type == TN_J_DICT || args.type == TN_J_LIST;
    if (run->status == TERN_OK && f.n_used < n_args && !may_ignore)
        tn_jrun_fail(run, TERN_USAGE, "more values than the format string uses");
    return tn_jsink_take(run, &f.sink);
}

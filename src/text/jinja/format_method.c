/* SPDX-License-Identifier: MIT
 *
 * The method format of a string: "{} of {}".format(1, 2), "{0}{0}".format(x), "{n}".format(n=3).
 *
 * Braces are doubled for themselves.  Conversions, format specifications and parts of values
 * ("{!r}", "{:>8}", "{0.x}") are refused.
 */
#include <string.h>

#include "text/jinja/strings.h"

#define MAX_DIGITS 6u /* of an argument's number */

/* One call of the method. */
struct formatter {
    struct tn_jrun *run;
    const struct tn_jargs *args;
    size_t n_taken; /* fields without a number so far */
    bool has_numbers;
    struct tn_jsink sink;
};

/* Does a field hold only digits, or nothing? */
static bool is_positional(const char *field, size_t n)
{
    size_t i = 0;
    while (i < n && field[i] >= '0' && field[i] <= '9')
        i++;
    return i == n;
}

/* SIZE_MAX: too large for any argument. */
static size_t number_of(const char *digits, size_t n)
{
    size_t number = 0;
    for (size_t i = 0; i < n && i < MAX_DIGITS; i++)
        number = 10 * number + (size_t)(digits[i] - '0');
    return n <= MAX_DIGITS ? number : SIZE_MAX;
}

/* The argument of a positional field; NULL: refused. */
static const struct tn_jvalue *positional(struct formatter *f, const char *field, size_t n)
{
    const bool is_counted = n == 0;
    if (is_counted ? f->has_numbers : f->n_taken > 0) {
        tn_jrun_fail(f->run, TERN_USAGE, "format mixes {} and numbered fields");
        return NULL;
    }
    f->has_numbers = !is_counted;
    const size_t i = is_counted ? f->n_taken++ : number_of(field, n);
    if (i < f->args->n)
        return &f->args->items[i];
    tn_jrun_fail(f->run, TERN_USAGE, "format has not enough arguments");
    return NULL;
}

/* The value of a field, written between braces; NULL: refused. */
static const struct tn_jvalue *value_of(struct formatter *f, const char *field, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memchr("!:.[{", field[i], 5)) {
            tn_jrun_fail(f->run, TERN_UNSUPPORTED, "format supports {}, {0} and {name} only");
            return NULL;
        }
    if (is_positional(field, n))
        return positional(f, field, n);
    tn_jrun_step(f->run, f->args->n_keywords / 8);
    for (size_t i = 0; i < f->args->n_keywords; i++)
        if (tn_jname_equal(f->args->keywords[i].name, (struct tn_jname){field, n}))
            return &f->args->keywords[i].value;
    tn_jrun_fail(f->run, TERN_USAGE, "format needs the argument \"%.*s\"",
                 (int)TN_MIN(n, (size_t)60), field);
    return NULL;
}

/* Writes the field at *at, after its opening brace. */
static void put_field(struct formatter *f, const struct tn_jstring *format, size_t *at)
{
    const char *field = format->bytes + *at, *end = memchr(field, '}', format->n - *at);
    if (!end) {
        tn_jrun_fail(f->run, TERN_USAGE, "format has a single {");
        return;
    }
    const size_t n = (size_t)(end - field);
    *at += n + 1;
    const struct tn_jvalue *value = value_of(f, field, n);
    if (!value)
        return;
    const struct tn_jvalue text = tn_jrun_str(f->run, *value);
    if (f->run->status == TERN_OK)
        tn_jsink_put_string(f->run, &f->sink, text.string, 0, text.string->n);
}

struct tn_jvalue tn_jrun_format(struct tn_jrun *run, const struct tn_jstring *format,
                                const struct tn_jargs *args)
{
    struct formatter f = {.run = run, .args = args};
    size_t at = 0, begin = 0;
    while (at < format->n && run->status == TERN_OK) {
        const char ch = format->bytes[at++];
        if (ch != '{' && ch != '}')
            continue;
        const bool is_doubled = at < format->n && format->bytes[at] == ch;
        tn_jsink_put_string(run, &f.sink, format, begin, is_doubled ? at : at - 1);
        if (is_doubled)
            at++;
        else if (ch == '{')
            put_field(&f, format, &at);
        else
            tn_jrun_fail(run, TERN_USAGE, "format has a single }");
        begin = at;
    }
    tn_jsink_put_string(run, &f.sink, format, begin, format->n);
    return tn_jsink_take(run, &f.sink);
}

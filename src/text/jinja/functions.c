/* SPDX-License-Identifier: MIT
 *
 * Global functions of every template: range, dict, namespace, raise_exception, strftime_now.
 *
 * A template sees only the time that the caller passed in, never the clock.
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/date.h"
#include "text/jinja/eval.h"

static struct tn_jvalue call_range(struct tn_jrun *run, const struct tn_jargs *args)
{
    int64_t bounds[3] = {0, 0, 1};
    if (args->n < 1 || args->n > 3)
        return tn_jrun_fail(run, TERN_USAGE, "range takes 1 to 3 numbers, not %zu", args->n);
    for (size_t i = 0; i < args->n; i++)
        bounds[args->n == 1 ? 1 : i] = tn_jrun_integer(run, args->items[i], "an argument of range");
    if (bounds[2] == 0)
        return tn_jrun_fail(run, TERN_USAGE, "range has the step 0");
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, 0));
    int64_t i = bounds[0];
    while (run->status == TERN_OK && (bounds[2] > 0 ? i < bounds[1] : i > bounds[1])) {
        tn_jrun_add(run, list, tn_j_int(i));
        if (__builtin_add_overflow(i, bounds[2], &i))
            break;
    }
    return list;
}

static struct tn_jvalue make_dict(struct tn_jrun *run, const struct tn_jargs *args,
                                  enum tn_jtype type)
{
    struct tn_jvalue dict = tn_jrun_made(run, tn_j_dict(run->pool, type));
    const struct tn_jdict *from =
        args->n && args->items[0].type == TN_J_DICT ? args->items[0].dict : NULL;
    if (args->n && !from)
        return tn_jrun_fail(run, TERN_USAGE, "dict and namespace take a dictionary or names");
    for (size_t i = 0; from && i < from->n && run->status == TERN_OK; i++)
        tn_jrun_set(run, dict, from->pairs[i].key, from->pairs[i].value);
    for (size_t i = 0; i < args->n_keywords && run->status == TERN_OK; i++) {
        const struct tn_jkeyword *k = &args->keywords[i];
        tn_jrun_set(run, dict,
                    tn_jrun_made(run, tn_j_text(run->pool, k->name.text, k->name.n, false)),
                    k->value);
    }
    return dict;
}

static struct tn_jvalue call_dict(struct tn_jrun *run, const struct tn_jargs *args)
{
    return make_dict(run, args, TN_J_DICT);
}

static struct tn_jvalue call_namespace(struct tn_jrun *run, const struct tn_jargs *args)
{
    return make_dict(run, args, TN_J_NAMESPACE);
}

static struct tn_jvalue call_raise(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue text =
        tn_jrun_str(run, tn_jargs_or(args, 0, "message", (struct tn_jvalue){0}));
    if (run->status != TERN_OK)
        return text;
    return tn_jrun_fail(run, TERN_USAGE, "%.*s", (int)TN_MIN(text.string->n, (size_t)400),
                        text.string->bytes);
}

/* ---- strftime_now ---- */

static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

/* Formats a directive that gives a number.  `is_bare`: "%-d", without leading zeros.  false: it
 * gives none. */
static bool format_number(char *dst, size_t n, const struct tn_jinja_time *t, char directive,
                          bool is_bare)
{
    const int hour12 = t->hour % 12 ? t->hour % 12 : 12;
    const struct {
        char directive;
        int value, width;
    } numbers[] = {
        {'Y', t->year, 1},  {'y', t->year % 100, 2}, {'m', t->month, 2},  {'d', t->day, 2},
        {'H', t->hour, 2},  {'I', hour12, 2},        {'M', t->minute, 2}, {'S', t->second, 2},
        {'j', tn_date_day_of_year(t->year, t->month, t->day), 3},
    };
    for (size_t i = 0; i < TN_COUNT_OF(numbers); i++)
        if (numbers[i].directive == directive) {
            snprintf(dst, n, "%0*d", is_bare ? 1 : numbers[i].width, numbers[i].value);
            return true;
        }
    return false;
}

/* Formats any directive.  false: unknown. */
static bool format_directive(char *dst, size_t n, const struct tn_jinja_time *t, char directive,
                             bool is_bare)
{
    switch (directive) {
    case 'e':
        snprintf(dst, n, is_bare ? "%d" : "%2d", t->day);
        return true;
    case 'p':
        snprintf(dst, n, "%s", t->hour < 12 ? "AM" : "PM");
        return true;
    case 'B':
        snprintf(dst, n, "%s", month_names[t->month - 1]);
        return true;
    case 'b':
    case 'h':
        snprintf(dst, n, "%.3s", month_names[t->month - 1]);
        return true;
    case 'A':
        snprintf(dst, n, "%s", day_names[tn_date_day_of_week(t->year, t->month, t->day)]);
        return true;
    case 'a':
        snprintf(dst, n, "%.3s", day_names[tn_date_day_of_week(t->year, t->month, t->day)]);
        return true;
    case 'F':
        snprintf(dst, n, "%d-%02d-%02d", t->year, t->month, t->day);
        return true;
    case 'T':
        snprintf(dst, n, "%02d:%02d:%02d", t->hour, t->minute, t->second);
        return true;
    case '%':
        snprintf(dst, n, "%%");
        return true;
    default:
        return format_number(dst, n, t, directive, is_bare);
    }
}

static struct tn_jvalue call_strftime_now(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jsink sink = {0};
    char text[32];
    const struct tn_jstring *format = tn_jrun_string(
        run, tn_jargs_or(args, 0, "format", (struct tn_jvalue){0}), "the format of strftime_now");
    if (!run->now)
        return tn_jrun_fail(run, TERN_USAGE, "the template uses the date, but none was given");
    for (size_t i = 0; i < format->n && run->status == TERN_OK; i++) {
        if (format->bytes[i] != '%' || i + 1 == format->n) {
            tn_jsink_put_string(run, &sink, format, i, i + 1);
            continue;
        }
        bool is_bare = format->bytes[i + 1] == '-' && i + 2 < format->n;
        i += 1 + is_bare;
        if (format_directive(text, sizeof text, run->now, format->bytes[i], is_bare))
            tn_jsink_puts(run, &sink, text);
        else
            tn_jrun_fail(run, TERN_UNSUPPORTED, "strftime_now: %%%c is not supported",
                         format->bytes[i]);
    }
    return tn_jsink_take(run, &sink);
}

/* ---- the table ---- */

static const struct tn_jfunction functions[] = {
    {"range", call_range},
    {"dict", call_dict},
    {"namespace", call_namespace},
    {"raise_exception", call_raise},
    {"strftime_now", call_strftime_now},
};

const struct tn_jfunction *tn_jinja_find_function(struct tn_jname name)
{
    for (size_t i = 0; i < TN_COUNT_OF(functions); i++)
        if (tn_jname_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}

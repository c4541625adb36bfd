/* SPDX-License-Identifier: MIT
 *
 * Compiles "pattern" and "format" by way of regular expressions.
 *
 * Each format's expression accepts only what every validator accepts: years from 1, no leap
 * seconds, host names of at most 253 characters, addresses without zones.
 */
#include "grammar/schema_string.h"

#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"
#include "grammar/nfa.h"
#include "grammar/string_rule.h"

#define LEAP_PAIR "(?:0[48]|[2468][048]|[13579][26])"
#define YEAR "(?:000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d{3})"
#define DATE                                                                                       \
    "(?:" YEAR "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|"  \
    "30)|02-(?:0[1-9]|1\\d|2[0-8]))|(?:\\d\\d" LEAP_PAIR "|" LEAP_PAIR "00)-02-29)"
#define HOUR_MINUTE "(?:[01]\\d|2[0-3]):[0-5]\\d"
#define TIME HOUR_MINUTE ":[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-]" HOUR_MINUTE ")"

/* Libraries limit durations to 999,999,999 days. */
#define COUNT "\\d{1,6}"
#define DURATION_TIME                                                                              \
    "T(?:" COUNT "H(?:" COUNT "M(?:" COUNT "S)?)?|" COUNT "M(?:" COUNT "S)?|" COUNT "S)"
#define DURATION_DATE                                                                              \
    "(?:" COUNT "D|" COUNT "M(?:" COUNT "D)?|" COUNT "Y(?:" COUNT "M(?:" COUNT "D)?)?)"

/* Labels of a host name: 63 characters for the first and 26 for seven others make 252 with dots. */
#define LABEL(n_between) "[0-9A-Za-z](?:[0-9A-Za-z-]{0," n_between "}[0-9A-Za-z])?"
#define ATOM "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+"

/* Host names that are no numbers and have no "--", which would be punycode.  Few states, because a
 * limit of the length multiplies them, and at most 256 characters, because most limits allow more.
 */
#define URI_HOST "(?:[0-9a-z](?:-?[0-9a-z]){0,9}\\.){1,2}[a-z]{2,9}"
#define URI_REST "(?:/[0-9A-Za-z._~!$&'()*+,;=:@/?-]{0,198})?"

#define BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define HEX4 "[0-9A-Fa-f]{1,4}"
#define HEX(n) "[0-9A-Fa-f]{" n "}"

static const struct format {
    const char *name;
    const char *expressions[2]; /* a text must match both, if there are two */
} formats[] = {
    {"date-time", {"^" DATE "T" TIME "$"}},
    {"date", {"^" DATE "$"}},
    {"time", {"^" TIME "$"}},
    {"duration",
     {"^P(?:" COUNT "W|" DURATION_DATE "(?:" DURATION_TIME ")?|" DURATION_TIME ")$"}},
    {"email",
     {"^" ATOM "(?:\\." ATOM ")*@" LABEL("61") "(?:\\." LABEL("24") "){1,7}$", "^[^@]{1,64}@"}},
    {"hostname", {"^" LABEL("61") "(?:\\." LABEL("24") "){0,7}$"}},
    {"ipv4", {"^(?:" BYTE "\\.){3}" BYTE "$"}},
    {"ipv6",
     {"^(?:(?:" HEX4 ":){7}" HEX4 "|(?:" HEX4 ":){1,7}:|(?:" HEX4 ":){1,6}:" HEX4 "|"
      "(?:" HEX4 ":){1,5}(?::" HEX4 "){1,2}|(?:" HEX4 ":){1,4}(?::" HEX4 "){1,3}|"
      "(?:" HEX4 ":){1,3}(?::" HEX4 "){1,4}|(?:" HEX4 ":){1,2}(?::" HEX4 "){1,5}|"
      HEX4 ":(?::" HEX4 "){1,6}|:(?:(?::" HEX4 "){1,7}|:))$"}},
    {"uuid", {"^" HEX("8") "-" HEX("4") "-" HEX("4") "-" HEX("4") "-" HEX("12") "$"}},
    {"uri", {"^https?://" URI_HOST URI_REST "$"}},
    /* hints for forms and encoders (OpenAPI); any text is valid */
    {"password", {NULL}},
    {"binary", {NULL}},
};

/* Names that zod gives to patterns, which are always next to them. */
static bool is_name_of_pattern(const char *name)
{
    static const char *const names[] = {"nanoid", "cuid",   "cuid2",  "ulid",      "xid",
                                        "ksuid",  "mac",    "cidrv4", "cidrv6",    "base64",
                                        "e164",   "hex",    "base64url", "lowercase", "uppercase"};
    return tn_text_is_one_of(name, names, TN_COUNT_OF(names));
}

static const struct format *find_format(const char *name)
{
    for (size_t i = 0; i < TN_COUNT_OF(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* Reads a keyword; *text stays NULL when it is absent. */
static tern_status read_text(const json_t *s, const char *word, const char **text,
                             struct tern_error *err)
{
    const json_t *value = json_object_get(s, word);
    *text = json_string_value(value);
    if (value && !*text)
        return tn_fail(err, TERN_USAGE, "\"%s\" must be a string", word);
    return tn_ok(err);
}

/* The string keywords of a schema. */
struct words {
    const char *expressions[TN_NFA_MAX_EXPRESSIONS + 2]; /* patterns, and those of the format */
    uint32_t n;       /* number of expressions */
    const char *name; /* keyword that they come from, for error details */
    struct tn_count_range length;
};

/* Adds patterns that NUL separates (schema_merge.h). */
static void add_patterns(struct words *out, const char *text, size_t n)
{
    for (const char *p = text; p <= text + n && out->n < TN_NFA_MAX_EXPRESSIONS; p += strlen(p) + 1)
        out->expressions[out->n++] = p;
}

static tern_status read_words(struct words *out, const json_t *s, struct tern_error *err)
{
    const char *pattern = NULL, *name = NULL;
    tern_status status = read_text(s, "pattern", &pattern, err);
    if (status == TERN_OK)
        status = read_text(s, "format", &name, err);
    if (status == TERN_OK)
        status = tn_schema_count(&out->length, s, "minLength", "maxLength", TN_MAX_LENGTH, err);
    if (status != TERN_OK)
        return status;
    const struct format *format = name ? find_format(name) : NULL;
    if (name && !format && !(pattern && is_name_of_pattern(name)))
        return tn_fail(err, TERN_UNSUPPORTED, "\"format\": \"%.40s\" is not supported", name);
    out->n = 0;
    out->name = pattern ? "\"pattern\"" : "\"format\"";
    if (pattern)
        add_patterns(out, pattern, json_string_length(json_object_get(s, "pattern")));
    for (uint32_t i = 0; format && i < 2 && format->expressions[i]; i++)
        out->expressions[out->n++] = format->expressions[i];
    return tn_ok(err);
}

tern_status tn_schema_string(struct tern_grammar *g, bool is_raw, uint32_t start, const json_t *s,
                             uint64_t *steps, struct tern_error *err)
{
    struct words words;
    tern_status status = read_words(&words, s, err);
    if (status != TERN_OK)
        return status;
    if (words.n == 0) {
        (is_raw ? tn_string_rule_of_raw_length : tn_string_rule_of_length)(g, start, words.length);
        return tn_ok(err);
    }
    status = tn_string_rule(g, is_raw, start, words.expressions, words.n, words.length, steps,
                            err);
    if (status != TERN_OK)
        tn_fail_prefix(err, words.name);
    return status;
}

tern_status tn_schema_string_takes(bool *fits, const json_t *s, const char *text, uint64_t *steps,
                                   struct tern_error *err)
{
    struct words words;
    size_t length = 0;
    tern_status status = read_words(&words, s, err);
    *fits = false;
    if (status != TERN_OK)
        return status;
    for (const char *c = text; *c; c++)
        length += ((unsigned char)*c & 0xC0) != 0x80;
    *fits = length >= words.length.min && length <= words.length.max;
    if (!*fits || words.n == 0)
        return status;
    status = tn_string_fits(fits, words.expressions, words.n, text, steps, err);
    if (status != TERN_OK)
        tn_fail_prefix(err, words.name);
    return status;
}

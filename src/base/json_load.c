/* SPDX-License-Identifier: MIT
 *
 * Reads JSON into jansson's values.
 *
 * jansson's parser ignores a failed allocation: if the buffer of the current token cannot grow,
 * bytes of the token are lost, and after a string that lost its closing quote it reads and writes
 * past the end of the heap block.  It is also recursive.  So the text is parsed here, with the open
 * arrays and objects on a stack of fixed size, and jansson only stores the values.
 */
#include "base/json_load.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/float_text.h"
#include "base/utf8.h"

struct reader {
    const char *name, *text;
    size_t n, i;
    size_t flags;
    struct tn_buf key;                /* of the current member, NUL-terminated */
    struct tn_buf word;               /* the current string or number */
    json_t *open[TN_JSON_MAX_DEPTH];  /* open arrays and objects, innermost last; owned by root */
    uint32_t depth;
    struct tn_json_wide *wide; /* or NULL */
    json_t *root;
    tern_status status;
    struct tern_error *err;
};

/* ---- failures; each returns false ---- */

static bool refuse(struct reader *r, const char *why)
{
    uint32_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < r->i; i++)
        if (r->text[i] == '\n') {
            line++;
            start = i + 1;
        }
    r->status = tn_fail(r->err, TERN_INPUT, "%s: line %u, column %zu: %s", r->name, line,
                        r->i - start + 1, why);
    return false;
}

static bool refuse_depth(struct reader *r)
{
    r->status = tn_fail(r->err, TERN_INPUT, "%s: JSON nests deeper than %u levels (at byte %zu)",
                        r->name, TN_JSON_MAX_DEPTH, r->i - 1);
    return false;
}

static bool refuse_memory(struct reader *r)
{
    r->status = tn_fail(r->err, TERN_MEMORY, "%s: not enough memory to parse %zu bytes", r->name,
                        r->n);
    return false;
}

/* ---- characters ---- */

/* The next byte; 0, which valid JSON does not contain, at the end. */
static char peek(const struct reader *r)
{
    return r->i < r->n ? r->text[r->i] : '\0';
}

static bool take_one(struct reader *r, const char *any_of)
{
    char c = peek(r);
    if (c == '\0' || !strchr(any_of, c))
        return false;
    r->i++;
    return true;
}

static void skip_space(struct reader *r)
{
    while (take_one(r, " \t\r\n"))
        ;
}

/* ---- strings ---- */

static bool take_hex(struct reader *r, uint32_t *value)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c = peek(r);
        if (!take_one(r, digits))
            return refuse(r, "\\u needs four hexadecimal digits");
        uint32_t digit = (uint32_t)(strchr(digits, c) - digits);
        *value = *value << 4 | (digit > 15 ? digit - 6 : digit);
    }
    return true;
}

/* Called after "\u".  Surrogates come in pairs. */
static bool take_code_point(struct reader *r, uint32_t *c)
{
    uint32_t second;
    if (!take_hex(r, c))
        return false;
    if (*c < 0xD800 || *c >= 0xE000)
        return true;
    if (*c >= 0xDC00 || !take_one(r, "\\") || !take_one(r, "u"))
        return refuse(r, "an unpaired surrogate");
    if (!take_hex(r, &second))
        return false;
    if (second < 0xDC00 || second >= 0xE000)
        return refuse(r, "an unpaired surrogate");
    *c = 0x10000 + ((*c - 0xD800) << 10) + (second - 0xDC00);
    return true;
}

static bool append_code_point(struct tn_buf *out, uint32_t c)
{
    char bytes[4];
    return tn_buf_append(out, bytes, tn_utf8_put(c, bytes));
}

/* Called after the backslash. */
static bool read_escape(struct reader *r, struct tn_buf *out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char c = peek(r);
    uint32_t code;
    if (take_one(r, letters))
        code = (unsigned char)meanings[strchr(letters, c) - letters];
    else if (!take_one(r, "u"))
        return refuse(r, "an unknown escape after a backslash");
    else if (!take_code_point(r, &code))
        return false;
    if (code == 0 && (out == &r->key || !(r->flags & JSON_ALLOW_NUL)))
        return refuse(r, "\\u0000 is not allowed");
    return append_code_point(out, code) || refuse_memory(r);
}

/* Number of bytes before the next byte that needs special treatment in a string. */
static size_t n_plain(const struct reader *r)
{
    size_t i = r->i, n;
    do {
        uint32_t code;
        const unsigned char c = i < r->n ? (unsigned char)r->text[i] : 0;
        n = c >= 0x80 ? tn_utf8_character(r->text + i, r->n - i, &code)
                      : c >= 0x20 && c != '"' && c != '\\';
        i += n;
    } while (n > 0);
    return i - r->i;
}

/* Called after the opening quote. */
static bool read_string(struct reader *r, struct tn_buf *out)
{
    tn_buf_clear(out);
    for (;;) {
        const size_t n = n_plain(r);
        if (n > 0 && !tn_buf_append(out, r->text + r->i, n))
            return refuse_memory(r);
        r->i += n;
        if (take_one(r, "\""))
            return true;
        if (r->i == r->n)
            return refuse(r, "a string is not terminated");
        if (!take_one(r, "\\"))
            return refuse(r, (unsigned char)peek(r) < 0x20 ? "a control character in a string"
                                                           : "a string that is not UTF-8");
        if (!read_escape(r, out))
            return false;
    }
}

/* ---- numbers ---- */

static bool take_digits(struct reader *r)
{
    size_t start = r->i;
    while (take_one(r, "0123456789"))
        ;
    return r->i > start || refuse(r, "expected a digit");
}

static bool take_number(struct reader *r, bool *is_whole)
{
    (void)take_one(r, "-");
    if (!take_one(r, "0") && !take_digits(r))
        return false;
    *is_whole = true;
    if (take_one(r, ".")) {
        *is_whole = false;
        if (!take_digits(r))
            return false;
    }
    if (take_one(r, "eE")) {
        *is_whole = false;
        (void)take_one(r, "+-");
        if (!take_digits(r))
            return false;
    }
    return true;
}

static bool parse_whole(const char *text, size_t n, json_int_t *out)
{
    json_int_t value = 0;
    const bool is_negative = text[0] == '-';
    for (size_t i = is_negative; i < n; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, text[i] - '0', &value)) /* the negative range is larger */
            return false;
    *out = value;
    return is_negative || !__builtin_sub_overflow(0, value, out);
}

static bool parse_wide(const char *text, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    *out = value;
    return true;
}

/* Stores the digits of a large number that became `value`, if the caller wants them. */
static void keep_wide(struct reader *r, const char *digits, size_t n, const json_t *value)
{
    struct tn_json_wide *wide = r->wide;
    const bool is_member = wide && r->depth > 0 && json_is_object(r->open[r->depth - 1]) &&
                           strcmp(r->key.data, wide->name) == 0;
    if (!is_member || (wide->value && wide->depth < r->depth) ||
        !parse_wide(digits, n, &wide->whole))
        return;
    wide->value = value;
    wide->depth = r->depth;
}

/* `number` is NUL-terminated. */
static bool parse_real(char *number, double *out)
{
    errno = 0;
    *out = tn_float_parse(number, NULL);
    return !(errno == ERANGE && fabs(*out) > 1);
}

static bool read_number(struct reader *r, json_t **out)
{
    const size_t start = r->i;
    bool is_whole;
    json_int_t whole;
    double real;
    if (!take_number(r, &is_whole))
        return false;
    if (is_whole && !(r->flags & JSON_DECODE_INT_AS_REAL)) {
        if (parse_whole(r->text + start, r->i - start, &whole)) {
            *out = json_integer(whole);
            return true;
        }
        if (!(r->flags & TN_JSON_LARGE_AS_REAL))
            return refuse(r, "an integer of more than 63 bits and a sign");
    }
    tn_buf_clear(&r->word);
    if (!tn_buf_append(&r->word, r->text + start, r->i - start) ||
        !tn_buf_append(&r->word, "", 1))
        return refuse_memory(r);
    if (!parse_real(r->word.data, &real))
        return refuse(r, "a number is too large");
    *out = json_real(real);
    if (is_whole)
        keep_wide(r, r->text + start, r->i - start, *out);
    return true;
}

/* ---- values ---- */

static bool take_word(struct reader *r, const char *word)
{
    const size_t n = strlen(word);
    const bool is = r->n - r->i >= n && memcmp(r->text + r->i, word, n) == 0;
    r->i += is ? n : 0;
    return is;
}

static bool take_not_finite(struct reader *r, json_t **out)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < TN_COUNT_OF(words) && r->flags & TN_JSON_NOT_FINITE_AS_TEXT; i++)
        if (take_word(r, words[i])) {
            *out = json_string(words[i]);
            return true;
        }
    return false;
}

static bool read_word(struct reader *r, json_t **out)
{
    if (take_word(r, "true"))
        *out = json_true();
    else if (take_word(r, "false"))
        *out = json_false();
    else if (take_word(r, "null"))
        *out = json_null();
    else
        return refuse(r, r->i == r->n ? "the text ends before a value" : "not a JSON value");
    return true;
}

static bool read_scalar(struct reader *r, json_t **out)
{
    char c = peek(r);
    if (take_not_finite(r, out))
        return true;
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, out);
    if (!take_one(r, "\""))
        return read_word(r, out);
    if (!read_string(r, &r->word))
        return false;
    *out = json_stringn_nocheck(r->word.n_bytes ? r->word.data : "", r->word.n_bytes);
    return true;
}

/* Adds the value to the innermost open container, or makes it the root; NULL: it could not be
 * allocated. */
static bool put_value(struct reader *r, json_t *value)
{
    json_t *parent = r->depth ? r->open[r->depth - 1] : NULL;
    int failed = 0;
    if (!value)
        return refuse_memory(r);
    if (!parent) {
        r->root = value;
    } else if (json_is_array(parent)) {
        failed = json_array_append_new(parent, value);
    } else {
        if (r->wide && r->wide->value == json_object_get(parent, r->key.data))
            r->wide->value = NULL; /* replaced by a member of the same name, and freed */
        failed = json_object_set_new_nocheck(parent, r->key.data, value);
    }
    return !failed || refuse_memory(r);
}

static bool read_key(struct reader *r)
{
    skip_space(r);
    if (!take_one(r, "\""))
        return refuse(r, "expected a name in quotes");
    if (!read_string(r, &r->key))
        return false;
    if (!tn_buf_append(&r->key, "", 1))
        return refuse_memory(r);
    if ((r->flags & JSON_REJECT_DUPLICATES) &&
        json_object_get(r->open[r->depth - 1], r->key.data))
        return refuse(r, "a duplicate name in an object");
    skip_space(r);
    return take_one(r, ":") || refuse(r, "expected ':'");
}

/* Called after the opening bracket; sets *opened if values follow. */
static bool open_level(struct reader *r, bool is_object, bool *opened)
{
    if (r->depth == TN_JSON_MAX_DEPTH)
        return refuse_depth(r);
    json_t *value = is_object ? json_object() : json_array();
    if (!put_value(r, value))
        return false;
    skip_space(r);
    *opened = !take_one(r, is_object ? "}" : "]");
    if (!*opened)
        return true;
    r->open[r->depth++] = value;
    return !is_object || read_key(r);
}

static bool read_value(struct reader *r, bool *opened)
{
    json_t *value = NULL;
    *opened = false;
    skip_space(r);
    const char c = peek(r);
    if (take_one(r, "{["))
        return open_level(r, c == '{', opened);
    return read_scalar(r, &value) && put_value(r, value);
}

/* Called after a value: closes levels until one continues or none is open. */
static bool end_value(struct reader *r)
{
    while (r->depth > 0) {
        const bool is_object = json_is_object(r->open[r->depth - 1]);
        skip_space(r);
        if (take_one(r, ","))
            return !is_object || read_key(r);
        if (!take_one(r, is_object ? "}" : "]"))
            return refuse(r, is_object ? "expected ',' or '}'" : "expected ',' or ']'");
        r->depth--;
    }
    return true;
}

static bool read_text(struct reader *r)
{
    skip_space(r);
    if (!(r->flags & JSON_DECODE_ANY) && peek(r) != '{' && peek(r) != '[')
        return refuse(r, "expected an object or an array");
    do {
        bool opened;
        if (!read_value(r, &opened) || (!opened && !end_value(r)))
            return false;
    } while (r->depth > 0);
    skip_space(r);
    return r->i == r->n || refuse(r, "text after the end of the value");
}

static tern_status load(struct reader *r, json_t **out)
{
    *out = NULL;
    if (read_text(r))
        *out = r->root;
    else
        json_decref(r->root);
    tn_buf_fini(&r->key);
    tn_buf_fini(&r->word);
    return r->status;
}

tern_status tn_json_load(json_t **out, const char *name, const char *text, size_t n, size_t flags,
                         struct tern_error *err)
{
    struct reader r = {.name = name, .text = text, .n = n, .flags = flags, .err = err};
    return load(&r, out);
}

tern_status tn_json_load_wide(json_t **out, struct tn_json_wide *wide, const char *name,
                              const char *text, size_t n, size_t flags, struct tern_error *err)
{
    struct reader r = {.name = name, .text = text, .n = n,
                       .flags = flags | TN_JSON_LARGE_AS_REAL, .wide = wide, .err = err};
    wide->value = NULL;
    return load(&r, out);
}

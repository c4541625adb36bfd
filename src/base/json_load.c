/* SPDX-License-Identifier: MIT
 *
 * Depth check and loading of JSON.
 *
 * jansson overlooks one kind of failed allocation: when the buffer of the token at hand cannot
 * grow, bytes of the token are left out.  Others look like errors of syntax.  So the grammar of the
 * text is checked first, and the text is parsed as the second element of an array whose first is a
 * string as long as the longest token.  When that came out whole the buffer needs to grow no more,
 * and a text of right grammar can only fail for what the parser names, or for memory.
 */
#include "base/json_load.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"

/* Index of the quote that ends the string which starts at text[i - 1], or n. */
static size_t skip_string(const char *text, size_t n, size_t i)
{
    while (i < n && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
    return i < n ? i : n;
}

tern_status tn_json_check_depth(const char *text, size_t n, uint32_t max_depth,
                                struct tern_error *err)
{
    uint32_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        switch (text[i]) {
        case '"':
            i = skip_string(text, n, i + 1);
            break;
        case '{':
        case '[':
            if (++depth > max_depth)
                return tn_fail(err, TERN_INPUT,
                               "JSON nests deeper than %u levels (at byte %zu)", max_depth, i);
            break;
        case '}':
        case ']':
            if (depth > 0)
                depth--;
            break;
        default:
            break;
        }
    }
    return TERN_OK;
}

/* ---- grammar ---- */

struct scan {
    const char *text;
    size_t n, i;
    size_t longest;    /* token so far, quotes counted */
    uint64_t is_object; /* a bit per open level, the innermost lowest */
    uint32_t depth;
};

static_assert(TN_JSON_MAX_DEPTH <= 64, "a bit per level");

/* The next byte, 0 at the end: no byte of valid JSON. */
static char peek(const struct scan *s)
{
    return s->i < s->n ? s->text[s->i] : '\0';
}

static bool take(struct scan *s, const char *any_of)
{
    char c = peek(s);
    if (c == '\0' || !strchr(any_of, c))
        return false;
    s->i++;
    return true;
}

static void skip_space(struct scan *s)
{
    while (take(s, " \t\r\n"))
        ;
}

static bool read_hex(struct scan *s, uint32_t *value)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c = peek(s);
        if (!take(s, digits))
            return false;
        uint32_t digit = (uint32_t)(strchr(digits, c) - digits);
        *value = *value << 4 | (digit > 15 ? digit - 6 : digit);
    }
    return true;
}

/* Behind the backslash. Surrogates come in pairs. */
static bool read_escape(struct scan *s)
{
    uint32_t first, second;
    if (take(s, "\"\\/bfnrt"))
        return true;
    if (!take(s, "u") || !read_hex(s, &first) || (first >= 0xDC00 && first < 0xE000))
        return false;
    if (first < 0xD800 || first >= 0xE000)
        return true;
    return take(s, "\\") && take(s, "u") && read_hex(s, &second) && second >= 0xDC00 &&
           second < 0xE000;
}

/* Behind the opening quote. */
static bool read_string(struct scan *s)
{
    const size_t start = s->i - 1;
    while (s->i < s->n) {
        unsigned char c = (unsigned char)s->text[s->i++];
        if (c < 0x20 || (c == '\\' && !read_escape(s)))
            return false;
        if (c == '"') {
            s->longest = TN_MAX(s->longest, s->i - start);
            return true;
        }
    }
    return false;
}

static bool read_digits(struct scan *s)
{
    bool any = false;
    while (take(s, "0123456789"))
        any = true;
    return any;
}

static bool read_number(struct scan *s)
{
    const size_t start = s->i;
    (void)take(s, "-");
    if (!take(s, "0") && !read_digits(s))
        return false;
    if (take(s, ".") && !read_digits(s))
        return false;
    if (take(s, "eE")) {
        (void)take(s, "+-");
        if (!read_digits(s))
            return false;
    }
    s->longest = TN_MAX(s->longest, s->i - start);
    return true;
}

static bool read_word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < TN_COUNT_OF(words); i++) {
        size_t n = strlen(words[i]);
        if (s->n - s->i >= n && memcmp(s->text + s->i, words[i], n) == 0) {
            s->i += n;
            return true;
        }
    }
    return false;
}

static bool read_key(struct scan *s)
{
    skip_space(s);
    if (!take(s, "\"") || !read_string(s))
        return false;
    skip_space(s);
    return take(s, ":");
}

/* Behind the first bracket of an object or array that has something in it: *more. */
static bool open_level(struct scan *s, bool is_object, bool *more)
{
    if (s->depth == 64)
        return false;
    skip_space(s);
    *more = !take(s, is_object ? "}" : "]");
    if (!*more)
        return true;
    s->depth++;
    s->is_object = s->is_object << 1 | is_object;
    return !is_object || read_key(s);
}

/* Behind a value: ends levels until one goes on, or none is left. */
static bool end_value(struct scan *s)
{
    while (s->depth > 0) {
        bool is_object = s->is_object & 1;
        skip_space(s);
        if (take(s, ","))
            return !is_object || read_key(s);
        if (!take(s, is_object ? "}" : "]"))
            return false;
        s->is_object >>= 1;
        s->depth--;
    }
    return true;
}

/* A value, or its beginning: *more tells that another one has to follow inside of it. */
static bool read_value(struct scan *s, bool *more)
{
    char c = peek(s);
    *more = false;
    if (take(s, "{["))
        return open_level(s, c == '{', more);
    if (take(s, "\""))
        return read_string(s);
    return c == '-' || (c >= '0' && c <= '9') ? read_number(s) : read_word(s);
}

/* Is the text one object or array, as far as grammar goes? Numbers, UTF-8 and keys are left to the
 * parser. */
static bool is_grammatical(struct scan *s)
{
    skip_space(s);
    if (peek(s) != '{' && peek(s) != '[')
        return false;
    do {
        bool more;
        skip_space(s);
        if (!read_value(s, &more) || (!more && !end_value(s)))
            return false;
    } while (s->depth > 0);
    skip_space(s);
    return s->i == s->n;
}

/* ---- parsing ---- */

/* ["xxx...",\n TEXT ] for the parser. */
struct feed {
    const char *text;
    size_t n, n_pad;
    size_t at;
};

/* Copies the stretch [begin, begin + n) of the whole as far as it meets dst; NULL: padding. */
static void copy_part(const struct feed *f, size_t begin, const char *part, size_t n, char *dst,
                      size_t n_dst)
{
    size_t from = TN_MAX(begin, f->at), to = TN_MIN(begin + n, f->at + n_dst);
    if (from >= to)
        return;
    if (part)
        memcpy(dst + (from - f->at), part + (from - begin), to - from);
    else
        memset(dst + (from - f->at), 'x', to - from);
}

static size_t give(void *dst, size_t n_dst, void *arg)
{
    struct feed *f = arg;
    const size_t text_at = 2 + f->n_pad + 3, whole = text_at + f->n + 1;
    size_t n = TN_MIN(n_dst, whole - f->at);
    copy_part(f, 0, "[\"", 2, dst, n);
    copy_part(f, 2, NULL, f->n_pad, dst, n);
    copy_part(f, 2 + f->n_pad, "\",\n", 3, dst, n);
    copy_part(f, text_at, f->text, f->n, dst, n);
    copy_part(f, text_at + f->n, "]", 1, dst, n);
    f->at += n;
    return n;
}

/* Did the parser find something that a text of right grammar can have? */
static bool is_about_the_text(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_duplicate_key:
    case json_error_numeric_overflow:
    case json_error_invalid_utf8:
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return true;
    default:
        return false;
    }
}

static tern_status no_memory(const char *name, size_t n, struct tern_error *err)
{
    return tn_fail(err, TERN_MEMORY, "%s: not enough memory to parse %zu bytes", name, n);
}

static tern_status refuse(const char *name, const json_error_t *error, int line,
                          struct tern_error *err)
{
    return tn_fail(err, TERN_INPUT, "%s: line %d, column %d: %s", name, line, error->column,
                   error->text);
}

/* A text of right grammar whose longest token has n_token bytes. */
static tern_status parse(json_t **out, const char *name, const char *text, size_t n, size_t n_token,
                         size_t flags, struct tern_error *err)
{
    struct feed feed = {.text = text, .n = n, .n_pad = n_token};
    json_error_t error = {0}; /* without memory nothing is written */
    json_t *root = json_load_callback(give, &feed, flags, &error);
    if (!root)
        return is_about_the_text(&error) ? refuse(name, &error, error.line - 1, err)
                                         : no_memory(name, n, err);
    if (json_string_length(json_array_get(root, 0)) == n_token)
        *out = json_incref(json_array_get(root, 1));
    json_decref(root);
    return *out ? TERN_OK : no_memory(name, n, err);
}

tern_status tn_json_load(json_t **out, const char *name, const char *text, size_t n, size_t flags,
                         struct tern_error *err)
{
    *out = NULL;
    struct tern_error depth_error;
    if (tn_json_check_depth(text, n, TN_JSON_MAX_DEPTH, &depth_error) != TERN_OK)
        return tn_fail(err, TERN_INPUT, "%s: %s", name, depth_error.detail);
    struct scan scan = {.text = text, .n = n};
    if (is_grammatical(&scan))
        return parse(out, name, text, n, scan.longest, flags, err);
    json_error_t error = {0}; /* for its words */
    json_t *root = json_loadb(text, n, flags, &error);
    if (!root)
        return refuse(name, &error, error.line, err);
    json_decref(root);
    return tn_fail(err, TERN_INPUT, "%s: not JSON (at byte %zu)", name, scan.i);
}

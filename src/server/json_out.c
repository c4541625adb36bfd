/* SPDX-License-Identifier: MIT
 *
 * Writes JSON strings, byte lists and numbers.
 *
 * Unlike chat/json_text.c it accepts invalid UTF-8, because tokens may end inside a character.
 */
#include "server/json_out.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

static bool needs_escape(uint32_t c)
{
    return c < 0x20 || c == '"' || c == '\\' || c == 0x7F || c == 0x2028 || c == 0x2029;
}

static void append_escaped(struct tn_buf *out, uint32_t c)
{
    static const char letters[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    const char *at = c > 0 && c < 0x80 ? strchr(letters, (int)c) : NULL;
    if (at)
        tn_buf_printf(out, "\\%c", names[at - letters]);
    else
        tn_buf_printf(out, "\\u%04x", c);
}

void tn_json_string(struct tn_buf *out, const char *text, size_t n)
{
    size_t start = 0, n_character;
    text = text ? text : "";
    tn_buf_append(out, "\"", 1);
    for (size_t i = 0; i < n; i += n_character) {
        uint32_t c = 0;
        n_character = tn_utf8_character(text + i, n - i, &c);
        const bool is_valid = n_character > 0;
        n_character = is_valid ? n_character : 1;
        if (is_valid && !needs_escape(c))
            continue;
        tn_buf_append(out, text + start, i - start);
        if (is_valid)
            append_escaped(out, c);
        else
            tn_buf_append(out, "\xEF\xBF\xBD", 3);
        start = i + n_character;
    }
    tn_buf_append(out, text + start, n - start);
    tn_buf_append(out, "\"", 1);
}

void tn_json_tail(struct tn_buf *out, const struct tn_buf *text, size_t from)
{
    const size_t n = text->n_bytes - from;
    tn_json_string(out, n > 0 ? text->data + from : NULL, n);
}

void tn_json_text(struct tn_buf *out, const char *text)
{
    if (text)
        tn_json_string(out, text, strlen(text));
    else
        tn_buf_append_text(out, "null");
}

void tn_json_bytes(struct tn_buf *out, const char *bytes, size_t n)
{
    tn_buf_append(out, "[", 1);
    for (size_t i = 0; i < n; i++)
        tn_buf_printf(out, i ? ",%u" : "%u", (unsigned)(unsigned char)bytes[i]);
    tn_buf_append(out, "]", 1);
}

void tn_json_real(struct tn_buf *out, double x, double otherwise)
{
    if (!isfinite(x))
        x = otherwise;
    tn_buf_printf(out, "%.6f", x);
}

/* ---- members of a written object ---- */

/* One past a string that begins here. */
static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

/* One past a value without blanks that begins here. */
static const char *skip_value(const char *at)
{
    uint32_t depth = 0;
    do {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= depth > 0 && (*at == '}' || *at == ']');
        at++;
    } while (depth > 0 || (*at && !strchr(",]}", *at)));
    return at;
}

/* The value of a member of the object that begins here; NULL: not an object, or no such member. */
static const char *find_member(const char *at, const char *name, size_t n)
{
    if (*at != '{')
        return NULL;
    while (*++at == '"') {
        const char *end = skip_string(at);
        if ((size_t)(end - at) == n + 2 && memcmp(at + 1, name, n) == 0)
            return end + 1; /* after the colon */
        at = skip_value(end + 1);
    }
    return NULL;
}

void tn_json_pick(struct tn_buf *out, struct tn_buf *json, const char *const *paths,
                  size_t n)
{
    uint32_t n_found = 0;
    tn_buf_append_text(out, "{");
    for (size_t i = 0; i < n && !json->failed; i++) {
        const char *at = tn_buf_text(json), *name = paths[i], *slash;
        for (; at && (slash = strchr(name, '/')) != NULL; name = slash + 1)
            at = find_member(at, name, (size_t)(slash - name));
        at = at ? find_member(at, name, strlen(name)) : NULL;
        if (!at)
            continue;
        tn_buf_append_text(out, n_found++ ? "," : "");
        tn_json_text(out, paths[i]);
        tn_buf_append_text(out, ":");
        tn_buf_append(out, at, (size_t)(skip_value(at) - at));
    }
    tn_buf_append_text(out, "}");
    out->failed = out->failed || json->failed;
}

/* SPDX-License-Identifier: MIT
 *
 * Canonical form of a Jinja source, hashed while it is read (FNV-1a, 64 bits).
 */
#include "text/jinja_hash.h"

#include <stdbool.h>
#include <string.h>

struct reader {
    const char *source;
    size_t n;
    size_t i;
    uint64_t hash;
    char last;       /* last character that was hashed */
    bool strip_next; /* the tag before ended in "-" */
    bool after_block;
};

static void put(struct reader *r, char c)
{
    r->hash = (r->hash ^ (unsigned char)c) * 0x100000001B3u;
    r->last = c;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* '%', '{' or '#' when a tag starts at i, else 0. */
static char tag_at(const struct reader *r, size_t i)
{
    if (i + 1 >= r->n || r->source[i] != '{')
        return 0;
    char c = r->source[i + 1];
    return c == '%' || c == '{' || c == '#' ? c : 0;
}

/* Text between two tags, with white space control. */
static void read_text(struct reader *r)
{
    size_t start = r->i, end = start;
    while (end < r->n && !tag_at(r, end))
        end++;
    r->i = end;
    char tag = tag_at(r, end);
    char sign = tag && end + 2 < r->n ? r->source[end + 2] : 0;
    bool at_line_start = start == 0;
    if (r->strip_next) {
        while (start < end && is_blank(r->source[start]))
            start++;
    } else if (r->after_block && start < end && r->source[start] == '\n') {
        start++;
        at_line_start = true;
    }
    if (sign == '-') {
        while (end > start && is_blank(r->source[end - 1]))
            end--;
    } else if (tag && tag != '{' && sign != '+') {
        size_t line = end;
        while (line > start && (r->source[line - 1] == ' ' || r->source[line - 1] == '\t'))
            line--;
        if (line > start ? r->source[line - 1] == '\n' : at_line_start)
            end = line;
    }
    for (; start < end; start++)
        put(r, r->source[start]);
}

/* A string literal; r->i is at its quote. */
static void read_string(struct reader *r)
{
    static const char escapes[] = "n\nt\tr\r\\\\''\"\"";
    char quote = r->source[r->i++];
    put(r, '\'');
    while (r->i < r->n && r->source[r->i] != quote) {
        char c = r->source[r->i++];
        if (c == '\\' && r->i < r->n) {
            size_t k = 0;
            while (escapes[k] && escapes[k] != r->source[r->i])
                k += 2;
            if (escapes[k]) {
                c = escapes[k + 1];
                r->i++;
            }
        }
        put(r, c);
    }
    r->i += r->i < r->n;
    put(r, '\'');
}

/* A tag; r->i is at its first brace. */
static void read_tag(struct reader *r)
{
    char kind = r->source[r->i + 1];
    char close = kind == '{' ? '}' : kind;
    r->i += 2;
    bool blank = false, first = true;
    if (kind != '#') {
        put(r, '{');
        put(r, kind);
    }
    r->strip_next = false;
    for (; r->i < r->n; first = false) {
        char c = r->source[r->i];
        bool closes = r->i + 1 < r->n && c == close && r->source[r->i + 1] == '}';
        bool closes_signed = r->i + 2 < r->n && (c == '-' || c == '+') &&
                             r->source[r->i + 1] == close && r->source[r->i + 2] == '}';
        if (closes || closes_signed) {
            r->strip_next = c == '-';
            r->after_block = kind != '{' && c != '+';
            r->i += closes ? 2 : 3;
            break;
        }
        if (kind == '#' || is_blank(c) || (first && (c == '-' || c == '+'))) {
            blank = true;
            r->i++;
        } else if (c == '\'' || c == '"') {
            read_string(r);
            blank = false;
        } else {
            if (blank && is_word(c) && is_word(r->last))
                put(r, ' ');
            put(r, c);
            blank = false;
            r->i++;
        }
    }
    if (kind != '#') {
        put(r, close);
        put(r, '}');
    }
}

uint64_t tn_jinja_hash(const char *source, size_t n)
{
    if (n > 0 && source[n - 1] == '\n')
        n--;
    struct reader r = {.source = source, .n = n, .hash = 0xCBF29CE484222325u};
    while (r.i < r.n) {
        read_text(&r);
        if (r.i < r.n)
            read_tag(&r);
    }
    return r.hash;
}

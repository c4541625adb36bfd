/* SPDX-License-Identifier: MIT
 *
 * Building blocks of the splitters in pretok.c, pretok_cased.c and pretok_deepseek.c: characters
 * with their classes, runs, and alternatives that several expressions share.
 *
 * All positions and lengths are in bytes.
 */
#ifndef TN_PRETOK_PARTS_H
#define TN_PRETOK_PARTS_H

#include <stdbool.h>
#include <string.h>

#include "text/pretok.h"
#include "text/unicode.h"

struct character {
    size_t n_bytes; /* 0: end of the text */
    uint32_t c;
    enum tn_char_class class;
};

static inline struct character character_at(const char *text, size_t n, size_t i)
{
    struct character ch = {0, 0, TN_CHAR_SPACE};
    if (i < n) {
        ch.n_bytes = tn_utf8_next(text + i, n - i, &ch.c);
        ch.class = tn_char_class(ch.c);
    }
    return ch;
}

/* End of the run of characters of one class that starts at i. */
static inline size_t run_end(const char *text, size_t n, size_t i, enum tn_char_class class)
{
    for (;;) {
        struct character ch = character_at(text, n, i);
        if (ch.n_bytes == 0 || ch.class != class)
            return i;
        i += ch.n_bytes;
    }
}

static inline bool is_newline(uint32_t c)
{
    return c == '\r' || c == '\n';
}

/* End of the run of characters of a set that starts at i. */
static inline size_t run_of(const char *text, size_t n, size_t i, bool (*is_in)(uint32_t))
{
    while (i < n) {
        uint32_t c;
        size_t length = tn_utf8_next(text + i, n - i, &c);
        if (!is_in(c))
            break;
        i += length;
    }
    return i;
}

/* End of the run of `tail` characters (all ASCII) that starts at i. */
static inline size_t tail_end(const char *text, size_t n, size_t i, const char *tail)
{
    while (i < n && text[i] && strchr(tail, text[i]))
        i++;
    return i;
}

/* End of the leading run of at most `max` numbers: \p{N}{1,max}. */
static inline size_t numbers_end(const char *text, size_t n, unsigned max)
{
    size_t i = 0;
    for (unsigned k = 0; k < max; k++) {
        struct character ch = character_at(text, n, i);
        if (ch.n_bytes == 0 || ch.class != TN_CHAR_NUMBER)
            break;
        i += ch.n_bytes;
    }
    return i;
}

/* Length of 's 't 're 've 'm 'll 'd, or 0.  With `fold` in any case, and U+017F (long s) equals s:
 * the only character beyond ASCII that the reference engines fold to one of these. */
static inline size_t contraction(const char *text, size_t n, bool fold)
{
    if (n < 2 || text[0] != '\'')
        return 0;
    char lower = fold ? 0x20 : 0;
    char a = (char)(text[1] | lower);
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (n < 3)
        return 0;
    char b = (char)(text[2] | lower);
    if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l'))
        return 3;
    return fold && memcmp(text + 1, "\xC5\xBF", 2) == 0 ? 3 : 0;
}

/* \s+(?!\S)|\s+ on a white space run of `end` bytes whose last character starts at `last`. */
static inline size_t space_piece(size_t n, size_t end, size_t last)
{
    return end == n || last == 0 ? end : last;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ at the start of white space. */
static inline size_t split_line_space(const char *text, size_t n)
{
    size_t end = 0, last = 0, newline_end = 0;
    for (;;) {
        struct character ch = character_at(text, n, end);
        if (ch.n_bytes == 0 || ch.class != TN_CHAR_SPACE)
            break;
        last = end;
        end += ch.n_bytes;
        if (is_newline(ch.c))
            newline_end = end;
    }
    return newline_end ? newline_end : space_piece(n, end, last);
}

/* ---- stages that isolate matches ---- */

/* Length of the match at text[0], n > 0; 0: no match. */
typedef size_t (*match_fn)(const char *text, size_t n);

/* Pieces are the matches and the texts between them. */
static inline size_t isolate(const char *text, size_t n, match_fn match)
{
    size_t length = match(text, n);
    if (length)
        return length;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += tn_utf8_next(text + i, n - i, &c);
        if (i < n && match(text + i, n - i))
            return i;
    }
    return n;
}

/* ---- pretok_cased.c ---- */
size_t tn_split_gpt4o(const char *text, size_t n);
size_t tn_split_tekken(const char *text, size_t n);

/* ---- pretok_deepseek.c: stages of its splitters ---- */
size_t tn_split_cased_letters(const char *text, size_t n);
size_t tn_split_signs(const char *text, size_t n);
size_t tn_split_last_space(const char *text, size_t n);
size_t tn_split_three_numbers(const char *text, size_t n);
size_t tn_split_han_and_kana(const char *text, size_t n);
size_t tn_split_deepseek_v3(const char *text, size_t n);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The splitters of GPT-2 and LLaMA-3.
 *
 * Both are lists of alternatives, tried in order at each position.  Each piece
 * looks at most one character beyond itself, white space at the rest of its run
 * (which is scanned at most three times), so a text costs O(n).
 */
#include "text/pretok.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "tern/model_format.h"
#include "text/unicode.h"

struct character {
    size_t n_bytes; /* 0 at the end of the text */
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
static size_t run_end(const char *text, size_t n, size_t i, enum tn_char_class class)
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

/* 's 't 're 've 'm 'll 'd: the length, or 0.  With `fold` in any case, and U+017F (long s) is an s:
 * the only character beyond ASCII that the reference engines fold to one of these. */
static size_t contraction(const char *text, size_t n, bool fold)
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

/* \s+(?!\S)|\s+ on a run of white space of `end` bytes, the last of its characters at `last`. */
static size_t space_piece(size_t n, size_t end, size_t last)
{
    return end == n || last == 0 ? end : last;
}

/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t split_gpt2(const char *text, size_t n)
{
    size_t length = contraction(text, n, false);
    if (length)
        return length;
    struct character first = character_at(text, n, 0);
    if (first.class != TN_CHAR_SPACE)
        return run_end(text, n, first.n_bytes, first.class);
    if (first.c == ' ') {
        struct character second = character_at(text, n, 1);
        if (second.class != TN_CHAR_SPACE)
            return run_end(text, n, 1 + second.n_bytes, second.class);
    }
    size_t end = 0, last = 0;
    for (struct character ch = first; ch.n_bytes && ch.class == TN_CHAR_SPACE;
         ch = character_at(text, n, end)) {
        last = end;
        end += ch.n_bytes;
    }
    return space_piece(n, end, last);
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t split_llama3_space(const char *text, size_t n)
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

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t split_llama3(const char *text, size_t n)
{
    size_t length = contraction(text, n, true);
    if (length)
        return length;
    struct character first = character_at(text, n, 0);
    if (first.class == TN_CHAR_LETTER)
        return run_end(text, n, first.n_bytes, TN_CHAR_LETTER);
    struct character second = character_at(text, n, first.n_bytes);
    if (first.class == TN_CHAR_NUMBER) {
        length = first.n_bytes;
        if (second.class != TN_CHAR_NUMBER)
            return length;
        length += second.n_bytes;
        struct character third = character_at(text, n, length);
        return third.class == TN_CHAR_NUMBER ? length + third.n_bytes : length;
    }
    if (second.class == TN_CHAR_LETTER && !is_newline(first.c))
        return run_end(text, n, first.n_bytes + second.n_bytes, TN_CHAR_LETTER);
    if (first.class == TN_CHAR_OTHER || (first.c == ' ' && second.class == TN_CHAR_OTHER)) {
        length = run_end(text, n, first.n_bytes, TN_CHAR_OTHER);
        while (length < n && is_newline((unsigned char)text[length]))
            length++;
        return length;
    }
    return split_llama3_space(text, n);
}

static const struct {
    uint32_t id;
    tn_split_fn split;
    const char *pattern;
} splitters[] = {
    {TERN_SPLIT_LLAMA3, split_llama3,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {TERN_SPLIT_GPT2, split_gpt2,
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
};

tn_split_fn tn_splitter_find(uint32_t splitter)
{
    for (size_t i = 0; i < TN_COUNT_OF(splitters); i++)
        if (splitters[i].id == splitter)
            return splitters[i].split;
    return NULL;
}

uint32_t tn_splitter_recognise(const char *pattern)
{
    for (size_t i = 0; i < TN_COUNT_OF(splitters); i++)
        if (strcmp(splitters[i].pattern, pattern) == 0)
            return splitters[i].id;
    return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Divides a text into passages (passages.h): lines or paragraphs, and splits long ones at the best
 * boundary near their middle.
 */
#include "passages.h"

#include <string.h>

#include "base/text_match.h"

/* Removes blanks from both ends; advances the line number past the ones at the start. */
static void trim(struct tn_passage *p)
{
    while (p->n > 0 && tn_is_space(p->text[0])) {
        p->line += p->text[0] == '\n';
        p->text++;
        p->n--;
    }
    while (p->n > 0 && tn_is_space(p->text[p->n - 1]))
        p->n--;
}

void tn_passages_start(struct tn_passages *out, const char *text, size_t n, bool by_line)
{
    *out = (struct tn_passages){.at = text, .end = text + n, .line = 1, .by_line = by_line};
}

/* The line at p->at without its end; advances p past it. */
static struct tn_passage next_line(struct tn_passages *p)
{
    const char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    const char *end = newline ? newline : p->end;
    struct tn_passage line = {p->at, (size_t)(end - p->at), p->line++};
    p->at = newline ? newline + 1 : p->end;
    return line;
}

bool tn_passages_next(struct tn_passages *p, struct tn_passage *out)
{
    *out = (struct tn_passage){0};
    while (p->at < p->end) {
        struct tn_passage line = next_line(p);
        const char *end = line.text + line.n;
        trim(&line);
        if (line.n > 0 && !out->text)
            *out = line;
        if (line.n > 0)
            out->n = (size_t)(end - out->text);
        if (out->text && (line.n == 0 || p->by_line))
            break;
    }
    trim(out);
    return out->n > 0;
}

/* ---- splitting long passages ---- */

enum { AT_LINE, AT_SENTENCE, AT_WORD, AT_CHARACTER, N_PLACES };

/* Whether a passage may be split before text[i], 0 < i < n. */
static bool is_place(const char *text, size_t i, int kind)
{
    switch (kind) {
    case AT_LINE:
        return text[i] == '\n';
    case AT_SENTENCE:
        return tn_is_space(text[i]) && memchr(".!?", text[i - 1], 3);
    case AT_WORD:
        return tn_is_space(text[i]);
    default:
        return ((unsigned char)text[i] & 0xC0) != 0x80;
    }
}

/* The boundary nearest to the middle, in the middle half of n bytes; 0: there is none. */
static size_t find_place(const char *text, size_t n, int kind)
{
    for (size_t d = 0; d <= n / 4; d++) {
        const size_t low = n / 2 - d, high = n / 2 + d;
        if (high < n && is_place(text, high, kind))
            return high;
        if (low > 0 && is_place(text, low, kind))
            return low;
    }
    return 0;
}

static size_t count_lines(const char *text, size_t n)
{
    size_t n_lines = 0;
    for (size_t i = 0; i < n; i++)
        n_lines += text[i] == '\n';
    return n_lines;
}

bool tn_passage_split(const struct tn_passage *p, struct tn_passage *first,
                      struct tn_passage *second)
{
    size_t at = 0;
    for (int kind = 0; kind < N_PLACES && at == 0; kind++)
        at = find_place(p->text, p->n, kind);
    if (at == 0)
        return false;
    *first = (struct tn_passage){p->text, at, p->line};
    *second = (struct tn_passage){p->text + at, p->n - at, p->line + count_lines(p->text, at)};
    trim(first);
    trim(second);
    return first->n > 0 && second->n > 0;
}

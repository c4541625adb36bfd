/* SPDX-License-Identifier: MIT
 *
 * The splitters of GPT-4o and of Mistral's Tekken, which split words where an upper-case letter
 * follows a lower-case one.
 *
 *   [^\r\n\p{L}\p{N}]?[U]*[S]+T|[^\r\n\p{L}\p{N}]?[U]+[S]*T|\p{N}{1,3}
 *   | ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * U is \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}, S is \p{Ll}\p{Lm}\p{Lo}\p{M}; T is
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)?.  Tekken has \p{N} alone and no T.  A piece may look ahead over a
 * run of U, which the next piece takes whole, so a text costs O(n).
 */
#include "text/pretok_parts.h"

static bool is_upper(uint32_t c)
{
    return tn_char_is(c, TN_CHAR_MARK) ||
           (tn_char_class(c) == TN_CHAR_LETTER && !tn_char_is(c, TN_CHAR_SMALL));
}

static bool is_lower(uint32_t c)
{
    return tn_char_is(c, TN_CHAR_MARK) ||
           (tn_char_class(c) == TN_CHAR_LETTER && !tn_char_is(c, TN_CHAR_CAPITAL));
}

/* End of [U]*[S]+ from `start`, or 0.  If no lower-case letter follows the run of U, backtracks to
 * after its last character that is in both sets. */
static size_t lower_word_end(const char *text, size_t n, size_t start)
{
    size_t end = start, shared_end = 0;
    while (end < n) {
        uint32_t c;
        const size_t length = tn_utf8_next(text + end, n - end, &c);
        if (!is_upper(c))
            break;
        end += length;
        if (is_lower(c))
            shared_end = end;
    }
    const size_t lower_end = run_of(text, n, end, is_lower);
    return lower_end > end ? lower_end : shared_end;
}

/* End of the first two alternatives without T, or 0. */
static size_t word_end(const char *text, size_t n, struct character first)
{
    const bool is_prefix = first.class != TN_CHAR_LETTER && first.class != TN_CHAR_NUMBER &&
                           !is_newline(first.c);
    const size_t start = is_prefix ? first.n_bytes : 0;
    size_t end = lower_word_end(text, n, start);
    if (end == 0 && is_prefix)
        end = lower_word_end(text, n, 0); /* `first` is a mark, or there is no match */
    if (end)
        return end;
    end = run_of(text, n, start, is_upper);
    return end > start ? end : 0;
}

static inline size_t split_cased(const char *text, size_t n, unsigned max_numbers,
                                 bool has_contractions)
{
    const struct character first = character_at(text, n, 0);
    size_t end = word_end(text, n, first);
    if (end)
        return has_contractions ? end + contraction(text + end, n - end, true) : end;
    if (first.class == TN_CHAR_NUMBER)
        return numbers_end(text, n, max_numbers);
    const size_t start = first.c == ' ' ? 1 : 0;
    end = run_end(text, n, start, TN_CHAR_OTHER);
    if (end > start)
        return tail_end(text, n, end, "\r\n/");
    return split_line_space(text, n);
}

size_t tn_split_gpt4o(const char *text, size_t n)
{
    return split_cased(text, n, 3, true);
}

size_t tn_split_tekken(const char *text, size_t n)
{
    return split_cased(text, n, 1, false);
}

/* SPDX-License-Identifier: MIT
 *
 * Every splitter is a chain of stages: the second one cuts the pieces of the
 * first as texts of their own, and so on.
 *
 * The expressions of GPT-2 and LLaMA-3 are lists of alternatives, tried in order
 * at each position.  Each piece looks at most one character beyond itself, white
 * space at the rest of its run (which is scanned at most three times).  Stages
 * that isolate matches look at what lies before a match twice.  So a text costs
 * O(n).
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

/* How the expressions of LLaMA-3's kind differ. */
struct llama3_rule {
    unsigned max_digits;
    bool marks_are_letters;
};

static inline struct character rule_character(const char *text, size_t n, size_t i,
                                              struct llama3_rule rule)
{
    struct character ch = character_at(text, n, i);
    if (rule.marks_are_letters && ch.class == TN_CHAR_OTHER && tn_char_is(ch.c, TN_CHAR_MARK))
        ch.class = TN_CHAR_LETTER;
    return ch;
}

static inline size_t rule_run_end(const char *text, size_t n, size_t i, enum tn_char_class class,
                                  struct llama3_rule rule)
{
    for (;;) {
        struct character ch = rule_character(text, n, i, rule);
        if (ch.n_bytes == 0 || ch.class != class)
            return i;
        i += ch.n_bytes;
    }
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+
 * Qwen2: \p{N} alone; Qwen3.5: besides, \p{M} wherever \p{L} stands but in the first set. */
static inline size_t split_llama3_kind(const char *text, size_t n, struct llama3_rule rule)
{
    size_t length = contraction(text, n, true);
    if (length)
        return length;
    struct character first = rule_character(text, n, 0, rule);
    if (first.class == TN_CHAR_LETTER)
        return rule_run_end(text, n, first.n_bytes, TN_CHAR_LETTER, rule);
    struct character second = rule_character(text, n, first.n_bytes, rule);
    if (first.class == TN_CHAR_NUMBER) {
        length = first.n_bytes;
        for (unsigned i = 1; i < rule.max_digits && second.class == TN_CHAR_NUMBER; i++) {
            length += second.n_bytes;
            second = rule_character(text, n, length, rule);
        }
        return length;
    }
    if (second.class == TN_CHAR_LETTER && !is_newline(first.c))
        return rule_run_end(text, n, first.n_bytes + second.n_bytes, TN_CHAR_LETTER, rule);
    if (first.class == TN_CHAR_OTHER || (first.c == ' ' && second.class == TN_CHAR_OTHER)) {
        length = rule_run_end(text, n, first.n_bytes, TN_CHAR_OTHER, rule);
        while (length < n && is_newline((unsigned char)text[length]))
            length++;
        return length;
    }
    return split_llama3_space(text, n);
}

static size_t split_llama3(const char *text, size_t n)
{
    return split_llama3_kind(text, n, (struct llama3_rule){3, false});
}

static size_t split_qwen2(const char *text, size_t n)
{
    return split_llama3_kind(text, n, (struct llama3_rule){1, false});
}

static size_t split_qwen35(const char *text, size_t n)
{
    return split_llama3_kind(text, n, (struct llama3_rule){1, true});
}

/* ---- stages that isolate ---- */

/* Length of the match at text[0], n > 0; 0: none begins here. */
typedef size_t (*match_fn)(const char *text, size_t n);

/* Pieces are the matches and what lies between them. */
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

static size_t match_newline(const char *text, size_t n)
{
    (void)n;
    return is_newline((unsigned char)text[0]);
}

static size_t match_number(const char *text, size_t n)
{
    struct character ch = character_at(text, n, 0);
    return ch.class == TN_CHAR_NUMBER ? ch.n_bytes : 0;
}

static size_t match_letters(const char *text, size_t n)
{
    struct character first = character_at(text, n, 0);
    size_t start = first.class == TN_CHAR_SPACE ? first.n_bytes : 0;
    size_t end = run_end(text, n, start, TN_CHAR_LETTER);
    return end > start ? end : 0;
}

static size_t run_of_flag(const char *text, size_t n, size_t i, enum tn_char_flag flag, bool wanted)
{
    while (i < n) {
        uint32_t c;
        size_t length = tn_utf8_next(text + i, n - i, &c);
        if (tn_char_is(c, flag) != wanted)
            break;
        i += length;
    }
    return i;
}

static size_t match_punctuation(const char *text, size_t n)
{
    struct character first = character_at(text, n, 0);
    size_t start = first.class == TN_CHAR_SPACE ? first.n_bytes : 0;
    size_t end = run_of_flag(text, n, start, TN_CHAR_PUNCTUATION, true);
    return end > start ? end : 0;
}

static size_t match_east_asian(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint32_t c;
        size_t length = tn_utf8_next(text + i, n - i, &c);
        if (!(c >= 0x800 && c <= 0x9FA5) && !(c >= 0xAC00 && c <= 0xD7FF))
            break;
        i += length;
    }
    return i;
}

/* [\r\n] */
static size_t split_newlines(const char *text, size_t n)
{
    return isolate(text, n, match_newline);
}

/* \s?\p{L}+ */
static size_t split_letters(const char *text, size_t n)
{
    return isolate(text, n, match_letters);
}

/* \s?\p{P}+ */
static size_t split_punctuation(const char *text, size_t n)
{
    return isolate(text, n, match_punctuation);
}

/* [\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+ */
static size_t split_east_asian(const char *text, size_t n)
{
    return isolate(text, n, match_east_asian);
}

/* Every number by itself. */
static size_t split_digits(const char *text, size_t n)
{
    return isolate(text, n, match_number);
}

/* Runs of punctuation, runs of everything else. */
static size_t split_old_punctuation(const char *text, size_t n)
{
    uint32_t c;
    size_t length = tn_utf8_next(text, n, &c);
    return run_of_flag(text, n, length, TN_CHAR_OLD_PUNCTUATION,
                       tn_char_is(c, TN_CHAR_OLD_PUNCTUATION));
}

/* The bytes whose characters in the byte alphabet are numbers. */
static bool is_digit_byte(unsigned char b)
{
    return (b >= '0' && b <= '9') || b == 0xB2 || b == 0xB3 || b == 0xB9 ||
           (b >= 0xBC && b <= 0xBE);
}

/* Runs of such bytes, runs of others: cuts characters. */
static size_t split_byte_digits(const char *text, size_t n)
{
    size_t i = 1;
    while (i < n && is_digit_byte((unsigned char)text[i]) == is_digit_byte((unsigned char)text[0]))
        i++;
    return i;
}

static bool is_three_digits(const char *text)
{
    for (int i = 0; i < 3; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

/* [0-9][0-9][0-9] */
static size_t split_three_digits(const char *text, size_t n)
{
    if (n < 3 || is_three_digits(text))
        return n < 3 ? n : 3;
    for (size_t i = 1; i + 3 <= n; i++)
        if (is_three_digits(text + i))
            return i;
    return n;
}

/* ---- DeepSeek-LLM ---- */

/* Its letters: those with a case, as Unicode had them, but for mathematical ones. */
static const uint32_t cased_letters[][2] = {
    {0x41, 0x5A}, {0x61, 0x7A}, {0xB5, 0xB5}, {0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0x1BA},
    {0x1BC, 0x1BF}, {0x1C4, 0x293}, {0x295, 0x2AF}, {0x370, 0x373}, {0x376, 0x376}, {0x377, 0x377},
    {0x37B, 0x37D}, {0x37F, 0x37F}, {0x386, 0x386}, {0x388, 0x38A}, {0x38C, 0x38C}, {0x38E, 0x3A1},
    {0x3A3, 0x3F5}, {0x3F7, 0x481}, {0x48A, 0x52F}, {0x531, 0x556}, {0x10A0, 0x10C5},
    {0x13A0, 0x13F5}, {0x13F8, 0x13FD}, {0x1C90, 0x1CBA}, {0x1CBD, 0x1CBF}, {0x1D00, 0x1D2B},
    {0x1D6B, 0x1D77}, {0x1D79, 0x1D9A}, {0x1E00, 0x1F15}, {0x1F18, 0x1F1D}, {0x1F20, 0x1F45},
    {0x1F48, 0x1F4D}, {0x1F50, 0x1F57}, {0x1F59, 0x1F59}, {0x1F5B, 0x1F5B}, {0x1F5D, 0x1F5D},
    {0x1F5F, 0x1F7D}, {0x1F80, 0x1FB4}, {0x1FB6, 0x1FBC}, {0x1FBE, 0x1FBE}, {0x1FC2, 0x1FC4},
    {0x1FC6, 0x1FCC}, {0x1FD0, 0x1FD3}, {0x1FD6, 0x1FDB}, {0x1FE0, 0x1FEC}, {0x1FF2, 0x1FF4},
    {0x1FF6, 0x1FFC}, {0x2102, 0x2102}, {0x2107, 0x2107}, {0x210A, 0x2113}, {0x2115, 0x2115},
    {0x2119, 0x211D}, {0x2124, 0x2124}, {0x2126, 0x2126}, {0x2128, 0x2128}, {0x212A, 0x212D},
    {0x212F, 0x2134}, {0x2139, 0x2139}, {0x213C, 0x213F}, {0x2145, 0x2149}, {0x214E, 0x214E},
    {0x2183, 0x2183}, {0x2184, 0x2184}, {0x2C00, 0x2C7B}, {0x2C7E, 0x2CE4}, {0x2CEB, 0x2CEE},
    {0x2CF2, 0x2CF2}, {0x2CF3, 0x2CF3}, {0xA640, 0xA66D}, {0xA680, 0xA69B}, {0xA722, 0xA76F},
    {0xA771, 0xA787}, {0xA78B, 0xA78E}, {0xAB70, 0xABBF}, {0xFB00, 0xFB06}, {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A}, {0xFF41, 0xFF5A}, {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};

static bool is_cased_letter(uint32_t c)
{
    size_t low = 0, high = TN_COUNT_OF(cased_letters);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (c > cased_letters[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < TN_COUNT_OF(cased_letters) && c >= cased_letters[low][0];
}

/* Its signs; the range from the colon on has all letters of ASCII. */
static bool is_sign(uint32_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '~') || (c >= 0xFF01 && c <= 0xFF0F) ||
           (c >= 0xFF1A && c <= 0xFF5E) || (c >= 0x2018 && c <= 0x201F) ||
           (c >= 0x3000 && c <= 0x3002);
}

static size_t run_of(const char *text, size_t n, size_t i, bool (*is_in)(uint32_t))
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

/* \s?[set]+, backtracking: white space that is in the set may be all of it. */
static size_t match_run(const char *text, size_t n, bool (*is_in)(uint32_t))
{
    struct character first = character_at(text, n, 0);
    size_t start = first.class == TN_CHAR_SPACE ? first.n_bytes : 0;
    size_t end = run_of(text, n, start, is_in);
    if (end > start)
        return end;
    return is_in(first.c) ? first.n_bytes : 0;
}

static size_t match_cased_letters(const char *text, size_t n)
{
    return match_run(text, n, is_cased_letter);
}

static size_t match_signs(const char *text, size_t n)
{
    return match_run(text, n, is_sign);
}

/* \s?[A-Za-z...]+ */
static size_t split_cased_letters(const char *text, size_t n)
{
    return isolate(text, n, match_cased_letters);
}

/* \s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+ */
static size_t split_signs(const char *text, size_t n)
{
    return isolate(text, n, match_signs);
}

/* \s+$ */
static size_t split_last_space(const char *text, size_t n)
{
    size_t end = 0; /* behind the last character that is no white space */
    for (size_t i = 0; i < n;) {
        struct character ch = character_at(text, n, i);
        i += ch.n_bytes;
        if (ch.class != TN_CHAR_SPACE)
            end = i;
    }
    return end ? end : n;
}

/* ---- space marks ---- */

/* A piece begins at every space: what Metaspace with "split" does. */
static size_t split_space(const char *text, size_t n)
{
    const char *space = n > 1 ? memchr(text + 1, ' ', n - 1) : NULL;
    return space ? (size_t)(space - text) : n;
}

/* A piece begins at every space behind something else. */
static size_t split_space_run(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] == ' ')
        i++;
    const char *space = memchr(text + i, ' ', n - i);
    return space ? (size_t)(space - text) : n;
}

static const struct tn_splitter splitters[] = {
    {TERN_SPLIT_LLAMA3, {split_llama3}},
    {TERN_SPLIT_GPT2, {split_gpt2}},
    {TERN_SPLIT_QWEN2, {split_qwen2}},
    {TERN_SPLIT_QWEN35, {split_qwen35}},
    {TERN_SPLIT_STARCODER, {split_digits, split_gpt2}},
    {TERN_SPLIT_FALCON,
     {split_old_punctuation, split_gpt2, split_byte_digits, split_three_digits}},
    {TERN_SPLIT_DEEPSEEK_CODER,
     {split_newlines, split_letters, split_punctuation, split_east_asian, split_digits}},
    {TERN_SPLIT_DEEPSEEK_LLM,
     {split_newlines, split_cased_letters, split_signs, split_last_space, split_east_asian,
      split_digits}},
    {TERN_SPLIT_NONE, {0}},
    {TERN_SPLIT_SPACE, {split_space}},
    {TERN_SPLIT_SPACE_RUN, {split_space_run}},
};

const struct tn_splitter *tn_splitter_find(uint32_t splitter)
{
    for (size_t i = 0; i < TN_COUNT_OF(splitters); i++)
        if (splitters[i].id == splitter)
            return &splitters[i];
    return NULL;
}

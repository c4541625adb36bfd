/* SPDX-License-Identifier: MIT
 *
 * Stages of the splitters of DeepSeek-LLM and of DeepSeek-V3 and R1.
 *
 * pretok.c chains them; each quotes its regular expression.
 */
#include "base/compiler.h"
#include "text/pretok_parts.h"

/* ---- DeepSeek-LLM ---- */

/* Its letters: those with case in an older Unicode version, except mathematical ones. */
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

/* Its symbols; the range from the colon on includes all ASCII letters. */
static bool is_sign(uint32_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '~') || (c >= 0xFF01 && c <= 0xFF0F) ||
           (c >= 0xFF1A && c <= 0xFF5E) || (c >= 0x2018 && c <= 0x201F) ||
           (c >= 0x3000 && c <= 0x3002);
}

/* \s?[set]+ with backtracking: white space in the set may itself be the match. */
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
size_t tn_split_cased_letters(const char *text, size_t n)
{
    return isolate(text, n, match_cased_letters);
}

/* \s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+ */
size_t tn_split_signs(const char *text, size_t n)
{
    return isolate(text, n, match_signs);
}

/* \s+$ */
size_t tn_split_last_space(const char *text, size_t n)
{
    size_t end = 0; /* end of the last character that is not white space */
    for (size_t i = 0; i < n;) {
        struct character ch = character_at(text, n, i);
        i += ch.n_bytes;
        if (ch.class != TN_CHAR_SPACE)
            end = i;
    }
    return end ? end : n;
}

/* ---- DeepSeek-V3 ---- */

static size_t match_three_numbers(const char *text, size_t n)
{
    return numbers_end(text, n, 3);
}

/* \p{N}{1,3} */
size_t tn_split_three_numbers(const char *text, size_t n)
{
    return isolate(text, n, match_three_numbers);
}

static bool is_han_or_kana(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}

static size_t match_han_and_kana(const char *text, size_t n)
{
    return run_of(text, n, 0, is_han_or_kana);
}

/* [\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+ */
size_t tn_split_han_and_kana(const char *text, size_t n)
{
    return isolate(text, n, match_han_and_kana);
}

static bool is_ascii_letter(uint32_t c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_letter_or_mark(uint32_t c)
{
    return tn_char_class(c) == TN_CHAR_LETTER || tn_char_is(c, TN_CHAR_MARK);
}

static bool is_punctuation_or_symbol(uint32_t c)
{
    return tn_char_is(c, TN_CHAR_PUNCTUATION) || tn_char_is(c, TN_CHAR_SYMBOL);
}

/* [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+: an ASCII symbol and letters. */
static size_t match_sign_and_letters(const char *text, size_t n, uint32_t first)
{
    const size_t end = first < 0x80 && is_punctuation_or_symbol(first)
                           ? run_of(text, n, 1, is_ascii_letter)
                           : 0;
    return end > 1 ? end : 0;
}

/* [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ */
static size_t match_word(const char *text, size_t n, struct character first)
{
    if (first.class != TN_CHAR_LETTER && !is_newline(first.c) &&
        !is_punctuation_or_symbol(first.c)) {
        const size_t end = run_of(text, n, first.n_bytes, is_letter_or_mark);
        if (end > first.n_bytes)
            return end;
    }
    return run_of(text, n, 0, is_letter_or_mark);
}

/* [ASCII symbol][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t match_deepseek_v3(const char *text, size_t n)
{
    const struct character first = character_at(text, n, 0);
    size_t end = match_sign_and_letters(text, n, first.c);
    if (end == 0)
        end = match_word(text, n, first);
    if (end)
        return end;
    const size_t start = first.c == ' ' ? 1 : 0;
    end = run_of(text, n, start, is_punctuation_or_symbol);
    if (end > start)
        return tail_end(text, n, end, "\r\n");
    return first.class == TN_CHAR_SPACE ? split_line_space(text, n) : 0;
}

size_t tn_split_deepseek_v3(const char *text, size_t n)
{
    return isolate(text, n, match_deepseek_v3);
}

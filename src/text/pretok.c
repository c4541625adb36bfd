/* SPDX-License-Identifier: MIT
 *
 * Pre-tokenizers as chains of stages: each stage splits the pieces of the preceding one.
 *
 * The expressions of GPT-2 and LLaMA-3 are alternatives tried in order at each position.  A piece
 * looks ahead by one character, or to the end of a white space run (scanned at most three times).
 * Stages that isolate matches scan the text between matches twice.  So a text costs O(n).
 */
#include "text/pretok.h"

#include "base/compiler.h"
#include "tern/model_format.h"
#include "text/pretok_parts.h"

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

/* Parameters in which LLaMA-3's expression and its relatives differ. */
struct llama3_rule {
    unsigned max_digits;
    bool marks_are_letters;
    const char *tail; /* characters that may follow a run of punctuation */
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
 *
 * Qwen2: \p{N} alone.  Qwen3.5: in addition [\p{L}\p{M}] for \p{L}, except in the first set.
 * Seed-Coder: as Qwen2, without [\r\n]*. */
static inline size_t split_llama3_kind(const char *text, size_t n, struct llama3_rule rule)
{
    size_t length = contraction(text, n, true);
    if (length)
        return length;
    struct character first = rule_character(text, n, 0, rule);
    if (first.class == TN_CHAR_LETTER)
        return rule_run_end(text, n, first.n_bytes, TN_CHAR_LETTER, rule);
    struct character second = rule_character(text, n, first.n_bytes, rule);
    if (first.class == TN_CHAR_NUMBER)
        return numbers_end(text, n, rule.max_digits);
    if (second.class == TN_CHAR_LETTER && !is_newline(first.c))
        return rule_run_end(text, n, first.n_bytes + second.n_bytes, TN_CHAR_LETTER, rule);
    if (first.class == TN_CHAR_OTHER || (first.c == ' ' && second.class == TN_CHAR_OTHER)) {
        length = rule_run_end(text, n, first.n_bytes, TN_CHAR_OTHER, rule);
        return tail_end(text, n, length, rule.tail);
    }
    return split_line_space(text, n);
}

static size_t split_llama3(const char *text, size_t n)
{
    return split_llama3_kind(text, n, (struct llama3_rule){3, false, "\r\n"});
}

static size_t split_qwen2(const char *text, size_t n)
{
    return split_llama3_kind(text, n, (struct llama3_rule){1, false, "\r\n"});
}

static size_t split_qwen35(const char *text, size_t n)
{
    return split_llama3_kind(text, n, (struct llama3_rule){1, true, "\r\n"});
}

static size_t split_seed_coder(const char *text, size_t n)
{
    return split_llama3_kind(text, n, (struct llama3_rule){1, false, ""});
}

/* ---- stages that isolate matches ---- */

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

static bool is_east_asian(uint32_t c)
{
    return (c >= 0x800 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7FF);
}

static size_t match_east_asian(const char *text, size_t n)
{
    return run_of(text, n, 0, is_east_asian);
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

/* Isolates each digit. */
static size_t split_digits(const char *text, size_t n)
{
    return isolate(text, n, match_number);
}

/* Runs of punctuation and runs of everything else. */
static size_t split_old_punctuation(const char *text, size_t n)
{
    uint32_t c;
    size_t length = tn_utf8_next(text, n, &c);
    return run_of_flag(text, n, length, TN_CHAR_OLD_PUNCTUATION,
                       tn_char_is(c, TN_CHAR_OLD_PUNCTUATION));
}

/* Bytes whose characters in the byte alphabet are numbers. */
static bool is_digit_byte(unsigned char b)
{
    return (b >= '0' && b <= '9') || b == 0xB2 || b == 0xB3 || b == 0xB9 ||
           (b >= 0xBC && b <= 0xBE);
}

/* Runs of such bytes and runs of others; splits characters. */
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

/* ---- space marks ---- */

/* Begins a piece at every space: Metaspace with "split". */
static size_t split_space(const char *text, size_t n)
{
    const char *space = n > 1 ? memchr(text + 1, ' ', n - 1) : NULL;
    return space ? (size_t)(space - text) : n;
}

/* Begins a piece at every space that follows another character. */
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
     {split_newlines, tn_split_cased_letters, tn_split_signs, tn_split_last_space,
      split_east_asian, split_digits}},
    {TERN_SPLIT_DEEPSEEK_V3,
     {tn_split_three_numbers, tn_split_han_and_kana, tn_split_deepseek_v3}},
    {TERN_SPLIT_GPT4O, {tn_split_gpt4o}},
    {TERN_SPLIT_TEKKEN, {tn_split_tekken}},
    {TERN_SPLIT_SEED_CODER, {split_seed_coder}},
    {TERN_SPLIT_MINICPM5, {tn_split_three_numbers, split_llama3}},
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

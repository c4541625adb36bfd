/* SPDX-License-Identifier: MIT
 *
 * Shared by what splits an answer while it is generated: stop strings, reasoning, tool calls.
 */
#include "base/text_match.h"

#include <string.h>

#include "base/compiler.h"

bool tn_is_space(char ch)
{
    return memchr(" \t\r\n", ch, 4) != NULL;
}

int tn_hex_digit(char ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

size_t tn_text_n_space(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && tn_is_space(text[i]))
        i++;
    return i;
}

size_t tn_text_trimmed(const char *text, size_t n)
{
    while (n > 0 && tn_is_space(text[n - 1]))
        n--;
    return n;
}

size_t tn_text_n_stem(const char *text, const char *ending)
{
    const size_t n = strlen(text), n_ending = strlen(ending);
    return n > n_ending && strcmp(text + n - n_ending, ending) == 0 ? n - n_ending : 0;
}

bool tn_text_is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

int tn_text_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t tn_text_find(const char *text, size_t n, size_t at, const char *word)
{
    const size_t n_word = strlen(word);
    for (; at + n_word <= n; at++)
        if (memcmp(text + at, word, n_word) == 0)
            return at;
    return n;
}

size_t tn_text_n_begun(const char *text, size_t n, const char *word)
{
    size_t n_begun = TN_MIN(strlen(word) - 1, n);
    while (n_begun > 0 && memcmp(text + n - n_begun, word, n_begun) != 0)
        n_begun--;
    return n_begun;
}

/* SPDX-License-Identifier: MIT
 *
 * Searches in text, also in one that arrives in pieces: which bytes at its end must wait for more.
 */
#ifndef TN_TEXT_MATCH_H
#define TN_TEXT_MATCH_H

#include <stdbool.h>
#include <stddef.h>

/* The white space of tags and of JSON: blank, tab, carriage return, line feed. */
bool tn_is_space(char ch);
/* The value of a hexadecimal digit; -1: it is none. */
int tn_hex_digit(char ch);
/* Bytes of white space at the start. */
size_t tn_text_n_space(const char *text, size_t n);
/* Bytes without the white space at the end. */
size_t tn_text_trimmed(const char *text, size_t n);
/* Bytes before `ending`, with which the text ends; 0: it does not, or has no more. */
size_t tn_text_n_stem(const char *text, const char *ending);
/* Is it one of the n words of the list? */
bool tn_text_is_one_of(const char *word, const char *const *list, size_t n);
/* strcmp of two elements of an array of texts, for qsort. */
int tn_text_compare(const void *a, const void *b);
/* Offset of the first occurrence of `word` at or after `at`; n: none. */
size_t tn_text_find(const char *text, size_t n, size_t at, const char *word);
/* Bytes at the end, as many as possible, that may be the start of `word`, which is not complete. */
size_t tn_text_n_begun(const char *text, size_t n, const char *word);

#endif

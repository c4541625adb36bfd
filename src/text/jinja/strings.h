/* SPDX-License-Identifier: MIT
 *
 * Operations on strings that filters and methods share.  All keep the marks of
 * the bytes that they pass on.
 */
#ifndef TN_JINJA_STRINGS_H
#define TN_JINJA_STRINGS_H

#include "text/jinja/eval.h"

enum tn_jcase {
    TN_CASE_UPPER,
    TN_CASE_LOWER,
    TN_CASE_CAPITAL, /* the first character in title case, the others in lower case */
    TN_CASE_TITLE,   /* str.title(): every letter behind something that is none */
    TN_CASE_WORDS,   /* the filter title: every character behind a blank, - ( { [ or < */
};
/* Simple case mappings (one character to one), but for U+00DF, whose capital is "SS". */
struct tn_jvalue tn_jrun_case(struct tn_jrun *run, const struct tn_jstring *s,
                              enum tn_jcase target);

enum tn_jside { TN_SIDE_LEFT = 1, TN_SIDE_RIGHT = 2, TN_SIDE_BOTH = 3 };
/* Without the characters of `chars` (NULL: white space) at its sides. */
struct tn_jvalue tn_jrun_strip(struct tn_jrun *run, const struct tn_jstring *s,
                               const struct tn_jstring *chars, enum tn_jside sides);

/* The first `most` (below 0: all) occurrences of `old` replaced; an empty one stands before every
 * character and at the end. */
struct tn_jvalue tn_jrun_replace(struct tn_jrun *run, const struct tn_jstring *s,
                                 const struct tn_jstring *old, const struct tn_jstring *replacement,
                                 int64_t most);

/* Offset of the first occurrence at or behind `from`, of the last one with tn_jstring_find_last;
 * s->n + 1 when there is none. */
size_t tn_jstring_find(struct tn_jrun *run, const struct tn_jstring *s,
                       const struct tn_jstring *part, size_t from);
size_t tn_jstring_find_last(struct tn_jrun *run, const struct tn_jstring *s,
                            const struct tn_jstring *part, size_t end);
bool tn_jstring_starts(const struct tn_jstring *s, const struct tn_jstring *part);
bool tn_jstring_ends(const struct tn_jstring *s, const struct tn_jstring *part);

/* str.split; separator NULL: runs of white space. most below 0: no limit. */
struct tn_jvalue tn_jrun_split(struct tn_jrun *run, const struct tn_jstring *s,
                               const struct tn_jstring *separator, int64_t most, bool from_end);
struct tn_jvalue tn_jrun_split_lines(struct tn_jrun *run, const struct tn_jstring *s,
                                     bool keeps_ends);
struct tn_jvalue tn_jrun_join(struct tn_jrun *run, const struct tn_jstring *separator,
                              const struct tn_jlist *items);

/* percent.c: format % args. */
struct tn_jvalue tn_jrun_percent(struct tn_jrun *run, const struct tn_jstring *format,
                                 struct tn_jvalue args);

#endif

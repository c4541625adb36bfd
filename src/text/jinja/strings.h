/* SPDX-License-Identifier: MIT
 *
 * String operations shared by filters (filters.c) and methods (methods.c).
 *
 * All keep the marks of the bytes that they copy.
 */
#ifndef TN_JINJA_STRINGS_H
#define TN_JINJA_STRINGS_H

#include "text/jinja/eval.h"

enum tn_jcase {
    TN_CASE_UPPER,
    TN_CASE_LOWER,
    TN_CASE_CAPITAL, /* the first character in title case, the others in lower case */
    TN_CASE_TITLE,   /* str.title(): every letter after a character without case */
    TN_CASE_WORDS,   /* the filter title: every character after a blank or - ( { [ < */
};
/* Simple case mappings (one character to one), except U+00DF, whose upper case is "SS". */
struct tn_jvalue tn_jrun_case(struct tn_jrun *run, const struct tn_jstring *s,
                              enum tn_jcase target);

enum tn_jside { TN_SIDE_LEFT = 1, TN_SIDE_RIGHT = 2, TN_SIDE_BOTH = 3 };
/* Removes the characters in `chars` (NULL: white space) from these sides. */
struct tn_jvalue tn_jrun_strip(struct tn_jrun *run, const struct tn_jstring *s,
                               const struct tn_jstring *chars, enum tn_jside sides);

/* Replaces the first `most` (below 0: all) occurrences of `old`; an empty `old` matches before
 * every character and at the end. */
struct tn_jvalue tn_jrun_replace(struct tn_jrun *run, const struct tn_jstring *s,
                                 const struct tn_jstring *old, const struct tn_jstring *replacement,
                                 int64_t most);

/* Offset of the first occurrence at or after `from`; tn_jstring_find_last: of the last one before
 * `end`.  s->n + 1: none. */
size_t tn_jstring_find(struct tn_jrun *run, const struct tn_jstring *s,
                       const struct tn_jstring *part, size_t from);
size_t tn_jstring_find_last(struct tn_jrun *run, const struct tn_jstring *s,
                            const struct tn_jstring *part, size_t end);
bool tn_jstring_starts(struct tn_jrun *run, const struct tn_jstring *s,
                       const struct tn_jstring *part);
bool tn_jstring_ends(struct tn_jrun *run, const struct tn_jstring *s,
                     const struct tn_jstring *part);

/* str.split; separator NULL: runs of white space.  most < 0: no limit. */
struct tn_jvalue tn_jrun_split(struct tn_jrun *run, const struct tn_jstring *s,
                               const struct tn_jstring *separator, int64_t most, bool from_end);
struct tn_jvalue tn_jrun_split_lines(struct tn_jrun *run, const struct tn_jstring *s,
                                     bool keeps_ends);
/* separator NULL: none */
struct tn_jvalue tn_jrun_join(struct tn_jrun *run, const struct tn_jstring *separator,
                              const struct tn_jlist *items);

/* percent.c: format % args. */
struct tn_jvalue tn_jrun_percent(struct tn_jrun *run, const struct tn_jstring *format,
                                 struct tn_jvalue args);
/* format_method.c: format.format(args). */
struct tn_jvalue tn_jrun_format(struct tn_jrun *run, const struct tn_jstring *format,
                                const struct tn_jargs *args);

#endif

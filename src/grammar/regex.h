/* SPDX-License-Identifier: MIT
 *
 * Regular expressions of JSON schemas: ECMA-262 with the flag `u`.
 *
 *   a \. .      characters; escapes \t \n \v \f \r \0 \cX \xHH \uHHHH \u{H...}, and \ before
 *               punctuation; the dot matches any character except line terminators
 *   [a-z] [^a]  classes, with \d \D \w \W \s \S inside and outside of them
 *   (a) (?:a) (?<name>a) a|b      groups, which capture nothing
 *   * + ? {m} {m,} {m,n}          an additional ? (lazy) has no effect
 *   ^ $                           start and end of the text
 *
 * An expression without ^ may match anywhere in the text, likewise without $.  Unsupported: \b \B,
 * lookaround, back-references, \p, flags.
 */
#ifndef TN_REGEX_H
#define TN_REGEX_H

#include "grammar/nfa.h"

#define TN_REGEX_MAX_BYTES 4096u
#define TN_REGEX_MAX_GROUPS 64u /* nesting depth */
#define TN_REGEX_MAX_REPEAT 10000u

/* Adds an expression (UTF-8 without NUL) to those that a text must match; is_whole: as if it had ^
 * and $ around it.  Error details end with the position, in characters from 0.  TERN_USAGE: invalid
 * expression; TERN_UNSUPPORTED; TERN_LIMIT: too long, too deep, or too many states; TERN_MEMORY. */
tern_status tn_regex_add(struct tn_nfa *nfa, const char *text, bool is_whole,
                         struct tern_error *err);

#endif

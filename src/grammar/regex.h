/* SPDX-License-Identifier: MIT
 *
 * Regular expressions as JSON schemas mean them: ECMA-262 with the flag `u`.
 *
 *   a \. .      characters; escapes \t \n \v \f \r \0 \cX \xHH \uHHHH \u{H...}, and \ before
 *               punctuation; the dot is any character that ends no line
 *   [a-z] [^a]  classes, with \d \D \w \W \s \S in and outside of them
 *   (a) (?:a) (?<name>a) a|b      groups, none of which is remembered
 *   * + ? {m} {m,} {m,n}          also with a ? behind, which changes nothing here
 *   ^ $                           the beginning and the end of the text
 *
 * An expression that begins without ^ may begin anywhere in the text, and so for $.  Refused as
 * unsupported: \b \B, look-around, back-references, \p, flags.
 */
#ifndef TN_REGEX_H
#define TN_REGEX_H

#include "grammar/nfa.h"

#define TN_REGEX_MAX_BYTES 4096u
#define TN_REGEX_MAX_GROUPS 64u /* in each other */
#define TN_REGEX_MAX_REPEAT 10000u

/* Adds an expression, UTF-8 without NUL, that a text must fit.  Details end with the place, in
 * characters from 0: TERN_USAGE: no expression; TERN_UNSUPPORTED; TERN_LIMIT: too long, too deep,
 * or too many states; TERN_MEMORY. */
tern_status tn_regex_add(struct tn_nfa *nfa, const char *text, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The characters of a grammar in GBNF: names, escapes, classes, numbers, and the space between
 * them.
 *
 * Called by gbnf.c, which knows what they mean.
 */
#ifndef TN_GBNF_TEXT_H
#define TN_GBNF_TEXT_H

#include "base/compiler.h"
#include "grammar/regex_class.h"

#define TN_GBNF_MAX_NAME 255u /* bytes */

/* A text in UTF-8 and the read position in it. */
struct tn_gbnf_text {
    const char *begin, *at, *end;
    struct tern_error *err;
    tern_status status; /* of the first failure */
};

/* Prefixes the failure in t->err with the position of `at`: "line L, column C", in characters. */
void tn_gbnf_add_place(const struct tn_gbnf_text *t, const char *at);
/* Fails with that position.  Returns false, for the caller to return. */
bool tn_gbnf_refuse(struct tn_gbnf_text *t, tern_status status, const char *at,
                    const char *format, ...) TN_PRINTF(4, 5);

/* The byte at the read position; 0 at the end. */
char tn_gbnf_peek(const struct tn_gbnf_text *t);
/* Reads `word` if it comes next. */
bool tn_gbnf_accept(struct tn_gbnf_text *t, const char *word);
/* Reads blanks, tabs and comments, and line ends if these may follow. */
void tn_gbnf_space(struct tn_gbnf_text *t, bool with_lines);

/* Length of the name at the read position, which stays there. */
size_t tn_gbnf_name(const struct tn_gbnf_text *t);
/* Reads a number up to `max`. */
bool tn_gbnf_number(struct tn_gbnf_text *t, uint32_t max, uint32_t *n);
/* Reads a character or an escape, before the end of the text. */
bool tn_gbnf_character(struct tn_gbnf_text *t, uint32_t *c);
/* Reads a class after its opening bracket, up to and including the closing one. */
bool tn_gbnf_class(struct tn_gbnf_text *t, struct tn_character_set *set);

#endif

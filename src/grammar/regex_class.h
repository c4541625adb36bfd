/* SPDX-License-Identifier: MIT
 *
 * The characters of a regular expression: escapes and classes.
 */
#ifndef TN_REGEX_CLASS_H
#define TN_REGEX_CLASS_H

#include "grammar/nfa.h"

/* A text that is read from its beginning to its end. */
struct tn_regex_text {
    const char *begin, *at, *end;
    struct tern_error *err;
    tern_status status; /* of the first failure */
};

/* Ranges of one class, before they are sorted. */
#define TN_REGEX_MAX_RANGES 512u

struct tn_character_set {
    struct tn_characters ranges[TN_REGEX_MAX_RANGES];
    uint32_t n;
};

/* Fails with `what` and the place `at`; false, so that checks can return it. */
bool tn_regex_refuse(struct tn_regex_text *t, tern_status status, const char *at,
                     const char *what);

/* The code point at t->at, which is not the end, and moves on. */
uint32_t tn_regex_next(struct tn_regex_text *t);

void tn_regex_dot(struct tn_character_set *set);
/* What stands behind a backslash, at t->at. */
bool tn_regex_escape(struct tn_regex_text *t, struct tn_character_set *set);
/* What stands behind a bracket, at t->at, up to the closing one. */
bool tn_regex_brackets(struct tn_regex_text *t, struct tn_character_set *set);

#endif

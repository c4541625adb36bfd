/* SPDX-License-Identifier: MIT
 *
 * Character classes and escapes of a regular expression.
 *
 * Called by regex.c for each atom; knows nothing of the automaton but its ranges.
 */
#ifndef TN_REGEX_CLASS_H
#define TN_REGEX_CLASS_H

#include "grammar/nfa.h"

/* A text and the read position in it. */
struct tn_regex_text {
    const char *begin, *at, *end;
    struct tern_error *err;
    tern_status status; /* of the first failure; later calls do nothing */
};

/* Ranges of one class, unsorted. */
#define TN_REGEX_MAX_RANGES 512u

struct tn_character_set {
    struct tn_characters ranges[TN_REGEX_MAX_RANGES];
    uint32_t n;
};

/* Fails with `what` and the position `at`.  Returns false, for the caller to return. */
bool tn_regex_refuse(struct tn_regex_text *t, tern_status status, const char *at,
                     const char *what);

/* Reads the code point at t->at, which must not be the end. */
uint32_t tn_regex_next(struct tn_regex_text *t);

void tn_regex_dot(struct tn_character_set *set);
/* Reads the escape after a backslash. */
bool tn_regex_escape(struct tn_regex_text *t, struct tn_character_set *set);
/* Reads a class after its opening bracket, up to and including the closing one. */
bool tn_regex_brackets(struct tn_regex_text *t, struct tn_character_set *set);

#endif

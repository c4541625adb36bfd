/* SPDX-License-Identifier: MIT
 *
 * A text in passages: its paragraphs or its lines, and halves of one that is too long.
 */
#ifndef TN_PASSAGES_H
#define TN_PASSAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Part of a text: n bytes at `text`, in line `line` (from 1) of the whole. No blank begins or ends
 * it. */
struct tn_passage {
    const char *text;
    size_t n;
    size_t line;
};

/* Where a walk over a text stands. */
struct tn_passages {
    const char *at, *end;
    size_t line;
    bool by_line; /* else blank lines divide */
};

/* A walk over n bytes of UTF-8, whose lines are passages, or the stretches between blank lines. */
void tn_passages_start(struct tn_passages *out, const char *text, size_t n, bool by_line);
/* False at the end of the text; passages without a visible character are left out. */
bool tn_passages_next(struct tn_passages *p, struct tn_passage *out);

/* Divides a passage of more than one character near its middle: behind the end of a line, else of a
 * sentence, else of a word, else of a character. False when that cannot be done. */
bool tn_passage_split(const struct tn_passage *p, struct tn_passage *first,
                      struct tn_passage *second);

#endif

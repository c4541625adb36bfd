/* SPDX-License-Identifier: MIT
 *
 * Divides a text into passages: its paragraphs or its lines, and halves of passages that are too
 * long. Used by `tern embed --search`.
 */
#ifndef TN_PASSAGES_H
#define TN_PASSAGES_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of a text: n bytes at `text`, in line `line` (from 1) of the whole, without blanks at its
 * ends. */
struct tn_passage {
    const char *text;
    size_t n;
    size_t line;
};

/* The state of a walk over a text. */
struct tn_passages {
    const char *at, *end;
    size_t line;
    bool by_line; /* else blank lines separate passages */
};

/* Starts a walk over n bytes of UTF-8; passages are its lines, or the paragraphs between blank
 * lines. */
void tn_passages_start(struct tn_passages *out, const char *text, size_t n, bool by_line);
/* False at the end of the text; skips passages without a visible character. */
bool tn_passages_next(struct tn_passages *p, struct tn_passage *out);

/* Splits a passage of more than one character near its middle: after the end of a line, else of a
 * sentence, else of a word, else of a character.  False if that is impossible. */
bool tn_passage_split(const struct tn_passage *p, struct tn_passage *first,
                      struct tn_passage *second);

#endif

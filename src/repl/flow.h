/* SPDX-License-Identifier: MIT
 *
 * Shows text that arrives in pieces on a terminal: wraps lines at words by display columns, indents
 * wrapped rows like their line, and styles Markdown: marks are dimmed, bold text and headings are
 * bold.  No mark is removed, so the output can be copied as Markdown.  Fenced code and table rows
 * are not wrapped.
 *
 * A word is written when it is complete; tn_flow_end writes the last one.  The cursor never moves
 * back: written text is final.
 */
#ifndef TN_FLOW_H
#define TN_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum tn_style { TN_STYLE_PLAIN, TN_STYLE_DIM, TN_STYLE_BOLD };

struct tn_flow_output {
    void (*text)(void *arg, const char *text, size_t n);
    void (*style)(void *arg, enum tn_style style); /* applies to the text that follows */
    void *arg;
};

enum tn_flow_line {
    TN_FLOW_TEXT,
    TN_FLOW_HEADING,
    TN_FLOW_TABLE, /* not wrapped */
    TN_FLOW_FENCE, /* opens a code block */
    TN_FLOW_CODE
};

/* tn_flow_init before use, tn_flow_fini after. */
struct tn_flow {
    struct tn_flow_output output;
    uint32_t columns; /* of the terminal; may change between two writes */
    bool has_markdown;
    uint32_t hang; /* additional indentation of wrapped rows */

    enum tn_flow_line line;
    struct tn_buf word;     /* not yet written */
    bool word_has_begun;    /* part of the word is written */
    bool line_has_begun;    /* a word of the line is written */
    bool has_two_parts;     /* tn_flow_append: indent like the second part */
    uint32_t n_blanks;      /* blanks before the word, not yet written */
    uint32_t column, indent;
    enum tn_style style;
    bool is_bold;
    uint32_t n_ticks;       /* length of the open code mark; 0: none is open */
    char fence;             /* '`' or '~' */
    uint32_t n_fence;
};

void tn_flow_init(struct tn_flow *flow, const struct tn_flow_output *output, uint32_t columns,
                  bool has_markdown);
/* `text` must consist of whole UTF-8 characters.  When out of memory, words are written early. */
void tn_flow_write(struct tn_flow *flow, const char *text, size_t n);
/* Writes the pending word and resets the style.  The next write continues in the same column. */
void tn_flow_end(struct tn_flow *flow);
void tn_flow_fini(struct tn_flow *flow);

/* Appends a complete text of several lines, wrapped and without styles.  Where a line has two parts
 * separated by two or more blanks and the second starts in the left half, wrapped rows align with
 * it; otherwise they are indented by `hang` columns. */
void tn_flow_append(struct tn_buf *out, const char *text, size_t n, uint32_t columns,
                    uint32_t hang);

#endif

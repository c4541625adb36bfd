/* SPDX-License-Identifier: MIT
 *
 * Text that arrives in pieces, shown on a terminal: lines are wrapped at words by the columns of
 * their characters, wrapped rows are indented as their line is, and of Markdown the marks are
 * dimmed, bold text and headings are bold.  Every mark stays, so that what is shown is what was
 * written.  Code in fences and rows of tables are not wrapped.
 *
 * A word is written when it is complete; tn_flow_end writes the last one.  No cursor movement: what
 * was written is never changed.
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
    void (*style)(void *arg, enum tn_style style); /* of the text that follows */
    void *arg;
};

enum tn_flow_line {
    TN_FLOW_TEXT,
    TN_FLOW_HEADING,
    TN_FLOW_TABLE, /* not wrapped */
    TN_FLOW_FENCE, /* the line that opens a block of code */
    TN_FLOW_CODE
};

/* tn_flow_init to begin, tn_flow_fini to end. */
struct tn_flow {
    struct tn_flow_output output;
    uint32_t columns; /* of the terminal; may be changed between two pieces */
    bool has_markdown;
    uint32_t hang; /* further indentation of wrapped rows */

    enum tn_flow_line line;
    struct tn_buf word;     /* what is not written yet */
    bool word_has_begun;    /* a part of it is */
    bool line_has_begun;    /* a word of the line is written */
    bool has_two_parts;     /* tn_flow_append: the indentation is that of the second */
    uint32_t n_blanks;      /* before the word, not written yet */
    uint32_t column, indent;
    enum tn_style style;
    bool is_bold;
    uint32_t n_ticks;       /* of the inline code that is open, 0: none */
    char fence;             /* '`' or '~' */
    uint32_t n_fence;
};

void tn_flow_init(struct tn_flow *flow, const struct tn_flow_output *output, uint32_t columns,
                  bool has_markdown);
/* `text`: whole UTF-8 characters.  Where memory is short words are written early. */
void tn_flow_write(struct tn_flow *flow, const char *text, size_t n);
/* Writes what is left; the style is plain.  The next piece continues in the same column. */
void tn_flow_end(struct tn_flow *flow);
void tn_flow_fini(struct tn_flow *flow);

/* Appends a whole text of several lines, wrapped without styles.  A wrapped row begins below the
 * second part of a line that has two parts with two blanks or more between them, if that is in the
 * left half; else `hang` columns to the right of its line's beginning. */
void tn_flow_append(struct tn_buf *out, const char *text, size_t n, uint32_t columns,
                    uint32_t hang);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Arranges a text of several lines in rows of a given width, each with a prefix (the prompt, or
 * blanks of the same width).  No output: screen.h draws the rows.
 *
 * A row never uses the last column, so no terminal wraps by itself.
 */
#ifndef TN_LAYOUT_H
#define TN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "repl/grapheme.h"

#define TN_TAB_COLUMNS 4
#define TN_MIN_COLUMNS 8 /* narrower terminals are treated as this wide */

enum tn_row_kind { TN_ROW_FIRST, TN_ROW_LINE, TN_ROW_WRAPPED };

struct tn_row {
    size_t start; /* [start, end) of the text, without the line ending */
    size_t end;
    enum tn_row_kind kind;
};

/* Prompt strings: the first line, continuation lines; wrapped rows get blanks. */
struct tn_prompts {
    const char *first;
    const char *more;
};

/* Zero-initialise; tn_layout_fini frees. */
struct tn_layout {
    struct tn_row *rows;
    size_t n_rows;
    size_t n_room;
    struct tn_prompts prompts;
    uint32_t columns;
    size_t cursor_row;
    uint32_t cursor_column; /* including the prefix */
};

void tn_layout_fini(struct tn_layout *layout);
/* Lays out the text and locates the cursor: the cluster that contains it.  The prompts must outlive
 * the layout.  false: out of memory. */
bool tn_layout_make(struct tn_layout *layout, const struct tn_prompts *prompts, const char *text,
                    size_t n, size_t cursor, uint32_t columns);
/* The boundary in a row nearest to a column, from the left. */
size_t tn_layout_offset(const struct tn_layout *layout, const char *text, size_t i_row,
                        uint32_t column);

/* The prefix of a row: the bytes that fit, and their columns. */
struct tn_prefix {
    const char *text; /* NULL: blanks */
    size_t n_bytes;
    uint32_t width;
};
struct tn_prefix tn_layout_prefix(const struct tn_prompts *prompts, enum tn_row_kind kind,
                                  uint32_t columns);
/* The cluster at text[0] if it begins in `column`: a tab extends to the next tab stop. */
struct tn_cluster tn_layout_cluster(const char *text, size_t n, uint32_t column);

#endif

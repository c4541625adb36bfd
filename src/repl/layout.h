/* SPDX-License-Identifier: MIT
 *
 * Where a text of several lines comes to lie on a terminal of a given width: rows, each with a
 * prefix (the prompt, or as many blanks).  Pure; screen.h draws the rows.
 *
 * A row never takes the last column, so that no terminal wraps by itself.
 */
#ifndef TN_LAYOUT_H
#define TN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "repl/grapheme.h"

#define TN_TAB_COLUMNS 4
#define TN_MIN_COLUMNS 8 /* narrower terminals are taken to be that wide */

enum tn_row_kind { TN_ROW_FIRST, TN_ROW_LINE, TN_ROW_WRAPPED };

struct tn_row {
    size_t start; /* bytes of the text: [start, end), without the line end */
    size_t end;
    enum tn_row_kind kind;
};

/* What stands before the rows: `first`, `more` for lines, blanks for wrapped rows. */
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
    uint32_t cursor_column; /* with the prefix */
};

void tn_layout_fini(struct tn_layout *layout);
/* Lays out the text and finds the cursor; the prompts must live as long as the layout is used.
 * False: no memory. */
bool tn_layout_make(struct tn_layout *layout, const struct tn_prompts *prompts, const char *text,
                    size_t n, size_t cursor, uint32_t columns);
/* The boundary in a row that is nearest to a column, from the left. */
size_t tn_layout_offset(const struct tn_layout *layout, const char *text, size_t i_row,
                        uint32_t column);

/* The prefix of a row: bytes, and how many of them fit; the width is that of its columns. */
struct tn_prefix {
    const char *text; /* NULL: blanks */
    size_t n_bytes;
    uint32_t width;
};
struct tn_prefix tn_layout_prefix(const struct tn_prompts *prompts, enum tn_row_kind kind,
                                  uint32_t columns);
/* The cluster at text[0] when it begins in `column`: tabs reach to the next stop. */
struct tn_cluster tn_layout_cluster(const char *text, size_t n, uint32_t column);

#endif

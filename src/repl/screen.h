/* SPDX-License-Identifier: MIT
 *
 * What the terminal shows of a layout, and the fewest bytes that change it into another one.
 * Writes into a buffer; the line editor sends it in one piece.
 *
 * Terminals do not agree about the width of pictures of several characters: behind each one the
 * column is set, so that what follows lies where the layout says.
 */
#ifndef TN_SCREEN_H
#define TN_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "repl/layout.h"

struct tn_drawn_row {
    struct tn_buf bytes; /* prefix and text */
    size_t n_prefix;
};

/* Zero-initialise; tn_screen_fini frees. */
struct tn_screen {
    struct tn_drawn_row *rows; /* [n_room] */
    size_t n_rows;
    size_t n_room;
    size_t top;        /* row of the layout that is drawn first */
    size_t cursor_row; /* on the screen, from 0 */
    uint32_t cursor_column;
    const char *style; /* before a prompt, which ESC[0m follows then; NULL: none */
};

void tn_screen_fini(struct tn_screen *screen);
/* Changes what is shown to `layout` of `text`: at most max_rows rows, those around the cursor. When
 * nothing is drawn yet, from column 0 of the cursor's row on. False: no memory; what is shown is
 * unknown then. */
bool tn_screen_update(struct tn_screen *screen, struct tn_buf *out, const struct tn_layout *layout,
                      const char *text, size_t max_rows);
/* Moves to column 0 of the row below, and forgets what is drawn. */
void tn_screen_leave(struct tn_screen *screen, struct tn_buf *out);
/* Erases what is drawn, on a terminal that is `columns` wide by now: one that became narrower has
 * broken the rows that were wider. */
void tn_screen_erase(struct tn_screen *screen, struct tn_buf *out, uint32_t columns);
/* Something else was written, or the terminal is another: the next update draws everything. */
void tn_screen_forget(struct tn_screen *screen);

#endif

/* SPDX-License-Identifier: MIT
 *
 * What the terminal shows of a layout, and the fewest bytes that turn it into another one.  Writes
 * into a buffer, which the line editor sends at once.
 *
 * Terminals disagree about the width of emoji of several code points: after each one the column is
 * set explicitly, so the text after it is where the layout has it.
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
    size_t top;        /* first visible row of the layout */
    size_t cursor_row; /* on the screen, from 0 */
    uint32_t cursor_column;
    const char *style; /* set before a prompt, reset with ESC[0m after it; NULL: none */
};

void tn_screen_fini(struct tn_screen *screen);
/* Updates the terminal to `layout` of `text`, limited to max_rows rows around the cursor.  The
 * first update starts in column 0 of the cursor's row.  false: out of memory; the state of the
 * terminal is unknown then. */
bool tn_screen_update(struct tn_screen *screen, struct tn_buf *out, const struct tn_layout *layout,
                      const char *text, size_t max_rows);
/* Moves to column 0 of the row below and forgets the drawn rows. */
void tn_screen_leave(struct tn_screen *screen, struct tn_buf *out);
/* Erases the drawn rows on a terminal that is now `columns` wide: if it became narrower, it has
 * wrapped the wider rows. */
void tn_screen_erase(struct tn_screen *screen, struct tn_buf *out, uint32_t columns);
/* Something else wrote to the terminal, or it was replaced: the next update draws everything. */
void tn_screen_forget(struct tn_screen *screen);

#endif

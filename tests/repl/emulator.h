/* SPDX-License-Identifier: MIT
 *
 * A small terminal for tests: the screen that the line editor's output produces.  Widths are those
 * of single code points, as in terminals that do not support clusters.
 */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <stdbool.h>
#include <stddef.h>

#define EMULATOR_ROWS 40
#define EMULATOR_COLUMNS 120
#define CELL_BYTES 96

struct emulator {
    char cells[EMULATOR_ROWS][EMULATOR_COLUMNS][CELL_BYTES]; /* "" = blank; "\1": right half */
    int rows, columns;
    int row, column;
    bool is_wrapping;  /* DECAWM */
    bool wraps_next;   /* a character was written to the last column */
    int n_wraps;       /* lines that the terminal wrapped by itself */
    int n_unknown;     /* unsupported sequences */
};

void emulator_init(struct emulator *t, int rows, int columns);
void emulator_write(struct emulator *t, const char *bytes, size_t n);
/* Are these two rows equal? */
bool emulator_row_equals(const struct emulator *a, int row_a, const struct emulator *b, int row_b);
bool emulator_row_is_blank(const struct emulator *t, int row);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The terminal of emulator.h: interprets the sequences that the line editor writes.
 *
 * Unknown sequences are counted, and a test fails if there are any.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/compiler.h"

void emulator_init(struct emulator *t, int rows, int columns)
{
    memset(t, 0, sizeof *t);
    t->rows = rows;
    t->columns = columns;
    t->is_wrapping = true;
}

static void clear_cells(struct emulator *t, int row, int from, int to)
{
    /* Overwriting half of a wide character erases the other half. */
    if (from > 0 && t->cells[row][from][0] == 1)
        t->cells[row][from - 1][0] = 0;
    for (int i = from; i < to; i++)
        t->cells[row][i][0] = 0;
    if (to < t->columns && t->cells[row][to][0] == 1)
        t->cells[row][to][0] = 0;
}

static void line_feed(struct emulator *t)
{
    t->wraps_next = false;
    t->column = 0; /* the system writes CR before LF */
    if (t->row + 1 < t->rows) {
        t->row++;
        return;
    }
    memmove(t->cells[0], t->cells[1], (size_t)(t->rows - 1) * sizeof t->cells[0]);
    memset(t->cells[t->rows - 1], 0, sizeof t->cells[0]);
}

static void put_mark(struct emulator *t, const char *bytes, size_t n)
{
    int column = t->wraps_next ? t->column : t->column - 1;
    if (column >= 0 && t->cells[t->row][column][0] == 1)
        column--;
    char *cell = column >= 0 ? t->cells[t->row][column] : NULL;
    if (cell && cell[0] && strlen(cell) + n < CELL_BYTES)
        strncat(cell, bytes, n);
}

static void put_character(struct emulator *t, const char *bytes, size_t n, int width)
{
    if (width == 0) {
        put_mark(t, bytes, n);
        return;
    }
    if (t->wraps_next || t->column + width > t->columns) {
        if (t->is_wrapping) {
            t->n_wraps++;
            t->column = 0;
            line_feed(t);
        } else {
            t->column = t->columns - width;
        }
        t->wraps_next = false;
    }
    clear_cells(t, t->row, t->column, t->column + width);
    memcpy(t->cells[t->row][t->column], bytes, n);
    t->cells[t->row][t->column][n] = 0;
    if (width == 2)
        strcpy(t->cells[t->row][t->column + 1], "\1");
    t->column += width;
    if (t->column >= t->columns) {
        t->column = t->columns - 1;
        t->wraps_next = t->is_wrapping;
    }
}

static void erase(struct emulator *t, char last, int number)
{
    clear_cells(t, t->row, t->column, t->columns);
    if (last == 'J' && number == 2)
        for (int row = 0; row < t->rows; row++)
            clear_cells(t, row, 0, t->columns);
    for (int row = t->row + 1; last == 'J' && row < t->rows; row++)
        clear_cells(t, row, 0, t->columns);
}

static void control(struct emulator *t, bool is_private, int number, bool has_number, char last)
{
    const int n = number > 0 ? number : 1;
    t->wraps_next = false;
    if (is_private && number == 7)
        t->is_wrapping = last == 'h';
    else if (is_private)
        t->n_unknown += number != 2004;
    else if (last == 'A')
        t->row = TN_MAX(t->row - n, 0);
    else if (last == 'B')
        t->row = TN_MIN(t->row + n, t->rows - 1);
    else if (last == 'G')
        t->column = TN_MIN(n - 1, t->columns - 1);
    else if (last == 'H' && !has_number)
        t->row = t->column = 0;
    else if (last == 'K' || last == 'J')
        erase(t, last, number);
    else if (last != 'm')
        t->n_unknown++;
}

/* Interprets ESC [ ...; returns its length. */
static size_t sequence(struct emulator *t, const char *bytes, size_t n)
{
    size_t at = 2;
    const bool is_private = at < n && bytes[at] == '?';
    at += is_private;
    const size_t digits = at;
    while (at < n && bytes[at] >= '0' && bytes[at] <= '9')
        at++;
    if (at >= n) {
        t->n_unknown++;
        return n;
    }
    control(t, is_private, at > digits ? atoi(bytes + digits) : 0, at > digits, bytes[at]);
    return at + 1;
}

static size_t one(struct emulator *t, const char *bytes, size_t n)
{
    utf8proc_int32_t c;
    if (bytes[0] == '\x1b')
        return sequence(t, bytes, n);
    if (bytes[0] == '\r' || bytes[0] == '\b') {
        t->column = bytes[0] == '\r' ? 0 : TN_MAX(t->column - 1, 0);
        t->wraps_next = false;
        return 1;
    }
    if (bytes[0] == '\n') {
        line_feed(t);
        return 1;
    }
    utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)bytes,
                                               (utf8proc_ssize_t)n, &c);
    if (length <= 0 || c < 0x20 || (c >= 0x7F && c < 0xA0)) {
        t->n_unknown++;
        return 1;
    }
    put_character(t, bytes, (size_t)length, utf8proc_charwidth(c));
    return (size_t)length;
}

void emulator_write(struct emulator *t, const char *bytes, size_t n)
{
    for (size_t at = 0; at < n;)
        at += one(t, bytes + at, n - at);
}

/* Written blanks equal cells that were never written. */
static const char *cell_text(const struct emulator *t, int row, int column)
{
    const char *cell = t->cells[row][column];
    return cell[0] ? cell : " ";
}

bool emulator_row_equals(const struct emulator *a, int row_a, const struct emulator *b, int row_b)
{
    for (int i = 0; i < a->columns; i++)
        if (strcmp(cell_text(a, row_a, i), cell_text(b, row_b, i)) != 0)
            return false;
    return true;
}

bool emulator_row_is_blank(const struct emulator *t, int row)
{
    for (int i = 0; i < t->columns; i++)
        if (strcmp(cell_text(t, row, i), " ") != 0)
            return false;
    return true;
}

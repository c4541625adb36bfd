/* SPDX-License-Identifier: MIT
 *
 * Draws rows.  A drawn row is remembered as its bytes; a common prefix with the new row, up to a
 * cluster boundary of both, is not drawn again.
 */
#include "repl/screen.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

void tn_screen_fini(struct tn_screen *screen)
{
    for (size_t i = 0; i < screen->n_room; i++)
        tn_buf_fini(&screen->rows[i].bytes);
    tn_free(screen->rows);
    *screen = (struct tn_screen){0};
}

static bool make_room(struct tn_screen *screen, size_t n_rows)
{
    if (n_rows <= screen->n_room)
        return true;
    struct tn_drawn_row *grown = tn_realloc(screen->rows, n_rows * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + screen->n_room, 0, (n_rows - screen->n_room) * sizeof *grown);
    screen->rows = grown;
    screen->n_room = n_rows;
    return true;
}

/* ---- moving ---- */

/* Moves to a row that is drawn already. */
static void move_row(struct tn_screen *screen, struct tn_buf *out, size_t row)
{
    if (row < screen->cursor_row)
        tn_buf_printf(out, "\x1b[%zuA", screen->cursor_row - row);
    else if (row > screen->cursor_row)
        tn_buf_printf(out, "\x1b[%zuB", row - screen->cursor_row);
    screen->cursor_row = row;
}

static void move_column(struct tn_screen *screen, struct tn_buf *out, uint32_t column)
{
    if (column == 0 && screen->cursor_column != 0)
        tn_buf_append_text(out, "\r");
    else if (column + 1 == screen->cursor_column)
        tn_buf_append_text(out, "\b");
    else if (column != screen->cursor_column)
        tn_buf_printf(out, "\x1b[%uG", column + 1);
    screen->cursor_column = column;
}

/* Opens a new row below the last one, scrolling if necessary.  A line ending moves to column 0,
 * because the output is not raw. */
static void open_row(struct tn_screen *screen, struct tn_buf *out, size_t row)
{
    if (row > 0) {
        move_row(screen, out, row - 1);
        tn_buf_append_text(out, "\n");
        screen->cursor_row = row;
    }
    screen->cursor_column = 0;
}

/* ---- one row ---- */

struct drawing {
    struct tn_screen *screen;
    struct tn_buf *out;
    bool wraps; /* the terminal may wrap; disabled where widths are uncertain */
};

static void draw_cluster(struct drawing *d, const char *text, const struct tn_cluster *cluster)
{
    struct tn_screen *screen = d->screen;
    if (!cluster->is_certain) { /* the terminal may use more or fewer columns than computed */
        tn_buf_append_text(d->out, d->wraps ? "\x1b[?7l\x1b[K" : "\x1b[K");
        d->wraps = false;
    }
    if (text[0] == '\t') {
        tn_buf_append(d->out, "        ", cluster->width);
    } else if (cluster->width > 0) { /* other clusters are invisible and could reverse the line */
        if (cluster->is_bare)
            tn_buf_append_text(d->out, " ");
        tn_buf_append(d->out, text, cluster->n_bytes);
    }
    screen->cursor_column += cluster->width;
    if (!cluster->is_certain)
        tn_buf_printf(d->out, "\x1b[%uG\x1b[K", screen->cursor_column + 1);
}

/* The cluster at byte `at` of a drawn row. */
static struct tn_cluster row_cluster(const struct tn_drawn_row *row, size_t at, uint32_t column)
{
    const size_t end = at < row->n_prefix ? row->n_prefix : row->bytes.n_bytes;
    return tn_layout_cluster(row->bytes.data + at, end - at, column);
}

static uint32_t row_width(const struct tn_drawn_row *row)
{
    uint32_t width = 0;
    for (size_t at = 0; at < row->bytes.n_bytes;) {
        struct tn_cluster cluster = row_cluster(row, at, width);
        width += cluster.width;
        at += cluster.n_bytes;
    }
    return width;
}

/* Draws a row from the boundary `from`, which is in `column`. */
static void draw_from(struct drawing *d, const struct tn_drawn_row *row, size_t from,
                      uint32_t column)
{
    const bool is_styled = from < row->n_prefix && d->screen->style;
    move_column(d->screen, d->out, column);
    if (is_styled)
        tn_buf_append_text(d->out, d->screen->style);
    for (size_t at = from; at < row->bytes.n_bytes;) {
        if (is_styled && at == row->n_prefix)
            tn_buf_append_text(d->out, "\x1b[0m");
        struct tn_cluster cluster = row_cluster(row, at, d->screen->cursor_column);
        draw_cluster(d, row->bytes.data + at, &cluster);
        at += cluster.n_bytes;
    }
    if (is_styled && row->n_prefix == row->bytes.n_bytes)
        tn_buf_append_text(d->out, "\x1b[0m");
}

/* The first boundary common to both rows from which they differ, and its column. */
static size_t find_difference(const struct tn_drawn_row *old, const struct tn_drawn_row *row,
                              uint32_t *column)
{
    size_t at = 0;
    *column = 0;
    if (old->n_prefix != row->n_prefix)
        return 0;
    while (at < old->bytes.n_bytes && at < row->bytes.n_bytes) {
        struct tn_cluster a = row_cluster(old, at, *column);
        struct tn_cluster b = row_cluster(row, at, *column);
        if (a.n_bytes != b.n_bytes ||
            memcmp(old->bytes.data + at, row->bytes.data + at, a.n_bytes) != 0)
            break;
        *column += b.width;
        at += b.n_bytes;
    }
    return at;
}

/* Composes the bytes of a row: prefix and text. */
static bool compose_row(struct tn_drawn_row *out, const struct tn_layout *layout, const char *text,
                        const struct tn_row *row)
{
    struct tn_prefix prefix = tn_layout_prefix(&layout->prompts, row->kind, layout->columns);
    tn_buf_clear(&out->bytes);
    bool ok = true;
    if (prefix.text)
        ok = tn_buf_append(&out->bytes, prefix.text, prefix.n_bytes);
    for (uint32_t i = 0; !prefix.text && ok && i < prefix.width; i++)
        ok = tn_buf_append(&out->bytes, " ", 1);
    out->n_prefix = out->bytes.n_bytes;
    return ok && tn_buf_append(&out->bytes, text + row->start, row->end - row->start);
}

/* Updates row i of the screen to `row` and stores it; *row receives the old one. */
static void update_row(struct drawing *d, size_t i, struct tn_drawn_row *row)
{
    struct tn_screen *screen = d->screen;
    uint32_t column = 0;
    size_t from = 0;
    uint32_t old_width = 0;
    if (i < screen->n_rows) {
        from = find_difference(&screen->rows[i], row, &column);
        if (from == screen->rows[i].bytes.n_bytes && from == row->bytes.n_bytes)
            return;
        old_width = row_width(&screen->rows[i]);
        move_row(screen, d->out, i);
    } else {
        open_row(screen, d->out, i);
        screen->n_rows = i + 1;
    }
    draw_from(d, row, from, column);
    if (screen->cursor_column < old_width)
        tn_buf_append_text(d->out, "\x1b[K");
    struct tn_drawn_row old = screen->rows[i];
    screen->rows[i] = *row;
    *row = old;
}

/* ---- the screen ---- */

static void choose_top(struct tn_screen *screen, const struct tn_layout *layout, size_t max_rows)
{
    if (screen->top + max_rows > layout->n_rows)
        screen->top = layout->n_rows > max_rows ? layout->n_rows - max_rows : 0;
    if (layout->cursor_row < screen->top)
        screen->top = layout->cursor_row;
    if (layout->cursor_row >= screen->top + max_rows)
        screen->top = layout->cursor_row + 1 - max_rows;
}

bool tn_screen_update(struct tn_screen *screen, struct tn_buf *out, const struct tn_layout *layout,
                      const char *text, size_t max_rows)
{
    max_rows = TN_MAX(max_rows, (size_t)1);
    choose_top(screen, layout, max_rows);
    const size_t n_rows = TN_MIN(layout->n_rows - screen->top, max_rows);
    const size_t n_old = screen->n_rows;
    struct drawing d = {screen, out, true};
    struct tn_drawn_row row = {0};
    bool ok = make_room(screen, n_rows);
    for (size_t i = 0; ok && i < n_rows; i++) {
        ok = compose_row(&row, layout, text, &layout->rows[screen->top + i]);
        if (ok)
            update_row(&d, i, &row);
    }
    tn_buf_fini(&row.bytes);
    if (ok && n_old > n_rows) {
        move_row(screen, out, n_rows);
        move_column(screen, out, 0);
        tn_buf_append_text(out, "\x1b[J");
        screen->n_rows = n_rows;
    }
    if (!d.wraps)
        tn_buf_append_text(out, "\x1b[?7h");
    if (ok) {
        move_row(screen, out, layout->cursor_row - screen->top);
        move_column(screen, out, layout->cursor_column);
    }
    return ok && !out->failed;
}

void tn_screen_leave(struct tn_screen *screen, struct tn_buf *out)
{
    if (screen->n_rows > 0) {
        move_row(screen, out, screen->n_rows - 1);
        tn_buf_append_text(out, "\n");
    }
    tn_screen_forget(screen);
}

void tn_screen_erase(struct tn_screen *screen, struct tn_buf *out, uint32_t columns)
{
    columns = TN_MAX(columns, 1u);
    size_t n_above = screen->cursor_column / columns;
    for (size_t i = 0; i < screen->cursor_row && i < screen->n_rows; i++) {
        const uint32_t width = row_width(&screen->rows[i]);
        n_above += width > columns ? (width + columns - 1) / columns : 1;
    }
    if (n_above > 0)
        tn_buf_printf(out, "\x1b[%zuA", n_above);
    tn_buf_append_text(out, "\r\x1b[J");
    tn_screen_forget(screen);
}

void tn_screen_forget(struct tn_screen *screen)
{
    screen->n_rows = 0;
    screen->cursor_row = 0;
    screen->cursor_column = 0;
    screen->top = 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Breaks a text into terminal rows and finds the cursor in them.
 *
 * Computed anew for every draw; screen.c sends only the difference.
 */
#include "repl/layout.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

/* ---- prefixes and widths ---- */

/* A prompt that is too long for the terminal is truncated. */
static struct tn_prefix cut_prefix(const char *text, uint32_t max_width)
{
    struct tn_prefix prefix = {text, 0, 0};
    for (size_t n = strlen(text); prefix.n_bytes < n;) {
        struct tn_cluster cluster =
            tn_cluster_first(text + prefix.n_bytes, n - prefix.n_bytes);
        if (prefix.width + cluster.width > max_width)
            break;
        prefix.width += cluster.width;
        prefix.n_bytes += cluster.n_bytes;
    }
    return prefix;
}

struct tn_prefix tn_layout_prefix(const struct tn_prompts *prompts, enum tn_row_kind kind,
                                  uint32_t columns)
{
    const uint32_t max_width = columns - 1 - TN_MAX_CLUSTER_WIDTH;
    struct tn_prefix prefix =
        cut_prefix(kind == TN_ROW_FIRST ? prompts->first : prompts->more, max_width);
    if (kind == TN_ROW_WRAPPED)
        prefix.text = NULL;
    return prefix;
}

struct tn_cluster tn_layout_cluster(const char *text, size_t n, uint32_t column)
{
    if (text[0] == '\t')
        return (struct tn_cluster){1, TN_TAB_COLUMNS - column % TN_TAB_COLUMNS, true, false};
    if ((unsigned char)text[0] >= 0x20 && (unsigned char)text[0] < 0x7F &&
        (n == 1 || (unsigned char)text[1] < 0x80))
        return (struct tn_cluster){1, 1, true, false};
    return tn_cluster_first(text, n);
}

/* ---- rows ---- */

void tn_layout_fini(struct tn_layout *layout)
{
    tn_free(layout->rows);
    *layout = (struct tn_layout){0};
}

static struct tn_row *add_row(struct tn_layout *layout, size_t start, enum tn_row_kind kind)
{
    struct tn_row *rows = tn_grow(layout->rows, sizeof *rows, layout->n_rows, &layout->n_room);
    if (!rows)
        return NULL;
    layout->rows = rows;
    struct tn_row *row = &rows[layout->n_rows++];
    *row = (struct tn_row){start, start, kind};
    return row;
}

static void place_cursor(struct tn_layout *layout, uint32_t column)
{
    layout->cursor_row = layout->n_rows - 1;
    layout->cursor_column = column;
}

bool tn_layout_make(struct tn_layout *layout, const struct tn_prompts *prompts, const char *text,
                    size_t n, size_t cursor, uint32_t columns)
{
    columns = TN_MAX(columns, TN_MIN_COLUMNS);
    const uint32_t limit = columns - 1;
    uint32_t widths[3];
    for (int kind = 0; kind < 3; kind++)
        widths[kind] = tn_layout_prefix(prompts, (enum tn_row_kind)kind, columns).width;
    layout->n_rows = 0;
    layout->prompts = *prompts;
    layout->columns = columns;
    struct tn_row *row = add_row(layout, 0, TN_ROW_FIRST);
    uint32_t column = widths[TN_ROW_FIRST];
    for (size_t at = 0; row && at < n;) {
        const struct tn_cluster cluster = tn_layout_cluster(text + at, n - at, column);
        const bool is_line_end = text[at] == '\n';
        if (column + cluster.width > limit && at > row->start) {
            if (!(row = add_row(layout, at, TN_ROW_WRAPPED)))
                break;
            column = widths[TN_ROW_WRAPPED];
            continue; /* the width of a tab depends on its column */
        }
        if (at <= cursor && cursor < at + cluster.n_bytes)
            place_cursor(layout, column);
        at += cluster.n_bytes;
        column += cluster.width;
        row->end = at - is_line_end;
        if (is_line_end) {
            row = add_row(layout, at, TN_ROW_LINE);
            column = widths[TN_ROW_LINE];
        }
    }
    if (row && cursor >= n)
        place_cursor(layout, column);
    return row != NULL;
}

size_t tn_layout_offset(const struct tn_layout *layout, const char *text, size_t i_row,
                        uint32_t column)
{
    const struct tn_row *row = &layout->rows[i_row];
    uint32_t here = tn_layout_prefix(&layout->prompts, row->kind, layout->columns).width;
    size_t at = row->start;
    while (at < row->end) {
        struct tn_cluster cluster = tn_layout_cluster(text + at, row->end - at, here);
        /* After the last cluster of a row that wraps, the cursor is in the next row. */
        bool is_last = at + cluster.n_bytes == row->end && i_row + 1 < layout->n_rows &&
                       layout->rows[i_row + 1].kind == TN_ROW_WRAPPED;
        if (here + cluster.width > column || is_last)
            break;
        here += cluster.width;
        at += cluster.n_bytes;
    }
    return at;
}

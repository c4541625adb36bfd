/* SPDX-License-Identifier: MIT
 *
 * The text being typed: movement, changes, kills, undo.
 *
 * Every change goes through change_text(), which records it for undo.  The cursor is always on a
 * grapheme boundary.
 */
#include "repl/edit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "repl/grapheme.h"

#define MAX_CHANGES 1000
#define MAX_CHANGE_BYTES ((size_t)32 << 20)
#define TYPED_TOGETHER 64 /* maximum bytes that one undo removes */

struct tn_edit_change {
    size_t at;
    size_t cursor_before;
    size_t n_removed;
    size_t n_inserted;
    char *bytes; /* the removed bytes, then the inserted ones */
};

/* ---- changes ---- */

static void forget_change(struct tn_edit *e, size_t i)
{
    e->n_change_bytes -= e->changes[i].n_removed + e->changes[i].n_inserted;
    tn_free(e->changes[i].bytes);
}

static void forget_first_change(struct tn_edit *e)
{
    forget_change(e, 0);
    e->n_changes--;
    e->i_change -= e->i_change > 0;
    memmove(e->changes, e->changes + 1, e->n_changes * sizeof *e->changes);
}

static void forget_undone(struct tn_edit *e)
{
    while (e->n_changes > e->i_change)
        forget_change(e, --e->n_changes);
}

static bool make_room_for_change(struct tn_edit *e)
{
    struct tn_edit_change *changes =
        tn_grow(e->changes, sizeof *changes, e->n_changes, &e->n_room);
    if (changes)
        e->changes = changes;
    return changes != NULL;
}

/* Does text typed at `at` extend the last change?  A new word does not. */
static bool joins_last_change(const struct tn_edit *e, size_t at, const char *text)
{
    if (e->last != TN_EDIT_TYPED || e->i_change == 0 || e->i_change != e->n_changes)
        return false;
    const struct tn_edit_change *last = &e->changes[e->i_change - 1];
    if (last->n_removed > 0 || last->at + last->n_inserted != at ||
        last->n_inserted >= TYPED_TOGETHER)
        return false;
    return text[0] == ' ' || last->bytes[last->n_inserted - 1] != ' ';
}

static bool note_typed(struct tn_edit *e, const char *text, size_t n)
{
    struct tn_edit_change *last = &e->changes[e->i_change - 1];
    char *grown = tn_realloc(last->bytes, last->n_inserted + n);
    if (!grown)
        return false;
    memcpy(grown + last->n_inserted, text, n);
    last->bytes = grown;
    last->n_inserted += n;
    e->n_change_bytes += n;
    return true;
}

static bool note_change(struct tn_edit *e, size_t at, size_t n_removed, const char *text, size_t n)
{
    forget_undone(e);
    while (e->n_changes > 0 && (e->n_changes >= MAX_CHANGES ||
                                e->n_change_bytes + n_removed + n > MAX_CHANGE_BYTES))
        forget_first_change(e);
    char *bytes = tn_alloc(n_removed + n + 1);
    if (!bytes || !make_room_for_change(e)) {
        tn_free(bytes);
        return false;
    }
    if (n_removed > 0)
        memcpy(bytes, e->text.data + at, n_removed);
    if (n > 0)
        memcpy(bytes + n_removed, text, n);
    e->changes[e->n_changes++] = (struct tn_edit_change){at, e->cursor, n_removed, n, bytes};
    e->i_change = e->n_changes;
    e->n_change_bytes += n_removed + n;
    return true;
}

/* Replaces n_removed bytes; the buffer has room. */
static void splice(struct tn_edit *e, size_t at, size_t n_removed, const char *text, size_t n)
{
    struct tn_buf *buf = &e->text;
    memmove(buf->data + at + n, buf->data + at + n_removed, buf->n_bytes - at - n_removed);
    if (n > 0)
        memcpy(buf->data + at, text, n);
    buf->n_bytes = buf->n_bytes - n_removed + n;
}

/* A change can join its neighbours into one cluster, so the cursor snaps to a boundary. */
void tn_edit_move_to(struct tn_edit *e, size_t offset)
{
    e->cursor = tn_grapheme_snap(e->text.data, e->text.n_bytes, offset);
    e->last = TN_EDIT_OTHER;
}

static bool change_text(struct tn_edit *e, size_t at, size_t n_removed, const char *text, size_t n,
                        enum tn_edit_action action)
{
    if (n_removed == 0 && n == 0)
        return false;
    /* always allocated: offsets into NULL would need special cases */
    if (!tn_buf_reserve(&e->text, n + 1))
        return false;
    const bool joins = action == TN_EDIT_TYPED && n_removed == 0 && joins_last_change(e, at, text);
    if (!(joins ? note_typed(e, text, n) : note_change(e, at, n_removed, text, n)))
        return false;
    splice(e, at, n_removed, text, n);
    tn_edit_move_to(e, at + n);
    e->last = action;
    return true;
}

void tn_edit_clear(struct tn_edit *e)
{
    e->i_change = 0;
    forget_undone(e);
    tn_buf_clear(&e->text);
    e->cursor = 0;
    e->last = TN_EDIT_OTHER;
}

void tn_edit_fini(struct tn_edit *e)
{
    tn_edit_clear(e);
    tn_free(e->changes);
    tn_buf_fini(&e->text);
    for (size_t i = 0; i < TN_EDIT_KILLS; i++)
        tn_buf_fini(&e->kills[i]);
    *e = (struct tn_edit){0};
}

/* ---- inserting ---- */

static bool insert_clean(struct tn_edit *e, size_t start, size_t end, const char *text, size_t n,
                         enum tn_edit_action action)
{
    struct tn_buf clean = {0};
    bool ok = tn_clean_append(&clean, text, n) &&
              change_text(e, start, end - start, clean.data, clean.n_bytes, action);
    tn_buf_fini(&clean);
    return ok;
}

bool tn_edit_type(struct tn_edit *e, const char *text, size_t n)
{
    return insert_clean(e, e->cursor, e->cursor, text, n, TN_EDIT_TYPED);
}

bool tn_edit_insert(struct tn_edit *e, const char *text, size_t n)
{
    return insert_clean(e, e->cursor, e->cursor, text, n, TN_EDIT_OTHER);
}

bool tn_edit_replace(struct tn_edit *e, size_t start, size_t end, const char *text, size_t n)
{
    return insert_clean(e, start, end, text, n, TN_EDIT_OTHER);
}

/* ---- positions ---- */

static bool is_word_at(const struct tn_edit *e, size_t pos)
{
    return tn_is_word(e->text.data + pos, e->text.n_bytes - pos);
}

static bool is_blank_at(const struct tn_edit *e, size_t pos)
{
    return strchr(" \t\n", e->text.data[pos]) != NULL;
}

/* End of the cluster that begins at pos; unlike tn_grapheme_next it does not look back. */
static size_t cluster_end(const struct tn_edit *e, size_t pos)
{
    return pos + tn_cluster_first(e->text.data + pos, e->text.n_bytes - pos).n_bytes;
}

/* Moves left to where the class of the preceding character changes; 0 at the start.  Scans
 * stretches between certain boundaries, each forward once, so the time is linear. */
static size_t skip_left(const struct tn_edit *e, size_t pos,
                        bool (*is_inside)(const struct tn_edit *e, size_t pos), bool inside)
{
    bool is_found = false;
    while (pos > 0 && !is_found) {
        const size_t start = tn_grapheme_certain(e->text.data, e->text.n_bytes, pos - 1);
        size_t found = start;
        for (size_t at = start, end; at < pos; at = end) {
            end = cluster_end(e, at);
            if (is_inside(e, at) == inside) {
                is_found = true;
                found = end;
            }
        }
        pos = found;
    }
    return pos;
}

static size_t skip_right(const struct tn_edit *e, size_t pos, bool inside)
{
    while (pos < e->text.n_bytes && is_word_at(e, pos) != inside)
        pos = cluster_end(e, pos);
    return pos;
}

static size_t place(const struct tn_edit *e, enum tn_edit_to to)
{
    const char *text = e->text.data;
    const size_t n = e->text.n_bytes;
    size_t at = e->cursor;
    switch (to) {
    case TN_EDIT_LEFT:
        return tn_grapheme_previous(text, n, at);
    case TN_EDIT_RIGHT:
        return tn_grapheme_next(text, n, at);
    case TN_EDIT_WORD_LEFT:
        return skip_left(e, skip_left(e, at, is_word_at, true), is_word_at, false);
    case TN_EDIT_WORD_RIGHT:
        return skip_right(e, skip_right(e, at, true), false);
    case TN_EDIT_BLANK_LEFT:
        return skip_left(e, skip_left(e, at, is_blank_at, false), is_blank_at, true);
    case TN_EDIT_LINE_START:
        while (at > 0 && text[at - 1] != '\n')
            at--;
        return at;
    case TN_EDIT_LINE_END:
        while (at < n && text[at] != '\n')
            at++;
        return at;
    case TN_EDIT_START:
        return 0;
    case TN_EDIT_END:
        break;
    }
    return n;
}

void tn_edit_move(struct tn_edit *e, enum tn_edit_to to)
{
    e->cursor = place(e, to);
    e->last = TN_EDIT_OTHER;
}

/* ---- deleting and yanking ---- */

bool tn_edit_delete(struct tn_edit *e, enum tn_edit_to to)
{
    const size_t there = place(e, to);
    const size_t start = TN_MIN(there, e->cursor);
    return change_text(e, start, TN_MAX(there, e->cursor) - start, NULL, 0, TN_EDIT_OTHER);
}

/* Records killed text: a new entry, or appended to the last one if the kills are consecutive. */
static bool keep_kill(struct tn_edit *e, const char *text, size_t n, bool is_before)
{
    struct tn_buf kill = {0};
    bool joins = e->last == TN_EDIT_KILLED;
    bool ok = tn_buf_reserve(&kill, n + (joins ? e->kills[0].n_bytes : 0));
    if (ok && joins && !is_before)
        ok = tn_buf_append(&kill, e->kills[0].data, e->kills[0].n_bytes);
    ok = ok && tn_buf_append(&kill, text, n);
    if (ok && joins && is_before)
        ok = tn_buf_append(&kill, e->kills[0].data, e->kills[0].n_bytes);
    if (!ok) {
        tn_buf_fini(&kill);
        return false;
    }
    tn_buf_fini(&e->kills[joins ? 0 : TN_EDIT_KILLS - 1]);
    if (!joins)
        memmove(e->kills + 1, e->kills, (TN_EDIT_KILLS - 1) * sizeof *e->kills);
    e->kills[0] = kill;
    return true;
}

bool tn_edit_kill(struct tn_edit *e, enum tn_edit_to to)
{
    const size_t there = place(e, to);
    const size_t start = TN_MIN(there, e->cursor);
    const size_t n = TN_MAX(there, e->cursor) - start;
    if (n == 0 || !keep_kill(e, e->text.data + start, n, there < e->cursor))
        return false;
    return change_text(e, start, n, NULL, 0, TN_EDIT_KILLED);
}

bool tn_edit_yank(struct tn_edit *e)
{
    const struct tn_buf *kill = &e->kills[0];
    const size_t start = e->cursor;
    if (!change_text(e, start, 0, kill->data, kill->n_bytes, TN_EDIT_YANKED))
        return false;
    e->i_yank = 0;
    e->yank_start = start;
    return true;
}

bool tn_edit_yank_pop(struct tn_edit *e)
{
    if (e->last != TN_EDIT_YANKED)
        return false;
    size_t i = (e->i_yank + 1) % TN_EDIT_KILLS;
    if (e->kills[i].n_bytes == 0)
        i = 0;
    /* The length of the previous text: the cursor may have snapped beyond it. */
    const size_t n_old = e->kills[e->i_yank].n_bytes, start = e->yank_start;
    if (!change_text(e, start, n_old, e->kills[i].data, e->kills[i].n_bytes, TN_EDIT_YANKED))
        return false;
    e->i_yank = i;
    e->yank_start = start;
    return true;
}

bool tn_edit_transpose(struct tn_edit *e)
{
    const char *text = e->text.data;
    const size_t n = e->text.n_bytes;
    size_t middle = e->cursor;
    if (middle > 0 && (middle == n || text[middle] == '\n'))
        middle = tn_grapheme_previous(text, n, middle);
    const size_t start = tn_grapheme_previous(text, n, middle);
    const size_t end = tn_grapheme_next(text, n, middle);
    if (start == middle || end == middle || text[start] == '\n' || text[middle] == '\n')
        return false;
    struct tn_buf both = {0};
    bool ok = tn_buf_append(&both, text + middle, end - middle) &&
              tn_buf_append(&both, text + start, middle - start) &&
              change_text(e, start, end - start, both.data, both.n_bytes, TN_EDIT_OTHER);
    tn_buf_fini(&both);
    return ok;
}

/* ---- undo ---- */

bool tn_edit_undo(struct tn_edit *e)
{
    if (e->i_change == 0)
        return false;
    const struct tn_edit_change *change = &e->changes[e->i_change - 1];
    if (!tn_buf_reserve(&e->text, change->n_removed + 1))
        return false;
    splice(e, change->at, change->n_inserted, change->bytes, change->n_removed);
    e->i_change--;
    tn_edit_move_to(e, change->cursor_before);
    return true;
}

bool tn_edit_redo(struct tn_edit *e)
{
    if (e->i_change == e->n_changes)
        return false;
    const struct tn_edit_change *change = &e->changes[e->i_change];
    if (!tn_buf_reserve(&e->text, change->n_inserted + 1))
        return false;
    splice(e, change->at, change->n_removed, change->bytes + change->n_removed, change->n_inserted);
    e->i_change++;
    tn_edit_move_to(e, change->at + change->n_inserted);
    return true;
}

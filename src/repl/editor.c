/* SPDX-License-Identifier: MIT
 *
 * Maps keys to edits, history, search and completion, and redraws the screen.
 *
 * Decodes nothing and writes nothing itself: line_editor.c feeds keys and sends `out`.
 */
#include "repl/editor.h"

#include <string.h>

#include "base/compiler.h"
#include "base/text_match.h"
#include "repl/grapheme.h"
#include "repl/message.h"

#define NO_COLUMN UINT32_MAX

/* ---- drawing ---- */

static bool lay_out(struct tn_editor *ed, size_t cursor)
{
    return tn_layout_make(&ed->layout, &ed->prompts, ed->edit.text.data, ed->edit.text.n_bytes,
                          cursor, ed->size.columns);
}

static bool lay_out_search(struct tn_editor *ed)
{
    const struct tn_search *s = &ed->search;
    struct tn_prompts prompts = {s->prompt.failed ? "" : s->prompt.data, ed->prompts.more};
    const bool found = s->i_found < ed->history.n_entries;
    const struct tn_history_entry *entry = found ? &ed->history.entries[s->i_found] : NULL;
    return tn_layout_make(&ed->layout, &prompts, found ? entry->text : NULL,
                          found ? entry->n_bytes : 0, found ? s->at : 0, ed->size.columns);
}

/* Out of memory, nothing is drawn; the next draw tries again. */
static void draw_at(struct tn_editor *ed, size_t cursor)
{
    const struct tn_search *s = &ed->search;
    const char *text = ed->edit.text.data;
    if (s->is_active)
        text = s->i_found < ed->history.n_entries ? ed->history.entries[s->i_found].text : NULL;
    ed->screen.style = s->is_active && ed->dim[0] ? ed->dim : NULL;
    bool ok = s->is_active ? lay_out_search(ed) : lay_out(ed, cursor);
    if (!ok || !tn_screen_update(&ed->screen, &ed->out, &ed->layout, text ? text : "",
                                 ed->size.rows))
        tn_screen_forget(&ed->screen);
    ed->needs_draw = false;
}

void tn_editor_draw(struct tn_editor *ed)
{
    draw_at(ed, ed->edit.cursor);
}

void tn_editor_leave(struct tn_editor *ed, const char *mark)
{
    draw_at(ed, ed->edit.text.n_bytes);
    tn_buf_append_text(&ed->out, mark);
    tn_screen_leave(&ed->screen, &ed->out);
    ed->needs_draw = true; /* in case the user continues */
}

void tn_editor_resize(struct tn_editor *ed, struct tn_terminal_size size)
{
    tn_screen_erase(&ed->screen, &ed->out, TN_MIN(ed->size.columns, size.columns));
    ed->size = size;
    ed->needs_draw = true;
}

void tn_editor_begin_anew(struct tn_editor *ed, struct tn_terminal_size size)
{
    tn_screen_forget(&ed->screen);
    tn_buf_append_text(&ed->out, "\r\x1b[J");
    ed->size = size;
    ed->needs_draw = true;
}

/* ---- history ---- */

static void show_entry(struct tn_editor *ed, size_t i)
{
    const size_t n = ed->history.n_entries;
    if (i > n || i == ed->i_history)
        return;
    if (ed->i_history == n) { /* leaving the typed text */
        tn_buf_clear(&ed->typed);
        if (!tn_buf_append(&ed->typed, ed->edit.text.data, ed->edit.text.n_bytes))
            return;
    }
    const char *text = i < n ? ed->history.entries[i].text : ed->typed.data;
    const size_t n_text = i < n ? ed->history.entries[i].n_bytes : ed->typed.n_bytes;
    (void)tn_edit_replace(&ed->edit, 0, ed->edit.text.n_bytes, text, n_text);
    ed->i_history = i;
}

/* ---- search ---- */

/* `result`: "search" or "not found". */
static void show_query(struct tn_search *s, const char *result)
{
    tn_buf_clear(&s->prompt);
    tn_buf_printf(&s->prompt, "%s: ", result);
    tn_buf_append(&s->prompt, s->query.data, s->query.n_bytes);
    tn_buf_append_text(&s->prompt, " | ");
    (void)tn_buf_text(&s->prompt);
}

static void find(struct tn_editor *ed, size_t from, bool is_newer)
{
    struct tn_search *s = &ed->search;
    size_t at = 0;
    size_t i = tn_history_find(&ed->history, from, is_newer, s->query.data, s->query.n_bytes, &at);
    if (i < ed->history.n_entries) {
        s->i_found = i;
        s->at = at;
    }
    show_query(s, i < ed->history.n_entries ? "search" : "not found");
}

static void begin_search(struct tn_editor *ed)
{
    ed->search.is_active = true;
    ed->search.i_found = ed->history.n_entries;
    ed->search.at = 0;
    tn_buf_clear(&ed->search.query);
    show_query(&ed->search, "search");
}

static void end_search(struct tn_editor *ed, bool takes_entry)
{
    struct tn_search *s = &ed->search;
    s->is_active = false;
    if (!takes_entry || s->i_found >= ed->history.n_entries)
        return;
    const struct tn_history_entry *entry = &ed->history.entries[s->i_found];
    (void)tn_edit_replace(&ed->edit, 0, ed->edit.text.n_bytes, entry->text, entry->n_bytes);
    tn_edit_move_to(&ed->edit, s->at);
}

/* The current entry may also contain the longer query. */
static void extend_query(struct tn_editor *ed, const char *text, size_t n)
{
    (void)tn_clean_append(&ed->search.query, text, n);
    find(ed, TN_MIN(ed->search.i_found + 1, ed->history.n_entries), false);
}

static void shorten_query(struct tn_editor *ed)
{
    struct tn_buf *query = &ed->search.query;
    query->n_bytes = tn_grapheme_previous(query->data, query->n_bytes, query->n_bytes);
    ed->search.i_found = ed->history.n_entries;
    find(ed, ed->history.n_entries, false);
}

/* true: the search consumed the key.  false: the search has ended, and the key applies to the text.
 */
static bool search_key(struct tn_editor *ed, const struct tn_key *key)
{
    switch (key->kind) {
    case TN_KEY_TEXT:
    case TN_KEY_PASTE:
        extend_query(ed, key->text, key->n_text);
        return true;
    case TN_KEY_BACKSPACE:
        shorten_query(ed);
        return true;
    case TN_KEY_SEARCH:
        find(ed, ed->search.i_found, false);
        return true;
    case TN_KEY_SEARCH_NEWER:
        find(ed, ed->search.i_found, true);
        return true;
    case TN_KEY_CANCEL:
    case TN_KEY_INTERRUPT:
        end_search(ed, false);
        return true;
    case TN_KEY_ESCAPE:
        end_search(ed, true);
        return true;
    default:
        end_search(ed, true);
        return false;
    }
}

/* ---- completion ---- */

static void insert_completion(struct tn_editor *ed, const struct tn_candidates *c, size_t n)
{
    struct tn_edit *e = &ed->edit;
    const char *text = c->texts[0];
    (void)tn_edit_replace(e, c->start, e->cursor, text, n);
    /* A command is complete; after a name the path may continue. */
    if (c->n_texts == 1 && c->start == 0 && e->cursor == e->text.n_bytes)
        (void)tn_edit_insert(e, " ", 1);
}

static void list_candidates(struct tn_editor *ed, const struct tn_candidates *c)
{
    tn_editor_leave(ed, "");
    tn_buf_append_text(&ed->out, ed->dim);
    (void)tn_candidates_show(c, &ed->out, ed->size.columns, ed->size.rows / 2);
    tn_buf_append_text(&ed->out, ed->dim[0] ? "\x1b[0m" : "");
}

static void complete(struct tn_editor *ed)
{
    struct tn_edit *e = &ed->edit;
    if (!ed->completer.complete)
        return;
    struct tn_buf line = {0}; /* the line up to the cursor */
    struct tn_candidates c = {0};
    tn_buf_append(&line, e->text.data, e->cursor);
    if (!line.failed)
        tn_candidates_collect(&c, &ed->completer, tn_buf_text(&line), e->cursor);
    const size_t n_common = c.n_texts > 0 ? tn_candidates_common(&c) : 0;
    if (c.n_texts > 0 && c.start <= e->cursor) {
        if (c.n_texts == 1 || n_common > e->cursor - c.start)
            insert_completion(ed, &c, n_common);
        else
            list_candidates(ed, &c);
    }
    tn_candidates_fini(&c);
    tn_buf_fini(&line);
}

/* ---- keys ---- */

/* Moves one row up or down; beyond the first or last row into the history. */
static void go_row(struct tn_editor *ed, bool is_down)
{
    struct tn_edit *e = &ed->edit;
    if (!lay_out(ed, e->cursor))
        return;
    const size_t row = ed->layout.cursor_row;
    if (is_down ? row + 1 >= ed->layout.n_rows : row == 0) {
        show_entry(ed, is_down ? ed->i_history + 1 : ed->i_history - 1);
        return;
    }
    const uint32_t column =
        ed->goal_column == NO_COLUMN ? ed->layout.cursor_column : ed->goal_column;
    tn_edit_move_to(e, tn_layout_offset(&ed->layout, e->text.data, is_down ? row + 1 : row - 1,
                                        column));
    ed->goal_column = column;
}

static enum tn_editor_step enter(struct tn_editor *ed)
{
    struct tn_edit *e = &ed->edit;
    const size_t n = e->text.n_bytes;
    switch (tn_message_state(e->text.data, n)) {
    case TN_MESSAGE_BACKSLASH:
        (void)tn_edit_replace(e, n - 1, n, "\n", 1);
        return TN_EDITOR_ON;
    case TN_MESSAGE_OPEN:
        tn_edit_move(e, TN_EDIT_END);
        (void)tn_edit_insert(e, "\n", 1);
        return TN_EDITOR_ON;
    case TN_MESSAGE_WHOLE:
        break;
    }
    return TN_EDITOR_SEND;
}

enum tn_editor_step tn_editor_interrupt(struct tn_editor *ed)
{
    ed->search.is_active = false;
    if (ed->edit.text.n_bytes == 0 || ed->was_preset)
        return TN_EDITOR_INTERRUPT;
    tn_editor_leave(ed, "^C");
    tn_edit_clear(&ed->edit);
    ed->i_history = ed->history.n_entries;
    ed->needs_draw = true;
    return TN_EDITOR_ON;
}

static enum tn_editor_step end_of_input(struct tn_editor *ed)
{
    if (ed->edit.text.n_bytes == 0)
        return TN_EDITOR_END;
    (void)tn_edit_delete(&ed->edit, TN_EDIT_RIGHT);
    return TN_EDITOR_ON;
}

static void redraw_on_clear_screen(struct tn_editor *ed)
{
    tn_buf_append_text(&ed->out, "\x1b[H\x1b[2J");
    tn_screen_forget(&ed->screen);
}

static const struct {
    unsigned char key, to;
} moves[] = {
    {TN_KEY_LEFT, TN_EDIT_LEFT},
    {TN_KEY_RIGHT, TN_EDIT_RIGHT},
    {TN_KEY_HOME, TN_EDIT_LINE_START},
    {TN_KEY_END, TN_EDIT_LINE_END},
    {TN_KEY_WORD_LEFT, TN_EDIT_WORD_LEFT},
    {TN_KEY_WORD_RIGHT, TN_EDIT_WORD_RIGHT},
    {TN_KEY_TEXT_START, TN_EDIT_START},
    {TN_KEY_TEXT_END, TN_EDIT_END},
};
static const struct {
    unsigned char key, to;
} kills[] = {
    {TN_KEY_KILL_TO_END, TN_EDIT_LINE_END},
    {TN_KEY_KILL_TO_START, TN_EDIT_LINE_START},
    {TN_KEY_KILL_BLANK_WORD, TN_EDIT_BLANK_LEFT},
    {TN_KEY_KILL_WORD_LEFT, TN_EDIT_WORD_LEFT},
    {TN_KEY_KILL_WORD_RIGHT, TN_EDIT_WORD_RIGHT},
};

/* Keys that map to one edit; false: not one of them. */
static bool table_key(struct tn_edit *e, enum tn_key_kind kind)
{
    for (size_t i = 0; i < TN_COUNT_OF(moves); i++) {
        if (moves[i].key == kind) {
            tn_edit_move(e, (enum tn_edit_to)moves[i].to);
            return true;
        }
    }
    for (size_t i = 0; i < TN_COUNT_OF(kills); i++) {
        if (kills[i].key == kind) {
            (void)tn_edit_kill(e, (enum tn_edit_to)kills[i].to);
            return true;
        }
    }
    return false;
}

static void edit_key(struct tn_editor *ed, const struct tn_key *key)
{
    struct tn_edit *e = &ed->edit;
    switch (key->kind) {
    case TN_KEY_TEXT:
        (void)tn_edit_type(e, key->text, key->n_text);
        break;
    case TN_KEY_PASTE:
        (void)tn_edit_insert(e, key->text, key->n_text);
        break;
    case TN_KEY_NEWLINE:
        (void)tn_edit_insert(e, "\n", 1);
        break;
    case TN_KEY_BACKSPACE:
        (void)tn_edit_delete(e, TN_EDIT_LEFT);
        break;
    case TN_KEY_DELETE:
        (void)tn_edit_delete(e, TN_EDIT_RIGHT);
        break;
    case TN_KEY_YANK:
        (void)tn_edit_yank(e);
        break;
    case TN_KEY_YANK_POP:
        (void)tn_edit_yank_pop(e);
        break;
    case TN_KEY_TRANSPOSE:
        (void)tn_edit_transpose(e);
        break;
    case TN_KEY_UNDO:
        (void)tn_edit_undo(e);
        break;
    case TN_KEY_REDO:
        (void)tn_edit_redo(e);
        break;
    default:
        (void)table_key(e, key->kind);
    }
}

static void history_key(struct tn_editor *ed, enum tn_key_kind kind)
{
    const size_t n = ed->history.n_entries;
    if (kind == TN_KEY_OLDER)
        show_entry(ed, ed->i_history - 1);
    else if (kind == TN_KEY_NEWER)
        show_entry(ed, ed->i_history + 1);
    else
        show_entry(ed, kind == TN_KEY_OLDEST ? 0 : n);
}

enum tn_editor_step tn_editor_key(struct tn_editor *ed, const struct tn_key *key)
{
    ed->needs_draw = true;
    if (ed->search.is_active && search_key(ed, key))
        return TN_EDITOR_ON;
    if (key->kind != TN_KEY_UP && key->kind != TN_KEY_DOWN)
        ed->goal_column = NO_COLUMN;
    switch (key->kind) {
    case TN_KEY_ENTER:
        return enter(ed);
    case TN_KEY_INTERRUPT:
        return tn_editor_interrupt(ed);
    case TN_KEY_EOF:
        return end_of_input(ed);
    case TN_KEY_UP:
    case TN_KEY_DOWN:
        go_row(ed, key->kind == TN_KEY_DOWN);
        break;
    case TN_KEY_OLDER:
    case TN_KEY_NEWER:
    case TN_KEY_OLDEST:
    case TN_KEY_NEWEST:
        history_key(ed, key->kind);
        break;
    case TN_KEY_TAB:
        complete(ed);
        break;
    case TN_KEY_SEARCH:
        begin_search(ed);
        break;
    case TN_KEY_REDRAW:
        redraw_on_clear_screen(ed);
        break;
    case TN_KEY_SUSPEND:
        if (TN_TERMINAL_CAN_SUSPEND)
            return TN_EDITOR_SUSPEND;
        if (ed->edit.text.n_bytes == 0)
            return TN_EDITOR_END;
        break;
    case TN_KEY_QUIT:
        return TN_EDITOR_QUIT;
    case TN_KEY_EDITOR:
        return TN_EDITOR_EXTERNAL;
    default:
        edit_key(ed, key);
    }
    return TN_EDITOR_ON;
}

/* ---- a message ---- */

void tn_editor_start(struct tn_editor *ed, const struct tn_prompts *prompts,
                     struct tn_terminal_size size)
{
    tn_edit_clear(&ed->edit);
    ed->was_preset = ed->preset.n_bytes > 0;
    if (ed->was_preset)
        (void)tn_edit_insert(&ed->edit, ed->preset.data, ed->preset.n_bytes);
    tn_buf_clear(&ed->preset);
    ed->prompts = *prompts;
    ed->i_history = ed->history.n_entries;
    ed->search.is_active = false;
    ed->goal_column = NO_COLUMN;
    ed->size = size;
    ed->needs_draw = true;
    tn_screen_forget(&ed->screen);
}

bool tn_editor_take(struct tn_editor *ed, struct tn_buf *message)
{
    const char *text = ed->edit.text.data;
    const size_t n = ed->edit.text.n_bytes;
    (void)tn_history_add(&ed->history, text, tn_text_trimmed(text, n));
    return n == 0 || tn_message_take(message, text, n);
}

void tn_editor_fini(struct tn_editor *ed)
{
    tn_edit_fini(&ed->edit);
    tn_history_fini(&ed->history);
    tn_layout_fini(&ed->layout);
    tn_screen_fini(&ed->screen);
    tn_buf_fini(&ed->typed);
    tn_buf_fini(&ed->search.query);
    tn_buf_fini(&ed->search.prompt);
    tn_buf_fini(&ed->preset);
    tn_buf_fini(&ed->out);
}

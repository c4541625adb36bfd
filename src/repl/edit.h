/* SPDX-License-Identifier: MIT
 *
 * The text that is being typed: a cursor that stands between grapheme clusters, deletions that can
 * be yanked back, and undo.  Pure: the line editor maps keys to these calls.
 *
 * Functions that change the text return false when there was nothing to do or no memory; the text
 * is unchanged then.
 */
#ifndef TN_EDIT_H
#define TN_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TN_EDIT_KILLS 8

enum tn_edit_action { TN_EDIT_OTHER, TN_EDIT_TYPED, TN_EDIT_KILLED, TN_EDIT_YANKED };
struct tn_edit_change; /* for undo */

/* Zero-initialise; tn_edit_fini frees. */
struct tn_edit {
    struct tn_buf text; /* well-formed UTF-8 without control characters but \n and \t */
    size_t cursor;      /* a byte offset, on a grapheme boundary */
    struct tn_edit_change *changes;
    size_t n_changes;  /* those before i_change are done, the others undone */
    size_t i_change;
    size_t n_room;
    size_t n_change_bytes;
    struct tn_buf kills[TN_EDIT_KILLS]; /* the newest first */
    size_t i_yank;                      /* the one that was yanked last */
    size_t yank_start;
    enum tn_edit_action last;
};

enum tn_edit_to {
    TN_EDIT_LEFT,
    TN_EDIT_RIGHT,
    TN_EDIT_WORD_LEFT,
    TN_EDIT_WORD_RIGHT,
    TN_EDIT_BLANK_LEFT, /* to behind the blank before the word */
    TN_EDIT_LINE_START,
    TN_EDIT_LINE_END,
    TN_EDIT_START,
    TN_EDIT_END,
};

void tn_edit_fini(struct tn_edit *e);
/* Empties the text and forgets what could be undone; killed text stays. */
void tn_edit_clear(struct tn_edit *e);
/* At the cursor, cleaned (tn_clean_append); the cursor stands behind it.  What is typed bit by bit
 * is undone by the word, other inserts at once. */
bool tn_edit_type(struct tn_edit *e, const char *text, size_t n);
bool tn_edit_insert(struct tn_edit *e, const char *text, size_t n);
/* Replaces [start, end), grapheme boundaries both, by cleaned text. */
bool tn_edit_replace(struct tn_edit *e, size_t start, size_t end, const char *text, size_t n);

void tn_edit_move(struct tn_edit *e, enum tn_edit_to to);
/* The cursor to a byte offset, or the next boundary behind it. */
void tn_edit_move_to(struct tn_edit *e, size_t offset);
/* Removes what lies between the cursor and there. */
bool tn_edit_delete(struct tn_edit *e, enum tn_edit_to to);
/* The same, to be yanked.  Kills that follow each other are yanked as one. */
bool tn_edit_kill(struct tn_edit *e, enum tn_edit_to to);
/* Inserts what was killed last at the cursor. */
bool tn_edit_yank(struct tn_edit *e);
/* Right after a yank: the text killed before that one instead. */
bool tn_edit_yank_pop(struct tn_edit *e);
/* Exchanges the characters around the cursor; at a line's end the two before it. */
bool tn_edit_transpose(struct tn_edit *e);
bool tn_edit_undo(struct tn_edit *e);
bool tn_edit_redo(struct tn_edit *e);

#endif

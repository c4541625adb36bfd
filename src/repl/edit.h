/* SPDX-License-Identifier: MIT
 *
 * The text being typed: a cursor between grapheme clusters, a kill ring, and undo.
 *
 * No input or output: editor.c maps keys to these calls.  Functions that change the text return
 * false when there is nothing to do or no memory; the text is then unchanged.
 */
#ifndef TN_EDIT_H
#define TN_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TN_EDIT_KILLS 8

enum tn_edit_action { TN_EDIT_OTHER, TN_EDIT_TYPED, TN_EDIT_KILLED, TN_EDIT_YANKED };
struct tn_edit_change; /* an undo record */

/* Zero-initialise; tn_edit_fini frees. */
struct tn_edit {
    struct tn_buf text; /* well-formed UTF-8; of control characters only \n and \t */
    size_t cursor;      /* a byte offset, on a grapheme boundary */
    struct tn_edit_change *changes;
    size_t n_changes;  /* those before i_change are applied, the others undone */
    size_t i_change;
    size_t n_room;
    size_t n_change_bytes;
    struct tn_buf kills[TN_EDIT_KILLS]; /* newest first */
    size_t i_yank;                      /* the entry yanked last */
    size_t yank_start;
    enum tn_edit_action last;
};

enum tn_edit_to {
    TN_EDIT_LEFT,
    TN_EDIT_RIGHT,
    TN_EDIT_WORD_LEFT,
    TN_EDIT_WORD_RIGHT,
    TN_EDIT_BLANK_LEFT, /* to the position after the blank before the word */
    TN_EDIT_LINE_START,
    TN_EDIT_LINE_END,
    TN_EDIT_START,
    TN_EDIT_END,
};

void tn_edit_fini(struct tn_edit *e);
/* Empties the text and the undo records; killed text stays. */
void tn_edit_clear(struct tn_edit *e);
/* Inserts cleaned text (tn_clean_append) at the cursor, which moves to its end.  Typed text is
 * undone word by word, an insertion at once. */
bool tn_edit_type(struct tn_edit *e, const char *text, size_t n);
bool tn_edit_insert(struct tn_edit *e, const char *text, size_t n);
/* Replaces [start, end) with cleaned text; both are grapheme boundaries. */
bool tn_edit_replace(struct tn_edit *e, size_t start, size_t end, const char *text, size_t n);

void tn_edit_move(struct tn_edit *e, enum tn_edit_to to);
/* Moves the cursor to a byte offset, or to the next boundary. */
void tn_edit_move_to(struct tn_edit *e, size_t offset);
/* Deletes the text between the cursor and the target. */
bool tn_edit_delete(struct tn_edit *e, enum tn_edit_to to);
/* The same, and keeps the text for yanking.  Consecutive kills are yanked as one. */
bool tn_edit_kill(struct tn_edit *e, enum tn_edit_to to);
/* Inserts the last killed text at the cursor. */
bool tn_edit_yank(struct tn_edit *e);
/* Right after a yank: replaces it with the kill before that one. */
bool tn_edit_yank_pop(struct tn_edit *e);
/* Exchanges the characters around the cursor, or the two before it at the end of a line. */
bool tn_edit_transpose(struct tn_edit *e);
bool tn_edit_undo(struct tn_edit *e);
bool tn_edit_redo(struct tn_edit *e);

#endif

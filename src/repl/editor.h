/* SPDX-License-Identifier: MIT
 *
 * The line editor without a terminal: keys come in, bytes for the terminal go out.
 *
 * It holds the text, the history, the history search and the state of the screen.  line_editor.c
 * feeds it; tests drive it directly.
 */
#ifndef TN_EDITOR_H
#define TN_EDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "plat/terminal.h"
#include "repl/completion.h"
#include "repl/edit.h"
#include "repl/history.h"
#include "repl/keys.h"
#include "repl/layout.h"
#include "repl/screen.h"

/* Ctrl-R: the query, and the entry that contains it. */
struct tn_search {
    bool is_active;
    struct tn_buf query;
    struct tn_buf prompt;
    size_t i_found; /* n_entries: none */
    size_t at;
};

/* Zero-initialise, set completer and dim; tn_editor_fini frees. */
struct tn_editor {
    struct tn_edit edit;
    struct tn_history history;
    size_t i_history;    /* the entry shown; n_entries: the typed text */
    struct tn_buf typed; /* the typed text while an entry is shown */
    struct tn_search search;
    struct tn_completer completer; /* complete may be NULL */
    struct tn_buf preset;          /* initial text of the next message */
    bool was_preset;               /* the current message began with a preset */
    struct tn_layout layout;
    struct tn_screen screen;
    struct tn_prompts prompts;
    struct tn_terminal_size size;
    uint32_t goal_column; /* target column of Up and Down */
    const char *dim;      /* escape sequence for dim text, "" without colours */
    bool needs_draw;
    struct tn_buf out; /* pending output; the caller writes and clears it */
};

void tn_editor_fini(struct tn_editor *ed);

/* Starts a message.  The cursor must be in column 0. */
void tn_editor_start(struct tn_editor *ed, const struct tn_prompts *prompts,
                     struct tn_terminal_size size);

/* What the caller has to do after a key. */
enum tn_editor_step {
    TN_EDITOR_ON,
    TN_EDITOR_SEND,      /* the message is complete */
    TN_EDITOR_END,       /* Ctrl-D on an empty line; on Windows also Ctrl-Z */
    TN_EDITOR_INTERRUPT, /* Ctrl-C on an empty or preset line; otherwise it empties the line */
    TN_EDITOR_SUSPEND,
    TN_EDITOR_QUIT,
    TN_EDITOR_EXTERNAL /* Ctrl-X Ctrl-E: open the text in another editor */
};
enum tn_editor_step tn_editor_key(struct tn_editor *ed, const struct tn_key *key);
/* Handles Ctrl-C that arrived as a signal. */
enum tn_editor_step tn_editor_interrupt(struct tn_editor *ed);

/* Draws what has changed. */
void tn_editor_draw(struct tn_editor *ed);
/* Draws the end of the text, then `mark`, and moves to the row below. */
void tn_editor_leave(struct tn_editor *ed, const char *mark);
/* The terminal's size has changed. */
void tn_editor_resize(struct tn_editor *ed, struct tn_terminal_size size);
/* Another program wrote to the terminal: draws everything, starting at the cursor's row. */
void tn_editor_begin_anew(struct tn_editor *ed, struct tn_terminal_size size);

/* Appends the message to be sent, and records the typed text in the history.  false: out of memory.
 */
bool tn_editor_take(struct tn_editor *ed, struct tn_buf *message);

#endif

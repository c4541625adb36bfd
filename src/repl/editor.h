/* SPDX-License-Identifier: MIT
 *
 * The line editor without its terminal: keys come in, bytes for the terminal come out.  It holds
 * the text, the history, the search in it and what is on the screen.  line_editor.c feeds it.
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

/* Ctrl-R: the query, and the entry that holds it. */
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
    size_t i_history;    /* the entry that is shown; n_entries: what was typed */
    struct tn_buf typed; /* that, while an entry is shown */
    struct tn_search search;
    struct tn_completer completer; /* complete NULL: none */
    struct tn_buf preset;          /* the next message begins so */
    bool was_preset;               /* this one did */
    struct tn_layout layout;
    struct tn_screen screen;
    struct tn_prompts prompts;
    struct tn_terminal_size size;
    uint32_t goal_column; /* where Up and Down go */
    const char *dim;      /* the sequence for pale text, "" without colours */
    bool needs_draw;
    struct tn_buf out; /* to be written to the terminal, and cleared */
};

void tn_editor_fini(struct tn_editor *ed);

/* Begins a message, in column 0 of a row. */
void tn_editor_start(struct tn_editor *ed, const struct tn_prompts *prompts,
                     struct tn_terminal_size size);

/* What a key leads to. */
enum tn_editor_step {
    TN_EDITOR_ON,
    TN_EDITOR_SEND,      /* the message is whole */
    TN_EDITOR_END,       /* Ctrl-D on an empty line; on Windows Ctrl-Z, too */
    TN_EDITOR_INTERRUPT, /* Ctrl-C on an empty line or a preset one; else it empties the line */
    TN_EDITOR_SUSPEND,
    TN_EDITOR_QUIT,
    TN_EDITOR_EXTERNAL /* Ctrl-X Ctrl-E: the text is to be edited elsewhere */
};
enum tn_editor_step tn_editor_key(struct tn_editor *ed, const struct tn_key *key);
/* Ctrl-C that came as a signal. */
enum tn_editor_step tn_editor_interrupt(struct tn_editor *ed);

/* Shows what has changed. */
void tn_editor_draw(struct tn_editor *ed);
/* Shows the end of the text, `mark` behind it, and goes to the row below. */
void tn_editor_leave(struct tn_editor *ed, const char *mark);
/* The terminal is of another size now. */
void tn_editor_resize(struct tn_editor *ed, struct tn_terminal_size size);
/* Others have written to the terminal: draws everything, from the row of the cursor on. */
void tn_editor_begin_anew(struct tn_editor *ed, struct tn_terminal_size size);

/* Appends the message that is to be sent, and remembers what was typed.  False: no memory. */
bool tn_editor_take(struct tn_editor *ed, struct tn_buf *message);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Turns terminal input into keys: text, control keys, escape sequences (possibly in pieces), and
 * bracketed pastes (ESC[200~ ... ESC[201~).
 *
 * Knows neither terminal nor time: the caller says when no more input will follow.
 */
#ifndef TN_KEYS_H
#define TN_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum tn_key_kind {
    TN_KEY_NONE,
    TN_KEY_TEXT,  /* text, n_text: one or more typed characters */
    TN_KEY_PASTE, /* text, n_text: a whole paste, cleaned */
    TN_KEY_ENTER,
    TN_KEY_NEWLINE, /* Alt-Enter: a line break within the message */
    TN_KEY_TAB,
    TN_KEY_BACKSPACE,
    TN_KEY_DELETE,
    TN_KEY_LEFT,
    TN_KEY_RIGHT,
    TN_KEY_UP,
    TN_KEY_DOWN,
    TN_KEY_HOME,
    TN_KEY_END,
    TN_KEY_WORD_LEFT,
    TN_KEY_WORD_RIGHT,
    TN_KEY_TEXT_START, /* Ctrl-Home */
    TN_KEY_TEXT_END,
    TN_KEY_OLDER, /* Page up, Ctrl-P */
    TN_KEY_NEWER,
    TN_KEY_OLDEST, /* Alt-< */
    TN_KEY_NEWEST,
    TN_KEY_KILL_TO_END,
    TN_KEY_KILL_TO_START,
    TN_KEY_KILL_BLANK_WORD, /* Ctrl-W: back to a blank */
    TN_KEY_KILL_WORD_LEFT,
    TN_KEY_KILL_WORD_RIGHT,
    TN_KEY_YANK,
    TN_KEY_YANK_POP,
    TN_KEY_TRANSPOSE,
    TN_KEY_UNDO,
    TN_KEY_REDO,
    TN_KEY_SEARCH,       /* Ctrl-R */
    TN_KEY_SEARCH_NEWER, /* Ctrl-S */
    TN_KEY_CANCEL,       /* Ctrl-G */
    TN_KEY_ESCAPE,
    TN_KEY_REDRAW,    /* Ctrl-L */
    TN_KEY_INTERRUPT, /* Ctrl-C */
    TN_KEY_EOF,       /* Ctrl-D: end of input on an empty line, else delete */
    TN_KEY_SUSPEND,
    TN_KEY_QUIT,
    TN_KEY_EDITOR, /* Ctrl-X Ctrl-E */
    TN_KEY_UNKNOWN, /* an unrecognised sequence */
};

struct tn_key {
    enum tn_key_kind kind;
    const char *text; /* valid until the next call with the decoder */
    size_t n_text;
};

/* Zero-initialise; tn_keys_fini frees. */
struct tn_keys {
    struct tn_buf bytes; /* pending input, from `next` on */
    size_t next;
    size_t n_searched; /* bytes of a paste already searched for its end mark */
    bool in_paste;
    struct tn_buf paste; /* the last paste, cleaned */
};

void tn_keys_fini(struct tn_keys *keys);
/* Adds input.  false: out of memory, and the bytes are lost. */
bool tn_keys_feed(struct tn_keys *keys, const char *bytes, size_t n);
/* The next key; false: none, or incomplete.  is_final: no more input follows, so a lone ESC is a
 * key, and an unfinished paste or character ends here. */
bool tn_keys_next(struct tn_keys *keys, bool is_final, struct tn_key *key);
/* Is there an incomplete key that further input may complete soon?  Not a lone Ctrl-X, after which
 * users may pause. */
bool tn_keys_is_partial(const struct tn_keys *keys);
/* The bytes not yet decoded, *n_bytes of them. */
const char *tn_keys_pending(const struct tn_keys *keys, size_t *n_bytes);
/* Discards the first n of them. */
void tn_keys_drop(struct tn_keys *keys, size_t n);

#endif

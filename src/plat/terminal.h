/* SPDX-License-Identifier: MIT
 *
 * A terminal, key by key: for the line editor.  posix_terminal.c and win32_terminal.c implement it.
 *
 * What the terminal was before is restored when the mode is PLAIN again, when the process ends in
 * any way that it can notice (exit, signals, abort, faults), and while it is stopped (Ctrl-Z).
 */
#ifndef TN_TERMINAL_H
#define TN_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

enum tn_terminal_mode {
    TN_TERMINAL_PLAIN, /* as it was */
    TN_TERMINAL_BUSY,  /* nothing is echoed, what is typed is kept; Ctrl-C and such are signals */
    TN_TERMINAL_KEYS,  /* nothing is echoed, every key is a byte; pastes come in brackets */
}; /* what is written is not raw: \n goes to column 0, too */

/* True when standard input, output and error are terminals that take control sequences: none is
 * called dumb (TERM). */
bool tn_terminal_can_edit(void);
/* From the main thread only.  False when the system refuses; then the mode is as before. */
bool tn_terminal_set_mode(enum tn_terminal_mode mode);
/* The same as PLAIN, from any thread and any signal handler, because the process is ending: the
 * mode does not change any more. */
void tn_terminal_restore_for_end(void);
/* Stops the process, with its group, as Ctrl-Z does; returns when it continues. Where nothing can
 * be stopped so, Ctrl-Z is what ends the input. */
#if defined(_WIN32)
#define TN_TERMINAL_CAN_SUSPEND false
#else
#define TN_TERMINAL_CAN_SUSPEND true
#endif
void tn_terminal_suspend(void);
/* Ends the process as Ctrl-\ does, where there is such a thing. */
void tn_terminal_quit(void);

struct tn_terminal_size {
    uint32_t columns;
    uint32_t rows;
};
/* 80 x 24 if unknown. */
struct tn_terminal_size tn_terminal_size(void);

enum tn_terminal_event {
    TN_TERMINAL_BYTES,     /* *n_read of them */
    TN_TERMINAL_TIMEOUT,
    TN_TERMINAL_INTERRUPT, /* Ctrl-C, SIGTERM or SIGHUP came as a signal, and is not cleared */
    TN_TERMINAL_RESIZED,
    TN_TERMINAL_RESUMED, /* continued after a stop: what is on the screen is unknown */
    TN_TERMINAL_END,     /* nobody types any more */
    TN_TERMINAL_FAILED,  /* err says why */
};
#define TN_TERMINAL_FOR_EVER UINT32_MAX
/* Waits for what is typed, as UTF-8 and the sequences of xterm.  dst has room for n >= 64 bytes. */
enum tn_terminal_event tn_terminal_read(void *dst, size_t n, uint32_t timeout_ms, size_t *n_read,
                                        struct tern_error *err);
/* As if Ctrl-C had been pressed in BUSY mode: for one that was read as a byte. */
void tn_terminal_note_interrupt(void);

#endif

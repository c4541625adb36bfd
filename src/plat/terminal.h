/* SPDX-License-Identifier: MIT
 *
 * A terminal, key by key, for the line editor.  posix_terminal.c and win32_terminal.c implement it.
 *
 * The terminal's previous state is restored when the mode is PLAIN again, when the process ends in
 * any way that it can notice (exit, signals, abort, faults), and while it is stopped (Ctrl-Z).
 */
#ifndef TN_TERMINAL_H
#define TN_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

enum tn_terminal_mode {
    TN_TERMINAL_PLAIN, /* its previous state */
    TN_TERMINAL_BUSY,  /* no echo, input is kept; Ctrl-C and similar keys send signals */
    TN_TERMINAL_KEYS,  /* no echo, every key is a byte; pastes come in brackets */
}; /* output is not raw: \n also returns to column 0 */

/* True if standard input, output and error are terminals that understand control sequences (TERM is
 * not dumb). */
bool tn_terminal_can_edit(void);
/* From the main thread only.  False if the system refuses; then the mode is unchanged. */
bool tn_terminal_set_mode(enum tn_terminal_mode mode);
/* Same as PLAIN, from any thread and any signal handler, because the process is ending: the mode
 * can no longer change. */
void tn_terminal_restore_for_end(void);
/* Stops the process, with its group, as Ctrl-Z does; returns when it continues.  Where processes
 * cannot be stopped like that, Ctrl-Z ends the input. */
#if defined(_WIN32)
#define TN_TERMINAL_CAN_SUSPEND false
#else
#define TN_TERMINAL_CAN_SUSPEND true
#endif
void tn_terminal_suspend(void);
/* Ends the process as Ctrl-\ does, on systems that have such a key. */
void tn_terminal_quit(void);

struct tn_terminal_size {
    uint32_t columns;
    uint32_t rows;
};
/* 80 x 24 if unknown. */
struct tn_terminal_size tn_terminal_size(void);

enum tn_terminal_event {
    TN_TERMINAL_BYTES,     /* n_read bytes were read */
    TN_TERMINAL_TIMEOUT,
    TN_TERMINAL_INTERRUPT, /* Ctrl-C, SIGTERM or SIGHUP arrived as a signal, and is not cleared */
    TN_TERMINAL_RESIZED,
    TN_TERMINAL_RESUMED, /* continued after a stop: the contents of the screen are unknown */
    TN_TERMINAL_END,     /* end of input */
    TN_TERMINAL_FAILED,  /* err has the reason */
};
#define TN_TERMINAL_FOR_EVER UINT32_MAX
/* Waits for typed input, in UTF-8 and the sequences of xterm.  dst has room for n >= 64 bytes. */
enum tn_terminal_event tn_terminal_read(void *dst, size_t n, uint32_t timeout_ms, size_t *n_read,
                                        struct tern_error *err);
/* Records a Ctrl-C that was read as a byte, as if it had been pressed in BUSY mode. */
void tn_terminal_note_interrupt(void);

#endif

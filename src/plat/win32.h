/* SPDX-License-Identifier: MIT
 *
 * Functions that the win32_*.c files share.  Only they include it; the rest of the program uses
 * plat.h.
 */
#ifndef TN_WIN32_H
#define TN_WIN32_H

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#if !defined(_WIN32_WINNT) || _WIN32_WINNT < 0x0602
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0602 /* Windows 8: WaitOnAddress */
#endif
#include <windows.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* UTF-8 to UTF-16 and back, in new memory (tn_free); NULL and GetLastError() on memory shortage or
 * if the bytes are not UTF-8.  Lone surrogates of a file name become U+FFFD. */
wchar_t *tn_win32_wide(const char *text);
char *tn_win32_utf8(const wchar_t *wide);
/* A path for the wide functions: absolute, with backslashes and the prefix \\?\, so that it may be
 * longer than 260 characters.  Device names such as NUL and CON become \\.\NUL.  Only a long path
 * takes memory: whether a file exists, and what a folder holds, cannot depend on an allocation. */
struct tn_win32_path {
    wchar_t *text; /* NULL and GetLastError(): no such path, or no memory for a long one */
    wchar_t *allocated;
    wchar_t room[1024];
};

void tn_win32_path_init(struct tn_win32_path *out, const char *path);
void tn_win32_path_fini(struct tn_win32_path *path); /* keeps GetLastError() */
/* Appends \*, the pattern of all names in a folder. */
void tn_win32_path_add_names(struct tn_win32_path *path);

/* Opens a regular file for reading; nobody can open it for writing while it is open.  *has_writer:
 * a process has it open for writing already. */
tern_status tn_win32_open_to_map(HANDLE *out, uint64_t *n_bytes, bool *has_writer,
                                 const char *path, struct tern_error *err);

/* A function that older Windows does not have, or NULL. */
void (*tn_win32_function(const wchar_t *module, const char *name))(void);

/* Converts from units of 100 ns. */
static inline uint64_t tn_win32_ns(const FILETIME *t)
{
    return ((uint64_t)t->dwHighDateTime << 32 | t->dwLowDateTime) * 100;
}

/* Restores the console's previous state. */
void tn_win32_restore_console(void);

#endif

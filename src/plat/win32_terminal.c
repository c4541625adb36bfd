/* SPDX-License-Identifier: MIT
 *
 * Windows: the console, key by key.
 *
 * Input is read as events.  Consoles that can (Windows 10) translate keys and pastes into the
 * sequences of xterm; for others the table below does.  Where pastes have no brackets, an Enter
 * that is immediately followed by more keys was pasted: it becomes Alt-Enter, a line ending in the
 * text.
 */
#include "plat/win32.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/terminal.h"

#if !defined(ENABLE_VIRTUAL_TERMINAL_INPUT)
#define ENABLE_VIRTUAL_TERMINAL_INPUT 0x200
#endif
#define PASTED_WITHIN_MS 5
#define LOOK_MS 100 /* maximum delay before a closed window or Ctrl-Break is noticed */
/* No colour, wrapping on, no paste brackets. */
#define LEAVE L"\x1b[0m\x1b[?7h\x1b[?2004l"

static HANDLE input;
static DWORD saved_mode;
static _Atomic int current_mode = TN_TERMINAL_PLAIN;
static _Atomic bool is_ending;

/* ---- modes ---- */

static void tell_console(const wchar_t *sequence)
{
    DWORD n;
    (void)WriteConsoleW(GetStdHandle(STD_ERROR_HANDLE), sequence, (DWORD)wcslen(sequence), &n,
                        NULL);
}

static bool is_console(DWORD id)
{
    DWORD mode;
    return GetConsoleMode(GetStdHandle(id), &mode) != 0;
}

bool tn_terminal_can_edit(void)
{
    DWORD mode; /* without this mode sequences would be displayed */
    return is_console(STD_INPUT_HANDLE) && is_console(STD_OUTPUT_HANDLE) &&
           GetConsoleMode(GetStdHandle(STD_ERROR_HANDLE), &mode) &&
           (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

static bool apply_mode(enum tn_terminal_mode mode)
{
    if (mode == TN_TERMINAL_PLAIN)
        return SetConsoleMode(input, saved_mode) != 0;
    DWORD flags = ENABLE_WINDOW_INPUT | ENABLE_EXTENDED_FLAGS |
                  (saved_mode & (ENABLE_QUICK_EDIT_MODE | ENABLE_INSERT_MODE));
    if (mode == TN_TERMINAL_BUSY)
        flags |= ENABLE_PROCESSED_INPUT; /* Ctrl-C sends a signal */
    return SetConsoleMode(input, flags | ENABLE_VIRTUAL_TERMINAL_INPUT) ||
           SetConsoleMode(input, flags);
}

void tn_terminal_restore_for_end(void)
{
    if (atomic_exchange(&is_ending, true) || atomic_load(&current_mode) == TN_TERMINAL_PLAIN)
        return;
    (void)apply_mode(TN_TERMINAL_PLAIN);
    tell_console(LEAVE);
}

bool tn_terminal_set_mode(enum tn_terminal_mode mode)
{
    if (!input) {
        HANDLE handle = GetStdHandle(STD_INPUT_HANDLE);
        if (!GetConsoleMode(handle, &saved_mode))
            return false;
        input = handle;
        (void)atexit(tn_terminal_restore_for_end);
    }
    const int before = atomic_load(&current_mode);
    if (atomic_load(&is_ending) || before == (int)mode)
        return true;
    if (!apply_mode(mode))
        return false;
    atomic_store(&current_mode, (int)mode);
    if (mode == TN_TERMINAL_PLAIN)
        tell_console(LEAVE);
    else if (before == TN_TERMINAL_PLAIN)
        tell_console(L"\x1b[?2004h");
    return true;
}

void tn_terminal_suspend(void)
{
    /* Windows cannot stop a process like that. */
}

void tn_terminal_quit(void)
{
    /* Windows has no such key. */
}

struct tn_terminal_size tn_terminal_size(void)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_ERROR_HANDLE), &info))
        return (struct tn_terminal_size){80, 24};
    return (struct tn_terminal_size){(uint32_t)(info.srWindow.Right - info.srWindow.Left + 1),
                                     (uint32_t)(info.srWindow.Bottom - info.srWindow.Top + 1)};
}

void tn_terminal_note_interrupt(void)
{
    (void)tn_os_note_interrupt();
}

/* ---- keys ---- */

/* Keys without a character, for consoles without sequences: the last byte of ESC [ ..., or the
 * number of ESC [ number ~. */
static const struct {
    WORD key;
    char last;
    char number;
} named_keys[] = {
    {VK_UP, 'A', 0},    {VK_DOWN, 'B', 0},  {VK_RIGHT, 'C', 0}, {VK_LEFT, 'D', 0},
    {VK_HOME, 'H', 0},  {VK_END, 'F', 0},   {VK_INSERT, '~', 2}, {VK_DELETE, '~', 3},
    {VK_PRIOR, '~', 5}, {VK_NEXT, '~', 6},
};

/* Bytes read from the console and not returned yet: UTF-8. */
static struct {
    char bytes[16384];
    size_t n;
    size_t next;
} typed;
static wchar_t held; /* first half of a character whose second half has not arrived */

static void put_bytes(const char *bytes, size_t n)
{
    if (n <= sizeof typed.bytes - typed.n) {
        memcpy(typed.bytes + typed.n, bytes, n);
        typed.n += n;
    }
}

static void put_unit(wchar_t unit)
{
    wchar_t units[2] = {held, unit};
    char bytes[8];
    const bool is_pair = held && unit >= 0xDC00 && unit < 0xE000;
    held = 0;
    if (unit >= 0xD800 && unit < 0xDC00) {
        held = unit;
        return;
    }
    int n = WideCharToMultiByte(CP_UTF8, 0, is_pair ? units : units + 1, is_pair ? 2 : 1, bytes,
                                sizeof bytes, NULL, NULL);
    put_bytes(bytes, n > 0 ? (size_t)n : 0);
}

/* The modifiers in xterm's encoding: 1 + shift + 2 alt + 4 ctrl. */
static int modifiers(DWORD state)
{
    return 1 + ((state & SHIFT_PRESSED) != 0) +
           2 * ((state & (LEFT_ALT_PRESSED | RIGHT_ALT_PRESSED)) != 0) +
           4 * ((state & (LEFT_CTRL_PRESSED | RIGHT_CTRL_PRESSED)) != 0);
}

static void put_named_key(WORD key, DWORD state)
{
    const int held_keys = modifiers(state);
    for (size_t i = 0; i < TN_COUNT_OF(named_keys); i++) {
        if (named_keys[i].key != key)
            continue;
        char sequence[8] = "\x1b[";
        size_t n = 2;
        if (named_keys[i].number || held_keys > 1)
            sequence[n++] = (char)('0' + (named_keys[i].number ? named_keys[i].number : 1));
        if (held_keys > 1) {
            sequence[n++] = ';';
            sequence[n++] = (char)('0' + held_keys);
        }
        sequence[n++] = named_keys[i].last;
        put_bytes(sequence, n);
    }
}

/* Whether another key event is queued, or arrives immediately. */
static bool more_keys_follow(const INPUT_RECORD *records, DWORD n)
{
    INPUT_RECORD next[16];
    for (DWORD i = 0; i < n; i++)
        if (records[i].EventType == KEY_EVENT && records[i].Event.KeyEvent.bKeyDown)
            return true;
    (void)WaitForSingleObject(input, PASTED_WITHIN_MS);
    DWORD n_next = 0;
    if (!PeekConsoleInputW(input, next, TN_COUNT_OF(next), &n_next))
        return false;
    for (DWORD i = 0; i < n_next; i++)
        if (next[i].EventType == KEY_EVENT && next[i].Event.KeyEvent.bKeyDown)
            return true;
    return false;
}

static void put_key(const KEY_EVENT_RECORD *key, const INPUT_RECORD *following, DWORD n_following)
{
    const wchar_t unit = key->uChar.UnicodeChar;
    const DWORD state = key->dwControlKeyState;
    const bool has_ctrl = (state & (LEFT_CTRL_PRESSED | RIGHT_CTRL_PRESSED)) != 0;
    const bool has_alt = (state & LEFT_ALT_PRESSED) != 0 && !has_ctrl; /* otherwise AltGr */
    if (!key->bKeyDown) { /* Alt and digits: the character comes when Alt is released */
        if (key->wVirtualKeyCode == VK_MENU && unit)
            put_unit(unit);
        return;
    }
    for (int i = 0; i < TN_MAX(key->wRepeatCount, 1); i++) {
        if (key->wVirtualKeyCode == VK_RETURN) {
            bool is_pasted = more_keys_follow(following, n_following);
            put_bytes("\x1b\r" + !(is_pasted || modifiers(state) > 1),
                      1 + (is_pasted || modifiers(state) > 1));
        } else if (key->wVirtualKeyCode == VK_BACK) {
            put_bytes("\x1b\x7f" + !(has_ctrl || has_alt), 1 + (has_ctrl || has_alt));
        } else if (unit) {
            put_bytes("\x1b", has_alt && unit != 27);
            put_unit(unit);
        } else {
            put_named_key(key->wVirtualKeyCode, state);
        }
    }
}

/* Reads the queued events; true if the window was resized. */
static bool take_events(void)
{
    INPUT_RECORD records[512];
    DWORD n = 0;
    bool was_resized = false;
    if (!ReadConsoleInputW(input, records, TN_COUNT_OF(records), &n))
        return false;
    for (DWORD i = 0; i < n; i++) {
        if (records[i].EventType == KEY_EVENT)
            put_key(&records[i].Event.KeyEvent, records + i + 1, n - i - 1);
        was_resized = was_resized || records[i].EventType == WINDOW_BUFFER_SIZE_EVENT;
    }
    return was_resized;
}

enum tn_terminal_event tn_terminal_read(void *dst, size_t n, uint32_t timeout_ms, size_t *n_read,
                                        struct tern_error *err)
{
    *n_read = 0;
    uint32_t waited_ms = 0;
    while (typed.next == typed.n) {
        if (tn_stop_requested())
            return TN_TERMINAL_INTERRUPT;
        const uint32_t slice_ms = TN_MIN(timeout_ms - TN_MIN(waited_ms, timeout_ms), LOOK_MS);
        typed.next = typed.n = 0;
        DWORD result = WaitForSingleObject(input, slice_ms);
        if (result == WAIT_FAILED) {
            tn_os_fail(err, TERN_INPUT, "the console", "read failed", GetLastError());
            return TN_TERMINAL_FAILED;
        }
        if (result == WAIT_OBJECT_0 && take_events())
            return TN_TERMINAL_RESIZED;
        waited_ms += result == WAIT_TIMEOUT && timeout_ms != TN_TERMINAL_FOR_EVER ? slice_ms : 0;
        if (result == WAIT_TIMEOUT && waited_ms >= timeout_ms)
            return TN_TERMINAL_TIMEOUT;
    }
    *n_read = TN_MIN(n, typed.n - typed.next);
    memcpy(dst, typed.bytes + typed.next, *n_read);
    typed.next += *n_read;
    return TN_TERMINAL_BYTES;
}

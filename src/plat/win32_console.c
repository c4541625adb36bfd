/* SPDX-License-Identifier: MIT
 *
 * Windows: arguments, standard streams, the console, Ctrl-C.  A console is read and written as
 * UTF-16, whatever its code page is; files and pipes pass bytes unchanged.
 */
#include "plat/win32.h"

#include <fcntl.h>
#include <io.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/terminal.h"

#if !defined(ENABLE_VIRTUAL_TERMINAL_PROCESSING)
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 4
#endif

static HANDLE stream_handle(enum tn_stream stream)
{
    static const DWORD ids[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    return GetStdHandle(ids[stream]);
}

/* ---- process ---- */

/* The console's previous state, for tn_win32_restore_console.  Only for streams that are
 * consoles. */
static struct {
    HANDLE handle;
    DWORD mode;
} saved_modes[2];
static UINT saved_output_page;

void tn_win32_restore_console(void)
{
    for (size_t i = 0; i < TN_COUNT_OF(saved_modes); i++)
        if (saved_modes[i].handle)
            (void)SetConsoleMode(saved_modes[i].handle, saved_modes[i].mode);
    if (saved_output_page)
        (void)SetConsoleOutputCP(saved_output_page);
}

/* UTF-8 for the C library's output, and escape sequences for colours and the progress bar. */
static void prepare_console(void)
{
    static const enum tn_stream outputs[] = {TN_STDOUT, TN_STDERR};
    for (size_t i = 0; i < TN_COUNT_OF(outputs); i++) {
        HANDLE handle = stream_handle(outputs[i]);
        DWORD mode;
        if (!GetConsoleMode(handle, &mode))
            continue;
        saved_modes[i].handle = handle;
        saved_modes[i].mode = mode;
        (void)SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
        if (saved_output_page == 0) {
            saved_output_page = GetConsoleOutputCP();
            (void)SetConsoleOutputCP(CP_UTF8);
        }
    }
    (void)atexit(tn_win32_restore_console);
}

/* CommandLineToArgvW is in shell32, which is slow to load: the C library has already split the line
 * by the same rules. */
int __wgetmainargs(int *argc, wchar_t ***argv, wchar_t ***env, int expand_wildcards, int *new_mode);

static void utf8_arguments(int *argc, char ***argv)
{
    int n, new_mode = 0;
    wchar_t **wide, **env;
    if (__wgetmainargs(&n, &wide, &env, 0, &new_mode) != 0 || n <= 0)
        return;
    char **utf8 = tn_alloc_zeroed((size_t)n + 1, sizeof *utf8);
    bool ok = utf8 != NULL;
    for (int i = 0; ok && i < n; i++)
        ok = (utf8[i] = tn_win32_utf8(wide[i])) != NULL;
    if (ok) { /* used until the process ends */
        *argc = n;
        *argv = utf8;
    }
}

void tn_process_init(int *argc, char ***argv)
{
    utf8_arguments(argc, argv);
    (void)_setmode(_fileno(stdin), _O_BINARY);
    (void)_setmode(_fileno(stdout), _O_BINARY);
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX); /* no dialogue boxes */
    prepare_console();
}

/* ---- output ---- */

bool tn_is_terminal(enum tn_stream stream)
{
    DWORD mode;
    return GetConsoleMode(stream_handle(stream), &mode);
}

bool tn_console_is_own(void)
{
    DWORD ids[2]; /* a shell that started us would be the second */
    return tn_is_terminal(TN_STDIN) && GetConsoleProcessList(ids, TN_COUNT_OF(ids)) == 1;
}

void tn_console_wait_for_key(void)
{
    const HANDLE console = stream_handle(TN_STDIN);
    INPUT_RECORD record;
    DWORD n = 0;
    (void)FlushConsoleInputBuffer(console);
    while (ReadConsoleInputW(console, &record, 1, &n) && n == 1 &&
           !(record.EventType == KEY_EVENT && record.Event.KeyEvent.bKeyDown))
        ;
}

bool tn_terminal_is_utf8(void)
{
    return true; /* write_console converts to UTF-16, whatever its code page is */
}

uint32_t tn_terminal_columns(void)
{
    static const enum tn_stream outputs[] = {TN_STDERR, TN_STDOUT};
    for (size_t i = 0; i < TN_COUNT_OF(outputs); i++) {
        CONSOLE_SCREEN_BUFFER_INFO info;
        if (GetConsoleScreenBufferInfo(stream_handle(outputs[i]), &info))
            return (uint32_t)(info.srWindow.Right - info.srWindow.Left + 1);
    }
    return 80;
}

/* Bytes at the end of text that begin an incomplete character. */
static size_t incomplete_bytes(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)text[n - back];
        if ((c & 0xC0) == 0x80)
            continue;
        size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        return need > back ? back : 0;
    }
    return 0;
}

static int write_console(HANDLE console, const char *text, size_t n_bytes)
{
    wchar_t wide[1024];
    while (n_bytes > 0) {
        size_t n = TN_MIN(n_bytes, TN_COUNT_OF(wide));
        if (n < n_bytes)
            n -= incomplete_bytes(text, n); /* the rest is written with the next piece */
        int n_wide = MultiByteToWideChar(CP_UTF8, 0, text, (int)n, wide, TN_COUNT_OF(wide));
        for (DWORD done = 0, part = 0; done < (DWORD)n_wide; done += part)
            if (!WriteConsoleW(console, wide + done, (DWORD)n_wide - done, &part, NULL) || !part)
                return 2;
        text += n;
        n_bytes -= n;
    }
    return 0;
}

/* The reader's end was closed: of an anonymous pipe, of a named pipe. */
static bool is_closed_pipe(DWORD code)
{
    return code == ERROR_BROKEN_PIPE || code == ERROR_NO_DATA || code == ERROR_PIPE_NOT_CONNECTED;
}

int tn_write_stream(enum tn_stream stream, const void *bytes, size_t n_bytes)
{
    HANDLE handle = stream_handle(stream);
    DWORD mode;
    if (GetConsoleMode(handle, &mode))
        return write_console(handle, bytes, n_bytes);
    for (size_t done = 0; done < n_bytes;) {
        DWORD n = 0;
        if (!WriteFile(handle, (const char *)bytes + done,
                       (DWORD)TN_MIN(n_bytes - done, (size_t)1 << 20), &n, NULL) || n == 0) {
            return is_closed_pipe(GetLastError()) ? 1 : 2;
        }
        done += n;
    }
    return 0;
}

/* ---- input ---- */

tn_os_stream tn_os_stream_stdin(void)
{
    return (tn_os_stream)stream_handle(TN_STDIN);
}

/* Reads some typed input as UTF-8; a character of two UTF-16 units is never split.  dst has room
 * for at least 4096 bytes. */
static enum tn_os_read read_console(HANDLE console, char *dst, size_t n_dst, size_t *n_read)
{
    static wchar_t held; /* first half of a character whose second half has not arrived */
    wchar_t wide[1024];
    DWORD n_wide;
    do {
        DWORD n_held = held != 0;
        wide[0] = held;
        held = 0;
        SetLastError(0);
        if (!ReadConsoleW(console, wide + n_held, TN_COUNT_OF(wide) - 1, &n_wide, NULL))
            return TN_OS_READ_FAILED;
        /* Ctrl-C ends the read without input; its handler runs on another thread, perhaps later. */
        if (n_wide == 0 && GetLastError() == ERROR_OPERATION_ABORTED) {
            for (int i = 0; i < 100 && !tn_stop_requested(); i++)
                Sleep(1);
            return TN_OS_READ_INTERRUPTED;
        }
        bool ended = n_wide == 0;
        n_wide += n_held;
        if (!ended && wide[n_wide - 1] >= 0xD800 && wide[n_wide - 1] < 0xDC00)
            held = wide[--n_wide];
    } while (n_wide == 0 && held);
    const wchar_t *end_mark = wmemchr(wide, 26, n_wide); /* Ctrl-Z ends the input */
    if (end_mark)
        n_wide = (DWORD)(end_mark - wide);
    int n = n_wide ? WideCharToMultiByte(CP_UTF8, 0, wide, (int)n_wide, dst, (int)n_dst, NULL, NULL)
                   : 0;
    *n_read = n > 0 ? (size_t)n : 0;
    return TN_OS_READ_OK;
}

enum tn_os_read tn_os_stream_read(tn_os_stream stream, const char *name, void *dst, size_t n_bytes,
                                  size_t *n_read, struct tern_error *err)
{
    HANDLE handle = (HANDLE)stream;
    DWORD n = 0, mode;
    *n_read = 0;
    if (tn_stop_requested())
        return TN_OS_READ_INTERRUPTED;
    if (GetConsoleMode(handle, &mode)) {
        enum tn_os_read result = read_console(handle, dst, n_bytes, n_read);
        if (result == TN_OS_READ_FAILED)
            tn_os_fail(err, TERN_INPUT, name, "read failed", GetLastError());
        return result;
    }
    if (ReadFile(handle, dst, (DWORD)TN_MIN(n_bytes, (size_t)1 << 30), &n, NULL)) {
        *n_read = n;
        return TN_OS_READ_OK;
    }
    DWORD code = GetLastError();
    if (code == ERROR_BROKEN_PIPE || code == ERROR_HANDLE_EOF) /* the writer closed its end */
        return TN_OS_READ_OK;
    tn_os_fail(err, TERN_INPUT, name, "read failed", code);
    return TN_OS_READ_FAILED;
}

/* ---- Ctrl-C ---- */

#define SIGNAL_HANGUP 1
#define SIGNAL_TERMINATE 15

/* Runs on a separate thread.  FALSE passes the event to the next handler, finally to the one that
 * ends the process. */
static BOOL WINAPI on_control(DWORD what)
{
    if (what == CTRL_C_EVENT || what == CTRL_BREAK_EVENT) {
        bool ends = tn_os_note_interrupt();
        if (ends) {
            tn_terminal_restore_for_end();
            tn_win32_restore_console();
        }
        return !ends;
    }
    tn_os_note_termination(what == CTRL_CLOSE_EVENT ? SIGNAL_HANGUP : SIGNAL_TERMINATE);
    /* The process ends when this returns: gives the main thread time to finish. */
    Sleep(4000);
    return FALSE;
}

void tn_interrupt_install(void)
{
    static _Atomic uint32_t is_installed;
    if (atomic_exchange(&is_installed, 1) == 0)
        (void)SetConsoleCtrlHandler(on_control, TRUE);
}

void tn_exit_by_signal(int signal_number)
{
    exit(128 + signal_number);
}

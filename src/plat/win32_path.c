/* SPDX-License-Identifier: MIT
 *
 * Windows: UTF-8 to UTF-16 and back, and paths for the wide functions: absolute, with backslashes
 * and the prefix \\?\.
 */
#include "plat/win32.h"

#include <string.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/compiler.h"

static wchar_t *alloc_wide(size_t n)
{
    wchar_t *wide = tn_alloc(n * sizeof *wide);
    if (!wide)
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return wide;
}

wchar_t *tn_win32_wide(const char *text)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = n > 0 ? alloc_wide((size_t)n) : NULL;
    if (wide)
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n);
    return wide;
}

char *tn_win32_utf8(const wchar_t *wide)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = n > 0 ? tn_alloc((size_t)n) : NULL;
    if (text)
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, n, NULL, NULL);
    return text;
}

#define PREFIX_ROOM 6 /* characters before a full path, for add_prefix */
#define SUFFIX_ROOM 2 /* after it, for tn_win32_path_add_names */

static wchar_t *add_prefix(wchar_t *full)
{
    static const wchar_t drive[] = {L'\\', L'\\', L'?', L'\\'};
    static const wchar_t share[] = {L'\\', L'\\', L'?', L'\\', L'U', L'N', L'C'};
    const bool is_share = full[0] == L'\\' && full[1] == L'\\';
    if (is_share && (full[2] == L'?' || full[2] == L'.'))
        return full; /* \\.\NUL is a device */
    if (is_share) /* instead of the first of two backslashes */
        return memcpy(full + 1 - TN_COUNT_OF(share), share, sizeof share);
    return memcpy(full - TN_COUNT_OF(drive), drive, sizeof drive);
}

static void init_long(struct tn_win32_path *out, const char *path)
{
    wchar_t *wide = tn_win32_wide(path);
    DWORD n = wide ? GetFullPathNameW(wide, 0, NULL, NULL) : 0;
    out->allocated = n > 0 ? alloc_wide(PREFIX_ROOM + n + SUFFIX_ROOM) : NULL;
    DWORD n_full =
        out->allocated ? GetFullPathNameW(wide, n, out->allocated + PREFIX_ROOM, NULL) : 0;
    DWORD code = GetLastError();
    if (n_full > 0 && n_full < n)
        out->text = add_prefix(out->allocated + PREFIX_ROOM);
    tn_free(wide);
    SetLastError(code);
}

void tn_win32_path_init(struct tn_win32_path *out, const char *path)
{
    enum { CAPACITY = TN_COUNT_OF(out->room) - PREFIX_ROOM - SUFFIX_ROOM };
    wchar_t wide[CAPACITY];
    DWORD n = 0;
    out->text = out->allocated = NULL;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, CAPACITY) > 0)
        n = GetFullPathNameW(wide, CAPACITY, out->room + PREFIX_ROOM, NULL);
    if (n > 0 && n < CAPACITY)
        out->text = add_prefix(out->room + PREFIX_ROOM);
    else
        init_long(out, path);
}

void tn_win32_path_fini(struct tn_win32_path *path)
{
    DWORD code = GetLastError();
    tn_free(path->allocated);
    SetLastError(code);
}

void tn_win32_path_add_names(struct tn_win32_path *path)
{
    const size_t n = wcslen(path->text);
    wcscpy(path->text + n, path->text[n - 1] == L'\\' ? L"*" : L"\\*");
}

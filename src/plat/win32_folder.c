/* SPDX-License-Identifier: MIT
 *
 * Windows: the names in a folder, and the user's folders for data and for caches, from the
 * environment.
 */
#include <wchar.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/win32.h"

/* False if the caller wants no more names. */
static bool visit_one(const WIN32_FIND_DATAW *found, bool (*visit)(void *arg, const char *name),
                      void *arg)
{
    if (wcscmp(found->cFileName, L".") == 0 || wcscmp(found->cFileName, L"..") == 0)
        return true;
    char *name = tn_win32_utf8(found->cFileName);
    const bool go_on = !name || visit(arg, name);
    tn_free(name);
    return go_on;
}

bool tn_dir_walk(const char *path, bool (*visit)(void *arg, const char *name), void *arg)
{
    WIN32_FIND_DATAW found;
    char *pattern = tn_path_join(path, "*");
    wchar_t *wide = pattern ? tn_win32_path(pattern) : NULL;
    HANDLE list = wide ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    tn_free(wide);
    tn_free(pattern);
    if (list == INVALID_HANDLE_VALUE)
        return false;
    while (visit_one(&found, visit, arg) && FindNextFileW(list, &found))
        ;
    FindClose(list);
    return true;
}

/* The value of an environment variable; NULL: unset. */
static char *folder_in(const wchar_t *variable)
{
    wchar_t wide[MAX_PATH + 1];
    DWORD n = GetEnvironmentVariableW(variable, wide, TN_COUNT_OF(wide));
    return n == 0 || n >= TN_COUNT_OF(wide) ? NULL : tn_win32_utf8(wide);
}

char *tn_path_of_home_dir(void)
{
    return folder_in(L"USERPROFILE");
}

char *tn_path_of_data_dir(void)
{
    char *base = folder_in(L"LOCALAPPDATA");
    char *dir = base ? tn_path_join(base, "tern") : NULL;
    tn_free(base);
    return dir;
}

unsigned long tn_os_make_dir(const char *path)
{
    wchar_t *wide = tn_win32_path(path);
    DWORD code = 0;
    if (!wide)
        code = ERROR_NOT_ENOUGH_MEMORY;
    else if (!CreateDirectoryW(wide, NULL))
        code = GetLastError();
    tn_free(wide);
    return code != 0 && tn_path_kind(path) == TN_PATH_DIR ? 0 : code;
}

bool tn_dir_remove(const char *path)
{
    wchar_t *wide = tn_win32_path(path);
    const bool removed = wide && RemoveDirectoryW(wide);
    tn_free(wide);
    return removed;
}

char *tn_path_of_cache_dir(void)
{
    char *dir = tn_path_of_data_dir();
    if (dir && tn_os_make_dir(dir) != 0) {
        tn_free(dir);
        dir = NULL;
    }
    return dir;
}

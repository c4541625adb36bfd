/* SPDX-License-Identifier: MIT
 *
 * Windows: the names in a folder, and the user's folders for data and for caches, from the
 * environment.
 */
#include <wchar.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/win32.h"

/* False if the caller wants no more names. */
static bool visit_one(const WIN32_FIND_DATAW *found, bool (*visit)(void *arg, const char *name),
                      void *arg)
{
    if (wcscmp(found->cFileName, L".") == 0 || wcscmp(found->cFileName, L"..") == 0)
        return true;
    char name[3 * MAX_PATH + 1]; /* a name can be listed when no memory is left */
    const int n = WideCharToMultiByte(CP_UTF8, 0, found->cFileName, -1, name, sizeof name, NULL,
                                      NULL);
    return n == 0 || visit(arg, name);
}

bool tn_dir_walk(const char *path, bool (*visit)(void *arg, const char *name), void *arg)
{
    WIN32_FIND_DATAW found;
    HANDLE list = INVALID_HANDLE_VALUE;
    struct tn_win32_path folder;
    tn_win32_path_init(&folder, path);
    if (folder.text) {
        tn_win32_path_add_names(&folder);
        list = FindFirstFileW(folder.text, &found);
    }
    tn_win32_path_fini(&folder);
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
    struct tn_win32_path wide;
    tn_win32_path_init(&wide, path);
    const DWORD code = wide.text && CreateDirectoryW(wide.text, NULL) ? 0 : GetLastError();
    tn_win32_path_fini(&wide);
    return code != 0 && tn_path_kind(path) == TN_PATH_DIR ? 0 : code;
}

bool tn_dir_remove(const char *path)
{
    struct tn_win32_path wide;
    tn_win32_path_init(&wide, path);
    const bool removed = wide.text && RemoveDirectoryW(wide.text);
    tn_win32_path_fini(&wide);
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

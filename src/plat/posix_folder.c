/* SPDX-License-Identifier: MIT
 *
 * POSIX: the names in a folder, and the user's folders for data and for caches, as the XDG
 * specification and macOS define them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "plat/plat.h"
#include "plat/plat_os.h"

bool tn_dir_walk(const char *path, bool (*visit)(void *arg, const char *name), void *arg)
{
    DIR *list = opendir(path);
    if (!list)
        return false;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !visit(arg, entry->d_name))
            break;
    closedir(list);
    return true;
}

char *tn_path_of_home_dir(void)
{
    const char *home = getenv("HOME");
    return home && home[0] == '/' ? tn_copy_text(home) : NULL;
}

/* The user's folder that `variable` names, else one relative to the home; NULL without a home. */
static char *user_dir(const char *variable, const char *below_home)
{
    const char *given = getenv(variable), *home = getenv("HOME");
    if (given && given[0] == '/') /* the specification says to ignore relative ones */
        return tn_copy_text(given);
    return home && home[0] == '/' ? tn_path_join(home, below_home) : NULL;
}

#if defined(__APPLE__)
static char *data_home(void)
{
    return user_dir("", "Library/Application Support");
}
static char *cache_home(void)
{
    return user_dir("", "Library/Caches");
}
#else
static char *data_home(void)
{
    return user_dir("XDG_DATA_HOME", ".local/share");
}
static char *cache_home(void)
{
    return user_dir("XDG_CACHE_HOME", ".cache");
}
#endif

char *tn_path_of_data_dir(void)
{
    char *base = data_home();
    char *dir = base ? tn_path_join(base, "tern") : NULL;
    tn_free(base);
    return dir;
}

unsigned long tn_os_make_dir(const char *path)
{
    if (mkdir(path, 0700) == 0)
        return 0;
    const int code = errno;
    return tn_path_kind(path) == TN_PATH_DIR ? 0 : (unsigned long)code;
}

bool tn_dir_remove(const char *path)
{
    return rmdir(path) == 0;
}

char *tn_path_of_cache_dir(void)
{
    char *base = cache_home();
    char *dir = base ? tn_path_join(base, "tern") : NULL;
    if (dir && (tn_os_make_dir(base) || tn_os_make_dir(dir))) {
        tn_free(dir);
        dir = NULL;
    }
    tn_free(base);
    return dir;
}

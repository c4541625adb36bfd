/* SPDX-License-Identifier: MIT
 *
 * Error messages for part files (FILE.part), in terms of the file that the user named.  The files
 * of POSIX and Windows share it.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text_match.h"
#include "plat/plat_os.h"

/* Length of the folder's path before the last separator; 0: there is none. */
static size_t folder_length(const char *path)
{
    size_t n = 0;
    for (size_t i = 0; path[i]; i++)
        if (strchr(TN_OS_SEPARATORS, path[i]))
            n = i;
    return n;
}

tern_status tn_os_fail_part(struct tern_error *err, const char *part, unsigned long code,
                            bool is_folder_missing)
{
    char *name = tn_copy_text(part);
    if (!name)
        return tn_fail(err, TERN_MEMORY, "no memory for a path");
    const size_t n_stem = tn_text_n_stem(name, ".part");
    if (n_stem)
        name[n_stem] = '\0';
    const size_t n_folder = folder_length(name);
    tern_status status =
        is_folder_missing && n_folder > 0
            ? tn_fail(err, TERN_OUTPUT, "%s: cannot be created: there is no folder \"%.*s\"", name,
                      (int)n_folder, name)
            : tn_os_fail(err, TERN_OUTPUT, name, "cannot be created", code);
    tn_free(name);
    return status;
}

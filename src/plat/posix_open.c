/* SPDX-License-Identifier: MIT
 *
 * POSIX: opening files, and the message for a failed system call.  The other posix_*.c files build
 * on this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "plat/plat_os.h"
#include "plat/posix.h"

tern_status tn_os_fail(struct tern_error *err, tern_status status, const char *path,
                       const char *what, unsigned long code)
{
    if (code == ENOMEM)
        status = TERN_MEMORY;
    return tn_fail(err, status, "%s: %s: %s", path, what, strerror((int)code));
}

int tn_posix_open_mode(const char *path, int flags, unsigned mode)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int tn_posix_open(const char *path, int flags)
{
    return tn_posix_open_mode(path, flags, 0666);
}

uint64_t tn_posix_modified_ns(const struct stat *st)
{
#if defined(__APPLE__)
    const struct timespec at = st->st_mtimespec;
#else
    const struct timespec at = st->st_mtim;
#endif
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Regular files only: O_NONBLOCK keeps a FIFO without a writer from blocking the open. */
tern_status tn_posix_open_regular(int *out, uint64_t *n_bytes, const char *path,
                                  struct tern_error *err)
{
    int fd = tn_posix_open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return tn_os_fail(err, TERN_INPUT, path, "cannot be opened", (unsigned long)errno);
    struct stat st;
    tern_status status = TERN_OK;
    if (fstat(fd, &st) != 0)
        status = tn_os_fail(err, TERN_INPUT, path, "cannot be read", (unsigned long)errno);
    else if (S_ISDIR(st.st_mode))
        status = tn_fail(err, TERN_INPUT, "%s: is a directory, a file is needed", path);
    else if (!S_ISREG(st.st_mode))
        status = tn_fail(err, TERN_INPUT, "%s: is not a regular file", path);
    if (status) {
        close(fd);
        return status;
    }
    *out = fd;
    *n_bytes = (uint64_t)st.st_size;
    return TERN_OK;
}

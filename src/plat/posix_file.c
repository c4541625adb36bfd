/* SPDX-License-Identifier: MIT
 *
 * POSIX: files and paths.  Interrupted and short transfers are continued.  Part files are locked,
 * so that two processes cannot write the same one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/posix.h"

/* macOS refuses transfers of 2 GiB and more. */
#define MAX_TRANSFER ((size_t)1 << 30)

struct tn_file {
    int fd;
    char path[]; /* for messages */
};

static tern_status make_file(struct tn_file **out, int fd, const char *path, struct tern_error *err)
{
    size_t n_path = strlen(path) + 1;
    struct tn_file *file = tn_alloc(sizeof *file + n_path);
    if (!file) {
        close(fd);
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", path);
    }
    file->fd = fd;
    memcpy(file->path, path, n_path);
    *out = file;
    return TERN_OK;
}

tern_status tn_file_open_read(struct tn_file **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    int fd;
    uint64_t n_bytes;
    tern_status status = tn_posix_open_regular(&fd, &n_bytes, path, err);
    return status ? status : make_file(out, fd, path, err);
}

tern_status tn_file_create(struct tn_file **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    int fd = tn_posix_open(path, O_RDWR | O_CREAT | O_TRUNC);
    /* A pipe or a terminal may allow writing only. */
    if (fd < 0 && (errno == EACCES || errno == ENXIO))
        fd = tn_posix_open(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0)
        return tn_os_fail(err, TERN_OUTPUT, path, "cannot be created", (unsigned long)errno);
    return make_file(out, fd, path, err);
}

tern_status tn_file_open_append(struct tn_file **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    int fd = tn_posix_open(path, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0)
        return tn_os_fail(err, TERN_OUTPUT, path, "cannot be opened for writing",
                          (unsigned long)errno);
    return make_file(out, fd, path, err);
}

/* ---- part files ---- */

/* Only the process that holds the lock of a part file may write, rename and remove it: two
 * conversions into one file would otherwise rename each other's unfinished work.  Closing unlocks,
 * so a part file without a lock was left by a dead process. */
enum part_lock { PART_LOCKED, PART_BUSY, PART_MOVED };

static enum part_lock lock_part(int fd, const char *path)
{
    struct stat locked, named;
    int result;
    do
        result = flock(fd, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    /* EBADF: the lock needs a descriptor for writing, as on NFS, and this one is not: another
     * process may be writing.  Other errors: a file system without locks. */
    if (result != 0 && (errno == EWOULDBLOCK || errno == EBADF))
        return PART_BUSY;
    bool same = fstat(fd, &locked) == 0 && lstat(path, &named) == 0 &&
                locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
    return same ? PART_LOCKED : PART_MOVED;
}

/* Removes the file at `path`, unless another process is writing it. */
static enum part_lock remove_dead_part(const char *path)
{
    int fd = tn_posix_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK); /* O_RDWR, because NFS locks
                                                                     * only for writers */
    if (fd < 0 && errno == EACCES)
        fd = tn_posix_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    enum part_lock lock = fd >= 0           ? lock_part(fd, path)
                          : errno == ENOENT ? PART_MOVED
                                            : PART_LOCKED; /* a link, or unreadable */
    if (lock == PART_LOCKED)
        tn_file_remove(path);
    if (fd >= 0)
        close(fd);
    return lock;
}

static tern_status create_part(struct tn_file **out, const char *path, unsigned mode,
                               struct tern_error *err)
{
    *out = NULL;
    int code = EEXIST;
    for (int i = 0; i < 16; i++) { /* other processes may interfere between any two steps */
        int fd = tn_posix_open_mode(path, O_RDWR | O_CREAT | O_EXCL, mode);
        if (fd >= 0 && lock_part(fd, path) == PART_LOCKED) {
            tern_status status = make_file(out, fd, path, err);
            if (status)
                tn_file_remove(path); /* no memory for its record */
            return status;
        }
        code = fd >= 0 ? EEXIST : errno;
        if (fd >= 0)
            close(fd);
        else if (code != EEXIST)
            break;
        else if (remove_dead_part(path) == PART_BUSY)
            return tn_fail(err, TERN_OUTPUT,
                           "%s: another process is writing it; wait for it or give another name",
                           path);
    }
    return tn_os_fail_part(err, path, (unsigned long)code, code == ENOENT);
}

tern_status tn_file_create_part(struct tn_file **out, const char *path, struct tern_error *err)
{
    return create_part(out, path, 0666, err);
}

tern_status tn_file_create_private_part(struct tn_file **out, const char *path,
                                        struct tern_error *err)
{
    return create_part(out, path, 0600, err);
}

tern_status tn_file_finish_part(struct tn_file *file, const char *to, struct tern_error *err)
{
    tern_status status = tn_file_replace(file->path, to, err);
    if (status)
        tn_file_remove(file->path);
    tn_file_close(file);
    return status;
}

void tn_file_abort_part(struct tn_file *file)
{
    if (!file)
        return;
    tn_file_remove(file->path);
    tn_file_close(file);
}

uint64_t tn_file_size(const struct tn_file *file)
{
    struct stat st;
    return fstat(file->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

uint64_t tn_file_modified_ns(const struct tn_file *file)
{
    struct stat st;
    return fstat(file->fd, &st) == 0 ? tn_posix_modified_ns(&st) : 0;
}

tern_status tn_file_read_at(struct tn_file *file, uint64_t offset, void *dst, size_t n_bytes,
                            struct tern_error *err)
{
    size_t done = 0;
    while (done < n_bytes) {
        ssize_t n = pread(file->fd, (char *)dst + done, TN_MIN(n_bytes - done, MAX_TRANSFER),
                          (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tn_os_fail(err, TERN_INPUT, file->path, "read failed", (unsigned long)errno);
        if (n == 0)
            return tn_fail(err, TERN_INPUT, "%s: ends at byte %llu, %zu bytes at %llu are needed",
                           file->path, (unsigned long long)(offset + done), n_bytes,
                           (unsigned long long)offset);
        done += (size_t)n;
    }
    return TERN_OK;
}

/* Pipes and terminals, which may be the output of convert and logits, have no offsets. */
static ssize_t write_some(int fd, const void *src, size_t n_bytes, uint64_t offset)
{
    ssize_t n = pwrite(fd, src, n_bytes, (off_t)offset);
    return n < 0 && errno == ESPIPE ? write(fd, src, n_bytes) : n;
}

#define AT_END UINT64_MAX /* not a valid offset */

static tern_status write_all(struct tn_file *file, uint64_t offset, const void *src, size_t n_bytes,
                             struct tern_error *err)
{
    for (size_t done = 0; done < n_bytes;) {
        const char *from = (const char *)src + done;
        const size_t most = TN_MIN(n_bytes - done, MAX_TRANSFER);
        ssize_t n = offset == AT_END ? write(file->fd, from, most)
                                     : write_some(file->fd, from, most, offset + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return tn_os_fail(err, TERN_OUTPUT, file->path, "write failed",
                              (unsigned long)(n == 0 ? EIO : errno));
        done += (size_t)n;
    }
    return TERN_OK;
}

tern_status tn_file_write_at(struct tn_file *file, uint64_t offset, const void *src,
                             size_t n_bytes, struct tern_error *err)
{
    return write_all(file, offset, src, n_bytes, err);
}

tern_status tn_file_append(struct tn_file *file, const void *src, size_t n_bytes,
                           struct tern_error *err)
{
    return write_all(file, AT_END, src, n_bytes, err);
}

void tn_file_drop_cache(struct tn_file *file, uint64_t offset, uint64_t n_bytes)
{
#if defined(POSIX_FADV_DONTNEED)
    (void)posix_fadvise(file->fd, (off_t)offset, (off_t)n_bytes, POSIX_FADV_DONTNEED);
#else
    (void)file, (void)offset, (void)n_bytes;
#endif
}

static bool sync_fd(int fd)
{
#if defined(F_FULLFSYNC)
    if (fcntl(fd, F_FULLFSYNC) == 0)
        return true; /* otherwise the file system does not support it, and fsync is the best
                      * available */
#endif
    int result;
    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    /* Devices, pipes and some network file systems have nothing to sync. */
    return result == 0 || errno == EINVAL || errno == ENOTSUP;
}

tern_status tn_file_sync(struct tn_file *file, struct tern_error *err)
{
    if (!sync_fd(file->fd))
        return tn_os_fail(err, TERN_OUTPUT, file->path, "cannot be written to disk",
                          (unsigned long)errno);
    return TERN_OK;
}

void tn_file_close(struct tn_file *file)
{
    if (!file)
        return;
    close(file->fd); /* not repeated after EINTR: Linux and macOS have closed the descriptor */
    tn_free(file);
}

/* The folder that contains `path`, in new memory. */
static char *path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return tn_copy_text(".");
    return tn_copy_bytes(path, TN_MAX((size_t)(slash - path), (size_t)1));
}

tern_status tn_file_replace(const char *from, const char *to, struct tern_error *err)
{
    char *dir = path_dir(to);
    if (!dir)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to rename it", from);
    tern_status status = TERN_OK;
    if (rename(from, to) != 0) {
        status = tn_os_fail(err, TERN_OUTPUT, to, "cannot be replaced", (unsigned long)errno);
    } else {
        /* A folder that may be written but not read cannot be synced; the rename is valid. */
        int fd = tn_posix_open(dir, O_RDONLY | O_DIRECTORY);
        if (fd >= 0 && !sync_fd(fd))
            status = tn_os_fail(err, TERN_OUTPUT, dir, "folder cannot be written to disk",
                                (unsigned long)errno);
        if (fd >= 0)
            close(fd);
    }
    tn_free(dir);
    return status;
}

void tn_file_remove(const char *path)
{
    (void)unlink(path);
}

enum tn_path_kind tn_path_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return lstat(path, &st) == 0 ? TN_PATH_BROKEN : TN_PATH_ABSENT;
    return S_ISREG(st.st_mode) ? TN_PATH_FILE : S_ISDIR(st.st_mode) ? TN_PATH_DIR : TN_PATH_OTHER;
}

bool tn_path_same(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

bool tn_os_is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

char *tn_path_resolve(const char *path)
{
    char resolved[PATH_MAX];
    return realpath(path, resolved) ? tn_copy_text(resolved) : NULL;
}

bool tn_path_is_replaceable(const char *path)
{
    char resolved[PATH_MAX];
    struct stat st, stream;
    if (stat(path, &st) != 0)
        return true;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &stream) == 0 && stream.st_dev == st.st_dev && stream.st_ino == st.st_ino)
            return false;
    return S_ISREG(st.st_mode) && realpath(path, resolved) && tn_path_same(path, resolved);
}

char *tn_path_of_executable_dir(void)
{
    char path[PATH_MAX];
#if defined(__APPLE__)
    char unresolved[PATH_MAX];
    uint32_t n_unresolved = sizeof unresolved;
    if (_NSGetExecutablePath(unresolved, &n_unresolved) != 0 || !realpath(unresolved, path))
        return NULL;
#else
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = '\0';
#endif
    return path_dir(path);
}

uint64_t tn_disk_free_bytes(const char *path)
{
    char *dir = path_dir(path);
    struct statvfs fs;
    bool known = dir && statvfs(dir, &fs) == 0 && fs.f_blocks > 0;
    tn_free(dir);
    return known ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

/* ---- sequential input ---- */

tern_status tn_os_stream_open(tn_os_stream *out, const char *path, struct tern_error *err)
{
    int fd;
    do { /* opening a named pipe waits for a writer: not tn_posix_open */
        if (tn_interrupt_count() > 0 || tn_terminate_requested())
            return tn_fail(err, TERN_INTERRUPTED, "%s: interrupted while opening", path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return tn_os_fail(err, TERN_INPUT, path, "cannot be opened", (unsigned long)errno);
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return tn_fail(err, TERN_INPUT, "%s: is a directory, a file is needed", path);
    }
    *out = fd;
    return TERN_OK;
}

void tn_os_stream_close(tn_os_stream stream)
{
    close((int)stream);
}

/* On Ctrl-C a terminal discards typed input at any moment, even between the wait that saw a line
 * and the read, which would then sleep until the next line, after the signal was handled.  So the
 * read must not block.  The terminal is opened again, because O_NONBLOCK belongs to the open file
 * description, which is shared with the shell. */
static int open_terminal_again(int fd)
{
    const char *path = isatty(fd) ? ttyname(fd) : NULL;
    int again = path ? tn_posix_open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK) : -1;
    if (again < FD_SETSIZE)
        return again;
    close(again); /* pselect cannot wait for it */
    return -1;
}

tn_os_stream tn_os_stream_stdin(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = open_terminal_again(STDIN_FILENO);
    if (fd < 0)
        fd = STDIN_FILENO;
    return fd;
}

enum tn_os_read tn_os_stream_read(tn_os_stream stream, const char *name, void *dst, size_t n_bytes,
                                  size_t *n_read, struct tern_error *err)
{
    int fd = (int)stream;
    *n_read = 0;
    for (;;) {
        if (!tn_posix_wait_readable(fd))
            return TN_OS_READ_INTERRUPTED;
        ssize_t n = read(fd, dst, n_bytes);
        if (n >= 0) {
            *n_read = (size_t)n;
            return TN_OS_READ_OK;
        }
        if (errno == EINTR || errno == EAGAIN)
            continue;
        tn_os_fail(err, TERN_INPUT, name, "read failed", (unsigned long)errno);
        return TN_OS_READ_FAILED;
    }
}

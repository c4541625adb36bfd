/* SPDX-License-Identifier: MIT
 *
 * Reads small text files of /proc and /sys, or of a recording, with bounded sizes.  Everything in
 * sysinfo/ that is read by path (except by hwloc) goes through here, so that a fuzz target can
 * substitute files.
 */
#include "sysinfo_private.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#if defined(_WIN32)

static intptr_t open_file(const char *path)
{
    wchar_t wide[TN_FACT_PATH_BYTES];
    if (!MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, TN_FACT_PATH_BYTES))
        return -1;
    HANDLE file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file != INVALID_HANDLE_VALUE && GetFileType(file) != FILE_TYPE_DISK) {
        CloseHandle(file);
        return -1;
    }
    return (intptr_t)file; /* INVALID_HANDLE_VALUE is -1 */
}

static long read_from_start(intptr_t handle, char *text, size_t capacity)
{
    HANDLE file = (HANDLE)handle;
    LARGE_INTEGER start = {.QuadPart = 0};
    if (!SetFilePointerEx(file, start, NULL, FILE_BEGIN))
        return -1;
    size_t n = 0;
    DWORD got = 0;
    while (n < capacity && ReadFile(file, text + n, (DWORD)(capacity - n), &got, NULL) && got > 0)
        n += got;
    return (long)n;
}

static void close_file(intptr_t handle)
{
    CloseHandle((HANDLE)handle);
}

#else

static intptr_t open_file(const char *path)
{
    /* O_NONBLOCK: a pipe in an untrusted root must not block. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -1;
    }
    return fd;
}

static long read_from_start(intptr_t handle, char *text, size_t capacity)
{
    size_t n = 0;
    while (n < capacity) {
        ssize_t got = pread((int)handle, text + n, capacity - n, (off_t)n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && n == 0)
            return -1;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return (long)n;
}

static void close_file(intptr_t handle)
{
    close((int)handle);
}

#endif

bool tn_fact_open(struct tn_fact_file *file, const char *root, const char *path)
{
    char full[TN_FACT_PATH_BYTES];
    int n_path = snprintf(full, sizeof full, "%s%s", root, path);
    bool fits = n_path >= 0 && (size_t)n_path < sizeof full;
    file->handle = fits ? open_file(full) : -1;
    return file->handle != -1;
}

long tn_fact_reread(const struct tn_fact_file *file, char *text, size_t capacity)
{
    long n = file->handle == -1 ? -1 : read_from_start(file->handle, text, capacity - 1);
    text[n > 0 ? n : 0] = '\0';
    return n < 0 ? -1 : (long)strlen(text);
}

void tn_fact_close(struct tn_fact_file *file)
{
    if (file->handle != -1)
        close_file(file->handle);
    file->handle = -1;
}

long tn_fact_read(const char *root, const char *path, char *text, size_t capacity)
{
    struct tn_fact_file file;
    tn_fact_open(&file, root, path);
    long n = tn_fact_reread(&file, text, capacity);
    tn_fact_close(&file);
    return n;
}

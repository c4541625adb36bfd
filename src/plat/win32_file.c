/* SPDX-License-Identifier: MIT
 *
 * Windows: files, and questions about paths.  Part files are protected by their sharing mode.
 */
#include "plat/win32.h"

#include <string.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "plat/plat.h"
#include "plat/plat_os.h"

#define MAX_TRANSFER ((size_t)1 << 30)

struct tn_file {
    HANDLE handle;
    char path[]; /* for messages */
};

/* ---- errors ---- */

void (*tn_win32_function(const wchar_t *module, const char *name))(void)
{
    HMODULE handle = GetModuleHandleW(module);
    return handle ? (void (*)(void))GetProcAddress(handle, name) : NULL;
}

tern_status tn_os_fail(struct tern_error *err, tern_status status, const char *path,
                       const char *what, unsigned long code)
{
    wchar_t wide[256];
    char text[512] = "";
    if (code == ERROR_NOT_ENOUGH_MEMORY)
        status = TERN_MEMORY;
    DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                             code, 0, wide, TN_COUNT_OF(wide), NULL);
    while (n > 0 && (wide[n - 1] <= L' ' || wide[n - 1] == L'.'))
        n--; /* "The system cannot find the file specified.\r\n" */
    int n_text = WideCharToMultiByte(CP_UTF8, 0, wide, (int)n, text, sizeof text - 1, NULL, NULL);
    text[n_text > 0 ? n_text : 0] = '\0';
    if (text[0] == '\0')
        return tn_fail(err, status, "%s: %s: error %lu", path, what, code);
    return tn_fail(err, status, "%s: %s: %s", path, what, text);
}

/* ---- paths ---- */

/* Removes the prefix \\?\ for messages. */
static char *utf8_without_prefix(wchar_t *wide)
{
    if (wcsncmp(wide, L"\\\\?\\UNC\\", 8) == 0) {
        wide[6] = L'\\';
        return tn_win32_utf8(wide + 6);
    }
    return tn_win32_utf8(wcsncmp(wide, L"\\\\?\\", 4) == 0 ? wide + 4 : wide);
}

/* ---- open ---- */

/* INVALID_HANDLE_VALUE and GetLastError() on failure. */
static HANDLE open_handle(const char *path, DWORD access, DWORD share, DWORD how, DWORD flags)
{
    struct tn_win32_path wide;
    tn_win32_path_init(&wide, path);
    HANDLE handle = wide.text ? CreateFileW(wide.text, access, share, NULL, how, flags, NULL)
                              : INVALID_HANDLE_VALUE;
    tn_win32_path_fini(&wide);
    return handle;
}

/* Opens for reading; others may rename and delete the file.  flags: for sequential access. */
static tern_status open_shared(HANDLE *out, const char *path, DWORD share, DWORD flags,
                               struct tern_error *err)
{
    HANDLE handle =
        open_handle(path, GENERIC_READ, share | FILE_SHARE_READ | FILE_SHARE_DELETE,
                    OPEN_EXISTING, flags);
    if (handle != INVALID_HANDLE_VALUE) {
        *out = handle;
        return TERN_OK;
    }
    DWORD code = GetLastError();
    if (tn_path_kind(path) == TN_PATH_DIR)
        return tn_fail(err, TERN_INPUT, "%s: is a directory, a file is needed", path);
    tern_status status = tn_os_fail(err, TERN_INPUT, path, "cannot be opened", code);
    SetLastError(code);
    return status;
}

static tern_status open_read(HANDLE *out, const char *path, DWORD flags, struct tern_error *err)
{
    return open_shared(out, path, FILE_SHARE_WRITE, flags, err);
}

static tern_status check_regular(HANDLE *out, uint64_t *n_bytes, const char *path,
                                 struct tern_error *err)
{
    LARGE_INTEGER size;
    tern_status status = TERN_OK;
    if (GetFileType(*out) != FILE_TYPE_DISK)
        status = tn_fail(err, TERN_INPUT, "%s: is not a regular file", path);
    else if (!GetFileSizeEx(*out, &size))
        status = tn_os_fail(err, TERN_INPUT, path, "cannot be read", GetLastError());
    if (status)
        CloseHandle(*out);
    else
        *n_bytes = (uint64_t)size.QuadPart;
    return status;
}

/* Opens a regular file; *n_bytes is its size. */
static tern_status open_regular(HANDLE *out, uint64_t *n_bytes, const char *path,
                                struct tern_error *err)
{
    tern_status status = open_read(out, path, FILE_ATTRIBUTE_NORMAL, err);
    return status ? status : check_regular(out, n_bytes, path, err);
}

/* An existing writer, such as the converter in this process, has to be tolerated. */
tern_status tn_win32_open_to_map(HANDLE *out, uint64_t *n_bytes, bool *has_writer,
                                 const char *path, struct tern_error *err)
{
    tern_status status = open_shared(out, path, 0, FILE_ATTRIBUTE_NORMAL, err);
    *has_writer = status != TERN_OK && GetLastError() == ERROR_SHARING_VIOLATION;
    if (*has_writer)
        status = open_read(out, path, FILE_ATTRIBUTE_NORMAL, err);
    return status ? status : check_regular(out, n_bytes, path, err);
}

static tern_status make_file(struct tn_file **out, HANDLE handle, const char *path,
                             struct tern_error *err)
{
    size_t n_path = strlen(path) + 1;
    struct tn_file *file = tn_alloc(sizeof *file + n_path);
    if (!file) {
        CloseHandle(handle);
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", path);
    }
    file->handle = handle;
    memcpy(file->path, path, n_path);
    *out = file;
    return TERN_OK;
}

tern_status tn_file_open_read(struct tn_file **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    HANDLE handle;
    uint64_t n_bytes;
    tern_status status = open_regular(&handle, &n_bytes, path, err);
    return status ? status : make_file(out, handle, path, err);
}

tern_status tn_file_create(struct tn_file **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    HANDLE handle = open_handle(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, CREATE_ALWAYS,
                                FILE_ATTRIBUTE_NORMAL);
    if (handle == INVALID_HANDLE_VALUE)
        return tn_os_fail(err, TERN_OUTPUT, path, "cannot be created", GetLastError());
    return make_file(out, handle, path, err);
}

/* FILE_APPEND_DATA alone makes the system find the end at each write. */
tern_status tn_file_open_append(struct tn_file **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    HANDLE handle = open_handle(path, FILE_APPEND_DATA | SYNCHRONIZE,
                                FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, OPEN_ALWAYS,
                                FILE_ATTRIBUTE_NORMAL);
    if (handle == INVALID_HANDLE_VALUE)
        return tn_os_fail(err, TERN_OUTPUT, path, "cannot be opened for writing", GetLastError());
    return make_file(out, handle, path, err);
}

/* Here others can neither remove nor recreate a file that is open for writing. */
tern_status tn_file_create_part(struct tn_file **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    tn_file_remove(path);
    HANDLE handle = open_handle(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, CREATE_ALWAYS,
                                FILE_ATTRIBUTE_NORMAL);
    if (handle == INVALID_HANDLE_VALUE) {
        const DWORD code = GetLastError();
        return tn_os_fail_part(err, path, code, code == ERROR_PATH_NOT_FOUND);
    }
    tern_status status = make_file(out, handle, path, err);
    if (status == TERN_MEMORY)
        tn_file_remove(path); /* created, but no memory for its record */
    return status;
}

/* Files inherit the rights of their folder, and in a user's folders only that user has rights. */
tern_status tn_file_create_private_part(struct tn_file **out, const char *path,
                                        struct tern_error *err)
{
    return tn_file_create_part(out, path, err);
}

tern_status tn_file_finish_part(struct tn_file *file, const char *to, struct tern_error *err)
{
    char *from = tn_copy_text(file->path);
    if (!from) {
        tern_status status = tn_fail(err, TERN_MEMORY, "%s: no memory to rename it", file->path);
        tn_file_abort_part(file);
        return status;
    }
    tn_file_close(file); /* an open file cannot be renamed */
    tern_status status = tn_file_replace(from, to, err);
    if (status)
        tn_file_remove(from);
    tn_free(from);
    return status;
}

void tn_file_abort_part(struct tn_file *file)
{
    if (!file)
        return;
    CloseHandle(file->handle); /* first, because an open file cannot be removed */
    tn_file_remove(file->path);
    tn_free(file);
}

uint64_t tn_file_size(const struct tn_file *file)
{
    LARGE_INTEGER size;
    return GetFileSizeEx(file->handle, &size) ? (uint64_t)size.QuadPart : 0;
}

uint64_t tn_file_modified_ns(const struct tn_file *file)
{
    FILETIME at;
    return GetFileTime(file->handle, NULL, NULL, &at) ? tn_win32_ns(&at) : 0;
}

void tn_file_close(struct tn_file *file)
{
    if (!file)
        return;
    CloseHandle(file->handle);
    tn_free(file);
}

/* ---- read and write ---- */

static OVERLAPPED at_offset(uint64_t offset)
{
    return (OVERLAPPED){.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
}

tern_status tn_file_read_at(struct tn_file *file, uint64_t offset, void *dst, size_t n_bytes,
                            struct tern_error *err)
{
    for (size_t done = 0; done < n_bytes;) {
        OVERLAPPED at = at_offset(offset + done);
        DWORD n = 0;
        BOOL ok = ReadFile(file->handle, (char *)dst + done,
                           (DWORD)TN_MIN(n_bytes - done, MAX_TRANSFER), &n, &at);
        if (!ok && GetLastError() != ERROR_HANDLE_EOF)
            return tn_os_fail(err, TERN_INPUT, file->path, "read failed", GetLastError());
        if (n == 0)
            return tn_fail(err, TERN_INPUT, "%s: ends at byte %llu, %zu bytes at %llu are needed",
                           file->path, (unsigned long long)(offset + done), n_bytes,
                           (unsigned long long)offset);
        done += n;
    }
    return TERN_OK;
}

#define AT_END UINT64_MAX /* not a valid offset: appends */

static tern_status write_all(struct tn_file *file, uint64_t offset, const void *src, size_t n_bytes,
                             struct tern_error *err)
{
    for (size_t done = 0; done < n_bytes;) {
        OVERLAPPED at = at_offset(offset + done);
        DWORD n = 0;
        BOOL ok = WriteFile(file->handle, (const char *)src + done,
                            (DWORD)TN_MIN(n_bytes - done, MAX_TRANSFER), &n,
                            offset == AT_END ? NULL : &at);
        if (!ok || n == 0)
            return tn_os_fail(err, TERN_OUTPUT, file->path, "write failed",
                              ok ? ERROR_WRITE_FAULT : GetLastError());
        done += n;
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
    (void)file, (void)offset, (void)n_bytes; /* Windows decides by itself */
}

tern_status tn_file_sync(struct tn_file *file, struct tern_error *err)
{
    if (!FlushFileBuffers(file->handle) && GetFileType(file->handle) == FILE_TYPE_DISK)
        return tn_os_fail(err, TERN_OUTPUT, file->path, "cannot be written to disk",
                          GetLastError());
    return TERN_OK;
}

/* On Windows a model that another program has mapped cannot be replaced, and the system only
 * reports that access is denied. */
static tern_status fail_replace(const char *to, DWORD code, struct tern_error *err)
{
    bool is_kept = code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION ||
                   code == ERROR_USER_MAPPED_FILE;
    return tn_os_fail(err, TERN_OUTPUT, to,
                      is_kept ? "cannot be replaced (in use or read-only?)"
                              : "cannot be replaced",
                      code);
}

tern_status tn_file_replace(const char *from, const char *to, struct tern_error *err)
{
    struct tn_win32_path wide_from, wide_to;
    tern_status status = TERN_OK;
    tn_win32_path_init(&wide_from, from);
    tn_win32_path_init(&wide_to, to);
    /* WRITE_THROUGH: on disk when the call returns; NTFS journals the folder. */
    if (!wide_from.text || !wide_to.text ||
        !MoveFileExW(wide_from.text, wide_to.text,
                     MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        status = fail_replace(to, GetLastError(), err);
    tn_win32_path_fini(&wide_from);
    tn_win32_path_fini(&wide_to);
    return status;
}

void tn_file_remove(const char *path)
{
    struct tn_win32_path wide;
    tn_win32_path_init(&wide, path);
    if (wide.text)
        (void)DeleteFileW(wide.text);
    tn_win32_path_fini(&wide);
}

/* ---- about paths ---- */

/* \\.\NUL and \\.\pipe\x; they need not have attributes.  \\.\C:\x is an ordinary path. */
static bool is_device(const wchar_t *wide)
{
    return wcsncmp(wide, L"\\\\.\\", 4) == 0 && !(wide[4] && wcsncmp(wide + 5, L":\\", 2) == 0);
}

enum tn_path_kind tn_path_kind(const char *path)
{
    struct tn_win32_path wide;
    tn_win32_path_init(&wide, path);
    DWORD attributes = wide.text ? GetFileAttributesW(wide.text) : INVALID_FILE_ATTRIBUTES;
    bool other = wide.text && is_device(wide.text);
    tn_win32_path_fini(&wide);
    if (other)
        return TN_PATH_OTHER;
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return TN_PATH_ABSENT;
    if (attributes & FILE_ATTRIBUTE_DEVICE)
        return TN_PATH_OTHER;
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? TN_PATH_DIR : TN_PATH_FILE;
}

/* A handle for queries only; also for directories. */
static HANDLE open_for_query(const char *path)
{
    return open_handle(path, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                       OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
}

static bool file_identity(const char *path, BY_HANDLE_FILE_INFORMATION *out)
{
    HANDLE handle = open_for_query(path);
    if (handle == INVALID_HANDLE_VALUE)
        return false;
    bool ok = GetFileInformationByHandle(handle, out);
    CloseHandle(handle);
    return ok;
}

bool tn_path_same(const char *a, const char *b)
{
    BY_HANDLE_FILE_INFORMATION ia, ib;
    return file_identity(a, &ia) && file_identity(b, &ib) &&
           ia.dwVolumeSerialNumber == ib.dwVolumeSerialNumber &&
           ia.nFileIndexHigh == ib.nFileIndexHigh && ia.nFileIndexLow == ib.nFileIndexLow;
}

bool tn_os_is_link(const char *path)
{
    struct tn_win32_path wide;
    tn_win32_path_init(&wide, path);
    DWORD attributes = wide.text ? GetFileAttributesW(wide.text) : INVALID_FILE_ATTRIBUTES;
    tn_win32_path_fini(&wide);
    return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_REPARSE_POINT;
}

char *tn_path_resolve(const char *path)
{
    HANDLE handle = open_for_query(path);
    if (handle == INVALID_HANDLE_VALUE)
        return NULL;
    DWORD n = GetFinalPathNameByHandleW(handle, NULL, 0, FILE_NAME_NORMALIZED);
    wchar_t *wide = n > 0 ? tn_alloc((n + 1) * sizeof *wide) : NULL;
    DWORD n_wide =
        wide ? GetFinalPathNameByHandleW(handle, wide, n + 1, FILE_NAME_NORMALIZED) : 0;
    char *result = n_wide > 0 && n_wide <= n ? utf8_without_prefix(wide) : NULL;
    tn_free(wide);
    CloseHandle(handle);
    return result;
}

bool tn_path_is_replaceable(const char *path)
{
    const enum tn_path_kind kind = tn_path_kind(path); /* no path names a stream or an open file */
    return kind == TN_PATH_FILE || kind == TN_PATH_ABSENT;
}

/* Removes the last component. */
static void cut_to_dir(wchar_t *path)
{
    wchar_t *last = wcsrchr(path, L'\\');
    if (last)
        last[1] = L'\0'; /* "C:\" keeps its meaning */
}

char *tn_path_of_executable_dir(void)
{
    DWORD capacity = 32768; /* the maximum path of NTFS */
    wchar_t *wide = tn_alloc(capacity * sizeof *wide);
    char *result = NULL;
    DWORD n = wide ? GetModuleFileNameW(NULL, wide, capacity) : 0;
    if (n > 0 && n < capacity) {
        cut_to_dir(wide);
        result = utf8_without_prefix(wide);
    }
    tn_free(wide);
    return result;
}

uint64_t tn_disk_free_bytes(const char *path)
{
    ULARGE_INTEGER n_free;
    struct tn_win32_path wide;
    tn_win32_path_init(&wide, path);
    if (wide.text)
        cut_to_dir(wide.text);
    bool known = wide.text && GetDiskFreeSpaceExW(wide.text, &n_free, NULL, NULL);
    tn_win32_path_fini(&wide);
    return known ? n_free.QuadPart : UINT64_MAX;
}

/* ---- sequential input ---- */

tern_status tn_os_stream_open(tn_os_stream *out, const char *path, struct tern_error *err)
{
    HANDLE handle = NULL;
    tern_status status = open_read(&handle, path, FILE_FLAG_SEQUENTIAL_SCAN, err);
    if (!status)
        *out = (tn_os_stream)handle;
    return status;
}

void tn_os_stream_close(tn_os_stream stream)
{
    CloseHandle((HANDLE)stream);
}

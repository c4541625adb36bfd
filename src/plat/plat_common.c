/* SPDX-License-Identifier: MIT
 *
 * The functions of plat.h that are the same on every system, built on those of each system: reading
 * whole streams, lines, binding a thread to one CPU, creating folders.  plat_shared.c has the code
 * that the systems' files share.
 */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "plat/plat.h"
#include "plat/plat_os.h"

/* ---- standard input is buffered here, for lines ---- */

static struct {
    char bytes[4096];
    size_t n;
    size_t next; /* offset of the first byte not yet returned */
} stdin_buffer;

/* Ensures at least one byte in the buffer, none at the end of input. */
static enum tn_os_read fill_stdin(struct tern_error *err)
{
    if (stdin_buffer.next < stdin_buffer.n)
        return TN_OS_READ_OK;
    stdin_buffer.next = stdin_buffer.n = 0;
    return tn_os_stream_read(tn_os_stream_stdin(), "standard input", stdin_buffer.bytes,
                             sizeof stdin_buffer.bytes, &stdin_buffer.n, err);
}

bool tn_read_line(void (*append)(void *arg, const char *bytes, size_t n), void *arg,
                  bool *interrupted, struct tern_error *err)
{
    bool any = false;
    bool held_return = false; /* a \r that is dropped if \n follows */
    *interrupted = false;
    tn_ok(err);
    for (;;) {
        enum tn_os_read result = fill_stdin(err);
        if (result == TN_OS_READ_INTERRUPTED) {
            *interrupted = true;
            return true;
        }
        if (result == TN_OS_READ_FAILED)
            return false;
        size_t n = stdin_buffer.n - stdin_buffer.next;
        if (n == 0) {
            if (held_return)
                append(arg, "\r", 1);
            return any;
        }
        any = true;
        const char *start = stdin_buffer.bytes + stdin_buffer.next;
        if (held_return && start[0] != '\n')
            append(arg, "\r", 1);
        const char *end = memchr(start, '\n', n);
        size_t n_line = end ? (size_t)(end - start) : n;
        held_return = n_line > 0 && start[n_line - 1] == '\r';
        append(arg, start, n_line - held_return);
        stdin_buffer.next += n_line + (end != NULL);
        if (end)
            return true;
    }
}

bool tn_has_line(void)
{
    const size_t n = stdin_buffer.n - stdin_buffer.next;
    return n > 0 && memchr(stdin_buffer.bytes + stdin_buffer.next, '\n', n) != NULL;
}

/* The status of a read, with a message. */
static tern_status judge_read(enum tn_os_read result, const char *name, struct tern_error *err)
{
    if (result == TN_OS_READ_INTERRUPTED)
        return tn_fail(err, TERN_INTERRUPTED, "%s: interrupted while reading", name);
    if (result == TN_OS_READ_FAILED) /* the message is written */
        return err ? err->status : TERN_INPUT;
    return TERN_OK;
}

static tern_status append_limited(struct tn_buf *buf, const char *bytes, size_t n,
                                  const char *name, size_t max_bytes, struct tern_error *err)
{
    if (n > max_bytes - buf->n_bytes)
        return tn_fail(err, TERN_INPUT, "%s: more than %zu bytes, the limit here", name, max_bytes);
    if (!tn_buf_append(buf, bytes, n))
        return tn_fail(err, TERN_MEMORY, "%s: no memory to read it (%zu bytes so far)", name,
                       buf->n_bytes);
    return TERN_OK;
}

/* Passes the buffer's memory to the caller, NUL-terminated, or frees it. */
static tern_status finish_read(tern_status status, struct tn_buf *buf, char **data,
                               size_t *n_bytes, const char *name, struct tern_error *err)
{
    if (!status && !tn_buf_append(buf, "", 1))
        status = tn_fail(err, TERN_MEMORY, "%s: no memory to read it (%zu bytes)", name,
                         buf->n_bytes);
    if (status) {
        tn_buf_fini(buf);
        return status;
    }
    *data = buf->data;
    *n_bytes = buf->n_bytes - 1;
    return TERN_OK;
}

tern_status tn_file_read_all(char **data, size_t *n_bytes, const char *path, size_t max_bytes,
                             struct tern_error *err)
{
    *data = NULL;
    *n_bytes = 0;
    tn_os_stream stream;
    tern_status status = tn_os_stream_open(&stream, path, err);
    if (status)
        return status;
    struct tn_buf buf = {0};
    size_t n;
    do {
        char part[16384];
        n = 0;
        status = judge_read(tn_os_stream_read(stream, path, part, sizeof part, &n, err), path, err);
        if (!status)
            status = append_limited(&buf, part, n, path, max_bytes, err);
    } while (!status && n > 0);
    tn_os_stream_close(stream);
    return finish_read(status, &buf, data, n_bytes, path, err);
}

tern_status tn_file_read_regular(char **data, size_t *n_bytes, const char *path, size_t max_bytes,
                                 struct tern_error *err)
{
    struct tn_file *file;
    struct tn_buf buf = {0};
    *data = NULL;
    *n_bytes = 0;
    tern_status status = tn_file_open_read(&file, path, err);
    if (status)
        return status;
    const uint64_t n = tn_file_size(file);
    if (n > max_bytes)
        status = tn_fail(err, TERN_INPUT, "%s: more than %zu bytes, the limit here", path,
                         max_bytes);
    else if (!tn_buf_reserve(&buf, (size_t)n + 1))
        status = tn_fail(err, TERN_MEMORY, "%s: no memory to read it (%zu bytes)", path, (size_t)n);
    else
        status = tn_file_read_at(file, 0, buf.data, (size_t)n, err);
    buf.n_bytes = status ? 0 : (size_t)n;
    tn_file_close(file);
    return finish_read(status, &buf, data, n_bytes, path, err);
}

tern_status tn_stdin_read_all(char **data, size_t *n_bytes, size_t max_bytes,
                              struct tern_error *err)
{
    static const char name[] = "standard input";
    *data = NULL;
    *n_bytes = 0;
    struct tn_buf buf = {0};
    tern_status status;
    size_t n;
    do {
        status = judge_read(fill_stdin(err), name, err);
        n = stdin_buffer.n - stdin_buffer.next;
        if (!status)
            status = append_limited(&buf, stdin_buffer.bytes + stdin_buffer.next, n, name,
                                    max_bytes, err);
        stdin_buffer.next = stdin_buffer.n;
    } while (!status && n > 0);
    return finish_read(status, &buf, data, n_bytes, name, err);
}

/* ---- whole files ---- */

static tern_status create_part_of(struct tn_file **out, const char *to, struct tern_error *err)
{
    char *part = tn_path_part(to);
    *out = NULL;
    tern_status status = part ? tn_file_create_private_part(out, part, err)
                              : tn_fail(err, TERN_MEMORY, "no memory for a path");
    tn_free(part);
    return status;
}

static tern_status write_part(const char *to, const void *data, size_t n_bytes,
                              struct tern_error *err)
{
    struct tn_file *file;
    tern_status status = create_part_of(&file, to, err);
    if (status)
        return status;
    status = tn_file_write_at(file, 0, data, n_bytes, err);
    if (!status)
        status = tn_file_sync(file, err);
    if (!status)
        return tn_file_finish_part(file, to, err);
    tn_file_abort_part(file);
    return status;
}

/* The final name of a private file at `path`; free with tn_free. */
static tern_status find_target(char **out, const char *path, struct tern_error *err)
{
    const enum tn_path_kind kind = tn_path_kind(path);
    *out = NULL;
    if (kind == TN_PATH_DIR || kind == TN_PATH_OTHER || kind == TN_PATH_BROKEN)
        return tn_fail(err, TERN_OUTPUT, "%s: is %s, give the name of a file", path,
                       kind == TN_PATH_DIR     ? "a directory"
                       : kind == TN_PATH_OTHER ? "no regular file"
                                               : "a broken symbolic link");
    *out = tn_path_target(path);
    return *out ? TERN_OK : tn_fail(err, TERN_MEMORY, "no memory for a path");
}

tern_status tn_file_write_private(const char *path, const void *data, size_t n_bytes,
                                  struct tern_error *err)
{
    char *target;
    tern_status status = find_target(&target, path, err);
    if (status == TERN_OK)
        status = write_part(target, data, n_bytes, err);
    tn_free(target);
    return status ? status : tn_ok(err);
}

tern_status tn_file_try_private(const char *path, struct tern_error *err)
{
    char *target;
    struct tn_file *part = NULL;
    tern_status status = find_target(&target, path, err);
    if (status == TERN_OK)
        status = create_part_of(&part, target, err);
    tn_file_abort_part(part);
    tn_free(target);
    return status ? status : tn_ok(err);
}

/* ---- paths ---- */

char *tn_path_target(const char *path)
{
    char *real = tn_os_is_link(path) ? tn_path_resolve(path) : NULL;
    return real ? real : tn_copy_text(path);
}

char *tn_path_typed(const char *path)
{
    const bool is_at_home = path[0] == '~' && (!path[1] || strchr(TN_OS_SEPARATORS, path[1]));
    char *home = is_at_home ? tn_path_of_home_dir() : NULL;
    if (!home)
        return tn_copy_text(path);
    char *typed = path[1] ? tn_path_join(home, path + 2) : home;
    if (typed != home)
        tn_free(home);
    return typed;
}

/* ---- threads ---- */

bool tn_thread_bind(uint32_t os_cpu)
{
    struct tn_affinity one = {{0}};
    if (os_cpu >= TN_AFFINITY_WORDS * 64)
        return false;
    one.words[os_cpu / 64] = (uint64_t)1 << os_cpu % 64;
    return tn_thread_set_affinity(&one);
}

/* ---- folders ---- */

tern_status tn_dir_make(const char *path, struct tern_error *err)
{
    const size_t n = strlen(path);
    char *part = tn_copy_text(path);
    if (!part)
        return tn_fail(err, TERN_MEMORY, "no memory for a path");
    /* Creating parent folders may fail (a drive, no rights) although they exist: the last call
     * decides.  If it fails, the first one after the last success is the reason. */
    unsigned long code = 0;
    size_t n_failed = 0;
    for (size_t i = 1; i <= n; i++)
        if (i == n || strchr(TN_OS_SEPARATORS, part[i])) {
            const char separator = part[i];
            part[i] = '\0';
            const unsigned long now = tn_os_make_dir(part);
            part[i] = separator;
            n_failed = code == 0 ? i : n_failed;
            code = now == 0 || code == 0 ? now : code;
        }
    part[n_failed] = '\0';
    tern_status status = code == 0 ? tn_ok(err)
                                   : tn_os_fail(err, TERN_OUTPUT, part,
                                                "the folder cannot be made", code);
    tn_free(part);
    return status;
}

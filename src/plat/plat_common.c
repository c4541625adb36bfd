/* SPDX-License-Identifier: MIT
 *
 * The parts of plat.h that are the same on every system: reading whole
 * streams, lines, joining paths, the list of mapped regions, what interrupts,
 * binding a thread to one CPU.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "plat/plat.h"
#include "plat/plat_os.h"

#if defined(_WIN32)
#define SEPARATORS "\\/" /* the first is the system's own */
#else
#define SEPARATORS "/"
#endif

/* ---- standard input is buffered here, for lines ---- */

static struct {
    char bytes[4096];
    size_t n;
    size_t next; /* bytes before it were taken */
} stdin_buffer;

/* At least one byte in the buffer, or none at the end of input. */
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
    err->status = TERN_OK;
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

/* Hands the buffer's memory to the caller, NUL-terminated, or frees it. */
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
        enum tn_os_read result = tn_os_stream_read(stream, path, part, sizeof part, &n, err);
        if (result == TN_OS_READ_INTERRUPTED)
            status = tn_fail(err, TERN_INTERRUPTED, "%s: interrupted while reading", path);
        else if (result == TN_OS_READ_FAILED)
            status = err ? err->status : TERN_INPUT;
        else
            status = append_limited(&buf, part, n, path, max_bytes, err);
    } while (!status && n > 0);
    tn_os_stream_close(stream);
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
        enum tn_os_read result = fill_stdin(err);
        n = stdin_buffer.n - stdin_buffer.next;
        if (result == TN_OS_READ_INTERRUPTED)
            status = tn_fail(err, TERN_INTERRUPTED, "%s: interrupted while reading", name);
        else if (result == TN_OS_READ_FAILED)
            status = err ? err->status : TERN_INPUT;
        else
            status = append_limited(&buf, stdin_buffer.bytes + stdin_buffer.next, n, name,
                                    max_bytes, err);
        stdin_buffer.next = stdin_buffer.n;
    } while (!status && n > 0);
    return finish_read(status, &buf, data, n_bytes, name, err);
}

/* ---- paths and texts ---- */

char *tn_os_copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = tn_alloc(n);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

char *tn_path_join(const char *dir, const char *name)
{
    size_t n_dir = strlen(dir);
    size_t n_name = strlen(name);
    bool needs_separator = n_dir > 0 && !strchr(SEPARATORS, dir[n_dir - 1]);
    char *path = tn_alloc(n_dir + needs_separator + n_name + 1);
    if (!path)
        return NULL;
    memcpy(path, dir, n_dir);
    if (needs_separator)
        path[n_dir++] = SEPARATORS[0];
    memcpy(path + n_dir, name, n_name + 1);
    return path;
}

/* ---- mapped regions ---- */

#define N_REGIONS 64

/* An entry is free while begin is 0; end is written before begin, and cleared after it. */
static struct {
    _Atomic uintptr_t begin;
    _Atomic uintptr_t end;
} regions[N_REGIONS];
static _Atomic uint32_t n_unlisted_regions;

void tn_os_regions_add(const void *data, size_t n_bytes)
{
    for (size_t i = 0; i < N_REGIONS; i++) {
        uintptr_t is_free = 0;
        /* 1 is no address of a mapping: it claims the entry until its end is known. */
        if (!atomic_compare_exchange_strong(&regions[i].begin, &is_free, 1))
            continue;
        atomic_store(&regions[i].end, (uintptr_t)data + n_bytes);
        atomic_store(&regions[i].begin, (uintptr_t)data);
        return;
    }
    atomic_fetch_add(&n_unlisted_regions, 1);
}

void tn_os_regions_remove(const void *data)
{
    for (size_t i = 0; i < N_REGIONS; i++) {
        if (atomic_load(&regions[i].begin) != (uintptr_t)data)
            continue;
        atomic_store(&regions[i].end, 0);
        atomic_store(&regions[i].begin, 0);
        return;
    }
    atomic_fetch_sub(&n_unlisted_regions, 1);
}

bool tn_os_regions_hold(const void *address)
{
    if (atomic_load(&n_unlisted_regions) > 0)
        return true;
    uintptr_t a = (uintptr_t)address;
    for (size_t i = 0; i < N_REGIONS; i++)
        if (a >= atomic_load(&regions[i].begin) && a < atomic_load(&regions[i].end))
            return true;
    return false;
}

/* ---- Ctrl-C and termination ---- */

#define END_WITHIN_NS 2000000000u

static _Atomic uint32_t n_interrupts; /* since the last clear */
static _Atomic bool is_interrupt_unread;
static _Atomic uint64_t interrupt_ns; /* when the last one came */
static _Atomic int terminate_signal;

bool tn_os_note_interrupt(void)
{
    uint64_t now = tn_now_ns();
    bool unread = atomic_exchange(&is_interrupt_unread, true);
    if (unread && now - atomic_load(&interrupt_ns) < END_WITHIN_NS)
        return true;
    atomic_store(&interrupt_ns, now);
    atomic_fetch_add(&n_interrupts, 1);
    return false;
}

void tn_os_note_termination(int signal_number)
{
    atomic_store(&terminate_signal, signal_number);
}

bool tn_os_is_interrupted(void)
{
    return tn_interrupt_count() > 0 || tn_terminate_requested();
}

uint32_t tn_interrupt_count(void)
{
    uint32_t n = atomic_load(&n_interrupts);
    if (n > 0)
        atomic_store(&is_interrupt_unread, false);
    return n;
}

void tn_interrupt_clear(void)
{
    atomic_store(&n_interrupts, 0);
    atomic_store(&is_interrupt_unread, false);
}

int tn_terminate_requested(void)
{
    return atomic_load(&terminate_signal);
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

/* SPDX-License-Identifier: MIT
 *
 * The message history in memory and on disk.
 *
 * Saving reads the file again, appends the unsaved entries and replaces the file, so that entries
 * of other processes survive.
 */
#include "repl/history.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "plat/plat.h"
#include "repl/grapheme.h"

#define MAX_FILE_BYTES ((size_t)64 << 20)

/* ---- in memory ---- */

void tn_history_fini(struct tn_history *h)
{
    for (size_t i = 0; i < h->n_entries; i++)
        tn_free(h->entries[i].text);
    tn_free(h->entries);
    *h = (struct tn_history){0};
}

static bool is_newest(const struct tn_history *h, const char *text, size_t n)
{
    if (h->n_entries == 0)
        return false;
    const struct tn_history_entry *last = &h->entries[h->n_entries - 1];
    return last->n_bytes == n && memcmp(last->text, text, n) == 0;
}

bool tn_history_add(struct tn_history *h, const char *text, size_t n)
{
    if (n == 0 || is_newest(h, text, n))
        return true;
    if (!h->entries)
        h->entries = tn_alloc_zeroed(TN_HISTORY_ENTRIES, sizeof *h->entries);
    char *copy = h->entries ? tn_alloc(n) : NULL;
    if (!copy)
        return false;
    memcpy(copy, text, n);
    if (h->n_entries == TN_HISTORY_ENTRIES) {
        tn_free(h->entries[0].text);
        h->n_entries--;
        memmove(h->entries, h->entries + 1, h->n_entries * sizeof *h->entries);
    }
    h->entries[h->n_entries++] = (struct tn_history_entry){copy, n};
    h->n_unsaved = TN_MIN(h->n_unsaved + 1, h->n_entries);
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* A query without capitals ignores case; ASCII only. */
static bool is_equal(const char *text, const char *query, size_t n, bool ignores_case)
{
    if (!ignores_case)
        return memcmp(text, query, n) == 0;
    for (size_t i = 0; i < n; i++)
        if (lower(text[i]) != query[i])
            return false;
    return true;
}

static const char *find_bytes(const char *text, size_t n_text, const char *query, size_t n)
{
    bool ignores_case = true;
    for (size_t i = 0; i < n; i++)
        ignores_case = ignores_case && lower(query[i]) == query[i];
    for (size_t at = 0; at + n <= n_text; at++)
        if (n == 0 || is_equal(text + at, query, n, ignores_case))
            return text + at;
    return NULL;
}

size_t tn_history_find(const struct tn_history *h, size_t from, bool is_newer, const char *bytes,
                       size_t n, size_t *at)
{
    size_t i = TN_MIN(from, h->n_entries);
    while (is_newer ? i + 1 < h->n_entries : i > 0) {
        i = is_newer ? i + 1 : i - 1;
        const struct tn_history_entry *entry = &h->entries[i];
        const char *found = find_bytes(entry->text, entry->n_bytes, bytes, n);
        if (found) {
            *at = (size_t)(found - entry->text);
            return i;
        }
    }
    return h->n_entries;
}

/* ---- in the file ---- */

static bool add_escaped(struct tn_buf *out, const struct tn_history_entry *entry)
{
    for (size_t i = 0; i < entry->n_bytes; i++) {
        const char c = entry->text[i];
        if (c == '\\' || c == '\n')
            tn_buf_append(out, c == '\n' ? "\\n" : "\\\\", 2);
        else
            tn_buf_append(out, &c, 1);
    }
    return tn_buf_append(out, "\n", 1) && !out->failed;
}

/* The bytes that add_escaped appends. */
static size_t escaped_bytes(const struct tn_history_entry *entry)
{
    size_t n = entry->n_bytes + 1;
    for (size_t i = 0; i < entry->n_bytes; i++)
        n += entry->text[i] == '\\' || entry->text[i] == '\n';
    return n;
}

/* The oldest entry with which the file is still short enough to be read again. */
static size_t first_to_keep(const struct tn_history *h)
{
    size_t i = h->n_entries, n_left = MAX_FILE_BYTES;
    while (i > 0 && escaped_bytes(&h->entries[i - 1]) <= n_left)
        n_left -= escaped_bytes(&h->entries[--i]);
    return i;
}

static bool add_line(struct tn_history *h, struct tn_buf *entry, const char *line, size_t n)
{
    struct tn_buf clean = {0};
    tn_buf_clear(entry);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const bool is_escape = line[i] == '\\' && i + 1 < n;
        i += is_escape;
        ok = tn_buf_append(entry, is_escape && line[i] == 'n' ? "\n" : line + i, 1);
    }
    /* The file may come from another program: clean it before it is shown. */
    ok = ok && tn_clean_append(&clean, entry->data, entry->n_bytes) &&
         tn_history_add(h, clean.data, clean.n_bytes);
    tn_buf_fini(&clean);
    return ok;
}

/* Refuses what no history contains, because saving would destroy it. */
static tern_status check(const char *data, size_t n, const char *path, struct tern_error *err)
{
    const char *nul = n ? memchr(data, '\0', n) : NULL;
    size_t n_lines = n > 0 && data[n - 1] != '\n';
    for (size_t i = 0; i < n; i++)
        n_lines += data[i] == '\n';
    if (nul)
        return tn_fail(err, TERN_INPUT, "%s: not a history of messages: byte %zu is 0", path,
                       (size_t)(nul - data));
    if (n_lines > TN_HISTORY_ENTRIES)
        return tn_fail(err, TERN_INPUT,
                       "%s: not a history of messages: it has %zu lines, at most %d are kept", path,
                       n_lines, TN_HISTORY_ENTRIES);
    return tn_ok(err);
}

static bool add_lines(struct tn_history *h, const char *data, size_t n)
{
    struct tn_buf entry = {0};
    bool ok = true;
    for (size_t at = 0; ok && at < n;) {
        const char *end = memchr(data + at, '\n', n - at);
        const size_t n_line = end ? (size_t)(end - data) - at : n - at;
        ok = add_line(h, &entry, data + at, n_line);
        at += n_line + 1;
    }
    tn_buf_fini(&entry);
    return ok;
}

static tern_status read_file(struct tn_history *h, const char *path, struct tern_error *err)
{
    char *data;
    size_t n;
    const enum tn_path_kind kind = tn_path_kind(path);
    if (kind == TN_PATH_ABSENT)
        return tn_ok(err);
    tern_status status = (kind == TN_PATH_FILE ? tn_file_read_regular : tn_file_read_all)(
        &data, &n, path, MAX_FILE_BYTES, err);
    if (status)
        return status;
    status = check(data, n, path, err);
    if (!status && !add_lines(h, data, n))
        status = tn_fail(err, TERN_MEMORY, "%s: no memory to read it", path);
    tn_free(data);
    return status;
}

tern_status tn_history_open(struct tn_history *h, const char *path, struct tern_error *err)
{
    tern_status status = read_file(h, path, err);
    const bool is_device = tn_path_kind(path) == TN_PATH_OTHER; /* /dev/null: nothing is kept */
    if (!status && !is_device)
        status = tn_file_try_private(path, err);
    if (status)
        return status;
    h->n_unsaved = 0;
    h->path = is_device ? NULL : path;
    return TERN_OK;
}

tern_status tn_history_save(struct tn_history *h, struct tern_error *err)
{
    if (!h->path || h->n_unsaved == 0)
        return tn_ok(err);
    struct tn_history all = {0};
    struct tn_buf bytes = {0};
    tern_status status = read_file(&all, h->path, err);
    bool ok = true;
    for (size_t i = h->n_entries - h->n_unsaved; ok && i < h->n_entries; i++)
        if (h->entries[i].n_bytes <= TN_HISTORY_MAX_SAVED)
            ok = tn_history_add(&all, h->entries[i].text, h->entries[i].n_bytes);
    for (size_t i = first_to_keep(&all); ok && i < all.n_entries; i++)
        ok = add_escaped(&bytes, &all.entries[i]);
    if (!status)
        status = ok ? tn_file_write_private(h->path, bytes.data, bytes.n_bytes, err)
                    : tn_fail(err, TERN_MEMORY, "%s: no memory to write it", h->path);
    if (!status)
        h->n_unsaved = 0;
    tn_buf_fini(&bytes);
    tn_history_fini(&all);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * The cache file of measured thread counts: text, newest first.
 *
 *   tern threads 1
 *   0123456789abcdef 6
 *
 * Anything unexpected in it is ignored; the next save replaces the file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "engine/thread_tuner.h"
#include "plat/plat.h"

enum { MAX_LINES = 64, MAX_BYTES = 4096 };
static const char head[] = "tern threads 1\n";

char *tn_thread_cache_path(void)
{
    const char *setting = getenv("TERN_CACHE");
    if (setting && strcmp(setting, "off") == 0)
        return NULL;
    char *dir = tn_path_of_cache_dir();
    char *path = dir ? tn_path_join(dir, "threads") : NULL;
    tn_free(dir);
    return path;
}

/* Parses "0123456789abcdef 6\n" at *text and advances it.  false: anything else. */
static bool parse_line(const char **text, uint64_t *key, uint32_t *n_threads)
{
    int n = 0;
    if (strspn(*text, "0123456789abcdef") != 16 ||
        sscanf(*text, "%16" SCNx64 " %3" SCNu32 "%n", key, n_threads, &n) != 2 ||
        (*text)[n] != '\n' || *n_threads == 0 || *n_threads > TERN_PLAN_MAX_THREADS)
        return false;
    *text += n + 1;
    return true;
}

/* A copy of the text after the first line; NULL: no such file. */
static char *read_lines(const char *path, const char **lines)
{
    char *text;
    size_t n;
    struct tern_error err;
    if (!path || tn_file_read_regular(&text, &n, path, MAX_BYTES, &err) != TERN_OK)
        return NULL;
    if (strncmp(text, head, sizeof head - 1) == 0) {
        *lines = text + sizeof head - 1;
        return text;
    }
    tn_free(text);
    return NULL;
}

uint32_t tn_thread_cache_load(const char *path, uint64_t key, uint32_t max_threads)
{
    const char *line;
    char *text = read_lines(path, &line);
    uint32_t n, found = 0;
    uint64_t k;
    while (text && !found && parse_line(&line, &k, &n))
        if (k == key && n <= max_threads)
            found = n;
    tn_free(text);
    return found;
}

static bool write_file(const char *path, const struct tn_buf *buf)
{
    struct tern_error err;
    struct tn_file *file;
    if (buf->failed || tn_file_create(&file, path, &err) != TERN_OK)
        return false;
    bool ok = tn_file_write_at(file, 0, buf->data, buf->n_bytes, &err) == TERN_OK;
    tn_file_close(file);
    return ok;
}

void tn_thread_cache_save(const char *path, uint64_t key, uint32_t n_threads)
{
    if (!path)
        return;
    struct tn_buf out = {0};
    tn_buf_printf(&out, "%s%016" PRIx64 " %u\n", head, key, n_threads);
    const char *line;
    char *text = read_lines(path, &line);
    uint64_t k;
    uint32_t n;
    for (int i = 1; text && i < MAX_LINES && parse_line(&line, &k, &n);)
        if (k != key) {
            tn_buf_printf(&out, "%016" PRIx64 " %u\n", k, n);
            i++;
        }
    tn_free(text);
    struct tern_error err;
    char *part = tn_path_part(path);
    if (part && (!write_file(part, &out) || tn_file_replace(part, path, &err) != TERN_OK))
        tn_file_remove(part);
    tn_free(part);
    tn_buf_fini(&out);
}

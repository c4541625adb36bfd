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

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses "0123456789abcdef 6\n" at *text and advances it.  false: anything else. */
static bool parse_line(const char **text, uint64_t *key, uint32_t *n_threads)
{
    const char *p = *text;
    uint64_t k = 0;
    uint32_t n = 0;
    for (int i = 0; i < 16; i++, p++) {
        int digit = hex_digit(*p);
        if (digit < 0)
            return false;
        k = k << 4 | (uint64_t)digit;
    }
    if (*p++ != ' ')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (uint32_t)(*p - '0');
        if (n > TERN_PLAN_MAX_THREADS)
            return false;
    }
    if (n == 0 || *p != '\n')
        return false;
    *text = p + 1;
    *key = k;
    *n_threads = n;
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
    struct tn_buf out = {0}, part = {0};
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
    tn_buf_printf(&part, "%s.part", path);
    struct tern_error err;
    const char *part_path = tn_buf_text(&part);
    if (!part.failed && (!write_file(part_path, &out) ||
                         tn_file_replace(part_path, path, &err) != TERN_OK))
        tn_file_remove(part_path);
    tn_buf_fini(&part);
    tn_buf_fini(&out);
}

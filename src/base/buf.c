/* SPDX-License-Identifier: MIT
 *
 * The growing buffer of buf.h. Capacity grows by half of itself, so that n appended bytes cost
 * O(n) copies.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

bool tn_buf_reserve(struct tn_buf *buf, size_t extra)
{
    if (extra <= buf->capacity - buf->n_bytes)
        return true;
    if (extra > SIZE_MAX / 2 - buf->n_bytes) {
        buf->failed = true;
        return false;
    }
    size_t capacity = TN_MAX(buf->n_bytes + extra, buf->capacity + buf->capacity / 2);
    capacity = TN_MAX(capacity, (size_t)64);
    char *data = tn_realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

bool tn_buf_append(struct tn_buf *buf, const void *bytes, size_t n)
{
    if (!tn_buf_reserve(buf, n))
        return false;
    if (n)
        memcpy(buf->data + buf->n_bytes, bytes, n);
    buf->n_bytes += n;
    return true;
}

bool tn_buf_append_text(struct tn_buf *buf, const char *text)
{
    return tn_buf_append(buf, text, strlen(text));
}

bool tn_buf_printf(struct tn_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool good = tn_buf_vprintf(buf, format, args);
    va_end(args);
    return good;
}

bool tn_buf_vprintf(struct tn_buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    bool good = n >= 0 && tn_buf_reserve(buf, (size_t)n + 1);
    if (good) {
        vsnprintf(buf->data + buf->n_bytes, (size_t)n + 1, format, again);
        buf->n_bytes += (size_t)n;
    }
    va_end(again);
    return good;
}

const char *tn_buf_text(struct tn_buf *buf)
{
    if (!tn_buf_reserve(buf, 1))
        return "";
    buf->data[buf->n_bytes] = '\0';
    return buf->data;
}

void tn_buf_clear(struct tn_buf *buf)
{
    buf->n_bytes = 0;
    buf->failed = false;
}

void tn_buf_fini(struct tn_buf *buf)
{
    tn_free(buf->data);
    *buf = (struct tn_buf){0};
}

/* SPDX-License-Identifier: MIT
 *
 * Error details: one line of valid UTF-8, whatever bytes were formatted into it.  error.h has the
 * contracts.
 */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* Removes an incomplete UTF-8 sequence from the end of a string that vsnprintf truncated. */
static void trim_partial_character(char *text, size_t n)
{
    size_t i = n;
    while (i > 0 && n - i < 4 && ((unsigned char)text[i - 1] & 0xC0) == 0x80)
        i--;
    if (i == 0)
        return;
    unsigned char lead = (unsigned char)text[i - 1];
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (n - (i - 1) < need)
        text[i - 1] = '\0';
}

/* Cuts the middle out of text[0..n), n >= n_dst: it is usually a long name, and the reason
 * follows. */
static void cut_middle(char *dst, size_t n_dst, const char *text, size_t n)
{
    static const char gap[] = "...";
    const size_t n_most = n_dst / 2;
    const char *tail = text + n - (n_dst - n_most - sizeof gap);
    memcpy(dst, text, n_most);
    dst[n_most] = '\0';
    trim_partial_character(dst, n_most);
    while (((unsigned char)*tail & 0xC0) == 0x80)
        tail++;
    char *end = dst + strlen(dst);
    memcpy(end, gap, sizeof gap - 1);
    memcpy(end + sizeof gap - 1, tail, strlen(tail) + 1);
}

tern_status tn_fail(struct tern_error *err, tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_vfail(err, status, format, args);
    va_end(args);
    return status;
}

void tn_fail_prefix(struct tern_error *err, const char *what)
{
    if (!err)
        return;
    const struct tern_error cause = *err;
    tn_fail(err, cause.status, "%s: %s", what, cause.detail);
}

tern_status tn_vfail(struct tern_error *err, tern_status status, const char *format, va_list args)
{
    if (!err)
        return status;
    err->status = status;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(err->detail, sizeof err->detail, format, args);
    if (n < 0) {
        err->detail[0] = '\0';
    } else if ((size_t)n >= sizeof err->detail) {
        char *whole = tn_alloc((size_t)n + 1);
        if (whole && vsnprintf(whole, (size_t)n + 1, format, again) == n)
            cut_middle(err->detail, sizeof err->detail, whole, (size_t)n);
        else
            trim_partial_character(err->detail, sizeof err->detail - 1);
        tn_free(whole);
    }
    va_end(again);
    tn_utf8_make_printable(err->detail);
    return status;
}

tern_status tn_ok(struct tern_error *err)
{
    if (err) {
        err->status = TERN_OK;
        err->detail[0] = '\0';
    }
    return TERN_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * Error details: one line of valid UTF-8, whatever the bytes that went into it.
 */
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Cuts an incomplete UTF-8 sequence off the end of a string that vsnprintf truncated. */
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

tern_status tn_fail(struct tern_error *err, tern_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn_vfail(err, status, format, args);
    va_end(args);
    return status;
}

tern_status tn_vfail(struct tern_error *err, tern_status status, const char *format, va_list args)
{
    if (!err)
        return status;
    err->status = status;
    int n = vsnprintf(err->detail, sizeof err->detail, format, args);
    if (n < 0)
        err->detail[0] = '\0';
    else if ((size_t)n >= sizeof err->detail)
        trim_partial_character(err->detail, sizeof err->detail - 1);
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

/* SPDX-License-Identifier: MIT
 *
 * Fills a struct tern_error, with which every layer reports a failure: a status and one line of
 * text. Only src/app prints.  Every function accepts a NULL error.
 */
#ifndef TN_ERROR_H
#define TN_ERROR_H

#include <math.h>
#include <stdarg.h>

#include "base/compiler.h"
#include "tern/status.h"

/* Sets err->status and err->detail (printf rules; a text that is too long loses its middle, between
 * UTF-8 characters; bytes that are not UTF-8 and control characters, which may come from a hostile
 * file, become '?') and returns `status`, so that `return tn_fail(err, TERN_INPUT, "...")` works.
 * err may be NULL. */
tern_status tn_fail(struct tern_error *err, tern_status status, const char *format, ...)
    TN_PRINTF(3, 4);
tern_status tn_vfail(struct tern_error *err, tern_status status, const char *format, va_list args)
    TN_PRINTF(3, 0);

/* Prefixes the detail of a failure with "what: ".  err may be NULL. */
void tn_fail_prefix(struct tern_error *err, const char *what);

/* x for a message: C libraries print a NaN whose sign is set as "-nan" or "-nan(ind)". */
static inline double tn_shown_number(double x)
{
    return isnan(x) ? (double)NAN : x;
}

/* Sets err to TERN_OK, "" and returns TERN_OK. */
tern_status tn_ok(struct tern_error *err);

#endif

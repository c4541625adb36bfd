/* SPDX-License-Identifier: MIT
 *
 * Writes JSON strings into a buffer.  A lack of memory is recorded in out->failed, so callers check
 * once at the end.
 */
#ifndef TN_JSON_TEXT_H
#define TN_JSON_TEXT_H

#include "base/buf.h"

/* n bytes of UTF-8 in quotes; quotes, backslashes and control characters are escaped. */
void tn_json_put_string(struct tn_buf *out, const char *text, size_t n);

#endif

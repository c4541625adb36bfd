/* SPDX-License-Identifier: MIT
 *
 * Writing JSON into a buffer, without memory of its own: a shortage shows in out->failed.
 */
#ifndef TN_JSON_TEXT_H
#define TN_JSON_TEXT_H

#include <jansson.h>

#include "base/buf.h"

/* Any value, without blanks. False: no memory. */
bool tn_json_put_value(struct tn_buf *out, const json_t *value);
/* n bytes of UTF-8 between quotes: quotes, backslashes and control characters escaped. */
void tn_json_put_string(struct tn_buf *out, const char *text, size_t n);

#endif

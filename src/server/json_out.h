/* SPDX-License-Identifier: MIT
 *
 * Writing JSON into a buffer, piece by piece: answers are small and many.  A failed append is
 * noted in the buffer (base/buf.h), so a chain of calls needs one check at its end.
 */
#ifndef TN_JSON_OUT_H
#define TN_JSON_OUT_H

#include "base/buf.h"

/* A string with its quotes.  Bytes that are not UTF-8 become U+FFFD; control characters, and
 * U+2028 and U+2029, which end lines in JavaScript, are escaped. */
void tn_json_string(struct tn_buf *out, const char *text, size_t n);
void tn_json_text(struct tn_buf *out, const char *text); /* NUL-terminated */
/* [72,105]: bytes as numbers. */
void tn_json_bytes(struct tn_buf *out, const char *bytes, size_t n);
/* A number with 6 digits behind the point at most; what is not finite becomes `otherwise`. */
void tn_json_real(struct tn_buf *out, double x, double otherwise);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Writes JSON into a buffer piece by piece, without an intermediate tree.
 *
 * A failed append is recorded in the buffer (base/buf.h), so a chain of calls needs one check at
 * its end.
 */
#ifndef TN_JSON_OUT_H
#define TN_JSON_OUT_H

#include "base/buf.h"

/* A string in quotes; `text` may be NULL if n is 0.  Invalid UTF-8 becomes U+FFFD; control
 * characters, and U+2028 and U+2029, which JavaScript treats as line endings, are escaped. */
void tn_json_string(struct tn_buf *out, const char *text, size_t n);
#define TN_JSON_ESCAPED 6u /* its maximum bytes per byte of text */
/* The same for the bytes of a buffer from offset `from` on. */
void tn_json_tail(struct tn_buf *out, const struct tn_buf *text, size_t from);
/* The same for a NUL-terminated text; NULL is written as null. */
void tn_json_text(struct tn_buf *out, const char *text);
/* [72,105]: an array of byte values. */
void tn_json_bytes(struct tn_buf *out, const char *bytes, size_t n);
/* A number with at most 6 digits after the point; `otherwise` replaces values that are not finite.
 */
void tn_json_real(struct tn_buf *out, double x, double otherwise);

/* Appends an object with members of `json`, an object that this program wrote, in which each of the
 * n paths is found: "timings/prompt_n" becomes a member of that name.  Others are left out. */
void tn_json_pick(struct tn_buf *out, struct tn_buf *json, const char *const *paths,
                  size_t n);

#endif

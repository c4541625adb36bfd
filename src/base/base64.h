/* SPDX-License-Identifier: MIT
 *
 * Base64 as in RFC 4648, with '=' as padding.  For embeddings in the server's responses and for
 * terminals' clipboard sequences.
 */
#ifndef TN_BASE64_H
#define TN_BASE64_H

#include "base/buf.h"

/* Appends 4 characters for every 3 bytes, the last 3 padded. */
void tn_base64_append(struct tn_buf *out, const void *src, size_t n_bytes);

#endif

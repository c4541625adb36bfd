/* SPDX-License-Identifier: MIT
 *
 * Base64 as RFC 4648 writes it, with '=' at the end.
 */
#ifndef TN_BASE64_H
#define TN_BASE64_H

#include "base/buf.h"

/* Appends 4 characters for every 3 bytes that are begun. */
void tn_base64_append(struct tn_buf *out, const void *src, size_t n_bytes);

#endif

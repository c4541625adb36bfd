/* SPDX-License-Identifier: MIT
 *
 * A growing byte buffer.  Zero-initialise to create; tn_buf_fini frees.  A failed append leaves the
 * contents unchanged and sets `failed`, so that a chain of appends needs one check at its end.
 */
#ifndef TN_BUF_H
#define TN_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct tn_buf {
    char *data; /* n_bytes bytes, then spare capacity; NUL-terminated only by tn_buf_text */
    size_t n_bytes;
    size_t capacity;
    bool failed; /* an append ran out of memory */
};

bool tn_buf_reserve(struct tn_buf *buf, size_t extra);
bool tn_buf_append(struct tn_buf *buf, const void *bytes, size_t n);
bool tn_buf_append_text(struct tn_buf *buf, const char *text);
bool tn_buf_printf(struct tn_buf *buf, const char *format, ...) TN_PRINTF(2, 3);
bool tn_buf_vprintf(struct tn_buf *buf, const char *format, va_list args) TN_PRINTF(2, 0);
/* NUL-terminates and returns the bytes; "" after a failure. Valid until the next append. */
const char *tn_buf_text(struct tn_buf *buf);
/* The n_bytes bytes, without a NUL at the end; never NULL.  Valid until the next append. */
static inline const char *tn_buf_bytes(const struct tn_buf *buf)
{
    return buf->data ? buf->data : "";
}
void tn_buf_clear(struct tn_buf *buf);
void tn_buf_fini(struct tn_buf *buf);

#endif

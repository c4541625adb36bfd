/* SPDX-License-Identifier: MIT
 *
 * Base64 as in RFC 4648, encoding only: for embeddings in the server's responses and for terminals'
 * clipboard sequences.
 */
#include "base/base64.h"

#include <stdint.h>

void tn_base64_append(struct tn_buf *out, const void *src, size_t n_bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = src;
    (void)tn_buf_reserve(out, (n_bytes + 2) / 3 * 4);
    for (size_t i = 0; i < n_bytes; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 |
                         (i + 1 < n_bytes ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < n_bytes ? bytes[i + 2] : 0);
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                        i + 1 < n_bytes ? digits[three >> 6 & 63] : '=',
                        i + 2 < n_bytes ? digits[three & 63] : '='};
        tn_buf_append(out, four, sizeof four);
    }
}

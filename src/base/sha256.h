/* SPDX-License-Identifier: MIT
 *
 * SHA-256 (FIPS 180-4): the checksum that the hub publishes for files.  Portable C, about 300 MB/s;
 * the checksums inside .tern files are XXH3, which is ten times as fast.
 */
#ifndef TN_SHA256_H
#define TN_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define TN_SHA256_HEX_BYTES 65 /* 64 digits and NUL */

struct tn_sha256 {
    uint32_t state[8];
    uint64_t n_bytes; /* bytes of the message so far */
    unsigned char block[64];
};

void tn_sha256_init(struct tn_sha256 *sha);
void tn_sha256_update(struct tn_sha256 *sha, const void *bytes, size_t n);
/* The digest of the whole message in lower-case hex; `sha` must be initialised again before its
 * next use. */
void tn_sha256_finish(struct tn_sha256 *sha, char hex[TN_SHA256_HEX_BYTES]);

#endif

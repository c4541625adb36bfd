/* SPDX-License-Identifier: MIT
 *
 * The checksums of golden/trits.json, which the reference computed with zlib.
 *
 * Shared by test_trits.c and test_gguf_trits.c.
 */
#ifndef TRITS_CRC_H
#define TRITS_CRC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* As in zlib, one bit at a time. */
static inline uint32_t crc32_of(const int8_t *bytes, size_t n)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++) {
        crc ^= (uint8_t)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

/* Do the n trits of a tensor, row by row, have the CRC-32 of its entry in golden/trits.json? */
static inline bool trits_have_crc(const int8_t *trits, size_t n, const json_t *golden)
{
    char crc[16];
    snprintf(crc, sizeof crc, "%08x", crc32_of(trits, n));
    return strcmp(crc, json_string_value(json_object_get(golden, "crc32"))) == 0;
}

#endif

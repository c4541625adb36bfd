/* SPDX-License-Identifier: MIT
 *
 * Generated character tables; use them through unicode.h and nfc.c.
 *
 * Two-level tables: the block number of c / 256, then the values of that block.
 */
#ifndef TN_UNICODE_TABLES_H
#define TN_UNICODE_TABLES_H

#include <stdint.h>

/* The kind of code point c is in bits 4 * (c % 2) of byte c % 256 / 2.  Code points of a kind share
 * their class and flags (unicode.h). */
extern const uint8_t tn_unicode_block[0x110000 / 256];
extern const uint8_t tn_unicode_kinds[][128];
extern const uint16_t tn_unicode_properties[16];

/* Canonical combining class.  0: NFC neither changes the character nor joins it to the preceding
 * one; TN_STARTER_TOUCHED: a starter for which that is false. */
#define TN_STARTER_TOUCHED 255
extern const uint8_t tn_unicode_combining_block[0x110000 / 256];
extern const uint8_t tn_unicode_combining[][256];

/* whole = first + second; second 0: a singleton decomposition. */
struct tn_unicode_pair {
    uint32_t whole, first, second;
};
/* One step of canonical decomposition, sorted by `whole`; without Hangul. */
extern const uint32_t tn_unicode_n_decompositions;
extern const struct tn_unicode_pair tn_unicode_decompositions[];
/* The rows of tn_unicode_decompositions that NFC composes, sorted by (first, second). */
extern const uint32_t tn_unicode_n_compositions;
extern const uint16_t tn_unicode_compositions[];

#endif

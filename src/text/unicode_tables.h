/* SPDX-License-Identifier: MIT
 *
 * Generated character tables; use them through unicode.h and nfc.c.
 *
 * Two-level tables: the block number of c / 256, then the values of that block.
 */
#ifndef TN_UNICODE_TABLES_H
#define TN_UNICODE_TABLES_H

#include <stdint.h>

/* 2-bit classes: code point c is in bits 2 * (c % 4) of byte c % 256 / 4. */
extern const uint8_t tn_unicode_block[0x110000 / 256];
extern const uint8_t tn_unicode_class_bits[][64];

/* Flags: code point c is in byte c % 256. */
extern const uint8_t tn_unicode_flag_block[0x110000 / 256];
extern const uint8_t tn_unicode_flag_bits[][256];

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

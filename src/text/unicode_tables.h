/* SPDX-License-Identifier: MIT
 *
 * Generated tables about characters; use the functions of unicode.h and nfc.c.
 * Tables of small values: block number of c / 256, then the values of the block.
 */
#ifndef TN_UNICODE_TABLES_H
#define TN_UNICODE_TABLES_H

#include <stdint.h>

/* Classes of two bits: code point c in bits 2 * (c % 4) of byte c % 256 / 4. */
extern const uint8_t tn_unicode_block[0x110000 / 256];
extern const uint8_t tn_unicode_class_bits[][64];

/* Flags: code point c in byte c % 256. */
extern const uint8_t tn_unicode_flag_block[0x110000 / 256];
extern const uint8_t tn_unicode_flag_bits[][256];

/* Canonical combining class; 0: NFC leaves the character alone and joins nothing to its front;
 * TN_STARTER_TOUCHED: a starter of which that is not true. */
#define TN_STARTER_TOUCHED 255
extern const uint8_t tn_unicode_combining_block[0x110000 / 256];
extern const uint8_t tn_unicode_combining[][256];

/* whole = first + second; second 0: whole is another way to write first. */
struct tn_unicode_pair {
    uint32_t whole, first, second;
};
/* One step of canonical decomposition, ascending by `whole`; without Hangul. */
extern const uint32_t tn_unicode_n_decompositions;
extern const struct tn_unicode_pair tn_unicode_decompositions[];
/* The pairs that NFC joins, ascending by (first, second); without Hangul. */
extern const uint32_t tn_unicode_n_compositions;
extern const struct tn_unicode_pair tn_unicode_compositions[];

#endif

/* SPDX-License-Identifier: MIT
 *
 * Character classes as two-bit values; use tn_char_class of unicode.h.
 */
#ifndef TN_UNICODE_TABLES_H
#define TN_UNICODE_TABLES_H

#include <stdint.h>

extern const uint8_t tn_unicode_block[0x110000 / 256];
/* [block][64]: code point c in bits 2 * (c % 4) of byte c % 256 / 4. */
extern const uint8_t tn_unicode_class_bits[][64];

#endif

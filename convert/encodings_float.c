/* SPDX-License-Identifier: MIT
 *
 * Encodings that are not ternary: blocks, which kern/blocks.c packs and unpacks to floats, one at a
 * time, and MXFP4, which becomes Q5_0.
 */
#include <assert.h>
#include <string.h>

#include "convert/encodings.h"
#include "kern/blocks.h"

#define MOST_TILE_BYTES 4096u /* of one block of any type */
#define MXFP4_BYTES 17u
#define Q5_0_BYTES 22u /* f16 d, 32 fifth bits, 16 bytes of the lower four, as Q4_0 has them */

/* 2^n as f16. */
static uint16_t half_of_power(int n)
{
    if (n < -24 || n > 15)
        return 0x7C00;
    return (uint16_t)(n >= -14 ? (n + 15) << 10 : 1 << (n + 24));
}

void tn_recode_mxfp4(uint8_t *dst, const uint8_t *src, size_t n)
{
    /* 16 plus 0, 0.5, 1, 1.5, 2, 3, 4, 6, doubled, and their negatives */
    static const uint8_t codes[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                      16, 15, 14, 13, 12, 10, 8,  4};
    for (; n > 0; n--, src += MXFP4_BYTES, dst += Q5_0_BYTES) {
        uint32_t fifth = 0, used = 0;
        for (uint32_t j = 0; j < 16; j++) {
            const uint32_t low = codes[src[1 + j] & 15], high = codes[src[1 + j] >> 4];
            dst[6 + j] = (uint8_t)((low & 15) | (high & 15) << 4);
            fifth |= low >> 4 << j | high >> 4 << (16 + j);
            used |= src[1 + j] & 0x77u;
        }
        const uint16_t d = used ? half_of_power(src[0] - 128) : 0;
        memcpy(dst, &d, 2);
        memcpy(dst + 2, &fifth, 4);
    }
}

void tn_encoding_floats(const struct tn_encoding *e, float *dst, const uint8_t *src, size_t n)
{
    uint8_t tile[MOST_TILE_BYTES], block[TN_MOST_SOURCE_BYTES];
    const struct tn_blocks w = {tile, 1, e->unit, e->layout};
    assert(tn_blocks_bytes(e->layout, 1, e->unit) <= sizeof tile);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *unit = src + i * e->unit_bytes;
        if (e->recode)
            e->recode(block, unit, 1);
        tn_blocks_pack(tile, e->layout, e->recode ? block : unit, 1, e->unit);
        tn_blocks_unpack_row(dst + i * e->unit, &w, 0);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Encodings that are not ternary: blocks, which kern/blocks.c packs and unpacks to floats, one at a
 * time.
 */
#include <assert.h>

#include "convert/encodings.h"
#include "kern/blocks.h"

#define MOST_TILE_BYTES 4096u /* of one block of any type */

void tn_encoding_floats(const struct tn_encoding *e, float *dst, const uint8_t *src, size_t n)
{
    uint8_t tile[MOST_TILE_BYTES];
    const struct tn_blocks w = {tile, 1, e->unit, e->layout};
    assert(tn_blocks_bytes(e->layout, 1, e->unit) <= sizeof tile);
    for (size_t i = 0; i < n; i++) {
        tn_blocks_pack(tile, e->layout, src + i * e->unit_bytes, 1, e->unit);
        tn_blocks_unpack_row(dst + i * e->unit, &w, 0);
    }
}

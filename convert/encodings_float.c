/* SPDX-License-Identifier: MIT
 *
 * Encodings that are not ternary: blocks, which kern/blocks.c packs and unpacks to floats, one at a
 * time.
 */
#include <assert.h>

#include "convert/encodings.h"
#include "kern/blocks.h"

#define MOST_TILE_BYTES 4096u /* of one block of any type */

static void decode(float *dst, const uint8_t *src, size_t n, uint32_t layout)
{
    uint8_t tile[MOST_TILE_BYTES];
    const uint32_t block = tn_block_shape(layout).block;
    const size_t n_bytes = tn_blocks_source_bytes(layout, block);
    const struct tn_blocks w = {tile, 1, block, layout};
    assert(tn_blocks_bytes(layout, 1, block) <= sizeof tile);
    for (size_t i = 0; i < n; i++) {
        tn_blocks_pack(tile, layout, src + i * n_bytes, 1, block);
        tn_blocks_unpack_row(dst + i * block, &w, 0);
    }
}

#define DECODE(name, id)                                                                           \
    void tn_decode_##name(float *dst, const uint8_t *src, size_t n)                                \
    {                                                                                              \
        decode(dst, src, n, TERN_LAYOUT_##id);                                                     \
    }
DECODE(q8_0, Q8_0)
DECODE(q4_0, Q4_0)
DECODE(q4_1, Q4_1)
DECODE(q5_0, Q5_0)
DECODE(q5_1, Q5_1)
DECODE(iq4_nl, IQ4_NL)
DECODE(iq4_xs, IQ4_XS)
DECODE(q2_k, Q2_K)
DECODE(q3_k, Q3_K)
DECODE(q4_k, Q4_K)
DECODE(q5_k, Q5_K)
DECODE(q6_k, Q6_K)

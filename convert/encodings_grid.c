/* SPDX-License-Identifier: MIT
 *
 * The IQ2 and IQ3 types, whose blocks of 256 weights hold indices of points in a grid and signs
 * (grids.h), as blocks of IQ2_S, IQ3_XXS and IQ3_S with a code for each weight (kern/blocks.h).
 * For every 32 weights, where a sign is a bit that is 1 for a negative weight:
 *
 *   IQ2_XXS   4 indices of 8 bits; 4 x 7 signs, 4 bits of scale
 *   IQ2_XS    4 times an index of 9 bits and 7 signs; 2 scales of 4 bits
 *   IQ2_S     4 indices of 8 bits; 4 x 8 signs; 4 x 2 upper bits of indices; 2 scales of 4 bits
 *   IQ3_XXS   8 indices of 8 bits; 4 x 7 signs, 4 bits of scale
 *   IQ3_S     8 indices of 8 bits; 8 ninth bits; 4 x 8 signs; 4 bits of scale
 *
 * Of 7 signs the eighth makes the number of negative weights even.
 */
#include <string.h>

#include "base/bits.h"
#include "convert/encodings.h"
#include "convert/grids.h"

#define CELLS 8u /* of 32 weights in a block */

static uint32_t eight_signs(uint32_t seven)
{
    uint32_t parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}

/* Codes of the weights of a point, whose magnitudes have `bits` bits.  Codes number the values in
 * ascending order: the `half` negative ones, then the positive ones. */
static void put_point(uint8_t *code, uint32_t n, uint32_t bits, uint32_t half, uint32_t point,
                      uint32_t signs)
{
    for (uint32_t i = 0; i < n; i++, point >>= bits, signs >>= 1) {
        const uint32_t magnitude = point & ((1u << bits) - 1);
        code[i] = (uint8_t)(signs & 1 ? half - 1 - magnitude : half + magnitude);
    }
}

static void put_iq2(uint8_t *code, uint32_t point, uint32_t signs)
{
    put_point(code, 8, 2, 3, point, signs);
}

static void put_iq3(uint8_t *code, uint32_t first, uint32_t second, uint32_t signs)
{
    put_point(code, 4, 3, 8, first, signs);
    put_point(code + 4, 4, 3, 8, second, signs >> 4);
}

/* ---- IQ2: d, 16 scales of 4 bits, codes ---- */

#define IQ2_BYTES 266u
#define IQ2_CODES 10u

void tn_recode_iq2_xxs(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, src += 66, dst += IQ2_BYTES) {
        uint8_t *code = dst + IQ2_CODES;
        memcpy(dst, src, 2);
        for (uint32_t j = 0; j < CELLS; j++) {
            const uint8_t *index = src + 2 + 8 * j;
            const uint32_t signs = tn_load_u32(index + 4);
            dst[2 + j] = (uint8_t)((signs >> 28) * 17); /* of both halves */
            for (uint32_t l = 0; l < 4; l++, code += 8)
                put_iq2(code, tn_grid_iq2_xxs[index[l]], eight_signs(signs >> 7 * l & 127));
        }
    }
}

void tn_recode_iq2_xs(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, src += 74, dst += IQ2_BYTES) {
        uint8_t *code = dst + IQ2_CODES;
        memcpy(dst, src, 2);
        memcpy(dst + 2, src + 66, 8);
        for (uint32_t l = 0; l < 4 * CELLS; l++, code += 8) {
            const uint32_t v = tn_load_u16(src + 2 + 2 * l);
            put_iq2(code, tn_grid_iq2_xs[v & 511], eight_signs(v >> 9));
        }
    }
}

void tn_recode_iq2_s(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, src += 82, dst += IQ2_BYTES) {
        const uint8_t *index = src + 2, *signs = src + 34, *high = src + 66;
        uint8_t *code = dst + IQ2_CODES;
        memcpy(dst, src, 2);
        memcpy(dst + 2, src + 74, 8);
        for (uint32_t l = 0; l < 4 * CELLS; l++, code += 8)
            put_iq2(code, tn_grid_iq2_s[index[l] | (high[l / 4] >> l % 4 * 2 & 3u) << 8],
                    signs[l]);
    }
}

/* ---- IQ3: d, 8 scales of 4 bits, codes ---- */

#define IQ3_BYTES 262u
#define IQ3_CODES 6u

void tn_recode_iq3_xxs(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, src += 98, dst += IQ3_BYTES) {
        const uint8_t *index = src + 2;
        uint8_t *code = dst + IQ3_CODES;
        memcpy(dst, src, 2);
        memset(dst + 2, 0, 4);
        for (uint32_t j = 0; j < CELLS; j++) {
            const uint32_t signs = tn_load_u32(src + 66 + 4 * j);
            dst[2 + j / 2] |= (uint8_t)(signs >> 28 << j % 2 * 4);
            for (uint32_t l = 0; l < 4; l++, code += 8, index += 2)
                put_iq3(code, tn_grid_iq3_xxs[index[0]], tn_grid_iq3_xxs[index[1]],
                        eight_signs(signs >> 7 * l & 127));
        }
    }
}

void tn_recode_iq3_s(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (; n > 0; n--, src += 110, dst += IQ3_BYTES) {
        const uint8_t *index = src + 2, *high = src + 66, *signs = src + 74;
        uint8_t *code = dst + IQ3_CODES;
        memcpy(dst, src, 2);
        memcpy(dst + 2, src + 106, 4);
        for (uint32_t l = 0; l < 4 * CELLS; l++, code += 8, index += 2) {
            const uint32_t ninth = (uint32_t)high[l / 4] >> l % 4 * 2;
            put_iq3(code, tn_grid_iq3_s[index[0] | (ninth & 1) << 8],
                    tn_grid_iq3_s[index[1] | (ninth >> 1 & 1) << 8], signs[l]);
        }
    }
}

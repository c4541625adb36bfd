/* SPDX-License-Identifier: MIT
 *
 * Encodings of embeddings, heads and norms: plain floats, and the block types
 * that llama-quantize uses for tables.  d and m are f16.
 *
 *   Q8_0     32 weights: d, i8[32]                    w = d * q
 *   Q4_0     32: d, 16 bytes                          w = d * (q - 8)
 *   IQ4_NL   32: d, 16 bytes                          w = d * table[q]
 *            both: byte j holds weight j in its low half, weight j + 16 in its high half
 *   Q4_K     256: d, m, 12 bytes of 6-bit scales and minima, 128 bytes
 *            eight groups of 32; bytes of 32 hold two groups, low halves first
 *            w = d * scale * q - m * minimum
 *   Q5_K     the same with the fifth bits in 32 bytes before: bit g of byte l is of group g
 *   Q6_K     256: 128 bytes of low halves, 64 bytes of upper 2 bits, i8 scales[16], d
 *            w = d * scale * (q - 32); 16 weights a scale
 */
#include <string.h>

#include "base/bits.h"
#include "base/half.h"
#include "encodings.h"

static float half_at(const uint8_t *src)
{
    return tn_f16_to_f32(tn_load_u16(src));
}

void tn_decode_f32(float *dst, const uint8_t *src, size_t n)
{
    memcpy(dst, src, n * sizeof *dst);
}

void tn_decode_f16(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = half_at(src + 2 * i);
}

void tn_decode_bf16(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = tn_bf16_to_f32(tn_load_u16(src + 2 * i));
}

/* ---- blocks of 32 ---- */

void tn_decode_q8_0(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 34, dst += 32) {
        const float d = half_at(src);
        for (size_t j = 0; j < 32; j++)
            dst[j] = d * (float)(int8_t)src[2 + j];
    }
}

void tn_decode_q4_0(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 18, dst += 32) {
        const float d = half_at(src);
        for (size_t j = 0; j < 16; j++) {
            dst[j] = d * (float)((src[2 + j] & 15) - 8);
            dst[j + 16] = d * (float)((src[2 + j] >> 4) - 8);
        }
    }
}

void tn_decode_iq4_nl(float *dst, const uint8_t *src, size_t n)
{
    static const int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
    for (size_t i = 0; i < n; i++, src += 18, dst += 32) {
        const float d = half_at(src);
        for (size_t j = 0; j < 16; j++) {
            dst[j] = d * (float)table[src[2 + j] & 15];
            dst[j + 16] = d * (float)table[src[2 + j] >> 4];
        }
    }
}

/* ---- blocks of 256 ---- */

/* Scale and minimum of group g: the first four in the low 6 bits of bytes g and g + 4; of the
 * others the low 4 bits in byte g + 4, the upper 2 in the upper bits of bytes g - 4 and g. */
static void scale_and_min(uint32_t *scale, uint32_t *min, const uint8_t *sc, size_t g)
{
    if (g < 4) {
        *scale = sc[g] & 63u;
        *min = sc[g + 4] & 63u;
    } else {
        *scale = (sc[g + 4] & 15u) | (uint32_t)(sc[g - 4] >> 6) << 4;
        *min = (uint32_t)(sc[g + 4] >> 4) | (uint32_t)(sc[g] >> 6) << 4;
    }
}

/* high: the fifth bits, NULL for Q4_K. */
static void decode_k(float *dst, const uint8_t *src, const uint8_t *high, const uint8_t *low)
{
    const float d = half_at(src), m = half_at(src + 2);
    for (size_t g = 0; g < 8; g++) {
        uint32_t scale, min;
        scale_and_min(&scale, &min, src + 4, g);
        const float step = d * (float)scale, base = m * (float)min;
        const uint8_t *bytes = low + 32 * (g / 2);
        for (size_t l = 0; l < 32; l++) {
            uint32_t q = g % 2 ? bytes[l] >> 4 : bytes[l] & 15u;
            if (high)
                q |= (uint32_t)(high[l] >> g & 1) << 4;
            dst[32 * g + l] = step * (float)q - base;
        }
    }
}

void tn_decode_q4_k(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 144, dst += 256)
        decode_k(dst, src, NULL, src + 16);
}

void tn_decode_q5_k(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 176, dst += 256)
        decode_k(dst, src, src + 16, src + 48);
}

/* Half a block: 128 weights from 64 bytes of low halves, 32 of upper bits, 8 scales. */
static void decode_q6_half(float *dst, const uint8_t *ql, const uint8_t *qh, const uint8_t *sc,
                           float d)
{
    for (size_t l = 0; l < 32; l++) {
        const uint32_t h = qh[l];
        const uint32_t q[4] = {(ql[l] & 15u) | (h & 3) << 4, (ql[l + 32] & 15u) | (h >> 2 & 3) << 4,
                               (uint32_t)(ql[l] >> 4) | (h >> 4 & 3) << 4,
                               (uint32_t)(ql[l + 32] >> 4) | (h >> 6) << 4};
        for (size_t k = 0; k < 4; k++)
            dst[32 * k + l] = d * (float)(int8_t)sc[2 * k + l / 16] * (float)((int32_t)q[k] - 32);
    }
}

void tn_decode_q6_k(float *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 210, dst += 256) {
        const float d = half_at(src + 208);
        decode_q6_half(dst, src, src + 128, src + 192, d);
        decode_q6_half(dst + 128, src + 64, src + 160, src + 200, d);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Ternary encodings.  q is a code, 0 to 2; w = q - 1.  "bits 2n" are bits 2n and
 * 2n + 1 of a byte, counted from the lowest.
 *
 *   I2_S     128 weights, 32 bytes: bits 6 of byte p = w[p], 4 = w[32 + p], 2 = w[64 + p],
 *            0 = w[96 + p]; ARM: 64 weights, 16 bytes, steps of 16; 1x4: bits 6 of byte c = row 0,
 *            column c, 4 = row 1, 2 = row 2, 0 = row 3
 *   TQ2_0    256 weights: 64 bytes, f16 d; bits 2n of byte 32h + m = w[128h + 32n + m]
 *   Q2_0     64 or 128 weights: f16 d, then bits 2(j % 4) of byte j / 4 = w[j]; PQ2_0 likewise
 *   IQ2_BN   a row: f32 d, then 16 bytes per 64 weights: bits 2n of byte j = w[16n + j]
 *   TQ1_0, PTQ1_0, IQ1_BN: five weights per byte; see below
 */
#include "convert/encodings.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/half.h"
#include "convert/gguf/gguf.h"
#include "convert/ternarise.h"
#include "tern/model_format.h"

/* ---- codes of two bits ---- */

/* Four runs of n weights from n bytes, from the lowest bits up. */
static TN_ALWAYS_INLINE void four_up(int8_t *dst, const uint8_t *src, size_t n, uint8_t *bad)
{
    tn_codes_to_trits(dst, src, n, 0, bad);
    tn_codes_to_trits(dst + n, src, n, 2, bad);
    tn_codes_to_trits(dst + 2 * n, src, n, 4, bad);
    tn_codes_to_trits(dst + 3 * n, src, n, 6, bad);
}

/* The same from the highest bits down. */
static TN_ALWAYS_INLINE void four_down(int8_t *dst, const uint8_t *src, size_t n, uint8_t *bad)
{
    tn_codes_to_trits(dst, src, n, 6, bad);
    tn_codes_to_trits(dst + n, src, n, 4, bad);
    tn_codes_to_trits(dst + 2 * n, src, n, 2, bad);
    tn_codes_to_trits(dst + 3 * n, src, n, 0, bad);
}

/* Normalises the scale of a unit as the header promises; false if it is not finite. */
static bool settle(int8_t *trits, float *scale, float d, size_t n)
{
    *scale = fabsf(d);
    if (d < 0)
        for (size_t i = 0; i < n; i++)
            trits[i] = (int8_t)-trits[i];
    if (d == 0)
        memset(trits, 0, n);
    return isfinite(d);
}

/* Runs of n_bytes bytes, the trits of a byte n_bytes apart. */
static size_t i2s(int8_t *trits, const uint8_t *src, size_t n, size_t n_bytes)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t bad = 0;
        four_down(trits + 4 * n_bytes * i, src + n_bytes * i, n_bytes, &bad);
        if (bad)
            return i;
    }
    return n;
}

static size_t i2s_x86(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    (void)scales, (void)unit;
    return i2s(trits, src, n, 32);
}

static size_t i2s_arm(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    (void)scales, (void)unit;
    return i2s(trits, src, n, 16);
}

static size_t i2s_1x4(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    (void)scales;
    return i2s(trits, src, n, unit / 4);
}

static size_t tq2_0(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    for (size_t i = 0; i < n; i++, src += 66, trits += unit) {
        uint8_t bad = 0;
        four_up(trits, src, 32, &bad);
        four_up(trits + 128, src + 32, 32, &bad);
        if (!settle(trits, &scales[i], tn_f16_to_f32(tn_load_u16(src + 64)), unit) || bad)
            return i;
    }
    return n;
}

/* table[b]: the four adjacent weights that a byte holds, in memory order. */
static void make_neighbours(uint32_t table[256])
{
    for (uint32_t b = 0; b < 256; b++) {
        /* The codes spread over four bytes; adding 0x7F and flipping the top bit subtracts 1
         * without a borrow. */
        const uint32_t spread = (b & 3) | (b & 0xC) << 6 | (b & 0x30) << 12 | (b & 0xC0) << 18;
        table[b] = (spread + 0x7F7F7F7Fu) ^ 0x80808080u;
    }
}

/* Four adjacent weights per byte. */
static TN_ALWAYS_INLINE size_t q2_blocks(int8_t *trits, float *scales, const uint8_t *src, size_t n,
                                         uint32_t unit)
{
    const size_t n_bytes = unit / 4;
    uint32_t neighbours[256];
    make_neighbours(neighbours);
    for (size_t i = 0; i < n; i++, src += 2 + n_bytes, trits += unit) {
        uint64_t bad = 0;
        for (size_t j = 0; j < n_bytes; j += 8) {
            const uint64_t eight = tn_load_u64(src + 2 + j);
            bad |= eight & eight >> 1 & 0x5555555555555555u;
        }
        for (size_t j = 0; j < n_bytes; j++)
            memcpy(trits + 4 * j, &neighbours[src[2 + j]], 4);
        if (!settle(trits, &scales[i], tn_f16_to_f32(tn_load_u16(src)), unit) || bad)
            return i;
    }
    return n;
}

static size_t q2_64(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    (void)unit;
    return q2_blocks(trits, scales, src, n, 64);
}

static size_t q2_128(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    (void)unit;
    return q2_blocks(trits, scales, src, n, 128);
}

static size_t iq2_bn(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    for (size_t i = 0; i < n; i++, trits += unit) {
        uint8_t bad = 0;
        const float d = tn_f32_from_bits(tn_load_u32(src));
        src += 4;
        for (uint32_t c = 0; c < unit; c += 64, src += 16)
            four_up(trits + c, src, 16, &bad);
        if (!settle(trits, &scales[i], d, unit) || bad)
            return i;
    }
    return n;
}

/* ---- five weights in a byte ----
 *
 * The number v = q0 * 81 + q1 * 27 + q2 * 9 + q3 * 3 + q4 < 243 is stored as the byte
 * ceil(v * 256 / 243), a fraction of 256: three times it, modulo 256, begins with the
 * next digit, and the first digit is 0 below 256 / 3, 1 below 512 / 3, else 2. */

static TN_ALWAYS_INLINE int8_t first_trit(uint8_t rest)
{
    return (int8_t)((rest > 85) + (rest > 170) - 1);
}

/* n_digits runs of n weights from n bytes, n at most 32. */
static TN_ALWAYS_INLINE void runs(int8_t *dst, const uint8_t *src, size_t n, size_t n_digits)
{
    uint8_t rest[32];
    memcpy(rest, src, n);
    for (size_t k = 0; k < n_digits; k++, dst += n)
        for (size_t i = 0; i < n; i++) {
            dst[i] = first_trit(rest[i]);
            rest[i] = (uint8_t)(rest[i] + rest[i] + rest[i]);
        }
}

/* 256 weights: 32 bytes of 5 runs, 16 bytes of 5 runs, 4 bytes of 4 runs, f16 d. */
static size_t tq1_0(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    for (size_t i = 0; i < n; i++, src += 54, trits += unit) {
        runs(trits, src, 32, 5);
        runs(trits + 160, src + 32, 16, 5);
        runs(trits + 240, src + 48, 4, 4); /* their fifth digit is 0 */
        if (!settle(trits, &scales[i], tn_f16_to_f32(tn_load_u16(src + 52)), unit))
            return i;
    }
    return n;
}

/* 128 weights: 16 bytes of 5 runs, 8 bytes of 5 runs, 2 bytes of 4 runs, f16 d. */
static size_t ptq1_0(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    for (size_t i = 0; i < n; i++, src += 28, trits += unit) {
        runs(trits, src, 16, 5);
        runs(trits + 80, src + 16, 8, 5);
        runs(trits + 120, src + 24, 2, 4);
        if (!settle(trits, &scales[i], tn_f16_to_f32(tn_load_u16(src + 26)), unit))
            return i;
    }
    return n;
}

/* 64 weights in 13 bytes: four times 15 weights in 3 bytes, with adjacent digits in a byte, the
 * first one lowest; the 16th of each comes from the last byte. */
static void iq1_block(int8_t *dst, const uint8_t *src)
{
    static const uint8_t powers[] = {81, 27, 9, 3, 1};
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 3; k++)
            for (size_t j = 0; j < 5; j++)
                dst[16 * i + 5 * k + j] = first_trit((uint8_t)(src[3 * i + k] * powers[j]));
        dst[16 * i + 15] = first_trit((uint8_t)(src[12] * powers[i]));
    }
}

/* A row: f16 d, then the blocks. */
static size_t iq1_bn(int8_t *trits, float *scales, const uint8_t *src, size_t n, uint32_t unit)
{
    for (size_t i = 0; i < n; i++, trits += unit) {
        const float d = tn_f16_to_f32(tn_load_u16(src));
        src += 2;
        for (uint32_t c = 0; c < unit; c += 64, src += 13)
            iq1_block(trits + c, src);
        if (!settle(trits, &scales[i], d, unit))
            return i;
    }
    return n;
}

/* ---- the list ---- */

static const struct tn_encoding encodings[] = {
    {TN_GGML_I2_S, TERN_I2S_X86, "I2_S", 128, 0, 32, TN_NO_SCALE, 0, i2s_x86, 0, false, NULL},
    {TN_GGML_I2_S, TERN_I2S_ARM, "I2_S (arm)", 64, 0, 16, TN_NO_SCALE, 0, i2s_arm, 0, false, NULL},
    {TN_GGML_I2_S, TERN_I2S_1X4, "I2_S (1x4)", 0, 4, 0, TN_NO_SCALE, 0, i2s_1x4, 0, false, NULL},
    {TN_GGML_TQ1_0, 0, "TQ1_0", 256, 0, 54, TN_SCALE_F16, 52, tq1_0, 0, false, NULL},
    {TN_GGML_TQ2_0, 0, "TQ2_0", 256, 0, 66, TN_SCALE_F16, 64, tq2_0, 0, false, NULL},
    {TN_GGML_Q2_0, 64, "Q2_0", 64, 0, 18, TN_SCALE_F16, 0, q2_64, 0, true, NULL},
    {TN_GGML_Q2_0, 128, "Q2_0 (g128)", 128, 0, 34, TN_SCALE_F16, 0, q2_128, 0, true, NULL},
    {TN_GGML_PQ2_0, 0, "PQ2_0", 128, 0, 34, TN_SCALE_F16, 0, q2_128, 0, true, NULL},
    {TN_GGML_PTQ1_0, 0, "PTQ1_0", 128, 0, 28, TN_SCALE_F16, 26, ptq1_0, 0, false, NULL},
    {TN_GGML_IQ1_BN, 0, "IQ1_BN", 0, 1, 0, TN_SCALE_F16, 0, iq1_bn, 0, false, NULL},
    {TN_GGML_IQ2_BN, 0, "IQ2_BN", 0, 1, 0, TN_SCALE_F32, 0, iq2_bn, 0, false, NULL},
#define RECODED(id, columns, n_bytes, to, fn)                                                      \
    {.type = TN_GGML_##id, .name = #id, .unit = columns, .unit_bytes = n_bytes,                    \
     .layout = TERN_LAYOUT_##to, .recode = fn},
    RECODED(MXFP4, 32, 17, Q5_0, tn_recode_mxfp4)
    RECODED(IQ2_XXS, 256, 66, IQ2_S, tn_recode_iq2_xxs)
    RECODED(IQ2_XS, 256, 74, IQ2_S, tn_recode_iq2_xs)
    RECODED(IQ2_S, 256, 82, IQ2_S, tn_recode_iq2_s)
    RECODED(IQ3_XXS, 256, 98, IQ3_XXS, tn_recode_iq3_xxs)
    RECODED(IQ3_S, 256, 110, IQ3_S, tn_recode_iq3_s)
#undef RECODED
#define BLOCKS(id, number, columns, n_bytes)                                                       \
    {.type = number, .name = #id, .unit = columns, .unit_bytes = n_bytes,                          \
     .layout = TERN_LAYOUT_##id},
    TN_GGUF_BLOCK_LIST(BLOCKS)
#undef BLOCKS
};

const struct tn_encoding *tn_encoding_find(uint32_t type, uint32_t q2_block,
                                           enum tern_i2s_layout i2s)
{
    const uint32_t param = type == TN_GGML_Q2_0   ? q2_block
                           : type == TN_GGML_I2_S ? (uint32_t)i2s
                                                  : 0;
    for (size_t i = 0; i < TN_COUNT_OF(encodings); i++)
        if (encodings[i].type == type && encodings[i].param == param)
            return &encodings[i];
    return NULL;
}

uint32_t tn_encoding_unit(const struct tn_encoding *encoding, uint32_t cols)
{
    return encoding->unit ? encoding->unit : encoding->unit_rows * cols;
}

uint32_t tn_encoding_unit_bytes(const struct tn_encoding *encoding, uint32_t cols)
{
    if (encoding->unit_bytes)
        return encoding->unit_bytes;
    const struct tn_gguf_type *type = tn_gguf_type_find(encoding->type);
    return type->block ? type->row_bytes + cols / type->block * type->block_bytes
                       : cols; /* 1x4: whole rows */
}

size_t tn_encoding_scales(const struct tn_encoding *encoding, float *scales, const uint8_t *src,
                          size_t n, uint32_t unit_bytes)
{
    src += encoding->scale_at;
    for (size_t i = 0; i < n; i++, src += unit_bytes) {
        const float d = encoding->scale == TN_SCALE_F16 ? tn_f16_to_f32(tn_load_u16(src))
                                                        : tn_f32_from_bits(tn_load_u32(src));
        scales[i] = fabsf(d);
        if (!isfinite(d))
            return i;
    }
    return n;
}

const char *tn_encoding_refusal(uint32_t type)
{
    switch (type) {
    case TN_GGML_TL1:
    case TN_GGML_TL2:
        return "its tiles depend on how the program that wrote it was built, and the file does not "
               "say how; take the I2_S file of the same model, or the safetensors";
    case TN_GGML_Q1_0:
        return "binary weights (-1 and +1, no 0) are not supported; of Bonsai take the "
               "Ternary-Bonsai files";
    case TN_GGML_IQ1_S:
    case TN_GGML_IQ1_M:
        return "its weights would take twice the bits in a .tern file; take a file in IQ2_XXS or "
               "larger, which loses less";
    case TN_GGML_IQ2_BN_R4:
        return "IQ2_BN with its rows interleaved for one program; take the IQ2_BN or I2_S file";
    default:
        return tn_encoding_find(type, 64, TERN_I2S_X86)
                   ? NULL
                   : "no ternary type, nor a block type that tern knows; take a file in Q4_K_M, "
                     "IQ4_XS or Q8_0";
    }
}

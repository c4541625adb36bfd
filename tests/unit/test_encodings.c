/* SPDX-License-Identifier: MIT
 *
 * Encodings of GGUF tensors against packers written from the same description, and against blocks
 * whose values were computed by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/half.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "convert/encodings.h"
#include "convert/gguf/gguf.h"

#define COLS 512u
#define ROWS 8u
#define N (ROWS * COLS)

static int8_t weights[N];
static uint8_t packed[N * 2];
static int8_t trits[N];
static float scales[N / 64];

/* ---- packers, one weight at a time ---- */

static void put2(size_t byte, uint32_t shift, int8_t w)
{
    packed[byte] |= (uint8_t)((uint32_t)(w + 1) << shift);
}

static void put_half(size_t at, float d)
{
    const uint16_t h = tn_f32_to_f16(d);
    memcpy(packed + at, &h, 2);
}

static void put_float(size_t at, float d)
{
    memcpy(packed + at, &d, 4);
}

/* Five digits, most significant first, as ceil(v * 256 / 243). */
static void put5(size_t byte, const int8_t *w, size_t step, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < 5; i++)
        v = v * 3 + (i < n ? (uint32_t)(w[i * step] + 1) : 0);
    packed[byte] = (uint8_t)((v * 256 + 242) / 243);
}

static void pack_i2s(size_t block, size_t step)
{
    for (size_t i = 0; i < N; i++)
        put2(i / block * step + i % step, 6 - 2 * (uint32_t)(i % block / step), weights[i]);
}

static void pack_1x4(void)
{
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLS; c++)
            put2(r / 4 * COLS + c, 6 - 2 * (uint32_t)(r % 4), weights[r * COLS + c]);
}

static void pack_tq2(void)
{
    for (size_t i = 0; i < N; i++) {
        const size_t in = i % 256, half = in / 128, n = in % 128 / 32, m = in % 32;
        put2(i / 256 * 66 + 32 * half + m, 2 * (uint32_t)n, weights[i]);
    }
    for (size_t b = 0; b < N / 256; b++)
        put_half(b * 66 + 64, 0.5f + (float)b);
}

static void pack_q2(size_t block)
{
    const size_t n_bytes = 2 + block / 4;
    for (size_t i = 0; i < N; i++)
        put2(i / block * n_bytes + 2 + i % block / 4, 2 * (uint32_t)(i % 4), weights[i]);
    for (size_t b = 0; b < N / block; b++)
        put_half(b * n_bytes, 0.5f + (float)b);
}

static void pack_iq2(void)
{
    const size_t row = 4 + COLS / 4;
    for (size_t r = 0; r < ROWS; r++) {
        put_float(r * row, 0.5f + (float)r);
        for (size_t c = 0; c < COLS; c++)
            put2(r * row + 4 + c / 64 * 16 + c % 16, 2 * (uint32_t)(c % 64 / 16),
                 weights[r * COLS + c]);
    }
}

static void pack_tq1(size_t block, size_t wide, size_t narrow, size_t rest)
{
    const size_t n_bytes = wide + narrow + rest + 2;
    for (size_t b = 0; b < N / block; b++) {
        const int8_t *w = weights + b * block;
        const size_t at = b * n_bytes;
        for (size_t m = 0; m < wide; m++)
            put5(at + m, w + m, wide, 5);
        for (size_t m = 0; m < narrow; m++)
            put5(at + wide + m, w + 5 * wide + m, narrow, 5);
        for (size_t j = 0; j < rest; j++)
            put5(at + wide + narrow + j, w + 5 * (wide + narrow) + j, rest, 4);
        put_half(at + n_bytes - 2, 0.5f + (float)b);
    }
}

static void pack_iq1(void)
{
    const size_t row = 2 + COLS / 64 * 13;
    for (size_t r = 0; r < ROWS; r++) {
        put_half(r * row, 0.5f + (float)r);
        for (size_t c = 0; c < COLS; c += 64) {
            const int8_t *w = weights + r * COLS + c;
            const size_t at = r * row + 2 + c / 64 * 13;
            int8_t last[5] = {0, w[63], w[47], w[31], w[15]}; /* the lowest digit comes last */
            for (size_t i = 0; i < 12; i++) {
                const int8_t *five = w + 16 * (i / 3) + 5 * (i % 3);
                const int8_t turned[5] = {five[4], five[3], five[2], five[1], five[0]};
                put5(at + i, turned, 1, 5);
            }
            last[0] = -1; /* digit 0: unused */
            put5(at + 12, last, 1, 5);
        }
    }
}

/* ---- round trips ---- */

static void check_round_trip(const struct tn_encoding *e, size_t n_units)
{
    const uint32_t unit = tn_encoding_unit(e, COLS);
    assert_int_equal(n_units * unit, N);
    memset(trits, 77, sizeof trits);
    assert_int_equal(e->trits(trits, scales, packed, n_units, unit), n_units);
    if (memcmp(trits, weights, N) != 0)
        fail_msg("%s: other trits", e->name);
}

static void fill(uint32_t seed)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, seed);
    for (size_t i = 0; i < N; i++)
        weights[i] = (int8_t)(tn_rng_next(&rng) % 3) - 1;
    memset(packed, 0, sizeof packed);
}

static void every_ternary_type_gives_its_trits_back(void **state)
{
    (void)state;
    static const struct {
        uint32_t type, q2_block;
        enum tern_i2s_layout i2s;
    } rows[] = {
        {TN_GGML_I2_S, 0, TERN_I2S_X86},  {TN_GGML_I2_S, 0, TERN_I2S_ARM},
        {TN_GGML_I2_S, 0, TERN_I2S_1X4},  {TN_GGML_TQ2_0, 0, 0},
        {TN_GGML_Q2_0, 64, 0},          {TN_GGML_Q2_0, 128, 0},
        {TN_GGML_PQ2_0, 0, 0},          {TN_GGML_IQ2_BN, 0, 0},
        {TN_GGML_TQ1_0, 0, 0},          {TN_GGML_PTQ1_0, 0, 0},
        {TN_GGML_IQ1_BN, 0, 0},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        const struct tn_encoding *e =
            tn_encoding_find(rows[i].type, rows[i].q2_block, rows[i].i2s);
        assert_non_null(e);
        fill((uint32_t)i);
        switch (i) {
        case 0:
            pack_i2s(128, 32);
            break;
        case 1:
            pack_i2s(64, 16);
            break;
        case 2:
            pack_1x4();
            break;
        case 3:
            pack_tq2();
            break;
        case 4:
            pack_q2(64);
            break;
        case 5:
        case 6:
            pack_q2(128);
            break;
        case 7:
            pack_iq2();
            break;
        case 8:
            pack_tq1(256, 32, 16, 4);
            break;
        case 9:
            pack_tq1(128, 16, 8, 2);
            break;
        default:
            pack_iq1();
        }
        const size_t n_units = N / tn_encoding_unit(e, COLS);
        check_round_trip(e, n_units);
        for (size_t u = 0; i > 2 && u < n_units; u++)
            assert_true(scales[u] == 0.5f + (float)u);
        if (i <= 2) /* I2_S stores its scale after the codes */
            continue;
        memset(scales, 0, sizeof scales);
        assert_int_equal(tn_encoding_scales(e, scales, packed, n_units,
                                            tn_encoding_unit_bytes(e, COLS)),
                         n_units);
        for (size_t u = 0; u < n_units; u++)
            assert_true(scales[u] == 0.5f + (float)u);
    }
}

/* ---- blocks that are not ternary ---- */

static void code_3_is_found(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        size_t unit_bytes, code_at; /* of a byte of codes in the unit */
    } rows[] = {
        {TN_GGML_I2_S, 32, 0},   {TN_GGML_I2_S, 32, 31}, {TN_GGML_TQ2_0, 66, 63},
        {TN_GGML_TQ2_0, 66, 0},  {TN_GGML_Q2_0, 18, 2},  {TN_GGML_Q2_0, 18, 17},
        {TN_GGML_PQ2_0, 34, 33}, {TN_GGML_IQ2_BN, 20, 4}, {TN_GGML_IQ2_BN, 20, 19},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        const struct tn_encoding *e = tn_encoding_find(rows[i].type, 64, TERN_I2S_X86);
        for (uint32_t shift = 0; shift < 8; shift += 2) {
            memset(packed, 0, sizeof packed);
            packed[2 * rows[i].unit_bytes + rows[i].code_at] = (uint8_t)(3u << shift);
            assert_int_equal(e->trits(trits, scales, packed, 3, tn_encoding_unit(e, 64)), 2);
            assert_int_equal(e->trits(trits, scales, packed, 2, tn_encoding_unit(e, 64)), 2);
        }
    }
}

static void scales_that_are_no_numbers_are_found(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        size_t unit_bytes, scale_at, scale_bytes;
    } rows[] = {
        {TN_GGML_TQ1_0, 54, 52, 2},  {TN_GGML_TQ2_0, 66, 64, 2},  {TN_GGML_Q2_0, 18, 0, 2},
        {TN_GGML_PQ2_0, 34, 0, 2},   {TN_GGML_PTQ1_0, 28, 26, 2}, {TN_GGML_IQ1_BN, 15, 0, 2},
        {TN_GGML_IQ2_BN, 20, 0, 4},
    };
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        const struct tn_encoding *e = tn_encoding_find(rows[i].type, 64, TERN_I2S_X86);
        for (size_t k = 0; k < TN_COUNT_OF(bad); k++) {
            const size_t at = rows[i].unit_bytes + rows[i].scale_at;
            memset(packed, 0, sizeof packed);
            if (rows[i].scale_bytes == 2)
                put_half(at, bad[k]);
            else
                put_float(at, bad[k]);
            assert_int_equal(e->trits(trits, scales, packed, 2, tn_encoding_unit(e, 64)), 1);
            assert_int_equal(
                tn_encoding_scales(e, scales, packed, 2, (uint32_t)rows[i].unit_bytes), 1);
        }
    }
}

/* A negative scale inverts the trits of its block; scale 0 makes them zero. */
static void signs_of_scales(void **state)
{
    (void)state;
    const struct tn_encoding *e = tn_encoding_find(TN_GGML_Q2_0, 64, TERN_I2S_X86);
    memset(packed, 0, sizeof packed); /* codes 0: -1 */
    put_half(0, -2.0f);
    assert_int_equal(e->trits(trits, scales, packed, 2, 64), 2);
    assert_true(scales[0] == 2.0f && scales[1] == 0.0f);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(trits[i], i < 64 ? 1 : 0);
}

/* ---- floats ---- */

static void decode(uint32_t type, float *dst, size_t n)
{
    const struct tn_encoding *e = tn_encoding_find(type, 64, TERN_I2S_X86);
    assert_non_null(e);
    assert_true(e->layout != 0);
    tn_encoding_floats(e, dst, packed, n);
}

static void blocks_of_32(void **state)
{
    (void)state;
    float w[32];
    memset(packed, 0, sizeof packed);
    put_half(0, 0.5f);
    for (size_t j = 0; j < 32; j++)
        packed[2 + j] = (uint8_t)(j * 8 - 128);
    decode(TN_GGML_Q8_0, w, 1);
    for (size_t j = 0; j < 32; j++)
        assert_true(w[j] == 0.5f * ((float)j * 8 - 128));
    for (size_t j = 0; j < 16; j++)
        packed[2 + j] = (uint8_t)(j | (15 - j) << 4);
    decode(TN_GGML_Q4_0, w, 1);
    for (size_t j = 0; j < 16; j++) {
        assert_true(w[j] == 0.5f * ((float)j - 8));
        assert_true(w[j + 16] == 0.5f * (7 - (float)j));
    }
    decode(TN_GGML_IQ4_NL, w, 1);
    assert_true(w[0] == -63.5f && w[15] == 56.5f && w[8] == 0.5f);
    assert_true(w[16] == 56.5f && w[31] == -63.5f && w[16 + 8] == -5.0f);
}

/* Scales and minimums 1 to 8 and 11 to 18 for the eight groups, then other values above 15. */
static void blocks_of_256(void **state)
{
    (void)state;
    float w[256];
    memset(packed, 0, sizeof packed);
    put_half(0, 2.0f);
    put_half(2, 0.5f);
    for (size_t g = 0; g < 8; g++) {
        const uint32_t scale = 40 + (uint32_t)g, min = 17 + 5 * (uint32_t)g;
        uint8_t *sc = packed + 4;
        if (g < 4) {
            sc[g] |= (uint8_t)scale;
            sc[g + 4] |= (uint8_t)min;
        } else {
            sc[g + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
            sc[g - 4] |= (uint8_t)(scale >> 4 << 6);
            sc[g] |= (uint8_t)(min >> 4 << 6);
        }
    }
    for (size_t i = 0; i < 256; i++)
        packed[16 + i / 64 * 32 + i % 32] |= (uint8_t)((i * 7 % 16) << (i % 64 / 32 * 4));
    decode(TN_GGML_Q4_K, w, 1);
    for (size_t i = 0; i < 256; i++) {
        const float scale = 40 + (float)(i / 32), min = 17 + 5 * (float)(i / 32);
        assert_true(w[i] == 2.0f * scale * (float)(i * 7 % 16) - 0.5f * min);
    }
    memmove(packed + 48, packed + 16, 128);
    memset(packed + 16, 0, 32);
    for (size_t i = 0; i < 256; i++)
        packed[16 + i % 32] |= (uint8_t)((i * 5 % 3 == 0) << (i / 32));
    decode(TN_GGML_Q5_K, w, 1);
    for (size_t i = 0; i < 256; i++) {
        const float scale = 40 + (float)(i / 32), min = 17 + 5 * (float)(i / 32);
        const float q = (float)(i * 7 % 16) + (i * 5 % 3 == 0 ? 16 : 0);
        assert_true(w[i] == 2.0f * scale * q - 0.5f * min);
    }
}

static void six_bits(void **state)
{
    (void)state;
    float w[256];
    memset(packed, 0, sizeof packed);
    for (size_t i = 0; i < 256; i++) {
        const uint32_t q = (uint32_t)(i * 11 % 64);
        const size_t half = i / 128, k = i % 128 / 32, l = i % 32;
        packed[64 * half + l + 32 * (k % 2)] |= (uint8_t)((q & 15) << (k / 2 * 4));
        packed[128 + 32 * half + l] |= (uint8_t)(q >> 4 << (2 * k));
    }
    for (size_t s = 0; s < 16; s++)
        packed[192 + s] = (uint8_t)(s * 16 - 128);
    put_half(208, 0.25f);
    decode(TN_GGML_Q6_K, w, 1);
    for (size_t i = 0; i < 256; i++) {
        const float scale = (float)(i / 16 * 16) - 128;
        assert_true(w[i] == 0.25f * scale * ((float)(i * 11 % 64) - 32));
    }
}

/* ---- the list ---- */

/* All codes with all exponents; those without an f16 give no finite value. */
static void mxfp4(void **state)
{
    (void)state;
    static const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const struct tn_encoding *e = tn_encoding_find(TN_GGML_MXFP4, 0, TERN_I2S_X86);
    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        float out[32];
        packed[0] = (uint8_t)exponent;
        for (uint32_t j = 0; j < 16; j++)
            packed[1 + j] = (uint8_t)(j | (15 - j) << 4);
        tn_encoding_floats(e, out, packed, 1);
        for (uint32_t j = 0; j < 32; j++) {
            const uint32_t code = j < 16 ? j : 31 - j;
            const float value = ldexpf(values[code % 8], (int)exponent - 127);
            if (exponent >= 104 && exponent <= 143)
                assert_true(out[j] == (code < 8 ? value : -value));
            else
                assert_false(isfinite(out[j]));
        }
        memset(packed + 1, 0x80, 16); /* zeros of both signs */
        tn_encoding_floats(e, out, packed, 1);
        for (uint32_t j = 0; j < 32; j++)
            assert_true(out[j] == 0);
    }
}

/* The digests are of the f32 values that the Python package gguf 0.19.0 gives for these blocks, in
 * which every index occurs. */
static void types_with_a_grid(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        const char *digest;
    } rows[] = {
        {TN_GGML_IQ2_XXS,
         "e4978562964f08a5b46f892ffcbec759651c8e628cb938a941597b427ddf607a"},
        {TN_GGML_IQ2_XS,
         "d7ad88b74259c3f904e22d69d4ecf788899841d92a2c7bd272eeb18b42cef39f"},
        {TN_GGML_IQ2_S,
         "6e2c9c2e78c3888c859fbb7bfdd7a89c648a606253d0ab9f18507652c36299ed"},
        {TN_GGML_IQ3_XXS,
         "d9f99653c3e929ca89b3d12a63086d98b6632e78e2e3a38fe1bdf58ffef0b03d"},
        {TN_GGML_IQ3_S,
         "d508d8bda32b85801d021a130726c178c62b57ae6f83cb993f5ccc67b250e5b7"},
    };
    enum { N_BLOCKS = 512 };
    static float values[N_BLOCKS * 256];
    static uint8_t blocks[N_BLOCKS * 110];
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        const struct tn_encoding *e = tn_encoding_find(rows[i].type, 0, TERN_I2S_X86);
        assert_non_null(e);
        uint32_t random = 1;
        for (size_t k = 0; k < N_BLOCKS * e->unit_bytes; k++) {
            random = random * 1664525 + 1013904223;
            blocks[k] = (uint8_t)(random >> 24);
            if (k % e->unit_bytes == 1) {
                blocks[k - 1] |= 1; /* d is neither 0 */
                blocks[k] &= 0xBF;  /* nor infinite */
            }
        }
        tn_encoding_floats(e, values, blocks, N_BLOCKS);
        struct tn_sha256 sha;
        char hex[TN_SHA256_HEX_BYTES];
        tn_sha256_init(&sha);
        tn_sha256_update(&sha, values, sizeof values);
        tn_sha256_finish(&sha, hex);
        assert_string_equal(hex, rows[i].digest);
    }
}

static void types_are_read_or_refused_with_a_reason(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < 400; type++) {
        const bool is_read = tn_encoding_find(type, 64, TERN_I2S_X86) != NULL;
        assert_true(is_read == (tn_encoding_refusal(type) == NULL));
    }
    assert_non_null(strstr(tn_encoding_refusal(TN_GGML_TL1), "I2_S"));
    assert_non_null(strstr(tn_encoding_refusal(TN_GGML_Q1_0), "binary"));
    assert_non_null(strstr(tn_encoding_refusal(TN_GGML_IQ1_M), "IQ2_XXS"));
    assert_null(tn_encoding_find(TN_GGML_Q2_0, 32, TERN_I2S_X86));
}

/* The size of a row by its encoding equals the size by the reader's rule. */
static void sizes_agree_with_the_reader(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < 400; type++) {
        const struct tn_encoding *e = tn_encoding_find(type, 64, TERN_I2S_X86);
        if (!e)
            continue;
        uint64_t bytes = 0;
        const uint64_t n_units = (uint64_t)N / tn_encoding_unit(e, COLS);
        assert_true(tn_gguf_type_bytes(&bytes, type, 64, ROWS, COLS));
        bytes -= type == TN_GGML_I2_S ? 32 : 0;
        assert_int_equal(bytes, n_units * tn_encoding_unit_bytes(e, COLS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ternary_type_gives_its_trits_back),
        cmocka_unit_test(code_3_is_found),
        cmocka_unit_test(scales_that_are_no_numbers_are_found),
        cmocka_unit_test(signs_of_scales),
        cmocka_unit_test(blocks_of_32),
        cmocka_unit_test(blocks_of_256),
        cmocka_unit_test(six_bits),
        cmocka_unit_test(mxfp4),
        cmocka_unit_test(types_with_a_grid),
        cmocka_unit_test(types_are_read_or_refused_with_a_reason),
        cmocka_unit_test(sizes_agree_with_the_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

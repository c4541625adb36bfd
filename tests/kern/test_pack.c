/* SPDX-License-Identifier: MIT
 *
 * Packing into T2, T5, R2 and C2, compared with a second implementation of the definitions in
 * tern/matrix_layouts.h, element by element.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/layout_spec.h"
#include "base/half.h"
#include "base/rng.h"
#include "kern/kern.h"
#include "kern/pack.h"
#include "tern/model_format.h"

static const uint32_t layouts[] = {TERN_LAYOUT_T2, TERN_LAYOUT_R2, TERN_LAYOUT_C2};

static uint32_t padded(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

/* Byte and bit position of element (r, c) by the format's header. */
static size_t position(uint32_t layout, uint32_t rows, uint32_t cols, uint32_t r, uint32_t c,
                       uint32_t *shift)
{
    if (layout == TERN_LAYOUT_T2) {
        *shift = c % 4 * 2;
        const size_t band_tiles = padded(rows, 64) / 64 - r / 256 * 4;
        const size_t n_tiles = band_tiles < 4 ? band_tiles : 4;
        const size_t run = (size_t)(c / 128) * n_tiles + r % 256 / 64;
        return (size_t)(r / 256) * 256 * (padded(cols, 128) / 4) + run * 2048 +
               (size_t)(c % 128 / 4) * 64 + r % 64;
    }
    const size_t line = layout == TERN_LAYOUT_R2 ? r : c;
    const uint32_t i = layout == TERN_LAYOUT_R2 ? c : r;
    const size_t line_bytes = padded(layout == TERN_LAYOUT_R2 ? cols : rows, 256) / 4;
    *shift = i % 256 / 64 * 2;
    return line * line_bytes + (size_t)(i / 256) * 64 + i % 64;
}

static void fill_random(int8_t *trits, size_t n, uint64_t seed)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++)
        trits[i] = (int8_t)((int)(tn_rng_next(&rng) % 3) - 1);
}

static void check_shape(uint32_t layout, uint32_t rows, uint32_t cols)
{
    const size_t n_bytes = (size_t)tn_layout_size(layout, rows, cols);
    int8_t *trits = malloc((size_t)rows * cols);
    int8_t *back = malloc((size_t)rows * cols);
    uint8_t *packed = malloc(n_bytes);
    uint8_t *expected = malloc(n_bytes);
    fill_random(trits, (size_t)rows * cols, rows * 1000u + cols);
    memset(expected, 0x55, n_bytes);
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            uint32_t shift;
            const size_t at = position(layout, rows, cols, r, c, &shift);
            assert_true(at < n_bytes);
            const unsigned code = (unsigned)(trits[(size_t)r * cols + c] + 1);
            expected[at] = (uint8_t)((expected[at] & ~(3u << shift)) | code << shift);
        }
    }
    memset(packed, 0xAA, n_bytes);
    for (uint32_t r = 0; r < rows; r += TN_PACK_ROWS) {
        const uint32_t n = rows - r < TN_PACK_ROWS ? rows - r : TN_PACK_ROWS;
        tn_pack_rows(packed, layout, rows, cols, r, n, trits + (size_t)r * cols);
    }
    assert_memory_equal(packed, expected, n_bytes);
    tn_unpack_rows(back, packed, layout, rows, cols, 0, rows);
    assert_memory_equal(back, trits, (size_t)rows * cols);
    tn_unpack_rows(back, packed, layout, rows, cols, rows - 1, 1);
    assert_memory_equal(back, trits + (size_t)(rows - 1) * cols, cols);
    free(trits);
    free(back);
    free(packed);
    free(expected);
}

static void test_shapes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 3, 4, 63, 64, 65, 127, 129, 255, 256, 257, 546, 768};
    const size_t n = sizeof sizes / sizeof *sizes;
    for (size_t l = 0; l < 3; l++)
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c < n; c++)
                check_shape(layouts[l], sizes[r], sizes[c]);
}

/* T2 and R2: each block of 256 rows is packed as if it were alone. */
static void test_blocks_are_independent(void **state)
{
    (void)state;
    enum { ROWS = 600, COLS = 333 };
    static int8_t trits[ROWS * COLS];
    fill_random(trits, sizeof trits, 7);
    for (size_t l = 0; l < 2; l++) {
        const uint32_t layout = layouts[l];
        const size_t n_bytes = (size_t)tn_layout_size(layout, ROWS, COLS);
        uint8_t *whole = malloc(n_bytes);
        uint8_t *part = malloc(n_bytes);
        tn_pack_rows(whole, layout, ROWS, COLS, 0, ROWS, trits);
        size_t at = 0;
        for (uint32_t r = 0; r < ROWS; r += TN_PACK_ROWS) {
            const uint32_t n = ROWS - r < TN_PACK_ROWS ? ROWS - r : TN_PACK_ROWS;
            tn_pack_rows(part + at, layout, n, COLS, 0, n, trits + (size_t)r * COLS);
            at += (size_t)tn_layout_size(layout, n, COLS);
        }
        assert_int_equal(at, n_bytes);
        assert_memory_equal(part, whole, n_bytes);
        free(whole);
        free(part);
    }
}

/* ---- T5 ---- */

/* The trits, 0 to 2, of bits x y a b c p q r, by the table of the format's header. */
static void decode(int trits[5], const int *v)
{
    static const struct {
        const char *bits, *trits; /* lower-case letters are the bits with that name; ? is any */
    } table[] = {
        {"00ijk", "ijk"}, {"010jk", "2jk"}, {"011ik", "i2k"}, {"100ji", "ij2"},
        {"1010k", "22k"}, {"1011j", "2j2"}, {"1100i", "i22"}, {"11010", "222"},
    };
    const int is_both = v[0] && v[1] && v[2];
    const int abc[] = {is_both ? v[5] : v[0], is_both ? v[6] : v[1], is_both ? v[7] : v[2], v[3],
                       v[4]};
    int n_rows = 0;
    for (size_t row = 0; row < sizeof table / sizeof *table; row++) {
        int letters[128] = {0}, is_row = 1;
        for (int k = 0; k < 5; k++) {
            const char c = table[row].bits[k];
            is_row &= c >= 'i' || abc[k] == c - '0';
            letters[(unsigned char)c] = abc[k];
        }
        for (int k = 0; k < 3 && is_row; k++) {
            const char c = table[row].trits[k];
            trits[k] = c == '2' ? 2 : letters[(unsigned char)c];
        }
        n_rows += is_row;
    }
    assert_int_equal(n_rows, 1);
    trits[3] = is_both || (v[5] && !v[6]) ? 2 : v[5] ? v[7] : v[6];
    trits[4] = is_both || (v[5] && v[6]) ? 2 : v[7];
}

static int bit_of(const uint8_t *planes, uint32_t plane, uint32_t k, uint32_t b)
{
    return planes[plane * 64 + k] >> b & 1;
}

/* Code at bits of byte k of group g: that of row k and column 4g + the field. */
static int code_of(const int8_t *trits, uint32_t g, uint32_t k, uint32_t field)
{
    return trits[k * 128 + 4 * g + field] + 1;
}

/* A run whose codes are all looked up in the table; nearly all of the 243 codes occur. */
static void test_codes_of_t5(void **state)
{
    (void)state;
    static int8_t trits[64 * 128];
    static uint8_t packed[1664];
    int seen[243] = {0}, n_seen = 0;
    fill_random(trits, sizeof trits, 9);
    assert_int_equal(tn_layout_size(TERN_LAYOUT_T5, 64, 128), sizeof packed);
    tn_pack_rows(packed, TERN_LAYOUT_T5, 64, 128, 0, 64, trits);
    for (uint32_t place = 0; place < 3 * 64 * 8; place++) {
        const uint32_t five = place / 512, k = place / 8 % 64, b = place % 8;
        int v[8], found[5], number = 0;
        for (uint32_t i = 0; i < 8; i++)
            v[i] = bit_of(packed, 8 * five + i, k, b);
        decode(found, v);
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(found[i], code_of(trits, 2 * (5 * five + i) + b % 2, k, b / 2));
            number = number * 3 + found[i];
        }
        n_seen += !seen[number];
        seen[number] = 1;
    }
    for (uint32_t g = 30; g < 32; g++)
        for (uint32_t k = 0; k < 64; k++)
            for (uint32_t field = 0; field < 4; field++)
                assert_int_equal(packed[(g - 6) * 64 + k] >> 2 * field & 3,
                                 code_of(trits, g, k, field));
    assert_true(n_seen > 230); /* of 243, in 1536 places */
}

/* Rows and columns are zero-padded; the runs of each 64 rows are adjacent. */
static void test_shapes_of_t5(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 63, 64, 65, 127, 129, 257, 600};
    for (size_t r = 0; r < sizeof sizes / sizeof *sizes; r++)
        for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
            const uint32_t rows = sizes[r], cols = sizes[c], n_runs = padded(cols, 128) / 128;
            int8_t *trits = malloc((size_t)rows * cols), *back = malloc((size_t)rows * cols);
            uint8_t *packed = malloc((size_t)tn_layout_size(TERN_LAYOUT_T5, rows, cols));
            uint8_t *wide = malloc((size_t)tn_layout_size(TERN_LAYOUT_T2, rows, cols));
            fill_random(trits, (size_t)rows * cols, rows * 1000 + cols);
            tn_pack_rows(packed, TERN_LAYOUT_T5, rows, cols, 0, rows, trits);
            tn_pack_rows(wide, TERN_LAYOUT_T2, rows, cols, 0, rows, trits);
            for (uint32_t i = 0; i < padded(rows, 64) / 64 * n_runs; i++) {
                _Alignas(64) uint8_t run[2048], in[1664];
                uint32_t shift;
                memcpy(in, packed + (size_t)i * sizeof in, sizeof in);
                tn_unpack_t5_ref(run, sizeof run, in, 1);
                assert_memory_equal(run, wide + position(TERN_LAYOUT_T2, rows, cols,
                                                         i / n_runs * 64, i % n_runs * 128, &shift),
                                    sizeof run);
            }
            tn_unpack_rows(back, packed, TERN_LAYOUT_T5, rows, cols, rows - 1, 1);
            assert_memory_equal(back, trits + (size_t)(rows - 1) * cols, cols);
            free(trits), free(back), free(packed), free(wide);
        }
}

/* ---- scales of T2 ---- */

/* By the format's header: bands of 256 rows, groups, tiles of 64 rows, rows. */
static size_t scale_position(uint32_t rows, uint32_t cols, uint32_t group, uint32_t r, uint32_t c)
{
    const size_t n_groups = padded(cols, group) / group;
    const size_t band_tiles = padded(rows, 64) / 64 - r / 256 * 4;
    const size_t n_tiles = band_tiles < 4 ? band_tiles : 4;
    return (size_t)(r / 256) * 256 * n_groups + (c / group * n_tiles + r % 256 / 64) * 64 + r % 64;
}

static void check_scales(uint32_t rows, uint32_t cols, uint32_t group, bool is_f16)
{
    const uint32_t n_groups = padded(cols, group) / group;
    const size_t n = (size_t)padded(rows, 64) * n_groups;
    float *scales = malloc((size_t)rows * n_groups * sizeof *scales), *row = malloc(cols * 4u);
    int8_t *trits = malloc((size_t)rows * cols);
    uint8_t *packed = malloc((size_t)tn_layout_size(TERN_LAYOUT_T2, rows, cols));
    void *got = malloc(n * 4), *expected = calloc(n, 4);
    fill_random(trits, (size_t)rows * cols, rows + cols);
    tn_pack_rows(packed, TERN_LAYOUT_T2, rows, cols, 0, rows, trits);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t g = 0; g < n_groups; g++) {
            /* exact in f16 and f32 */
            const float scale = (float)((r * 31 + g * 7) % 2048) * 0x1p-12f;
            const size_t at = scale_position(rows, cols, group, r, g * group);
            scales[(size_t)r * n_groups + g] = scale;
            if (is_f16)
                ((uint16_t *)expected)[at] = tn_f32_to_f16(scale);
            else
                ((float *)expected)[at] = scale;
        }
    assert_int_equal(tn_n_scales(rows, cols, group), n);
    memset(got, 0xAA, n * 4);
    for (uint32_t r = 0; r < rows; r += TN_PACK_ROWS)
        tn_pack_scales(got, is_f16, rows, cols, group, r,
                       rows - r < TN_PACK_ROWS ? rows - r : TN_PACK_ROWS,
                       scales + (size_t)r * n_groups);
    assert_memory_equal(got, expected, n * (is_f16 ? 2 : 4));
    const struct tn_scaled_ternary m = {{packed, rows, cols, TERN_LAYOUT_T2}, got, group, is_f16};
    for (uint32_t r = 0; r < rows; r += 61) {
        tn_unpack_row_f32(row, &m, r);
        for (uint32_t c = 0; c < cols; c++)
            assert_true(row[c] == (float)trits[(size_t)r * cols + c] *
                                      scales[(size_t)r * n_groups + c / group]);
    }
    free(scales);
    free(row);
    free(trits);
    free(packed);
    free(got);
    free(expected);
}

static void test_scales(void **state)
{
    (void)state;
    static const uint32_t rows[] = {1, 63, 64, 65, 256, 257, 320, 600};
    static const uint32_t groups[] = {64, 128, 192, 256, 1u << 20};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (uint32_t cols = 63; cols < 520; cols += 65)
                check_scales(rows[r], cols, groups[g], cols % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_codes_of_t5),
        cmocka_unit_test(test_shapes_of_t5),
        cmocka_unit_test(test_blocks_are_independent),
        cmocka_unit_test(test_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

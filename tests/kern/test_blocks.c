/* SPDX-License-Identifier: MIT
 *
 * The block layouts of matrices: known answers for every GGUF type, every row of a tile, the byte
 * order that tern/matrix_layouts.h specifies, and refused scales.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/half.h"
#include "base/rng.h"
#include "kern/blocks_source.h"

static void *read_file(const char *name, const char *end, size_t *n_bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/reference/dense/gguf/blocks/%s.%s", TERN_SHARED_DIR, name, end);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    void *data = malloc(1 << 20);
    assert_non_null(data);
    *n_bytes = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

/* Compares bits, except for the sign of zero. */
static void check_value(const char *name, size_t i, float got, float want)
{
    if (tn_f32_to_bits(got) != tn_f32_to_bits(want) && !(got == 0 && want == 0))
        fail_msg("%s: value %zu is %.9g, expected %.9g", name, i, (double)got, (double)want);
}

/* Packs the file's blocks as a matrix of n_rows equal rows: each row of a tile must unpack
 * correctly. */
static void check_known(const struct blocks_type *type, const uint8_t *source, size_t n_bytes,
                        const float *want, uint32_t n_rows)
{
    const uint32_t cols = (uint32_t)(n_bytes / type->n_bytes * type->block);
    struct tn_blocks w = {.rows = n_rows, .cols = cols, .layout = type->layout};
    uint8_t *rows = malloc(n_rows * n_bytes);
    uint8_t *packed = tn_alloc_aligned(tn_blocks_bytes(w.layout, n_rows, cols), 64);
    float *got = malloc(cols * sizeof *got);
    assert_true(rows && packed && got);
    for (uint32_t r = 0; r < n_rows; r++)
        memcpy(rows + r * n_bytes, source, n_bytes);
    assert_int_equal(tn_blocks_source_bytes(w.layout, cols), n_bytes);
    assert_true(tn_blocks_are_finite(rows, w.layout, n_rows, cols));
    tn_blocks_pack(packed, w.layout, rows, n_rows, cols);
    w.data = packed;
    for (uint32_t r = 0; r < n_rows; r++) {
        tn_blocks_unpack_row(got, &w, r);
        for (size_t i = 0; i < cols; i++)
            check_value(type->name, i, got[i], want[i]);
    }
    free(rows);
    tn_free_aligned(packed);
    free(got);
}

static void test_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BLOCKS_TYPES; i++) {
        const struct blocks_type *type = &blocks_types[i];
        size_t n_bytes, n_want;
        if (!type->has_known_answers)
            continue;
        uint8_t *source = read_file(type->name, "bin", &n_bytes);
        float *want = read_file(type->name, "f32", &n_want);
        assert_int_equal(n_bytes % type->n_bytes, 0);
        assert_int_equal(n_want, n_bytes / type->n_bytes * type->block * sizeof *want);
        check_known(type, source, n_bytes, want, 1);
        check_known(type, source, n_bytes, want, 17);
        free(source);
        free(want);
    }
}

/* Q4_1 and Q5_1, for which there are no files: compared with their definition, d * q + m. */
static void test_types_with_offset(void **state)
{
    (void)state;
    static const uint32_t layouts[] = {TERN_LAYOUT_Q4_1, TERN_LAYOUT_Q5_1};
    struct tn_rng rng;
    tn_rng_seed(&rng, 5);
    for (size_t i = 0; i < 2; i++) {
        const struct blocks_type *type = blocks_type_of(layouts[i]);
        enum { N = 40 };
        uint8_t source[N * 24];
        float want[N * 32];
        blocks_fill(source, type, N, FILL_BLOCKS_RANDOM, &rng);
        for (uint32_t b = 0; b < N; b++) {
            const uint8_t *block = source + b * type->n_bytes;
            const double d = (double)tn_f16_to_f32(tn_load_u16(block));
            const double m = (double)tn_f16_to_f32(tn_load_u16(block + 2));
            const uint8_t *qs = block + type->n_bytes - 16;
            for (uint32_t c = 0; c < 32; c++) {
                uint32_t q = c < 16 ? qs[c] & 15 : qs[c - 16] >> 4;
                if (type->layout == TERN_LAYOUT_Q5_1)
                    q |= (tn_load_u32(block + 4) >> c & 1) << 4;
                want[b * 32 + c] = (float)(d * q + m);
            }
        }
        check_known(type, source, N * type->n_bytes, want, 1);
        check_known(type, source, N * type->n_bytes, want, 33);
    }
}

/* Files grow by the padding of rows, and by at most a cache line per tile.  The types with a byte
 * per code in a source block take 3 or 4 bits of it. */
static void test_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BLOCKS_TYPES; i++)
        for (uint32_t cols = 256; cols <= 8192; cols += 256)
            for (uint32_t rows = 15; rows <= 33; rows++) {
                const struct blocks_type *type = &blocks_types[i];
                const uint64_t padded = (rows + 15) / 16 * 16;
                const uint32_t bits = type->layout == TERN_LAYOUT_IQ2_S ? 3 : 4;
                const uint32_t spare = type->n_bytes > 256 ? (8 - bits) * 32 : 0;
                const uint64_t source = padded * (cols / type->block) * (type->n_bytes - spare);
                const uint64_t bytes = tn_blocks_bytes(type->layout, rows, cols);
                assert_true(bytes >= source && bytes - source <= padded / 16 * 32);
                assert_int_equal(bytes % 64, 0);
            }
}

/* The bytes of a tile by the format's header; Q6_K has every kind of section. */
static void test_order(void **state)
{
    (void)state;
    enum { ROWS = 20, COLS = 512 };
    const struct blocks_type *type = blocks_type_of(TERN_LAYOUT_Q6_K);
    static uint8_t source[ROWS * 2 * 210], packed[2 * (64 + 2 * (256 + 8 * 384))];
    struct tn_rng rng;
    tn_rng_seed(&rng, 6);
    blocks_fill(source, type, ROWS * 2, FILL_BLOCKS_RANDOM, &rng);
    assert_int_equal(sizeof packed, tn_blocks_bytes(TERN_LAYOUT_Q6_K, ROWS, COLS));
    tn_blocks_pack(packed, TERN_LAYOUT_Q6_K, source, ROWS, COLS);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLS; c++) {
            const uint8_t *b = source + (r * 2 + c / 256) * 210;
            const uint32_t l = c % 128, half = c % 256 / 128;
            const uint8_t ql = b[64 * half + l % 64], qh = b[128 + 32 * half + l % 32];
            const uint32_t q = (l < 64 ? ql & 15 : ql >> 4) | (qh >> l / 32 * 2 & 3) << 4;
            const uint8_t *tile = packed + r / 16 * (sizeof packed / 2);
            const uint8_t *span = tile + 64 + c / 256 * (256 + 8 * 384);
            const uint8_t *cell = span + 256 + c % 256 / 32 * 384;
            const uint32_t row = r % 16, in_cell = c % 32;
            const uint8_t low = cell[in_cell / 8 * 64 + row * 4 + in_cell % 4];
            const uint8_t high = cell[256 + in_cell / 16 * 64 + row * 4 + in_cell % 4];
            assert_int_equal(low >> in_cell % 8 / 4 * 4 & 15, q & 15);
            assert_int_equal(high >> in_cell % 16 / 4 * 2 & 3, q >> 4);
            assert_memory_equal(tile + c / 256 * 32 + row * 2, b + 208, 2);
            assert_int_equal(span[c % 256 / 64 * 64 + row * 4 + c % 64 / 16],
                             b[192 + c % 256 / 16]);
        }
}

static void test_special_scales(void **state)
{
    (void)state;
    static const uint16_t special[] = {0x7C00, 0xFC00, 0x7E00, 0xFC01};
    struct tn_rng rng;
    tn_rng_seed(&rng, 7);
    for (size_t i = 0; i < N_BLOCKS_TYPES; i++)
        for (uint32_t k = 0; k < 2; k++) {
            const struct blocks_type *type = &blocks_types[i];
            uint8_t source[6 * TN_MOST_SOURCE_BYTES];
            blocks_fill(source, type, 6, FILL_BLOCKS_RANDOM, &rng);
            assert_true(tn_blocks_are_finite(source, type->layout, 2, 3 * type->block));
            if (k >= type->n_scales)
                continue;
            memcpy(source + 4 * type->n_bytes + type->scale[k], &special[i % 4], 2);
            assert_false(tn_blocks_are_finite(source, type->layout, 2, 3 * type->block));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_types_with_offset),
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_order),
        cmocka_unit_test(test_special_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

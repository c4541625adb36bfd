/* SPDX-License-Identifier: MIT
 *
 * Packing in two steps that compilers vectorise.  First, four trits become a byte together with
 * their neighbours in a row; then strips of 64 x 64 bytes are transposed for the layouts that store
 * columns together (T2, C2).
 */
#include "kern/pack.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/half.h"
#include "kern/kern.h"
#include "kern/t5.h"
#include "tern/matrix_layouts.h"

#define STRIP 64u          /* bytes per layout unit: rows of a T2 tile, bytes of an R2/C2 block */
#define PADDING_BYTE 0x55u /* four times code 1 */

/* Bytes of a row of R2, or of a column of C2, of n elements. */
static size_t block_bytes(uint32_t n)
{
    return (size_t)tn_div_ceil_u32(n, TERN_R2_COL_ALIGN) * STRIP;
}

/* dst[i] = the codes of a[i], b[i], c[i], d[i] in bits 0-1, 2-3, 4-5, 6-7. */
static void combine(uint8_t *dst, const int8_t *a, const int8_t *b, const int8_t *c,
                    const int8_t *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        dst[i] = (uint8_t)((a[i] + 1) | (b[i] + 1) << 2 | (c[i] + 1) << 4 | (d[i] + 1) << 6);
}

/* dst[i] = the codes of trits 4i, 4i+1, 4i+2, 4i+3. */
static void combine_neighbours(uint8_t *dst, const int8_t *trits, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        /* Adds 1 to each byte; no carry reaches the next. */
        uint32_t x = tn_load_u32(trits + 4 * (size_t)i);
        x = ((x & 0x7F7F7F7Fu) + 0x01010101u) ^ (x & 0x80808080u);
        x |= x >> 6;
        dst[i] = (uint8_t)(x | x >> 12);
    }
}

/* Swaps the bytes of *b selected by `low` with those of *a that are `shift` bits higher. */
static TN_ALWAYS_INLINE void swap_bytes(uint64_t *a, uint64_t *b, uint32_t shift, uint64_t low)
{
    const uint64_t changed = (*a >> shift ^ *b) & low;
    *b ^= changed;
    *a ^= changed << shift;
}

/* dst[c * stride + r] = src[r][c] for 8 rows r and 8 columns c: swaps halves, then quarters, then
 * single bytes across the diagonal. */
static TN_ALWAYS_INLINE void transpose_8(uint8_t *dst, size_t stride, uint8_t (*src)[STRIP],
                                         uint32_t c)
{
    uint64_t x[8];
    for (uint32_t i = 0; i < 8; i++)
        x[i] = tn_load_u64(&src[i][c]);
    for (uint32_t i = 0; i < 4; i++)
        swap_bytes(&x[i], &x[i + 4], 32, 0x00000000FFFFFFFFu);
    for (uint32_t i = 0; i < 8; i += 4)
        for (uint32_t k = i; k < i + 2; k++)
            swap_bytes(&x[k], &x[k + 2], 16, 0x0000FFFF0000FFFFu);
    for (uint32_t i = 0; i < 8; i += 2)
        swap_bytes(&x[i], &x[i + 1], 8, 0x00FF00FF00FF00FFu);
    for (uint32_t i = 0; i < 8; i++)
        memcpy(dst + (c + i) * stride, &x[i], sizeof x[i]);
}

/* dst[c * stride + r] = src[r][c] for 64 rows r and n columns c. */
static void transpose(uint8_t *dst, size_t stride, uint8_t src[STRIP][STRIP], uint32_t n)
{
    const uint32_t n_full = n / 8 * 8;
    for (uint32_t r = 0; r < STRIP; r += 8)
        for (uint32_t c = 0; c < n_full; c += 8)
            transpose_8(dst + r, stride, src + r, c);
    for (uint32_t c = n_full; c < n; c++)
        for (uint32_t r = 0; r < STRIP; r++)
            dst[c * stride + r] = src[r][c];
}

/* Offset of the run of T2 that holds 64 rows and 128 columns; row is a multiple of 64. */
static size_t t2_run_offset(uint32_t rows, uint32_t cols, uint32_t row, uint32_t col)
{
    const size_t run_bytes = (size_t)TERN_T2_TILE_ROWS * TERN_T2_COL_ALIGN / 4;
    const uint32_t band = row / TERN_T2_BAND_ROWS * TERN_T2_BAND_ROWS;
    const uint32_t n_tiles =
        tn_div_ceil_u32(TN_MIN(rows - band, TERN_T2_BAND_ROWS), TERN_T2_TILE_ROWS);
    const size_t before_band =
        (size_t)band / TERN_T2_TILE_ROWS * tn_div_ceil_u32(cols, TERN_T2_COL_ALIGN);
    return (before_band + (size_t)(col / TERN_T2_COL_ALIGN) * n_tiles +
            (row - band) / TERN_T2_TILE_ROWS) * run_bytes;
}

/* Packs up to 64 rows and 128 columns of [n_rows][cols], starting at first. */
static void pack_t2_run(uint8_t *dst, uint32_t cols, const int8_t *first, uint32_t n_rows,
                        uint32_t n_cols)
{
    uint8_t strip[STRIP][STRIP];
    int8_t last[TERN_T2_COL_ALIGN]; /* the columns of an incomplete run */
    memset(strip, PADDING_BYTE, sizeof strip);
    for (uint32_t r = 0; r < n_rows; r++) {
        const int8_t *row = first + (size_t)r * cols;
        if (n_cols < TERN_T2_COL_ALIGN) {
            memset(last, 0, sizeof last);
            memcpy(last, row, n_cols);
            row = last;
        }
        combine_neighbours(strip[r], row, TERN_T2_COL_ALIGN / 4);
    }
    transpose(dst, STRIP, strip, TERN_T2_COL_ALIGN / 4);
}

static void pack_t2(uint8_t *dst, uint32_t rows, uint32_t cols, uint32_t row_begin,
                    uint32_t n_rows, const int8_t *trits)
{
    for (uint32_t r = 0; r < n_rows; r += TERN_T2_TILE_ROWS)
        for (uint32_t c = 0; c < cols; c += TERN_T2_COL_ALIGN)
            pack_t2_run(dst + t2_run_offset(rows, cols, row_begin + r, c), cols,
                        trits + (size_t)r * cols + c, TN_MIN(TERN_T2_TILE_ROWS, n_rows - r),
                        TN_MIN(TERN_T2_COL_ALIGN, cols - c));
}

static size_t t5_run_offset(uint32_t cols, uint32_t row, uint32_t col)
{
    const size_t n_runs = tn_div_ceil_u32(cols, TERN_T2_COL_ALIGN);
    return (row / TERN_T2_TILE_ROWS * n_runs + col / TERN_T2_COL_ALIGN) * TERN_T5_RUN_BYTES;
}

static void pack_t5(uint8_t *dst, uint32_t rows, uint32_t cols, uint32_t row_begin,
                    uint32_t n_rows, const int8_t *trits)
{
    _Alignas(64) uint8_t run[TERN_T2_RUN_BYTES], packed[TERN_T5_RUN_BYTES];
    (void)rows;
    for (uint32_t r = 0; r < n_rows; r += TERN_T2_TILE_ROWS)
        for (uint32_t c = 0; c < cols; c += TERN_T2_COL_ALIGN) {
            pack_t2_run(run, cols, trits + (size_t)r * cols + c,
                        TN_MIN(TERN_T2_TILE_ROWS, n_rows - r), TN_MIN(TERN_T2_COL_ALIGN, cols - c));
            t5_pack_run(packed, run);
            memcpy(dst + t5_run_offset(cols, row_begin + r, c), packed, sizeof packed);
        }
}

static void pack_r2(uint8_t *dst, uint32_t rows, uint32_t cols, uint32_t row_begin,
                    uint32_t n_rows, const int8_t *trits)
{
    (void)rows;
    const uint32_t n_blocks = tn_div_ceil_u32(cols, TERN_R2_COL_ALIGN);
    dst += (size_t)row_begin * n_blocks * STRIP;
    int8_t last[TERN_R2_COL_ALIGN];
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t b = 0; b < n_blocks; b++, dst += STRIP) {
            const uint32_t c = b * TERN_R2_COL_ALIGN;
            const int8_t *t = trits + (size_t)r * cols + c;
            if (cols - c < TERN_R2_COL_ALIGN) {
                memset(last, 0, sizeof last);
                memcpy(last, t, cols - c);
                t = last;
            }
            combine(dst, t, t + STRIP, t + 2 * STRIP, t + 3 * STRIP, STRIP);
        }
    }
}

static void pack_c2(uint8_t *dst, uint32_t rows, uint32_t cols, uint32_t row_begin,
                    uint32_t n_rows, const int8_t *trits)
{
    static const int8_t zeros[STRIP];
    const size_t column_bytes = block_bytes(rows);
    uint8_t strip[STRIP][STRIP];
    for (uint32_t r = 0; r < n_rows; r += TERN_C2_ROW_ALIGN) {
        uint8_t *block = dst + (row_begin + r) / TERN_C2_ROW_ALIGN * (size_t)STRIP;
        for (uint32_t c = 0; c < cols; c += STRIP) {
            const uint32_t n = TN_MIN(STRIP, cols - c);
            for (uint32_t j = 0; j < STRIP; j++) {
                const int8_t *part[4];
                for (uint32_t k = 0; k < 4; k++) {
                    const uint32_t row = r + j + k * STRIP;
                    part[k] = row < n_rows ? trits + (size_t)row * cols + c : zeros;
                }
                combine(strip[j], part[0], part[1], part[2], part[3], n);
            }
            transpose(block + c * column_bytes, column_bytes, strip, n);
        }
    }
}

/* Element i of a row of 64-byte blocks of 256 elements: R2's columns, C2's rows. */
static int8_t block_trit(const uint8_t *blocks, uint32_t i)
{
    const uint8_t byte = blocks[i / 256 * STRIP + i % STRIP];
    return (int8_t)((byte >> (i % 256 / STRIP * 2) & 3) - 1);
}

/* run: the run that contains the row and column */
static int8_t run_trit(const uint8_t *run, uint32_t row, uint32_t col)
{
    const uint8_t byte = run[col % TERN_T2_COL_ALIGN / 4 * STRIP + row % TERN_T2_TILE_ROWS];
    return (int8_t)((byte >> (col % 4 * 2) & 3) - 1);
}

static int8_t trit_t2(const uint8_t *src, uint32_t rows, uint32_t cols, uint32_t row, uint32_t col)
{
    return run_trit(src + t2_run_offset(rows, cols, row, col), row, col);
}

/* Unpacks the whole run for one trit: for callers that need few. */
static int8_t trit_t5(const uint8_t *src, uint32_t rows, uint32_t cols, uint32_t row, uint32_t col)
{
    _Alignas(64) uint8_t run[TERN_T2_RUN_BYTES], packed[TERN_T5_RUN_BYTES];
    (void)rows;
    memcpy(packed, src + t5_run_offset(cols, row, col), sizeof packed);
    t5_unpack_run(run, packed);
    return run_trit(run, row, col);
}

static int8_t trit_r2(const uint8_t *src, uint32_t rows, uint32_t cols, uint32_t row, uint32_t col)
{
    (void)rows;
    return block_trit(src + row * block_bytes(cols), col);
}

static int8_t trit_c2(const uint8_t *src, uint32_t rows, uint32_t cols, uint32_t row, uint32_t col)
{
    (void)cols;
    return block_trit(src + col * block_bytes(rows), row);
}

/* ---- by layout ---- */

static const struct packing {
    uint32_t layout;
    void (*pack)(uint8_t *dst, uint32_t rows, uint32_t cols, uint32_t row_begin, uint32_t n_rows,
                 const int8_t *trits);
    int8_t (*trit)(const uint8_t *src, uint32_t rows, uint32_t cols, uint32_t row, uint32_t col);
} packings[] = {
    {TERN_LAYOUT_T2, pack_t2, trit_t2},
    {TERN_LAYOUT_T5, pack_t5, trit_t5},
    {TERN_LAYOUT_R2, pack_r2, trit_r2},
    {TERN_LAYOUT_C2, pack_c2, trit_c2},
};

static const struct packing *packing_of(uint32_t layout)
{
    uint32_t i = 0;
    while (packings[i].layout != layout) {
        i++;
        assert(i < TN_COUNT_OF(packings) && "callers know that the layout is ternary");
    }
    return &packings[i];
}

void tn_pack_rows(uint8_t *dst, uint32_t layout, uint32_t rows, uint32_t cols, uint32_t row_begin,
                  uint32_t n_rows, const int8_t *trits)
{
    assert(row_begin % TN_PACK_ROWS == 0 && row_begin + n_rows <= rows);
    assert(n_rows % TN_PACK_ROWS == 0 || row_begin + n_rows == rows);
    packing_of(layout)->pack(dst, rows, cols, row_begin, n_rows, trits);
}

void tn_unpack_rows(int8_t *trits, const uint8_t *src, uint32_t layout, uint32_t rows,
                    uint32_t cols, uint32_t row_begin, uint32_t n_rows)
{
    const struct packing *p = packing_of(layout);
    for (uint32_t r = row_begin; r < row_begin + n_rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            *trits++ = p->trit(src, rows, cols, r, c);
}

size_t tn_scale_index(uint32_t rows, uint32_t cols, uint32_t group, uint32_t row, uint32_t i_group)
{
    const uint32_t band = row / TERN_T2_BAND_ROWS * TERN_T2_BAND_ROWS;
    const size_t n_tiles =
        tn_div_ceil_u32(TN_MIN(rows - band, TERN_T2_BAND_ROWS), TERN_T2_TILE_ROWS);
    return (size_t)band * tn_n_groups(cols, group) +
           (i_group * n_tiles + (row - band) / TERN_T2_TILE_ROWS) * TERN_T2_TILE_ROWS +
           row % TERN_T2_TILE_ROWS;
}

void tn_pack_scales(void *dst, bool is_f16, uint32_t rows, uint32_t cols, uint32_t group,
                    uint32_t row_begin, uint32_t n_rows, const float *scales)
{
    const uint32_t n_groups = tn_n_groups(cols, group);
    assert(row_begin % TN_PACK_ROWS == 0 && row_begin + n_rows <= rows);
    assert(n_rows % TN_PACK_ROWS == 0 || row_begin + n_rows == rows);
    for (uint32_t tile = 0; tile < n_rows; tile += TERN_T2_TILE_ROWS)
        for (uint32_t g = 0; g < n_groups; g++) {
            const size_t at = tn_scale_index(rows, cols, group, row_begin + tile, g);
            for (uint32_t i = 0; i < TERN_T2_TILE_ROWS; i++) {
                const float scale =
                    tile + i < n_rows ? scales[(size_t)(tile + i) * n_groups + g] : 0.0f;
                if (is_f16)
                    ((uint16_t *)dst)[at + i] = tn_f32_to_f16(scale);
                else
                    ((float *)dst)[at + i] = scale;
            }
        }
}

void tn_unpack_row_f32(float *dst, const struct tn_scaled_ternary *m, uint32_t row)
{
    const struct tn_ternary *w = &m->w;
    for (uint32_t c = 0; c < w->cols; c++) {
        const int8_t trit = trit_t2(w->data, w->rows, w->cols, row, c);
        const size_t at = tn_scale_index(w->rows, w->cols, m->group, row, c / m->group);
        const float scale = m->is_f16 ? tn_f16_to_f32(((const uint16_t *)m->scales)[at])
                                      : ((const float *)m->scales)[at];
        dst[c] = (float)trit * scale;
    }
}

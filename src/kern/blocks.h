/* SPDX-License-Identifier: MIT
 *
 * Matrices quantised in blocks of 32 or 256 columns, as GGUF files hold them (Q8_0, Q4_K, ...), in
 * the layouts of the same names (tern/matrix_layouts.h): 16 rows interleaved, scales separate from
 * codes.  Every weight keeps its exact value:
 *
 *   w = D * q - M      D = d * factor * s, M = dmin * m and D * q are exact in f32
 *
 * Portable and stateless.  The converter packs; kernels, formats, tests and `verify` read.
 */
#ifndef TN_BLOCKS_H
#define TN_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "tern/matrix_layouts.h"

struct tn_blocks {
    const uint8_t *data; /* [64], tn_blocks_bytes(layout, rows, cols) */
    uint32_t rows;
    uint32_t cols;       /* a multiple of tn_block_shape(layout).block */
    uint32_t layout;     /* one for which tn_is_blocks() */
};

#define TN_TILE_ROWS TERN_BLOCK_TILE_ROWS
#define TN_CELL_COLS 32u  /* columns stored together; they share the input's factor */
#define TN_SPAN_COLS 256u /* columns that share words of scales */
#define TN_SPAN_CELLS (TN_SPAN_COLS / TN_CELL_COLS)

enum tn_code {
    TN_CODE_UNSIGNED, /* q = code - offset */
    TN_CODE_SIGNED,   /* q = code, as int8 */
    TN_CODE_IQ4,      /* this and the rest: q = tn_code_table(code)[i] - offset */
    TN_CODE_IQ2,
    TN_CODE_IQ3_XXS,
    TN_CODE_IQ3_S,
};

/* How the scales of a row's block are stored: as f16, or as integers, the factors of d and dmin, in
 * the words.  Each is named after its first layout. */
enum tn_block_scales {
    TN_SCALES_F16,
    TN_SCALES_Q2_K,
    TN_SCALES_Q3_K,
    TN_SCALES_Q4_K,
    TN_SCALES_Q6_K,
    TN_SCALES_IQ4_XS,
    TN_SCALES_IQ2_S,
};

/* The parameters of a layout.  Functions inlined with a constant layout fold them away. */
struct tn_block_shape {
    uint32_t block;    /* columns of a source block: 32 or 256; they share the halves */
    uint32_t n_halves; /* 16-bit values of a row's block: d, then dmin, m or high bits of scales */
    uint32_t n_words;  /* 32-bit words with the scales of a row's block of 256 */
    uint32_t low;      /* bits of the first plane of codes: 8, 4 or 2 */
    uint32_t high;     /* bits of the second plane: 0, 1 or 2 */
    uint32_t sub;      /* columns that share a scale: 16 or 32 */
    uint32_t offset;
    enum tn_code code;
    bool has_min;
    enum tn_block_scales scales;
    float factor; /* of d; a power of two */
};

static TN_ALWAYS_INLINE struct tn_block_shape tn_block_shape(uint32_t layout)
{
    switch (layout) {
#define SHAPE(name, ...)                                                                           \
    case TERN_LAYOUT_##name:                                                                       \
        return (struct tn_block_shape){__VA_ARGS__};
    /*              block halves words low high sub offset */
    SHAPE(Q8_0, 32, 1, 0, 8, 0, 32, 128, TN_CODE_SIGNED, false, TN_SCALES_F16, 1)
    SHAPE(Q4_0, 32, 1, 0, 4, 0, 32, 8, TN_CODE_UNSIGNED, false, TN_SCALES_F16, 1)
    SHAPE(Q4_1, 32, 2, 0, 4, 0, 32, 0, TN_CODE_UNSIGNED, true, TN_SCALES_F16, 1)
    SHAPE(Q5_0, 32, 1, 0, 4, 1, 32, 16, TN_CODE_UNSIGNED, false, TN_SCALES_F16, 1)
    SHAPE(Q5_1, 32, 2, 0, 4, 1, 32, 0, TN_CODE_UNSIGNED, true, TN_SCALES_F16, 1)
    SHAPE(IQ4_NL, 32, 1, 0, 4, 0, 32, 128, TN_CODE_IQ4, false, TN_SCALES_F16, 1)
    SHAPE(IQ4_XS, 256, 2, 1, 4, 0, 32, 128, TN_CODE_IQ4, false, TN_SCALES_IQ4_XS, 1)
    SHAPE(Q2_K, 256, 2, 4, 2, 0, 16, 0, TN_CODE_UNSIGNED, true, TN_SCALES_Q2_K, 1)
    SHAPE(Q3_K, 256, 1, 3, 2, 1, 16, 4, TN_CODE_UNSIGNED, false, TN_SCALES_Q3_K, 1)
    SHAPE(Q4_K, 256, 2, 3, 4, 0, 32, 0, TN_CODE_UNSIGNED, true, TN_SCALES_Q4_K, 1)
    SHAPE(Q5_K, 256, 2, 3, 4, 1, 32, 0, TN_CODE_UNSIGNED, true, TN_SCALES_Q4_K, 1)
    SHAPE(Q6_K, 256, 1, 4, 4, 2, 16, 32, TN_CODE_UNSIGNED, false, TN_SCALES_Q6_K, 1)
    SHAPE(IQ2_S, 256, 1, 2, 2, 1, 16, 64, TN_CODE_IQ2, false, TN_SCALES_IQ2_S, 0.125f)
    SHAPE(IQ3_XXS, 256, 1, 1, 4, 0, 32, 32, TN_CODE_IQ3_XXS, false, TN_SCALES_IQ2_S, 0.5f)
    SHAPE(IQ3_S, 256, 1, 1, 4, 0, 32, 16, TN_CODE_IQ3_S, false, TN_SCALES_IQ2_S, 1)
#undef SHAPE
    default:
        return (struct tn_block_shape){0};
    }
}

static inline bool tn_is_blocks(uint32_t layout)
{
    return tn_block_shape(layout).block != 0;
}

/* The values q of the codes that are indices, plus the offset.  Of IQ2 6 of 8 codes are used. */
static const _Alignas(16) uint8_t tn_code_tables[][16] = {
    /* IQ4 */ {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    /* IQ2: -43, -25, -8, 8, 25, 43 */ {21, 39, 56, 72, 89, 107, 107, 107},
    /* IQ3_XXS: half of -62, -52, -44, ... -4, 4, ... 44, 52, 62 */
    {1, 6, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 63},
    /* IQ3_S: -15, -13, ... 15 */ {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31},
};

static TN_ALWAYS_INLINE bool tn_code_is_index(enum tn_code code)
{
    return code >= TN_CODE_IQ4;
}
static TN_ALWAYS_INLINE const uint8_t *tn_code_table(enum tn_code code)
{
    return tn_code_tables[code - TN_CODE_IQ4];
}

/* ---- sizes and offsets ---- */

/* Bytes of the halves of a tile of 16 rows, which come first in the tile. */
static TN_ALWAYS_INLINE size_t tn_tile_halves_bytes(struct tn_block_shape s, uint32_t cols)
{
    return ((size_t)cols / s.block * s.n_halves * TN_TILE_ROWS * 2 + 63) / 64 * 64;
}
/* Bytes of a cell of 16 rows x 32 columns.  A span of up to 256 columns is words, then cells. */
static TN_ALWAYS_INLINE size_t tn_cell_bytes(struct tn_block_shape s)
{
    return (size_t)TN_TILE_ROWS * TN_CELL_COLS / 8 * (s.low + s.high);
}
static TN_ALWAYS_INLINE size_t tn_span_words_bytes(struct tn_block_shape s)
{
    return (size_t)s.n_words * TN_TILE_ROWS * 4;
}
static TN_ALWAYS_INLINE size_t tn_span_bytes(struct tn_block_shape s)
{
    return tn_span_words_bytes(s) + TN_SPAN_CELLS * tn_cell_bytes(s);
}
static TN_ALWAYS_INLINE size_t tn_tile_bytes(struct tn_block_shape s, uint32_t cols)
{
    return tn_tile_halves_bytes(s, cols) + (size_t)cols / TN_SPAN_COLS * tn_span_words_bytes(s) +
           (size_t)cols / TN_CELL_COLS * tn_cell_bytes(s);
}

/* Bytes of a matrix, rows padded to 16; rows and cols at most TERN_MAX_DIM. */
uint64_t tn_blocks_bytes(uint32_t layout, uint32_t rows, uint32_t cols);

/* ---- from the blocks of a GGUF file, and to floats ---- */

/* A source block has the bytes of a GGUF file; of IQ2_S, IQ3_XXS and IQ3_S, whose blocks there hold
 * indices of a grid, it is d, the words of its scales and a byte for each code. */
#define TN_MOST_SOURCE_BYTES 266u /* IQ2_S */

/* Bytes of a row of `cols` columns in source blocks. */
size_t tn_blocks_source_bytes(uint32_t layout, uint32_t cols);
/* Whether all scales of n_rows rows of source blocks are finite. */
bool tn_blocks_are_finite(const uint8_t *source, uint32_t layout, uint32_t n_rows, uint32_t cols);
/* Packs n_rows rows, a multiple of 16 except at the end of the matrix, to dst
 * [tn_blocks_bytes(layout, n_rows, cols)], padding rows are zeros. */
void tn_blocks_pack(uint8_t *dst, uint32_t layout, const uint8_t *source, uint32_t n_rows,
                    uint32_t cols);

/* dst [cols] = one row, each value equal to the source's, rounded once to f32. */
void tn_blocks_unpack_row(float *dst, const struct tn_blocks *w, uint32_t row);

/* The offset in w->data of the first scale that is NaN or infinite, or the size of the data if all
 * are finite. */
uint64_t tn_blocks_find_bad(const struct tn_blocks *w);

/* The scale D and minimum M (0 where the layout has none) of a row's `sub` columns from col on, and
 * the values q of n columns from col on, n and col multiples of 4, all within a cell: the
 * specification of the layouts, in plain C. */
void tn_blocks_scale(float *scale, float *minimum, const struct tn_blocks *w, uint32_t row,
                     uint32_t col);
void tn_blocks_codes(int32_t *code, const struct tn_blocks *w, uint32_t row, uint32_t col,
                     uint32_t n);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The layouts of matrices in blocks, value by value: the specification that kernels are tested
 * against, and the packing from the blocks of GGUF files.  A block first becomes codes of one byte
 * each, whatever the order of its bits, and planes are made from these.
 */
#include "kern/blocks.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/half.h"

uint64_t tn_blocks_bytes(uint32_t layout, uint32_t rows, uint32_t cols)
{
    return (uint64_t)tn_div_ceil_u32(rows, TN_TILE_ROWS) *
           tn_tile_bytes(tn_block_shape(layout), cols);
}

/* ---- a tile ---- */

/* Offsets inside a tile of 16 rows. */
static size_t half_at(struct tn_block_shape s, uint32_t col, uint32_t i)
{
    return ((size_t)col / s.block * s.n_halves + i) * (TN_TILE_ROWS * 2);
}

static size_t span_at(struct tn_block_shape s, uint32_t cols, uint32_t col)
{
    return tn_tile_halves_bytes(s, cols) + col / TN_SPAN_COLS * tn_span_bytes(s);
}

static size_t cell_at(struct tn_block_shape s, uint32_t cols, uint32_t col)
{
    return span_at(s, cols, col) + tn_span_words_bytes(s) +
           col % TN_SPAN_COLS / TN_CELL_COLS * tn_cell_bytes(s);
}

/* ---- blocks of GGUF files ---- */

/* Splits n bytes: low nibbles to code, high nibbles to code + n. */
static void split_nibbles(uint8_t *restrict code, const uint8_t *restrict b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        code[i] = b[i] & 15;
        code[n + i] = b[i] >> 4;
    }
}

/* Adds the fifth bit of 32 codes. */
static void add_fifth(uint8_t *code, uint32_t bits)
{
    for (uint32_t i = 0; i < 32; i++)
        code[i] |= (uint8_t)((bits >> i & 1) << 4);
}

/* code[i] |= (b[i] >> shift & mask) << to, for 32 codes. */
static TN_ALWAYS_INLINE void add_bits(uint8_t *restrict code, const uint8_t *restrict b,
                                      uint32_t shift, uint32_t mask, uint32_t to)
{
    for (uint32_t i = 0; i < 32; i++)
        code[i] |= (uint8_t)((b[i] >> shift & mask) << to);
}

/* Functions that take the codes of a block, one byte each, from its bytes. */

static void codes_8(uint8_t *code, const uint8_t *b)
{
    memcpy(code, b, 32);
}

static void codes_4(uint8_t *code, const uint8_t *b)
{
    split_nibbles(code, b, 16);
}

static void codes_5(uint8_t *code, const uint8_t *b)
{
    codes_4(code, b + 4);
    add_fifth(code, tn_load_u32(b));
}

static void codes_iq4_xs(uint8_t *code, const uint8_t *b)
{
    for (uint32_t j = 0; j < 8; j++)
        codes_4(code + 32 * j, b + 16 * j);
}

static void codes_q2_k(uint8_t *code, const uint8_t *b)
{
    memset(code, 0, TN_SPAN_COLS);
    for (uint32_t j = 0; j < 8; j++)
        add_bits(code + 32 * j, b + 32 * (j / 4), 2 * (j % 4), 3, 0);
}

static void codes_q3_k(uint8_t *code, const uint8_t *b)
{
    codes_q2_k(code, b + 32);
    for (uint32_t j = 0; j < 8; j++)
        add_bits(code + 32 * j, b, j, 1, 2);
}

static void codes_q4_k(uint8_t *code, const uint8_t *b)
{
    for (uint32_t n = 0; n < 4; n++)
        split_nibbles(code + 64 * n, b + 32 * n, 32);
}

static void codes_q5_k(uint8_t *code, const uint8_t *b)
{
    codes_q4_k(code, b + 32);
    for (uint32_t j = 0; j < 8; j++)
        add_bits(code + 32 * j, b, j, 1, 4);
}

static void codes_q6_k(uint8_t *code, const uint8_t *b)
{
    for (uint32_t h = 0; h < 2; h++) {
        split_nibbles(code + 128 * h, b + 64 * h, 64);
        for (uint32_t j = 0; j < 4; j++)
            add_bits(code + 128 * h + 32 * j, b + 128 + 32 * h, 2 * j, 3, 4);
    }
}

static void codes_bytes(uint8_t *code, const uint8_t *b)
{
    memcpy(code, b, TN_SPAN_COLS);
}

/* A source block: its size, and the offsets of its parts. */
struct source {
    uint32_t n_bytes, half[2], words, codes;
    void (*take_codes)(uint8_t *code, const uint8_t *b);
};

static const struct source *source_of(uint32_t layout)
{
    static const struct source sources[] = {
#define SOURCE(name) [TERN_LAYOUT_##name - TERN_LAYOUT_Q8_0]
        /*               bytes  halves  words codes */
        SOURCE(Q8_0) = {34, {0, 0}, 0, 2, codes_8},
        SOURCE(Q4_0) = {18, {0, 0}, 0, 2, codes_4},
        SOURCE(Q4_1) = {20, {0, 2}, 0, 4, codes_4},
        SOURCE(Q5_0) = {22, {0, 0}, 0, 2, codes_5},
        SOURCE(Q5_1) = {24, {0, 2}, 0, 4, codes_5},
        SOURCE(IQ4_NL) = {18, {0, 0}, 0, 2, codes_4},
        SOURCE(IQ4_XS) = {136, {0, 2}, 4, 8, codes_iq4_xs},
        SOURCE(Q2_K) = {84, {80, 82}, 0, 16, codes_q2_k},
        SOURCE(Q3_K) = {110, {108, 0}, 96, 0, codes_q3_k},
        SOURCE(Q4_K) = {144, {0, 2}, 4, 16, codes_q4_k},
        SOURCE(Q5_K) = {176, {0, 2}, 4, 16, codes_q5_k},
        SOURCE(Q6_K) = {210, {208, 0}, 192, 0, codes_q6_k},
        SOURCE(IQ2_S) = {266, {0, 0}, 2, 10, codes_bytes},
        SOURCE(IQ3_XXS) = {262, {0, 0}, 2, 6, codes_bytes},
        SOURCE(IQ3_S) = {262, {0, 0}, 2, 6, codes_bytes},
#undef SOURCE
    };
    return &sources[layout - TERN_LAYOUT_Q8_0];
}

size_t tn_blocks_source_bytes(uint32_t layout, uint32_t cols)
{
    return (size_t)(cols / tn_block_shape(layout).block) * source_of(layout)->n_bytes;
}

/* Halves of a block that are scales: d, and dmin or m. */
static uint32_t n_scales_of(struct tn_block_shape s)
{
    return s.has_min ? 2 : 1;
}

static bool is_finite(const uint8_t *half)
{
    return (tn_load_u16(half) & 0x7C00u) != 0x7C00u;
}

bool tn_blocks_are_finite(const uint8_t *source, uint32_t layout, uint32_t n_rows, uint32_t cols)
{
    const struct tn_block_shape s = tn_block_shape(layout);
    const struct source *f = source_of(layout);
    const size_t n_blocks = (size_t)n_rows * (cols / s.block);
    uint32_t n_special = 0;
    for (size_t i = 0; i < n_blocks; i++, source += f->n_bytes)
        for (uint32_t k = 0; k < n_scales_of(s); k++)
            n_special += !is_finite(source + f->half[k]);
    return n_special == 0;
}

/* ---- packing ---- */

/* Byte k of array v: columns (v * 8 / bits + i) * 4 + k, `bits` of each from bit `shift` on. */
static TN_ALWAYS_INLINE void put_plane(uint8_t *plane, const uint8_t *code, const uint32_t bits,
                                       uint32_t shift)
{
    const uint32_t n = 8 / bits;
    for (uint32_t v = 0; v < bits; v++, plane += 4 * TN_TILE_ROWS, code += 4 * n)
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t byte = 0;
            for (uint32_t i = 0; i < n; i++)
                byte |= (code[4 * i + k] >> shift & ((1u << bits) - 1)) << bits * i;
            plane[k] = (uint8_t)byte;
        }
}

static void put_bits(uint8_t *plane, const uint8_t *code, uint32_t bits, uint32_t shift)
{
    switch (bits) {
    case 8:
        put_plane(plane, code, 8, shift);
        break;
    case 4:
        put_plane(plane, code, 4, shift);
        break;
    case 2:
        put_plane(plane, code, 2, shift);
        break;
    case 1:
        put_plane(plane, code, 1, shift);
        break;
    default: /* no second plane */
        break;
    }
}

/* Packs one source block of row `row` of a tile. */
static void pack_block(uint8_t *tile, uint32_t layout, uint32_t cols, uint32_t row, uint32_t col,
                       const uint8_t *b)
{
    const struct tn_block_shape s = tn_block_shape(layout);
    const struct source *f = source_of(layout);
    uint8_t code[TN_SPAN_COLS];
    for (uint32_t i = 0; i < s.n_halves; i++)
        memcpy(tile + half_at(s, col, i) + 2 * row, b + f->half[i], 2);
    for (uint32_t i = 0; i < s.n_words; i++)
        memcpy(tile + span_at(s, cols, col) + 4 * (i * TN_TILE_ROWS + row), b + f->words + 4 * i,
               4);
    f->take_codes(code, b + f->codes);
    for (uint32_t c = 0; c < s.block; c += TN_CELL_COLS) {
        uint8_t *cell = tile + cell_at(s, cols, col + c) + 4 * row;
        put_bits(cell, code + c, s.low, 0);
        put_bits(cell + s.low * (4 * TN_TILE_ROWS), code + c, s.high, s.low);
    }
}

void tn_blocks_pack(uint8_t *dst, uint32_t layout, const uint8_t *source, uint32_t n_rows,
                    uint32_t cols)
{
    const struct tn_block_shape s = tn_block_shape(layout);
    const size_t tile_bytes = tn_tile_bytes(s, cols), n_bytes = source_of(layout)->n_bytes;
    memset(dst, 0, tn_blocks_bytes(layout, n_rows, cols));
    for (uint32_t row = 0; row < n_rows; row++)
        for (uint32_t col = 0; col < cols; col += s.block, source += n_bytes)
            pack_block(dst + row / TN_TILE_ROWS * tile_bytes, layout, cols, row % TN_TILE_ROWS,
                       col, source);
}

/* ---- values ---- */

static const uint8_t *tile_of(const struct tn_blocks *w, struct tn_block_shape s, uint32_t row)
{
    return w->data + row / TN_TILE_ROWS * tn_tile_bytes(s, w->cols);
}

/* `bits` bits of four columns from 4 * group of a cell on, a byte each, for row r of the tile. */
static uint32_t plane_bits(const uint8_t *plane, uint32_t bits, uint32_t r, uint32_t group)
{
    const uint32_t n = 8 / bits; /* groups per byte */
    const uint32_t bytes = tn_load_u32(plane + group / n * (4 * TN_TILE_ROWS) + 4 * r);
    return bytes >> group % n * bits & 0x01010101u * ((1u << bits) - 1);
}

static int32_t value_of(uint32_t code, struct tn_block_shape s)
{
    if (s.code == TN_CODE_SIGNED)
        code ^= 128;
    else if (tn_code_is_index(s.code))
        code = tn_code_table(s.code)[code];
    return (int32_t)code - (int32_t)s.offset;
}

void tn_blocks_codes(int32_t *code, const struct tn_blocks *w, uint32_t row, uint32_t col,
                     uint32_t n)
{
    const struct tn_block_shape s = tn_block_shape(w->layout);
    const uint8_t *cell = tile_of(w, s, row) + cell_at(s, w->cols, col);
    const uint32_t r = row % TN_TILE_ROWS, first = col % TN_CELL_COLS;
    for (uint32_t i = 0; i < n; i += 4) {
        uint32_t bytes = plane_bits(cell, s.low, r, (first + i) / 4);
        if (s.high)
            bytes |= plane_bits(cell + s.low * (4 * TN_TILE_ROWS), s.high, r, (first + i) / 4)
                     << s.low;
        for (uint32_t k = 0; k < 4; k++, bytes >>= 8)
            code[i + k] = value_of(bytes & 255, s);
    }
}

/* Byte i of a row's words, which begin at `w`. */
static uint32_t word_byte(const uint8_t *w, uint32_t i)
{
    return w[i / 4 * (4 * TN_TILE_ROWS) + i % 4];
}

/* The integers s and m of the j-th scale of a block of 256, from a row's words and from `high`,
 * which only IQ4_XS has. */
static void integers(int32_t *scale, int32_t *minimum, enum tn_block_scales scales,
                     const uint8_t *w, uint32_t high, uint32_t j)
{
    uint32_t s, m = 0;
    switch (scales) {
    case TN_SCALES_Q2_K:
        s = word_byte(w, j) & 15;
        m = word_byte(w, j) >> 4;
        break;
    case TN_SCALES_Q3_K:
        s = (word_byte(w, j % 8) >> 4 * (j / 8) & 15) |
            (word_byte(w, 8 + j % 4) >> 2 * (j / 4) & 3) << 4;
        s -= 32;
        break;
    case TN_SCALES_Q6_K:
        s = (uint32_t)(int8_t)word_byte(w, j);
        break;
    case TN_SCALES_IQ4_XS:
        s = ((word_byte(w, j / 2) >> 4 * (j % 2) & 15) | (high >> 2 * j & 3) << 4) - 32;
        break;
    case TN_SCALES_IQ2_S:
        s = 2 * (word_byte(w, j / 2) >> 4 * (j % 2) & 15) + 1;
        break;
    default:
        assert(scales == TN_SCALES_Q4_K);
        s = j < 4 ? word_byte(w, j) & 63
                  : (word_byte(w, j + 4) & 15) | word_byte(w, j - 4) >> 6 << 4;
        m = j < 4 ? word_byte(w, j + 4) & 63
                  : word_byte(w, j + 4) >> 4 | word_byte(w, j) >> 6 << 4;
    }
    *scale = (int32_t)s;
    *minimum = (int32_t)m;
}

void tn_blocks_scale(float *scale, float *minimum, const struct tn_blocks *w, uint32_t row,
                     uint32_t col)
{
    const struct tn_block_shape s = tn_block_shape(w->layout);
    const uint8_t *tile = tile_of(w, s, row);
    const uint32_t r = row % TN_TILE_ROWS;
    uint32_t half[2] = {0, 0};
    for (uint32_t i = 0; i < s.n_halves; i++)
        half[i] = tn_load_u16(tile + half_at(s, col, i) + 2 * r);
    *scale = tn_f16_to_f32((uint16_t)half[0]);
    *minimum = s.has_min ? tn_f16_to_f32((uint16_t)half[1]) : 0.0f;
    if (s.scales == TN_SCALES_F16) { /* the source adds m where we subtract M */
        *minimum = s.has_min ? -*minimum : 0.0f;
        return;
    }
    int32_t i_scale, i_minimum;
    integers(&i_scale, &i_minimum, s.scales, tile + span_at(s, w->cols, col) + 4 * r, half[1],
             col % TN_SPAN_COLS / s.sub);
    *scale *= s.factor * (float)i_scale;
    *minimum *= (float)i_minimum;
}

uint64_t tn_blocks_find_bad(const struct tn_blocks *w)
{
    const struct tn_block_shape s = tn_block_shape(w->layout);
    const uint64_t n_bytes = tn_blocks_bytes(w->layout, w->rows, w->cols);
    const uint32_t n_halves = w->cols / s.block * s.n_halves;
    for (uint64_t tile = 0; tile < n_bytes; tile += tn_tile_bytes(s, w->cols))
        for (uint32_t i = 0; i < n_halves * TN_TILE_ROWS; i++) {
            const uint64_t at = tile + 2 * i;
            if (i / TN_TILE_ROWS % s.n_halves < n_scales_of(s) && !is_finite(w->data + at))
                return at;
        }
    return n_bytes;
}

void tn_blocks_unpack_row(float *dst, const struct tn_blocks *w, uint32_t row)
{
    const uint32_t sub = tn_block_shape(w->layout).sub;
    for (uint32_t col = 0; col < w->cols; col += sub) {
        int32_t code[TN_CELL_COLS];
        float scale, minimum;
        tn_blocks_scale(&scale, &minimum, w, row, col);
        tn_blocks_codes(code, w, row, col, sub);
        for (uint32_t i = 0; i < sub; i++)
            dst[col + i] = scale * (float)code[i] - minimum;
    }
}

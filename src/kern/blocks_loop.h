/* SPDX-License-Identifier: MIT
 *
 * Products of matrices in blocks: the loops that all levels share.  Private to blocks_<isa>.c; each
 * compiles its own copy with its own flags.
 *
 * Up to MAX_FEW_INPUTS inputs read codes directly from the tiles.  For more, 64 rows x 256 columns
 * are unpacked to bytes once, [64 groups of 4 columns][64 rows][4], and multiplied by all of them.
 */

/* Most of the arithmetic uses the compiler's vector types, LANES rows of 32 bits each.  A level
 * defines the rest before the include:
 *
 *   LANES                        rows of a vector: 4, 8 or 16
 *   HAS_SIGNED_CODES             sum_add takes codes of 8 bits as int8, else as uint8 (plus 128)
 *   HAS_PANEL8, HAS_FUSED, HAS_WIDE_PANEL
 *                                blocks_panel8.h, which has the functions that they need
 *   TILE_VECTORS, TILE_INPUTS_8, TILE_INPUTS_16, TILE_SWITCH_8, TILE_SWITCH_16 (switch.h)
 *                                vectors of rows x inputs whose sums stay in registers
 *   GEMV_VECTORS                 the same for one input
 *   FEW_VECTORS, FEW_INPUTS_8, FEW_INPUTS_16
 *                                the same where registers also hold unpacked codes; 3 or 4 inputs
 *   vec, table                   its types of LANES x 32 bits, and of 16 bytes
 *   struct sum, sum_zero, sum_add, sum_end
 *                                exact sums of code * x over up to 32 columns; sum_add takes 4 of
 *                                each row, group g of those of one scale, codes of `bits` (a
 *                                constant), and whether x is a digit, which may be -128
 *   vec table_of(vec, table)     the entries of a table at the indices in each byte
 *   floats_of_halves(p)          LANES f16, finite */
#ifndef TN_BLOCKS_LOOP_H
#define TN_BLOCKS_LOOP_H

#include <string.h>

#include "base/bits.h"
#include "kern/blocks_codes.h"
#include "kern/blocks_x.h"
#include "kern/prefetch.h"
#include "kern/switch.h"

/* ---- addresses ---- */

/* One span of a tile. */
struct tile_span {
    const uint8_t *halves, *words, *cells;
    uint32_t n_cells;
};

static TN_ALWAYS_INLINE struct tile_span tile_span_of(const struct tn_blocks *w, uint32_t row,
                                                      uint32_t col, const uint32_t layout)
{
    const struct tn_block_shape s = tn_block_shape(layout);
    const uint8_t *tile = w->data + row / TN_TILE_ROWS * tn_tile_bytes(s, w->cols);
    const uint8_t *span =
        tile + tn_tile_halves_bytes(s, w->cols) + col / TN_SPAN_COLS * tn_span_bytes(s);
    return (struct tile_span){
        .halves = tile + (size_t)(col / s.block) * s.n_halves * (2 * TN_TILE_ROWS),
        .words = span,
        .cells = span + tn_span_words_bytes(s),
        .n_cells = TN_MIN(w->cols - col, TN_SPAN_COLS) / TN_CELL_COLS,
    };
}

static TN_ALWAYS_INLINE void tile_scales(const struct span_scales *s, const struct tile_span *at,
                                         const uint32_t layout)
{
    for (uint32_t i = 0; i < TILE_STEPS; i++) {
        const struct span_scales part = {s->scale + i * LANES, s->minimum + i * LANES, s->stride};
        take_scales(&part, at->halves + 2 * LANES * i, at->words + 4 * LANES * i, at->n_cells,
                    layout);
    }
}

/* ---- multiplying ---- */

/* The parameters of a product, all constants. */
struct kind {
    uint32_t layout; /* of the codes in their cells; 0: codes unpacked to a panel of bytes */
    uint32_t bits, sub, offset;
    bool has_min;
};

static TN_ALWAYS_INLINE struct kind kind_of(const uint32_t layout)
{
    const struct tn_block_shape s = tn_block_shape(layout);
    return (struct kind){layout, codes_bits(s), s.sub, codes_offset(s), s.has_min};
}

/* Codes of some vectors of rows, and their scales. */
struct cells {
    const uint8_t *codes;
    size_t bytes; /* of a cell */
    const float *scale, *minimum;
    size_t stride; /* of scales */
    uint32_t n;
};

#define PANEL_ROWS 64u
#define PANEL_GROUP_BYTES (4 * PANEL_ROWS)
#define PANEL_CELL_BYTES (TN_CELL_COLS * PANEL_ROWS)

static TN_ALWAYS_INLINE words codes_at(const uint8_t *cell, const uint32_t g, const uint32_t i,
                                       const struct kind kind)
{
    return kind.layout ? take_codes(cell + 4 * LANES * i, g, kind.layout)
                       : load_words(cell + g * PANEL_GROUP_BYTES + 4 * LANES * i);
}

/* y [n_vectors] of one input += the scaled sums of one scale's columns. */
static TN_ALWAYS_INLINE void add_part(floats *y, const struct sum (*sum)[2], const float *scale,
                                      const float *minimum, int32_t minus_x, float factor,
                                      const struct kind kind, const enum blocks_form form,
                                      const uint32_t n_vectors)
{
#pragma GCC unroll 4
    for (uint32_t i = 0; i < n_vectors; i++) {
        ints v = (ints)sum_end(&sum[i][0], kind.bits);
        if (form == FORM_16)
            v = (v << 8) + (ints)sum_end(&sum[i][1], kind.bits);
        if (kind.offset)
            v += ((ints){0} + minus_x) * (int32_t)kind.offset;
        floats t = as_floats(v) * *(const floats *)(const void *)(scale + LANES * i);
        if (kind.has_min)
            t += *(const floats *)(const void *)(minimum + LANES * i) *
                 as_floats((ints){0} + minus_x);
        y[i] += t * factor;
    }
}

/* Sums of scale j of a span for n_inputs inputs (all constants). */
static TN_ALWAYS_INLINE void sum_part(struct sum (*sum)[TILE_VECTORS][2], const uint8_t *cell,
                                      const struct blocks_x *x, const uint32_t col,
                                      const struct kind kind, const enum blocks_form form,
                                      const uint32_t n_vectors, const uint32_t n_inputs)
{
    const uint32_t first = col % TN_CELL_COLS / 4, n_digits = form / 8;
#pragma GCC unroll 8
    for (uint32_t g = 0; g < kind.sub / 4; g++) {
        words w[TILE_VECTORS];
#pragma GCC unroll 4
        for (uint32_t i = 0; i < n_vectors; i++)
            w[i] = codes_at(cell, first + g, i, kind);
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n_inputs; t++)
#pragma GCC unroll 2
            for (uint32_t d = 0; d < n_digits; d++)
#pragma GCC unroll 4
                for (uint32_t i = 0; i < n_vectors; i++)
                    sum_add(&sum[t][i][d], (vec)w[i], x[t].digit[d] + col + 4 * g, kind.bits, g,
                            form == FORM_16);
    }
}

/* y of n_inputs inputs (a constant) += one span. */
static TN_ALWAYS_INLINE void add_span(float *dst, size_t dst_stride, const struct cells *c,
                                      const struct blocks_x *x, const struct kind kind,
                                      const enum blocks_form form, const uint32_t n_vectors,
                                      const uint32_t n_inputs)
{
    floats y[8][TILE_VECTORS];
#pragma GCC unroll 8
    for (uint32_t t = 0; t < n_inputs; t++)
#pragma GCC unroll 4
        for (uint32_t i = 0; i < n_vectors; i++)
            y[t][i] = *(const floats *)(const void *)(dst + t * dst_stride + LANES * i);
    const uint8_t *cell = c->codes;
    for (uint32_t k = 0; k < c->n; k++, cell += c->bytes) {
        if (kind.layout)
#pragma GCC unroll 8
            for (uint32_t i = 0; i < tn_cell_bytes(tn_block_shape(kind.layout)); i += 64)
                tn_request(cell + i, n_inputs == 1 ? TN_PREFETCH_OF(BLOCKS)
                                                   : TN_PREFETCH_OF(BLOCKS_FEW));
#pragma GCC unroll 2
        for (uint32_t h = 0; h < TN_CELL_COLS / kind.sub; h++) {
            const uint32_t j = k * (TN_CELL_COLS / kind.sub) + h;
            struct sum sum[8][TILE_VECTORS][2];
#pragma GCC unroll 8
            for (uint32_t t = 0; t < n_inputs; t++)
#pragma GCC unroll 4
                for (uint32_t i = 0; i < n_vectors; i++)
                    sum_zero(&sum[t][i][0]), sum_zero(&sum[t][i][1]);
            sum_part(sum, cell, x, k * TN_CELL_COLS + h * kind.sub, kind, form, n_vectors,
                     n_inputs);
#pragma GCC unroll 8
            for (uint32_t t = 0; t < n_inputs; t++)
                add_part(y[t], sum[t], c->scale + j * c->stride, c->minimum + j * c->stride,
                         kind.sub == 32 ? x[t].minus_32[j] : x[t].minus_16[j],
                         blocks_x_factor(form, &x[t], k), kind, form, n_vectors);
        }
    }
#pragma GCC unroll 8
    for (uint32_t t = 0; t < n_inputs; t++)
#pragma GCC unroll 4
        for (uint32_t i = 0; i < n_vectors; i++)
            store_floats(dst + t * dst_stride + LANES * i, y[t][i]);
}

/* ---- few inputs ---- */

/* y of n_inputs (a constant) += a span of a tile, whose codes are read in place. */
static TN_ALWAYS_INLINE void add_tile_span(float *dst, size_t dst_stride,
                                           const struct tile_span *at, const struct span_scales *s,
                                           const struct blocks_x *x, const uint32_t layout,
                                           const enum blocks_form form, const uint32_t n_vectors,
                                           const uint32_t n_inputs)
{
    const size_t cell_bytes = tn_cell_bytes(tn_block_shape(layout));
    for (uint32_t i = 0; i < TILE_STEPS; i += n_vectors) {
        const struct cells part = {at->cells + 4 * LANES * i, cell_bytes,
                                   s->scale + LANES * i,      s->minimum + LANES * i,
                                   TN_TILE_ROWS,              at->n_cells};
        add_span(dst + LANES * i, dst_stride, &part, x, kind_of(layout), form, n_vectors,
                 n_inputs);
    }
}

/* Up to this many inputs are multiplied without a panel: unpacking one would take longer, and
 * memory is fastest when whole tiles are read in order. */
#define MAX_FEW_INPUTS 8u

/* y of n_tokens inputs += a span of a tile, in groups of 2 to FEW_INPUTS. */
static TN_ALWAYS_INLINE void add_tile_few(float *dst, size_t dst_stride,
                                          const struct tile_span *at, const struct span_scales *s,
                                          const struct blocks_x *x, uint32_t n_tokens,
                                          const uint32_t layout, const enum blocks_form form)
{
    const uint32_t most = form == FORM_8 ? FEW_INPUTS_8 : FEW_INPUTS_16;
    for (uint32_t n_groups = tn_div_ceil_u32(n_tokens, most), n; n_groups; n_groups--) {
        n = tn_div_ceil_u32(n_tokens, n_groups);
        if (n == 2)
            add_tile_span(dst, dst_stride, at, s, x, layout, form, FEW_VECTORS, 2);
        else if (n == 3 || most == 3)
            add_tile_span(dst, dst_stride, at, s, x, layout, form, FEW_VECTORS, 3);
        else
            add_tile_span(dst, dst_stride, at, s, x, layout, form, FEW_VECTORS, 4);
        dst += n * dst_stride;
        x += n;
        n_tokens -= n;
    }
}

/* The product for one input or for 2 to MAX_FEW_INPUTS. */
static TN_ALWAYS_INLINE void multiply_tiles(float *dst, size_t dst_stride,
                                            const struct tn_blocks *w, uint32_t row_begin,
                                            uint32_t row_end, const uint8_t *memory,
                                            uint32_t n_tokens, const bool is_one,
                                            const uint32_t layout, const enum blocks_form form)
{
    _Alignas(64) float scale[SPAN_PARTS][TN_TILE_ROWS], minimum[SPAN_PARTS][TN_TILE_ROWS];
    const struct span_scales scales = {scale[0], minimum[0], TN_TILE_ROWS};
    const size_t x_bytes = blocks_x_bytes(form, w->cols);
    row_end = TN_MIN(row_end, tn_div_ceil_u32(w->rows, TN_TILE_ROWS) * TN_TILE_ROWS);
    for (uint32_t t = 0; t < n_tokens; t++)
        memset(dst + t * dst_stride, 0, (row_end - row_begin) * sizeof *dst);
    for (uint32_t row = row_begin; row < row_end; row += TN_TILE_ROWS, dst += TN_TILE_ROWS)
        for (uint32_t col = 0; col < w->cols; col += TN_SPAN_COLS) {
            const struct tile_span at = tile_span_of(w, row, col, layout);
            struct blocks_x x[MAX_FEW_INPUTS];
            for (uint32_t t = 0; t < n_tokens; t++)
                x[t] = blocks_x_of(form, memory + t * x_bytes, w->cols, col);
            tile_scales(&scales, &at, layout);
            if (is_one)
                add_tile_span(dst, 0, &at, &scales, x, layout, form, GEMV_VECTORS, 1);
            else
                add_tile_few(dst, dst_stride, &at, &scales, x, n_tokens, layout, form);
        }
}

/* ---- panels ---- */

/* 64 rows x 256 columns, unpacked, with their scales. */
struct panel {
    _Alignas(64) uint8_t codes[TN_SPAN_COLS * PANEL_ROWS];
    float scale[SPAN_PARTS][PANEL_ROWS], minimum[SPAN_PARTS][PANEL_ROWS];
    float bias[SPAN_PARTS][PANEL_ROWS]; /* -PANEL_MAGIC * scale if HAS_FUSED */
    uint32_t n_cells;
};
/* After a panel in the scratch memory of a level with HAS_WIDE_PANEL: its codes as int16. */
#define WIDE_BYTES (2 * TN_SPAN_COLS * PANEL_ROWS)
_Static_assert(sizeof(struct panel) + HAS_WIDE_PANEL * WIDE_BYTES <= TN_GEMM_SCRATCH_BYTES,
               "a panel fits the scratch memory");

#define PANEL_MAGIC 12582912.0f /* 1.5 * 2^23; its bits: */
#define PANEL_MAGIC_BITS 0x4B400000

#if HAS_PANEL8
#include "kern/blocks_panel8.h"
#endif

static TN_ALWAYS_INLINE void unpack_tile(struct panel *p, uint32_t i_tile,
                                         const struct tile_span *at, const uint32_t layout)
{
    const size_t cell_bytes = tn_cell_bytes(tn_block_shape(layout));
    const uint32_t first = i_tile * TN_TILE_ROWS;
    const struct span_scales scales = {p->scale[0] + first, p->minimum[0] + first, PANEL_ROWS};
    uint8_t *dst = p->codes + 4 * first;
    tile_scales(&scales, at, layout);
    for (uint32_t k = 0; k < at->n_cells; k++, dst += PANEL_CELL_BYTES)
        for (uint32_t i = 0; i < TILE_STEPS; i++)
#pragma GCC unroll 8
            for (uint32_t g = 0; g < TN_CELL_COLS / 4; g++)
                *(words *)(void *)(dst + g * PANEL_GROUP_BYTES + 4 * LANES * i) =
                    take_codes(at->cells + k * cell_bytes + 4 * LANES * i, g, layout);
}

/* Rows past the end of the matrix become zeros. */
static TN_ALWAYS_INLINE void unpack_panel(struct panel *p, const struct tn_blocks *w, uint32_t row,
                                          uint32_t col, const uint32_t layout)
{
    const uint32_t end = tn_div_ceil_u32(w->rows, TN_TILE_ROWS) * TN_TILE_ROWS;
    if (row + PANEL_ROWS > end)
        memset(p, 0, sizeof *p);
    p->n_cells = TN_MIN(w->cols - col, TN_SPAN_COLS) / TN_CELL_COLS;
    for (uint32_t i = 0; i < PANEL_ROWS / TN_TILE_ROWS && row < end; i++, row += TN_TILE_ROWS) {
        const struct tile_span at = tile_span_of(w, row, col, layout);
        unpack_tile(p, i, &at, layout);
    }
    const uint32_t n_parts = p->n_cells * (TN_CELL_COLS / tn_block_shape(layout).sub);
    for (uint32_t j = 0; HAS_FUSED && j < n_parts; j++)
        for (uint32_t r = 0; r < PANEL_ROWS; r++)
            p->bias[j][r] = p->scale[j][r] * -PANEL_MAGIC;
}

/* y of n_inputs inputs (a constant) += a panel. */
static TN_ALWAYS_INLINE void multiply_panel(float *dst, size_t dst_stride, const struct panel *p,
                                            const struct blocks_x *x, const struct kind kind,
                                            const enum blocks_form form, const uint32_t n_inputs)
{
    for (uint32_t r = 0; r < PANEL_ROWS; r += LANES * TILE_VECTORS) {
        const struct cells c = {p->codes + 4 * r,   PANEL_CELL_BYTES, p->scale[0] + r,
                                p->minimum[0] + r, PANEL_ROWS,       p->n_cells};
        add_span(dst + r, dst_stride, &c, x, kind, form, TILE_VECTORS, n_inputs);
    }
}

typedef void multiply_fn(float *dst, size_t dst_stride, const struct panel *p,
                         const struct blocks_x *x, uint32_t n_inputs);

/* The products that differ by panel: multiply_<name>_<form>. */
#define PANEL_KIND(name, form, bits, sub, offset, has_min)                                         \
    static void multiply_##name##_##form(float *dst, size_t dst_stride, const struct panel *p,     \
                                         const struct blocks_x *x, uint32_t n_inputs)              \
    {                                                                                              \
        const struct kind kind = {0, bits, sub, offset, has_min};                                  \
        TILE_SWITCH_##form(n_inputs, PANEL_CASE_##form)                                            \
    }
#if HAS_PANEL8
#define PANEL_CASE_8(n) multiply_panel8(dst, dst_stride, p, x, kind, n)
#else
#define PANEL_CASE_8(n) multiply_panel(dst, dst_stride, p, x, kind, FORM_8, n)
#endif
#define PANEL_CASE_16(n) multiply_panel(dst, dst_stride, p, x, kind, FORM_16, n)
#define PANEL_KINDS(form)                                                                          \
    PANEL_KIND(4, form, 4, 32, 8, false)                                                           \
    PANEL_KIND(4_min, form, 4, 32, 0, true)                                                        \
    PANEL_KIND(5, form, 5, 32, 16, false)                                                          \
    PANEL_KIND(5_min, form, 5, 32, 0, true)                                                        \
    PANEL_KIND(6, form, 6, 32, 32, false)                                                          \
    PANEL_KIND(8, form, 8, 32, HAS_SIGNED_CODES ? 0 : 128, false)                                  \
    PANEL_KIND(2_16_min, form, 2, 16, 0, true)                                                     \
    PANEL_KIND(3_16, form, 3, 16, 4, false)                                                        \
    PANEL_KIND(6_16, form, 6, 16, 32, false)                                                       \
    PANEL_KIND(7_16, form, 7, 16, 64, false)
PANEL_KINDS(8)
PANEL_KINDS(16)
#undef PANEL_KINDS

static void multiply_inputs(float *dst, size_t dst_stride, const struct panel *p, const uint8_t *x,
                            uint32_t cols, uint32_t col, uint32_t n_tokens,
                            const enum blocks_form form, multiply_fn *multiply)
{
    const uint32_t most = form == FORM_8 ? TILE_INPUTS_8 : TILE_INPUTS_16;
    const size_t x_bytes = blocks_x_bytes(form, cols);
    for (uint32_t n_groups = tn_div_ceil_u32(n_tokens, most), n; n_groups; n_groups--) {
        struct blocks_x inputs[8];
        n = tn_div_ceil_u32(n_tokens, n_groups);
        for (uint32_t t = 0; t < n; t++, x += x_bytes)
            inputs[t] = blocks_x_of(form, x, cols, col);
        multiply(dst, dst_stride, p, inputs, n);
        dst += n * dst_stride;
        n_tokens -= n;
    }
}

typedef void unpack_fn(struct panel *p, const struct tn_blocks *w, uint32_t row, uint32_t col);

static void multiply_panels(float *dst, size_t dst_stride, const struct tn_blocks *w,
                            uint32_t row_begin, uint32_t row_end, const void *x, uint32_t n_tokens,
                            struct panel *p, const enum blocks_form form, unpack_fn *unpack,
                            multiply_fn *multiply)
{
    row_end = TN_MIN(row_end, w->rows);
    for (uint32_t col = 0; col < w->cols; col += TN_SPAN_COLS)
        for (uint32_t row = row_begin; row < row_end; row += PANEL_ROWS) {
            float *y = dst + (row - row_begin);
            for (uint32_t t = 0; t < n_tokens && col == 0; t++)
                memset(y + t * dst_stride, 0, PANEL_ROWS * sizeof *y);
            unpack(p, w, row, col);
#if HAS_WIDE_PANEL
            if (form == FORM_8 && codes_bits(tn_block_shape(w->layout)) == 8)
                widen_panel(p);
#endif
            multiply_inputs(y, dst_stride, p, x, w->cols, col, n_tokens, form, multiply);
        }
}

/* ---- inputs in f32 ---- */

/* sum += 4 columns of LANES rows times x. */
static TN_ALWAYS_INLINE floats add_group_f32(floats sum, words codes, floats scale, floats minimum,
                                             const float *x, struct tn_block_shape s)
{
    const int32_t offset = (int32_t)codes_offset(s);
    for (uint32_t k = 0; k < 4; k++, codes >>= 8) {
        ints q = (ints)(codes & 255) - offset;
        if (codes_are_signed(s))
            q = (ints)(codes << 24) >> 24;
        floats value = as_floats(q) * scale;
        if (s.has_min)
            value -= minimum;
        sum += value * x[k];
    }
    return sum;
}

/* The sum of cell k of a panel for LANES rows from row r on. */
static floats cell_f32(const struct panel *p, uint32_t r, uint32_t k, const float *x,
                       struct tn_block_shape s)
{
    const uint8_t *codes = p->codes + k * PANEL_CELL_BYTES + 4 * r;
    floats sum = {0};
    for (uint32_t g = 0; g < TN_CELL_COLS / 4; g++) {
        const uint32_t part = (k * TN_CELL_COLS + 4 * g) / s.sub;
        sum = add_group_f32(sum, load_words(codes + g * PANEL_GROUP_BYTES),
                            *(const floats *)(const void *)(p->scale[part] + r),
                            *(const floats *)(const void *)(p->minimum[part] + r), x + 4 * g, s);
    }
    return sum;
}

/* The reference for rounding errors.  It goes through panels: slow for one input, but little
 * code. */
static void multiply_f32(float *dst, const struct tn_blocks *w, uint32_t row_begin,
                         uint32_t row_end, const float *x, unpack_fn *unpack)
{
    const struct tn_block_shape s = tn_block_shape(w->layout);
    struct panel p;
    memset(dst, 0, (row_end - row_begin) * sizeof *dst);
    for (uint32_t row = row_begin; row < row_end; row += PANEL_ROWS, dst += PANEL_ROWS)
        for (uint32_t col = 0; col < w->cols; col += TN_SPAN_COLS) {
            unpack(&p, w, row, col);
            for (uint32_t r = 0; r < TN_MIN(row_end - row, PANEL_ROWS); r += LANES)
                for (uint32_t k = 0; k < p.n_cells; k++)
                    store_floats(dst + r, *(const floats *)(const void *)(dst + r) +
                                              cell_f32(&p, r, k, x + col + k * TN_CELL_COLS, s));
        }
}

/* ---- every layout ---- */

/* X(layout, the kind of its panels) */
#define BLOCKS_LIST(X)                                                                             \
    X(Q8_0, 8)                                                                                     \
    X(Q4_0, 4)                                                                                     \
    X(Q4_1, 4_min)                                                                                 \
    X(Q5_0, 5)                                                                                     \
    X(Q5_1, 5_min)                                                                                 \
    X(IQ4_NL, 8)                                                                                   \
    X(IQ4_XS, 8)                                                                                   \
    X(Q2_K, 2_16_min)                                                                              \
    X(Q3_K, 3_16)                                                                                  \
    X(Q4_K, 4_min)                                                                                 \
    X(Q5_K, 5_min)                                                                                 \
    X(Q6_K, 6_16)                                                                                  \
    X(IQ2_S, 7_16)                                                                                 \
    X(IQ3_XXS, 6)                                                                                  \
    X(IQ3_S, 5)

#define BLOCKS_FORM(name, form)                                                                    \
    static void one_##form##_##name(float *dst, const struct tn_blocks *w, uint32_t row_begin,     \
                                    uint32_t row_end, const void *x)                               \
    {                                                                                              \
        multiply_tiles(dst, 0, w, row_begin, row_end, x, 1, true, TERN_LAYOUT_##name,              \
                       FORM_##form);                                                               \
    }                                                                                              \
    static void few_##form##_##name(float *dst, size_t dst_stride, const struct tn_blocks *w,      \
                                    uint32_t row_begin, uint32_t row_end, const void *x,           \
                                    uint32_t n_tokens)                                             \
    {                                                                                              \
        multiply_tiles(dst, dst_stride, w, row_begin, row_end, x, n_tokens, false,                 \
                       TERN_LAYOUT_##name, FORM_##form);                                           \
    }
#define BLOCKS_LAYOUT(name, kind)                                                                  \
    BLOCKS_FORM(name, 8)                                                                           \
    BLOCKS_FORM(name, 16)                                                                          \
    static void unpack_##name(struct panel *p, const struct tn_blocks *w, uint32_t row,            \
                              uint32_t col)                                                        \
    {                                                                                              \
        unpack_panel(p, w, row, col, TERN_LAYOUT_##name);                                          \
    }
BLOCKS_LIST(BLOCKS_LAYOUT)
#undef BLOCKS_LAYOUT
#undef BLOCKS_FORM

typedef void few_fn(float *dst, size_t dst_stride, const struct tn_blocks *w, uint32_t row_begin,
                    uint32_t row_end, const void *x, uint32_t n_tokens);

/* The functions of a layout for one precision of the input. */
struct blocks_functions {
    tn_gemv_blocks_fn *one;
    few_fn *few;           /* for up to MAX_FEW_INPUTS */
    unpack_fn *unpack;     /* for more: makes a panel */
    multiply_fn *multiply; /* multiplies it */
};

static const struct blocks_functions blocks_functions[][2] = {
#define BLOCKS_ROW(name, kind)                                                                     \
    [TERN_LAYOUT_##name - TERN_LAYOUT_Q8_0] = {                                                    \
        {one_8_##name, few_8_##name, unpack_##name, multiply_##kind##_8},                          \
        {one_16_##name, few_16_##name, unpack_##name, multiply_##kind##_16}},
    BLOCKS_LIST(BLOCKS_ROW)
#undef BLOCKS_ROW
};

static const struct blocks_functions *functions_of(const struct tn_blocks *w,
                                                   const enum blocks_form form)
{
    return &blocks_functions[w->layout - TERN_LAYOUT_Q8_0][form == FORM_16];
}

/* The product for any number of inputs. */
static TN_ALWAYS_INLINE void multiply_blocks(float *dst, size_t dst_stride,
                                             const struct tn_blocks *w, uint32_t row_begin,
                                             uint32_t row_end, const void *x, uint32_t n_tokens,
                                             void *scratch, const enum blocks_form form)
{
    const struct blocks_functions *f = functions_of(w, form);
    if (n_tokens >= 2 && n_tokens <= MAX_FEW_INPUTS)
        f->few(dst, dst_stride, w, row_begin, row_end, x, n_tokens);
    else
        multiply_panels(dst, dst_stride, w, row_begin, row_end, x, n_tokens, scratch, form,
                        f->unpack, f->multiply);
}

#define BLOCKS_DEFINE(isa)                                                                         \
    void tn_gemv_blocks_f32_##isa(float *dst, const struct tn_blocks *w, uint32_t row_begin,       \
                                  uint32_t row_end, const float *x)                                \
    {                                                                                              \
        multiply_f32(dst, w, row_begin, row_end, x, functions_of(w, FORM_8)->unpack);              \
    }                                                                                              \
    BLOCKS_DEFINE_FORM(isa, 8)                                                                     \
    BLOCKS_DEFINE_FORM(isa, 16)
#define BLOCKS_DEFINE_FORM(isa, form)                                                              \
    void tn_gemv_blocks_x##form##_##isa(float *dst, const struct tn_blocks *w, uint32_t row_begin, \
                                        uint32_t row_end, const void *x)                           \
    {                                                                                              \
        functions_of(w, FORM_##form)->one(dst, w, row_begin, row_end, x);                          \
    }                                                                                              \
    void tn_gemm_blocks_x##form##_##isa(float *dst, size_t dst_stride, const struct tn_blocks *w,  \
                                        uint32_t row_begin, uint32_t row_end, const void *x,       \
                                        uint32_t n_tokens, void *scratch)                          \
    {                                                                                              \
        multiply_blocks(dst, dst_stride, w, row_begin, row_end, x, n_tokens, scratch,              \
                        FORM_##form);                                                              \
    }

#endif

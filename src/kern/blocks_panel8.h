/* SPDX-License-Identifier: MIT
 *
 * Panels of matrices in blocks times inputs of 8 bits, for levels with HAS_PANEL8.  Only for
 * blocks_loop.h.  y is in memory: registers are better used for the sums of more inputs.
 */
/* A level defines, besides what blocks_loop.h lists:
 *
 *   PANEL_IN_PLACE               y is dst.  Else y is a buffer with constant offsets: two copies,
 *                                but no registers for addresses, better for few vectors of rows
 *   vec in_register(vec)         its argument, which the compiler must not load again
 *   sum_start(sum, start)        an empty sum, to which `start` is added
 *   HAS_WIDE_PANEL               codes of 8 bits are multiplied as int16: of 4 columns a vector
 *                                of the first and third, then one of the others
 *   even_bytes(vec), odd_bytes(vec), sum_add_wide(sum, codes, at)
 *                                these vectors; adds two products of each row
 *   sum_scaled(sum, bits, scale, bias)
 *                                the sum as floats times scale
 *
 * Levels that add dot products to int32 and have fused multiply-add (HAS_FUSED) start a sum at the
 * bits of the float PANEL_MAGIC, m = 1.5 * 2^23.  Then its bits are those of the float m + S, since
 * |S| <= 128 * 127 * 32 < 2^22, and one instruction converts and scales it: (m + S) * D - m * D,
 * rounded once, is S * D rounded once, because m * D, the bias, is exact (D has at most 18
 * significant bits).  Only the sign of a zero may differ, and y, to which it is added, is never
 * -0. */
#ifndef TN_BLOCKS_PANEL8_H
#define TN_BLOCKS_PANEL8_H

/* The part of an input that meets a panel. */
struct panel_x {
    const int8_t *q;
    float factors[TN_SPAN_CELLS];
    int32_t start[SPAN_PARTS];   /* of sums: minus what the codes exceed q by */
    float minus_sum[SPAN_PARTS]; /* for minimums */
    /* q as int16, in the order of the codes */
    _Alignas(64) uint32_t wide[2][HAS_WIDE_PANEL ? TN_SPAN_COLS / 4 : LANES];
};

#if HAS_WIDE_PANEL
/* Writes the codes as int16 after the panel. */
static void widen_panel(struct panel *p)
{
    uint8_t *wide = (uint8_t *)(p + 1);
    for (uint32_t g = 0; g < p->n_cells * (TN_CELL_COLS / 4); g++)
        for (uint32_t i = 0; i < PANEL_GROUP_BYTES; i += 4 * LANES) {
            const vec codes = (vec)load_words(p->codes + g * PANEL_GROUP_BYTES + i);
            words *dst = (void *)(wide + 2 * g * PANEL_GROUP_BYTES + i);
            dst[0] = (words)even_bytes(codes);
            dst[PANEL_ROWS / LANES] = (words)odd_bytes(codes);
        }
}

static TN_ALWAYS_INLINE void widen_x(struct panel_x *x, uint32_t n_cells)
{
    for (uint32_t g = 0; g < n_cells * (TN_CELL_COLS / 4); g += LANES) {
        const vec q = (vec)load_words((const uint8_t *)x->q + 4 * g);
        *(words *)(void *)(x->wide[0] + g) = (words)even_bytes(q);
        *(words *)(void *)(x->wide[1] + g) = (words)odd_bytes(q);
    }
}
#else /* never called, but compiled */
static TN_ALWAYS_INLINE void widen_x(struct panel_x *x, uint32_t n_cells)
{
    (void)x, (void)n_cells;
}

static TN_ALWAYS_INLINE void sum_add_wide(struct sum *s, vec codes, const uint32_t *x)
{
    (void)s, (void)codes, (void)x;
}
#endif

static TN_ALWAYS_INLINE void panel_take_x(struct panel_x *dst, const struct blocks_x *x,
                                          const struct kind kind)
{
    const int32_t *minus = kind.sub == 32 ? x->minus_32 : x->minus_16;
    dst->q = x->digit[0];
    memcpy(dst->factors, x->factors, sizeof dst->factors);
    for (uint32_t j = 0; j < TN_SPAN_COLS / kind.sub; j++) {
        dst->start[j] = (HAS_FUSED ? PANEL_MAGIC_BITS : 0) + (int32_t)kind.offset * minus[j];
        dst->minus_sum[j] = (float)minus[j];
    }
}

/* y of n inputs (a constant) += the scaled sums of part j of the rows from r on. */
static TN_ALWAYS_INLINE void panel_add(float *y, size_t y_stride,
                                       const struct sum (*sum)[TILE_VECTORS],
                                       const struct panel_x *x, const struct panel *p,
                                       const uint32_t r, const uint32_t j, const struct kind kind,
                                       const uint32_t n)
{
#pragma GCC unroll 4
    for (uint32_t i = 0; i < TILE_VECTORS; i++) {
        const floats scale = load_floats(p->scale[j] + r + LANES * i);
        const floats bias = load_floats(p->bias[j] + r + LANES * i);
        const floats minimum = load_floats(p->minimum[j] + r + LANES * i);
        float *at = y + LANES * i;
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n; t++, at += y_stride) {
            floats v = sum_scaled(&sum[t][i], kind.bits, scale, bias);
            if (kind.has_min)
                v += minimum * x[t].minus_sum[j];
            v *= x[t].factors[j * kind.sub / TN_CELL_COLS];
            store_floats(at, load_floats(at) + v);
        }
    }
}

/* y of n inputs (a constant) += the rows of a panel from r on whose sums stay in registers. */
static TN_ALWAYS_INLINE void panel_rows(float *y, size_t y_stride, const struct panel_x *x,
                                        const struct panel *p, const uint32_t r,
                                        const struct kind kind, const uint32_t n)
{
    const bool is_wide = HAS_WIDE_PANEL && kind.bits == 8;
    const uint32_t n_groups = kind.sub / (is_wide ? 2 : 4);
    const uint8_t *codes = (is_wide ? (const uint8_t *)(p + 1) : p->codes) + 4 * r;
    const uint32_t n_parts = p->n_cells * (TN_CELL_COLS / kind.sub);
    for (uint32_t j = 0; j < n_parts; j++, codes += n_groups * PANEL_GROUP_BYTES) {
        struct sum sum[TILE_INPUTS_8][TILE_VECTORS];
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
            for (uint32_t i = 0; i < TILE_VECTORS; i++)
                sum_start(&sum[t][i], HAS_FUSED || kind.offset ? x[t].start[j] : 0);
#pragma GCC unroll 16
        for (uint32_t g = 0; g < n_groups; g++) {
            vec w[TILE_VECTORS];
#pragma GCC unroll 4
            for (uint32_t i = 0; i < TILE_VECTORS; i++)
                w[i] = in_register((vec)load_words(codes + g * PANEL_GROUP_BYTES + 4 * LANES * i));
#pragma GCC unroll 8
            for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
                for (uint32_t i = 0; i < TILE_VECTORS; i++)
                    if (is_wide)
                        sum_add_wide(&sum[t][i], w[i],
                                     &x[t].wide[g % 2][j * kind.sub / 4 + g / 2]);
                    else
                        sum_add(&sum[t][i], w[i], x[t].q + j * kind.sub + 4 * g, kind.bits, g,
                                false);
        }
#if PANEL_IN_PLACE
        __asm__("" : "+r"(y_stride)); /* addresses are computed again, not kept on the stack */
#endif
        panel_add(y, y_stride, sum, x, p, r, j, kind, n);
    }
}

#define PANEL_STEP_ROWS (LANES * TILE_VECTORS)

static TN_ALWAYS_INLINE void copy_floats(float *dst, const float *src)
{
#pragma GCC unroll 4
    for (uint32_t i = 0; i < PANEL_STEP_ROWS; i += LANES)
        store_floats(dst + i, load_floats(src + i));
}

/* The same through a buffer. */
static TN_ALWAYS_INLINE void panel_rows_copied(float *dst, size_t dst_stride,
                                               const struct panel_x *x, const struct panel *p,
                                               const uint32_t r, const struct kind kind,
                                               const uint32_t n)
{
    _Alignas(64) float y[TILE_INPUTS_8][PANEL_STEP_ROWS];
    for (uint32_t t = 0; t < n; t++)
        copy_floats(y[t], dst + t * dst_stride);
    panel_rows(y[0], PANEL_STEP_ROWS, x, p, r, kind, n);
    for (uint32_t t = 0; t < n; t++)
        copy_floats(dst + t * dst_stride, y[t]);
}

/* dst of n inputs (a constant) += a panel. */
static TN_ALWAYS_INLINE void multiply_panel8(float *dst, size_t dst_stride, const struct panel *p,
                                             const struct blocks_x *inputs, const struct kind kind,
                                             const uint32_t n)
{
    struct panel_x x[TILE_INPUTS_8];
    for (uint32_t t = 0; t < n; t++) {
        panel_take_x(&x[t], &inputs[t], kind);
        if (HAS_WIDE_PANEL && kind.bits == 8)
            widen_x(&x[t], p->n_cells);
    }
    for (uint32_t r = 0; r < PANEL_ROWS; r += PANEL_STEP_ROWS)
        if (PANEL_IN_PLACE)
            panel_rows(dst + r, dst_stride, x, p, r, kind, n);
        else
            panel_rows_copied(dst + r, dst_stride, x, p, r, kind, n);
}

#endif

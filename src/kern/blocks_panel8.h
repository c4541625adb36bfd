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
};

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
    const uint8_t *codes = p->codes + 4 * r;
    const uint32_t n_parts = p->n_cells * (TN_CELL_COLS / kind.sub);
    for (uint32_t j = 0; j < n_parts; j++, codes += kind.sub / 4 * PANEL_GROUP_BYTES) {
        struct sum sum[TILE_INPUTS_8][TILE_VECTORS];
#pragma GCC unroll 8
        for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
            for (uint32_t i = 0; i < TILE_VECTORS; i++)
                sum_start(&sum[t][i], HAS_FUSED || kind.offset ? x[t].start[j] : 0);
#pragma GCC unroll 8
        for (uint32_t g = 0; g < kind.sub / 4; g++) {
            vec w[TILE_VECTORS];
#pragma GCC unroll 4
            for (uint32_t i = 0; i < TILE_VECTORS; i++)
                w[i] = in_register((vec)load_words(codes + g * PANEL_GROUP_BYTES + 4 * LANES * i));
#pragma GCC unroll 8
            for (uint32_t t = 0; t < n; t++)
#pragma GCC unroll 4
                for (uint32_t i = 0; i < TILE_VECTORS; i++)
                    sum_add(&sum[t][i], w[i], x[t].q + j * kind.sub + 4 * g, kind.bits, g, false);
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
    for (uint32_t t = 0; t < n; t++)
        panel_take_x(&x[t], &inputs[t], kind);
    for (uint32_t r = 0; r < PANEL_ROWS; r += PANEL_STEP_ROWS)
        if (PANEL_IN_PLACE)
            panel_rows(dst + r, dst_stride, x, p, r, kind, n);
        else
            panel_rows_copied(dst + r, dst_stride, x, p, r, kind, n);
}

#endif

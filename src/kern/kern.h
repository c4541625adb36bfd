/* SPDX-License-Identifier: MIT
 *
 * The kernels: pure arithmetic on memory that the caller owns.  No allocation, I/O, locks, globals
 * or failure.  kern_list.h lists every implementation; struct tn_kernels is the table that an
 * engine selected.  Every implementation of an operation returns the bits of its _ref twin:
 *   - integer sums are exact in int32;
 *   - f32 reductions use the LANE ORDER: element i is added to lane i mod 16 in ascending order of
 *     i, starting from +0; then the 16 lanes are added as a tree (tn_tree_sum_f32 below);
 *   - a product is rounded before it is added (no fused multiply-add); division and square root are
 *     IEEE; exp is defined in exp.h.
 * Kernels read only their inputs and write only their outputs (guard-page test).  Pointers marked
 * [64] are 64-byte aligned; others have the natural alignment of their type.  Arguments do not
 * overlap unless the contract says so.
 */
#ifndef TN_KERN_H
#define TN_KERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "kern/blocks.h"
#include "tern/matrix_layouts.h"

/* ---- ternary products: int8 activations, exact int32 sums ----
 *
 * Activations are in [-127, 127] (-128 is excluded: some kernels negate in 8 bits), padded with
 * zeros to TN_X_PAD columns.  cols <= 2^24, so that 127 * cols < 2^31.
 */
#define TN_X_PAD 256u

/* A ternary matrix in the file's layout: rows and cols are logical, padding is weight 0. */
struct tn_ternary {
    const uint8_t *data; /* [64], in `layout` */
    uint32_t rows;
    uint32_t cols;
    uint32_t layout; /* TERN_LAYOUT_T2, _T5, _R2 or _C2 */
};

/* Bytes of the look-up table that lut_t2 writes for an input of cols columns (any level). */
#define TN_LUT_BYTES(cols) ((size_t)tn_kern_pad(cols) * 44u)
/* Bytes that prep_r2 writes for an input of cols columns (any level). */
#define TN_PREP_R2_BYTES(cols) ((size_t)tn_kern_pad(cols) * 4u)
/* Scratch of one gemm call (any level, any layout), [64]. */
#define TN_GEMM_SCRATCH_BYTES (64u * 1024u)

static inline uint32_t tn_kern_pad(uint32_t cols)
{
    return (cols + TN_X_PAD - 1) / TN_X_PAD * TN_X_PAD;
}

/* lut_t2: prepares x [64] [tn_kern_pad(cols)] int8 for gemv_t2_i8 of the same level.
 *   lut   [64] TN_LUT_BYTES(cols); its contents are private to the level */
typedef void tn_lut_t2_fn(void *lut, const int8_t *x, uint32_t cols);

/* gemv_t2_i8: dst[r] = sum over c of W[row_begin + r][c] * x[c], unscaled, without multiplication.
 *   dst        [64] row_end - row_begin sums
 *   w          in T2 or T5
 *   row_begin  multiple of TERN_T2_BAND_ROWS;  row_end likewise, or the number of rows of w, padded
 *   lut        written by lut_t2 of this level for x */
typedef void tn_gemv_t2_i8_fn(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,
                              uint32_t row_end, const void *lut);

/* prep_r2: prepares x [64] for gemv_r2_i8 of the same level. prep [64] TN_PREP_R2_BYTES(cols). */
typedef void tn_prep_r2_fn(void *prep, const int8_t *x, uint32_t cols);

/* gemv_r2_i8: dst[i] = sum over c of W[rows[i]][c] * x[c], for a list of rows, without
 * multiplication.
 *   w      layout R2
 *   rows   n_rows row numbers below w->rows, ascending */
typedef void tn_gemv_r2_i8_fn(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                              uint32_t n_rows, const void *prep);

/* few_r2_i8: dst[t * dst_stride + i] = sum over c of W[rows[i]][c] * x[t][c] for a list of rows.
 * Row i is multiplied only by the inputs t whose bit is set in takers[i]; no other dst is written.
 * Multiplication is allowed here.
 *   w       layout R2, at most 2^23 columns: sums of codes, weights plus one, fit int32
 *   rows    n_rows row numbers below w->rows, ascending
 *   takers  [n_rows] bit masks of up to 8 inputs
 *   x       [inputs][x_stride] int8, [64], x_stride >= tn_kern_pad(cols), multiple of 64, zeros
 *           from cols on
 *   x_sum   [inputs] sum_i8 of each */
typedef void tn_few_r2_i8_fn(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                             const uint32_t *rows, const uint8_t *takers, uint32_t n_rows,
                             const int8_t *x, size_t x_stride, const int32_t *x_sum);

/* gemv_c2_i8: dst[r] = sum over i of W[row_begin + r][cols[i]] * x[i], for a list of columns,
 * without multiplication.
 *   dst        [64] row_end - row_begin sums
 *   w          layout C2
 *   row_begin  multiple of 256;  row_end multiple of 256 (padding rows included), at most
 *              TN_C2_MAX_ROWS apart
 *   cols       n_cols column numbers below w->cols, ascending
 *   x          their n_cols inputs */
#define TN_C2_MAX_ROWS 4096u
typedef void tn_gemv_c2_i8_fn(int32_t *dst, const struct tn_ternary *w, uint32_t row_begin,
                              uint32_t row_end, const uint32_t *cols, const int8_t *x,
                              uint32_t n_cols);

/* sum_i8: the sum of x [n], [64]; n a multiple of TN_X_PAD. */
typedef int32_t tn_sum_i8_fn(const int8_t *x, uint32_t n);

/* gemm_<layout>_i8: dst[t * dst_stride + r] = sum over c of W[row_begin + r][c] * x[t][c] for
 * n_tokens inputs: the same sums as the gemv kernels; multiplication is allowed here.
 *   row_begin, row_end  multiples of TN_GEMM_ROW_ALIGN, row_end at most w->rows rounded up to
 *                       TN_GEMM_ROWS; dst has room for all of them, but the sums of rows at or
 *                       beyond w->rows are either not written or 0.  Fastest for TN_GEMM_ROWS rows
 *                       at a time, aligned to TN_GEMM_ROWS
 *   x          [n_tokens][x_stride] int8, [64], x_stride >= tn_kern_pad(cols), multiple of 64,
 *              zeros from cols on
 *   x_sum      [n_tokens] sum_i8 of each input
 *   dst        [64], dst_stride multiple of 16
 *   scratch    [64] TN_GEMM_SCRATCH_BYTES, one per thread */
#define TN_GEMM_ROWS 256u
#define TN_GEMM_ROW_ALIGN 64u
typedef void tn_gemm_i8_fn(int32_t *dst, size_t dst_stride, const struct tn_ternary *w,
                           uint32_t row_begin, uint32_t row_end, const int8_t *x, size_t x_stride,
                           const int32_t *x_sum, uint32_t n_tokens, void *scratch);
typedef tn_gemm_i8_fn tn_gemm_t2_i8_fn;
typedef tn_gemm_i8_fn tn_gemm_r2_i8_fn;
typedef tn_gemm_i8_fn tn_gemm_c2_i8_fn;

/* ---- ternary products of inputs that are not rounded to int8, with scales per group ----
 *
 * An input is rounded to 16 bits, block by block of TN_X16_BLOCK columns:
 *   a = max(max |x_k|, 1e-30), q_k = rne(x_k * (32639 / a)) clamped to +-32639
 *   x_k is about q_k * f, where f = a / 32639 is the block's factor
 * The maximum ignores NaN; a NaN product gives 32639.  q is two signed bytes, q = 256 * high + low,
 * so that instructions for bytes multiply it; |high| <= 127.
 *
 * In memory, [64], tn_x16_half(cols) bytes of each digit:
 *   int8 high [tn_kern_pad(cols)], then f32 factors [tn_kern_pad(cols) / TN_X16_BLOCK], then
 *   int32 minus the sums of q over 32 columns each [tn_kern_pad(cols) / 32]
 *   int8 low [tn_kern_pad(cols)], then int32 sums of q [tn_kern_pad(cols) / 64], then
 *   int32 minus the sums of q over 16 columns each [tn_kern_pad(cols) / 16]
 * q is 0 from cols on.  Several inputs are stored without gaps. */
#define TN_X16_BLOCK 128u
#define TN_X16_BYTES(cols) (2 * tn_x16_half(cols))
static inline size_t tn_x16_half(uint32_t cols)
{
    return ((size_t)tn_kern_pad(cols) / 16 * 21 + 63) / 64 * 64;
}

/* quant_x16: rounds x [n] to x16 [64] TN_X16_BYTES(n). */
typedef void tn_quant_x16_fn(void *x16, const float *x, uint32_t n);

/* A matrix in layout T2 or T5 whose weights are t * scale, with a scale for each row and group of
 * columns.  pack.h defines the order of the scales. */
struct tn_scaled_ternary {
    struct tn_ternary w;
    const void *scales; /* [64] tn_n_scales(rows, cols, group) values, finite */
    uint32_t group;     /* columns of a group: a multiple of 64, or at least cols */
    uint32_t is_f16;    /* scales are f16, not f32 */
};

/* Columns summed exactly in int32: a block of inputs that share a factor and a scale. */
static inline uint32_t tn_x16_run(const struct tn_scaled_ternary *m)
{
    return m->group >= m->w.cols || m->group % TN_X16_BLOCK == 0 ? TN_X16_BLOCK : 64;
}

/* gemv_t2_x16: y[r] = sum over runs b of tn_x16_run columns, ascending from +0, of
 *   ((float)(sum over c in b of t[r][c] * q[c]) * scale[r][c / group]) * f[c / TN_X16_BLOCK]
 * and dst[t * dst_stride + r - row_begin] = y[r] of input t, which does not depend on the others.
 * An int32 sum is at most 128 * 32639 < 2^23, whatever cols is.
 *   dst                 [64] row_end - row_begin values of each input; dst_stride a multiple of 16
 *   m                   in T2 or T5
 *   row_begin, row_end  as for gemv_t2_i8; y of padding rows is 0
 *   x16                 n_tokens inputs, 1 to TN_X16_FEW, written by quant_x16 of any level */
#define TN_X16_FEW 8u
typedef void tn_gemv_t2_x16_fn(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                               uint32_t row_begin, uint32_t row_end, const void *x16,
                               uint32_t n_tokens);

/* gemm_t2_x16: the same for any number of inputs.
 *   row_begin, row_end, dst, scratch  as for gemm_t2_i8
 *   x16                               n_tokens inputs */
typedef void tn_gemm_t2_x16_fn(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                               uint32_t row_begin, uint32_t row_end, const void *x16,
                               uint32_t n_tokens, void *scratch);

/* The same inputs in 8 bits, block by block of TN_X8_BLOCK columns:
 *   a = max(max |x_k|, 1e-30), q_k = rne(x_k * (127 / a)) clamped to +-127, f = a / 127
 * The maximum ignores NaN; a NaN product gives 127.  In memory, [64]:
 *   int8 q [tn_kern_pad(cols)], 0 from cols on
 *   f32 factors [tn_kern_pad(cols) / TN_X8_BLOCK]
 *   int32 starts [tn_kern_pad(cols) / TN_X8_BLOCK]: minus the sum of q over the block, from which
 *   sums of codes (weights plus one) start
 *   int32 minus the sums of q over 16 columns each [tn_kern_pad(cols) / 16]
 * Several inputs are stored without gaps. */
#define TN_X8_BLOCK 32u
#define TN_X8_BYTES(cols) ((size_t)tn_kern_pad(cols) / 2 * 3)

/* quant_x8: rounds x [n] to x8 [64] TN_X8_BYTES(n). */
typedef void tn_quant_x8_fn(void *x8, const float *x, uint32_t n);

/* gemv_t2_x8: as gemv_t2_x16 with inputs in 8 bits:
 *   y[r] = sum over runs b of tn_x16_run columns, ascending from +0, of
 *          (sum over blocks k in b, ascending from +0, of
 *             (float)(sum over c in k of t[r][c] * q[c]) * f[k]) * scale[r][c / group]
 *   x8   n_tokens inputs, 1 to TN_X8_FEW, written by quant_x8 of any level */
#define TN_X8_FEW 4u
typedef void tn_gemv_t2_x8_fn(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                              uint32_t row_begin, uint32_t row_end, const void *x8,
                              uint32_t n_tokens);

/* gemm_t2_x8: the same for any number of inputs, as gemm_t2_x16. */
typedef void tn_gemm_t2_x8_fn(float *dst, size_t dst_stride, const struct tn_scaled_ternary *m,
                              uint32_t row_begin, uint32_t row_end, const void *x8,
                              uint32_t n_tokens, void *scratch);

/* gemv_t2_f32: as gemv_t2_x16 with inputs in f32:
 *   y[r] = sum over runs b of tn_x16_run columns, ascending from +0, of
 *          (sum over c in b, ascending from +0, of t[r][c] * x[c]) * scale[r][c / group]
 *   x   [tn_kern_pad(cols)], zeros from cols on
 * The reference for rounding errors. */
typedef void tn_gemv_t2_f32_fn(float *dst, const struct tn_scaled_ternary *m, uint32_t row_begin,
                               uint32_t row_end, const float *x);

/* unpack_t5: n_runs consecutive runs of T5 as runs of T2 (64 rows x 128 columns):
 *   dst  [64] run i at i * dst_stride, a multiple of 64, of TERN_T2_RUN_BYTES
 *   src  [64] n_runs * TERN_T5_RUN_BYTES */
typedef void tn_unpack_t5_fn(uint8_t *dst, size_t dst_stride, const uint8_t *src, uint32_t n_runs);

/* add_scaled_f32: dst_k += src_k * scale. */
typedef void tn_add_scaled_f32_fn(float *restrict dst, const float *restrict src, uint32_t n,
                                  float scale);

/* ---- products of matrices in blocks (blocks.h) ----
 *
 * gemv_blocks_x8, gemv_blocks_x16: y[r] = sum over parts p of 16 or 32 columns that share a scale,
 * ascending from +0, of
 *   ((float)S * D + M * (float)-A) * f, without "M * (float)-A" in layouts that have no minimum;
 *   S = sum over c in p of q[r][c] * x[c] and A = sum over c in p of x[c], exact in int32;
 *   D, M and q of row r: blocks.h;  x and f: the input's integers and their factor
 *   dst                 [64] row_end - row_begin values; y of padding rows is 0
 *   row_begin, row_end  multiples of 16, row_end at most w->rows rounded up to 16
 *   x8, x16             one input, written by quant_x8 or quant_x16 of any level */
typedef void tn_gemv_blocks_fn(float *dst, const struct tn_blocks *w, uint32_t row_begin,
                               uint32_t row_end, const void *x);
typedef tn_gemv_blocks_fn tn_gemv_blocks_x8_fn;
typedef tn_gemv_blocks_fn tn_gemv_blocks_x16_fn;

/* gemm_blocks_x8, gemm_blocks_x16: the same for any number of inputs.
 *   row_begin, row_end, dst, dst_stride, scratch  as for gemm_t2_i8 */
typedef void tn_gemm_blocks_fn(float *dst, size_t dst_stride, const struct tn_blocks *w,
                               uint32_t row_begin, uint32_t row_end, const void *x,
                               uint32_t n_tokens, void *scratch);
typedef tn_gemm_blocks_fn tn_gemm_blocks_x8_fn;
typedef tn_gemm_blocks_fn tn_gemm_blocks_x16_fn;

/* gemv_blocks_f32: inputs in f32.  y[r] = sum over cells of 32 columns, ascending from +0, of
 *   (sum over c in the cell, ascending from +0, of w[r][c] * x[c])
 * with w[r][c] as returned by tn_blocks_unpack_row.
 *   x   [w->cols];  dst, row_begin and row_end as for gemv_blocks_x8 */
typedef void tn_gemv_blocks_f32_fn(float *dst, const struct tn_blocks *w, uint32_t row_begin,
                                   uint32_t row_end, const float *x);

/* ---- activations ---- */

/* quant_i8: int8 rounding of one token's input as in the reference implementation of BitNet:
 *   a = max(max |x_k|, 1e-5); q_k = rne(x_k * (127 / a)), clamped to [-127, 127]
 * and zeros up to tn_kern_pad(n). Returns a / 127, the factor that undoes it.
 * The maximum ignores NaN; a NaN product gives 127. */
typedef float tn_quant_i8_fn(int8_t *q, const float *x, uint32_t n);

/* rms_norm_f32: dst_k = w_k * (x_k * (1 / sqrt(mean(x^2) + eps))); the sum in lane order.
 * dst may be x. */
typedef void tn_rms_norm_f32_fn(float *dst, const float *x, const float *w, uint32_t n, float eps);

/* rms_norm_quant: quant_i8 of rms_norm_f32 without storing the normalised values. */
typedef float tn_rms_norm_quant_fn(int8_t *q, const float *x, const float *w, uint32_t n,
                                   float eps);

/* hadamard_f32: the normalised Walsh-Hadamard transform of each block of n / block blocks in place,
 *   x_i = block^-1/2 * sum over j of (-1)^popcount(i & j) x_j
 * as butterflies (a, b) -> (a + b, a - b) of values `half` apart, half = 1, 2, 4 ... block / 2;
 * then the product with tn_hadamard_scale(block) of hadamard.h.  It is its own inverse.
 *   block  a power of two from 2 on, divides n */
typedef void tn_hadamard_f32_fn(float *x, uint32_t n, uint32_t block);

/* scale_i32_f32: dst_k = (float)sum_k * scale, the epilogue of a ternary product.  dst may be
 * sum. */
typedef void tn_scale_i32_f32_fn(float *dst, const int32_t *sum, uint32_t n, float scale);

/* add_i32_f32: dst_k += (float)sum_k * scale, the same added to the residual stream. */
typedef void tn_add_i32_f32_fn(float *dst, const int32_t *sum, uint32_t n, float scale);

/* relu2_mul_f32: dst_k = gate_k > 0 ? (gate_k * gate_k) * up_k : +0.  dst may be gate or up. */
typedef void tn_relu2_mul_f32_fn(float *dst, const float *gate, const float *up, uint32_t n);

/* silu_mul_f32, gelu_mul_f32: dst_k = gate_k / (1 + exp(e(gate_k))) * up_k, with e from gates.h and
 * exp from exp.h.  gelu is the variant with tanh.  dst may be gate or up. */
typedef void tn_silu_mul_f32_fn(float *dst, const float *gate, const float *up, uint32_t n);
typedef tn_silu_mul_f32_fn tn_gelu_mul_f32_fn;

/* cap_f32: x_k = cap * tanh(x_k / cap) with tanh from tanh.h; cap > 0. */
typedef void tn_cap_f32_fn(float *x, uint32_t n, float cap);

/* rope_f32: rotates n_heads heads of head_dim values in place, pairs (j, j + head_dim / 2):
 *   x_j = x_j * cos_j - x_{j+h} * sin_j;  x_{j+h} = x_{j+h} * cos_j + x_j * sin_j
 *   cos, sin   head_dim / 2 values of this position;  stride  floats between heads */
typedef void tn_rope_f32_fn(float *x, const float *cos, const float *sin, uint32_t n_heads,
                            uint32_t head_dim, uint32_t stride);

/* ---- head: logits of n_tokens hidden states ----
 *   dst[t * dst_stride + r] = (lane-order sum over c of (float)w[r][c] * x[t][c]) (* scale[r])
 *   w       [n_rows][cols] in the file's layout, rows without padding
 *   x       [n_tokens][x_stride] f32 */
typedef void tn_gemv_q8_f32_fn(float *dst, size_t dst_stride, const int8_t *w, const float *scales,
                               uint32_t n_rows, uint32_t cols, const float *x, size_t x_stride,
                               uint32_t n_tokens);
typedef void tn_gemv_f16_f32_fn(float *dst, size_t dst_stride, const uint16_t *w, uint32_t n_rows,
                                uint32_t cols, const float *x, size_t x_stride, uint32_t n_tokens);
typedef tn_gemv_f16_f32_fn tn_gemv_bf16_f32_fn;
typedef void tn_gemv_f32_f32_fn(float *dst, size_t dst_stride, const float *w, uint32_t n_rows,
                                uint32_t cols, const float *x, size_t x_stride, uint32_t n_tokens);

/* ---- head in planes (layout Q8_PLANES): sums of the bits of one plane, or of the first two ----
 *
 * dot_u4_i16, dot_u2_i16, dot_u1_i16: dst[t * dst_stride + i] = sum over c of code[r][c] * x[t][c],
 * exact in int32, for n_x inputs and the n_rows rows r = rows[i], or r = i where rows is NULL.
 * dot_u5_i16: the same for 2 * (4 bits in plane[0]) + (1 bit in plane[1]).
 *   x        [n_x] inputs of [cols padded to TN_PLANE_COLS] int16, zeros from cols on;
 *            |x| <= TN_PLANE_X_MAX (so that x is two signed bytes) and
 *            (2^bits - 1) * max |x| * cols < 2^31; groups of columns with |x| <= 127 take half the
 *            time
 *   n_x      1 ... TN_PLANE_MAX_X
 *   scratch  [64] TN_PLANE_SCRATCH_BYTES, one per thread */
#define TN_PLANE_COLS 128u
#define TN_PLANE_X_MAX 32639u
#define TN_PLANE_MAX_X 8u
#define TN_PLANE_SCRATCH_BYTES (72u * 1024u)
/* Enough scratch for one call of any kernel. */
#define TN_KERNEL_SCRATCH_BYTES TN_PLANE_SCRATCH_BYTES
_Static_assert(TN_GEMM_SCRATCH_BYTES <= TN_KERNEL_SCRATCH_BYTES, "enough for gemm, too");
static inline size_t tn_plane_row_bytes(uint32_t cols, uint32_t bits)
{
    return (size_t)(cols + TN_PLANE_COLS - 1) / TN_PLANE_COLS * (TN_PLANE_COLS / 8 * bits);
}
struct tn_plane_rows {
    const uint8_t *plane[2]; /* rows of tn_plane_row_bytes(cols, bits) bytes, in the file's
                              * layout */
    const uint8_t *next[2];  /* where reading probably continues after these rows, for prefetching;
                              * NULL: unknown */
    const uint32_t *rows;    /* [n_rows] */
    uint32_t n_rows;
    uint32_t cols;
};
typedef void tn_dot_plane_fn(int32_t *dst, size_t dst_stride, const struct tn_plane_rows *p,
                             const int16_t *const *x, uint32_t n_x, void *scratch);
typedef tn_dot_plane_fn tn_dot_u5_i16_fn;
typedef tn_dot_plane_fn tn_dot_u4_i16_fn;
typedef tn_dot_plane_fn tn_dot_u2_i16_fn;
typedef tn_dot_plane_fn tn_dot_u1_i16_fn;

/* add_i32_f64: dst_k += (double)src_k * factor.  Adds the sums of one plane to the sums of rows. */
typedef void tn_add_i32_f64_fn(double *dst, const int32_t *src, uint32_t n, double factor);

/* bound_logits: low[i] <= logit of row i <= high[i], from the sum of the bits read so far, as
 * model/head.h defines; tn_bound_logit of bound_logit.h for each of n rows of one form.  Sums,
 * scales and norms are finite, so that no bound is NaN. */
struct tn_bound_rows {
    const float *scales, *norms; /* [n] w = q * scale, |v| */
    const float *open;           /* [n] |e|; NULL: no bits are open */
};
struct tn_bound_terms {          /* in units of the row's scale */
    double factor, add;          /* estimate = factor * sum + add */
    double base, slope;          /* |e . x| <= base + slope * |e|^2 */
    double norm_x, lost, slack;  /* |x|, |d|, the rounding of the logit */
};
typedef void tn_bound_logits_fn(float *low, float *high, const double *sums, uint32_t n,
                                const struct tn_bound_rows *rows,
                                const struct tn_bound_terms *terms);

/* unpack_planes: q[c], c < cols, of one row (bit_planes.h).  Its code u, with the bits of the first
 * plane highest, and the row's form give
 *   q = (u >> shift) - (2^(bits - 1) >> shift) + (is centred ? offsets[c] : 0), modulo 256 */
struct tn_bit_planes;
typedef void tn_unpack_planes_fn(int8_t *q, const struct tn_bit_planes *w, uint32_t row);

/* ---- attention over one block of cached positions of one key/value head ----
 *
 * f32, f16: n_pos <= TN_KV_BLOCK rows of `dim` values (multiple of 16, padded with zeros), row
 * after row.
 *
 * q8: int8 values plus 128, so that they are unsigned, in tiles of 32 lanes.  The lanes of a key
 * tile are positions, those of a value tile columns.  The summed index comes in groups of four, as
 * dot-product instructions take them, and no sum across lanes remains:
 *
 *   keys    [TN_KV_BLOCK / 32 tiles][dim / 4][32 positions][4 columns]
 *   values  [dim / 32 tiles][TN_KV_BLOCK / 4][32 columns][4 positions]; 16 columns in the last
 *           tile where dim is not a multiple of 32
 *   scales  [ceil(dim / 64)][TN_KV_BLOCK] f16, one per position and 64 columns
 *
 * The whole block is readable; the contents of positions from n_pos on do not matter.  The integer
 * sums are exact.  Queries are rounded like keys, by kv_store_q8; weights, many of which are much
 * smaller than the largest, to 16 bits (two signed bytes):
 *   i16(x) of a vector x: a = max(max |x_k|, 1e-30), x16_k = rne(x_k * (32639 / a)) clamped to
 *   +-32639; a / 32639 undoes it.  The maximum ignores NaN; a NaN product gives 32639. */
#define TN_KV_BLOCK 256u
#define TN_I16_MAX 32639 /* 256 * 127 + 127 */

#define TN_KV_LANES 32u
#define TN_KV_GROUP_BYTES (4 * TN_KV_LANES)
#define TN_KV_SCALE_VALUES 64u /* values of a row that share a scale */

/* Scales per row. */
static inline uint32_t tn_kv_q8_scales(uint32_t dim)
{
    return (dim + TN_KV_SCALE_VALUES - 1) / TN_KV_SCALE_VALUES;
}

/* Bytes of four positions in the value tile that holds column d. */
static inline uint32_t tn_kv_q8_value_group_bytes(uint32_t d, uint32_t dim)
{
    return 4 * TN_MIN(TN_KV_LANES, dim - d / TN_KV_LANES * TN_KV_LANES);
}

/* The offset of the byte of position t and column d. */
static inline size_t tn_kv_q8_key_at(uint32_t t, uint32_t d, uint32_t dim)
{
    return ((size_t)(t / TN_KV_LANES) * (dim / 4) + d / 4) * TN_KV_GROUP_BYTES +
           t % TN_KV_LANES * 4 + d % 4;
}
static inline size_t tn_kv_q8_value_at(uint32_t t, uint32_t d, uint32_t dim)
{
    return (size_t)(d / TN_KV_LANES) * (TN_KV_BLOCK * TN_KV_LANES) +
           (size_t)(t / 4) * tn_kv_q8_value_group_bytes(d, dim) + d % TN_KV_LANES * 4 + t % 4;
}

/* attn_qk_<type>: scores of n_pos positions for the n_q query heads that share the key head.
 *   f32, f16: s[i * s_stride + t] = (lane-order sum over d of k[t][d] * q[i][d]) * factor
 *   q8:       s[i * s_stride + t] = (sum over blocks b of 64 columns, ascending from +0, of
 *             ((float)(sum over d in b of k[t][d] * q[i][d]) * k_scale[b][t]) * q_scales[i][b])
 *             * factor
 *   q  [n_q][dim] f32; q8: int8, q_scales [n_q][ceil(dim / 64)] f16 */
typedef void tn_attn_qk_fn(float *s, size_t s_stride, const float *q, uint32_t n_q, const void *k,
                           uint32_t n_pos, uint32_t dim, float factor);
typedef tn_attn_qk_fn tn_attn_qk_f32_fn;
typedef tn_attn_qk_fn tn_attn_qk_f16_fn;
typedef void tn_attn_qk_q8_fn(float *s, size_t s_stride, const int8_t *q, const uint16_t *q_scales,
                              uint32_t n_q, const void *k, const uint16_t *k_scales, uint32_t n_pos,
                              uint32_t dim, float factor);

/* attn_pv_<type>: the weighted sum of the values.
 *   f32, f16: o[i][d] = sum over t, ascending from +0, of p[i * p_stride + t] * v[t][d]
 *   q8:       o[i][d] = (float)(sum over t of w16[t] * v[t][d]) * (a / 32639), where
 *             w16, a = i16 of p[i * p_stride + t] * v_scale[d / 64][t]
 *   o  [n_q][dim] f32
 *   next  what the caller reads after v, which may be prefetched, or NULL
 * A weight of zero changes no bit, whatever its position. */
typedef void tn_attn_pv_fn(float *o, const float *p, size_t p_stride, uint32_t n_q, const void *v,
                           uint32_t n_pos, uint32_t dim);
typedef tn_attn_pv_fn tn_attn_pv_f32_fn;
typedef tn_attn_pv_fn tn_attn_pv_f16_fn;
typedef void tn_attn_pv_q8_fn(float *o, const float *p, size_t p_stride, uint32_t n_q,
                              const void *v, const uint16_t *v_scales, uint32_t n_pos,
                              uint32_t dim, const void *next);

/* max_f32: the largest of n >= 1 values, none of them NaN; a zero is +0. */
typedef float tn_max_f32_fn(const float *x, uint32_t n);

/* exp_sum_f32: x_k = exp(x_k - max) in place (tn_exp_f32 of exp.h); returns their lane-order sum.
 * Every x_k <= max. */
typedef float tn_exp_sum_f32_fn(float *x, uint32_t n, float max);

/* ---- lists of non-zero values ---- */

/* Writes the indices i < n, ascending, with x[i] > 0 (list_positive_f32) or x[i] != 0
 * (list_nonzero_i8) to dst [n] and returns their number.  list_positive_f32 sets the other x[i] to
 * +0. */
typedef uint32_t tn_list_positive_f32_fn(uint32_t *dst, float *x, uint32_t n);
typedef uint32_t tn_list_nonzero_i8_fn(uint32_t *dst, const int8_t *x, uint32_t n);

/* ---- key/value rows ---- */

/* kv_store_<type>: writes one row of dim values (multiple of 16) in the cache's format.  q8: per 64
 * values scale = f16(max|x| / 127), at most 65504, q = rne(x / (float)scale) clamped to [-127,
 * 127], 0 where the scale is 0.  f16: round to nearest even, clamped to +-65504.  The maximum
 * ignores NaN; a NaN value is stored as the upper limit of its clamp. */
typedef void tn_kv_store_fn(void *dst, uint16_t *scales, const float *x, uint32_t dim);
typedef tn_kv_store_fn tn_kv_store_f32_fn;
typedef tn_kv_store_fn tn_kv_store_f16_fn;
typedef tn_kv_store_fn tn_kv_store_q8_fn;

/* ---- the table ---- */

/* X(operation) for every operation.  kern_list.h lists the implementations of each. */
#define TN_KERN_OPS(X)                                                                             \
    X(lut_t2)                                                                                      \
    X(gemv_t2_i8)                                                                                  \
    X(prep_r2)                                                                                     \
    X(gemv_r2_i8)                                                                                  \
    X(few_r2_i8)                                                                                   \
    X(gemv_c2_i8)                                                                                  \
    X(sum_i8)                                                                                      \
    X(gemm_t2_i8)                                                                                  \
    X(gemm_r2_i8)                                                                                  \
    X(gemm_c2_i8)                                                                                  \
    X(quant_x16)                                                                                   \
    X(gemv_t2_x16)                                                                                 \
    X(gemm_t2_x16)                                                                                 \
    X(quant_x8)                                                                                    \
    X(gemv_t2_x8)                                                                                  \
    X(gemm_t2_x8)                                                                                  \
    X(gemv_t2_f32)                                                                                 \
    X(unpack_t5)                                                                                   \
    X(add_scaled_f32)                                                                              \
    X(gemv_blocks_x8)                                                                              \
    X(gemm_blocks_x8)                                                                              \
    X(gemv_blocks_x16)                                                                             \
    X(gemm_blocks_x16)                                                                             \
    X(gemv_blocks_f32)                                                                             \
    X(quant_i8)                                                                                    \
    X(hadamard_f32)                                                                                \
    X(rms_norm_f32)                                                                                \
    X(rms_norm_quant)                                                                              \
    X(scale_i32_f32)                                                                               \
    X(add_i32_f32)                                                                                 \
    X(relu2_mul_f32)                                                                               \
    X(silu_mul_f32)                                                                                \
    X(gelu_mul_f32)                                                                                \
    X(cap_f32)                                                                                     \
    X(rope_f32)                                                                                    \
    X(list_positive_f32)                                                                           \
    X(list_nonzero_i8)                                                                             \
    X(gemv_q8_f32)                                                                                 \
    X(gemv_f32_f32)                                                                                \
    X(gemv_f16_f32)                                                                                \
    X(gemv_bf16_f32)                                                                               \
    X(dot_u5_i16)                                                                                  \
    X(dot_u4_i16)                                                                                  \
    X(dot_u2_i16)                                                                                  \
    X(dot_u1_i16)                                                                                  \
    X(add_i32_f64)                                                                                 \
    X(bound_logits)                                                                                \
    X(unpack_planes)                                                                               \
    X(attn_qk_f32)                                                                                 \
    X(attn_qk_f16)                                                                                 \
    X(attn_qk_q8)                                                                                  \
    X(attn_pv_f32)                                                                                 \
    X(attn_pv_f16)                                                                                 \
    X(attn_pv_q8)                                                                                  \
    X(max_f32)                                                                                     \
    X(exp_sum_f32)                                                                                 \
    X(kv_store_f32)                                                                                \
    X(kv_store_f16)                                                                                \
    X(kv_store_q8)

struct tn_kernels {
#define TN_KERN_MEMBER(op) tn_##op##_fn *op;
    TN_KERN_OPS(TN_KERN_MEMBER)
#undef TN_KERN_MEMBER
};

/* Declarations of every implementation: tn_<op>_<isa>. */
#define TN_KERN(op, isa, needs) tn_##op##_fn tn_##op##_##isa;
#include "kern/kern_list.h"
#undef TN_KERN

/* Fills the table with the best implementation of each operation whose needs are all in
 * `features` (TN_CPU_*).  lut_t2 and gemv_t2_i8, prep_r2 and gemv_r2_i8 always come from the same
 * level. */
void tn_kernels_select(struct tn_kernels *out, uint32_t features);

/* Every implementation, for tests, `verify` and benchmarks. */
struct tn_kernel_row {
    const char *op;
    const char *isa;
    uint32_t needs;
    void (*fn)(void); /* cast to tn_<op>_fn */
};
extern const struct tn_kernel_row tn_kernel_rows[];
extern const uint32_t tn_n_kernel_rows;

/* ((l0+l8)+(l4+l12)) ... : the tree at the end of every lane-order sum; overwrites lane. */
static inline float tn_tree_sum_f32(float lane[16])
{
    for (int half = 8; half >= 1; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * A linear layer has a format: one constant row with the products of a layout's matrices, the
 * precision of their input, what they can skip, and the memory they need.  The callers of a product
 * (matrix.c, experts.c, embed_head.c) do not depend on layouts: a new one is a file in formats/ and
 * a line of its formats.h.  These functions run on one thread and write only to their arguments.
 */
#ifndef TN_FORMAT_H
#define TN_FORMAT_H

#include <stdbool.h>

#include "kern/bit_planes.h"
#include "kern/kern.h"
#include "model/rotation.h"

/* Batches of up to this many tokens skip zeros, as decoding does, and read each weight once for all
 * tokens; larger ones are multiplied as a whole. */
#define TN_FEW_TOKENS 8u

/* Precision and layout in which products take their input; acts.h makes them. */
enum tn_act {
    TN_ACT_F32,  /* f32, padded with zeros */
    TN_ACT_I8,   /* int8 per token */
    TN_ACT_PREP, /* prepared from int8 for gemv_r2_i8; one token */
    TN_ACT_X16,  /* 16 bits, with a factor for each block of columns */
    TN_ACT_X8,   /* 8 bits, with a factor for each block of columns */
    TN_N_ACTS
};

/* Precision of inputs that the model does not round: enum tern_inputs_as of tern/tern.h. */
enum tn_inputs_as {
    TN_INPUTS_AS_MODEL,
    TN_INPUTS_AS_F32,
    TN_INPUTS_AS_16,
    TN_INPUTS_AS_8,
    TN_N_INPUTS_AS
};

struct tn_acts;
struct tn_thread_scratch;
struct tn_format;

/* A matrix of the file, and its format. */
struct tn_matrix {
    const struct tn_format *format; /* NULL: the model has no such matrix */
    const uint8_t *data;            /* [64], in the file's layout */
    const void *scales;             /* according to layout and scale kind; or NULL */
    uint32_t layout;
    uint32_t rows, cols;
    float scale; /* of ternary matrices with one scale */
    const struct tern_file_tensor *tensor; /* its record; for a stack, this is matrix 0 */
    const struct tn_rotation *rotation;    /* of its input; of a table: of its rows. NULL: none */
    /* Views made by format->bind. */
    struct tn_scaled_ternary t; /* for ternary ones; scales: for those with a scale per group */
    struct tn_bit_planes planes; /* for q8, q6, q4 in planes */
};

/* The resources of one thread. */
struct tn_worker {
    const struct tn_kernels *kernels;
    struct tn_thread_scratch *scratch;
};

/* A product with rows of a matrix: y[t][r] = sum over c of W[row + r][c] * x[t][c] for all inputs t
 * and r < n_rows, scales included; dst[t * dst_stride + r] becomes y, or += add * y when add is not
 * 0. */
struct tn_mul {
    float *dst; /* may be scratch->sum with dst_stride TN_SUM_STRIDE, when add is 0 */
    size_t dst_stride;
    float add;
    const struct tn_matrix *w;
    uint32_t row; /* a multiple of TN_GEMM_ROW_ALIGN; of TN_GEMM_ROWS up to TN_FEW_TOKENS inputs */
    uint32_t n_rows;         /* at most TN_GEMM_ROWS, not beyond the matrix */
    const struct tn_acts *x; /* in the precision format->act */
    const struct tn_worker *worker;
};
typedef void tn_mul_fn(const struct tn_mul *m);
/* mul_rows: dst[i] = row rows[i] of W x, for one token in the format TN_ACT_PREP.  dst is
 * scratch->sum. */
typedef void tn_mul_rows_fn(float *dst, const struct tn_matrix *w, const uint32_t *rows,
                            uint32_t n_rows, const struct tn_acts *x,
                            const struct tn_worker *worker);
/* mul_rows_few: sum[t * sum_stride + i] = row rows[i] of W x[t], without scales, for the tokens t
 * whose bits are set in takers[i]; x has at most TN_FEW_TOKENS, in the format TN_ACT_I8. */
typedef void tn_mul_rows_few_fn(int32_t *sum, size_t sum_stride, const struct tn_matrix *w,
                                const uint32_t *rows, const uint8_t *takers, uint32_t n_rows,
                                const struct tn_acts *x, const struct tn_worker *worker);
/* mul_cols: sum[r] = sum over i of W[row_begin + r][cols[i]] * x[i], for one token, without scales;
 * rows as for gemv_c2_i8. */
typedef void tn_mul_cols_fn(int32_t *sum, const struct tn_matrix *w, uint32_t row_begin,
                            uint32_t row_end, const uint32_t *cols, const int8_t *x,
                            uint32_t n_cols, const struct tn_worker *worker);
/* unpack_row: dst [cols] = a row of W as f32. */
typedef void tn_unpack_row_fn(float *dst, const struct tn_matrix *w, uint32_t row,
                              const struct tn_worker *worker);
/* The offset of the first byte of a tensor that is invalid in any file (part of a NaN, an infinity,
 * an unused code), or n_bytes. */
typedef uint64_t tn_find_bad_fn(const void *data, uint64_t n_bytes,
                                const struct tern_file_tensor *t);

struct tn_format {
    uint32_t layout;
    uint32_t scale_kinds; /* bit k: enum tern_scale_kind k */
    enum tn_act act;      /* precision in which products take the input */
    /* Makes the views of *w, whose first members are set; NULL: the format has none. */
    void (*bind)(struct tn_matrix *w, const struct tern_file_tensor *t);
    /* Products; tn_format_mul selects one. */
    tn_mul_fn *mul_one;   /* for one input */
    tn_mul_fn *mul_few;   /* for 2 to n_few inputs */
    tn_mul_fn *mul_panel; /* for more */
    uint32_t n_few;       /* at most TN_FEW_TOKENS */
    tn_mul_rows_fn *mul_rows;         /* skips rows that are not needed; NULL: cannot */
    tn_mul_rows_few_fn *mul_rows_few; /* not NULL if mul_rows is not */
    tn_mul_cols_fn *mul_cols;     /* skips columns whose input is zero; NULL: cannot */
    tn_unpack_row_fn *unpack_row; /* NULL: never used for a table */
    bool is_searchable; /* the best rows are found without reading all bits (head.h) */
    /* Memory of a thread for matrices with `cols` columns; NULL: none. */
    size_t (*lut_bytes)(uint32_t cols); /* scratch->lut, kept for all products of an input */
    size_t (*row_bytes)(uint32_t cols); /* scratch->unpacked, for one call */
    tn_find_bad_fn *find_bad; /* NULL: all bytes are valid */
    /* The formats of the same layout for inputs in f32, 16 and 8 bits.  NULL: this row, or there is
     * no choice. */
    const struct tn_format *exact, *fine, *coarse;
};

/* A matrix's format for this precision of inputs, if it has a choice. */
static inline const struct tn_format *tn_format_with(const struct tn_format *format,
                                                     enum tn_inputs_as inputs)
{
    const struct tn_format *other = inputs == TN_INPUTS_AS_F32  ? format->exact
                                    : inputs == TN_INPUTS_AS_16 ? format->fine
                                    : inputs == TN_INPUTS_AS_8  ? format->coarse
                                                                : NULL;
    return other ? other : format;
}

/* The same for a head.  Its products give logits directly and are a small part of the work, so its
 * inputs stay fine by default. */
static inline const struct tn_format *tn_format_of_head(const struct tn_format *format,
                                                        enum tn_inputs_as inputs)
{
    return tn_format_with(format, inputs == TN_INPUTS_AS_MODEL ? TN_INPUTS_AS_16 : inputs);
}

/* Computes a product with the function for this number of inputs. */
void tn_format_mul(const struct tn_format *format, const struct tn_mul *m);

/* Whether the stored scales of a tensor are finite. */
bool tn_scales_are_finite(const struct tern_file_tensor *t, const void *scales);

/* The format of a layout with this kind of scales; NULL: unsupported. */
const struct tn_format *tn_format_find(uint32_t layout, uint32_t scale_kind);

#endif

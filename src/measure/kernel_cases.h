/* SPDX-License-Identifier: MIT
 *
 * Runs every operation of the kernel list on a model's own weights.
 *
 * `verify` compares the results of the kernel levels, `bench` measures the time.
 */
#ifndef TN_KERNEL_CASES_H
#define TN_KERNEL_CASES_H

#include <stdbool.h>

#include "engine/engine.h"

/* How much of a model the cases process. */
struct tn_case_size {
    uint32_t n_rows;      /* of a matrix; TN_GEMM_ROWS, or more than any has */
    uint32_t n_layers;    /* layers whose matrices are multiplied by one token, at least 1 */
    uint32_t n_gemm;      /* layers whose matrices are multiplied by several, at least 1 */
    uint32_t n_tokens;    /* number of those, at most TN_CASE_MAX_TOKENS */
    uint32_t n_pos;       /* positions of a cache block */
    size_t cache_bytes;   /* blocks of one head; at least one is used */
    bool with_stand_ins;  /* add small tables in the layouts that the model does not use */
};
#define TN_CASE_MAX_TOKENS 32u
#define TN_CASE_OUT_BYTES 16u
#define TN_CASE_MAX_X 4.0f /* the largest value of xf */

/* Inputs, outputs and a hash of the results.  The pointers belong to kernel_case_work.c. */
struct tn_case_work {
    const struct tern_model *model;
    struct tn_case_size size;
    bool hashes;   /* add the results to `hash` */
    uint64_t hash; /* set to 0 before a case */
    /* Called between kernels; true leaves the case early.  NULL: never. */
    bool (*should_stop)(void *arg);
    void *arg;

    uint32_t widest; /* padded columns of the widest input */
    uint32_t x_cols; /* columns of x in use */
    int8_t *random;  /* [n_tokens][widest] */
    int8_t *x;       /* the same with zeros beyond x_cols */
    int32_t *x_sum;  /* [n_tokens] */
    float *xf, *yf;  /* [widest] */
    int16_t *x16;    /* [widest], zeros beyond hidden */
    uint16_t *halves; /* [widest], finite as f16 and bf16 */
    uint32_t *index; /* [widest] 0, 1, 2, ... */
    double *sums;    /* [TERN_PLANE_BLOCK_ROWS] */
    void *prepared;  /* a look-up table, or rounded inputs */
    void *scratch;   /* TN_KERNEL_SCRATCH_BYTES */
    int32_t *ints;   /* [n_tokens * TN_GEMM_ROWS], and [widest] */
    float *floats;   /* [widest], and [TERN_PLANE_BLOCK_ROWS][2] */
    int8_t *bytes;   /* [4 * widest] */
    unsigned char *out; /* [TN_CASE_OUT_BYTES * widest] written operands of calls */
    unsigned char *cache; /* [cache_bytes] no byte is 0, finite as f32 and f16 */
    void *planes_data;    /* stand-in with four planes */
    void *planes_scales;
    struct tn_bit_planes planes;
    void *blocks; /* stand-in of 16 rows x 256 columns, read in every block layout */
};

/* TERN_MEMORY. */
tern_status tn_case_work_init(struct tn_case_work *out, const struct tern_model *model,
                              const struct tn_case_size *size, struct tern_error *err);
void tn_case_work_fini(struct tn_case_work *work);

struct tn_kernel_case {
    const char *op;
    /* Runs the operation.  Returns the bytes that it read and wrote, 0 if the model has no data for
     * it. */
    uint64_t (*run)(struct tn_case_work *work, const struct tn_kernels *kernels);
};
/* One per operation of TN_KERN_OPS, in that order. */
extern const struct tn_kernel_case tn_kernel_cases[];
extern const uint32_t tn_n_kernel_cases;

#endif

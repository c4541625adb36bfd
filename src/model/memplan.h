/* SPDX-License-Identifier: MIT
 *
 * Every size of a session, computed before anything is allocated.  Nothing in
 * model/ or run/session.c takes memory for a run that is not counted here.
 *
 *   session memory = scratch (one arena, taken at once)
 *                  + cache blocks (address space at once, pages 256 positions at a time)
 */
#ifndef TN_MEMPLAN_H
#define TN_MEMPLAN_H

#include "base/arena.h"
#include "model/kvcache.h"

/* What a session is planned for. */
struct tn_memplan_input {
    uint32_t n_ctx;     /* positions, at least 1 */
    uint32_t n_batch;   /* tokens of a prefill batch, 1..512 */
    uint32_t n_threads; /* of the engine's team */
    enum tn_kv_type kv;
};

/* Rows whose logits change before the choice (penalties) that a head search can take. */
#define TN_HEAD_MAX_ALWAYS 1024u

/* Between the sums of tokens: TN_GEMM_ROWS and a line more, so that those of the same rows do not
 * all meet in a quarter of the first-level cache. */
#define TN_SUM_STRIDE (TN_GEMM_ROWS + 16u)

/* Attention handles at least this many query rows together where a batch has them. */
#define TN_ATTN_QUERIES 16u

/* Query rows as they meet the cache: for a q8 cache rounded as its keys are (kern.h). */
struct tn_queries {
    void *rows;       /* [n][dim] f32, q8 cache: int8 */
    uint16_t *scales; /* [n][tn_kv_q8_scales(dim)], q8 cache only */
};

/* Partial attention of a group of query rows over some positions: see attn.c. */
struct tn_attn_state {
    float *max; /* [n] largest score */
    float *sum; /* [n] sum of exp(score - max) */
    float *out; /* [n][dim] sum of exp(score - max) * v */
};

/* One thread's share of scratch memory. */
struct tn_thread_scratch {
    int8_t *head_rows; /* [TN_HEAD_UNPACK_ROWS][hidden] rows of a head in planes */
    int32_t *sum;  /* [n_batch][TN_SUM_STRIDE], and TN_C2_MAX_ROWS at least */
    int32_t *col_sum; /* [hidden padded to TERN_C2_ROW_ALIGN] */
    uint64_t *col_sum_of; /* number of the tn_project_cols that col_sum belongs to; as lut_input */
    void *gemm;    /* TN_GEMM_SCRATCH_BYTES */
    void *lut;     /* TN_LUT_BYTES of the widest input of a T2 matrix, made by lut_t2 */
    uint64_t *lut_input; /* number of the rounded input that lut was made of; a line of its own */
    float *kv_row;     /* [2][dim] one rotated key and one value */
    struct tn_queries queries;  /* [queries], room for any type */
    uint32_t *n_valid; /* [queries] */
    float *score;      /* [queries][TN_KV_BLOCK] */
    struct tn_attn_state part;  /* [queries], one block */
    struct tn_attn_state total; /* [queries], the blocks so far */
};

/* Activations of one batch; n_batch rows unless said otherwise. */
struct tn_scratch {
    float *h;          /* [hidden] residual stream */
    float *x;          /* [hidden] input of the head */
    int8_t *xq;        /* [xq_stride] rounded input of a projection, zero-padded */
    float *xs;         /* factor that undoes the rounding */
    int32_t *x_sum;    /* sum_i8 of xq, in batches of several tokens */
    size_t xq_stride;
    float *q;          /* [n_head * head_dim] */
    float *k;          /* [n_kv_head * head_dim] */
    float *v;          /* [n_kv_head * head_dim] */
    float *q_rot;      /* [n_head][dim] rotated, padded with zeros; q itself without padding */
    struct tn_queries queries; /* [n_head]; q_rot itself but for a q8 cache */
    float *att;        /* [n_head * head_dim] */
    float *gate;       /* [ffn]; then the product act(gate) * up */
    float *cos, *sin;  /* [head_dim / 2] */
    double *inv_freq;  /* [head_dim / 2], not per token */
    /* decode only */
    void *prep;        /* TN_PREP_R2_BYTES of hidden */
    uint32_t *active;  /* [ffn] rows of up, then columns of down, that matter */
    int8_t *active_x;  /* [ffn] inputs of these columns */
    float *active_gate; /* [ffn] gates of these rows */
    struct tn_attn_state blocks; /* [n_blocks][n_head] */
    float *logits;     /* [vocab] */
    /* head in planes: struct tn_head_search (head.h) */
    int16_t *head_x16;
    double *head_sums;
    float *head_group_best;
    struct tn_head_count *head_counts;
    uint32_t *head_always; /* [TN_HEAD_MAX_ALWAYS] */
    uint32_t *ids;     /* [n_ctx] what the cache holds */
    struct tn_thread_scratch *threads; /* [n_threads] */
};

struct tn_memplan {
    uint64_t scratch_bytes;
    uint64_t kv_block_bytes;
    uint64_t kv_full_bytes;  /* n_ctx filled */
    uint64_t kv_bytes_per_token;
};

/* Query rows that share a key head in one attention item. */
uint32_t tn_attn_group(const struct tern_file_config *config);

/* Lays scratch memory out; with a NULL arena base it only counts.  The memory is all zeros, as new
 * pages are: lut_input and col_sum_of, whose numbers begin with 1, name nothing yet. */
void tn_scratch_layout(struct tn_scratch *out, struct tn_arena *arena,
                       const struct tern_file_config *config, const struct tn_memplan_input *input);
void tn_memplan_make(struct tn_memplan *out, const struct tern_file_config *config,
                     const struct tn_memplan_input *input);

#endif

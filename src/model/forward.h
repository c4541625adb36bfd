/* SPDX-License-Identifier: MIT
 *
 * The forward pass of BitNet b1.58.  The reference is Hugging Face's
 * transformers/models/bitnet/modeling_bitnet.py.
 *
 * A struct tn_forward is one session's view of everything that an evaluation
 * needs; the session owns the memory.  Nothing here allocates, does I/O or
 * fails: the session has checked ids and made room in the cache.
 *
 * The result for a token does not depend on how many tokens are evaluated
 * together, on the number of threads, or on the kernel level.
 */
#ifndef TN_FORWARD_H
#define TN_FORWARD_H

#include <stdbool.h>

#include "kern/kern.h"
#include "model/kvcache.h"
#include "model/memplan.h"
#include "model/weights.h"
#include "par/team.h"

/* Where a token's time goes; the order of tern_counter_region. */
enum tn_region {
    TN_REGION_QKV,
    TN_REGION_ATTENTION,
    TN_REGION_O,
    TN_REGION_GATE,
    TN_REGION_UP,
    TN_REGION_DOWN,
    TN_REGION_HEAD,
    TN_N_REGIONS
};

struct tn_counters {
    uint64_t n_decoded;
    uint64_t n_prefilled;
    uint64_t decode_weight_bytes;
    uint64_t up_active, up_rows;     /* rows computed, rows in all, while decoding */
    uint64_t down_active, down_cols; /* columns added, columns in all */
    uint64_t head_rows, head_exact;  /* rows of the head, rows computed exactly */
    uint64_t decode_ns[TN_N_REGIONS];
    uint64_t prefill_ns[TN_N_REGIONS];
};

/* Which logits must be exact.  With n_best 0 all are.  Else the n_best largest (ties included) of
 * those that are not in `always`, and all in `always`, are exact and the others may be minus
 * infinity: a head in planes then reads far fewer bytes. */
struct tn_head_need {
    uint32_t n_best;
    uint32_t n_allowed;     /* rows from here on are never chosen */
    const uint32_t *always; /* [n_always] ascending */
    uint32_t n_always;
};

struct tn_forward {
    const struct tn_weights *weights;
    const struct tn_kernels *kernels;
    struct tn_team *team;
    struct tn_kvcache *kv;
    struct tn_scratch s;
    struct tn_counters counters;
    uint64_t (*now_ns)(void);
    /* Called after each layer; false stops the evaluation. NULL: nothing to do. */
    bool (*after_layer)(void *arg, const struct tn_layer *layer);
    void *after_layer_arg;
    /* Called with the same argument after each run of head rows, on the thread that used them.
     * NULL: nothing to do. */
    void (*after_head_rows)(void *arg, const void *rows, size_t n_bytes);
    /* Which logits somebody will look at; set before tn_forward_eval. */
    struct tn_head_need need;
    uint32_t n_head_together; /* next tokens for which n_head_first planes are read at once */
    uint32_t n_head_first;
    uint64_t n_inputs; /* rounded so far; numbers the look-up tables */
    uint64_t n_col_sums; /* made so far; numbers the sums of the threads */
    /* The batch in work. */
    uint32_t n_tokens; /* tokens of this batch */
    uint32_t position; /* of the first */
};

/* Evaluates ids [n] (n <= n_batch, each below vocab) at positions [position, position + n); the
 * cache has room for them.  logits, if not NULL, receives rows of vocab f32: all n rows when
 * all_rows, else only the last.  Returns false when after_layer did: the positions are then not
 * valid. */
bool tn_forward_eval(struct tn_forward *f, const uint32_t *ids, uint32_t n, uint32_t position,
                     float *logits, bool all_rows);

/* ---- the parts, each in its own file ---- */

/* linear.c: rounds x [n][cols], or its RMSNorm with the weights `norm` when that is not NULL, to
 * int8 in s.xq with factors s.xs. */
void tn_round_input(struct tn_forward *f, const float *x, const float *norm, uint32_t cols);

/* One projection of the rounded input. */
struct tn_projection {
    const struct tn_linear *linear;
    float *dst;    /* [n][rows], y, or += y when add */
    bool add;
    const struct tn_linear *up; /* not NULL: dst becomes act(y) * (up of the same input) */
};
/* Computes up to 3 projections of the same input in one parallel loop. */
void tn_project(struct tn_forward *f, const struct tn_projection *projections, uint32_t n);
/* Decode only: gate[r] = act(gate[r]) * (row r of up, an R2 matrix), for n_active rows in
 * ascending order. */
void tn_project_up(struct tn_forward *f, const struct tn_linear *up, float *gate,
                   const uint32_t *rows, uint32_t n_active);
/* Decode only: dst [rows] += y of a C2 matrix, adding only the given columns with their inputs. */
void tn_project_cols(struct tn_forward *f, const struct tn_linear *linear, const uint32_t *cols,
                     const int8_t *x, uint32_t n_active, float *dst);

/* attn.c: from s.q, s.k, s.v (not yet rotated) of layer i: rotates, stores keys and values in the
 * cache, and leaves softmax(q.k^T / sqrt(d)) . v in s.att [n][n_head * head_dim]. */
void tn_attention(struct tn_forward *f, uint32_t layer);

/* attn.c: puts a rotated key and a value, [dim] each, into the cache. */
void tn_kv_store_row(const struct tn_forward *f, uint32_t layer, uint32_t i_kv_head,
                     uint32_t position, const float *key, const float *value);

/* ffn.c: gate [n] = act(gate) * up. */
void tn_activate(const struct tn_forward *f, float *gate, const float *up, uint32_t n);

/* ffn.c: h += down(norm(act(gate(x)) * up(x))), x = the rounded input in s.xq. */
void tn_ffn(struct tn_forward *f, const struct tn_layer *layer);

/* embed_head.c */
void tn_embed(struct tn_forward *f, const uint32_t *ids);
void tn_head(struct tn_forward *f, float *logits, bool all_rows);

/* Adds the time since *start to a region and moves *start on. */
void tn_region_end(struct tn_forward *f, enum tn_region region, uint64_t *start);

#endif

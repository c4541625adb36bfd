/* SPDX-License-Identifier: MIT
 *
 * The forward pass of a model whose layers tern_file_layer describes
 * (tern/model_format.h gives the order of work).  The references are Hugging
 * Face's transformers: modeling_bitnet.py, and of other families their own.
 *
 * A struct tn_forward is everything that an evaluation needs; a workspace
 * (engine/workspace.h) owns the memory.  Nothing here allocates, does I/O or fails:
 * ids are checked, and there is room in the cache.
 *
 * A batch is rows; each is a token at a position of a sequence.  The rows of a
 * sequence lie side by side as a span.  What a row gives does not depend on the
 * other rows, on the number of threads, or on the kernel level.
 */
#ifndef TN_FORWARD_H
#define TN_FORWARD_H

#include <stdbool.h>

#include "kern/kern.h"
#include "model/kvcache.h"
#include "model/weights.h"
#include "model/workspace_size.h"
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
    uint64_t n_experts_read;         /* while decoding, without shared ones */
    uint64_t decode_bytes[TN_N_REGIONS]; /* of decode_weight_bytes, so far */
    uint64_t attributed_bytes; /* their sum */
    uint64_t decode_ns[TN_N_REGIONS];
    uint64_t prefill_ns[TN_N_REGIONS];
};

/* Rows of one sequence, at positions one after the other. */
struct tn_span {
    unsigned char *const *blocks; /* of the sequence's cache, with room for the rows */
    unsigned char *state;         /* of the sequence, at `position`; NULL: no layer has one */
    uint32_t position;            /* of the first row */
    uint32_t row;                 /* its number in the batch */
    uint32_t n_rows;              /* at least 1 */
};

struct tn_batch {
    const uint32_t *ids; /* [n_rows] each below vocab */
    uint32_t n_rows;     /* 1 ... n_batch of the memory plan */
    const struct tn_span *spans; /* [n_spans] all rows, in order */
    uint32_t n_spans;
    /* What it leaves behind; each may be NULL. */
    const struct tn_logits_row *wanted; /* [n_wanted] those that need all logits come first */
    uint32_t n_wanted;
    float *logits; /* [n_wanted][vocab]; NULL when the model has no head */
    float *states; /* [n_rows][hidden] behind the final norm and the logit scale */
};

struct tn_forward {
    const struct tn_weights *weights;
    const struct tn_kernels *kernels;
    struct tn_team *team;
    enum tn_kv_type kv_type; /* of the cache */
    const struct tn_state_plan *states;
    struct tn_scratch s;
    struct tn_counters counters;
    uint64_t (*now_ns)(void);
    /* Called after each layer; false stops the evaluation. NULL: nothing to do. */
    bool (*after_layer)(void *arg, const struct tn_layer *layer);
    void *after_layer_arg;
    /* Asked with the same argument, on the thread that evaluates, inside long loops; once it is
     * true, what is left of them is skipped and the evaluation stops. NULL: never. */
    bool (*should_stop)(void *arg);
    _Atomic bool is_stopping;
    /* Called with the same argument after each run of head rows, on the thread that used them.
     * NULL: nothing to do. */
    void (*after_head_rows)(void *arg, const void *rows, size_t n_bytes);
    /* Called with the same argument for the matrices of the experts that were chosen, before the
     * first of them is used. NULL: nothing to do. */
    void (*before_expert)(void *arg, const void *matrix, size_t n_bytes);
    uint32_t n_head_together; /* next tokens for which n_head_first planes are read at once */
    uint32_t n_head_first;
    enum tn_inputs_as inputs; /* of products whose inputs are not rounded to int8 */
    uint64_t n_col_sums; /* made so far; numbers the sums of the threads */
    /* The batch in work. */
    const struct tn_batch *batch;
    uint32_t n_tokens; /* its rows */
    bool is_decode;    /* no span has more than one row */
    uint32_t activation; /* of the layer in work */
    /* What the half of a layer in progress takes: rows of `input` [n_tokens][hidden], which may be
     * s.h, or their RMSNorms with the weights input_norm when that is not NULL. */
    float *input;
    const float *input_norm;
};

/* Where the angles of token t of the batch for rotation i_rope lie in s.cos and s.sin. */
static inline size_t tn_rope_at(const struct tn_forward *f, uint32_t i_rope, uint32_t t)
{
    return ((size_t)i_rope * f->n_tokens + t) * f->weights->rope_half;
}

/* Computes what does not change between evaluations, once weights and scratch memory are there. */
void tn_forward_prepare(struct tn_forward *f);

/* Evaluates a batch.  Returns false when after_layer did, or should_stop was true: what was written
 * to the cache, and the outputs, are then not valid. */
bool tn_forward_eval(struct tn_forward *f, const struct tn_batch *batch);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The forward pass of a model whose layers tern_file_layer describes
 * (tern/model_format.h has the order of work).  The references are the families' implementations in
 * Hugging Face's transformers, such as modeling_bitnet.py.
 *
 * A struct tn_forward is everything that an evaluation needs; a workspace
 * (engine/workspace.h) owns the memory.  Nothing here allocates, does I/O or fails: the caller has
 * checked ids and made room in the cache.
 *
 * A batch consists of rows; each is a token at a position of a sequence.  The rows of a sequence
 * are adjacent and form a span.  The result of a row does not depend on the other rows, on the
 * number of threads, or on the kernel level.
 */
#ifndef TN_FORWARD_H
#define TN_FORWARD_H

#include <stdbool.h>

#include "kern/kern.h"
#include "model/kvcache.h"
#include "model/weights.h"
#include "model/workspace_size.h"
#include "par/team.h"

/* Regions of a token's time, in the order of tern_counter_region. */
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
    uint64_t up_active, up_rows;     /* rows computed and all rows, while decoding */
    uint64_t down_active, down_cols; /* columns added and all columns */
    uint64_t head_rows, head_exact;  /* rows of the head, and rows computed exactly */
    uint64_t n_experts_read;         /* while decoding, without shared experts */
    uint64_t decode_bytes[TN_N_REGIONS]; /* decode_weight_bytes per region */
    uint64_t attributed_bytes; /* their sum */
    uint64_t decode_ns[TN_N_REGIONS];
    uint64_t prefill_ns[TN_N_REGIONS];
};

/* Rows of one sequence at consecutive positions. */
struct tn_span {
    unsigned char *const *blocks; /* of the sequence's cache, with room for the rows */
    unsigned char *state;         /* of the sequence, at `position`; NULL: no layer has one */
    uint32_t position;            /* of the first row */
    uint32_t row;                 /* its index in the batch */
    uint32_t n_rows;              /* at least 1 */
};

struct tn_batch {
    const uint32_t *ids; /* [n_rows] each below vocab */
    uint32_t n_rows;     /* 1 ... n_batch of the memory plan */
    const struct tn_span *spans; /* [n_spans] all rows, in order */
    uint32_t n_spans;
    /* Outputs; each may be NULL. */
    const struct tn_logits_row *wanted; /* [n_wanted] rows that need all logits come first */
    uint32_t n_wanted;
    float *logits; /* [n_wanted][vocab]; NULL if the model has no head */
    float *states; /* [n_rows][hidden] after the final norm and the logit scale */
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
    /* Called after each layer; false stops the evaluation.  NULL: no callback. */
    bool (*after_layer)(void *arg, const struct tn_layer *layer);
    void (*after_mixer)(void *arg, const struct tn_layer *layer); /* NULL: nothing to do */
    void *after_layer_arg;
    /* Called with the same argument on the evaluating thread inside long loops; true stops the
     * evaluation and skips the rest of the loops.  NULL: never stops. */
    bool (*should_stop)(void *arg);
    _Atomic bool is_stopping;
    /* Called with the same argument after each run of head rows, on the thread that used them.
     * NULL: no callback. */
    void (*after_head_rows)(void *arg, const void *rows, size_t n_bytes);
    /* Called with the same argument for the matrices of the chosen experts, before the first of
     * them is used.  NULL: no callback. */
    void (*before_expert)(void *arg, const void *matrix, size_t n_bytes);
    uint32_t n_head_together; /* remaining tokens for which n_head_first planes are read at once */
    uint32_t n_head_first;
    enum tn_inputs_as inputs; /* precision of inputs that the model does not round to int8 */
    uint64_t n_col_sums; /* number of the latest column sums, by which threads recognise theirs */
    /* The current batch. */
    const struct tn_batch *batch;
    uint32_t n_tokens; /* rows of the batch */
    bool is_decode;    /* no span has more than one row */
    uint32_t activation; /* of the current layer */
    /* Input of the current half of a layer: rows of `input` [n_tokens][hidden], which may be s.h,
     * or their RMSNorms with the weights input_norm if that is not NULL. */
    float *input;
    const float *input_norm;
    const struct tn_norm *final_norm; /* of the model or of its draft head */
    uint32_t n_head_rows; /* rows of the head that full products compute */
};

/* The offset in s.cos and s.sin of the angles of token t of the batch for rotation i_rope. */
static inline size_t tn_rope_at(const struct tn_forward *f, uint32_t i_rope, uint32_t t)
{
    return ((size_t)i_rope * f->n_tokens + t) * f->weights->rope_half;
}

static inline struct tn_worker tn_worker_of(const struct tn_forward *f, uint32_t i_thread)
{
    return (struct tn_worker){f->kernels, &f->s.threads[i_thread]};
}

/* The span that contains row t. */
static inline const struct tn_span *tn_span_of(const struct tn_forward *f, uint32_t t)
{
    const struct tn_span *span = f->batch->spans;
    while (t - span->row >= span->n_rows)
        span++;
    return span;
}

/* Computes the constants of all evaluations; weights and scratch memory must be set. */
void tn_forward_prepare(struct tn_forward *f);

/* Evaluates a batch.  Returns false if after_layer did, or should_stop returned true: then the rows
 * written to the cache, and the outputs, are invalid. */
bool tn_forward_eval(struct tn_forward *f, const struct tn_batch *batch);

/* Evaluates rows of the draft head of a model that has one (tern/model_format.h): row t of the only
 * span, at most TN_DRAFT_ROWS, is the id that follows a position whose final state is row t of
 * `states` [n_rows][hidden].  Positions and blocks are those of the draft head's cache
 * (struct tn_sequence_scratch).  The logits are of the ids after those; only ids below n_allowed of
 * the first need have one, if that is not 0.  `last` [hidden] becomes the state of the last row,
 * which may be `states` for a further guess.  Returns false as tn_forward_eval. */
bool tn_forward_draft(struct tn_forward *f, const struct tn_batch *batch, const float *states,
                      float *last);

#endif

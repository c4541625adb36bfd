/* SPDX-License-Identifier: MIT
 *
 * Every size of a workspace, computed before anything is allocated.  Neither model/ nor
 * engine/workspace.c takes memory for a run that is not counted here.
 *
 *   workspace = scratch (one arena, allocated at once)
 *             + cache blocks (address space at once, pages 256 positions at a time)
 */
#ifndef TN_WORKSPACE_SIZE_H
#define TN_WORKSPACE_SIZE_H

#include "base/arena.h"
#include "base/bits.h"
#include "model/acts.h"
#include "model/head.h"
#include "model/state.h"
#include "model/weights.h"

/* The parameters of a workspace. */
struct tn_workspace_input {
    uint32_t n_ctx;     /* positions per sequence, at least 1 */
    uint32_t n_batch;   /* rows per batch, 1..512 */
    uint32_t n_threads; /* of the engine's team */
    enum tn_kv_type kv;
    uint32_t n_sequences; /* at least 1 */
    uint32_t n_logits;    /* rows per batch whose logits are wanted, 1 to TN_HEAD_MAX_SEARCHES */
    enum tn_inputs_as inputs; /* precision of the engine's inputs; sizes do not depend on it */
    uint32_t n_checkpoints; /* copies of states (model/state.h); 0 if no layer has a state */
    bool has_drafts;        /* memory for the draft head, if the model has one */
};

/* Rows whose logits change before the choice (penalties) that a head search can take. */
#define TN_HEAD_MAX_ALWAYS 1024u

/* Rows of a draft head that are evaluated together, and blocks of its cache: enough for the window,
 * and for rows that are rolled back. */
#define TN_DRAFT_ROWS 64u
#define TN_DRAFT_BLOCKS 2u
static_assert(TN_DRAFT_WINDOW + 2 * TN_DRAFT_ROWS <= TN_DRAFT_BLOCKS * TN_KV_BLOCK,
              "rows overwrite no position that a later one sees");

/* The distance between the sums of tokens: TN_GEMM_ROWS and one line more, so that the sums of the
 * same rows do not collide in a quarter of the first-level cache. */
#define TN_SUM_STRIDE (TN_GEMM_ROWS + 16u)

static inline float *tn_take_f32(struct tn_arena *arena, size_t n)
{
    return tn_arena_take(arena, n * sizeof(float));
}

/* Lays out the scratch memory of layers of one kind at *out and in the arena, with room for the
 * largest of them.  out NULL: only counts, like the arena. */
typedef void tn_scratch_layout_fn(void *out, struct tn_arena *arena,
                                  const struct tn_weights *weights,
                                  const struct tn_workspace_input *input);

/* One thread's share of scratch memory. */
struct tn_thread_scratch {
    int8_t *unpacked; /* rows of a matrix: format->row_bytes */
    int32_t *sum;  /* [n_batch][TN_SUM_STRIDE], at least TN_C2_MAX_ROWS */
    int32_t *col_sum; /* [tokens, at most TN_FEW_TOKENS][weights->col_sum_rows] */
    uint64_t *col_sum_of; /* number of the product that col_sum belongs to; as lut_input */
    void *kernel;  /* TN_KERNEL_SCRATCH_BYTES */
    void *lut;     /* tables of an input: format->lut_bytes */
    uint64_t *lut_input; /* number of the rounded input that lut was made from; a separate cache
                          * line */
};

/* Activations of one batch; n_batch rows unless stated otherwise. */
struct tn_scratch {
    float *h;          /* [hidden] residual stream */
    float *x;          /* [hidden] normed states, results of branches, input of the head */
    float *beside;     /* [hidden] input of feed-forwards parallel to a mixer; NULL: they take h */
    struct tn_acts in; /* the input of the current products, and its formats */
    void *mixers[TERN_MIXER_END], *ffns[TERN_FFN_END]; /* mixer.h, ffn.h; NULL: no layer has one */
    float *cos, *sin;  /* [n_ropes][n][rope_half] */
    double *inv_freq;  /* [n_ropes][rope_half], not per token */
    /* for a draft head; NULL: the model has none, or nothing is drafted */
    float *draft_states; /* [hidden] final states of a batch, its inputs */
    float *draft_input;  /* [TN_DRAFT_ROWS][2 hidden] */
    float *draft_last;   /* [hidden], one row */
    /* for decoding only */
    uint32_t *active;  /* [n_listed] needed rows of up, then needed columns of down */
    int8_t *active_x;  /* [n_listed] inputs of these columns */
    float *active_gate; /* [n_listed] gates of these rows */
    struct tn_logits_row *wanted; /* [n_batch] for the callers that make batches (forward.h) */
    float *logits;     /* [n_logits][vocab] */
    struct tn_head_search *searches; /* [n_logits] with their memory (head.h); NULL: the head is
                                      * not searchable */
    struct tn_state_layer *state_layers; /* [tn_n_all_layers] for tn_state_plan_make */
    struct tn_checkpoint *checkpoints; /* [n_checkpoints] */
    uint32_t *checkpoint_refs, *free_checkpoints; /* [n_checkpoints] */
    struct tn_sequence_scratch *sequences; /* [n_sequences] */
    uint32_t *block_refs;  /* [n_sequences * n_blocks] number of sequences that hold a block */
    uint32_t *free_blocks; /* [n_sequences * n_blocks] */
    struct tn_thread_scratch *threads; /* [n_threads] */
};

/* One sequence's share of scratch memory. */
struct tn_sequence_scratch {
    uint32_t *ids;           /* [n_ctx] the tokens in its cache */
    unsigned char **blocks;  /* [n_blocks] its cache */
    unsigned char *state;    /* [bytes.sequence of the state plan], initially of position 0; NULL:
                              * none */
    uint32_t *head_always;   /* [TN_HEAD_MAX_ALWAYS] ids that a head search must compute */
    /* [n_blocks] cache of the draft head: TN_DRAFT_BLOCKS blocks in turn; NULL: none */
    unsigned char **draft_blocks;
};

struct tn_workspace_size {
    uint64_t scratch_bytes;
    uint64_t state_bytes; /* of scratch_bytes, states of all sequences */
    uint64_t kv_block_bytes;
    uint64_t kv_full_bytes;  /* n_ctx positions of all sequences */
    uint64_t kv_bytes_per_token;
    uint64_t checkpoint_bytes; /* per checkpoint */
    uint64_t checkpoints_full_bytes;
};

static inline struct tn_state_input tn_workspace_state_input(const struct tn_workspace_input *input)
{
    return (struct tn_state_input){input->kv, input->n_ctx, input->n_batch};
}

/* Memory of the formats of n_batch rows of inputs, widths [TN_N_INPUTS_AS], for one precision of
 * inputs; the sum counts the largest, so that a plan holds for all engines. */
void tn_acts_layout(struct tn_acts *out, struct tn_arena *arena,
                    const struct tn_input_widths *widths, enum tn_inputs_as inputs, size_t n);

/* Lays out scratch memory; with a NULL arena base it only counts.  The memory must be all zeros,
 * like new pages: lut_input and col_sum_of, whose numbers begin with 1, then refer to nothing
 * yet. */
void tn_scratch_layout(struct tn_scratch *s, struct tn_arena *arena,
                       const struct tn_weights *weights,
                       const struct tn_workspace_input *input);
void tn_workspace_size_make(struct tn_workspace_size *out, const struct tn_weights *weights,
                            const struct tn_workspace_input *input);

#endif

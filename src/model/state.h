/* SPDX-License-Identifier: MIT
 *
 * What a layer stores of earlier positions, and how far it can be rolled back.
 *
 *   blocks      bytes per TN_KV_BLOCK positions: keys and values.  Written once per position, so
 *               any position can be reached, and sequences share them by reference.
 *   state       bytes per sequence, of any length: a recurrent state, a ring of a window.  Rows
 *               change it in place, so only some positions can be reached again.
 *   checkpoint  a copy of the state of a position, from which the layer can continue there.
 *
 * engine/checkpoints.h decides which checkpoints are kept; a sequence (engine/sequence.h) takes
 * the minimum over all layers.  Callers may not assume that a rollback reaches the requested
 * position: tn_sequence_truncate and tn_sequence_share return the position reached, and the caller
 * evaluates the rest again.
 */

/* A mixer has one struct tn_state_ops.  For full attention, which has blocks only, no function but
 * `bytes` is called, and the rest of this file costs it nothing. */
#ifndef TN_STATE_H
#define TN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/kvcache.h"

struct tn_layer;
struct tn_weights;

/* The inputs of the size calculation. */
struct tn_state_input {
    enum tn_kv_type kv;
    uint32_t n_ctx;   /* positions per sequence */
    uint32_t n_batch; /* maximum rows per span, drafts included */
};

/* Multiples of 64, or 0. */
struct tn_state_bytes {
    size_t block;      /* per block of TN_KV_BLOCK positions */
    size_t sequence;   /* state */
    size_t checkpoint; /* 0 where `sequence` is 0 */
};

/* The data of a layer in the sequences of a workspace. */
struct tn_state_layer {
    const struct tn_layer *layer;
    struct tn_state_bytes at;    /* offsets of its data */
    struct tn_state_bytes bytes; /* their sizes; without `sequence` the layer has no state */
    struct tn_state_input input; /* the sizes depend on it */
};

/* A state is `bytes.sequence` bytes without pointers: a sequence that shares another's prefix
 * copies it.  All zeros are the state of position 0.  A state records its position, because an
 * interrupted evaluation leaves later layers at an earlier one.
 *
 * mixer->run gets rows [position, position + n_rows) of a span, and its state (tn_state_of) is at
 * `position`.  The caller keeps any number of the rows: a wrong draft is rolled back by `truncate`,
 * and everything below the next span's position is final. */
struct tn_state_ops {
    struct tn_state_bytes (*bytes)(const struct tn_weights *weights, const struct tn_layer *layer,
                                   const struct tn_state_input *input);

    /* Called for layers with a state only: */

    /* The last position up to `position` to which this state, or the one that `restore` would make
     * of this checkpoint, can be rolled back; 0 is always possible. */
    uint32_t (*reach)(const struct tn_state_layer *layer, const void *state, uint32_t position);
    /* Rolls back to `position`, one that `reach` returns unchanged. */
    void (*truncate)(const struct tn_state_layer *layer, void *state, uint32_t position);

    /* Writes a checkpoint of `position`, one that `reach` returns unchanged, to `kept`
     * [bytes.checkpoint].  The same position of the same text always gives the same bytes, so
     * unused bytes are zero: checkpoints are written to files. */
    void (*checkpoint)(const struct tn_state_layer *layer, const void *state, uint32_t position,
                       void *kept);
    /* Sets the state to that of the checkpoint. */
    void (*restore)(const struct tn_state_layer *layer, void *state, const void *kept);
    /* Whether these bytes, from an untrusted file, can be restored to a state of `position`. */
    bool (*is_sound)(const struct tn_state_layer *layer, const void *kept, uint32_t position);
    /* Makes a state of `position` after some text, for measurements at a depth. */
    void (*pretend)(const struct tn_state_layer *layer, void *state, uint32_t position);
};

/* Bytes of a block of a draft head's cache, for a cache of any type. */
size_t tn_draft_block_bytes(const struct tn_layer *layer);

/* The layout shared by all sequences of a workspace. */
struct tn_state_plan {
    struct tn_state_bytes bytes;   /* of all layers; blocks and checkpoints are whole pages */
    /* [n_layer]; NULL when only counting.  One more for a draft head, whose cache is separate. */
    struct tn_state_layer *layers;
    uint32_t n_layer;
};

/* `layers` [tn_n_all_layers] may be NULL. */
void tn_state_plan_make(struct tn_state_plan *out, struct tn_state_layer *layers,
                        const struct tn_weights *weights, const struct tn_state_input *input);
/* Bytes of blocks per position, rounded up. */
uint64_t tn_kv_bytes_per_token(const struct tn_weights *weights,
                               const struct tn_state_input *input);

/* Whether a layer has a state: a rollback may then reach an earlier position than requested. */
static inline bool tn_has_state(const struct tn_state_plan *plan)
{
    return plan->bytes.sequence > 0;
}

/* The reason for keeping a checkpoint, in ascending order of importance. */
enum tn_mark {
    TN_MARK_SPACED, /* every TN_CHECKPOINT_SPACING positions, and checkpoints that lost another
                     * mark */
    TN_MARK_SYSTEM, /* the end of the system text */
    TN_MARK_PROMPT, /* the end of the newest prompt */
    TN_MARK_TURN,   /* the end of the last user message: templates remove thoughts back to it */
    TN_N_MARKS
};
#define TN_CHECKPOINT_SPACING 2048u

/* A checkpoint of all layers, and the sequences that can roll back to it. */
struct tn_checkpoint {
    unsigned char *kept; /* [bytes.checkpoint]; NULL: unused */
    uint32_t position;
    uint64_t of[TN_N_MARKS]; /* bit i: kept for this reason by sequence i */
    uint64_t last_used;
};

/* ---- all layers of a sequence; state [bytes.sequence], kept [bytes.checkpoint] ---- */

/* The minimum over the layers of the positions that they can reach. */
uint32_t tn_state_reach(const struct tn_state_plan *plan, const unsigned char *state,
                        uint32_t position);
uint32_t tn_state_kept_reach(const struct tn_state_plan *plan, const unsigned char *kept,
                             uint32_t position);
/* `position` is one that tn_state_reach returns unchanged. */
void tn_state_truncate(const struct tn_state_plan *plan, unsigned char *state, uint32_t position);
void tn_state_checkpoint(const struct tn_state_plan *plan, const unsigned char *state,
                         uint32_t position, unsigned char *kept);
void tn_state_restore(const struct tn_state_plan *plan, unsigned char *state,
                      const unsigned char *kept);
void tn_state_pretend(const struct tn_state_plan *plan, unsigned char *state, uint32_t position);
bool tn_state_is_sound(const struct tn_state_plan *plan, const unsigned char *kept,
                       uint32_t position);

#endif

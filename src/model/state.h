/* SPDX-License-Identifier: MIT
 *
 * What a layer keeps of the positions before, and how far it can go back.
 *
 *   blocks      bytes per TN_KV_BLOCK positions: keys and values.  Written once per position, so
 *               any position can be reached, and sequences share them by reference.
 *   state       bytes of a sequence, whatever its length: a recurrent state, a ring of a window.
 *               Rows change it in place, so only some positions can be reached again.
 *   checkpoint  the state of a position, copied aside, from which the layer can go on there.
 *
 * A mixer has one struct tn_state_ops.  Full attention keeps blocks only: no call but `bytes` is
 * made, and nothing below costs it anything.  Which checkpoints are kept, and when, is decided by
 * engine/checkpoints.h; a sequence (engine/cache_pool.h) asks all layers and takes the minimum.
 *
 * Nobody may assume that a sequence reaches the position that was asked: tn_sequence_truncate and
 * tn_sequence_share return the position that they reached, and the rest is evaluated again.
 */
#ifndef TN_STATE_H
#define TN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/kvcache.h"

struct tn_layer;
struct tn_weights;

/* What the sizes of a workspace depend on. */
struct tn_state_input {
    enum tn_kv_type kv;
    uint32_t n_ctx;   /* positions of a sequence */
    uint32_t n_batch; /* most rows of a span, drafts included */
};

/* Multiples of 64, or 0. */
struct tn_state_bytes {
    size_t block;      /* per block of TN_KV_BLOCK positions */
    size_t sequence;   /* state */
    size_t checkpoint; /* 0 where `sequence` is 0 */
};

/* A layer of the sequences of a workspace. */
struct tn_state_layer {
    const struct tn_layer *layer;
    struct tn_state_bytes at;    /* offsets of its parts */
    struct tn_state_bytes bytes; /* their sizes; without `sequence` the layer has no state */
    struct tn_state_input input; /* what the sizes follow from */
};

/* A state is `bytes.sequence` bytes without pointers: a sequence that shares another's prefix gets
 * a copy of it.  All zeros are the state of position 0.  A state records its own position, since an
 * interrupted evaluation leaves later layers at an earlier one.
 *
 * mixer->run gets rows [position, position + n_rows) of a span, and its state (tn_state_of) stands
 * at `position`.  The caller keeps as many of the rows as it likes: a wrong draft is rolled back by
 * `truncate`, and everything below the next span's position is final. */
struct tn_state_ops {
    struct tn_state_bytes (*bytes)(const struct tn_weights *weights, const struct tn_layer *layer,
                                   const struct tn_state_input *input);

    /* Called for layers with a state only: */

    /* The last position up to `position` to which this state can be taken; 0 always can. */
    uint32_t (*reach)(const struct tn_state_layer *layer, const void *state, uint32_t position);
    /* Takes it there; `position` is one that `reach` gave for itself. */
    void (*truncate)(const struct tn_state_layer *layer, void *state, uint32_t position);

    /* Writes a checkpoint of `position`, one that `reach` gave for itself, to `kept`
     * [bytes.checkpoint].  The same position of the same text always gives the same bytes, so what
     * is not used is zero: checkpoints are written to files. */
    void (*checkpoint)(const struct tn_state_layer *layer, const void *state, uint32_t position,
                       void *kept);
    /* `reach` of the state that `restore` would give. */
    uint32_t (*kept_reach)(const struct tn_state_layer *layer, const void *kept,
                           uint32_t position);
    /* The state becomes that of the checkpoint. */
    void (*restore)(const struct tn_state_layer *layer, void *state, const void *kept);
    /* True when these bytes, from a file that anybody may have written, can be restored to a state
     * of `position`. */
    bool (*is_sound)(const struct tn_state_layer *layer, const void *kept, uint32_t position);
    /* The state becomes one of `position` after some text: for measurements at a depth. */
    void (*pretend)(const struct tn_state_layer *layer, void *state, uint32_t position);
};

/* What all sequences of a workspace have in common. */
struct tn_state_plan {
    struct tn_state_bytes bytes;   /* of all layers; blocks and checkpoints are whole pages */
    struct tn_state_layer *layers; /* [n_layer]; NULL: only counted */
    uint32_t n_layer;
};

/* `layers` [n_layer] may be NULL. */
void tn_state_plan_make(struct tn_state_plan *out, struct tn_state_layer *layers,
                        const struct tn_weights *weights, const struct tn_state_input *input);
/* Bytes of blocks per position, rounded up. */
uint64_t tn_kv_bytes_per_token(const struct tn_weights *weights,
                               const struct tn_state_input *input);

/* True when a layer keeps a state: sequences may then reach fewer positions than they are asked. */
static inline bool tn_has_state(const struct tn_state_plan *plan)
{
    return plan->bytes.sequence > 0;
}

/* Why a checkpoint is kept, the least important first. */
enum tn_mark {
    TN_MARK_SPACED, /* every TN_CHECKPOINT_SPACING positions, and what was one of the others */
    TN_MARK_SYSTEM, /* the end of the system text */
    TN_MARK_PROMPT, /* the end of the newest prompt */
    TN_MARK_TURN,   /* the end of the last user's message: templates strip thoughts back to it */
    TN_N_MARKS
};
#define TN_CHECKPOINT_SPACING 2048u

/* A checkpoint of all layers, and which sequences can go back to it. */
struct tn_checkpoint {
    unsigned char *kept; /* [bytes.checkpoint]; NULL: not in use */
    uint32_t position;
    uint64_t of[TN_N_MARKS]; /* bit i: of sequence number i, for this reason */
    uint64_t last_used;
};

/* ---- all layers of a sequence; state [bytes.sequence], kept [bytes.checkpoint] ---- */

/* The minimum over the layers of what each can reach. */
uint32_t tn_state_reach(const struct tn_state_plan *plan, const unsigned char *state,
                        uint32_t position);
uint32_t tn_state_kept_reach(const struct tn_state_plan *plan, const unsigned char *kept,
                             uint32_t position);
/* `position` is one that tn_state_reach gave for itself. */
void tn_state_truncate(const struct tn_state_plan *plan, unsigned char *state, uint32_t position);
void tn_state_checkpoint(const struct tn_state_plan *plan, const unsigned char *state,
                         uint32_t position, unsigned char *kept);
void tn_state_restore(const struct tn_state_plan *plan, unsigned char *state,
                      const unsigned char *kept);
void tn_state_pretend(const struct tn_state_plan *plan, unsigned char *state, uint32_t position);
bool tn_state_is_sound(const struct tn_state_plan *plan, const unsigned char *kept,
                       uint32_t position);

#endif

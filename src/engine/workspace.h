/* SPDX-License-Identifier: MIT
 *
 * The memory and state of evaluations: scratch memory for a batch of rows, the pool of cache
 * blocks, and the forward pass over them.
 *
 * A session has a workspace with one sequence, the scheduler one for all of its sequences.
 */
#ifndef TN_WORKSPACE_H
#define TN_WORKSPACE_H

#include "engine/draft.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "model/forward.h"

struct tn_workspace_params {
    uint32_t n_ctx, n_batch; /* as struct tn_workspace_input */
    uint32_t n_sequences, n_logits;
    uint32_t n_checkpoints; /* for models with recurrent layers */
    enum tern_kv kv;
    bool drop_pages;
    bool has_drafts; /* as struct tn_workspace_input */
    /* As in struct tern_session_params; each may be NULL. */
    bool (*may_grow)(void *arg, uint64_t n_bytes);
    bool (*should_stop)(void *arg);
    void *arg;
};

struct tn_workspace {
    struct tern_engine *engine;
    const struct tern_model *model;
    struct tn_workspace_params params;
    struct tn_workspace_size size;
    struct tn_state_plan states;
    struct tn_cache_pool pool;
    struct tn_checkpoints checkpoints;
    struct tn_forward forward;
    struct tn_draft_costs draft_costs; /* measured on its evaluations */
    void *scratch_base;
    size_t scratch_bytes;
};

/* Allocates all scratch memory, and address space for the cache.  Without may_grow the memory for
 * the whole cache must be available.  *w must be zeroed; call tn_workspace_fini also after a
 * failure. TERN_MEMORY, with numbers; TERN_USAGE: the model does not support the engine's
 * activation precision. */
tern_status tn_workspace_init(struct tn_workspace *w, struct tern_engine *engine,
                              const struct tern_model *model,
                              const struct tn_workspace_params *params, struct tern_error *err);
void tn_workspace_fini(struct tn_workspace *w);

/* An empty sequence with index i. */
struct tn_sequence tn_workspace_sequence(struct tn_workspace *w, uint32_t i);

/* Evaluates a batch; its sequences must have room for their rows.  Their ids and n_past are left to
 * the caller.  TERN_INTERRUPTED; TERN_MAPPED_IO as tern_model_check_unchanged. */
tern_status tn_workspace_eval(struct tn_workspace *w, const struct tn_batch *batch,
                              struct tern_error *err);

/* Evaluates rows of the draft head (tn_forward_draft).  false: interrupted. */
bool tn_workspace_eval_draft(struct tn_workspace *w, const struct tn_batch *batch,
                             const float *states, float *last);

/* TERN_MEMORY for a sequence with n_past positions that could not grow. */
tern_status tn_workspace_fail_growth(const struct tn_workspace *w, uint32_t n_past,
                                     struct tern_error *err);

/* Anonymous memory held now, and with all positions filled. */
uint64_t tn_workspace_bytes(const struct tn_workspace *w);
uint64_t tn_workspace_bytes_full(const struct tn_workspace *w);

/* Memory that could be allocated now; TERN_UNKNOWN (larger than any need) if the system does not
 * say. */
tern_status tn_memory_available(uint64_t *n_bytes, struct tern_error *err);

#endif

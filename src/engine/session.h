/* SPDX-License-Identifier: MIT
 *
 * The insides of a session, for the other files of this layer.
 */
#ifndef TN_SESSION_H
#define TN_SESSION_H

#include "engine/workspace.h"

/* Tokens of a prefill batch when nobody says how many. */
#define TN_DEFAULT_BATCH 128u

#define TN_MAX_BATCH 512u

struct tern_session {
    struct tern_engine *engine;
    const struct tern_model *model;
    struct tn_workspace work;
    struct tn_sequence sequence;
    struct tn_head_need need; /* which logits the next evaluations need */
    uint32_t n_ctx;
    uint32_t n_batch;
    bool has_logits; /* work.forward.s.logits belong to the last position */
    struct tn_token_list *tokens; /* made for the first answer with a grammar */
};

/* TERN_USAGE: a parameter out of range. */
tern_status tn_session_check_params(const struct tern_session_params *p,
                                    const struct tern_file_config *c, struct tern_error *err);

/* Which logits the next evaluations need; all when need is NULL. `always` is borrowed. With a part
 * only, tern_session_logits are minus infinity at the others. */
void tn_session_need(struct tern_session *s, const struct tn_head_need *need);

/* TERN_USAGE: an id beyond the vocabulary. */
tern_status tn_check_ids(const struct tern_model *model, const uint32_t *ids, size_t n,
                         struct tern_error *err);
/* The same for a prompt: TERN_USAGE also when it is empty; TERN_LIMIT: more than n_ctx ids. */
tern_status tn_check_prompt(const struct tern_model *model, uint32_t n_ctx, const uint32_t *ids,
                            size_t n, struct tern_error *err);
/* TERN_UNSUPPORTED: an embedding model, which gives no logits. */
tern_status tn_check_head(const struct tern_model *model, struct tern_error *err);

/* Of struct tern_session_params and tern_scheduler_params, where 0 is the default. */
#define TN_DEFAULT_CHECKPOINTS 8u

/* Keys and values of positions [256 i, 256 i + 256), tn_session_block_bytes of them; i below what
 * tn_session_grow made usable. */
unsigned char *tn_session_block(const struct tern_session *s, uint32_t i);
size_t tn_session_block_bytes(const struct tern_session *s);
/* Says that the blocks hold these n ids, which were not evaluated here; states come from the newest
 * checkpoint, and n_past is less where that is. */
void tn_session_restore(struct tern_session *s, const uint32_t *ids, uint32_t n);

/* Makes the cache usable for positions below n; TERN_MEMORY when it may not grow. */
tern_status tn_session_grow(struct tern_session *s, uint32_t n, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The struct of a session and its internal functions, shared by the files of this folder.
 *
 * Programs see include/tern/tern.h only.
 */
#ifndef TN_SESSION_H
#define TN_SESSION_H

#include "engine/workspace.h"

/* Default number of tokens in a prefill batch. */
#define TN_DEFAULT_BATCH 128u

#define TN_MAX_BATCH 512u

struct tern_session {
    struct tern_engine *engine;
    const struct tern_model *model;
    struct tn_workspace work;
    struct tn_sequence sequence;
    struct tn_head_need need; /* logits that the next evaluations must produce */
    uint32_t n_ctx;
    uint32_t n_batch;
    bool has_logits; /* work.forward.s.logits are valid for the last position */
    struct tn_token_list *tokens; /* created for the first answer with a grammar */
};

/* TERN_USAGE: a parameter out of range. */
tern_status tn_session_check_params(const struct tern_session_params *p,
                                    const struct tern_file_config *c, struct tern_error *err);

/* Sets which logits the next evaluations need; NULL: all.  `always` is borrowed.  The other logits
 * that tern_session_logits returns are minus infinity. */
void tn_session_need(struct tern_session *s, const struct tn_head_need *need);

/* TERN_USAGE: an id outside the vocabulary. */
tern_status tn_check_ids(const struct tern_model *model, const uint32_t *ids, size_t n,
                         struct tern_error *err);
/* TERN_UNSUPPORTED: an embedding model, which has no logits. */
tern_status tn_check_head(const struct tern_model *model, struct tern_error *err);

/* Commits the cache for positions below n.  TERN_MEMORY: it may not grow. */
tern_status tn_session_grow(struct tern_session *s, uint32_t n, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The insides of a session, for the other files of this layer.
 */
#ifndef TN_SESSION_H
#define TN_SESSION_H

#include "model/forward.h"
#include "run/engine.h"

/* Tokens of a prefill batch when nobody says how many. */
#define TN_DEFAULT_BATCH 128u

struct tern_session {
    struct tern_engine *engine;
    const struct tern_model *model;
    struct tern_session_params params;
    struct tn_memplan memplan;
    struct tn_forward forward;
    struct tn_kvcache kv;
    void *scratch_base;
    size_t scratch_bytes;
    uint32_t n_ctx;
    uint32_t n_batch;
    uint32_t n_past;
    bool has_logits; /* forward.s.logits belong to position n_past - 1 */
};

/* Which logits the next evaluations need; all when need is NULL. `always` is borrowed. With a part
 * only, tern_session_logits are minus infinity at the others. */
void tn_session_need(struct tern_session *s, const struct tn_head_need *need);

/* TERN_USAGE: an id beyond the vocabulary. */
tern_status tn_session_check_ids(const struct tern_session *s, const uint32_t *ids, size_t n,
                                 struct tern_error *err);

/* What could be allocated now; TERN_UNKNOWN, more than any need, where the system does not say. */
tern_status tn_memory_available(uint64_t *n_bytes, struct tern_error *err);

/* Makes the cache usable for positions below n; TERN_MEMORY when it may not grow. */
tern_status tn_session_grow(struct tern_session *s, uint32_t n, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * One text being generated: which id comes next, which bytes are decided, and when it ends.  Each
 * request (request.h) has one.
 *
 *   id -> bytes -> whole characters (decoder) -> pending text -> decided text
 *
 * Text is held back while it may be the start of a stop string.  Nothing allocates after
 * tn_generation_init.
 */
#ifndef TN_GENERATION_H
#define TN_GENERATION_H

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "tern/tern.h"

struct tn_head_need;

struct tn_generation {
    /* set by the caller, borrowed */
    const struct tern_model *model;
    struct tern_sampler *sampler;
    const char *const *stop_strings; /* [n_stop_strings], none empty */
    size_t n_stop_strings;
    const uint32_t *end_ids; /* [n_end_ids], besides the model's */
    size_t n_end_ids;
    bool fits_gap; /* choose as fill_choice.h does */
    uint32_t max_tokens;
    bool ignore_eos;
    struct tn_constraint *constraint; /* grammar of the text; NULL: unconstrained */
    /* result */
    uint32_t n_new;         /* number of chosen ids */
    uint32_t i_stop_string; /* index of the stop string that ended the text */
    /* private */
    struct tern_decoder decoder;
    /* [0, n_taken) was taken, [n_taken, n_decided) may be taken, the rest is held back */
    struct tn_buf text;
    size_t n_taken, n_decided;
    char *piece; /* buffer for one decoded token */
    bool is_complete; /* the grammar allows nothing to follow */
};

/* Does this id end the text? */
static inline bool tn_generation_ends(const struct tn_generation *g, uint32_t id)
{
    for (size_t i = 0; i < g->n_end_ids; i++)
        if (g->end_ids[i] == id)
            return true;
    return tern_model_is_stop_id(g->model, id);
}

/* Allocates memory for the text; the caller must have set its members.  TERN_MEMORY. */
tern_status tn_generation_init(struct tn_generation *g, struct tern_error *err);
void tn_generation_fini(struct tn_generation *g);

/* Starts after this prompt, which becomes the sampler's history.  The sampler then borrows the
 * model's list of control tokens. */
void tn_generation_start(struct tn_generation *g, const uint32_t *ids, size_t n_ids);

/* Which logits the next choice depends on.
 *
 *   always  room for TN_HEAD_MAX_ALWAYS ids, borrowed by *out */
void tn_generation_need(const struct tn_generation *g, uint32_t *always, struct tn_head_need *out);
/* Is only one id possible?  Then logits may be NULL. */
bool tn_generation_is_decided(const struct tn_generation *g);
/* Chooses the next id; logits [vocab].  TERN_INTERNAL: none is finite; with a grammar also
 * TERN_LIMIT and TERN_UNSUPPORTED (tn_constraint_allowed). */
tern_status tn_generation_choose(struct tn_generation *g, const float *logits, uint32_t *id,
                                 struct tern_error *err);
/* Appends the chosen id to the text, at most 1 + TERN_MAX_DRAFT times between two calls of
 * tn_generation_forget.  true: the text ends with it, and *stop says why.
 *
 *   is_full  the context has no position for it */
bool tn_generation_push(struct tn_generation *g, uint32_t id, bool is_full, enum tern_stop *stop);
/* Decides the held text because no id follows.  Not after a stop string. */
void tn_generation_end(struct tn_generation *g);
/* Text decided since the last call, *n bytes; valid until tn_generation_forget. */
const char *tn_generation_take(struct tn_generation *g, size_t *n);
/* Discards the text that was taken. */
void tn_generation_forget(struct tn_generation *g);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A text in the making: which id comes next, the text that is decided, and
 * when it ends.  Each request has one (request.h).
 *
 *   id -> bytes -> whole characters (decoder) -> pending text -> decided text
 *
 * Text is held back as long as it may be the beginning of a stop string.  After
 * tn_generation_init nothing here allocates.
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
    uint32_t max_tokens;
    bool ignore_eos;
    struct tn_constraint *constraint; /* the text is bound to a grammar; NULL: it is free */
    /* result */
    uint32_t n_new;         /* ids chosen */
    uint32_t i_stop_string; /* that ended the text */
    /* private */
    struct tern_decoder decoder;
    /* [0, n_taken) was taken and not yet forgotten, [n_taken, n_decided) may be taken, then held
     * back */
    struct tn_buf text;
    size_t n_taken, n_decided;
    char *piece; /* room for one decoded token */
    bool is_complete; /* the grammar lets nothing follow */
};

/* Takes memory for the text; the members that the caller sets are there. TERN_MEMORY. */
tern_status tn_generation_init(struct tn_generation *g, struct tern_error *err);
void tn_generation_fini(struct tn_generation *g);

/* Begins behind this prompt: it becomes the sampler's history, which from now on borrows the
 * model's list of control tokens. */
void tn_generation_start(struct tn_generation *g, const uint32_t *ids, size_t n_ids);

/* Which logits the next choice depends on.
 *   always  room for TN_HEAD_MAX_ALWAYS ids, borrowed by *out */
void tn_generation_need(const struct tn_generation *g, uint32_t *always, struct tn_head_need *out);
/* True when it depends on none, since only one id is possible: then logits may be NULL. */
bool tn_generation_is_decided(const struct tn_generation *g);
/* Chooses the next id; logits [vocab]. TERN_INTERNAL: none is finite; under a grammar also
 * TERN_LIMIT and TERN_UNSUPPORTED (tn_constraint_allowed). */
tern_status tn_generation_choose(struct tn_generation *g, const float *logits, uint32_t *id,
                                 struct tern_error *err);
/* Adds the id that was chosen to the text: 1 + TERN_MAX_DRAFT at most between two calls of
 * tn_generation_forget. True when the text ends with it: *stop says why.
 *   is_full  there is no position for it in the context */
bool tn_generation_push(struct tn_generation *g, uint32_t id, bool is_full, enum tern_stop *stop);
/* No id comes any more: what was held back is decided. Not behind a stop string. */
void tn_generation_end(struct tn_generation *g);
/* Text decided since the last call, *n bytes; valid until it is forgotten. */
const char *tn_generation_take(struct tn_generation *g, size_t *n);
/* Nobody looks at what was taken any more. */
void tn_generation_forget(struct tn_generation *g);

/* TERN_USAGE: an empty stop string. */
tern_status tn_generation_check_stops(const char *const *stops, size_t n, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Embeddings: a text becomes a vector of Euclidean length 1; texts of similar meaning have a large
 * product.
 *
 *   struct tern_embedder *e;  tern_embedder_create(&e, engine, model, NULL, &err);
 *   float *v = malloc(tern_embedder_dim(e) * sizeof *v);
 *   tern_embed_text(e, "What is BitNet?", 15, v, NULL, &err);
 *
 * A vector is pooled from the states after the final norm, one per token
 * (tern_session_eval_states): their mean, the first or the last one.  The model's file names the
 * pooling of its training (tern_model_config); vectors of different pooling must not be compared.
 */
#ifndef TERN_EMBED_H
#define TERN_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"
#include "tern/tern.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_embedder;

struct tern_embed_params {
    enum tern_pooling pooling; /* TERN_POOLING_NONE: the model's; the mean if it has none */
    uint32_t n_dim;            /* leading components to keep, at most hidden; 0: all */
    /* As in struct tern_session_params. */
    bool (*should_stop)(void *arg);
    void *arg;
};

/* Borrows engine and model.  Memory is allocated as texts need it.  params may be NULL.
 * TERN_USAGE: an unknown pooling, more components than the model has; TERN_MEMORY. */
tern_status tern_embedder_create(struct tern_embedder **out, struct tern_engine *engine,
                                 const struct tern_model *model,
                                 const struct tern_embed_params *params, struct tern_error *err);
void tern_embedder_free(struct tern_embedder *embedder);
/* Never TERN_POOLING_NONE. */
enum tern_pooling tern_embedder_pooling(const struct tern_embedder *embedder);
/* Components of a vector. */
uint32_t tern_embedder_dim(const struct tern_embedder *embedder);
/* Keeps the n_dim leading components of later vectors; 0: all.  TERN_USAGE: more than hidden. */
tern_status tern_embedder_set_dim(struct tern_embedder *embedder, uint32_t n_dim,
                                  struct tern_error *err);
const char *tern_pooling_text(enum tern_pooling pooling); /* "none", "mean", "cls", "last" */

/* The vector of n_ids ids, to which nothing is added: dst [dim] f32, of length 1 (or 0, if all its
 * components are 0).  It does not depend on earlier texts.  TERN_USAGE: no ids, or one outside the
 * vocabulary; TERN_LIMIT: more than the model's context; TERN_INTERNAL: a state is not finite;
 * TERN_MEMORY; TERN_INTERRUPTED; TERN_MAPPED_IO as for tern_session_eval. */
tern_status tern_embed(struct tern_embedder *embedder, const uint32_t *ids, size_t n_ids,
                       float *dst, struct tern_error *err);

/* The same in steps, for programs that have other work: begin, then step until *is_done, when dst
 * is written.  A step takes as long as a batch of a prompt.  ids must stay valid until then; an
 * error or another begin cancels it.  A step without a begin: TERN_USAGE. */
tern_status tern_embed_begin(struct tern_embedder *embedder, const uint32_t *ids, size_t n_ids,
                             struct tern_error *err);
tern_status tern_embed_step(struct tern_embedder *embedder, float *dst, bool *is_done,
                            struct tern_error *err);

/* The vectors of n texts of ids: dst [n][dim].  Each equals the result of tern_embed for the text
 * alone, but short texts are computed together, which takes less time.  *n_done, if not NULL,
 * counts the texts whose vectors are written; the error is that of the next one.  Cancels a
 * tern_embed_begin in progress. */
struct tern_embed_ids {
    const uint32_t *ids;
    size_t n_ids;
};
tern_status tern_embed_list(struct tern_embedder *embedder, const struct tern_embed_ids *texts,
                            size_t n_texts, float *dst, size_t *n_done, struct tern_error *err);

/* The same for a text, with the tokenizer's prefix and suffix (BOS, EOS).  *n_tokens, if not NULL,
 * is the number of ids.  Also TERN_INPUT: a model without a tokenizer, a text without a token. */
tern_status tern_embed_text(struct tern_embedder *embedder, const char *text, size_t n_bytes,
                            float *dst, size_t *n_tokens, struct tern_error *err);

/* The cosine of the angle between two vectors of tern_embed: their product. */
double tern_embed_similarity(const float *a, const float *b, uint32_t n_dim);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT
 *
 * From logits to the next token.
 *
 * The chain, in the order of Hugging Face's processors and warpers:
 *   repetition penalty r: l >= 0 ? l / r : l * r, once per distinct id of the history
 *   frequency penalty f:  l -= f * count;  presence penalty p: l -= p, once per distinct id
 *   l /= temperature;  top-k;  top-p;  min-p;  softmax
 * then one draw: u in [0, 1), cumulative walk in descending probability, ties by lower id.
 */
#ifndef TERN_SAMPLER_H
#define TERN_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_sampler;

struct tern_sampler_params {
    float temperature;       /* 0 = greedy: the largest logit after penalties, lowest id on ties */
    uint32_t top_k;          /* 0 = off; ids that tie with the k-th largest stay too */
    float top_p;             /* [0, 1]; 0 = only the most likely, 1 = off */
    float min_p;             /* [0, 1]; 0 = off */
    float repeat_penalty;    /* > 0; 1 = off */
    float presence_penalty;  /* 0 = off */
    float frequency_penalty; /* 0 = off */
    uint32_t penalty_last;   /* number of latest ids of the history that count; 0 = penalties off */
    uint64_t seed;
    uint32_t n_drawn; /* random numbers of the seed that earlier choices used: they are skipped */
};

/* In the order of the members: 0.7, 40, 0.95, 0, 1.1, 0.6, 0, 64; seed 0, none drawn. */
void tern_sampler_params_default(struct tern_sampler_params *out);

/* Allocates all memory for vocabularies of n_vocab ids, tern_sampler_bytes of it; sampling
 * allocates nothing.  TERN_USAGE names a parameter out of range. */
tern_status tern_sampler_create(struct tern_sampler **out, const struct tern_sampler_params *params,
                                uint32_t n_vocab, struct tern_error *err);
void tern_sampler_free(struct tern_sampler *sampler);
/* Memory of a sampler: about 16 bytes per id of the vocabulary and 4 per id of penalty_last. */
uint64_t tern_sampler_bytes(uint32_t n_vocab, uint32_t penalty_last);
/* Restarts the random sequence. */
void tern_sampler_reseed(struct tern_sampler *sampler, uint64_t seed);

/* Ids that are never penalised (control tokens): n_vocab flags, borrowed; NULL for none. */
void tern_sampler_set_exempt(struct tern_sampler *sampler, const unsigned char *exempt);

/* Adds a token of prompt or answer to the history of the penalties. */
void tern_sampler_accept(struct tern_sampler *sampler, uint32_t id);
void tern_sampler_clear_history(struct tern_sampler *sampler);

/* Chooses from n <= n_vocab logits (not changed).  Never chooses ids at or beyond n_allowed.
 * TERN_INTERNAL if no logit is finite (infinities and NaN count as minus infinity); TERN_USAGE if n
 * is more than n_vocab. */
tern_status tern_sampler_sample(struct tern_sampler *sampler, const float *logits, uint32_t n,
                                uint32_t n_allowed, uint32_t *id, struct tern_error *err);

/* The distribution from which tern_sampler_sample would draw, most likely first: ids and
 * probabilities, room for n each; *n_out entries.  Errors as tern_sampler_sample. */
tern_status tern_sampler_distribution(struct tern_sampler *sampler, const float *logits, uint32_t n,
                                      uint32_t n_allowed, uint32_t *ids, float *probabilities,
                                      uint32_t *n_out, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT
 *
 * Which tokens of a vocabulary can come next under a grammar.
 *
 * The tokens lie sorted by their bytes, each with what it shares with the one before: walked in
 * order, only the bytes behind that are read, and what begins like a token that does not fit is
 * passed over.  Masks are kept for the places that were asked for last.
 */
#ifndef TN_TOKEN_MASK_H
#define TN_TOKEN_MASK_H

#include "grammar/reader.h"
#include "tern/tokenizer.h"

/* Tokens with more bytes are never allowed. */
#define TN_MAX_TOKEN_BYTES 512u

struct tn_sorted_token {
    uint32_t id;
    uint32_t at;       /* in bytes: those behind what it shares */
    uint16_t n_shared; /* with the token before */
    uint16_t n_bytes;
};

/* The tokens that stand for text, of a model; read-only. */
struct tn_token_list {
    const struct tern_tokenizer *tokenizer; /* borrowed */
    struct tn_sorted_token *tokens; /* [n] */
    uint32_t n;
    char *bytes;
    uint32_t longest; /* bytes of a token */
    uint32_t first_of[257]; /* tokens that begin with a byte: [first_of[b], first_of[b + 1]) */
    uint32_t n_ids;         /* all are below; a mask has so many bits */
    const uint32_t *ends;   /* [n_ends] ids that end a text, borrowed */
    uint32_t n_ends;
};

/* Of the ids below n_ids but those that is_control marks.  TERN_MEMORY. */
tern_status tn_token_list_create(struct tn_token_list **out,
                                 const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                                 const unsigned char *is_control, const uint32_t *ends,
                                 uint32_t n_ends, struct tern_error *err);
void tn_token_list_free(struct tn_token_list *list);
uint64_t tn_token_list_bytes(const struct tn_token_list *list);
/* All that is taken while one is made. */
uint64_t tn_token_list_need(const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                            const unsigned char *is_control);

static inline uint32_t tn_mask_words(uint32_t n_ids)
{
    return (n_ids + 63) / 64;
}

/* An answer that is bound to a grammar, token by token. */
struct tn_constraint;

/* Lists of at most max_ids ids are given beside masks.  Errors as tn_reader_create. */
tern_status tn_constraint_create(struct tn_constraint **out, const struct tern_grammar *grammar,
                                 const struct tn_token_list *list, uint32_t max_ids,
                                 struct tern_error *err);
void tn_constraint_free(struct tn_constraint *c);
/* Memory that it takes, with a list of the ids below n_ids. */
uint64_t tn_constraint_bytes(const struct tern_grammar *grammar, uint32_t n_ids, uint32_t max_ids);

struct tn_allowed {
    const uint64_t *bits; /* [tn_mask_words(list->n_ids)] */
    uint32_t n;           /* how many are set */
    const uint32_t *ids;  /* [n] ascending; NULL: more than max_ids */
};

/* The ids that can come next, among them those that end the text where it may end; valid until the
 * next call.  TERN_LIMIT as tern_grammar_match; TERN_UNSUPPORTED: none can, since the vocabulary
 * lacks bytes. */
tern_status tn_constraint_allowed(struct tn_constraint *c, struct tn_allowed *out,
                                  struct tern_error *err);
/* Goes on by an id that was allowed.  *is_end: the text ends with it, for it is whole and nothing
 * can follow.  TERN_LIMIT. */
tern_status tn_constraint_push(struct tn_constraint *c, uint32_t id, bool *is_end,
                               struct tern_error *err);

#endif

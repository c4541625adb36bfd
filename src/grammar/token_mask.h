/* SPDX-License-Identifier: MIT
 *
 * Computes which tokens of a vocabulary can come next under a grammar.
 *
 * The tokens are sorted by their bytes, each with the length of the prefix that it shares with its
 * predecessor.  A walk in that order reads only the bytes after the shared prefix, and skips all
 * tokens that share a rejected prefix.  Masks of recent sets are cached.
 */
#ifndef TN_TOKEN_MASK_H
#define TN_TOKEN_MASK_H

#include "grammar/reader.h"
#include "tern/tokenizer.h"

/* Longer tokens are never allowed. */
#define TN_MAX_TOKEN_BYTES 512u

struct tn_sorted_token {
    uint32_t id;
    uint32_t at;       /* offset in `bytes` of those after the shared prefix */
    uint16_t n_shared; /* bytes shared with the preceding token */
    uint16_t n_bytes;
};

/* The text tokens of a model's vocabulary; read-only. */
struct tn_token_list {
    const struct tern_tokenizer *tokenizer; /* borrowed */
    struct tn_sorted_token *tokens; /* [n] */
    uint32_t n;
    char *bytes;
    uint32_t longest; /* maximum bytes of a token */
    uint32_t first_of[257]; /* tokens whose first byte is b: [first_of[b], first_of[b + 1]) */
    uint32_t n_ids;         /* upper bound of ids, and the size of a mask in bits */
    const uint32_t *ends;   /* [n_ends] ids that end the text, borrowed */
    uint32_t n_ends;
};

/* Takes the ids below n_ids that is_control does not mark.  TERN_MEMORY. */
tern_status tn_token_list_create(struct tn_token_list **out,
                                 const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                                 const unsigned char *is_control, const uint32_t *ends,
                                 uint32_t n_ends, struct tern_error *err);
void tn_token_list_free(struct tn_token_list *list);
uint64_t tn_token_list_bytes(const struct tn_token_list *list);
/* Peak memory while a list is created, bytes. */
uint64_t tn_token_list_need(const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                            const unsigned char *is_control);

static inline uint32_t tn_mask_words(uint32_t n_ids)
{
    return (n_ids + 63) / 64;
}

/* The state of an answer that a grammar constrains. */
struct tn_constraint;

/* Up to max_ids allowed ids are also listed.  Errors of tn_reader_create. */
tern_status tn_constraint_create(struct tn_constraint **out, const struct tern_grammar *grammar,
                                 const struct tn_token_list *list, uint32_t max_ids,
                                 struct tern_error *err);
void tn_constraint_free(struct tn_constraint *c);
/* Memory of one constraint over n_ids ids, bytes. */
uint64_t tn_constraint_bytes(const struct tern_grammar *grammar, uint32_t n_ids, uint32_t max_ids);

struct tn_allowed {
    const uint64_t *bits; /* [tn_mask_words(list->n_ids)] */
    uint32_t n;           /* number of bits set */
    const uint32_t *ids;  /* [n] ascending; NULL: more than max_ids */
};

/* The ids that can come next, including end ids where the text may end; valid until the next call.
 * TERN_LIMIT as tern_grammar_match; TERN_UNSUPPORTED: none can, because the vocabulary lacks the
 * bytes. */
tern_status tn_constraint_allowed(struct tn_constraint *c, struct tn_allowed *out,
                                  struct tern_error *err);
/* Reads an id that was allowed.  *is_end: the text is complete and nothing can follow.  TERN_LIMIT.
 */
tern_status tn_constraint_push(struct tn_constraint *c, uint32_t id, bool *is_end,
                               struct tern_error *err);

#endif

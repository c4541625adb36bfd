/* SPDX-License-Identifier: MIT
 *
 * Builds the tables of a tokenizer section from a vocabulary of any source.
 *
 *   init, add_vocab..., end_vocab, add_added..., end_tokens, begin_merges, add_merge..., finish
 *
 * Texts are not copied: they must stay valid until the end.  Every function may fail; then only
 * tn_tok_fini may be called.
 */
#ifndef TN_TOK_TABLES_H
#define TN_TOK_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "tern/model_format.h"
#include "tern/status.h"

struct tn_tok_token {
    const char *text; /* as in the source, not NUL-terminated; NULL: no such id */
    uint32_t n_bytes;
    uint32_t flags; /* TERN_ADDED_*, TN_TOK_* */
};
#define TN_TOK_IN_VOCAB 0x20000000u /* merging may produce it */
#define TN_TOK_BYTE 0x40000000u     /* a byte token of a vocabulary of characters: <0x0A> */
#define TN_TOK_ADDED 0x80000000u

struct tn_tok_build {
    const char *source; /* names the source in messages */
    /* The caller sets kind, splitter, flags, unk_id, prefix and suffix before end_tokens. */
    struct tern_file_tokenizer head;
    struct tn_buf *section;
    struct tern_error *err;
    bool adds_verbatim; /* added tokens match without the space that starts a text */
    uint32_t model_vocab;
    uint32_t n_vocab; /* entries of the vocabulary */
    struct tn_tok_token *tokens; /* [model_vocab] */
    uint32_t *lookup;            /* [n_lookup] id + 1 of the vocabulary by text in the source */
    uint32_t n_lookup;
    char *scratch; /* both parts of a merge */
};

/* The byte that the text "<0x0A>" (upper-case digits) represents, or -1. */
int tn_tok_byte_of_text(const char *text, size_t n);

/* `model_vocab`: the model's number of ids; *section: empty, receives the tables.  TERN_MEMORY. */
tern_status tn_tok_init(struct tn_tok_build *b, const char *source, uint32_t model_vocab,
                        struct tn_buf *section, struct tern_error *err);
void tn_tok_fini(struct tn_tok_build *b);

/* Adds an entry of the vocabulary; flags 0 or TN_TOK_BYTE.  TERN_INPUT: an id that occurs twice or
 * is too large, an empty or too long text. */
tern_status tn_tok_add_vocab(struct tn_tok_build *b, const char *text, size_t n, int64_t id,
                             uint32_t flags);
/* Adds an id that has a text but that no text produces. */
tern_status tn_tok_add_unreachable(struct tn_tok_build *b, const char *text, size_t n, int64_t id);
/* TERN_INPUT if two ids have the same text. */
tern_status tn_tok_end_vocab(struct tn_tok_build *b);
/* The id of a text in the vocabulary, or TERN_NO_ID. */
uint32_t tn_tok_lookup(const struct tn_tok_build *b, const char *text, size_t n);

/* Adds an added token with TERN_ADDED_* flags; it may also be in the vocabulary. */
tern_status tn_tok_add_added(struct tn_tok_build *b, const char *text, size_t n, int64_t id,
                             uint32_t flags);
/* Writes all tables except the merges.  TERN_INPUT: holes, a prefix or suffix id outside the
 * vocabulary, two added tokens with the same text; TERN_UNSUPPORTED: a vocabulary that lacks tokens
 * that the kind needs. */
tern_status tn_tok_end_tokens(struct tn_tok_build *b);

/* `n`: the maximum number of merges. */
tern_status tn_tok_begin_merges(struct tn_tok_build *b, size_t n);
/* Adds the merge of the next rank; `i` names it in messages.  TERN_INPUT if a part or the whole is
 * not in the vocabulary. */
tern_status tn_tok_add_merge(struct tn_tok_build *b, size_t i, const char *left, size_t n_left,
                             const char *right, size_t n_right);
/* The same with ids. */
void tn_tok_put_merge(struct tn_tok_build *b, struct tern_file_merge merge);
tern_status tn_tok_finish(struct tn_tok_build *b);

#endif

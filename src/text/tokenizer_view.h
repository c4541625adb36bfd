/* SPDX-License-Identifier: MIT
 *
 * An open tokenizer as tokenizer.c (opening, looking up), encode.c and decoder.c
 * see it: views into the mapped section, checked once when it was opened.
 */
#ifndef TN_TOKENIZER_VIEW_H
#define TN_TOKENIZER_VIEW_H

#include "base/bits.h"
#include "tern/model_format.h"
#include "text/bpe.h"
#include "text/pretok.h"
#include "text/tokenizer.h"

struct tern_tokenizer {
    struct tern_file_tokenizer head_copy;
    const struct tern_file_tokenizer *head; /* the copy */
    uint32_t byte_ids[256];                 /* each < n_tokens or TERN_NO_ID */
    struct tern_file_added *own_added;      /* [n_added], heap */
    uint32_t longest;                       /* bytes of a token */
    const uint32_t *token_offsets;
    const char *token_bytes;
    const uint32_t *vocab_slots;
    uint32_t n_vocab_slots;
    const struct tern_file_added *added; /* own_added */
    const char *added_text;
    const uint8_t *special_bits;
    const struct tn_splitter *splitter;
    struct tn_bpe_tables bpe;
    uint32_t ascii_ids[128];           /* vocabulary ids of single characters, or TERN_NO_ID */
    uint64_t added_starts[65536 / 64]; /* bit set: two bytes that an added token can start with */
};

/* The bytes of an id that is in range, at most `longest` inside token_bytes.  None where the
 * offsets have been changed and say something else. */
static inline const char *tn_token_at(const struct tern_tokenizer *t, uint32_t id, size_t *n_bytes)
{
    const uint32_t begin = tn_load_once_u32(&t->token_offsets[id]);
    const uint32_t end = tn_load_once_u32(&t->token_offsets[id + 1]);
    const bool fits =
        begin <= end && end - begin <= t->longest && end <= t->head->token_bytes.bytes;
    *n_bytes = fits ? end - begin : 0;
    return t->token_bytes + (fits ? begin : 0);
}

/* The id of model.vocab with these bytes, or TERN_NO_ID. */
uint32_t tn_vocab_find(const struct tern_tokenizer *t, const char *bytes, size_t n);

/* False when no added token can start at text[0], n > 0. */
static inline bool tn_may_start_added(const struct tern_tokenizer *t, const char *text, size_t n)
{
    unsigned char first = (unsigned char)text[0], second = n > 1 ? (unsigned char)text[1] : 0;
    return t->added_starts[first * (size_t)4 + second / 64] >> second % 64 & 1;
}

/* The longest added token that text[0..n) starts with and whose flag "normalized" is `normalized`
 * (0 or TERN_ADDED_NORMALIZED); NULL when there is none. */
const struct tern_file_added *tn_added_match(const struct tern_tokenizer *t, const char *text,
                                             size_t n, uint32_t normalized, size_t *n_bytes);

#endif

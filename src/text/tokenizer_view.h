/* SPDX-License-Identifier: MIT
 *
 * The struct of an open tokenizer: views into the mapped section, checked once at opening.
 *
 * Included by tokenizer.c (opening, lookups), encode.c and decoder.c only.
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
    const struct tern_file_tokenizer *head; /* -> head_copy */
    uint32_t byte_ids[256];                 /* each < n_tokens or TERN_NO_ID */
    struct tern_file_added *own_added;      /* [n_added], heap */
    uint32_t longest;                       /* maximum bytes of a token */
    const uint32_t *token_offsets;
    const char *token_bytes;
    const uint32_t *vocab_slots;
    uint32_t n_vocab_slots;
    const struct tern_file_added *added; /* own_added */
    const char *added_text;
    const uint8_t *special_bits;
    const struct tn_splitter *splitter;
    struct tn_bpe_tables bpe;
    uint32_t ascii_ids[128];           /* ids of single ASCII characters, or TERN_NO_ID */
    uint64_t added_starts[65536 / 64]; /* bitmap of the first two bytes of added tokens */
};

/* The bytes of an id in range: at most `longest`, inside token_bytes.  Empty if the offsets in the
 * file were changed to invalid values. */
static inline const char *tn_token_at(const struct tern_tokenizer *t, uint32_t id, size_t *n_bytes)
{
    const uint32_t begin = tn_load_once_u32(&t->token_offsets[id]);
    const uint32_t end = tn_load_once_u32(&t->token_offsets[id + 1]);
    const bool fits =
        begin <= end && end - begin <= t->longest && end <= t->head->token_bytes.bytes;
    *n_bytes = fits ? end - begin : 0;
    return t->token_bytes + (fits ? begin : 0);
}

/* The id with these bytes in model.vocab, or TERN_NO_ID. */
uint32_t tn_vocab_find(const struct tern_tokenizer *t, const char *bytes, size_t n);

/* Can an added token start at text[0]?  n > 0. */
static inline bool tn_may_start_added(const struct tern_tokenizer *t, const char *text, size_t n)
{
    unsigned char first = (unsigned char)text[0], second = n > 1 ? (unsigned char)text[1] : 0;
    return t->added_starts[first * (size_t)4 + second / 64] >> second % 64 & 1;
}

/* The longest added token at the start of text[0..n) whose flag "normalized" equals `normalized` (0
 * or TERN_ADDED_NORMALIZED); NULL: none. */
const struct tern_file_added *tn_added_match(const struct tern_tokenizer *t, const char *text,
                                             size_t n, uint32_t normalized, size_t *n_bytes);

#endif

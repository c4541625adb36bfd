/* SPDX-License-Identifier: MIT
 *
 * Text <-> token ids.
 *
 * A tokenizer works straight from the mapped model file (no tables are built)
 * and is read-only: any number of threads may use it at once.
 */
#ifndef TERN_TOKENIZER_H
#define TERN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_tokenizer;

/* A growing list of ids. Zero-initialise; tern_ids_free releases it. */
struct tern_ids {
    uint32_t *ids;
    size_t n;
    size_t capacity;
};
void tern_ids_free(struct tern_ids *ids);

/* Flags of tern_tokenizer_encode. */
#define TERN_ENCODE_ADD_SPECIAL 1u   /* what the post-processor adds: BOS, sometimes EOS */
#define TERN_ENCODE_PARSE_SPECIAL 2u /* "<|eot_id|>" in the text becomes the special id */
#define TERN_ENCODE_CONTINUE 4u      /* no space is put before the text: it continues other ids */

/* Appends the ids of any bytes to *out.  Bytes that are not UTF-8 are encoded byte by byte (a
 * character that is neither letter, number nor space), so decode(encode(x)) = x, but for what the
 * tokenizer's normaliser changes and, in a vocabulary without all bytes, for what it cannot say.
 * O(n log n) time, memory proportional to the longest word.  TERN_MEMORY only. */
tern_status tern_tokenizer_encode(const struct tern_tokenizer *tokenizer, const char *text,
                                  size_t n_bytes, uint32_t flags, struct tern_ids *out,
                                  struct tern_error *err);

/* Adds to out->ids[start..], the ids of a text, what TERN_ENCODE_ADD_SPECIAL adds, but the prefix
 * only where they do not begin with it: with that flag a text that has its BOS gets a second one,
 * as the reference gives it.  *n_prefix (may be NULL) becomes the number of ids put in front.
 * TERN_MEMORY: *out is unchanged. */
tern_status tern_tokenizer_add_special(const struct tern_tokenizer *tokenizer,
                                       struct tern_ids *out, size_t start, size_t *n_prefix,
                                       struct tern_error *err);

/* No text of n_bytes has fewer ids than this; 0 where nothing is known.  It takes no look at the
 * text: what cannot fit a context is known before it is encoded. */
size_t tern_tokenizer_min_ids(const struct tern_tokenizer *tokenizer, size_t n_bytes);

/* One past the largest id that has a meaning; rows of the model beyond it are never sampled. */
uint32_t tern_tokenizer_n_tokens(const struct tern_tokenizer *tokenizer);
/* The bytes of a token (not NUL-terminated, may be part of a character); NULL and 0 for an id that
 * has none. */
const char *tern_tokenizer_token_bytes(const struct tern_tokenizer *tokenizer, uint32_t id,
                                       size_t *n_bytes);
/* True for control tokens such as <|eot_id|>. */
bool tern_tokenizer_is_special(const struct tern_tokenizer *tokenizer, uint32_t id);
/* The id whose bytes are exactly these (added tokens first), or TERN_NO_ID (0xFFFFFFFF). */
uint32_t tern_tokenizer_find(const struct tern_tokenizer *tokenizer, const char *text,
                             size_t n_bytes);

/* True when the tokenizer puts a space before a text (and before what follows a special token):
 * then decoding drops one from the start. */
bool tern_tokenizer_adds_space(const struct tern_tokenizer *tokenizer);

/* The text of ids, as the reference decodes them: what is not UTF-8 becomes U+FFFD.  *text is new
 * memory (tern_text_free), not NUL-terminated.  TERN_USAGE for an id without a meaning;
 * TERN_MEMORY. */
tern_status tern_tokenizer_decode(const struct tern_tokenizer *tokenizer, const uint32_t *ids,
                                  size_t n_ids, bool skip_special, char **text, size_t *n_text,
                                  struct tern_error *err);

/* ---- streaming decoder: bytes in, whole characters out ---- */

/* Zero-initialise it to go on with a text, or tern_decoder_start. */
struct tern_decoder {
    char held[4]; /* bytes that may still become a character */
    uint32_t n_held;
    bool by_byte;    /* of held bytes each that becomes no character is one U+FFFD */
    bool drop_space; /* a space at the start of the text is dropped */
};
/* Begins a text: the space that the tokenizer puts before it is dropped. */
void tern_decoder_start(struct tern_decoder *decoder, const struct tern_tokenizer *tokenizer);
/* Takes one id, which must have a meaning, and gives what can be printed now, as
 * tern_decoder_push does.  The same text as tern_tokenizer_decode, except that of byte tokens which
 * are no UTF-8 as a whole the characters before the first wrong byte stay. */
size_t tern_decoder_push_id(struct tern_decoder *decoder, const struct tern_tokenizer *tokenizer,
                            uint32_t id, char *out);
/* Takes the bytes of one token and gives what can be printed now: whole characters; bytes that can
 * no longer become one come out as U+FFFD.  out must have room for 3 * (n_bytes + 4) bytes.
 * Returns the number of bytes written. */
size_t tern_decoder_push(struct tern_decoder *decoder, const char *bytes, size_t n_bytes,
                         char *out);
/* Ends the text: held bytes come out as U+FFFD (at most 12 bytes). */
size_t tern_decoder_flush(struct tern_decoder *decoder, char *out);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT
 *
 * Text to token ids and back.  A tokenizer works directly on the mapped model file (no tables are
 * built) and is read-only: any number of threads may use it at once.
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
#define TERN_ENCODE_ADD_SPECIAL 1u   /* adds the ids of the post-processor: BOS, sometimes EOS */
#define TERN_ENCODE_PARSE_SPECIAL 2u /* "<|eot_id|>" in the text becomes the special id */
#define TERN_ENCODE_CONTINUE 4u      /* put no space before the text: it continues other ids */

/* Appends the ids of any bytes to *out.  Bytes that are not UTF-8 are encoded byte by byte (as a
 * character that is neither letter, number nor space), so decode(encode(x)) = x, except for changes
 * by the tokenizer's normaliser and, in a vocabulary without all bytes, for unknown characters.
 * O(n log n) time, memory proportional to the longest word.  TERN_MEMORY only. */
tern_status tern_tokenizer_encode(const struct tern_tokenizer *tokenizer, const char *text,
                                  size_t n_bytes, uint32_t flags, struct tern_ids *out,
                                  struct tern_error *err);

/* Adds to out->ids[start..], the ids of a text, the ids of TERN_ENCODE_ADD_SPECIAL, but the prefix
 * only if they do not begin with it: with that flag a text that has its BOS gets a second one, as
 * in the reference.  *n_prefix (may be NULL) becomes the number of ids put before the text.
 * TERN_MEMORY: *out is unchanged. */
tern_status tern_tokenizer_add_special(const struct tern_tokenizer *tokenizer,
                                       struct tern_ids *out, size_t start, size_t *n_prefix,
                                       struct tern_error *err);

/* A lower bound of the number of ids of any text of n_bytes; 0 if unknown.  Does not read the text,
 * so a text that cannot fit a context is rejected before it is encoded. */
size_t tern_tokenizer_min_ids(const struct tern_tokenizer *tokenizer, size_t n_bytes);

/* One past the largest id that has a meaning; rows of the model beyond it are never sampled. */
uint32_t tern_tokenizer_n_tokens(const struct tern_tokenizer *tokenizer);
/* The bytes of a token (not NUL-terminated, may be an incomplete character); NULL and 0 for an id
 * without bytes. */
const char *tern_tokenizer_token_bytes(const struct tern_tokenizer *tokenizer, uint32_t id,
                                       size_t *n_bytes);
/* True for control tokens such as <|eot_id|>. */
bool tern_tokenizer_is_special(const struct tern_tokenizer *tokenizer, uint32_t id);
/* The id whose bytes are exactly these (added tokens first), or TERN_NO_ID (0xFFFFFFFF). */
uint32_t tern_tokenizer_find(const struct tern_tokenizer *tokenizer, const char *text,
                             size_t n_bytes);

/* The ids around a gap in a text that the model fills in (fill-in-the-middle); TERN_NO_ID: none. */
struct tern_fim_ids {
    uint32_t prefix; /* before the text that precedes the gap */
    uint32_t suffix; /* before the text that follows the gap */
    uint32_t middle; /* before the answer */
    uint32_t pad;
    uint32_t repository; /* before the name of a repository */
    uint32_t file;       /* before the name of each of its files */
    uint32_t end;        /* end of a text, which ends an answer even if chats end otherwise */
    bool is_suffix_first; /* SUFFIX ... PREFIX ..., then the answer, without a middle id */
};
/* Finds them: those that a GGUF file stated, others by the names that published models give them.
 * False: the vocabulary has no ids with which a gap can be marked. */
bool tern_tokenizer_fim_ids(const struct tern_tokenizer *tokenizer, struct tern_fim_ids *out);

/* True if the tokenizer puts a space before a text (and after a special token): then decoding drops
 * one from the start. */
bool tern_tokenizer_adds_space(const struct tern_tokenizer *tokenizer);

/* The text of ids, decoded as in the reference: bytes that are not UTF-8 become U+FFFD.  *text is
 * new memory (tern_text_free), not NUL-terminated.  TERN_USAGE for an id that has no token;
 * TERN_MEMORY. */
tern_status tern_tokenizer_decode(const struct tern_tokenizer *tokenizer, const uint32_t *ids,
                                  size_t n_ids, bool skip_special, char **text, size_t *n_text,
                                  struct tern_error *err);

/* ---- streaming decoder: bytes in, whole characters out ---- */

/* Zero-initialise it to continue a text, or use tern_decoder_start for a new one. */
struct tern_decoder {
    char held[4]; /* bytes that may still complete a character */
    uint32_t n_held;
    bool by_byte;    /* each held byte that completes no character becomes one U+FFFD */
    bool drop_space; /* drop a space at the start of the text */
};
/* Starts a text: drops the space that the tokenizer puts before it. */
void tern_decoder_start(struct tern_decoder *decoder, const struct tern_tokenizer *tokenizer);
/* Takes one id, which must have a meaning, and writes the text that is complete now, like
 * tern_decoder_push.  The text equals that of tern_tokenizer_decode, except that byte tokens which
 * are not valid UTF-8 together keep the characters before the first wrong byte. */
size_t tern_decoder_push_id(struct tern_decoder *decoder, const struct tern_tokenizer *tokenizer,
                            uint32_t id, char *out);
/* Takes the bytes of one token and writes the text that is complete now: whole characters; bytes
 * that can no longer complete one become U+FFFD.  out must have room for 3 * (n_bytes + 4) bytes.
 * Returns the number of bytes written. */
size_t tern_decoder_push(struct tern_decoder *decoder, const char *bytes, size_t n_bytes,
                         char *out);
/* Ends the text: held bytes become U+FFFD (at most 12 bytes). */
size_t tern_decoder_flush(struct tern_decoder *decoder, char *out);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT
 *
 * Text <-> token ids, and chat templates.
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
#define TERN_ENCODE_ADD_SPECIAL 1u   /* what the post-processor adds: BOS */
#define TERN_ENCODE_PARSE_SPECIAL 2u /* "<|eot_id|>" in the text becomes the special id */

/* Appends the ids of any bytes to *out.  Bytes that are not UTF-8 are encoded byte by byte (a
 * character that is neither letter, number nor space), so decode(encode(x)) = x.  O(n log n) time,
 * memory proportional to the longest word.  TERN_MEMORY only. */
tern_status tern_tokenizer_encode(const struct tern_tokenizer *tokenizer, const char *text,
                                  size_t n_bytes, uint32_t flags, struct tern_ids *out,
                                  struct tern_error *err);

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

/* ---- streaming decoder: bytes in, whole characters out ---- */

struct tern_decoder {
    char held[4]; /* bytes that may still become a character */
    uint32_t n_held;
};
/* Takes the bytes of one token and gives what can be printed now: whole characters; bytes that can
 * no longer become one come out as U+FFFD.  out must have room for 3 * (n_bytes + 4) bytes.
 * Returns the number of bytes written. */
size_t tern_decoder_push(struct tern_decoder *decoder, const char *bytes, size_t n_bytes,
                         char *out);
/* Ends the text: held bytes come out as U+FFFD (at most 12 bytes). */
size_t tern_decoder_flush(struct tern_decoder *decoder, char *out);

/* ---- chat ---- */

struct tern_message {
    const char *role; /* free; the template decides */
    size_t n_role;
    const char *content;
    size_t n_content;
};

struct tern_chat_template; /* one of the built-in ones */

/* "bitnet-2b-4t", "llama3", "chatml", "falcon3", "qwen3"; NULL if the name is unknown. */
const struct tern_chat_template *tern_chat_template_find(const char *name);
const char *tern_chat_template_name(const struct tern_chat_template *t);
/* The built-in one behind t, the first for NULL; NULL behind the last. */
const struct tern_chat_template *tern_chat_template_next(const struct tern_chat_template *t);
/* The first special token that the template writes and the tokenizer lacks: ordinary tokens would
 * spell it, which a model hardly understands. NULL: it lacks none. */
const char *tern_chat_template_missing(const struct tern_chat_template *t,
                                       const struct tern_tokenizer *tokenizer);
/* The built-in template that a published Jinja source is, or NULL. */
const struct tern_chat_template *tern_chat_template_recognise(const char *source, size_t n_bytes);

/* Renders a conversation.  *text is new memory (tern_text_free).  *user_map, if not NULL, is new
 * memory of the same length: 1 for bytes that come from a message, 0 for bytes of the template.
 * bos and eos are the texts of those tokens ("" when undefined); NULL: those of the models that
 * the template was published with.  TERN_USAGE when the template cannot express the conversation
 * (its own message in err). */
tern_status tern_chat_render(const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             bool add_generation_prompt, const char *bos, const char *eos,
                             char **text, size_t *n_text, unsigned char **user_map,
                             struct tern_error *err);
void tern_text_free(void *text);

/* Renders, encodes and appends to *out: the whole text jointly, special tokens only where all bytes
 * come from the template, exactly one BOS at the start if the tokenizer adds one.  TERN_USAGE as
 * tern_chat_render; TERN_MEMORY. */
tern_status tern_chat_encode(const struct tern_tokenizer *tokenizer,
                             const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             bool add_generation_prompt, struct tern_ids *out,
                             struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif

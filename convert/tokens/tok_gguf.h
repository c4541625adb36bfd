/* SPDX-License-Identifier: MIT
 *
 * Makes the tokenizer section of a model file from the keys of a GGUF file.  GGUF names a splitter
 * where tokenizer.json spells it, and has scores where that one lists merges; the ids are the same
 * (tests/text/test_tok_gguf.c).
 */
#ifndef TN_TOK_GGUF_H
#define TN_TOK_GGUF_H

#include <stdint.h>

#include "base/buf.h"
#include "tern/status.h"

struct tn_gguf;

/* Concatenated texts; text i is bytes[offsets[i]] to bytes[offsets[i + 1]], ascending. */
struct tn_tok_texts {
    const char *bytes;
    const uint32_t *offsets; /* [n + 1] */
    uint32_t n;
};

/* The keys tokenizer.ggml.*; TERN_NO_ID: no such id; add_...: 1, 0 or -1 if absent. */
struct tn_tok_keys {
    const char *model; /* "gpt2": bytes and merges; "llama": characters and scores */
    const char *pre;   /* NULL: absent */
    const char *arch;  /* general.architecture; NULL: absent */
    struct tn_tok_texts tokens;
    struct tn_tok_texts merges;
    const float *scores;  /* [tokens.n]; NULL: none */
    const int32_t *types; /* [tokens.n]; NULL: all normal */
    uint32_t bos_id, eos_id, unk_id;
    int add_bos, add_eos, add_space_prefix;
    uint32_t fim_ids[6]; /* as in struct tern_file_tokenizer */
};

/* Makes the section; *section is empty and stays so on failure.  `pre`: the splitter's name if the
 * caller knows it better than the file, or NULL.  A file without a name is recognised by LLaMA-3's
 * vocabulary, or by an architecture all of whose models split alike; *used, if not NULL, receives
 * the name of the splitter, NULL for "llama".  `vocab`: the model's number of ids.  Skips padding
 * after the last real token.  TERN_UNSUPPORTED: another model, a splitter that is unknown or not
 * named; TERN_INPUT: broken lists; TERN_MEMORY. */
tern_status tn_tok_from_keys(const struct tn_tok_keys *keys, const char *pre, uint32_t vocab,
                             const char **used, struct tn_buf *section, struct tern_error *err);

/* The same from an open file: reads the keys.  TERN_INPUT also for keys of a wrong type. */
tern_status tn_tok_from_gguf(const struct tn_gguf *gguf, const char *pre, uint32_t vocab,
                             const char **used, struct tn_buf *section, struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Makes the tokenizer section of a model file from the files that GPT-2's tokenizer had before
 * tokenizer.json: vocab.json, merges.txt and up to three files about special tokens.  Folders of
 * OPT have no other.  The ids are those of GPT2Tokenizer of transformers.
 */
#ifndef TN_TOK_GPT2_H
#define TN_TOK_GPT2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tern/status.h"

enum tn_gpt2_file {
    TN_GPT2_VOCAB,
    TN_GPT2_MERGES,
    TN_GPT2_CONFIG,  /* optional, like those below */
    TN_GPT2_SPECIAL, /* not read if the config has added_tokens_decoder */
    TN_GPT2_ADDED,   /* the same */
    TN_GPT2_N_FILES,
};
extern const char *const tn_gpt2_file_names[TN_GPT2_N_FILES];

/* Whole texts, NUL-terminated; NULL: the folder lacks the file. */
struct tn_gpt2_texts {
    char *text[TN_GPT2_N_FILES];
    size_t n[TN_GPT2_N_FILES];
    bool is_default; /* the family's tokenizer is GPT-2's unless the config names a class */
};

/* Appends the section to the empty buffer *section, which stays empty on failure.  `vocab` is the
 * model's number of ids.  The vocabulary and the merges must exist.  TERN_UNSUPPORTED: another
 * class of tokenizer, a space before the first word; TERN_INPUT: as tn_tok_import; TERN_MEMORY. */
tern_status tn_tok_from_gpt2(const struct tn_gpt2_texts *files, uint32_t vocab,
                             struct tn_buf *section, struct tern_error *err);

#endif

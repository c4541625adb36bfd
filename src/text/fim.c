/* SPDX-License-Identifier: MIT
 *
 * Finds the ids for filling in the middle of a text: those that the model file states, others by
 * their names.
 *
 * Model files rarely state these ids, and most tokenizers have the tokens in their vocabulary even
 * if the model is meant for conversations.  The names are those of published models; llama.cpp
 * knows most of them, too.
 */
#include <string.h>

#include "base/compiler.h"
#include "tern/model_format.h"
#include "tern/tokenizer.h"
#include "text/tokenizer.h"

#define BAR "\xEF\xBD\x9C"   /* U+FF5C, a wide vertical bar */
#define LOW "\xE2\x96\x81"   /* U+2581, a space in SentencePiece */

/* The markers of a gap belong together. */
static const struct {
    const char *prefix, *suffix, *middle; /* middle NULL: the suffix comes first */
} markers[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}, /* Qwen, CodeGemma */
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},       /* StarCoder2, Granite */
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},       /* SantaCoder */
    {"<" BAR "fim" LOW "begin" BAR ">", "<" BAR "fim" LOW "hole" BAR ">",
     "<" BAR "fim" LOW "end" BAR ">"}, /* DeepSeek */
    {LOW "<PRE>", LOW "<SUF>", LOW "<MID>"}, /* Code Llama */
    {" <PRE>", " <SUF>", " <MID>"},          /* the same as ordinary pieces */
    {"<PRE>", "<SUF>", "<MID>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"}, /* GLM-4.5 */
    {"<|prefix|>", "<|suffix|>", "<|middle|>"},                /* Falcon-H1 */
    {"[PREFIX]", "[SUFFIX]", NULL},                            /* Codestral */
};

/* Other ids: the first name that the vocabulary has. */
static const char *const pads[] = {"<|fim_pad|>", "<fim_pad>", "<fim-pad>"};
static const char *const repositories[] = {"<|repo_name|>", "<|fim_repo|>", "<repo_name>",
                                           "<reponame>", "<fim-repo>", "<REPO>"};
static const char *const files[] = {"<|file_sep|>", "<|file_separator|>", "<file_sep>",
                                    "<filename>"};
static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>",
                                   "<" BAR "end" LOW "of" LOW "sentence" BAR ">", LOW "<EOT>",
                                   " <EOT>", "<EOT>"};

static uint32_t find(const struct tern_tokenizer *tokenizer, const char *name)
{
    return tern_tokenizer_find(tokenizer, name, strlen(name));
}

static uint32_t find_any(const struct tern_tokenizer *tokenizer, const char *const *names,
                         size_t n)
{
    uint32_t id = TERN_NO_ID;
    for (size_t i = 0; i < n && id == TERN_NO_ID; i++)
        id = find(tokenizer, names[i]);
    return id;
}

static bool find_markers(const struct tern_tokenizer *tokenizer, struct tern_fim_ids *out)
{
    for (size_t i = 0; i < TN_COUNT_OF(markers); i++) {
        const char *middle = markers[i].middle;
        out->prefix = find(tokenizer, markers[i].prefix);
        out->suffix = find(tokenizer, markers[i].suffix);
        out->middle = middle ? find(tokenizer, middle) : TERN_NO_ID;
        out->is_suffix_first = !middle;
        if (out->prefix != TERN_NO_ID && out->suffix != TERN_NO_ID &&
            (!middle || out->middle != TERN_NO_ID))
            return true;
    }
    return false;
}

/* Ids that the file states replace those with known names. */
static void take_stated(const struct tern_tokenizer *tokenizer, struct tern_fim_ids *ids)
{
    const uint32_t *stated = tn_tokenizer_fim_ids(tokenizer);
    uint32_t *const fields[] = {&ids->prefix, &ids->suffix,     &ids->middle,
                                &ids->pad,    &ids->repository, &ids->file};
    for (size_t i = 0; i < TN_COUNT_OF(fields); i++)
        *fields[i] = stated[i] ? stated[i] - 1 : *fields[i];
    ids->is_suffix_first = ids->is_suffix_first && ids->middle == TERN_NO_ID;
}

bool tern_tokenizer_fim_ids(const struct tern_tokenizer *tokenizer, struct tern_fim_ids *out)
{
    static const struct tern_fim_ids none = {TERN_NO_ID, TERN_NO_ID, TERN_NO_ID, TERN_NO_ID,
                                             TERN_NO_ID, TERN_NO_ID, TERN_NO_ID, false};
    struct tern_fim_ids ids = none;
    if (!find_markers(tokenizer, &ids))
        ids = none;
    ids.pad = find_any(tokenizer, pads, TN_COUNT_OF(pads));
    ids.repository = find_any(tokenizer, repositories, TN_COUNT_OF(repositories));
    ids.file = find_any(tokenizer, files, TN_COUNT_OF(files));
    ids.end = find_any(tokenizer, ends, TN_COUNT_OF(ends));
    take_stated(tokenizer, &ids);
    const bool is_whole = ids.prefix != TERN_NO_ID && ids.suffix != TERN_NO_ID &&
                          (ids.middle != TERN_NO_ID || ids.is_suffix_first);
    *out = is_whole ? ids : none;
    return is_whole;
}

/* SPDX-License-Identifier: MIT
 *
 * Reads the keys tokenizer.ggml.* of an open GGUF file into struct tn_tok_keys, and frees them.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/gguf/gguf.h"
#include "convert/tokens/tok_gguf.h"
#include "tern/model_format.h"

#define PREFIX "tokenizer.ggml."

/* A text, or NULL if there is no such key. */
static tern_status read_text(const struct tn_gguf *gguf, const char *name, const char **out,
                             struct tern_error *err)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(gguf, name);
    *out = NULL;
    if (key && key->type != TN_GGUF_STRING)
        return tn_gguf_fail_type(key, "a text", err);
    if (key)
        *out = key->text;
    return TERN_OK;
}

static tern_status read_id(const struct tn_gguf *gguf, const char *name, uint32_t *out,
                           struct tern_error *err)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(gguf, name);
    *out = TERN_NO_ID;
    if (!key)
        return TERN_OK;
    double id;
    if (!tn_gguf_integer(key, &id))
        return tn_gguf_fail_type(key, "an integer", err);
    if (id == -1 || id == TERN_NO_ID) /* "no id" */
        return TERN_OK;
    if (id < 0 || id > TERN_NO_ID)
        return tn_fail(err, TERN_INPUT, "%s is %.0f, allowed are 0 to %u", name, id,
                       TERN_NO_ID - 1);
    *out = (uint32_t)id;
    return TERN_OK;
}

/* Ids for fill-in-the-middle by their present and former keys. */
static tern_status read_fim_ids(const struct tn_gguf *gguf, struct tn_tok_keys *k,
                                struct tern_error *err)
{
    static const char *const names[][2] = {
        {PREFIX "fim_pre_token_id", PREFIX "prefix_token_id"},
        {PREFIX "fim_suf_token_id", PREFIX "suffix_token_id"},
        {PREFIX "fim_mid_token_id", PREFIX "middle_token_id"},
        {PREFIX "fim_pad_token_id", NULL},
        {PREFIX "fim_rep_token_id", NULL},
        {PREFIX "fim_sep_token_id", NULL},
    };
    static_assert(TN_COUNT_OF(names) == TN_COUNT_OF(k->fim_ids), "a name for each");
    for (size_t i = 0; i < 2 * TN_COUNT_OF(names); i++) {
        uint32_t id = TERN_NO_ID;
        const char *name = names[i / 2][i % 2];
        tern_status status = name ? read_id(gguf, name, &id, err) : TERN_OK;
        if (status == TERN_OK && id != TERN_NO_ID && id >= k->tokens.n)
            status = tn_fail(err, TERN_INPUT, "%s is %u, there are %u tokens", name, id,
                             k->tokens.n);
        if (status != TERN_OK)
            return status;
        k->fim_ids[i / 2] = k->fim_ids[i / 2] ? k->fim_ids[i / 2] : id + 1; /* 0 if there is none */
    }
    return TERN_OK;
}

static tern_status read_bool(const struct tn_gguf *gguf, const char *name, int *out,
                             struct tern_error *err)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(gguf, name);
    *out = -1;
    if (key && key->type != TN_GGUF_BOOL)
        return tn_gguf_fail_type(key, "a truth value", err);
    if (key)
        *out = key->value.u != 0;
    return TERN_OK;
}

static tern_status load_texts(const struct tn_gguf *gguf, const char *name, bool required,
                              struct tn_gguf_texts *room, struct tn_tok_texts *out,
                              struct tern_error *err)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(gguf, name);
    if (!key && !required)
        return TERN_OK;
    if (!key)
        return tn_fail(err, TERN_INPUT, "%s is missing", name);
    if (key->type != TN_GGUF_ARRAY || key->element_type != TN_GGUF_STRING)
        return tn_gguf_fail_type(key, "an array of texts", err);
    tern_status status = tn_gguf_load_texts(room, gguf, key, err);
    if (status == TERN_OK)
        *out = (struct tn_tok_texts){room->bytes, room->offsets, room->n};
    return status;
}

/* Four bytes per token; some programs write types as U32. */
static tern_status load_numbers(const struct tn_gguf *gguf, const char *name, uint32_t type,
                                uint32_t n_tokens, void **out, struct tern_error *err)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(gguf, name);
    if (!key)
        return TERN_OK;
    if (key->type != TN_GGUF_ARRAY)
        return tn_gguf_fail_type(key, "an array", err);
    if (key->element_type != type && (type != TN_GGUF_I32 || key->element_type != TN_GGUF_U32))
        return tn_fail(err, TERN_INPUT, "%s is an array of %s, expected %s", name,
                       tn_gguf_value_text(key->element_type), tn_gguf_value_text(type));
    if (key->count != n_tokens)
        return tn_fail(err, TERN_INPUT, "%s has %llu elements, there are %u tokens", name,
                       (unsigned long long)key->count, n_tokens);
    return tn_gguf_load_numbers(out, gguf, key, err);
}

struct loaded {
    struct tn_tok_keys keys;
    struct tn_gguf_texts tokens, merges;
    void *scores, *types;
};

static tern_status load(struct loaded *l, const struct tn_gguf *gguf, struct tern_error *err)
{
    struct tn_tok_keys *k = &l->keys;
    tern_status status = read_text(gguf, PREFIX "model", &k->model, err);
    if (status == TERN_OK && !k->model)
        status = tn_fail(err, TERN_INPUT,
                         PREFIX "model is missing: the file has no tokenizer; --no-tokenizer "
                                "converts without one");
    if (status == TERN_OK && strcmp(k->model, "none") == 0)
        status = tn_fail(err, TERN_INPUT,
                         PREFIX "model \"none\": the file has no tokenizer; --no-tokenizer "
                                "converts without one");
    if (status == TERN_OK)
        status = read_text(gguf, PREFIX "pre", &k->pre, err);
    if (status == TERN_OK)
        status = read_text(gguf, "general.architecture", &k->arch, err);
    if (status == TERN_OK)
        status = read_id(gguf, PREFIX "bos_token_id", &k->bos_id, err);
    if (status == TERN_OK)
        status = read_id(gguf, PREFIX "eos_token_id", &k->eos_id, err);
    if (status == TERN_OK)
        status = read_id(gguf, PREFIX "unknown_token_id", &k->unk_id, err);
    if (status == TERN_OK)
        status = read_bool(gguf, PREFIX "add_bos_token", &k->add_bos, err);
    if (status == TERN_OK)
        status = read_bool(gguf, PREFIX "add_eos_token", &k->add_eos, err);
    if (status == TERN_OK)
        status = read_bool(gguf, PREFIX "add_space_prefix", &k->add_space_prefix, err);
    if (status == TERN_OK)
        status = load_texts(gguf, PREFIX "tokens", true, &l->tokens, &k->tokens, err);
    if (status == TERN_OK && k->tokens.n == 0)
        status = tn_fail(err, TERN_INPUT, PREFIX "tokens is empty");
    if (status == TERN_OK)
        status = read_fim_ids(gguf, k, err);
    if (status == TERN_OK)
        status = load_texts(gguf, PREFIX "merges", strcmp(k->model, "gpt2") == 0, &l->merges,
                            &k->merges, err);
    if (status == TERN_OK)
        status = load_numbers(gguf, PREFIX "scores", TN_GGUF_F32, k->tokens.n, &l->scores, err);
    if (status == TERN_OK)
        status = load_numbers(gguf, PREFIX "token_type", TN_GGUF_I32, k->tokens.n, &l->types, err);
    k->scores = l->scores;
    k->types = l->types;
    return status;
}

tern_status tn_tok_from_gguf(const struct tn_gguf *gguf, const char *pre, uint32_t vocab,
                             const char **used, struct tn_buf *section, struct tern_error *err)
{
    struct loaded l = {0};
    if (used)
        *used = NULL;
    tern_status status = load(&l, gguf, err);
    if (status == TERN_OK)
        status = tn_tok_from_keys(&l.keys, pre, vocab, used, section, err);
    tn_gguf_texts_fini(&l.tokens);
    tn_gguf_texts_fini(&l.merges);
    tn_free(l.scores);
    tn_free(l.types);
    return status;
}

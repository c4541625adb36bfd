/* SPDX-License-Identifier: MIT
 *
 * Makes a tokenizer section from GGUF's lists: chooses the splitter by its name, adds the tokens,
 * and derives merges from lines or from scores.
 */
#include "convert/tokens/tok_gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/tokens/tok_tables.h"
#include "text/normalize.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#define SOURCE "tokenizer.ggml"

enum token_type {
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_USER = 4,
    TYPE_UNUSED = 5,
    TYPE_BYTE = 6,
};

/* ---- splitters by name ---- */

/* TERN_TOK_NFC only if the family's tokenizer.json is known to normalise: the names do not indicate
 * it. */
static const struct {
    const char *pre;
    uint32_t splitter;
    uint32_t flags;
    bool adds_bos; /* unless the file states otherwise */
} splitters[] = {
    {"llama-bpe", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"llama3", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"llama-v3", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"falcon3", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"pixtral", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"midm-2.0", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"dbrx", TERN_SPLIT_LLAMA3, 0, false}, /* OLMo 2, Phi-4 */
    {"smaug-bpe", TERN_SPLIT_LLAMA3, 0, false},
    {"falcon_e", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"falcon-h1", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, true},
    {"qwen2", TERN_SPLIT_QWEN2, TERN_TOK_NFC, false},
    {"deepseek-r1-qwen", TERN_SPLIT_QWEN2, TERN_TOK_NFC, false},
    {"qwen35", TERN_SPLIT_QWEN35, TERN_TOK_NFC, false},
    {"megrez", TERN_SPLIT_QWEN2, 0, false},
    {"kormo", TERN_SPLIT_QWEN2, 0, false},
    {"seed-coder", TERN_SPLIT_SEED_CODER, 0, false},
    {"minicpm5", TERN_SPLIT_MINICPM5, TERN_TOK_IGNORE_MERGES, false},
    {"gpt-4o", TERN_SPLIT_GPT4O, 0, false}, /* Phi-4-mini */
    {"tekken", TERN_SPLIT_TEKKEN, TERN_TOK_IGNORE_MERGES, true},
    {"gpt-2", TERN_SPLIT_GPT2, 0, false},
    {"a.x-4.0", TERN_SPLIT_GPT2, 0, false},
    {"granite-docling", TERN_SPLIT_GPT2, 0, false},
    {"mellum", TERN_SPLIT_GPT2, 0, false},
    {"trillion", TERN_SPLIT_GPT2, 0, false},
    {"gpt-neox", TERN_SPLIT_GPT2, TERN_TOK_NFC, false},
    {"mpt", TERN_SPLIT_GPT2, TERN_TOK_NFC, false},  /* NeoX's vocabulary */
    {"olmo", TERN_SPLIT_GPT2, TERN_TOK_NFC, false}, /* the same */
    {"falcon", TERN_SPLIT_FALCON, 0, false},
    {"starcoder", TERN_SPLIT_STARCODER, 0, false},
    {"smollm", TERN_SPLIT_STARCODER, 0, false},
    {"refact", TERN_SPLIT_STARCODER, 0, false}, /* Granite 3 */
    {"exaone", TERN_SPLIT_STARCODER, 0, false},
    {"minerva-7b", TERN_SPLIT_STARCODER, 0, false},
    {"deepseek-coder", TERN_SPLIT_DEEPSEEK_CODER, 0, false},
    {"deepseek-llm", TERN_SPLIT_DEEPSEEK_LLM, 0, false},
    {"deepseek-v3", TERN_SPLIT_DEEPSEEK_V3, 0, false},
};

/* The 128,000 ranks of LLaMA-3, by a hash over the hashes of their texts. */
#define LLAMA3_RANKS 128000u
#define LLAMA3_HASH 0x0BCECF58260D5BB0u

static const char *text_at(const struct tn_tok_texts *texts, uint32_t i, size_t *n)
{
    *n = texts->offsets[i + 1] - texts->offsets[i];
    return texts->bytes + texts->offsets[i];
}

static bool is_llama3(const struct tn_tok_texts *tokens)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < LLAMA3_RANKS && tokens->n >= LLAMA3_RANKS; i++) {
        size_t n;
        const char *text = text_at(tokens, i, &n);
        hash = (hash ^ tn_token_hash(text, n)) * 0x9E3779B97F4A7C15u;
    }
    return hash == LLAMA3_HASH;
}

/* Architectures whose published models with such a vocabulary split alike, for files from before
 * converters named the splitter. */
static const char *const pre_of_arch[][2] = {
    {"gpt2", "gpt-2"}, {"gptneox", "gpt-neox"}, {"qwen2", "qwen2"}, {"starcoder2", "starcoder"},
};

/* The deciding name; converters that did not know it write "default". */
static const char *decide_pre(const struct tn_tok_keys *keys, const char *pre)
{
    if (!pre && keys->pre && strcmp(keys->pre, "default") != 0)
        pre = keys->pre;
    if (!pre && is_llama3(&keys->tokens))
        pre = "llama-bpe";
    for (size_t i = 0; i < TN_COUNT_OF(pre_of_arch) && !pre && keys->arch; i++)
        if (strcmp(keys->arch, pre_of_arch[i][0]) == 0)
            pre = pre_of_arch[i][1];
    return pre;
}

#define SOME_SPLITTERS "(llama-bpe, qwen2, gpt-2, gpt-neox ...)"

/* `pre` is the file's name, unless the caller passed one. */
static tern_status fail_splitter(const char *pre, bool by_caller, struct tern_error *err)
{
    if (!pre)
        return tn_fail(err, TERN_UNSUPPORTED,
                       SOURCE ".pre is missing or \"default\", so the file does not say how text "
                              "is split into words; `tern convert --pre NAME` says it "
                              SOME_SPLITTERS);
    if (by_caller)
        return tn_fail(err, TERN_USAGE,
                       "--pre \"%.80s\": tern has no such splitter " SOME_SPLITTERS, pre);
    return tn_fail(err, TERN_UNSUPPORTED,
                   SOURCE ".pre: splitter \"%.80s\" is not supported; one that is the same can be "
                          "named with --pre", pre);
}

static tern_status choose_splitter(const char *pre, bool by_caller,
                                   struct tern_file_tokenizer *head, const char **used,
                                   bool *adds_bos, struct tern_error *err)
{
    if (!pre)
        return fail_splitter(pre, by_caller, err);
    for (size_t i = 0; i < TN_COUNT_OF(splitters); i++) {
        if (strcmp(splitters[i].pre, pre) != 0)
            continue;
        head->splitter = splitters[i].splitter;
        head->flags |= splitters[i].flags;
        *adds_bos = splitters[i].adds_bos;
        *used = splitters[i].pre;
        return TERN_OK;
    }
    return fail_splitter(pre, by_caller, err);
}

/* ---- tokens ---- */

/* True for "[PAD32000]": converters fill ids with it that the tokenizer does not have. */
static bool is_padding(const struct tn_tok_texts *tokens, uint32_t id)
{
    char pad[32];
    size_t n, n_pad = (size_t)snprintf(pad, sizeof pad, "[PAD%u]", id);
    const char *text = text_at(tokens, id, &n);
    return n == n_pad && memcmp(text, pad, n) == 0;
}

static int32_t type_of(const struct tn_tok_keys *keys, uint32_t id)
{
    if (is_padding(&keys->tokens, id))
        return TYPE_UNUSED;
    return keys->types ? keys->types[id] : TYPE_NORMAL;
}

static uint32_t without_padding(const struct tn_tok_keys *keys)
{
    uint32_t n = keys->tokens.n;
    while (n > 0 && type_of(keys, n - 1) == TYPE_UNUSED)
        n--;
    return n;
}

static tern_status add_vocab(struct tn_tok_build *b, const struct tn_tok_keys *keys, uint32_t n_ids)
{
    for (uint32_t id = 0; id < n_ids; id++) {
        size_t n;
        const char *text = text_at(&keys->tokens, id, &n);
        int32_t type = type_of(keys, id);
        tern_status status = TERN_OK;
        if (type < TYPE_NORMAL || type > TYPE_BYTE)
            return tn_fail(b->err, TERN_INPUT, SOURCE ".token_type: id %u has type %" PRId32
                                                      ", not 1 to 6", id, type);
        if (type == TYPE_BYTE && tn_tok_byte_of_text(text, n) < 0)
            return tn_fail(b->err, TERN_INPUT, SOURCE ".tokens: byte token %u is \"%.*s\"", id,
                           (int)TN_MIN(n, (size_t)40), text);
        if (n == 0 || type == TYPE_UNUSED)
            status = tn_tok_add_unreachable(b, text, n, id);
        else if (type == TYPE_NORMAL || type == TYPE_BYTE)
            status = tn_tok_add_vocab(b, text, n, id, type == TYPE_BYTE ? TN_TOK_BYTE : 0);
        if (status != TERN_OK)
            return status;
    }
    return tn_tok_end_vocab(b);
}

/* True for runs of spaces, spelled as such or with marks, as in Gemma's vocabulary: no merge
 * derived from scores produces them, so they are matched where spaces have become marks. */
static bool has_spaces(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == ' ' || (n - i >= TN_SPACE_MARK_BYTES &&
                               memcmp(text + i, TN_SPACE_MARK, TN_SPACE_MARK_BYTES) == 0))
            return true;
    return false;
}

/* Control tokens are special, other user-defined ones are always matched. */
static tern_status add_added(struct tn_tok_build *b, const struct tn_tok_keys *keys, uint32_t n_ids)
{
    bool bytes = b->head.kind == TERN_TOKENIZER_BYTE_BPE;
    b->adds_verbatim = true;
    for (uint32_t id = 0; id < n_ids; id++) {
        size_t n;
        const char *text = text_at(&keys->tokens, id, &n);
        int32_t type = type_of(keys, id);
        if (n == 0 || (type != TYPE_UNKNOWN && type != TYPE_CONTROL && type != TYPE_USER))
            continue;
        uint32_t flags = type != TYPE_USER              ? TERN_ADDED_SPECIAL
                         : bytes || has_spaces(text, n) ? TERN_ADDED_NORMALIZED
                                                        : 0;
        tern_status status = tn_tok_add_added(b, text, n, id, flags);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

static tern_status add_affix(uint32_t id, bool wanted, const char *key, uint32_t ids[4],
                             uint32_t *n, struct tern_error *err)
{
    if (!wanted)
        return TERN_OK;
    if (id == TERN_NO_ID)
        return tn_fail(err, TERN_INPUT, SOURCE ".add_%s_token without " SOURCE ".%s_token_id", key,
                       key);
    ids[(*n)++] = id;
    return TERN_OK;
}

/* ---- merges ---- */

/* Adds lines of two parts with a space between them. */
static tern_status add_merge_lines(struct tn_tok_build *b, const struct tn_tok_texts *merges)
{
    tern_status status = tn_tok_begin_merges(b, merges->n);
    for (uint32_t i = 0; status == TERN_OK && i < merges->n; i++) {
        size_t n;
        const char *line = text_at(merges, i, &n);
        const char *space = n ? memchr(line, ' ', n) : NULL;
        size_t n_left = space ? (size_t)(space - line) : 0;
        if (!space || memchr(space + 1, ' ', n - n_left - 1))
            return tn_fail(b->err, TERN_INPUT, SOURCE ".merges: merge %u is not a pair of tokens",
                           i);
        status = tn_tok_add_merge(b, i, line, n_left, space + 1, n - n_left - 1);
    }
    return status;
}

/* A pair that merges into a token. */
struct candidate {
    struct tern_file_merge merge;
    float score;
    uint32_t n_left, n_right; /* characters */
};

/* The order of the reference's conversion of scores: the better score first, then the longer left
 * part, then the longer right part; then the order of ids. */
static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->n_left != y->n_left)
        return x->n_left > y->n_left ? -1 : 1;
    if (x->n_right != y->n_right)
        return x->n_right > y->n_right ? -1 : 1;
    if (x->merge.merged != y->merge.merged)
        return x->merge.merged < y->merge.merged ? -1 : 1;
    return (x->merge.left > y->merge.left) - (x->merge.left < y->merge.left);
}

static uint32_t n_characters(const char *text, size_t n)
{
    uint32_t n_chars = 0, c;
    for (size_t i = 0; i < n; n_chars++)
        i += tn_utf8_next(text + i, n - i, &c);
    return n_chars;
}

/* Lists all pairs of vocabulary entries that make this one; only counts them if `list` is NULL. */
static size_t split_token(const struct tn_tok_build *b, uint32_t id, float score,
                          struct candidate *list)
{
    const struct tn_tok_token *token = &b->tokens[id];
    size_t n = 0;
    uint32_t n_chars = n_characters(token->text, token->n_bytes), i_char = 0, c;
    for (size_t i = 0; i_char + 1 < n_chars;) {
        i += tn_utf8_next(token->text + i, token->n_bytes - i, &c);
        i_char++;
        uint32_t left = tn_tok_lookup(b, token->text, i);
        uint32_t right =
            left == TERN_NO_ID ? left : tn_tok_lookup(b, token->text + i, token->n_bytes - i);
        if (right == TERN_NO_ID || (b->tokens[left].flags | b->tokens[right].flags) & TN_TOK_BYTE)
            continue;
        if (list)
            list[n] = (struct candidate){{left, right, id}, score, i_char, n_chars - i_char};
        n++;
    }
    return n;
}

/* The same for all entries that merging may produce. */
static size_t split_tokens(const struct tn_tok_build *b, const float *scores,
                           struct candidate *list)
{
    size_t n = 0;
    for (uint32_t id = 0; id < b->head.n_tokens; id++)
        if ((b->tokens[id].flags & (TN_TOK_IN_VOCAB | TN_TOK_BYTE | TN_TOK_ADDED)) ==
            TN_TOK_IN_VOCAB)
            n += split_token(b, id, scores[id], list ? list + n : NULL);
    return n;
}

/* Merging by scores takes the pair whose token has the best score: ranks follow that order. */
static tern_status add_merges_of_scores(struct tn_tok_build *b, const float *scores)
{
    const size_t n = split_tokens(b, scores, NULL);
    tern_status status = tn_tok_begin_merges(b, n);
    if (status != TERN_OK)
        return status;
    struct candidate *list = tn_alloc(n * sizeof *list);
    if (!list)
        return tn_fail(b->err, TERN_MEMORY, SOURCE ": not enough memory for the merges");
    split_tokens(b, scores, list);
    qsort(list, n, sizeof *list, compare);
    for (size_t i = 0; i < n; i++)
        tn_tok_put_merge(b, list[i].merge);
    tn_free(list);
    return TERN_OK;
}

/* Maximum bytes of a token with a score: looking up all pairs that make it takes time proportional
 * to their square.  SentencePiece makes tokens of at most 16 characters by default. */
#define MAX_SCORED_BYTES 1024u

static tern_status check_scores(const struct tn_tok_keys *keys, struct tern_error *err)
{
    if (!keys->scores)
        return tn_fail(err, TERN_INPUT, SOURCE ".scores is missing");
    for (uint32_t id = 0; id < keys->tokens.n; id++) {
        size_t n;
        (void)text_at(&keys->tokens, id, &n);
        if (!isfinite(keys->scores[id]))
            return tn_fail(err, TERN_INPUT, SOURCE ".scores: id %u has no finite score", id);
        if (n > MAX_SCORED_BYTES && type_of(keys, id) == TYPE_NORMAL)
            return tn_fail(err, TERN_UNSUPPORTED,
                           SOURCE ".tokens: token %u with a score has %zu bytes, at most %u are "
                                  "supported",
                           id, n, MAX_SCORED_BYTES);
    }
    return TERN_OK;
}

/* ---- the whole ---- */

static tern_status read_model(const struct tn_tok_keys *keys, const char *pre,
                              struct tern_file_tokenizer *head, const char **used,
                              bool *adds_bos, struct tern_error *err)
{
    *used = NULL;
    if (strcmp(keys->model, "gpt2") == 0) {
        head->kind = TERN_TOKENIZER_BYTE_BPE;
        return choose_splitter(decide_pre(keys, pre), pre != NULL, head, used, adds_bos, err);
    }
    if (strcmp(keys->model, "llama") != 0)
        return tn_fail(err, TERN_UNSUPPORTED, SOURCE ".model \"%.80s\" is not supported",
                       keys->model);
    head->kind = TERN_TOKENIZER_CHAR_BPE;
    head->splitter = TERN_SPLIT_NONE;
    head->flags = TERN_TOK_SPACE_MARKS | TERN_TOK_FUSE_UNK;
    if (keys->add_space_prefix != 0)
        head->flags |= TERN_TOK_PREPEND | TERN_TOK_STRIP;
    *adds_bos = true;
    return check_scores(keys, err);
}

/* The unknown token matters only for vocabularies of characters. */
static void find_unknown(struct tern_file_tokenizer *head, const struct tn_tok_keys *keys,
                         uint32_t n_ids)
{
    if (head->kind != TERN_TOKENIZER_CHAR_BPE)
        return;
    head->unk_id = keys->unk_id;
    for (uint32_t id = 0; id < n_ids && head->unk_id == TERN_NO_ID; id++)
        if (type_of(keys, id) == TYPE_UNKNOWN)
            head->unk_id = id;
    if (head->unk_id >= n_ids)
        head->unk_id = TERN_NO_ID;
}

static tern_status build(struct tn_tok_build *b, const struct tn_tok_keys *keys, const char *pre,
                         const char **used)
{
    bool adds_bos = false;
    struct tern_file_tokenizer *head = &b->head;
    uint32_t n_ids = without_padding(keys);
    tern_status status = read_model(keys, pre, head, used, &adds_bos, b->err);
    const bool has_bos = keys->bos_id != TERN_NO_ID; /* else the usual rule adds nothing */
    const bool bos = keys->add_bos < 0 ? adds_bos && has_bos : keys->add_bos;
    if (status == TERN_OK)
        status = add_affix(keys->bos_id, bos, "bos", head->prefix_ids, &head->n_prefix, b->err);
    if (status == TERN_OK)
        status = add_affix(keys->eos_id, keys->add_eos > 0, "eos", head->suffix_ids,
                           &head->n_suffix, b->err);
    find_unknown(head, keys, n_ids);
    for (size_t i = 0; i < TN_COUNT_OF(head->fim_ids); i++)
        head->fim_ids[i] = keys->fim_ids[i] <= n_ids ? keys->fim_ids[i] : 0; /* else padding */
    if (status == TERN_OK)
        status = add_vocab(b, keys, n_ids);
    if (status == TERN_OK)
        status = add_added(b, keys, n_ids);
    if (status == TERN_OK)
        status = tn_tok_end_tokens(b);
    if (status == TERN_OK)
        status = head->kind == TERN_TOKENIZER_CHAR_BPE ? add_merges_of_scores(b, keys->scores)
                                                       : add_merge_lines(b, &keys->merges);
    return status == TERN_OK ? tn_tok_finish(b) : status;
}

tern_status tn_tok_from_keys(const struct tn_tok_keys *keys, const char *pre, uint32_t vocab,
                             const char **used, struct tn_buf *section, struct tern_error *err)
{
    struct tn_tok_build b;
    const char *name = NULL;
    tern_status status = tn_tok_init(&b, SOURCE, vocab, section, err);
    if (status == TERN_OK)
        status = build(&b, keys, pre, &name);
    tn_tok_fini(&b);
    if (status != TERN_OK)
        tn_buf_fini(section);
    if (used)
        *used = name;
    return status;
}

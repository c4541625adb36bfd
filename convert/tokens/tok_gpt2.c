/* SPDX-License-Identifier: MIT
 *
 * Reads the files of GPT-2's tokenizer.  Special tokens are named in tokenizer_config.json or
 * special_tokens_map.json; a name that neither mentions has GPT-2's default.  Their ids come from
 * added_tokens_decoder or added_tokens.json, else from the vocabulary; one that has no id anywhere
 * receives the next free one, in the order in which transformers adds them.
 */
#include "convert/tokens/tok_gpt2.h"

#include <jansson.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"
#include "base/text_match.h"
#include "base/utf8.h"
#include "convert/tokens/tok_components.h"
#include "convert/tokens/tok_section.h"
#include "convert/tokens/tok_tables.h"
#include "tern/model_format.h"

#define CONFIG "tokenizer_config.json"

const char *const tn_gpt2_file_names[TN_GPT2_N_FILES] = {
    [TN_GPT2_VOCAB] = "vocab.json",
    [TN_GPT2_MERGES] = "merges.txt",
    [TN_GPT2_CONFIG] = CONFIG,
    [TN_GPT2_SPECIAL] = "special_tokens_map.json",
    [TN_GPT2_ADDED] = "added_tokens.json",
};

#define END_OF_TEXT "<|endoftext|>"

/* Tokens with one name each; the first three have a default. */
static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};
#define N_NAMES TN_COUNT_OF(names)
#define N_WITH_DEFAULT 3

static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};

struct reader {
    struct tn_tok_build b;
    json_t *json[TN_GPT2_N_FILES]; /* NULL: absent, and always for the merges */
    const json_t *decoder;         /* added_tokens_decoder; NULL: there is none */
    const json_t *named[N_NAMES];  /* the token as text or object; NULL: none */
    json_t *special;               /* text -> has a name; else it is in a list */
    json_t *known;                 /* its members are the texts that were added */
    json_t *end_of_text;           /* the default */
    int64_t next;                  /* the next free id */
};

/* ---- values ---- */

/* The text of a token, written as a string or as an object; NULL: neither. */
static const json_t *content_of(const json_t *token)
{
    const json_t *content = json_is_object(token) ? json_object_get(token, "content") : token;
    return json_is_string(content) ? content : NULL;
}

static tern_status fail_value(struct reader *r, enum tn_gpt2_file file, const char *key,
                              const char *wanted)
{
    return tn_fail(r->b.err, TERN_INPUT, "%s: \"%.80s\" is not %s", tn_gpt2_file_names[file], key,
                   wanted);
}

/* A token that does not say so matches before the text is normalised if it is special. */
static uint32_t flags_of(const json_t *token, bool is_special)
{
    const uint32_t flags = tn_tok_added_flags(token) | (is_special ? TERN_ADDED_SPECIAL : 0);
    const bool is_unsaid = !json_object_get(token, "normalized");
    return is_unsaid && !(flags & TERN_ADDED_SPECIAL) ? flags | TERN_ADDED_NORMALIZED : flags;
}

/* A decimal id in a member's name, or -1. */
static int64_t id_of_name(const char *name)
{
    int64_t id = 0;
    const size_t n = strlen(name);
    if (n == 0 || n > 10 || strspn(name, "0123456789") != n)
        return -1;
    for (size_t i = 0; i < n; i++)
        id = id * 10 + (name[i] - '0');
    return id;
}

/* ---- special tokens ---- */

/* The map overrides the config, unless the config lists all added tokens itself. */
static const json_t *find_member(const struct reader *r, const char *key, enum tn_gpt2_file *file)
{
    const json_t *value = r->decoder ? NULL : json_object_get(r->json[TN_GPT2_SPECIAL], key);
    *file = value ? TN_GPT2_SPECIAL : TN_GPT2_CONFIG;
    return value ? value : json_object_get(r->json[TN_GPT2_CONFIG], key);
}

static tern_status note_special(struct reader *r, const json_t *token, bool has_name)
{
    const char *text = json_string_value(content_of(token));
    if (!has_name && json_object_get(r->special, text))
        return TERN_OK;
    return json_object_set_new(r->special, text, json_boolean(has_name)) == 0
               ? TERN_OK
               : tn_tok_no_memory(&r->b);
}

static tern_status read_name(struct reader *r, size_t i)
{
    enum tn_gpt2_file file;
    const json_t *value = find_member(r, names[i], &file);
    if (!value && i < N_WITH_DEFAULT)
        value = r->end_of_text;
    if (tn_json_is_absent(value))
        return TERN_OK;
    if (!content_of(value))
        return fail_value(r, file, names[i], "a token");
    r->named[i] = value;
    return note_special(r, value, true);
}

static tern_status read_list(struct reader *r, const char *key)
{
    enum tn_gpt2_file file;
    const json_t *list = find_member(r, key, &file);
    if (!tn_json_is_absent(list) && !json_is_array(list))
        return fail_value(r, file, key, "a list of tokens");
    tern_status status = TERN_OK;
    for (size_t i = 0; i < json_array_size(list) && status == TERN_OK; i++) {
        const json_t *token = json_array_get(list, i);
        status = content_of(token) ? note_special(r, token, false)
                                   : fail_value(r, file, key, "a list of tokens");
    }
    return status;
}

static tern_status read_special(struct reader *r)
{
    tern_status status = TERN_OK;
    for (size_t i = 0; i < N_NAMES && status == TERN_OK; i++)
        status = read_name(r, i);
    for (size_t i = 0; i < TN_COUNT_OF(lists) && status == TERN_OK; i++)
        status = read_list(r, lists[i]);
    return status;
}

/* ---- added tokens ---- */

static tern_status add_token(struct reader *r, const char *text, int64_t id, uint32_t flags)
{
    r->next = TN_MAX(r->next, id + 1);
    if (json_object_set_new(r->known, text, json_true()) != 0)
        return tn_tok_no_memory(&r->b);
    return tn_tok_add_added(&r->b, text, strlen(text), id, flags);
}

/* A token without a stated id, unless it was added before.  A default that the vocabulary lacks is
 * no token if the model has no id left for it. */
static tern_status add_unnumbered(struct reader *r, const json_t *token)
{
    const char *text = json_string_value(content_of(token));
    if (json_object_get(r->known, text))
        return TERN_OK;
    const uint32_t found = tn_tok_lookup(&r->b, text, strlen(text));
    const int64_t id = found == TERN_NO_ID ? r->next : found;
    if (token == r->end_of_text && id >= r->b.model_vocab)
        return TERN_OK;
    return add_token(r, text, id, flags_of(token, true));
}

/* added_tokens_decoder: id -> token. */
static tern_status add_decoded(struct reader *r)
{
    const char *name;
    json_t *token;
    if (!json_is_object(r->decoder))
        return fail_value(r, TN_GPT2_CONFIG, "added_tokens_decoder", "an object");
    json_object_foreach((json_t *)r->decoder, name, token) {
        const char *text = json_string_value(json_object_get(token, "content"));
        const int64_t id = id_of_name(name);
        if (!text || id < 0)
            return fail_value(r, TN_GPT2_CONFIG, name, "the id of an added token");
        const bool has_name = json_is_true(json_object_get(r->special, text));
        tern_status status = add_token(r, text, id, flags_of(token, has_name));
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* added_tokens.json: text -> id. */
static tern_status add_numbered(struct reader *r)
{
    const char *text;
    json_t *value;
    json_object_foreach(r->json[TN_GPT2_ADDED], text, value) {
        if (!json_is_integer(value))
            return fail_value(r, TN_GPT2_ADDED, text, "the text of a token with its id");
        const int64_t id = TN_MIN((int64_t)json_integer_value(value), (int64_t)UINT32_MAX);
        const bool is_special = json_object_get(r->special, text) != NULL;
        tern_status status =
            add_token(r, text, id, is_special ? TERN_ADDED_SPECIAL : TERN_ADDED_NORMALIZED);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

static tern_status add_listed(struct reader *r, const char *key)
{
    enum tn_gpt2_file file;
    const json_t *list = find_member(r, key, &file);
    tern_status status = TERN_OK;
    for (size_t i = 0; i < json_array_size(list) && status == TERN_OK; i++)
        status = add_unnumbered(r, json_array_get(list, i));
    return status;
}

static tern_status add_tokens(struct reader *r)
{
    r->b.source = tn_gpt2_file_names[r->json[TN_GPT2_ADDED] && !r->decoder ? TN_GPT2_ADDED
                                                                          : TN_GPT2_CONFIG];
    tern_status status = r->decoder ? add_decoded(r) : add_numbered(r);
    r->b.source = CONFIG;
    for (size_t i = 0; i < N_NAMES && status == TERN_OK; i++)
        if (r->named[i])
            status = add_unnumbered(r, r->named[i]);
    for (size_t i = 0; i < TN_COUNT_OF(lists) && status == TERN_OK; i++)
        status = add_listed(r, lists[i]);
    return status;
}

/* ---- the config ---- */

/* Both classes make the same ids; tokenizers of other classes have files of the same names. */
static tern_status check_class(struct reader *r, bool is_default)
{
    static const char *const classes[] = {"GPT2Tokenizer", "GPT2TokenizerFast", "CodeGenTokenizer",
                                          "CodeGenTokenizerFast"};
    const char *name =
        json_string_value(json_object_get(r->json[TN_GPT2_CONFIG], "tokenizer_class"));
    if (name ? tn_text_is_one_of(name, classes, TN_COUNT_OF(classes)) : is_default)
        return TERN_OK;
    return tn_fail(r->b.err, TERN_UNSUPPORTED,
                   CONFIG ": tokenizer_class %.80s without a tokenizer.json is not supported",
                   name ? name : "(none)");
}

static tern_status read_config(struct reader *r, bool is_default)
{
    const json_t *config = r->json[TN_GPT2_CONFIG];
    if (json_is_true(json_object_get(config, "add_prefix_space")))
        return tn_fail(r->b.err, TERN_UNSUPPORTED, CONFIG ": add_prefix_space is not supported");
    r->decoder = json_object_get(config, "added_tokens_decoder");
    r->b.head.kind = TERN_TOKENIZER_BYTE_BPE;
    r->b.head.splitter = TERN_SPLIT_GPT2;
    return check_class(r, is_default);
}

/* `key` says whether every text receives the token of name i on this side.  Only the first id of
 * the text is added: tn_tok_end_tokens refuses a second one. */
static void read_affix(struct reader *r, const char *key, size_t i, uint32_t *ids, uint32_t *n)
{
    const char *text = json_string_value(content_of(r->named[i]));
    if (!text || !json_is_true(json_object_get(r->json[TN_GPT2_CONFIG], key)))
        return;
    for (uint32_t id = 0; id < r->b.model_vocab && *n == 0; id++) {
        const struct tn_tok_token *token = &r->b.tokens[id];
        if (token->flags & TN_TOK_ADDED && token->n_bytes == strlen(text) &&
            memcmp(token->text, text, token->n_bytes) == 0)
            ids[(*n)++] = id;
    }
}

/* ---- vocabulary and merges ---- */

static tern_status read_vocab(struct reader *r)
{
    const char *text;
    json_t *value;
    r->b.source = tn_gpt2_file_names[TN_GPT2_VOCAB];
    json_object_foreach(r->json[TN_GPT2_VOCAB], text, value) {
        const int64_t id = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
        tern_status status = tn_tok_add_vocab(&r->b, text, strlen(text), id, 0);
        if (status != TERN_OK)
            return status;
    }
    r->next = r->b.n_vocab;
    return tn_tok_end_vocab(&r->b);
}

/* Line `number` (from 1): two tokens with a space between them. */
static tern_status read_merge(struct reader *r, const char *line, size_t n, size_t number)
{
    const char *space = memchr(line, ' ', n);
    const size_t n_left = space ? (size_t)(space - line) : 0;
    if (!space || memchr(space + 1, ' ', n - n_left - 1))
        return tn_fail(r->b.err, TERN_INPUT, "%s: line %zu is not a pair of tokens", r->b.source,
                       number);
    return tn_tok_add_merge(&r->b, r->b.head.n_merges, line, n_left, space + 1, n - n_left - 1);
}

static size_t count_lines(const char *text, size_t n)
{
    size_t n_lines = 1;
    for (size_t i = 0; i < n; i++)
        n_lines += text[i] == '\n';
    return n_lines;
}

static tern_status read_merges(struct reader *r, const char *text, size_t n)
{
    static const char version[] = "#version";
    r->b.source = tn_gpt2_file_names[TN_GPT2_MERGES];
    const size_t bad = tn_utf8_find_invalid(text, n);
    if (bad < n)
        return tn_fail(r->b.err, TERN_INPUT, "%s: byte 0x%02x at offset %zu is not UTF-8",
                       r->b.source, (unsigned char)text[bad], bad);
    tern_status status = tn_tok_begin_merges(&r->b, count_lines(text, n));
    size_t number = 1;
    for (const char *line = text, *end = text + n; status == TERN_OK && line < end; number++) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        const char *next = feed ? feed + 1 : end;
        size_t n_line = (size_t)((feed ? feed : end) - line);
        n_line -= feed && n_line > 0 && line[n_line - 1] == '\r';
        if (n_line < sizeof version - 1 || memcmp(line, version, sizeof version - 1) != 0)
            status = read_merge(r, line, n_line, number);
        line = next;
    }
    return status;
}

/* ---- the whole ---- */

static tern_status load(struct reader *r, const struct tn_gpt2_texts *files)
{
    r->special = json_object();
    r->known = json_object();
    r->end_of_text = json_string(END_OF_TEXT);
    if (!r->special || !r->known || !r->end_of_text)
        return tn_tok_no_memory(&r->b);
    for (int i = 0; i < TN_GPT2_N_FILES; i++) {
        const char *name = tn_gpt2_file_names[i];
        if (i == TN_GPT2_MERGES || !files->text[i])
            continue;
        tern_status status = tn_json_load(&r->json[i], name, files->text[i], files->n[i],
                                          JSON_REJECT_DUPLICATES | TN_JSON_LARGE_AS_REAL,
                                          r->b.err);
        if (status != TERN_OK)
            return status;
        if (!json_is_object(r->json[i]))
            return tn_fail(r->b.err, TERN_INPUT, "%s: not a JSON object", name);
    }
    return read_config(r, files->is_default);
}

static tern_status build(struct reader *r, const struct tn_gpt2_texts *files)
{
    struct tern_file_tokenizer *head = &r->b.head;
    tern_status status = load(r, files);
    if (status == TERN_OK)
        status = read_special(r);
    if (status == TERN_OK)
        status = read_vocab(r);
    if (status == TERN_OK)
        status = add_tokens(r);
    if (status != TERN_OK)
        return status;
    read_affix(r, "add_bos_token", 0, head->prefix_ids, &head->n_prefix);
    read_affix(r, "add_eos_token", 1, head->suffix_ids, &head->n_suffix);
    r->b.source = tn_gpt2_file_names[TN_GPT2_VOCAB];
    status = tn_tok_end_tokens(&r->b);
    if (status == TERN_OK)
        status = read_merges(r, files->text[TN_GPT2_MERGES], files->n[TN_GPT2_MERGES]);
    return status == TERN_OK ? tn_tok_finish(&r->b) : status;
}

tern_status tn_tok_from_gpt2(const struct tn_gpt2_texts *files, uint32_t vocab,
                             struct tn_buf *section, struct tern_error *err)
{
    struct reader r = {.next = 0};
    tern_status status = tn_tok_init(&r.b, "vocab.json", vocab, section, err);
    if (status == TERN_OK)
        status = build(&r, files);
    tn_tok_fini(&r.b);
    for (int i = 0; i < TN_GPT2_N_FILES; i++)
        json_decref(r.json[i]);
    json_decref(r.special);
    json_decref(r.known);
    json_decref(r.end_of_text);
    if (status != TERN_OK)
        tn_buf_fini(section);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * From the vocabulary, the merges and the added tokens to tables that are used
 * straight from the mapped file.
 *
 * Work memory: 16 bytes per token beside the section.
 */
#include "tok_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/log.h"
#include "text/bpe.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#define FILE_NAME "tokenizer.json"

/* Where the string of an id comes from. */
struct token {
    const char *text;    /* NUL-terminated, owned by the JSON tree; NULL: a hole */
    uint32_t in_vocab;   /* in model.vocab, in the byte alphabet */
    uint32_t added;      /* 0, or the TERN_ADDED_* flags with TOKEN_ADDED */
};
#define TOKEN_ADDED 0x80000000u

struct build {
    struct tern_file_tokenizer *head;
    const json_t *vocab;
    struct tn_buf *section;
    struct tern_error *err;
    struct token *tokens; /* [head->n_tokens] */
    uint32_t model_vocab;
};

/* ---- the byte alphabet ---- */

/* The byte for which a character stands, or -1: printable Latin-1 stands for itself, the other 68
 * bytes in ascending order are U+0100, U+0101, ... */
static int alphabet_byte(uint32_t c)
{
    if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF))
        return (int)c;
    if (c < 0x100 || c >= 0x100 + 68)
        return -1;
    c -= 0x100;
    return (int)(c < 0x21 ? c : c < 0x21 + 0x22 ? 0x7F + (c - 0x21) : 0xAD);
}

/* Decodes text from the byte alphabet to out, which has room for strlen(text) bytes; false when a
 * character is not in it. */
static bool alphabet_decode(const char *text, char *out, size_t *n_out)
{
    size_t n = strlen(text);
    *n_out = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += tn_utf8_next(text + i, n - i, &c);
        int byte = alphabet_byte(c);
        if (byte < 0)
            return false;
        out[(*n_out)++] = (char)byte;
    }
    return true;
}

/* ---- collecting the tokens ---- */

static tern_status read_id(const json_t *value, const char *text, const struct build *b,
                           uint32_t *id)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0)
        return tn_fail(b->err, TERN_INPUT, FILE_NAME ": token \"%.80s\" has no valid id", text);
    if (number >= b->model_vocab)
        return tn_fail(b->err, TERN_INPUT,
                       FILE_NAME ": token \"%.80s\" has id %lld, the model has %u", text,
                       (long long)number, b->model_vocab);
    *id = (uint32_t)number;
    return TERN_OK;
}

static tern_status check_length(const char *text, size_t limit, const struct build *b)
{
    size_t n = strlen(text);
    if (n == 0 || n > limit)
        return tn_fail(b->err, TERN_INPUT,
                       FILE_NAME ": token \"%.80s\" has %zu bytes, not 1 to %zu", text, n, limit);
    return TERN_OK;
}

static tern_status collect_vocab(struct build *b)
{
    const char *text;
    json_t *value;
    json_object_foreach((json_t *)b->vocab, text, value) {
        uint32_t id;
        tern_status status = read_id(value, text, b, &id);
        if (status == TERN_OK)
            status = check_length(text, TERN_MAX_TOKEN_BYTES, b);
        if (status != TERN_OK)
            return status;
        struct token *token = &b->tokens[id];
        if (token->text)
            return tn_fail(b->err, TERN_INPUT,
                           FILE_NAME ": id %u is both \"%.80s\" and \"%.80s\"", id, token->text,
                           text);
        token->text = text;
        token->in_vocab = 1;
    }
    return TERN_OK;
}

static tern_status added_flags(const json_t *item, const char *text, const struct build *b,
                               uint32_t *flags)
{
    static const char *const refused[] = {"single_word", "lstrip", "rstrip"};
    for (size_t i = 0; i < TN_COUNT_OF(refused); i++)
        if (json_is_true(json_object_get(item, refused[i])))
            return tn_fail(b->err, TERN_UNSUPPORTED,
                           FILE_NAME ": added token \"%.80s\" with %s is not supported", text,
                           refused[i]);
    *flags = TOKEN_ADDED;
    if (json_is_true(json_object_get(item, "special")))
        *flags |= TERN_ADDED_SPECIAL;
    if (json_is_true(json_object_get(item, "normalized")))
        *flags |= TERN_ADDED_NORMALIZED;
    return TERN_OK;
}

/* True when the text means the same bytes as it is and in the byte alphabet. */
static bool is_plain_in_alphabet(const char *text)
{
    for (; *text; text++)
        if (*text < 0x21 || *text > 0x7E)
            return false;
    return true;
}

static tern_status collect_added_token(struct build *b, const json_t *item)
{
    const char *text = json_string_value(json_object_get(item, "content"));
    if (!text)
        return tn_fail(b->err, TERN_INPUT, FILE_NAME ": an added token has no content");
    uint32_t id, flags = 0;
    tern_status status = read_id(json_object_get(item, "id"), text, b, &id);
    if (status == TERN_OK)
        status = check_length(text, TERN_MAX_ADDED_BYTES, b);
    if (status == TERN_OK)
        status = added_flags(item, text, b, &flags);
    if (status != TERN_OK)
        return status;
    struct token *token = &b->tokens[id];
    const json_t *vocab_id = json_object_get(b->vocab, text);
    if (token->added || (token->text && strcmp(token->text, text) != 0) ||
        (vocab_id && json_integer_value(vocab_id) != (json_int_t)id))
        return tn_fail(b->err, TERN_INPUT,
                       FILE_NAME ": added token \"%.80s\" has id %u, which the vocabulary uses "
                                 "otherwise",
                       text, id);
    if (token->in_vocab && !is_plain_in_alphabet(text))
        return tn_fail(b->err, TERN_UNSUPPORTED,
                       FILE_NAME ": added token \"%.80s\" that is also an entry of the vocabulary "
                                 "with other bytes is not supported",
                       text);
    token->text = text;
    token->added = flags;
    b->head->n_added++;
    return TERN_OK;
}

static tern_status collect_added(struct build *b, const json_t *added)
{
    if (added && !json_is_null(added) && !json_is_array(added))
        return tn_fail(b->err, TERN_INPUT, FILE_NAME ": added_tokens is not a list");
    for (size_t i = 0; i < json_array_size(added); i++) {
        tern_status status = collect_added_token(b, json_array_get(added, i));
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* n_tokens is one past the largest id; every smaller one must exist. */
static tern_status find_n_tokens(struct build *b)
{
    uint32_t n = b->model_vocab;
    while (n > 0 && !b->tokens[n - 1].text)
        n--;
    b->head->n_tokens = n;
    for (uint32_t id = 0; id < n; id++)
        if (!b->tokens[id].text)
            return tn_fail(b->err, TERN_INPUT,
                           FILE_NAME ": no token has id %u, but there are larger ids up to %u", id,
                           n - 1);
    return n > 0 ? TERN_OK : tn_fail(b->err, TERN_INPUT, FILE_NAME ": the vocabulary is empty");
}

/* ---- writing the tables ---- */

static tern_status out_of_memory(const struct build *b)
{
    return tn_fail(b->err, TERN_MEMORY, FILE_NAME ": not enough memory for the tables");
}

/* Appends a zeroed table of n bytes at a multiple of 8; NULL when memory is short.  The pointer is
 * valid until the next table. */
static void *add_table(struct build *b, struct tern_file_ref *ref, uint64_t n_bytes)
{
    struct tn_buf *section = b->section;
    size_t start = tn_align_up(section->n_bytes, 8), end = start + (size_t)n_bytes;
    if (n_bytes > UINT32_MAX - start || !tn_buf_reserve(section, end - section->n_bytes))
        return NULL;
    memset(section->data + section->n_bytes, 0, end - section->n_bytes);
    section->n_bytes = end;
    *ref = (struct tern_file_ref){(uint32_t)start, (uint32_t)n_bytes};
    return section->data + start;
}

/* A table inside the section that was added before. */
static void *table_at(const struct build *b, struct tern_file_ref ref)
{
    return b->section->data + ref.offset;
}

static const char *token_bytes(const struct build *b, uint32_t id, size_t *n_bytes)
{
    const uint32_t *offsets = table_at(b, b->head->token_offsets);
    *n_bytes = offsets[id + 1] - offsets[id];
    return (const char *)table_at(b, b->head->token_bytes) + offsets[id];
}

/* token_offsets and token_bytes. Entries with characters outside the byte alphabet can never come
 * out of merging; they stand for their UTF-8 bytes. */
static tern_status write_tokens(struct build *b)
{
    uint32_t n = b->head->n_tokens;
    uint64_t n_text = 0;
    for (uint32_t id = 0; id < n; id++)
        n_text += strlen(b->tokens[id].text);
    if (!add_table(b, &b->head->token_offsets, (uint64_t)(n + 1) * 4) ||
        !add_table(b, &b->head->token_bytes, n_text))
        return out_of_memory(b);
    uint32_t *offsets = table_at(b, b->head->token_offsets);
    char *bytes = table_at(b, b->head->token_bytes);
    uint32_t end = 0;
    for (uint32_t id = 0; id < n; id++) {
        struct token *token = &b->tokens[id];
        size_t n_bytes;
        if (!token->in_vocab || !alphabet_decode(token->text, bytes + end, &n_bytes)) {
            token->in_vocab = 0;
            n_bytes = strlen(token->text);
            memcpy(bytes + end, token->text, n_bytes);
        }
        end += (uint32_t)n_bytes;
        offsets[id + 1] = end;
    }
    b->section->n_bytes = b->head->token_bytes.offset + end;
    b->head->token_bytes.bytes = end;
    return TERN_OK;
}

/* Smallest power of two with at most two thirds in use, at least 2. */
static uint32_t slots_for(uint32_t n)
{
    uint32_t n_slots = 2;
    while ((uint64_t)n_slots * 2 < (uint64_t)n * 3)
        n_slots *= 2;
    return n_slots;
}

/* Only a vocabulary that was made for it fills a table so unevenly. */
static tern_status too_many_probes(const struct build *b, const char *what, uint32_t i)
{
    return tn_fail(b->err, TERN_UNSUPPORTED,
                   FILE_NAME ": %s %u collides with more than %u others", what, i,
                   TERN_MAX_PROBES);
}

/* A special token is left out: a user's text must never become one. */
static bool is_merge_token(const struct token *token)
{
    return token->in_vocab && !(token->added & TERN_ADDED_SPECIAL);
}

static tern_status write_vocab_slots(struct build *b)
{
    uint32_t n_slots = slots_for(b->head->n_tokens);
    uint32_t *slots = add_table(b, &b->head->vocab_slots, (uint64_t)n_slots * 4);
    if (!slots)
        return out_of_memory(b);
    for (uint32_t id = 0; id < b->head->n_tokens; id++) {
        if (!is_merge_token(&b->tokens[id]))
            continue;
        size_t n_bytes;
        const char *bytes = token_bytes(b, id, &n_bytes);
        uint32_t slot = (uint32_t)tn_token_hash(bytes, n_bytes) & (n_slots - 1), probes = 1;
        for (; slots[slot]; slot = (slot + 1) & (n_slots - 1))
            if (++probes > TERN_MAX_PROBES)
                return too_many_probes(b, "token", id);
        slots[slot] = id + 1;
    }
    return TERN_OK;
}

static tern_status write_byte_ids(struct build *b)
{
    uint32_t *ids = add_table(b, &b->head->byte_ids, 256 * 4);
    if (!ids)
        return out_of_memory(b);
    memset(ids, 0xFF, 256 * 4);
    for (uint32_t id = 0; id < b->head->n_tokens; id++) {
        size_t n_bytes;
        const char *bytes = token_bytes(b, id, &n_bytes);
        if (n_bytes == 1 && is_merge_token(&b->tokens[id]))
            ids[(unsigned char)bytes[0]] = id;
    }
    for (unsigned i = 0; i < 256; i++)
        if (ids[i] == TERN_NO_ID)
            return tn_fail(b->err, TERN_UNSUPPORTED,
                           FILE_NAME ": a vocabulary without a token for byte 0x%02X is not "
                                     "supported",
                           i);
    return TERN_OK;
}

/* ---- merges ---- */

/* The two parts of a merge, in one buffer: left NUL right NUL. */
static tern_status split_merge(const struct build *b, const json_t *item, char *parts,
                               size_t n_parts, size_t i, const char **right)
{
    const char *left = json_string_value(json_is_array(item) ? json_array_get(item, 0) : item);
    *right = json_is_array(item) ? json_string_value(json_array_get(item, 1)) : NULL;
    if (!json_is_array(item) && left) {
        const char *space = strchr(left, ' ');
        *right = space && !strchr(space + 1, ' ') ? space + 1 : NULL;
    }
    size_t n_left = left && *right ? (json_is_array(item) ? strlen(left)
                                                          : (size_t)(*right - left - 1))
                                   : 0;
    size_t n_right = *right ? strlen(*right) : 0;
    if (n_left == 0 || n_right == 0 || (json_is_array(item) && json_array_size(item) != 2) ||
        n_left + n_right + 2 > n_parts)
        return tn_fail(b->err, TERN_INPUT, FILE_NAME ": merge %zu is not a pair of tokens", i);
    memcpy(parts, left, n_left);
    parts[n_left] = '\0';
    memmove(parts + n_left + 1, *right, n_right + 1);
    *right = parts + n_left + 1;
    return TERN_OK;
}

static tern_status merge_token(const struct build *b, const char *text, size_t i, uint32_t *id)
{
    const json_t *value = json_object_get(b->vocab, text);
    if (!value)
        return tn_fail(b->err, TERN_INPUT,
                       FILE_NAME ": merge %zu needs the token \"%.80s\", which is not in the "
                                 "vocabulary",
                       i, text);
    *id = (uint32_t)json_integer_value(value);
    if (!is_merge_token(&b->tokens[*id]))
        return tn_fail(b->err, TERN_UNSUPPORTED,
                       FILE_NAME ": merge %zu with the special token \"%.80s\" is not supported",
                       i, text);
    return TERN_OK;
}

static tern_status read_merge(const struct build *b, const json_t *item, size_t i, char *parts,
                              size_t n_parts, struct tern_file_merge *merge)
{
    const char *right;
    tern_status status = split_merge(b, item, parts, n_parts, i, &right);
    if (status == TERN_OK)
        status = merge_token(b, parts, i, &merge->left);
    if (status == TERN_OK)
        status = merge_token(b, right, i, &merge->right);
    if (status != TERN_OK)
        return status;
    memmove((char *)right - 1, right, strlen(right) + 1);
    return merge_token(b, parts, i, &merge->merged);
}

static bool is_version_line(const json_t *item)
{
    const char *text = json_string_value(item);
    return text && strncmp(text, "#version", 8) == 0;
}

static tern_status write_merges(struct build *b, const json_t *merges)
{
    size_t n = json_array_size(merges);
    if (!json_is_array(merges) || n > TERN_MAX_VOCAB * 8u)
        return tn_fail(b->err, TERN_INPUT, FILE_NAME ": merges are missing or too many (%zu)", n);
    struct tern_file_merge *table =
        add_table(b, &b->head->merges, n * sizeof(struct tern_file_merge));
    size_t n_parts = 2 * TERN_MAX_TOKEN_BYTES + 2;
    char *parts = tn_alloc(n_parts);
    if (!table || !parts) {
        tn_free(parts);
        return out_of_memory(b);
    }
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < n; i++) {
        const json_t *item = json_array_get(merges, i);
        if (!is_version_line(item))
            status = read_merge(b, item, i, parts, n_parts, &table[b->head->n_merges++]);
    }
    tn_free(parts);
    b->head->merges.bytes = b->head->n_merges * (uint32_t)sizeof(struct tern_file_merge);
    b->section->n_bytes = b->head->merges.offset + b->head->merges.bytes;
    return status;
}

/* The later rank of a pair wins: it takes the slot of the earlier one. */
static tern_status write_merge_slots(struct build *b)
{
    uint32_t n = b->head->n_merges, n_slots = slots_for(n);
    uint32_t *slots = add_table(b, &b->head->merge_slots, (uint64_t)n_slots * 4);
    if (!slots)
        return out_of_memory(b);
    const struct tern_file_merge *merges = table_at(b, b->head->merges);
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t left = merges[rank].left, right = merges[rank].right;
        uint32_t slot = tn_bpe_slot(left, right, n_slots), probes = 1;
        for (; slots[slot]; slot = (slot + 1) & (n_slots - 1)) {
            const struct tern_file_merge *other = &merges[slots[slot] - 1];
            if (other->left == left && other->right == right)
                break;
            if (++probes > TERN_MAX_PROBES)
                return too_many_probes(b, "merge", rank);
        }
        slots[slot] = rank + 1;
    }
    return TERN_OK;
}

/* ---- added tokens ---- */

static int compare_added(const struct build *b, uint32_t x, uint32_t y)
{
    return strcmp(b->tokens[x].text, b->tokens[y].text);
}

/* Heap sort: the list may be long and hostile. */
static void sort_added(const struct build *b, struct tern_file_added *list, uint32_t n)
{
    for (uint32_t end = n, start = n / 2; end > 1;) {
        if (start > 0) {
            start--;
        } else {
            struct tern_file_added top = list[0];
            list[0] = list[--end];
            list[end] = top;
        }
        for (uint32_t i = start, child; (child = 2 * i + 1) < end; i = child) {
            if (child + 1 < end && compare_added(b, list[child].id, list[child + 1].id) < 0)
                child++;
            if (compare_added(b, list[i].id, list[child].id) >= 0)
                break;
            struct tern_file_added swap = list[i];
            list[i] = list[child];
            list[child] = swap;
        }
    }
}

static tern_status write_added(struct build *b)
{
    uint32_t n = b->head->n_tokens, n_added = 0;
    uint8_t *special = add_table(b, &b->head->special_bits, (n + 7) / 8);
    struct tern_file_added *list =
        special ? add_table(b, &b->head->added, b->head->n_added * sizeof *list) : NULL;
    if (!list)
        return out_of_memory(b);
    special = table_at(b, b->head->special_bits);
    for (uint32_t id = 0; id < n; id++) {
        uint32_t flags = b->tokens[id].added;
        if (flags)
            list[n_added++] = (struct tern_file_added){id, flags & ~TOKEN_ADDED};
        if (flags & TERN_ADDED_SPECIAL)
            special[id / 8] |= (uint8_t)(1u << id % 8);
    }
    sort_added(b, list, n_added);
    for (uint32_t i = 1; i < n_added; i++)
        if (compare_added(b, list[i - 1].id, list[i].id) == 0)
            return tn_fail(b->err, TERN_INPUT, FILE_NAME ": ids %u and %u are both \"%.80s\"",
                           list[i - 1].id, list[i].id, b->tokens[list[i].id].text);
    return TERN_OK;
}

static tern_status check_affixes(const struct build *b)
{
    const struct tern_file_tokenizer *head = b->head;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t prefix = i < head->n_prefix ? head->prefix_ids[i] : 0;
        uint32_t suffix = i < head->n_suffix ? head->suffix_ids[i] : 0;
        if (prefix >= head->n_tokens || suffix >= head->n_tokens)
            return tn_fail(b->err, TERN_INPUT,
                           FILE_NAME ": the post-processor adds id %u, but there are %u tokens",
                           TN_MAX(prefix, suffix), head->n_tokens);
    }
    return TERN_OK;
}

static tern_status build_section(struct build *b, const json_t *merges, const json_t *added)
{
    tern_status status = collect_vocab(b);
    if (status == TERN_OK)
        status = collect_added(b, added);
    if (status == TERN_OK)
        status = find_n_tokens(b);
    if (status == TERN_OK)
        status = check_affixes(b);
    if (status == TERN_OK)
        status = write_tokens(b);
    if (status == TERN_OK)
        status = write_vocab_slots(b);
    if (status == TERN_OK)
        status = write_byte_ids(b);
    if (status == TERN_OK)
        status = write_merges(b, merges);
    if (status == TERN_OK)
        status = write_merge_slots(b);
    if (status == TERN_OK)
        status = write_added(b);
    if (status == TERN_OK)
        memcpy(b->section->data, b->head, sizeof *b->head);
    return status;
}

tern_status tn_tok_build(struct tern_file_tokenizer *head, const json_t *vocab,
                         const json_t *merges, const json_t *added, uint32_t model_vocab,
                         struct tn_buf *section, struct tern_error *err)
{
    struct build b = {head, vocab, section, err, NULL, model_vocab};
    if (!json_is_object(vocab))
        return tn_fail(err, TERN_INPUT, FILE_NAME ": model.vocab is missing");
    struct tern_file_ref header;
    b.tokens = tn_alloc_zeroed(model_vocab, sizeof *b.tokens);
    tern_status status = b.tokens && add_table(&b, &header, sizeof *head)
                             ? build_section(&b, merges, added)
                             : out_of_memory(&b);
    tn_free(b.tokens);
    return status;
}

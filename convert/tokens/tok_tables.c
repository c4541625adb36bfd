/* SPDX-License-Identifier: MIT
 *
 * Writes the tables that the tokenizer uses directly from the mapped file, from the vocabulary and
 * the added tokens; tok_merges.c writes those of the merges.  Memory in addition to the section: 16
 * bytes per id of the model and 6 to 12 per token.
 */
#include "convert/tokens/tok_tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/tokens/tok_section.h"
#include "text/normalize.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

tern_status tn_tok_init(struct tn_tok_build *b, const char *source, uint32_t model_vocab,
                        struct tn_buf *section, struct tern_error *err)
{
    *b = (struct tn_tok_build){.source = source,
                               .section = section,
                               .err = err,
                               .model_vocab = model_vocab,
                               .head.unk_id = TERN_NO_ID};
    b->tokens = tn_alloc_zeroed(model_vocab, sizeof *b->tokens);
    b->scratch = tn_alloc(2 * TERN_MAX_TOKEN_BYTES);
    return b->tokens && b->scratch ? TERN_OK : tn_tok_no_memory(b);
}

void tn_tok_fini(struct tn_tok_build *b)
{
    tn_free(b->tokens);
    tn_free(b->lookup);
    tn_free(b->scratch);
}

/* ---- the byte alphabet ---- */

/* The byte that a character represents, or -1: printable Latin-1 represents itself, the other 68
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

/* Decodes text from the byte alphabet to out, which has room for n bytes; false if a character is
 * not in it. */
static bool alphabet_decode(const char *text, size_t n, char *out, size_t *n_out)
{
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

static tern_status check_entry(const struct tn_tok_build *b, const char *text, size_t n, int64_t id,
                               size_t limit)
{
    if (id < 0)
        return tn_fail(b->err, TERN_INPUT, "%s: token \"%.*s\" has no valid id", b->source,
                       tn_tok_shown(n), text);
    if (id >= b->model_vocab)
        return tn_fail(b->err, TERN_INPUT,
                       "%s: token \"%.*s\" has id %" PRId64 ", the model has %u", b->source,
                       tn_tok_shown(n), text, id, b->model_vocab);
    if (n == 0 || n > limit)
        return tn_fail(b->err, TERN_INPUT, "%s: token \"%.*s\" has %zu bytes, not 1 to %zu",
                       b->source, tn_tok_shown(n), text, n, limit);
    return TERN_OK;
}

static tern_status add_token(struct tn_tok_build *b, const char *text, size_t n, int64_t id,
                             uint32_t flags)
{
    struct tn_tok_token *token = &b->tokens[id];
    if (token->text)
        return tn_fail(b->err, TERN_INPUT, "%s: id %u is both \"%.*s\" and \"%.*s\"", b->source,
                       (uint32_t)id, tn_tok_shown(token->n_bytes), token->text, tn_tok_shown(n),
                       text);
    *token = (struct tn_tok_token){text, (uint32_t)n, flags};
    return TERN_OK;
}

tern_status tn_tok_add_vocab(struct tn_tok_build *b, const char *text, size_t n, int64_t id,
                             uint32_t flags)
{
    tern_status status = check_entry(b, text, n, id, TERN_MAX_TOKEN_BYTES);
    b->n_vocab++;
    return status == TERN_OK ? add_token(b, text, n, id, TN_TOK_IN_VOCAB | flags) : status;
}

tern_status tn_tok_add_unreachable(struct tn_tok_build *b, const char *text, size_t n, int64_t id)
{
    tern_status status = check_entry(b, n ? text : "?", n ? n : 1, id, TERN_MAX_TOKEN_BYTES);
    return status == TERN_OK ? add_token(b, n ? text : "", n, id, 0) : status;
}

static bool has_text(const struct tn_tok_token *token, const char *text, size_t n)
{
    return token->n_bytes == n && memcmp(token->text, text, n) == 0;
}

tern_status tn_tok_end_vocab(struct tn_tok_build *b)
{
    b->n_lookup = tn_tok_n_slots(b->n_vocab);
    b->lookup = tn_alloc_zeroed(b->n_lookup, sizeof *b->lookup);
    if (!b->lookup)
        return tn_tok_no_memory(b);
    for (uint32_t id = 0; id < b->model_vocab; id++) {
        const struct tn_tok_token *token = &b->tokens[id];
        if (!(token->flags & TN_TOK_IN_VOCAB))
            continue;
        uint32_t slot = (uint32_t)tn_token_hash(token->text, token->n_bytes) & (b->n_lookup - 1);
        uint32_t probes = 1;
        for (; b->lookup[slot]; slot = (slot + 1) & (b->n_lookup - 1)) {
            uint32_t other = b->lookup[slot] - 1;
            if (has_text(&b->tokens[other], token->text, token->n_bytes))
                return tn_fail(b->err, TERN_INPUT, "%s: ids %u and %u are both \"%.*s\"", b->source,
                               other, id, tn_tok_shown(token->n_bytes), token->text);
            if (++probes > TERN_MAX_PROBES)
                return tn_tok_too_many_probes(b, "token", id);
        }
        b->lookup[slot] = id + 1;
    }
    return TERN_OK;
}

uint32_t tn_tok_lookup(const struct tn_tok_build *b, const char *text, size_t n)
{
    uint32_t slot = (uint32_t)tn_token_hash(text, n) & (b->n_lookup - 1);
    for (; b->lookup[slot]; slot = (slot + 1) & (b->n_lookup - 1))
        if (has_text(&b->tokens[b->lookup[slot] - 1], text, n))
            return b->lookup[slot] - 1;
    return TERN_NO_ID;
}

/* True if the text has the same bytes verbatim and decoded from the byte alphabet. */
static bool is_plain_in_alphabet(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] < 0x21 || text[i] > 0x7E)
            return false;
    return true;
}

tern_status tn_tok_add_added(struct tn_tok_build *b, const char *text, size_t n, int64_t id,
                             uint32_t flags)
{
    tern_status status = check_entry(b, text, n, id, TERN_MAX_ADDED_BYTES);
    if (status != TERN_OK)
        return status;
    struct tn_tok_token *token = &b->tokens[id];
    uint32_t vocab_id = tn_tok_lookup(b, text, n);
    if (token->flags & TN_TOK_ADDED || (token->text && !has_text(token, text, n)) ||
        (vocab_id != TERN_NO_ID && vocab_id != id))
        return tn_fail(b->err, TERN_INPUT,
                       "%s: added token \"%.*s\" has id %u, which the vocabulary uses otherwise",
                       b->source, tn_tok_shown(n), text, (uint32_t)id);
    if (b->head.kind == TERN_TOKENIZER_BYTE_BPE && token->flags & TN_TOK_IN_VOCAB &&
        !is_plain_in_alphabet(text, n))
        return tn_fail(b->err, TERN_UNSUPPORTED,
                       "%s: added token \"%.*s\" that is also an entry of the vocabulary with "
                       "other bytes is not supported",
                       b->source, tn_tok_shown(n), text);
    token->text = text;
    token->n_bytes = (uint32_t)n;
    token->flags |= flags | TN_TOK_ADDED;
    b->head.n_added++;
    return TERN_OK;
}

/* n_tokens is one past the largest id; every smaller one must exist. */
static tern_status find_n_tokens(struct tn_tok_build *b)
{
    uint32_t n = b->model_vocab;
    while (n > 0 && !b->tokens[n - 1].text)
        n--;
    b->head.n_tokens = n;
    for (uint32_t id = 0; id < n; id++)
        if (!b->tokens[id].text)
            return tn_fail(b->err, TERN_INPUT,
                           "%s: no token has id %u, but there are larger ids up to %u", b->source,
                           id, n - 1);
    return n > 0 ? TERN_OK
                 : tn_fail(b->err, TERN_INPUT, "%s: the vocabulary is empty", b->source);
}

static tern_status check_affixes(const struct tn_tok_build *b)
{
    const struct tern_file_tokenizer *head = &b->head;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t prefix = i < head->n_prefix ? head->prefix_ids[i] : 0;
        uint32_t suffix = i < head->n_suffix ? head->suffix_ids[i] : 0;
        if (prefix >= head->n_tokens || suffix >= head->n_tokens)
            return tn_fail(b->err, TERN_INPUT,
                           "%s: the post-processor adds id %u, but there are %u tokens", b->source,
                           TN_MAX(prefix, suffix), head->n_tokens);
    }
    return TERN_OK;
}

/* ---- writing the tables ---- */

static const char *token_bytes(const struct tn_tok_build *b, uint32_t id, size_t *n_bytes)
{
    const uint32_t *offsets = tn_tok_table_at(b, b->head.token_offsets);
    *n_bytes = offsets[id + 1] - offsets[id];
    return (const char *)tn_tok_table_at(b, b->head.token_bytes) + offsets[id];
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int tn_tok_byte_of_text(const char *text, size_t n)
{
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int high = hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static size_t copy_text(const struct tn_tok_token *token, char *out)
{
    memcpy(out, token->text, token->n_bytes);
    return token->n_bytes;
}

/* With marks a space is U+2581: no text produces an entry with a real space. */
static size_t write_marked(struct tn_tok_token *token, char *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < token->n_bytes; n++) {
        bool mark = token->n_bytes - i >= TN_SPACE_MARK_BYTES &&
                    memcmp(token->text + i, TN_SPACE_MARK, TN_SPACE_MARK_BYTES) == 0;
        if (token->text[i] == ' ')
            token->flags &= ~TN_TOK_IN_VOCAB;
        out[n] = mark ? ' ' : token->text[i];
        i += mark ? TN_SPACE_MARK_BYTES : 1;
    }
    return n;
}

/* Writes the text of a token and returns its length.  Merging never produces entries with
 * characters outside the byte alphabet; their text is their UTF-8 bytes. */
static size_t write_token(const struct tn_tok_build *b, struct tn_tok_token *token, char *out)
{
    size_t n;
    if (token->flags & TN_TOK_BYTE) {
        out[0] = (char)tn_tok_byte_of_text(token->text, token->n_bytes);
        return 1;
    }
    if (b->head.flags & TERN_TOK_SPACE_MARKS)
        return write_marked(token, out);
    if (b->head.kind == TERN_TOKENIZER_CHAR_BPE || !(token->flags & TN_TOK_IN_VOCAB))
        return copy_text(token, out);
    if (alphabet_decode(token->text, token->n_bytes, out, &n))
        return n;
    token->flags &= ~TN_TOK_IN_VOCAB;
    return copy_text(token, out);
}

static tern_status write_tokens(struct tn_tok_build *b)
{
    uint32_t n = b->head.n_tokens;
    uint64_t n_text = 0;
    for (uint32_t id = 0; id < n; id++)
        n_text += b->tokens[id].n_bytes;
    if (!tn_tok_add_table(b, &b->head.token_offsets, (uint64_t)(n + 1) * 4) ||
        !tn_tok_add_table(b, &b->head.token_bytes, n_text))
        return tn_tok_no_memory(b);
    uint32_t *offsets = tn_tok_table_at(b, b->head.token_offsets);
    char *bytes = tn_tok_table_at(b, b->head.token_bytes);
    uint32_t end = 0;
    for (uint32_t id = 0; id < n; id++) {
        end += (uint32_t)write_token(b, &b->tokens[id], bytes + end);
        offsets[id + 1] = end;
    }
    tn_tok_shorten_table(b, &b->head.token_bytes, end);
    return TERN_OK;
}

static tern_status write_vocab_slots(struct tn_tok_build *b)
{
    uint32_t n_slots = tn_tok_n_slots(b->head.n_tokens);
    uint32_t *slots = tn_tok_add_table(b, &b->head.vocab_slots, (uint64_t)n_slots * 4);
    if (!slots)
        return tn_tok_no_memory(b);
    for (uint32_t id = 0; id < b->head.n_tokens; id++) {
        if (!tn_tok_is_merged(&b->tokens[id]) || b->tokens[id].flags & TN_TOK_BYTE)
            continue;
        size_t n_bytes;
        const char *bytes = token_bytes(b, id, &n_bytes);
        uint32_t slot = (uint32_t)tn_token_hash(bytes, n_bytes) & (n_slots - 1), probes = 1;
        for (; slots[slot]; slot = (slot + 1) & (n_slots - 1))
            if (++probes > TERN_MAX_PROBES)
                return tn_tok_too_many_probes(b, "token", id);
        slots[slot] = id + 1;
    }
    return TERN_OK;
}

/* The ids of single bytes, or of the byte tokens. */
static tern_status write_byte_ids(struct tn_tok_build *b)
{
    uint32_t *ids = tn_tok_add_table(b, &b->head.byte_ids, 256 * 4);
    uint32_t wanted = b->head.kind == TERN_TOKENIZER_CHAR_BPE ? TN_TOK_BYTE : TN_TOK_IN_VOCAB;
    if (!ids)
        return tn_tok_no_memory(b);
    memset(ids, 0xFF, 256 * 4);
    for (uint32_t id = 0; id < b->head.n_tokens; id++) {
        size_t n_bytes;
        const char *bytes = token_bytes(b, id, &n_bytes);
        if (n_bytes == 1 && tn_tok_is_merged(&b->tokens[id]) && b->tokens[id].flags & wanted)
            ids[(unsigned char)bytes[0]] = id;
    }
    return TERN_OK;
}

/* True if every character becomes a symbol: none is dropped, so that its neighbours never become
 * adjacent. */
static bool has_symbol_for_all(const struct tn_tok_build *b)
{
    const uint32_t *ids = tn_tok_table_at(b, b->head.byte_ids);
    for (unsigned i = 0; b->head.unk_id == TERN_NO_ID && i < 256; i++)
        if (ids[i] == TERN_NO_ID)
            return false;
    return true;
}

/* True if no entry contains a space after another character: then merging never crosses that
 * boundary, and a text may be split there. */
static bool is_cut_before_spaces(const struct tn_tok_build *b)
{
    bool has_space = false;
    if (!has_symbol_for_all(b))
        return false;
    for (uint32_t id = 0; id < b->head.n_tokens; id++) {
        size_t n_bytes;
        const char *bytes = token_bytes(b, id, &n_bytes);
        if (!tn_tok_is_merged(&b->tokens[id]))
            continue;
        has_space |= n_bytes == 1 && bytes[0] == ' ' && !(b->tokens[id].flags & TN_TOK_BYTE);
        for (size_t i = 1; i < n_bytes; i++)
            if (bytes[i] == ' ' && bytes[i - 1] != ' ')
                return false;
    }
    return has_space;
}

/* ---- added tokens ---- */

struct added_list {
    struct tern_file_added *items;
    const char *text;
};

static int compare_added(const struct added_list *list, uint32_t x, uint32_t y)
{
    struct tern_file_ref a = list->items[x].text, b = list->items[y].text;
    int order = memcmp(list->text + a.offset, list->text + b.offset, TN_MIN(a.bytes, b.bytes));
    return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static void swap_added(const struct added_list *list, uint32_t x, uint32_t y)
{
    struct tern_file_added item = list->items[x];
    list->items[x] = list->items[y];
    list->items[y] = item;
}

/* Heap sort: the list may be long and hostile. */
static void sort_added(const struct added_list *list, uint32_t n)
{
    for (uint32_t end = n, start = n / 2; end > 1;) {
        if (start > 0)
            start--;
        else
            swap_added(list, 0, --end);
        for (uint32_t i = start, child; (child = 2 * i + 1) < end; i = child) {
            if (child + 1 < end && compare_added(list, child, child + 1) < 0)
                child++;
            if (compare_added(list, i, child) >= 0)
                break;
            swap_added(list, i, child);
        }
    }
}

/* Appends the text to match. */
static tern_status write_added_text(struct tn_tok_build *b, const struct tn_tok_token *token,
                                    struct tn_normalize_room *room, struct tn_buf *texts,
                                    struct tern_file_ref *ref)
{
    const char *text = token->text;
    size_t n = token->n_bytes;
    const uint32_t flags = b->head.flags & ~(b->adds_verbatim ? TERN_TOK_PREPEND : 0u);
    if (token->flags & TERN_ADDED_NORMALIZED && !tn_normalize(room, flags, &text, &n))
        return tn_tok_no_memory(b);
    if (n > TERN_MAX_ADDED_BYTES)
        return tn_fail(b->err, TERN_INPUT,
                       "%s: added token \"%.*s\" has %zu bytes when normalised, at most %u",
                       b->source, tn_tok_shown(token->n_bytes), token->text, n,
                       TERN_MAX_ADDED_BYTES);
    if (texts->n_bytes + n > UINT32_MAX || !tn_buf_append(texts, text, n))
        return tn_tok_no_memory(b);
    *ref = (struct tern_file_ref){(uint32_t)(texts->n_bytes - n), (uint32_t)n};
    return TERN_OK;
}

static tern_status write_added_list(struct tn_tok_build *b, struct tn_buf *texts)
{
    struct tn_normalize_room room = {0};
    struct tern_file_added *items = tn_tok_table_at(b, b->head.added);
    uint32_t n_added = 0;
    tern_status status = TERN_OK;
    for (uint32_t id = 0; status == TERN_OK && id < b->head.n_tokens; id++) {
        const struct tn_tok_token *token = &b->tokens[id];
        if (!(token->flags & TN_TOK_ADDED))
            continue;
        items[n_added].id = id;
        items[n_added].flags = token->flags & ~(TN_TOK_ADDED | TN_TOK_IN_VOCAB | TN_TOK_BYTE);
        status = write_added_text(b, token, &room, texts, &items[n_added++].text);
    }
    tn_normalize_room_fini(&room);
    if (status != TERN_OK)
        return status;
    struct added_list list = {items, texts->data};
    sort_added(&list, n_added);
    for (uint32_t i = 1; i < n_added; i++)
        if (compare_added(&list, i - 1, i) == 0)
            return tn_fail(b->err, TERN_INPUT, "%s: ids %u and %u are both \"%.*s\"", b->source,
                           items[i - 1].id, items[i].id, tn_tok_shown(items[i].text.bytes),
                           list.text + items[i].text.offset);
    void *table = tn_tok_add_table(b, &b->head.added_text, texts->n_bytes);
    if (!table)
        return tn_tok_no_memory(b);
    if (texts->n_bytes)
        memcpy(table, texts->data, texts->n_bytes);
    return TERN_OK;
}

static tern_status write_added(struct tn_tok_build *b)
{
    uint32_t n = b->head.n_tokens;
    uint8_t *special = tn_tok_add_table(b, &b->head.special_bits, (n + 7) / 8);
    for (uint32_t id = 0; special && id < n; id++)
        if (b->tokens[id].flags & TERN_ADDED_SPECIAL)
            special[id / 8] |= (uint8_t)(1u << id % 8);
    struct tn_buf texts = {0};
    if (!special ||
        !tn_tok_add_table(b, &b->head.added,
                          (uint64_t)b->head.n_added * sizeof(struct tern_file_added)))
        return tn_tok_no_memory(b);
    tern_status status = write_added_list(b, &texts);
    tn_buf_fini(&texts);
    return status;
}

tern_status tn_tok_end_tokens(struct tn_tok_build *b)
{
    struct tern_file_ref header;
    tern_status status = find_n_tokens(b);
    if (status == TERN_OK)
        status = check_affixes(b);
    if (status == TERN_OK && !tn_tok_add_table(b, &header, sizeof b->head))
        status = tn_tok_no_memory(b);
    if (status == TERN_OK)
        status = write_tokens(b);
    if (status == TERN_OK)
        status = write_vocab_slots(b);
    if (status == TERN_OK)
        status = write_byte_ids(b);
    if (status == TERN_OK)
        status = write_added(b);
    if (status == TERN_OK && b->head.splitter == TERN_SPLIT_NONE &&
        b->head.flags & TERN_TOK_SPACE_MARKS && !(b->head.flags & TERN_TOK_IGNORE_MERGES) &&
        is_cut_before_spaces(b))
        b->head.splitter = TERN_SPLIT_SPACE_RUN;
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * BPE tokenizer over the tables of a mapped model file: opening and lookups.  encode.c converts
 * text to ids, decoder.c ids to text.
 *
 * Opening checks every size and offset once and copies the small tables: the header, the ids of the
 * bytes, the added tokens.  Values in the large tables (offsets, ids, ranks, slots) are loaded once
 * and checked at use, because another process may write to the file (file/model_file.h).
 */
#include "text/tokenizer_view.h"

#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"

uint64_t tn_token_hash(const void *bytes, size_t n_bytes)
{
    return XXH3_64bits(bytes, n_bytes);
}

/* ---- opening ---- */

struct section {
    const char *base;
    size_t n_bytes;
    struct tern_error *err;
    tern_status status;
};

/* The table that `ref` describes, of exactly n_items items; NULL: the status is set. */
static const void *section_table(struct section *s, struct tern_file_ref ref, const char *name,
                                 uint64_t n_items, uint64_t item_bytes)
{
    if (s->status != TERN_OK)
        return NULL;
    if (!tn_range_fits(ref.offset, ref.bytes, s->n_bytes) || ref.offset % 8 != 0 ||
        ref.bytes != n_items * item_bytes) {
        s->status = tn_fail(s->err, TERN_INPUT,
                            "tokenizer: table %s at %u has %u bytes, expected %" PRIu64
                            " inside a section of %zu",
                            name, ref.offset, ref.bytes, n_items * item_bytes, s->n_bytes);
        return NULL;
    }
    return s->base + ref.offset;
}

/* A table of 2^k u32 slots. */
static const uint32_t *section_slots(struct section *s, struct tern_file_ref ref, const char *name,
                                     uint32_t *n_slots)
{
    *n_slots = ref.bytes / 4;
    if (s->status == TERN_OK && (*n_slots == 0 || (*n_slots & (*n_slots - 1)) != 0))
        s->status = tn_fail(s->err, TERN_INPUT,
                            "tokenizer: table %s has %u slots, which is not a power of two", name,
                            *n_slots);
    return section_table(s, ref, name, *n_slots, 4);
}

/* The flags that a tokenizer of this kind may have. */
static uint32_t flags_of_kind(uint32_t kind)
{
    uint32_t flags = TERN_TOK_IGNORE_MERGES | TERN_TOK_NFC | TERN_TOK_FUSE_UNK;
    if (kind == TERN_TOKENIZER_CHAR_BPE)
        flags |= TERN_TOK_SPACE_MARKS | TERN_TOK_PREPEND | TERN_TOK_META | TERN_TOK_META_FIRST |
                 TERN_TOK_META_ALWAYS | TERN_TOK_STRIP;
    return flags;
}

static tern_status check_head(const struct tern_file_tokenizer *head, uint32_t vocab,
                              struct tern_error *err)
{
    if (head->kind != TERN_TOKENIZER_BYTE_BPE && head->kind != TERN_TOKENIZER_CHAR_BPE)
        return tn_fail(err, TERN_UNSUPPORTED, "tokenizer kind %u is not supported", head->kind);
    if (!tn_splitter_find(head->splitter))
        return tn_fail(err, TERN_UNSUPPORTED, "tokenizer splitter %u is not supported",
                       head->splitter);
    if (head->flags & ~flags_of_kind(head->kind))
        return tn_fail(err, TERN_UNSUPPORTED, "tokenizer flags 0x%x are not supported",
                       head->flags);
    if (!tn_all_zero(head->reserved, sizeof head->reserved))
        return tn_fail(err, TERN_UNSUPPORTED,
                       "tokenizer: reserved bytes are not zero: the file needs a newer tern than "
                       "this one");
    if (head->n_tokens == 0 || head->n_tokens > vocab)
        return tn_fail(err, TERN_INPUT, "tokenizer has %u tokens, the model has %u", head->n_tokens,
                       vocab);
    if (head->n_prefix > TN_COUNT_OF(head->prefix_ids) ||
        head->n_suffix > TN_COUNT_OF(head->suffix_ids))
        return tn_fail(err, TERN_INPUT, "tokenizer adds %u and %u ids, at most 4 are possible",
                       head->n_prefix, head->n_suffix);
    for (size_t i = 0; i < TN_COUNT_OF(head->fim_ids); i++)
        if (head->fim_ids[i] > head->n_tokens)
            return tn_fail(err, TERN_INPUT, "tokenizer: fim id %zu is %u, there are %u tokens", i,
                           head->fim_ids[i] - 1, head->n_tokens);
    return TERN_OK;
}

static tern_status check_ids(const uint32_t *ids, uint32_t n, uint32_t n_tokens, bool or_none,
                             const char *what, struct tern_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] >= n_tokens && !(or_none && ids[i] == TERN_NO_ID))
            return tn_fail(err, TERN_INPUT, "tokenizer: %s %u has id %u of %u", what, i, ids[i],
                           n_tokens);
    return TERN_OK;
}

static tern_status check_offsets(struct tern_tokenizer *t, struct tern_error *err)
{
    const uint32_t n = t->head->n_tokens;
    uint32_t begin = tn_load_once_u32(&t->token_offsets[0]), end = begin;
    for (uint32_t i = 0; i < n; i++, begin = end) {
        end = tn_load_once_u32(&t->token_offsets[i + 1]);
        if (end < begin)
            return tn_fail(err, TERN_INPUT, "tokenizer: token %u has a negative length", i);
        t->longest = TN_MAX(t->longest, end - begin);
    }
    if (end > t->head->token_bytes.bytes)
        return tn_fail(err, TERN_INPUT, "tokenizer: tokens end at %u of %u bytes", end,
                       t->head->token_bytes.bytes);
    return TERN_OK;
}

static int compare_bytes(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int order = memcmp(a, b, TN_MIN(n_a, n_b));
    return order ? order : (n_a > n_b) - (n_a < n_b);
}

/* Records the first two bytes of an added token; after a one-byte token any second byte may follow.
 */
static void note_added_start(struct tern_tokenizer *t, const unsigned char *bytes, size_t n_bytes)
{
    uint64_t *row = t->added_starts + bytes[0] * (size_t)4;
    if (n_bytes == 1)
        memset(row, 0xFF, 4 * sizeof *row);
    else
        row[bytes[1] / 64] |= 1ull << bytes[1] % 64;
}

/* The text of an added token that was checked. */
static const char *added_text(const struct tern_tokenizer *t, uint32_t index, size_t *n_bytes)
{
    *n_bytes = t->added[index].text.bytes;
    return t->added_text + t->added[index].text.offset;
}

/* The search relies on ascending order, and on ids and lengths in range. */
static tern_status check_added(struct tern_tokenizer *t, struct tern_error *err)
{
    const uint32_t known = TERN_ADDED_SPECIAL | TERN_ADDED_LSTRIP | TERN_ADDED_RSTRIP |
                           TERN_ADDED_SINGLE_WORD | TERN_ADDED_NORMALIZED;
    const char *previous = NULL;
    size_t n_previous = 0;
    for (uint32_t i = 0; i < t->head->n_added; i++) {
        const struct tern_file_added *added = &t->added[i];
        if (added->id >= t->head->n_tokens)
            return tn_fail(err, TERN_INPUT, "tokenizer: added token %u has id %u of %u", i,
                           added->id, t->head->n_tokens);
        if (added->flags & ~known)
            return tn_fail(err, TERN_UNSUPPORTED,
                           "tokenizer: added token %u has flags 0x%x, not supported", i,
                           added->flags);
        if (added->text.bytes == 0 || added->text.bytes > TERN_MAX_ADDED_BYTES ||
            !tn_range_fits(added->text.offset, added->text.bytes, t->head->added_text.bytes))
            return tn_fail(err, TERN_INPUT,
                           "tokenizer: added token %u has %u bytes at %u, not 1 to %u inside %u", i,
                           added->text.bytes, added->text.offset, TERN_MAX_ADDED_BYTES,
                           t->head->added_text.bytes);
        size_t n_bytes;
        const char *bytes = added_text(t, i, &n_bytes);
        if (previous && compare_bytes(previous, n_previous, bytes, n_bytes) >= 0)
            return tn_fail(err, TERN_INPUT, "tokenizer: added token %u is out of order", i);
        previous = bytes;
        n_previous = n_bytes;
        note_added_start(t, (const unsigned char *)bytes, n_bytes);
    }
    return TERN_OK;
}

/* Copies the tables whose values are used unchecked. */
static tern_status copy_small(struct tern_tokenizer *t, const uint32_t *byte_ids,
                              const struct tern_file_added *added, struct tern_error *err)
{
    t->own_added = tn_alloc_zeroed(t->head->n_added, sizeof *added);
    if (!t->own_added)
        return tn_fail(err, TERN_MEMORY, "tokenizer: no memory for %u added tokens",
                       t->head->n_added);
    if (t->head->n_added)
        memcpy(t->own_added, added, t->head->n_added * sizeof *added);
    memcpy(t->byte_ids, byte_ids, sizeof t->byte_ids);
    t->added = t->own_added;
    return TERN_OK;
}

static tern_status bind_tables(struct tern_tokenizer *t, struct section *s)
{
    const struct tern_file_tokenizer *head = t->head;
    uint64_t n = head->n_tokens;
    t->token_offsets = section_table(s, head->token_offsets, "token_offsets", n + 1, 4);
    t->token_bytes = section_table(s, head->token_bytes, "token_bytes", head->token_bytes.bytes, 1);
    t->vocab_slots = section_slots(s, head->vocab_slots, "vocab_slots", &t->n_vocab_slots);
    t->bpe.merges = section_table(s, head->merges, "merges", head->n_merges,
                                  sizeof(struct tern_file_merge));
    t->bpe.slots = section_slots(s, head->merge_slots, "merge_slots", &t->bpe.n_slots);
    const uint32_t *byte_ids = section_table(s, head->byte_ids, "byte_ids", 256, 4);
    const struct tern_file_added *added =
        section_table(s, head->added, "added", head->n_added, sizeof *added);
    t->added_text = section_table(s, head->added_text, "added_text", head->added_text.bytes, 1);
    t->special_bits = section_table(s, head->special_bits, "special_bits", (n + 7) / 8, 1);
    t->bpe.n_merges = head->n_merges;
    t->bpe.n_tokens = head->n_tokens;
    t->splitter = tn_splitter_find(head->splitter);
    return s->status == TERN_OK ? copy_small(t, byte_ids, added, s->err) : s->status;
}

static tern_status open_tables(struct tern_tokenizer *t, struct section *s, uint32_t vocab)
{
    uint32_t n = t->head->n_tokens;
    tern_status status = check_head(t->head, vocab, s->err);
    if (status == TERN_OK)
        status = bind_tables(t, s);
    if (status == TERN_OK)
        status = check_offsets(t, s->err);
    if (status == TERN_OK)
        status = check_ids(t->byte_ids, 256, n, true, "byte", s->err);
    if (status == TERN_OK)
        status = check_ids(&t->head->unk_id, 1, n, true, "unknown symbol", s->err);
    if (status == TERN_OK)
        status = check_ids(t->head->prefix_ids, t->head->n_prefix, n, false, "prefix", s->err);
    if (status == TERN_OK)
        status = check_ids(t->head->suffix_ids, t->head->n_suffix, n, false, "suffix", s->err);
    if (status == TERN_OK)
        status = check_added(t, s->err);
    for (uint32_t c = 0; status == TERN_OK && c < TN_COUNT_OF(t->ascii_ids); c++)
        t->ascii_ids[c] = tn_vocab_find(t, &(char){(char)c}, 1);
    return status;
}

tern_status tn_tokenizer_open(struct tern_tokenizer **out, const void *section, size_t n_bytes,
                              uint32_t vocab, struct tern_error *err)
{
    *out = NULL;
    if (n_bytes < sizeof(struct tern_file_tokenizer) || (uintptr_t)section % 8 != 0)
        return tn_fail(err, TERN_INPUT, "tokenizer section of %zu bytes is too short or unaligned",
                       n_bytes);
    struct tern_tokenizer *t = tn_alloc_zeroed(1, sizeof *t);
    if (!t)
        return tn_fail(err, TERN_MEMORY, "tokenizer: not enough memory");
    memcpy(&t->head_copy, section, sizeof t->head_copy);
    t->head = &t->head_copy;
    struct section s = {section, n_bytes, err, TERN_OK};
    tern_status status = open_tables(t, &s, vocab);
    if (status != TERN_OK) {
        tn_tokenizer_close(t);
        return status;
    }
    *out = t;
    return TERN_OK;
}

void tn_tokenizer_close(struct tern_tokenizer *tokenizer)
{
    if (tokenizer)
        tn_free(tokenizer->own_added);
    tn_free(tokenizer);
}

/* ---- lookups ---- */

/* Does every byte of a text end up in a token?  Not if bytes can be unknown or a token strips white
 * space. */
static bool keeps_bytes(const struct tern_tokenizer *t)
{
    for (size_t i = 0; i < TN_COUNT_OF(t->byte_ids); i++)
        if (t->byte_ids[i] == TERN_NO_ID)
            return false;
    for (uint32_t i = 0; i < t->head->n_added; i++)
        if (t->added[i].flags & (TERN_ADDED_LSTRIP | TERN_ADDED_RSTRIP))
            return false;
    return true;
}

/* NFC keeps at least a third of the bytes; a space has one byte of a mark's three. */
#define MAX_SHRINKING 3u

size_t tern_tokenizer_min_ids(const struct tern_tokenizer *t, size_t n_bytes)
{
    const bool shrinks = t->head->flags & (TERN_TOK_NFC | TERN_TOK_SPACE_MARKS);
    const size_t longest = TN_MAX(t->longest, 1u);
    if (!keeps_bytes(t))
        return 0;
    return n_bytes / (shrinks ? MAX_SHRINKING : 1) / longest;
}

size_t tn_tokenizer_longest(const struct tern_tokenizer *tokenizer)
{
    return tokenizer->longest;
}

uint32_t tern_tokenizer_n_tokens(const struct tern_tokenizer *tokenizer)
{
    return tokenizer->head->n_tokens;
}

const char *tern_tokenizer_token_bytes(const struct tern_tokenizer *tokenizer, uint32_t id,
                                       size_t *n_bytes)
{
    *n_bytes = 0;
    return id < tokenizer->head->n_tokens ? tn_token_at(tokenizer, id, n_bytes) : NULL;
}

bool tern_tokenizer_is_special(const struct tern_tokenizer *tokenizer, uint32_t id)
{
    return id < tokenizer->head->n_tokens && (tokenizer->special_bits[id / 8] >> id % 8 & 1);
}

const uint32_t *tn_tokenizer_prefix(const struct tern_tokenizer *tokenizer, uint32_t *n_ids)
{
    *n_ids = tokenizer->head->n_prefix;
    return tokenizer->head->prefix_ids;
}

const uint32_t *tn_tokenizer_fim_ids(const struct tern_tokenizer *tokenizer)
{
    return tokenizer->head->fim_ids;
}

uint32_t tn_vocab_find(const struct tern_tokenizer *t, const char *bytes, size_t n)
{
    uint32_t mask = t->n_vocab_slots - 1;
    uint32_t slot = (uint32_t)tn_token_hash(bytes, n) & mask;
    for (uint32_t probes = 0; probes < TERN_MAX_PROBES; probes++) {
        uint32_t id = tn_load_once_u32(&t->vocab_slots[slot]) - 1;
        if (id >= t->head->n_tokens) /* empty slot, or a damaged file */
            return TERN_NO_ID;
        size_t n_token;
        const char *token = tn_token_at(t, id, &n_token);
        if (n_token == n && memcmp(token, bytes, n) == 0)
            return id;
        slot = (slot + 1) & mask;
    }
    return TERN_NO_ID;
}

/* Byte `depth` of the added token at `index`; -1: past its end. */
static int added_byte(const struct tern_tokenizer *t, uint32_t index, size_t depth)
{
    size_t n_bytes;
    const char *bytes = added_text(t, index, &n_bytes);
    return depth < n_bytes ? (unsigned char)bytes[depth] : -1;
}

/* Lower bound of `byte` at `depth` among the tokens [low, high), which share the bytes before. */
static uint32_t added_bound(const struct tern_tokenizer *t, uint32_t low, uint32_t high,
                            size_t depth, int byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (added_byte(t, middle, depth) < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Descends the sorted list byte by byte, like a trie. */
const struct tern_file_added *tn_added_match(const struct tern_tokenizer *t, const char *text,
                                             size_t n, uint32_t normalized, size_t *n_bytes)
{
    const struct tern_file_added *best = NULL;
    uint32_t low = 0, high = t->head->n_added;
    for (size_t depth = 0; depth < n && low < high; depth++) {
        int byte = (unsigned char)text[depth];
        low = added_bound(t, low, high, depth, byte);
        high = added_bound(t, low, high, depth, byte + 1);
        if (low < high && added_byte(t, low, depth + 1) < 0 &&
            (t->added[low].flags & TERN_ADDED_NORMALIZED) == normalized) {
            best = &t->added[low];
            *n_bytes = depth + 1;
        }
    }
    return best;
}

/* tn_added_match compares normalised text; this compares the tokens themselves. */
uint32_t tern_tokenizer_find(const struct tern_tokenizer *tokenizer, const char *text,
                             size_t n_bytes)
{
    for (uint32_t i = 0; i < tokenizer->head->n_added; i++) {
        size_t n;
        const char *bytes = tn_token_at(tokenizer, tokenizer->added[i].id, &n);
        if (n == n_bytes && memcmp(bytes, text, n) == 0)
            return tokenizer->added[i].id;
    }
    return tn_vocab_find(tokenizer, text, n_bytes);
}

bool tern_tokenizer_adds_space(const struct tern_tokenizer *tokenizer)
{
    return (tokenizer->head->flags & TERN_TOK_STRIP) != 0;
}

/* SPDX-License-Identifier: MIT
 *
 * Byte-level BPE tokenizer on the tables of a mapped model file.
 *
 *   text --- added tokens -----> stretches of plain text --- splitter ---> pieces --- BPE ---> ids
 *             (leftmost-longest; first those without,
 *              then those with the flag "normalized")
 *
 * Opening checks every size and offset once; what is read out of the tables
 * later (ids, ranks, slots) is checked where it is used.
 */
#include "text/tokenizer.h"

#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/log.h"
#include "tern/model_format.h"
#include "text/bpe.h"
#include "text/pretok.h"

struct tern_tokenizer {
    const struct tern_file_tokenizer *head;
    const uint32_t *token_offsets;
    const char *token_bytes;
    const uint32_t *vocab_slots;
    uint32_t n_vocab_slots;
    const struct tern_file_added *added;
    const uint8_t *special_bits;
    tn_split_fn split;
    struct tn_bpe_tables bpe;
    uint64_t added_starts[65536 / 64]; /* bit set: two bytes that an added token can start with */
};

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

/* The table that `ref` describes, of exactly n_items items; NULL sets the status. */
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

/* A table of u32 slots, 2^k of them. */
static const uint32_t *section_slots(struct section *s, struct tern_file_ref ref, const char *name,
                                     uint32_t *n_slots)
{
    *n_slots = ref.bytes / 4;
    if (s->status == TERN_OK && (*n_slots == 0 || (*n_slots & (*n_slots - 1)) != 0))
        s->status = tn_fail(s->err, TERN_INPUT,
                            "tokenizer: table %s has %u slots, which is no power of two", name,
                            *n_slots);
    return section_table(s, ref, name, *n_slots, 4);
}

static tern_status check_head(const struct tern_file_tokenizer *head, uint32_t vocab,
                              struct tern_error *err)
{
    if (head->kind != TERN_TOKENIZER_BYTE_BPE)
        return tn_fail(err, TERN_UNSUPPORTED, "tokenizer kind %u is not supported", head->kind);
    if (!tn_splitter_find(head->splitter))
        return tn_fail(err, TERN_UNSUPPORTED, "tokenizer splitter %u is not supported",
                       head->splitter);
    if (head->flags & ~TERN_TOK_IGNORE_MERGES)
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
    return TERN_OK;
}

static tern_status check_ids(const uint32_t *ids, uint32_t n, uint32_t n_tokens, const char *what,
                             struct tern_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] >= n_tokens)
            return tn_fail(err, TERN_INPUT, "tokenizer: %s %u has id %u of %u", what, i, ids[i],
                           n_tokens);
    return TERN_OK;
}

static tern_status check_offsets(const struct tern_tokenizer *t, struct tern_error *err)
{
    uint32_t n = t->head->n_tokens;
    for (uint32_t i = 0; i < n; i++)
        if (t->token_offsets[i + 1] < t->token_offsets[i])
            return tn_fail(err, TERN_INPUT, "tokenizer: token %u has a negative length", i);
    if (t->token_offsets[n] > t->head->token_bytes.bytes)
        return tn_fail(err, TERN_INPUT, "tokenizer: tokens end at %u of %u bytes",
                       t->token_offsets[n], t->head->token_bytes.bytes);
    return TERN_OK;
}

static int compare_bytes(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int order = memcmp(a, b, TN_MIN(n_a, n_b));
    return order ? order : (n_a > n_b) - (n_a < n_b);
}

/* The bytes of an id that is in range. */
static const char *token_at(const struct tern_tokenizer *t, uint32_t id, size_t *n_bytes)
{
    *n_bytes = t->token_offsets[id + 1] - t->token_offsets[id];
    return t->token_bytes + t->token_offsets[id];
}

/* Behind a token of one byte anything may follow. */
static void note_added_start(struct tern_tokenizer *t, const unsigned char *bytes, size_t n_bytes)
{
    uint64_t *row = t->added_starts + bytes[0] * (size_t)4;
    if (n_bytes == 1)
        memset(row, 0xFF, 4 * sizeof *row);
    else
        row[bytes[1] / 64] |= 1ull << bytes[1] % 64;
}

/* False when no added token can start at text[0], n > 0. */
static inline bool may_start_added(const struct tern_tokenizer *t, const char *text, size_t n)
{
    unsigned char first = (unsigned char)text[0], second = n > 1 ? (unsigned char)text[1] : 0;
    return t->added_starts[first * (size_t)4 + second / 64] >> second % 64 & 1;
}

/* The search relies on ascending order and on ids and lengths in range. */
static tern_status check_added(struct tern_tokenizer *t, struct tern_error *err)
{
    const char *previous = NULL;
    size_t n_previous = 0;
    for (uint32_t i = 0; i < t->head->n_added; i++) {
        uint32_t id = t->added[i].id;
        if (id >= t->head->n_tokens)
            return tn_fail(err, TERN_INPUT, "tokenizer: added token %u has id %u of %u", i, id,
                           t->head->n_tokens);
        if (t->added[i].flags & ~(TERN_ADDED_SPECIAL | TERN_ADDED_NORMALIZED))
            return tn_fail(err, TERN_UNSUPPORTED,
                           "tokenizer: added token %u has flags 0x%x, not supported", i,
                           t->added[i].flags);
        size_t n_bytes;
        const char *bytes = token_at(t, id, &n_bytes);
        if (n_bytes == 0 || n_bytes > TERN_MAX_ADDED_BYTES)
            return tn_fail(err, TERN_INPUT, "tokenizer: added token %u has %zu bytes, not 1 to %u",
                           i, n_bytes, TERN_MAX_ADDED_BYTES);
        if (previous && compare_bytes(previous, n_previous, bytes, n_bytes) >= 0)
            return tn_fail(err, TERN_INPUT, "tokenizer: added token %u is out of order", i);
        previous = bytes;
        n_previous = n_bytes;
        note_added_start(t, (const unsigned char *)bytes, n_bytes);
    }
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
    t->bpe.byte_ids = section_table(s, head->byte_ids, "byte_ids", 256, 4);
    t->added = section_table(s, head->added, "added", head->n_added,
                             sizeof(struct tern_file_added));
    t->special_bits = section_table(s, head->special_bits, "special_bits", (n + 7) / 8, 1);
    t->bpe.n_merges = head->n_merges;
    t->bpe.n_tokens = head->n_tokens;
    t->split = tn_splitter_find(head->splitter);
    return s->status;
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
        status = check_ids(t->bpe.byte_ids, 256, n, "byte", s->err);
    if (status == TERN_OK)
        status = check_ids(t->head->prefix_ids, t->head->n_prefix, n, "prefix", s->err);
    if (status == TERN_OK)
        status = check_ids(t->head->suffix_ids, t->head->n_suffix, n, "suffix", s->err);
    return status == TERN_OK ? check_added(t, s->err) : status;
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
    t->head = section;
    struct section s = {section, n_bytes, err, TERN_OK};
    tern_status status = open_tables(t, &s, vocab);
    if (status != TERN_OK) {
        tn_free(t);
        return status;
    }
    *out = t;
    return TERN_OK;
}

void tn_tokenizer_close(struct tern_tokenizer *tokenizer)
{
    tn_free(tokenizer);
}

/* ---- looking up ---- */

uint32_t tern_tokenizer_n_tokens(const struct tern_tokenizer *tokenizer)
{
    return tokenizer->head->n_tokens;
}

const char *tern_tokenizer_token_bytes(const struct tern_tokenizer *tokenizer, uint32_t id,
                                       size_t *n_bytes)
{
    *n_bytes = 0;
    return id < tokenizer->head->n_tokens ? token_at(tokenizer, id, n_bytes) : NULL;
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

/* The id of model.vocab with these bytes, or TERN_NO_ID. */
static uint32_t vocab_find(const struct tern_tokenizer *t, const char *bytes, size_t n)
{
    uint32_t mask = t->n_vocab_slots - 1;
    uint32_t slot = (uint32_t)tn_token_hash(bytes, n) & mask;
    for (uint32_t probes = 0; probes < TERN_MAX_PROBES; probes++) {
        uint32_t id = t->vocab_slots[slot] - 1;
        if (id >= t->head->n_tokens) /* empty, or damaged */
            return TERN_NO_ID;
        size_t n_token;
        const char *token = token_at(t, id, &n_token);
        if (n_token == n && memcmp(token, bytes, n) == 0)
            return id;
        slot = (slot + 1) & mask;
    }
    return TERN_NO_ID;
}

/* Byte number `depth` of the added token at `place`; -1 behind its end. */
static int added_byte(const struct tern_tokenizer *t, uint32_t place, size_t depth)
{
    size_t n_bytes;
    const char *bytes = token_at(t, t->added[place].id, &n_bytes);
    return depth < n_bytes ? (unsigned char)bytes[depth] : -1;
}

/* First place in [low, high), which agree in the bytes before `depth`, whose byte there is at
 * least `byte`. */
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

/* The longest added token that text[0..n) starts with and whose flag "normalized" is `normalized`;
 * NULL when there is none.  Walks down the sorted list byte by byte, as down a trie. */
static const struct tern_file_added *added_match(const struct tern_tokenizer *t, const char *text,
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

uint32_t tern_tokenizer_find(const struct tern_tokenizer *tokenizer, const char *text,
                             size_t n_bytes)
{
    size_t n_match = 0;
    for (uint32_t normalized = 0; normalized <= TERN_ADDED_NORMALIZED;
         normalized += TERN_ADDED_NORMALIZED) {
        const struct tern_file_added *added =
            added_match(tokenizer, text, n_bytes, normalized, &n_match);
        if (added && n_match == n_bytes)
            return added->id;
    }
    return vocab_find(tokenizer, text, n_bytes);
}

/* ---- encoding ---- */

struct encoder {
    const struct tern_tokenizer *t;
    struct tern_ids *out;
    struct tn_bpe_work *work;
    bool parse_special;
};

static bool ids_reserve(struct tern_ids *ids, size_t extra)
{
    if (extra <= ids->capacity - ids->n)
        return true;
    if (extra > SIZE_MAX / 8 - ids->n)
        return false;
    size_t capacity = TN_MAX(ids->n + extra, ids->capacity + ids->capacity / 2);
    capacity = TN_MAX(capacity, (size_t)64);
    uint32_t *grown = tn_realloc(ids->ids, capacity * sizeof *grown);
    if (!grown)
        return false;
    ids->ids = grown;
    ids->capacity = capacity;
    return true;
}

static bool ids_append(struct tern_ids *ids, const uint32_t *values, size_t n)
{
    if (!ids_reserve(ids, n))
        return false;
    if (n)
        memcpy(ids->ids + ids->n, values, n * sizeof *values);
    ids->n += n;
    return true;
}

void tern_ids_free(struct tern_ids *ids)
{
    tn_free(ids->ids);
    *ids = (struct tern_ids){0};
}

/* One piece of the splitter. */
static bool encode_piece(struct encoder *e, const char *text, size_t n)
{
    if (!ids_reserve(e->out, n))
        return false;
    if (e->t->head->flags & TERN_TOK_IGNORE_MERGES) {
        uint32_t id = vocab_find(e->t, text, n);
        if (id != TERN_NO_ID) {
            e->out->ids[e->out->n++] = id;
            return true;
        }
    }
    size_t n_ids = tn_bpe_encode(&e->t->bpe, text, n, e->out->ids + e->out->n, &e->work);
    e->out->n += n_ids;
    return n_ids > 0;
}

/* Text without added tokens. */
static bool encode_plain(struct encoder *e, const char *text, size_t n)
{
    while (n > 0) {
        size_t length = e->t->split(text, n);
        if (!encode_piece(e, text, length))
            return false;
        text += length;
        n -= length;
    }
    return true;
}

/* Finds added tokens with this "normalized" flag; what lies between them goes to the next stage.
 * A special token that is not to be parsed is text over its whole length, as in the reference. */
static bool encode_added(struct encoder *e, const char *text, size_t n, uint32_t normalized)
{
    size_t done = 0, i = 0;
    while (i < n) {
        size_t n_match;
        const struct tern_file_added *added = NULL;
        if (may_start_added(e->t, text + i, n - i))
            added = added_match(e->t, text + i, n - i, normalized, &n_match);
        if (!added) {
            i++;
            continue;
        }
        if (e->parse_special || !(added->flags & TERN_ADDED_SPECIAL)) {
            bool ok = normalized ? encode_plain(e, text + done, i - done)
                                 : encode_added(e, text + done, i - done, TERN_ADDED_NORMALIZED);
            if (!ok || !ids_append(e->out, &added->id, 1))
                return false;
            done = i + n_match;
        }
        i += n_match;
    }
    return normalized ? encode_plain(e, text + done, n - done)
                      : encode_added(e, text + done, n - done, TERN_ADDED_NORMALIZED);
}

static tern_status encode_finish(struct encoder *e, bool ok, size_t n_before,
                                 struct tern_error *err)
{
    tn_bpe_work_free(e->work);
    if (ok)
        return TERN_OK;
    e->out->n = n_before;
    return tn_fail(err, TERN_MEMORY, "not enough memory to encode the text");
}

tern_status tern_tokenizer_encode(const struct tern_tokenizer *tokenizer, const char *text,
                                  size_t n_bytes, uint32_t flags, struct tern_ids *out,
                                  struct tern_error *err)
{
    const struct tern_file_tokenizer *head = tokenizer->head;
    struct encoder e = {tokenizer, out, NULL, (flags & TERN_ENCODE_PARSE_SPECIAL) != 0};
    bool add = (flags & TERN_ENCODE_ADD_SPECIAL) != 0;
    size_t n_before = out->n;
    bool ok = ids_append(out, head->prefix_ids, add ? head->n_prefix : 0) &&
              encode_added(&e, text, n_bytes, 0) &&
              ids_append(out, head->suffix_ids, add ? head->n_suffix : 0);
    return encode_finish(&e, ok, n_before, err);
}

/* The next special token in [i, n) all of whose bytes come from the template; n when none. */
static size_t next_template_special(const struct tern_tokenizer *t, const char *text,
                                    const unsigned char *user_map, size_t n, size_t i,
                                    const struct tern_file_added **added, size_t *n_match)
{
    *added = NULL;
    for (; i < n; i++) {
        if (user_map[i] || !may_start_added(t, text + i, n - i))
            continue;
        size_t limit = n - i < TERN_MAX_ADDED_BYTES ? n - i : TERN_MAX_ADDED_BYTES;
        const unsigned char *user = memchr(user_map + i, 1, limit);
        size_t n_template = user ? (size_t)(user - user_map) - i : limit;
        *added = added_match(t, text + i, n_template, 0, n_match);
        if (*added && (*added)->flags & TERN_ADDED_SPECIAL)
            return i;
        *added = NULL;
    }
    return n;
}

tern_status tn_tokenizer_encode_mapped(const struct tern_tokenizer *tokenizer, const char *text,
                                       const unsigned char *user_map, size_t n_bytes,
                                       struct tern_ids *out, struct tern_error *err)
{
    struct encoder e = {tokenizer, out, NULL, false};
    size_t n_before = out->n;
    bool ok = true;
    for (size_t i = 0; ok && i < n_bytes;) {
        const struct tern_file_added *added;
        size_t n_match = 0;
        size_t start = next_template_special(tokenizer, text, user_map, n_bytes, i, &added,
                                             &n_match);
        ok = encode_added(&e, text + i, start - i, 0) && (!added || ids_append(out, &added->id, 1));
        i = start + n_match;
    }
    return encode_finish(&e, ok, n_before, err);
}

tern_status tn_tokenizer_ensure_prefix(const struct tern_tokenizer *tokenizer,
                                       struct tern_ids *out, size_t start,
                                       struct tern_error *err)
{
    const uint32_t *prefix = tokenizer->head->prefix_ids;
    uint32_t n = tokenizer->head->n_prefix;
    if (n == 0)
        return TERN_OK;
    if (out->n - start >= n && memcmp(out->ids + start, prefix, n * sizeof *prefix) == 0)
        return TERN_OK;
    if (!ids_reserve(out, n)) {
        out->n = start;
        return tn_fail(err, TERN_MEMORY, "not enough memory to encode the text");
    }
    memmove(out->ids + start + n, out->ids + start, (out->n - start) * sizeof *out->ids);
    memcpy(out->ids + start, prefix, n * sizeof *prefix);
    out->n += n;
    return TERN_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * Converts text to ids.
 *
 *   text    -- added tokens without the flag "normalized" --> stretches
 *   stretch -- normaliser (NFC, space marks), added tokens with that flag --> plain text
 *   plain   -- splitter --> pieces -- symbols, BPE --> ids
 *
 * Order and rules are those of the Hugging Face library, including its oddities (named where they
 * matter).  In a tokenizer with space marks, U+2581 and the space are identical after the
 * normaliser.
 */
#include "text/tokenizer_view.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "text/normalize.h"
#include "text/unicode.h"

struct encoder {
    const struct tern_tokenizer *t;
    struct tern_ids *out;
    uint32_t flags; /* TERN_TOK_* */
    bool parse_special;
    struct tn_bpe_work *work;
    struct tn_normalize_room room;
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

bool tn_ids_append(struct tern_ids *ids, const uint32_t *values, size_t n)
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

/* ---- symbols ---- */

/* Symbols of a piece before merging; at most one per byte. */
struct symbols {
    const struct tern_tokenizer *t;
    uint32_t *ids;
    size_t n;
    bool unk_waits; /* an unknown symbol is pending and precedes the next known one */
};

static void put_known(struct symbols *s, uint32_t id)
{
    if (s->unk_waits)
        s->ids[s->n++] = s->t->head->unk_id;
    s->unk_waits = false;
    s->ids[s->n++] = id;
}

static void put_unknown(struct symbols *s)
{
    if (s->t->head->unk_id == TERN_NO_ID)
        return;
    if (s->unk_waits && !(s->t->head->flags & TERN_TOK_FUSE_UNK))
        s->ids[s->n++] = s->t->head->unk_id;
    s->unk_waits = true;
}

/* Appends byte tokens if every byte of the character has one.  A pending unknown symbol stays
 * pending, as in the reference. */
static bool put_bytes(struct symbols *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s->t->byte_ids[(unsigned char)text[i]] == TERN_NO_ID)
            return false;
    for (size_t i = 0; i < n; i++)
        s->ids[s->n++] = s->t->byte_ids[(unsigned char)text[i]];
    return true;
}

static void put_characters(struct symbols *s, const char *text, size_t n)
{
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t c, id;
        length = tn_utf8_next(text + i, n - i, &c);
        if (c < TN_COUNT_OF(s->t->ascii_ids))
            id = s->t->ascii_ids[c];
        else
            id = c == TN_NOT_UTF8 ? TERN_NO_ID : tn_vocab_find(s->t, text + i, length);
        if (id != TERN_NO_ID)
            put_known(s, id);
        else if (!put_bytes(s, text + i, length))
            put_unknown(s);
    }
}

static size_t start_symbols(const struct tern_tokenizer *t, const char *text, size_t n,
                            uint32_t *ids)
{
    struct symbols s = {t, ids, 0, false};
    if (t->head->kind == TERN_TOKENIZER_CHAR_BPE)
        put_characters(&s, text, n);
    for (size_t i = 0; t->head->kind == TERN_TOKENIZER_BYTE_BPE && i < n; i++) {
        uint32_t id = t->byte_ids[(unsigned char)text[i]];
        if (id != TERN_NO_ID)
            put_known(&s, id);
        else
            put_unknown(&s);
    }
    if (s.unk_waits)
        ids[s.n++] = t->head->unk_id;
    return s.n;
}

/* ---- pieces ---- */

/* Encodes one piece of the splitter. */
static bool encode_piece(struct encoder *e, const char *text, size_t n)
{
    if (!ids_reserve(e->out, n))
        return false;
    uint32_t *ids = e->out->ids + e->out->n;
    if (e->flags & TERN_TOK_IGNORE_MERGES) {
        uint32_t id = tn_vocab_find(e->t, text, n);
        if (id != TERN_NO_ID) {
            *ids = id;
            e->out->n++;
            return true;
        }
    }
    size_t n_symbols = start_symbols(e->t, text, n, ids);
    if (n_symbols == 0)
        return true;
    size_t n_ids = tn_bpe_merge(&e->t->bpe, ids, n_symbols, &e->work);
    e->out->n += n_ids;
    return n_ids > 0;
}

/* Encodes text from the previous stage; recurses at most TN_MAX_SPLIT_STAGES deep. */
static bool encode_stage(struct encoder *e, unsigned stage, const char *text, size_t n)
{
    tn_split_fn split = e->t->splitter->stages[stage];
    if (!split)
        return encode_piece(e, text, n);
    while (n > 0) {
        size_t length = split(text, n);
        if (!encode_stage(e, stage + 1, text, length))
            return false;
        text += length;
        n -= length;
    }
    return true;
}

/* ---- stretches without added tokens ---- */

static bool begins_with_space(const char *text, size_t n)
{
    return text[0] == ' ' ||
           (n >= TN_SPACE_MARK_BYTES && memcmp(text, TN_SPACE_MARK, TN_SPACE_MARK_BYTES) == 0);
}

/* Encodes n > 0 bytes without added tokens; `first`: they start the whole text. */
static bool encode_plain(struct encoder *e, const char *text, size_t n, bool first)
{
    const uint32_t flags = e->flags;
    if (flags & TERN_TOK_META) {
        bool add = flags & TERN_TOK_META_ALWAYS || (first && flags & TERN_TOK_META_FIRST);
        if (!tn_put_spaces(&e->room.marked, &text, &n, add && !begins_with_space(text, n)))
            return false;
    }
    return encode_stage(e, 0, text, n);
}

/* ---- added tokens ---- */

static bool is_word_before(const char *text, size_t i)
{
    uint32_t c;
    size_t start = i > 0 ? tn_utf8_last(text, i) : 0;
    return i > 0 && (tn_utf8_next(text + start, i - start, &c), tn_char_is(c, TN_CHAR_WORD));
}

static bool is_word_at(const char *text, size_t n, size_t i)
{
    uint32_t c;
    return i < n && (tn_utf8_next(text + i, n - i, &c), tn_char_is(c, TN_CHAR_WORD));
}

/* A match of an added token, in a text that is scanned from left to right. */
struct match {
    bool has_marks;       /* spaces of this text represent marks, which are not white space */
    size_t done;          /* offset of the first byte not yet passed to the next stage */
    size_t start, end;    /* the match including the white space that its flags strip */
    size_t space_run_end; /* end of the white space run that was scanned last */
};

static bool is_space(const struct match *m, uint32_t c)
{
    return tn_char_class(c) == TN_CHAR_SPACE && !(c == ' ' && m->has_marks);
}

/* Start of the white space before the match, not before m->done. */
static size_t space_start(const struct match *m, const char *text)
{
    size_t i = m->start;
    while (i > m->done) {
        uint32_t c;
        size_t start = tn_utf8_last(text, i);
        tn_utf8_next(text + start, i - start, &c);
        if (!is_space(m, c))
            break;
        i = start;
    }
    return TN_MAX(i, m->done);
}

static size_t space_end(const struct match *m, const char *text, size_t n)
{
    size_t i = m->end;
    while (i < n) {
        uint32_t c;
        size_t length = tn_utf8_next(text + i, n - i, &c);
        if (!is_space(m, c))
            break;
        i += length;
    }
    return i;
}

/* Extends a match by the white space its flags strip.  false: single_word forbids the match, or
 * nothing is left of it: the previous match stripped it as white space. */
static bool place_match(struct match *m, const struct tern_file_added *added, const char *text,
                        size_t n)
{
    if (added->flags & TERN_ADDED_SINGLE_WORD &&
        (is_word_before(text, m->start) || is_word_at(text, n, m->end)))
        return false;
    if (added->flags & TERN_ADDED_LSTRIP)
        m->start = space_start(m, text);
    if (added->flags & TERN_ADDED_RSTRIP) {
        if (m->end >= m->space_run_end)
            m->space_run_end = space_end(m, text, n);
        m->end = m->space_run_end;
    }
    return m->start < m->end;
}

static bool encode_stretch(struct encoder *e, const char *text, size_t n, uint32_t normalized,
                           bool first);

/* Finds added tokens with this "normalized" flag and passes the text between them to the next
 * stage.  A special token that is not to be parsed is plain text over its whole length, as in the
 * reference. */
static bool encode_added(struct encoder *e, const char *text, size_t n, uint32_t normalized,
                         bool first)
{
    const uint32_t marks = TERN_TOK_SPACE_MARKS, flags = e->flags;
    struct match m = {.has_marks = normalized && (flags & (marks | TERN_TOK_META)) == marks};
    size_t i = 0;
    while (i < n) {
        size_t n_match;
        const struct tern_file_added *added = NULL;
        if (tn_may_start_added(e->t, text + i, n - i))
            added = tn_added_match(e->t, text + i, n - i, normalized, &n_match);
        if (!added) {
            i++;
            continue;
        }
        m.start = i;
        m.end = i += n_match;
        if ((added->flags & TERN_ADDED_SPECIAL && !e->parse_special) ||
            !place_match(&m, added, text, n))
            continue;
        if (m.done < m.start &&
            !encode_stretch(e, text + m.done, m.start - m.done, normalized, first && m.done == 0))
            return false;
        if (!tn_ids_append(e->out, &added->id, 1))
            return false;
        m.done = m.end;
    }
    return m.done == n ||
           encode_stretch(e, text + m.done, n - m.done, normalized, first && m.done == 0);
}

/* Encodes n > 0 bytes between added tokens of this kind. */
static bool encode_stretch(struct encoder *e, const char *text, size_t n, uint32_t normalized,
                           bool first)
{
    if (normalized)
        return encode_plain(e, text, n, first);
    return tn_normalize(&e->room, e->flags, &text, &n) &&
           encode_added(e, text, n, TERN_ADDED_NORMALIZED, first);
}

/* ---- whole texts ---- */

static tern_status encode_finish(struct encoder *e, bool ok, size_t n_before,
                                 struct tern_error *err)
{
    tn_bpe_work_free(e->work);
    tn_normalize_room_fini(&e->room);
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
    struct encoder e = {.t = tokenizer,
                        .out = out,
                        .flags = head->flags,
                        .parse_special = (flags & TERN_ENCODE_PARSE_SPECIAL) != 0};
    if (flags & TERN_ENCODE_CONTINUE)
        e.flags &= ~(TERN_TOK_PREPEND | TERN_TOK_META_FIRST | TERN_TOK_META_ALWAYS);
    bool add = (flags & TERN_ENCODE_ADD_SPECIAL) != 0;
    size_t n_before = out->n;
    bool ok = tn_ids_append(out, head->prefix_ids, add ? head->n_prefix : 0) &&
              encode_added(&e, text, n_bytes, 0, true) &&
              tn_ids_append(out, head->suffix_ids, add ? head->n_suffix : 0);
    return encode_finish(&e, ok, n_before, err);
}

/* The special token that starts text[0..n) and whose bytes all come from the template; NULL: none.
 */
static const struct tern_file_added *template_special(const struct tern_tokenizer *t,
                                                      const char *text,
                                                      const unsigned char *user_map, size_t n,
                                                      size_t *n_match)
{
    if (user_map[0] || !tn_may_start_added(t, text, n))
        return NULL;
    size_t limit = n < TERN_MAX_ADDED_BYTES ? n : TERN_MAX_ADDED_BYTES;
    const unsigned char *user = memchr(user_map, 1, limit);
    size_t n_template = user ? (size_t)(user - user_map) : limit;
    const struct tern_file_added *added = tn_added_match(t, text, n_template, 0, n_match);
    if (!added)
        added = tn_added_match(t, text, n_template, TERN_ADDED_NORMALIZED, n_match);
    return added && added->flags & TERN_ADDED_SPECIAL ? added : NULL;
}

tern_status tn_tokenizer_encode_mapped(const struct tern_tokenizer *tokenizer, const char *text,
                                       const unsigned char *user_map, size_t n_bytes,
                                       struct tern_ids *out, struct tern_error *err)
{
    struct encoder e = {.t = tokenizer, .out = out, .flags = tokenizer->head->flags};
    size_t n_before = out->n;
    struct match m = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < n_bytes;) {
        size_t n_match;
        const struct tern_file_added *added =
            template_special(tokenizer, text + i, user_map + i, n_bytes - i, &n_match);
        m.start = i;
        m.end = i += added ? n_match : 1;
        if (!added || !place_match(&m, added, text, n_bytes))
            continue;
        ok = (m.done >= m.start ||
              encode_added(&e, text + m.done, m.start - m.done, 0, m.done == 0)) &&
             tn_ids_append(out, &added->id, 1);
        m.done = m.end;
    }
    ok = ok && (m.done == n_bytes ||
                encode_added(&e, text + m.done, n_bytes - m.done, 0, m.done == 0));
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

tern_status tern_tokenizer_add_special(const struct tern_tokenizer *tokenizer,
                                       struct tern_ids *out, size_t start, size_t *n_prefix,
                                       struct tern_error *err)
{
    const struct tern_file_tokenizer *head = tokenizer->head;
    const size_t n_text = out->n;
    if (!tn_ids_append(out, head->suffix_ids, head->n_suffix))
        return tn_fail(err, TERN_MEMORY, "not enough memory to encode the text");
    tern_status status = tn_tokenizer_ensure_prefix(tokenizer, out, start, err);
    if (status != TERN_OK)
        out->n = n_text;
    else if (n_prefix)
        *n_prefix = out->n - n_text - head->n_suffix;
    return status;
}

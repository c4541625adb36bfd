/* SPDX-License-Identifier: MIT
 *
 * Computes masks of allowed tokens, and follows the grammar token by token.
 *
 * A mask costs a walk over the whole vocabulary, so the masks of recent sets are cached.
 */
#include "grammar/token_mask.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* Cached masks; full caches evict the one unused for longest. */
#define N_MASKS 16u

struct mask {
    uint32_t set; /* 0: none */
    uint32_t n;
    uint64_t last_use;
    uint64_t *bits;
};

struct tn_constraint {
    struct tn_reader *reader;
    const struct tn_token_list *list;
    struct mask masks[N_MASKS];
    uint64_t *bits; /* [N_MASKS][tn_mask_words] */
    uint64_t clock;
    uint32_t n_evictions; /* the reader's value when the masks were computed */
    uint32_t *ids;     /* [max_ids] */
    uint32_t max_ids;
};

/* ---- creation ---- */

tern_status tn_constraint_create(struct tn_constraint **out, const struct tern_grammar *grammar,
                                 const struct tn_token_list *list, uint32_t max_ids,
                                 struct tern_error *err)
{
    *out = NULL;
    struct tn_constraint *c = tn_alloc_zeroed(1, sizeof *c);
    if (!c)
        return tn_fail(err, TERN_MEMORY, "no memory to follow a grammar");
    c->list = list;
    c->max_ids = max_ids;
    c->bits = tn_alloc((size_t)N_MASKS * tn_mask_words(list->n_ids) * sizeof *c->bits);
    c->ids = tn_alloc(max_ids * sizeof *c->ids);
    tern_status status = c->bits && c->ids
                             ? tn_reader_create(&c->reader, grammar, err)
                             : tn_fail(err, TERN_MEMORY, "no memory to follow a grammar");
    for (uint32_t i = 0; i < N_MASKS; i++)
        c->masks[i].bits = c->bits + (size_t)i * tn_mask_words(list->n_ids);
    if (status == TERN_OK)
        *out = c;
    else
        tn_constraint_free(c);
    return status;
}

void tn_constraint_free(struct tn_constraint *c)
{
    if (!c)
        return;
    tn_reader_free(c->reader);
    tn_free(c->bits);
    tn_free(c->ids);
    tn_free(c);
}

uint64_t tn_constraint_bytes(const struct tern_grammar *grammar, uint32_t n_ids, uint32_t max_ids)
{
    return sizeof(struct tn_constraint) + tn_reader_bytes(grammar) +
           (uint64_t)N_MASKS * tn_mask_words(n_ids) * sizeof(uint64_t) +
           max_ids * (uint64_t)sizeof(uint32_t);
}

/* ---- masks ---- */

static void allow(struct mask *mask, uint32_t id)
{
    uint64_t *word = &mask->bits[id / 64];
    mask->n += !(*word >> id % 64 & 1);
    *word |= (uint64_t)1 << id % 64;
}

/* Allows the tokens that begin with `byte`.  path[d] is the set after d bytes of the current token.
 * false: the reader is out of room. */
static bool walk_byte(const struct tn_token_list *list, struct tn_reader *m, uint8_t byte,
                      uint32_t path[TN_MAX_TOKEN_BYTES + 1], struct mask *mask)
{
    uint32_t dead = TN_MAX_TOKEN_BYTES + 1; /* length of the prefix that nothing continues */
    for (uint32_t i = list->first_of[byte]; i < list->first_of[byte + 1]; i++) {
        const struct tn_sorted_token *t = &list->tokens[i];
        const uint8_t *bytes = (const uint8_t *)list->bytes + t->at;
        if (t->n_shared >= dead)
            continue;
        dead = TN_MAX_TOKEN_BYTES + 1;
        for (uint32_t d = t->n_shared; d < t->n_bytes && dead > TN_MAX_TOKEN_BYTES; d++) {
            path[d + 1] = tn_reader_next(m, path[d], bytes[d - t->n_shared]);
            if (path[d + 1] == TN_SET_FULL)
                return false;
            if (path[d + 1] == TN_SET_DEAD)
                dead = d + 1;
        }
        if (dead > TN_MAX_TOKEN_BYTES)
            allow(mask, t->id);
    }
    return true;
}

/* Computes the mask of a set that accepts the same tokens as the reader's current one. */
static bool fill(const struct tn_constraint *c, uint32_t set, struct mask *mask)
{
    const struct tn_token_list *list = c->list;
    struct tn_reader *m = c->reader;
    uint32_t path[TN_MAX_TOKEN_BYTES + 1] = {set};
    memset(mask->bits, 0, tn_mask_words(list->n_ids) * sizeof *mask->bits);
    mask->n = 0;
    for (uint32_t byte = 0; byte < 256 && tn_reader_can_go_on(m); byte++) {
        const uint32_t next = tn_reader_next(m, set, (uint8_t)byte);
        if (next == TN_SET_FULL ||
            (next != TN_SET_DEAD && !walk_byte(list, m, (uint8_t)byte, path, mask)))
            return false;
    }
    for (uint32_t i = 0; i < list->n_ends && tn_reader_is_whole(m); i++)
        if (list->ends[i] < list->n_ids)
            allow(mask, list->ends[i]);
    mask->set = set;
    return true;
}

/* Sets are renumbered when the reader evicts, so cached masks are invalid then. */
static void drop_old_masks(struct tn_constraint *c)
{
    for (uint32_t i = 0; i < N_MASKS && c->n_evictions != c->reader->n_evictions; i++)
        c->masks[i].set = 0;
    c->n_evictions = c->reader->n_evictions;
}

/* The mask of a set, or the one unused for longest, to be overwritten. */
static struct mask *find_mask(struct tn_constraint *c, uint32_t set)
{
    struct mask *oldest = &c->masks[0];
    drop_old_masks(c);
    for (uint32_t i = 0; i < N_MASKS; i++) {
        if (c->masks[i].set == set)
            return &c->masks[i];
        if (!c->masks[i].set || (oldest->set && c->masks[i].last_use < oldest->last_use))
            oldest = &c->masks[i];
    }
    oldest->set = 0;
    return oldest;
}

static void list_ids(const struct tn_constraint *c, const struct mask *mask)
{
    uint32_t n = 0;
    for (uint32_t word = 0; word < tn_mask_words(c->list->n_ids); word++)
        for (uint64_t bits = mask->bits[word]; bits; bits &= bits - 1)
            c->ids[n++] = word * 64 + (uint32_t)__builtin_ctzll(bits);
}

tern_status tn_constraint_allowed(struct tn_constraint *c, struct tn_allowed *out,
                                  struct tern_error *err)
{
    struct tn_reader *m = c->reader;
    uint32_t set = tn_reader_equivalent(m, m->set, c->list->longest);
    struct mask *mask = find_mask(c, set);
    *out = (struct tn_allowed){0};
    if (!mask->set && !fill(c, set, mask)) {
        m->set = tn_reader_evict(m, m->set);
        set = tn_reader_equivalent(m, m->set, c->list->longest);
        mask = find_mask(c, set);
        if (!fill(c, set, mask))
            return tn_reader_too_many(err);
    }
    mask->last_use = ++c->clock;
    if (mask->n == 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "no token of the model continues a text that the grammar allows");
    *out = (struct tn_allowed){.bits = mask->bits, .n = mask->n};
    if (mask->n <= c->max_ids) {
        list_ids(c, mask);
        out->ids = c->ids;
    }
    return tn_ok(err);
}

/* ---- reading tokens ---- */

static bool is_end_id(const struct tn_token_list *list, uint32_t id)
{
    for (uint32_t i = 0; i < list->n_ends; i++)
        if (list->ends[i] == id)
            return true;
    return false;
}

tern_status tn_constraint_push(struct tn_constraint *c, uint32_t id, bool *is_end,
                               struct tern_error *err)
{
    size_t n, n_fit = 0;
    *is_end = is_end_id(c->list, id);
    if (*is_end)
        return tn_ok(err);
    const char *bytes = tern_tokenizer_token_bytes(c->list->tokenizer, id, &n);
    tern_status status = tn_reader_push(c->reader, bytes, n, &n_fit, err);
    if (status == TERN_OK && n_fit < n)
        status = tn_fail(err, TERN_INTERNAL, "token %u has changed: %zu of its %zu bytes "
                                             "fit; was the model file modified?", id, n_fit, n);
    *is_end = status == TERN_OK && tn_reader_is_whole(c->reader) &&
              !tn_reader_can_go_on(c->reader);
    return status;
}

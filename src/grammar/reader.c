/* SPDX-License-Identifier: MIT
 *
 * Computes and caches the sets of configurations, and the transitions between them.
 *
 * A transition is computed on first use: read the byte, then follow empty edges, calls and returns
 * until nothing is added.  Identical sets share a number; the hash tables below find them.
 */
#include "grammar/reader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define MAX_CONFIGS 131072u
#define MAX_FRAMES 65536u
/* Configurations examined for one set, including those that are dropped after following their
 * edges. */
#define TODO_BITS 15
#define MAX_TODO (1u << (TODO_BITS - 1))
#define SET_SLOTS (4u * TN_MAX_SETS)
#define FRAME_SLOTS (2u * MAX_FRAMES)
#define TODO_SLOTS (2u * MAX_TODO)
#define TODO_MASK ((1u << TODO_BITS) - 1)

static uint32_t mix(uint32_t a, uint32_t b)
{
    const uint64_t h = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h ^ h >> 29 ^ h >> 47);
}

/* ---- stacks ---- */

static uint32_t *find_frame(const struct tn_reader *m, uint32_t to, uint32_t parent)
{
    uint32_t i = mix(to, parent) % FRAME_SLOTS;
    while (m->frame_slots[i] && !(m->frames[m->frame_slots[i]].to == to &&
                                  m->frames[m->frame_slots[i]].parent == parent))
        i = (i + 1) % FRAME_SLOTS;
    return &m->frame_slots[i];
}

/* The stack with one more return state; 0: the frame table is full. */
static uint32_t push_frame(struct tn_reader *m, uint32_t to, uint32_t parent)
{
    uint32_t *slot = find_frame(m, to, parent);
    if (*slot)
        return *slot;
    if (m->n_frames == MAX_FRAMES)
        return 0;
    m->frames[m->n_frames] = (struct tn_frame){to, parent, m->frames[parent].depth + 1};
    *slot = m->n_frames;
    return m->n_frames++;
}

/* ---- configurations of a set ---- */

static bool fits(const struct tn_reader *m, uint32_t state, uint32_t frame)
{
    return m->frames[frame].depth + m->grammar->states[state].height <= TERN_GRAMMAR_MAX_DEPTH;
}

/* Adds a configuration, once, unless it cannot be completed.  false: out of room. */
static bool add_config(struct tn_reader *m, uint32_t state, uint32_t frame)
{
    if (!fits(m, state, frame))
        return true;
    uint32_t i = mix(state, frame) % TODO_SLOTS;
    for (; m->todo_slots[i] >> TODO_BITS == m->todo_mark; i = (i + 1) % TODO_SLOTS) {
        const struct tn_config *r = &m->todo[m->todo_slots[i] & TODO_MASK];
        if (r->state == state && r->frame == frame)
            return true;
    }
    if (m->n_todo == MAX_TODO)
        return false;
    m->todo_slots[i] = m->todo_mark << TODO_BITS | m->n_todo;
    m->todo[m->n_todo++] = (struct tn_config){state, frame};
    return true;
}

/* Follows the edges that read no byte.  *can_go_on: a byte can follow; *is_whole: the text may end.
 */
static bool follow(struct tn_reader *m, struct tn_config r, bool *can_go_on, bool *is_whole)
{
    const struct tern_grammar *g = m->grammar;
    *can_go_on = false;
    for (uint32_t i = g->states[r.state].first_edge; i != TN_NO_EDGE; i = g->edges[i].next) {
        const struct tn_edge *e = &g->edges[i];
        *can_go_on = *can_go_on || e->kind == TN_EDGE_BYTES;
        if ((e->kind == TN_EDGE_EMPTY || e->kind == TN_EDGE_LOOP) &&
            !add_config(m, e->to, r.frame))
            return false;
        if (e->kind != TN_EDGE_CALL || !fits(m, e->to, r.frame) ||
            m->frames[r.frame].depth == TERN_GRAMMAR_MAX_DEPTH)
            continue;
        const uint32_t frame = push_frame(m, e->to, r.frame);
        if (!frame || !add_config(m, e->callee, frame))
            return false;
    }
    if (!g->states[r.state].is_end)
        return true;
    *is_whole = *is_whole || r.frame == 0;
    return r.frame == 0 ||
           add_config(m, m->frames[r.frame].to, m->frames[r.frame].parent);
}

/* Closes `todo` under edges that read no byte, and keeps the configurations that a byte can follow.
 */
static bool complete(struct tn_reader *m, bool *is_whole)
{
    uint32_t n = 0;
    *is_whole = false;
    for (uint32_t i = 0; i < m->n_todo; i++) {
        bool can_go_on;
        const struct tn_config r = m->todo[i];
        if (!follow(m, r, &can_go_on, is_whole))
            return false;
        if (can_go_on)
            m->kept[n++] = r;
    }
    memcpy(m->todo, m->kept, n * sizeof *m->todo);
    m->n_todo = n;
    return true;
}

/* ---- sets ---- */

static bool is_set(const struct tn_reader *m, const struct tn_config_set *p, uint32_t hash,
                     bool is_whole)
{
    return p->hash == hash && p->n == m->n_todo && p->is_whole == is_whole &&
           memcmp(m->configs + p->first, m->todo, p->n * sizeof *m->todo) == 0;
}

/* The number of the set in `todo`, added if it is new; TN_SET_FULL: out of room. */
static uint32_t find_set(struct tn_reader *m, bool is_whole)
{
    uint32_t hash = is_whole;
    for (uint32_t i = 0; i < m->n_todo; i++)
        hash = mix(hash ^ m->todo[i].state, m->todo[i].frame);
    uint32_t i = hash % SET_SLOTS;
    for (; m->set_slots[i]; i = (i + 1) % SET_SLOTS)
        if (is_set(m, &m->sets[m->set_slots[i]], hash, is_whole))
            return m->set_slots[i];
    if (m->n_sets == TN_MAX_SETS || m->n_configs + m->n_todo > MAX_CONFIGS)
        return TN_SET_FULL;
    if (m->n_todo > 0)
        memcpy(m->configs + m->n_configs, m->todo, m->n_todo * sizeof *m->todo);
    m->sets[m->n_sets] = (struct tn_config_set){m->n_configs, m->n_todo, hash, is_whole};
    m->n_configs += m->n_todo;
    m->set_slots[i] = (uint16_t)m->n_sets;
    memset(m->next + (size_t)m->n_sets * m->grammar->n_classes, 0,
           m->grammar->n_classes * sizeof *m->next);
    return m->n_sets++;
}

static void clear_todo(struct tn_reader *m)
{
    if (++m->todo_mark >> (32 - TODO_BITS)) {
        memset(m->todo_slots, 0, TODO_SLOTS * sizeof *m->todo_slots);
        m->todo_mark = 1;
    }
    m->n_todo = 0;
}

uint32_t tn_reader_compute(struct tn_reader *m, uint32_t set, uint32_t class)
{
    const struct tern_grammar *g = m->grammar;
    const uint8_t byte = g->byte_of[class];
    const struct tn_config_set p = m->sets[set];
    uint32_t next = TN_SET_DEAD;
    bool is_whole;
    clear_todo(m);
    for (uint32_t i = p.first; i < p.first + p.n; i++) {
        const struct tn_config r = m->configs[i];
        for (uint32_t k = g->states[r.state].first_edge; k != TN_NO_EDGE; k = g->edges[k].next) {
            const struct tn_edge *e = &g->edges[k];
            if (e->kind == TN_EDGE_BYTES && e->low <= byte && byte <= e->high &&
                !add_config(m, e->to, r.frame))
                return TN_SET_FULL;
        }
    }
    if (m->n_todo > 0)
        next = complete(m, &is_whole) ? find_set(m, is_whole) : TN_SET_FULL;
    if (next != TN_SET_FULL)
        m->next[set * g->n_classes + class] = (uint16_t)next;
    return next;
}

/* ---- eviction ---- */

/* Marks in frame_slots the frames that n configurations use. */
static void mark_frames(const struct tn_reader *m, const struct tn_config *configs, uint32_t n)
{
    memset(m->frame_slots, 0, FRAME_SLOTS * sizeof *m->frame_slots);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t f = configs[i].frame; f && !m->frame_slots[f]; f = m->frames[f].parent)
            m->frame_slots[f] = 1;
}

/* Compacts marked frames, parents before children; numbers[f]: the new number of frame f. */
static void move_frames(struct tn_reader *m, uint32_t *numbers)
{
    uint32_t n = 1;
    numbers[0] = 0;
    for (uint32_t f = 1; f < m->n_frames; f++)
        if (numbers[f]) {
            const struct tn_frame old = m->frames[f];
            m->frames[n] = (struct tn_frame){old.to, numbers[old.parent], old.depth};
            numbers[f] = n++;
        }
    m->n_frames = n;
}

/* The state of the same counter that n_bytes more bytes cannot exhaust, with the lowest count;
 * `state` itself if it is not in such a counter. */
static uint32_t equivalent_of(const struct tn_reader *m, uint32_t state, uint32_t n_bytes)
{
    const uint32_t n = m->grammar->states[state].n_counted;
    return n > n_bytes ? state + n - n_bytes : state;
}

uint32_t tn_reader_equivalent(struct tn_reader *m, uint32_t set, uint32_t n_bytes)
{
    const struct tn_config_set *p = &m->sets[set];
    bool differs = false;
    clear_todo(m);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct tn_config r = m->configs[p->first + i];
        const uint32_t state = equivalent_of(m, r.state, n_bytes), to = m->frames[r.frame].to;
        const uint32_t equivalent = r.frame ? equivalent_of(m, to, n_bytes) : to;
        const uint32_t frame = equivalent == to ? r.frame
                                          : push_frame(m, equivalent, m->frames[r.frame].parent);
        differs = differs || state != r.state || equivalent != to;
        if ((equivalent != to && !frame) || !add_config(m, state, frame))
            return set;
    }
    const uint32_t equivalent = differs ? find_set(m, p->is_whole) : set;
    return equivalent == TN_SET_FULL ? set : equivalent;
}

uint32_t tn_reader_evict(struct tn_reader *m, uint32_t set)
{
    const struct tn_config_set kept = m->sets[set];
    memcpy(m->todo, m->configs + kept.first, kept.n * sizeof *m->todo);
    m->n_todo = kept.n;
    mark_frames(m, m->todo, m->n_todo);
    move_frames(m, m->frame_slots);
    for (uint32_t i = 0; i < m->n_todo; i++)
        m->todo[i].frame = m->frame_slots[m->todo[i].frame];
    memset(m->frame_slots, 0, FRAME_SLOTS * sizeof *m->frame_slots);
    for (uint32_t f = 1; f < m->n_frames; f++)
        *find_frame(m, m->frames[f].to, m->frames[f].parent) = f;
    memset(m->set_slots, 0, SET_SLOTS * sizeof *m->set_slots);
    m->n_sets = TN_FIRST_SET;
    m->n_configs = 0;
    m->n_evictions++;
    return find_set(m, kept.is_whole);
}

tern_status tn_reader_too_many(struct tern_error *err)
{
    return tn_fail(err, TERN_LIMIT, "the text can be parsed in too many ways at the same time; "
                                    "let alternatives differ in their first characters");
}

tern_status tn_reader_push(struct tn_reader *m, const char *bytes, size_t n, size_t *n_fit,
                            struct tern_error *err)
{
    for (*n_fit = 0; *n_fit < n; ++*n_fit) {
        const uint8_t byte = (uint8_t)bytes[*n_fit];
        uint32_t next = tn_reader_next(m, m->set, byte);
        if (next == TN_SET_FULL) {
            m->set = tn_reader_evict(m, m->set);
            next = tn_reader_next(m, m->set, byte);
        }
        if (next == TN_SET_FULL)
            return tn_reader_too_many(err);
        if (next == TN_SET_DEAD)
            return tn_ok(err);
        m->set = next;
    }
    return tn_ok(err);
}

/* ---- creation ---- */

static bool take_memory(struct tn_reader *m)
{
    const size_t n_next = (size_t)TN_MAX_SETS * m->grammar->n_classes;
    m->sets = tn_alloc(TN_MAX_SETS * sizeof *m->sets);
    m->next = tn_alloc(n_next * sizeof *m->next);
    m->configs = tn_alloc(MAX_CONFIGS * sizeof *m->configs);
    m->frames = tn_alloc(MAX_FRAMES * sizeof *m->frames);
    m->set_slots = tn_alloc_zeroed(SET_SLOTS, sizeof *m->set_slots);
    m->frame_slots = tn_alloc_zeroed(FRAME_SLOTS, sizeof *m->frame_slots);
    m->todo = tn_alloc(MAX_TODO * sizeof *m->todo);
    m->kept = tn_alloc(MAX_TODO * sizeof *m->kept);
    m->todo_slots = tn_alloc_zeroed(TODO_SLOTS, sizeof *m->todo_slots);
    return m->sets && m->next && m->configs && m->frames && m->set_slots && m->frame_slots &&
           m->todo && m->kept && m->todo_slots;
}

uint64_t tn_reader_bytes(const struct tern_grammar *grammar)
{
    const struct tn_reader *m = NULL; /* only for sizeof */
    return sizeof *m + TN_MAX_SETS * (sizeof *m->sets + grammar->n_classes * sizeof *m->next) +
           MAX_CONFIGS * sizeof *m->configs + MAX_FRAMES * sizeof *m->frames +
           SET_SLOTS * sizeof *m->set_slots + FRAME_SLOTS * sizeof *m->frame_slots +
           MAX_TODO * (sizeof *m->todo + sizeof *m->kept) + TODO_SLOTS * sizeof *m->todo_slots;
}

tern_status tn_reader_create(struct tn_reader **out, const struct tern_grammar *grammar,
                              struct tern_error *err)
{
    struct tn_reader *m = tn_alloc_zeroed(1, sizeof *m);
    bool is_whole;
    *out = NULL;
    if (m)
        m->grammar = grammar;
    if (!m || !take_memory(m)) {
        tn_reader_free(m);
        return tn_fail(err, TERN_MEMORY, "no memory to follow a grammar");
    }
    m->frames[0] = (struct tn_frame){0};
    m->n_frames = 1;
    m->n_sets = TN_FIRST_SET;
    clear_todo(m);
    (void)add_config(m, grammar->start, 0);
    m->set = complete(m, &is_whole) ? find_set(m, is_whole) : TN_SET_FULL;
    if (m->set == TN_SET_FULL) {
        tn_reader_free(m);
        return tn_reader_too_many(err);
    }
    *out = m;
    return tn_ok(err);
}

void tn_reader_free(struct tn_reader *m)
{
    if (!m)
        return;
    tn_free(m->sets);
    tn_free(m->next);
    tn_free(m->configs);
    tn_free(m->frames);
    tn_free(m->set_slots);
    tn_free(m->frame_slots);
    tn_free(m->todo);
    tn_free(m->kept);
    tn_free(m->todo_slots);
    tn_free(m);
}

tern_status tern_grammar_match(const struct tern_grammar *grammar, const char *text,
                               size_t n_bytes, size_t *n_fit, bool *is_whole,
                               struct tern_error *err)
{
    struct tn_reader *m;
    *n_fit = 0;
    *is_whole = false;
    tern_status status = tn_reader_create(&m, grammar, err);
    if (status == TERN_OK)
        status = tn_reader_push(m, text, n_bytes, n_fit, err);
    if (status == TERN_OK)
        *is_whole = *n_fit == n_bytes && tn_reader_is_whole(m);
    tn_reader_free(m);
    return status;
}

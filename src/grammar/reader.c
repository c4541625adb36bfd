/* SPDX-License-Identifier: MIT
 *
 * Places and the steps between them.
 */
#include "grammar/reader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

#define MAX_READINGS 131072u
#define MAX_FRAMES 65536u
/* Readings that are looked at for one place, those included that only lead to others. */
#define TODO_BITS 15
#define MAX_TODO (1u << (TODO_BITS - 1))
#define PLACE_SLOTS (4u * TN_MAX_PLACES)
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

/* The stack with one more return; 0: there is no room. */
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

/* ---- the readings of a place ---- */

static bool fits(const struct tn_reader *m, uint32_t state, uint32_t frame)
{
    return m->frames[frame].depth + m->grammar->states[state].height <= TERN_GRAMMAR_MAX_DEPTH;
}

/* Adds a reading, once, if it can come to an end; false: there is no room. */
static bool add_reading(struct tn_reader *m, uint32_t state, uint32_t frame)
{
    if (!fits(m, state, frame))
        return true;
    uint32_t i = mix(state, frame) % TODO_SLOTS;
    for (; m->todo_slots[i] >> TODO_BITS == m->todo_mark; i = (i + 1) % TODO_SLOTS) {
        const struct tn_reading *r = &m->todo[m->todo_slots[i] & TODO_MASK];
        if (r->state == state && r->frame == frame)
            return true;
    }
    if (m->n_todo == MAX_TODO)
        return false;
    m->todo_slots[i] = m->todo_mark << TODO_BITS | m->n_todo;
    m->todo[m->n_todo++] = (struct tn_reading){state, frame};
    return true;
}

/* Adds what a reading leads to without a byte.  *can_go_on: a byte can follow; *is_whole: it may be
 * the end. */
static bool follow(struct tn_reader *m, struct tn_reading r, bool *can_go_on, bool *is_whole)
{
    const struct tern_grammar *g = m->grammar;
    *can_go_on = false;
    for (uint32_t i = g->states[r.state].first_edge; i != TN_NO_EDGE; i = g->edges[i].next) {
        const struct tn_edge *e = &g->edges[i];
        *can_go_on = *can_go_on || e->kind == TN_EDGE_BYTES;
        if (e->kind == TN_EDGE_EMPTY && !add_reading(m, e->to, r.frame))
            return false;
        if (e->kind != TN_EDGE_CALL || !fits(m, e->to, r.frame) ||
            m->frames[r.frame].depth == TERN_GRAMMAR_MAX_DEPTH)
            continue;
        const uint32_t frame = push_frame(m, e->to, r.frame);
        if (!frame || !add_reading(m, e->callee, frame))
            return false;
    }
    if (!g->states[r.state].is_end)
        return true;
    *is_whole = *is_whole || r.frame == 0;
    return r.frame == 0 ||
           add_reading(m, m->frames[r.frame].to, m->frames[r.frame].parent);
}

/* Completes the readings in todo, and leaves those that a byte can follow. */
static bool complete(struct tn_reader *m, bool *is_whole)
{
    uint32_t n = 0;
    *is_whole = false;
    for (uint32_t i = 0; i < m->n_todo; i++) {
        bool can_go_on;
        const struct tn_reading r = m->todo[i];
        if (!follow(m, r, &can_go_on, is_whole))
            return false;
        if (can_go_on)
            m->kept[n++] = r;
    }
    memcpy(m->todo, m->kept, n * sizeof *m->todo);
    m->n_todo = n;
    return true;
}

/* ---- places ---- */

static bool is_place(const struct tn_reader *m, const struct tn_place *p, uint32_t hash,
                     bool is_whole)
{
    return p->hash == hash && p->n == m->n_todo && p->is_whole == is_whole &&
           memcmp(m->readings + p->first, m->todo, p->n * sizeof *m->todo) == 0;
}

/* The number of the place that todo holds. */
static uint32_t find_place(struct tn_reader *m, bool is_whole)
{
    uint32_t hash = is_whole;
    for (uint32_t i = 0; i < m->n_todo; i++)
        hash = mix(hash ^ m->todo[i].state, m->todo[i].frame);
    uint32_t i = hash % PLACE_SLOTS;
    for (; m->place_slots[i]; i = (i + 1) % PLACE_SLOTS)
        if (is_place(m, &m->places[m->place_slots[i]], hash, is_whole))
            return m->place_slots[i];
    if (m->n_places == TN_MAX_PLACES || m->n_readings + m->n_todo > MAX_READINGS)
        return TN_PLACE_FULL;
    if (m->n_todo > 0)
        memcpy(m->readings + m->n_readings, m->todo, m->n_todo * sizeof *m->todo);
    m->places[m->n_places] = (struct tn_place){m->n_readings, m->n_todo, hash, is_whole};
    m->n_readings += m->n_todo;
    m->place_slots[i] = (uint16_t)m->n_places;
    memset(m->next + (size_t)m->n_places * m->grammar->n_classes, 0,
           m->grammar->n_classes * sizeof *m->next);
    return m->n_places++;
}

static void begin_todo(struct tn_reader *m)
{
    if (++m->todo_mark >> (32 - TODO_BITS)) {
        memset(m->todo_slots, 0, TODO_SLOTS * sizeof *m->todo_slots);
        m->todo_mark = 1;
    }
    m->n_todo = 0;
}

uint32_t tn_reader_compute(struct tn_reader *m, uint32_t place, uint32_t class)
{
    const struct tern_grammar *g = m->grammar;
    const uint8_t byte = g->byte_of[class];
    const struct tn_place p = m->places[place];
    uint32_t next = TN_PLACE_DEAD;
    bool is_whole;
    begin_todo(m);
    for (uint32_t i = p.first; i < p.first + p.n; i++) {
        const struct tn_reading r = m->readings[i];
        for (uint32_t k = g->states[r.state].first_edge; k != TN_NO_EDGE; k = g->edges[k].next) {
            const struct tn_edge *e = &g->edges[k];
            if (e->kind == TN_EDGE_BYTES && e->low <= byte && byte <= e->high &&
                !add_reading(m, e->to, r.frame))
                return TN_PLACE_FULL;
        }
    }
    if (m->n_todo > 0)
        next = complete(m, &is_whole) ? find_place(m, is_whole) : TN_PLACE_FULL;
    if (next != TN_PLACE_FULL)
        m->next[place * g->n_classes + class] = (uint16_t)next;
    return next;
}

/* ---- forgetting ---- */

/* Marks, in frame_slots, the frames of n readings and those below them. */
static void mark_frames(const struct tn_reader *m, const struct tn_reading *readings, uint32_t n)
{
    memset(m->frame_slots, 0, FRAME_SLOTS * sizeof *m->frame_slots);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t f = readings[i].frame; f && !m->frame_slots[f]; f = m->frames[f].parent)
            m->frame_slots[f] = 1;
}

/* Moves marked frames together, a parent before its children; numbers[f]: the new one of f. */
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

/* The state in whose place so many bytes cannot come to the end of the count. */
static uint32_t twin_of(const struct tn_reader *m, uint32_t state, uint32_t n_bytes)
{
    const uint32_t n = m->grammar->states[state].n_counted;
    return n > n_bytes ? state + n - n_bytes : state;
}

uint32_t tn_reader_twin(struct tn_reader *m, uint32_t place, uint32_t n_bytes)
{
    const struct tn_place *p = &m->places[place];
    bool has_twin = false;
    begin_todo(m);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct tn_reading r = m->readings[p->first + i];
        const uint32_t state = twin_of(m, r.state, n_bytes), to = m->frames[r.frame].to;
        const uint32_t twin = r.frame ? twin_of(m, to, n_bytes) : to;
        const uint32_t frame = twin == to ? r.frame
                                          : push_frame(m, twin, m->frames[r.frame].parent);
        has_twin = has_twin || state != r.state || twin != to;
        if ((twin != to && !frame) || !add_reading(m, state, frame))
            return place;
    }
    const uint32_t twin = has_twin ? find_place(m, p->is_whole) : place;
    return twin == TN_PLACE_FULL ? place : twin;
}

uint32_t tn_reader_forget(struct tn_reader *m, uint32_t place)
{
    const struct tn_place kept = m->places[place];
    memcpy(m->todo, m->readings + kept.first, kept.n * sizeof *m->todo);
    m->n_todo = kept.n;
    mark_frames(m, m->todo, m->n_todo);
    move_frames(m, m->frame_slots);
    for (uint32_t i = 0; i < m->n_todo; i++)
        m->todo[i].frame = m->frame_slots[m->todo[i].frame];
    memset(m->frame_slots, 0, FRAME_SLOTS * sizeof *m->frame_slots);
    for (uint32_t f = 1; f < m->n_frames; f++)
        *find_frame(m, m->frames[f].to, m->frames[f].parent) = f;
    memset(m->place_slots, 0, PLACE_SLOTS * sizeof *m->place_slots);
    m->n_places = TN_FIRST_PLACE;
    m->n_readings = 0;
    m->n_resets++;
    return find_place(m, kept.is_whole);
}

tern_status tn_reader_too_many(struct tern_error *err)
{
    return tn_fail(err, TERN_LIMIT, "the text can be understood in too many ways at the same time; "
                                    "alternatives that begin alike are the reason");
}

tern_status tn_reader_push(struct tn_reader *m, const char *bytes, size_t n, size_t *n_fit,
                            struct tern_error *err)
{
    for (*n_fit = 0; *n_fit < n; ++*n_fit) {
        const uint8_t byte = (uint8_t)bytes[*n_fit];
        uint32_t next = tn_reader_next(m, m->place, byte);
        if (next == TN_PLACE_FULL) {
            m->place = tn_reader_forget(m, m->place);
            next = tn_reader_next(m, m->place, byte);
        }
        if (next == TN_PLACE_FULL)
            return tn_reader_too_many(err);
        if (next == TN_PLACE_DEAD)
            return tn_ok(err);
        m->place = next;
    }
    return tn_ok(err);
}

/* ---- life ---- */

static bool take_memory(struct tn_reader *m)
{
    const size_t n_next = (size_t)TN_MAX_PLACES * m->grammar->n_classes;
    m->places = tn_alloc(TN_MAX_PLACES * sizeof *m->places);
    m->next = tn_alloc(n_next * sizeof *m->next);
    m->readings = tn_alloc(MAX_READINGS * sizeof *m->readings);
    m->frames = tn_alloc(MAX_FRAMES * sizeof *m->frames);
    m->place_slots = tn_alloc_zeroed(PLACE_SLOTS, sizeof *m->place_slots);
    m->frame_slots = tn_alloc_zeroed(FRAME_SLOTS, sizeof *m->frame_slots);
    m->todo = tn_alloc(MAX_TODO * sizeof *m->todo);
    m->kept = tn_alloc(MAX_TODO * sizeof *m->kept);
    m->todo_slots = tn_alloc_zeroed(TODO_SLOTS, sizeof *m->todo_slots);
    return m->places && m->next && m->readings && m->frames && m->place_slots && m->frame_slots &&
           m->todo && m->kept && m->todo_slots;
}

uint64_t tn_reader_bytes(const struct tern_grammar *grammar)
{
    const struct tn_reader *m = NULL; /* for the sizes of what it points to */
    return sizeof *m + TN_MAX_PLACES * (sizeof *m->places + grammar->n_classes * sizeof *m->next) +
           MAX_READINGS * sizeof *m->readings + MAX_FRAMES * sizeof *m->frames +
           PLACE_SLOTS * sizeof *m->place_slots + FRAME_SLOTS * sizeof *m->frame_slots +
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
    m->n_places = TN_FIRST_PLACE;
    begin_todo(m);
    (void)add_reading(m, grammar->start, 0);
    m->place = complete(m, &is_whole) ? find_place(m, is_whole) : TN_PLACE_FULL;
    if (m->place == TN_PLACE_FULL) {
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
    tn_free(m->places);
    tn_free(m->next);
    tn_free(m->readings);
    tn_free(m->frames);
    tn_free(m->place_slots);
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

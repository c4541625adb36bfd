/* SPDX-License-Identifier: MIT
 *
 * Reading a text under a grammar, byte by byte.
 *
 *   reading   a state and a stack of returns
 *   place     all readings that a text can have, a set; numbered, and kept: which place a byte
 *             leads to is computed once, then looked up
 *   stack     a chain of frames; equal chains are the same frames
 *
 * Places are a cache of bounded size: when it is full all are forgotten but the one in use.  A
 * grammar of so many readings at the same time that they do not fit has to be given up.
 *
 * A reader is one request's.  Nothing but its creation allocates.
 */
#ifndef TN_READER_H
#define TN_READER_H

#include "grammar/grammar.h"

/* Numbers of places. */
enum { TN_PLACE_UNKNOWN, TN_PLACE_DEAD, TN_PLACE_FULL, TN_FIRST_PLACE };

#define TN_MAX_PLACES 2048u

struct tn_frame {
    uint32_t to;     /* state to return to */
    uint32_t parent; /* frame below; 0: none */
    uint32_t depth;  /* frames with it */
};

struct tn_reading {
    uint32_t state, frame; /* frame 0: the stack is empty */
};

struct tn_place {
    uint32_t first, n; /* readings that a byte can follow */
    uint32_t hash;
    bool is_whole; /* the text may end here */
};

struct tn_reader {
    const struct tern_grammar *grammar;
    struct tn_place *places;     /* [TN_MAX_PLACES], those below TN_FIRST_PLACE are not used */
    uint16_t *next;              /* [TN_MAX_PLACES][n_classes] */
    struct tn_reading *readings; /* of all places */
    struct tn_frame *frames;     /* frame 0 is the empty stack */
    uint32_t n_places, n_readings, n_frames;
    uint16_t *place_slots; /* hash tables: 0 is empty */
    uint32_t *frame_slots;
    struct tn_reading *todo; /* [MAX_TODO] readings of the place in the making */
    struct tn_reading *kept; /* [MAX_TODO] those of them that a byte can follow */
    uint32_t *todo_slots;    /* hash table of todo: mark and index */
    uint32_t n_todo;
    uint32_t todo_mark; /* slots with another one are empty */
    uint32_t place;     /* in use */
    uint32_t n_resets;  /* how often all was forgotten */
};

/* TERN_MEMORY; TERN_LIMIT as tern_grammar_match. The grammar outlives the reader. */
tern_status tn_reader_create(struct tn_reader **out, const struct tern_grammar *grammar,
                              struct tern_error *err);
void tn_reader_free(struct tn_reader *m);
/* Memory that it takes. */
uint64_t tn_reader_bytes(const struct tern_grammar *grammar);

/* Where a byte leads to from a place: a place, TN_PLACE_DEAD, or TN_PLACE_FULL: forget first. */
uint32_t tn_reader_compute(struct tn_reader *m, uint32_t place, uint32_t class);

static inline uint32_t tn_reader_next(struct tn_reader *m, uint32_t place, uint8_t byte)
{
    const uint32_t class = m->grammar->class_of[byte];
    const uint32_t next = m->next[place * m->grammar->n_classes + class];
    return next != TN_PLACE_UNKNOWN ? next : tn_reader_compute(m, place, class);
}

/* A place from which texts of at most n_bytes go on as from this one, which others share: strings
 * in which so many characters may still come.  It may be the place itself. */
uint32_t tn_reader_twin(struct tn_reader *m, uint32_t place, uint32_t n_bytes);

/* Forgets all places but this one, which gets another number: the result. */
uint32_t tn_reader_forget(struct tn_reader *m, uint32_t place);

/* Goes on by n bytes; *n_fit of them were possible.  TERN_LIMIT as tern_grammar_match. */
tern_status tn_reader_push(struct tn_reader *m, const char *bytes, size_t n, size_t *n_fit,
                            struct tern_error *err);

/* May the text end here?  Can it go on? */
static inline bool tn_reader_is_whole(const struct tn_reader *m)
{
    return m->places[m->place].is_whole;
}

static inline bool tn_reader_can_go_on(const struct tn_reader *m)
{
    return m->places[m->place].n > 0;
}

tern_status tn_reader_too_many(struct tern_error *err);

#endif

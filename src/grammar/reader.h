/* SPDX-License-Identifier: MIT
 *
 * Reads a text under a grammar, byte by byte.
 *
 *   configuration   a state and a stack of return states
 *   set             the configurations that are possible after a text, numbered and cached: the
 *                   transition for a byte is computed once, then looked up
 *   stack           a linked list of frames; equal stacks share their frames
 *
 * The cache has a fixed size: when it is full, every set but the current one is evicted.  A grammar
 * so ambiguous that one set does not fit is refused with TERN_LIMIT.
 *
 * Each answer has its own reader.  Only tn_reader_create allocates.
 */
#ifndef TN_READER_H
#define TN_READER_H

#include "grammar/grammar.h"

/* Numbers of sets. */
enum { TN_SET_UNKNOWN, TN_SET_DEAD, TN_SET_FULL, TN_FIRST_SET };

#define TN_MAX_SETS 2048u

struct tn_frame {
    uint32_t to;     /* state to return to */
    uint32_t parent; /* next frame down; 0: none */
    uint32_t depth;  /* length of the list from this frame */
};

struct tn_config {
    uint32_t state, frame; /* frame 0: the stack is empty */
};

struct tn_config_set {
    uint32_t first, n; /* slice of `configs`: those that a byte can follow */
    uint32_t hash;
    bool is_whole; /* the text may end here */
};

struct tn_reader {
    const struct tern_grammar *grammar;
    struct tn_config_set *sets;     /* [TN_MAX_SETS]; those below TN_FIRST_SET are unused */
    uint16_t *next;              /* [TN_MAX_SETS][n_classes] */
    struct tn_config *configs; /* pool of all sets */
    struct tn_frame *frames;     /* frame 0 is the empty stack */
    uint32_t n_sets, n_configs, n_frames;
    uint16_t *set_slots; /* hash tables: 0 is empty */
    uint32_t *frame_slots;
    struct tn_config *todo; /* [MAX_TODO] the set under construction */
    struct tn_config *kept; /* [MAX_TODO] those of them that a byte can follow */
    uint32_t *todo_slots;    /* hash table of `todo`: mark and index */
    uint32_t n_todo;
    uint32_t todo_mark; /* slots with another mark are empty */
    uint32_t set;     /* the current one */
    uint32_t n_evictions;  /* number of evictions */
};

/* TERN_MEMORY; TERN_LIMIT as tern_grammar_match. The grammar must outlive the reader. */
tern_status tn_reader_create(struct tn_reader **out, const struct tern_grammar *grammar,
                              struct tern_error *err);
void tn_reader_free(struct tn_reader *m);
/* Memory of one reader, bytes. */
uint64_t tn_reader_bytes(const struct tern_grammar *grammar);

/* The transition of a set for a class of bytes: a set, TN_SET_DEAD, or TN_SET_FULL (evict first).
 */
uint32_t tn_reader_compute(struct tn_reader *m, uint32_t set, uint32_t class);

static inline uint32_t tn_reader_next(struct tn_reader *m, uint32_t set, uint8_t byte)
{
    const uint32_t class = m->grammar->class_of[byte];
    const uint32_t next = m->next[set * m->grammar->n_classes + class];
    return next != TN_SET_UNKNOWN ? next : tn_reader_compute(m, set, class);
}

/* A set that accepts the same next n_bytes bytes as this one and that more sets share: counters of
 * string lengths with that many characters left are treated as equal.  It may be the set itself. */
uint32_t tn_reader_equivalent(struct tn_reader *m, uint32_t set, uint32_t n_bytes);

/* Evicts every set but this one.  Returns its new number. */
uint32_t tn_reader_evict(struct tn_reader *m, uint32_t set);

/* Reads n bytes; *n_fit of them were possible.  TERN_LIMIT as tern_grammar_match. */
tern_status tn_reader_push(struct tn_reader *m, const char *bytes, size_t n, size_t *n_fit,
                            struct tern_error *err);

/* May the text end here?  Can a byte follow? */
static inline bool tn_reader_is_whole(const struct tn_reader *m)
{
    return m->sets[m->set].is_whole;
}

static inline bool tn_reader_can_go_on(const struct tn_reader *m)
{
    return m->sets[m->set].n > 0;
}

tern_status tn_reader_too_many(struct tern_error *err);

#endif

/* SPDX-License-Identifier: MIT
 *
 * How many threads decode fastest: decoding is bound by memory bandwidth, so fewer may do.
 *
 * The first tokens of a run are the measurement, eight for each candidate; nothing is computed for
 * it alone and results do not depend on it.  Clocks rise and neighbours leave while it lasts, so a
 * choice other than the plan's must also beat a second measurement of the plan's, behind its own.
 * A pure state machine:
 *
 *   tn_thread_tuner_start(&c, plan->n_threads_decode, plan->n_threads_ceil);
 *   per token:  tn_thread_tuner_threads(&c) threads decode; tn_thread_tuner_feed(&c, nanoseconds);
 *   at the end: tn_thread_tuner_is_done(&c) and tn_thread_tuner_threads(&c) is the choice
 *
 * Choices can be kept in a file in the user's cache directory, one line per machine, model and
 * quota (thread_tuner.c decides which).
 */
#ifndef TN_THREAD_TUNER_H
#define TN_THREAD_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/plan.h"

enum { TN_THREAD_TUNER_TOKENS = 8, TN_THREAD_TUNER_MAX = 4 };

struct tn_thread_tuner {
    uint32_t n_candidates;
    uint32_t candidates[TN_THREAD_TUNER_MAX]; /* threads: n, about 3n/4, about n/2, the ceiling */
    uint64_t median_ns[TN_THREAD_TUNER_MAX];
    bool has_ceiling; /* the last candidate is the quota rounded up */
    uint32_t current; /* index of the candidate that runs; n_candidates when all ran */
    bool is_confirming; /* the first candidate runs again */
    uint32_t n_fed;
    uint64_t token_ns[TN_THREAD_TUNER_TOKENS];
    uint32_t choice;
    uint64_t choice_ns;
    bool is_noisy; /* others were busy: the choice is the plan's and not worth keeping */
};

/* n: planned decode threads; n_ceil: the quota rounded up, or 0. With one candidate it is done at
 * once. */
void tn_thread_tuner_start(struct tn_thread_tuner *c, uint32_t n, uint32_t n_ceil);
/* Threads for the next token. */
uint32_t tn_thread_tuner_threads(const struct tn_thread_tuner *c);
/* Time of the token that was just decoded with that many. */
void tn_thread_tuner_feed(struct tn_thread_tuner *c, uint64_t token_ns);
bool tn_thread_tuner_is_done(const struct tn_thread_tuner *c);

/* What a choice depends on: processor, cores, level, quota, planned count, model. */
uint64_t tn_thread_cache_key(const struct tern_sysinfo *machine, const struct tern_plan *plan,
                          uint64_t model_hash);

/* The file, in new memory (tn_free); NULL when there is no cache directory or TERN_CACHE=off. */
char *tn_thread_cache_path(void);
/* The choice for `key`, at most max_threads; 0 when the file has none. path may be NULL. */
uint32_t tn_thread_cache_load(const char *path, uint64_t key, uint32_t max_threads);
/* Adds or replaces the line; failures are silent, the next run measures again. */
void tn_thread_cache_save(const char *path, uint64_t key, uint32_t n_threads);

#endif

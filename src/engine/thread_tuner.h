/* SPDX-License-Identifier: MIT
 *
 * Finds how many threads decode fastest: decoding is bound by memory bandwidth, so fewer may do.
 * The first tokens of a run are the measurement, eight per candidate; results never depend on it.
 * Clocks rise and neighbours come and go meanwhile, so a choice other than the plan's must also
 * beat a second measurement of the plan's count.
 *
 * A state machine without side effects:
 *
 *   tn_thread_tuner_start(&c, plan->n_threads_decode, plan->n_threads_ceil);
 *   per token:  tn_thread_tuner_threads(&c) threads decode; tn_thread_tuner_feed(&c, nanoseconds);
 *   at the end: tn_thread_tuner_is_done(&c) and tn_thread_tuner_threads(&c) is the choice
 *
 * Choices are cached in a file, one line per machine, model and quota.
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
    uint32_t current; /* index of the running candidate; n_candidates: all have run */
    bool is_confirming; /* the first candidate runs again */
    uint32_t n_fed;
    uint64_t token_ns[TN_THREAD_TUNER_TOKENS];
    uint32_t choice;
    uint64_t choice_ns;
    bool is_noisy; /* other programs interfered: the choice is the plan's and is not cached */
};

/* n: planned decode threads; n_ceil: the quota rounded up, or 0.  With one candidate it is done at
 * once. */
void tn_thread_tuner_start(struct tn_thread_tuner *c, uint32_t n, uint32_t n_ceil);
/* Threads for the next token. */
uint32_t tn_thread_tuner_threads(const struct tn_thread_tuner *c);
/* Records the time of the last decoded token. */
void tn_thread_tuner_feed(struct tn_thread_tuner *c, uint64_t token_ns);
bool tn_thread_tuner_is_done(const struct tn_thread_tuner *c);

/* Hash of the inputs of a choice: processor, cores, level, quota, planned count, model. */
uint64_t tn_thread_cache_key(const struct tern_sysinfo *machine, const struct tern_plan *plan,
                             uint64_t model_hash);

/* Path of the cache file (tn_free); NULL: no cache directory, or TERN_CACHE=off. */
char *tn_thread_cache_path(void);
/* The cached choice for `key`, at most max_threads; 0: none.  path may be NULL. */
uint32_t tn_thread_cache_load(const char *path, uint64_t key, uint32_t max_threads);
/* Adds or replaces a line.  Failures are silent: the next run measures again. */
void tn_thread_cache_save(const char *path, uint64_t key, uint32_t n_threads);

#endif

/* SPDX-License-Identifier: MIT
 *
 * A persistent team of threads that runs parallel loops.
 *
 *   leader:  tn_team_for(n items) -> publishes the loop, takes items itself, waits for the rest
 *   worker:  spins a moment for the next loop, then sleeps; takes items while there are any
 *
 * Items are taken one by one from a shared counter, so a core that is slow or busy takes fewer; the
 * leader waits only for items that have been started, never for a worker that is not running.
 * Nothing is allocated after creation.  One loop at a time; only the thread that created the team
 * may call tn_team_for; items must not.
 */
#ifndef TN_TEAM_H
#define TN_TEAM_H

#include <stdint.h>

#include "tern/status.h"

struct tn_team;

/* n_threads counts the leader; 1 starts no thread.  If fewer threads can be started, the team is
 * smaller (tn_team_n_threads); only memory shortage fails. cpus: OS numbers of n_threads CPUs to
 * bind the threads to, the caller first, if the system supports it; NULL: the scheduler decides.
 * The caller stays bound until tn_team_free, which it must call from the same thread. */
tern_status tn_team_create(struct tn_team **out, uint32_t n_threads, const uint32_t *cpus,
                           struct tern_error *err);
void tn_team_free(struct tn_team *team);
uint32_t tn_team_n_threads(const struct tn_team *team);
/* From the next loop on uses only the first n_active threads (decode and prefill differ). */
void tn_team_set_active(struct tn_team *team, uint32_t n_active);

/* Calls fn(arg, i_item, i_thread) once for every i_item in [0, n_items), in any order, on any
 * thread; returns when all are done.  i_thread < tn_team_n_threads selects scratch memory: two
 * items never use the same number at the same time. */
typedef void tn_item_fn(void *arg, uint32_t i_item, uint32_t i_thread);
void tn_team_for(struct tn_team *team, uint32_t n_items, tn_item_fn *fn, void *arg);

/* Calls fn(arg, begin, end, i_thread) for runs of items, begin < end, that together are [0,
 * n_items).  For items that are adjacent in memory: a thread that continues with the next item
 * finds its lines prefetched, so each thread first takes a long run of a multiple of `multiple`
 * items; the last quarter is handed out one by one and evens out the load. */
typedef void tn_run_fn(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread);
void tn_team_for_runs(struct tn_team *team, uint32_t n_items, uint32_t multiple, tn_run_fn *fn,
                      void *arg);

#endif

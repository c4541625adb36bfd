/* SPDX-License-Identifier: MIT
 *
 * Measures an empty parallel loop: the time from the call until all threads have met and the call
 * returns.
 */
#include "bench/loop_cost.h"

#include <stdatomic.h>
#include <stdio.h>

#include "bench/timing.h"
#include "par/team.h"
#include "plat/plat.h"

struct meeting {
    struct tn_team *team;
    _Atomic uint32_t n_met;
};

/* An item ends when every thread has one, so that no thread can take two. */
static void meet(void *arg, uint32_t i_item, uint32_t i_thread)
{
    (void)i_item, (void)i_thread;
    struct meeting *m = arg;
    m->n_met++;
    while (m->n_met < tn_team_n_threads(m->team))
        tn_cpu_relax();
}

#define LOOPS_TOGETHER 100u /* the clock is slow compared with a loop of less than a microsecond */

static void call_loops(void *arg)
{
    struct meeting *m = arg;
    for (unsigned i = 0; i < LOOPS_TOGETHER; i++) {
        m->n_met = 0;
        tn_team_for(m->team, tn_team_n_threads(m->team), meet, m);
    }
}

void tn_bench_loop_cost(uint32_t n_threads)
{
    struct meeting m = {0};
    struct tern_error err;
    if (tn_cpu_count() < n_threads)
        return; /* they would wait for the scheduler, not for each other */
    if (tn_team_create(&m.team, n_threads, NULL, &err) != TERN_OK) {
        fprintf(stderr, "bench_kern: %s\n", err.detail);
        return;
    }
    const struct tn_timing t = tn_time_call(call_loops, &m);
    printf("parallel loop, %u thread%s: %.2f us +-%.0f %% (best %.2f)\n", n_threads,
           n_threads == 1 ? "" : "s", t.median / LOOPS_TOGETHER * 1e6, t.spread * 100,
           t.best / LOOPS_TOGETHER * 1e6);
    tn_team_free(m.team);
}

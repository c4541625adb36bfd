/* SPDX-License-Identifier: MIT
 *
 * Distribution of items without locks, for team.h.  One 64-bit word, the ticket, holds the number
 * of the loop and the number of items not yet taken:
 *
 *   ticket   63 ........ 32 31 ......... 0
 *            loop number     items left        0 left: nothing to do
 *
 * Taking an item is one compare-and-swap of that word, so the thread that took it knows that it
 * belongs to the current loop, and that this loop cannot end (and its function and argument cannot
 * change) before the item is counted as done.  A worker that was descheduled while looking finds
 * the word changed and retries.  Threads that find nothing spin briefly, because the next loop is
 * usually microseconds away, then sleep.
 */
#include "par/team.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "plat/plat.h"

#define SPIN_NS 40000u
/* After this time a spinning thread yields: on a busy machine it may occupy the CPU of the very
 * thread that it waits for. */
#define POLITE_NS 4000u
#define CACHE_LINE 64

struct worker {
    struct tn_team *team;
    struct tn_thread *thread;
    uint32_t i_thread;
    bool is_bound;
    uint32_t cpu; /* if bound */
};

struct tn_team {
    /* Written by all threads: one cache line each. */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;
    _Alignas(CACHE_LINE) _Atomic uint32_t n_done; /* finished items of this loop */

    /* The loop; stable while it has unfinished items. */
    _Alignas(CACHE_LINE) tn_item_fn *fn;
    void *arg;
    uint32_t n_items;

    _Alignas(CACHE_LINE) _Atomic uint32_t n_sleepers; /* active workers that sleep or are about
                                                       * to */
    _Atomic uint32_t n_wakes; /* sleeping workers wait for a change of it */
    _Atomic uint32_t n_active;    /* workers beyond it wait for a change of it */
    _Atomic bool is_leader_waiting; /* the leader sleeps on n_done */
    _Atomic bool is_stopping;

    uint32_t loop;
    uint32_t n_threads;
    bool is_crowded; /* more threads than CPUs: spinning would take time from working threads */
    bool is_leader_bound;
    struct tn_affinity before, bound; /* the leader's, if it is bound */
    struct worker workers[];
};

/* One iteration of a spin loop that began at *start; false when it is time to sleep. */
static bool spin(const struct tn_team *team, uint64_t *start)
{
    uint64_t now = tn_now_ns();
    if (*start == 0)
        *start = now;
    if (team->is_crowded || now - *start > POLITE_NS)
        tn_thread_yield();
    else
        for (int i = 0; i < 4; i++)
            tn_cpu_relax();
    return now - *start < SPIN_NS;
}

/* Takes one item; false if there is none for this thread. */
static bool take_item(struct tn_team *team, uint32_t i_thread, uint32_t *n_left)
{
    uint64_t ticket = atomic_load(&team->ticket);
    for (;;) {
        *n_left = (uint32_t)ticket;
        /* Order matters: n_active was set before the loop that the ticket belongs to. */
        if (*n_left == 0 || i_thread >= atomic_load(&team->n_active))
            return false;
        if (atomic_compare_exchange_weak(&team->ticket, &ticket, ticket - 1))
            return true;
    }
}

/* Runs items until none is left. */
static void run_items(struct tn_team *team, uint32_t i_thread)
{
    uint32_t n = 0, n_items = 0, n_left;
    while (take_item(team, i_thread, &n_left)) {
        n_items = team->n_items;
        team->fn(team->arg, n_items - n_left, i_thread);
        n++;
    }
    if (n == 0)
        return;
    /* The last add ends the loop: its fields may not be read afterwards. */
    if (atomic_fetch_add(&team->n_done, n) + n == n_items && atomic_load(&team->is_leader_waiting))
        tn_wake_all(&team->n_done);
}

/* ---- workers ---- */

/* Sleeps until this worker becomes active. */
static void wait_until_active(struct tn_team *team, uint32_t i_thread)
{
    uint32_t n;
    while (i_thread >= (n = atomic_load(&team->n_active)) && !atomic_load(&team->is_stopping))
        tn_wait_on(&team->n_active, n, 0);
}

/* Announces itself as a sleeper, then looks once more: either it sees the new loop, or the leader
 * sees the sleeper and changes n_wakes. */
static void sleep_until_published(struct tn_team *team)
{
    uint32_t n = atomic_load(&team->n_wakes);
    atomic_fetch_add(&team->n_sleepers, 1);
    if ((uint32_t)atomic_load(&team->ticket) == 0 && !atomic_load(&team->is_stopping))
        tn_wait_on(&team->n_wakes, n, 0);
    atomic_fetch_sub(&team->n_sleepers, 1);
}

static void run_worker(void *arg)
{
    const struct worker *worker = arg;
    struct tn_team *team = worker->team;
    uint64_t spin_start = 0;
    if (worker->is_bound)
        tn_thread_bind(worker->cpu);
    while (!atomic_load(&team->is_stopping)) {
        wait_until_active(team, worker->i_thread);
        if ((uint32_t)atomic_load(&team->ticket) != 0) {
            run_items(team, worker->i_thread);
            spin_start = 0;
        } else if (!spin(team, &spin_start)) {
            sleep_until_published(team);
            spin_start = 0;
        }
    }
}

/* ---- the leader ---- */

static void bind_leader(struct tn_team *team, uint32_t cpu)
{
    team->is_leader_bound = tn_thread_get_affinity(&team->before) && tn_thread_bind(cpu) &&
                            tn_thread_get_affinity(&team->bound);
}

/* Restores the caller's affinity, unless it was changed meanwhile. */
static void release_leader(const struct tn_team *team)
{
    struct tn_affinity now;
    if (team->is_leader_bound && tn_thread_get_affinity(&now) &&
        memcmp(&now, &team->bound, sizeof now) == 0)
        tn_thread_set_affinity(&team->before);
}

tern_status tn_team_create(struct tn_team **out, uint32_t n_threads, const uint32_t *cpus,
                           struct tern_error *err)
{
    *out = NULL;
    n_threads = TN_MAX(n_threads, 1u);
    size_t n_bytes = sizeof(struct tn_team) + n_threads * sizeof(struct worker);
    struct tn_team *team = tn_alloc_aligned(tn_align_up(n_bytes, CACHE_LINE), CACHE_LINE);
    if (!team)
        return tn_fail(err, TERN_MEMORY, "no memory for a team of %u threads", n_threads);
    *team = (struct tn_team){.n_active = n_threads, .is_crowded = n_threads > tn_cpu_count()};
    team->n_threads = 1;
    for (; team->n_threads < n_threads; team->n_threads++) {
        struct worker *worker = &team->workers[team->n_threads];
        *worker = (struct worker){.team = team, .i_thread = team->n_threads};
        if (cpus) {
            worker->is_bound = true;
            worker->cpu = cpus[team->n_threads];
        }
        worker->thread = tn_thread_start(run_worker, worker);
        if (!worker->thread)
            break;
    }
    /* Bound last, because threads inherit the affinity of the thread that starts them. */
    if (cpus)
        bind_leader(team, cpus[0]);
    atomic_store(&team->n_active, team->n_threads);
    *out = team;
    return tn_ok(err);
}

void tn_team_free(struct tn_team *team)
{
    if (!team)
        return;
    atomic_store(&team->is_stopping, true);
    atomic_fetch_add(&team->n_wakes, 1);
    tn_wake_all(&team->n_wakes);
    atomic_store(&team->n_active, 0);
    tn_wake_all(&team->n_active);
    for (uint32_t i = 1; i < team->n_threads; i++)
        tn_thread_join(team->workers[i].thread);
    release_leader(team);
    tn_free_aligned(team);
}

uint32_t tn_team_n_threads(const struct tn_team *team)
{
    return team->n_threads;
}

void tn_team_set_active(struct tn_team *team, uint32_t n_active)
{
    n_active = TN_MAX(TN_MIN(n_active, team->n_threads), 1u);
    if (atomic_exchange(&team->n_active, n_active) != n_active)
        tn_wake_all(&team->n_active);
}

static void publish(struct tn_team *team, uint32_t n_items, tn_item_fn *fn, void *arg)
{
    team->fn = fn;
    team->arg = arg;
    team->n_items = n_items;
    atomic_store(&team->n_done, 0);
    atomic_store(&team->ticket, (uint64_t)++team->loop << 32 | n_items);
    if (atomic_load(&team->n_sleepers) > 0) {
        atomic_fetch_add(&team->n_wakes, 1);
        tn_wake_all(&team->n_wakes);
    }
}

static void wait_until_done(struct tn_team *team)
{
    uint32_t n_done;
    uint64_t spin_start = 0;
    while ((n_done = atomic_load(&team->n_done)) != team->n_items) {
        if (spin(team, &spin_start))
            continue;
        /* Announced first, as in sleep_until_published. */
        atomic_store(&team->is_leader_waiting, true);
        n_done = atomic_load(&team->n_done);
        if (n_done != team->n_items)
            tn_wait_on(&team->n_done, n_done, 0);
        atomic_store(&team->is_leader_waiting, false);
    }
}

void tn_team_for(struct tn_team *team, uint32_t n_items, tn_item_fn *fn, void *arg)
{
    if (n_items <= 1 || atomic_load(&team->n_active) == 1) {
        for (uint32_t i = 0; i < n_items; i++)
            fn(arg, i, 0);
        return;
    }
    publish(team, n_items, fn, arg);
    run_items(team, 0);
    wait_until_done(team);
}

struct runs {
    tn_run_fn *fn;
    void *arg;
    uint32_t n_long, length; /* the long runs come first */
};

static void run_of_items(void *arg, uint32_t i, uint32_t i_thread)
{
    const struct runs *runs = arg;
    const uint32_t n_before = TN_MIN(i, runs->n_long); /* number of long runs before this one */
    const uint32_t begin = n_before * runs->length + (i - n_before);
    runs->fn(runs->arg, begin, begin + (i < runs->n_long ? runs->length : 1), i_thread);
}

void tn_team_for_runs(struct tn_team *team, uint32_t n_items, uint32_t multiple, tn_run_fn *fn,
                      void *arg)
{
    const uint32_t n_active = atomic_load(&team->n_active);
    struct runs runs = {.fn = fn, .arg = arg};
    runs.length = n_active == 1 ? n_items : n_items * 3 / 4 / n_active / multiple * multiple;
    runs.n_long = runs.length > 0 ? n_active : 0; /* few items: hand them out one by one */
    tn_team_for(team, runs.n_long + n_items - runs.n_long * runs.length, run_of_items, &runs);
}

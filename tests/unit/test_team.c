/* SPDX-License-Identifier: MIT
 *
 * The thread team: every item runs once, on any number of threads, with pauses, with fewer active
 * threads, with many consecutive loops; idle threads sleep.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "failing_alloc.h"
#include "par/team.h"
#include "plat/plat.h"

#define MAX_ITEMS 4096u
#define MAX_THREADS 16u

struct loop {
    uint32_t n_items;
    uint32_t n_threads; /* upper bound of i_thread */
    uint32_t n_calls[MAX_ITEMS];            /* not atomic: an item runs once, on one thread */
    _Atomic uint32_t is_busy[MAX_THREADS];  /* i_thread is never used by two threads at a time */
    _Atomic uint32_t n_wrong;
    uint32_t multiple;      /* granularity of long runs */
    _Atomic uint32_t n_long; /* runs of more than one item */
};

static void count_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    struct loop *loop = arg;
    if (i_item >= loop->n_items || i_thread >= loop->n_threads) {
        atomic_fetch_add(&loop->n_wrong, 1);
        return;
    }
    if (atomic_exchange(&loop->is_busy[i_thread], 1))
        atomic_fetch_add(&loop->n_wrong, 1);
    loop->n_calls[i_item]++;
    atomic_store(&loop->is_busy[i_thread], 0);
}

static void run_and_check(struct tn_team *team, struct loop *loop, uint32_t n_items,
                          uint32_t n_threads)
{
    loop->n_items = n_items;
    loop->n_threads = n_threads;
    memset(loop->n_calls, 0, n_items * sizeof loop->n_calls[0]);
    tn_team_for(team, n_items, count_item, loop);
    for (uint32_t i = 0; i < n_items; i++)
        assert_int_equal(loop->n_calls[i], 1);
    assert_int_equal(loop->n_wrong, 0);
}

static struct tn_team *make_team(uint32_t n_threads)
{
    struct tn_team *team;
    struct tern_error err;
    assert_int_equal(tn_team_create(&team, n_threads, NULL, &err), TERN_OK);
    assert_int_equal(tn_team_n_threads(team), n_threads);
    return team;
}

static void every_item_runs_once(void **state)
{
    (void)state;
    static struct loop loop;
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    for (uint32_t n_threads = 1; n_threads <= MAX_THREADS; n_threads++) {
        struct tn_team *team = make_team(n_threads);
        for (int i = 0; i < 300; i++)
            run_and_check(team, &loop, (uint32_t)(tn_rng_next(&rng) % (i % 10 ? 40 : MAX_ITEMS)),
                          n_threads);
        tn_team_free(team);
    }
}

static void count_run(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    struct loop *loop = arg;
    const uint32_t n = end - begin;
    if (begin >= end ||
        (n > 1 && n < loop->n_items && (n % loop->multiple || begin % loop->multiple)))
        atomic_fetch_add(&loop->n_wrong, 1);
    if (n > 1)
        atomic_fetch_add(&loop->n_long, 1);
    for (uint32_t i = begin; i < end; i++)
        count_item(loop, i, i_thread);
}

/* Checks that every item ran once, and that each active thread got a long run if there are enough
 * items. */
static void check_runs(struct tn_team *team, struct loop *loop, uint32_t n_active)
{
    tn_team_set_active(team, n_active);
    loop->n_threads = n_active;
    memset(loop->n_calls, 0, sizeof loop->n_calls);
    loop->n_long = 0;
    tn_team_for_runs(team, loop->n_items, loop->multiple, count_run, loop);
    for (uint32_t i = 0; i < loop->n_items; i++)
        assert_int_equal(loop->n_calls[i], 1);
    assert_int_equal(loop->n_wrong, 0);
    if (n_active == 1)
        assert_int_equal(loop->n_long, loop->n_items > 1);
    else if (loop->n_items >= 3 * n_active * loop->multiple)
        assert_int_equal(loop->n_long, n_active);
}

static void runs_cover_all_items(void **state)
{
    (void)state;
    static struct loop loop;
    for (uint32_t n_threads = 1; n_threads <= MAX_THREADS; n_threads++) {
        struct tn_team *team = make_team(n_threads);
        for (loop.multiple = 1; loop.multiple <= 4; loop.multiple += 3)
            for (loop.n_items = 0; loop.n_items < 300; loop.n_items += 1 + loop.n_items / 40) {
                check_runs(team, &loop, 1);
                check_runs(team, &loop, (n_threads + 1) / 2);
                check_runs(team, &loop, n_threads);
            }
        tn_team_free(team);
    }
}

static void loops_after_sleep_run(void **state)
{
    (void)state;
    static struct loop loop;
    struct tn_team *team = make_team(4);
    struct tn_rng rng;
    tn_rng_seed(&rng, 2);
    for (int i = 0; i < 200; i++) {
        /* About the time after which workers fall asleep, when a lost wake-up is most likely. */
        uint64_t pause = tn_rng_next(&rng) % 100000;
        for (uint64_t start = tn_now_ns(); tn_now_ns() - start < pause;)
            tn_cpu_relax();
        run_and_check(team, &loop, 1 + (uint32_t)(tn_rng_next(&rng) % 64), 4);
    }
    tn_team_free(team);
}

static void only_active_threads_run(void **state)
{
    (void)state;
    static struct loop loop;
    struct tn_team *team = make_team(8);
    struct tn_rng rng;
    tn_rng_seed(&rng, 3);
    for (int i = 0; i < 500; i++) {
        uint32_t n_active = 1 + (uint32_t)(tn_rng_next(&rng) % 8);
        tn_team_set_active(team, n_active);
        run_and_check(team, &loop, 1 + (uint32_t)(tn_rng_next(&rng) % 100), n_active);
    }
    tn_team_set_active(team, 0); /* the leader always runs */
    run_and_check(team, &loop, 100, 1);
    tn_team_set_active(team, 99);
    run_and_check(team, &loop, 100, 8);
    tn_team_free(team);
}

/* All threads are in one loop at the same time: items that wait for each other finish. */
struct meeting {
    _Atomic uint32_t n_there;
    uint32_t n_needed;
};

static void meet(void *arg, uint32_t i_item, uint32_t i_thread)
{
    (void)i_item, (void)i_thread;
    struct meeting *meeting = arg;
    atomic_fetch_add(&meeting->n_there, 1);
    while (atomic_load(&meeting->n_there) < meeting->n_needed)
        tn_thread_yield();
}

static void all_threads_take_part(void **state)
{
    (void)state;
    for (uint32_t n_threads = 2; n_threads <= MAX_THREADS; n_threads += 7) {
        struct tn_team *team = make_team(n_threads);
        for (int i = 0; i < 20; i++) {
            struct meeting meeting = {.n_needed = n_threads};
            tn_team_for(team, n_threads, meet, &meeting);
            assert_int_equal(meeting.n_there, n_threads);
        }
        tn_team_free(team);
    }
}

static void no_items_no_calls(void **state)
{
    (void)state;
    static struct loop loop;
    struct tn_team *team = make_team(2);
    run_and_check(team, &loop, 0, 2);
    run_and_check(team, &loop, 1, 1);
    tn_team_free(team);
    tn_team_free(NULL);
}

/* ---- binding ---- */

/* Lists up to n_max CPUs of an affinity.  Returns their number. */
static uint32_t list_cpus(uint32_t *cpus, uint32_t n_max, const struct tn_affinity *affinity)
{
    uint32_t n = 0;
    for (uint32_t cpu = 0; cpu < TN_AFFINITY_WORDS * 64 && n < n_max; cpu++)
        if (affinity->words[cpu / 64] >> cpu % 64 & 1)
            cpus[n++] = cpu;
    return n;
}

static struct tn_team *bind_team(uint32_t cpu)
{
    struct tn_team *team;
    struct tn_affinity now;
    struct tern_error err;
    uint32_t mine;
    const uint32_t cpus[] = {cpu, cpu};
    assert_int_equal(tn_team_create(&team, 2, cpus, &err), TERN_OK);
    assert_true(tn_thread_get_affinity(&now));
    assert_int_equal(list_cpus(&mine, 1, &now), 1);
    assert_int_equal(mine, cpu);
    return team;
}

static void assert_affinity(const struct tn_affinity *expected)
{
    struct tn_affinity now;
    assert_true(tn_thread_get_affinity(&now));
    assert_memory_equal(&now, expected, sizeof now);
}

static void the_caller_gets_its_cpus_back(void **state)
{
    (void)state;
    static struct loop loop;
    struct tn_affinity before;
    uint32_t cpus[2] = {0};
    if (!tn_thread_get_affinity(&before) || list_cpus(cpus, 2, &before) < 2 ||
        !tn_thread_bind(cpus[0]) || !tn_thread_set_affinity(&before))
        skip(); /* threads cannot be bound here, or there is one CPU */
    struct tn_team *first = bind_team(cpus[0]);
    run_and_check(first, &loop, 100, 2);
    tn_team_free(first);
    assert_affinity(&before);

    /* Two teams of one thread, freed in both orders. */
    for (int last_first = 0; last_first < 2; last_first++) {
        first = bind_team(cpus[0]);
        struct tn_team *second = bind_team(cpus[0]);
        tn_team_free(last_first ? second : first);
        tn_team_free(last_first ? first : second);
        assert_affinity(&before);
    }

    /* An affinity that the caller sets meanwhile is kept. */
    struct tn_affinity chosen;
    first = bind_team(cpus[0]);
    assert_true(tn_thread_bind(cpus[1]) && tn_thread_get_affinity(&chosen));
    tn_team_free(first);
    assert_affinity(&chosen);
    assert_true(tn_thread_set_affinity(&before));
}

static void memory_shortage_fails_or_shrinks(void **state)
{
    (void)state;
    static struct loop loop;
    for (uint32_t n_allowed = 0; n_allowed < 4; n_allowed++) {
        struct tn_team *team;
        struct tern_error err;
        fail_alloc_after(n_allowed);
        tern_status status = tn_team_create(&team, 8, NULL, &err);
        fail_alloc_stop();
        assert_int_equal(status, n_allowed == 0 ? TERN_MEMORY : TERN_OK);
        if (n_allowed == 0) {
            assert_null(team);
            continue;
        }
        assert_int_equal(tn_team_n_threads(team), n_allowed);
        run_and_check(team, &loop, 50, n_allowed);
        tn_team_free(team);
    }
}

#if !defined(_WIN32) /* on Windows clock() is wall-clock time */

static void an_idle_team_uses_no_cpu_time(void **state)
{
    (void)state;
    static struct loop loop;
    struct tn_team *team = make_team(8);
    _Atomic uint32_t never = 0;
    run_and_check(team, &loop, 100, 8);
    /* They stop spinning soon, but a busy machine may take a while to schedule them. */
    double used = 1;
    for (int i = 0; i < 300 && used >= 0.02; i++) {
        const clock_t before = clock();
        for (uint64_t start = tn_now_ns(); tn_now_ns() - start < 200000000;)
            tn_wait_on(&never, 0, 200000000);
        used = (double)(clock() - before) / CLOCKS_PER_SEC;
    }
    assert_true(used < 0.02);
    run_and_check(team, &loop, 100, 8);
    tn_team_free(team);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_once),
        cmocka_unit_test(runs_cover_all_items),
        cmocka_unit_test(loops_after_sleep_run),
        cmocka_unit_test(only_active_threads_run),
        cmocka_unit_test(all_threads_take_part),
        cmocka_unit_test(no_items_no_calls),
        cmocka_unit_test(the_caller_gets_its_cpus_back),
        cmocka_unit_test(memory_shortage_fails_or_shrinks),
#if !defined(_WIN32)
        cmocka_unit_test(an_idle_team_uses_no_cpu_time),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

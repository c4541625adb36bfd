/* SPDX-License-Identifier: MIT
 *
 * The measurement of thread counts on fictitious machines, and its cache file.
 *
 * Costs are functions of the thread count; no clock is involved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "engine/thread_tuner.h"
#include "plat/plat.h"
#include "plat/terminal.h"

/* Feeds a machine whose token takes cost(threads) until the choice is made. */
static uint32_t run(uint32_t n, uint32_t n_ceil, uint64_t (*cost)(uint32_t n_threads),
                    uint32_t *n_tokens)
{
    struct tn_thread_tuner c;
    tn_thread_tuner_start(&c, n, n_ceil);
    *n_tokens = 0;
    while (!tn_thread_tuner_is_done(&c)) {
        tn_thread_tuner_feed(&c, cost(tn_thread_tuner_threads(&c)));
        assert_true(++*n_tokens <= (TN_THREAD_TUNER_MAX + 1) * TN_THREAD_TUNER_TOKENS);
    }
    return tn_thread_tuner_threads(&c);
}

static uint64_t scales(uint32_t n)
{
    return 80000000 / n;
}

static uint64_t saturates_at_4(uint32_t n)
{
    return n < 4 ? 80000000 / n : 20000000 - n * 1000;
}

static uint64_t gets_worse(uint32_t n)
{
    return n * 10000000;
}

static uint64_t spikes(uint32_t n)
{
    static uint32_t i;
    return i++ % 4 == 3 ? 900000000 : 80000000 / n;
}

static void picks_the_smallest_that_is_fast(void **state)
{
    (void)state;
    uint32_t n_tokens;
    assert_int_equal(run(8, 0, scales, &n_tokens), 8);
    assert_int_equal(run(8, 0, saturates_at_4, &n_tokens), 4);
    assert_int_equal(run(8, 0, gets_worse, &n_tokens), 4);
    assert_int_equal(run(16, 0, gets_worse, &n_tokens), 8);
    assert_int_equal(run(2, 0, scales, &n_tokens), 2);
    assert_int_equal(run(2, 0, gets_worse, &n_tokens), 1);
    assert_int_equal(run(3, 0, gets_worse, &n_tokens), 2);
    assert_int_equal(run(8, 0, spikes, &n_tokens), 8);
}

/* As gets_worse, but another program needs the processor now and then. */
static uint64_t disturbed(uint32_t n)
{
    static uint32_t i;
    return n * 10000000 + (i++ % 4 == 0 ? 90000000 * n : 0);
}

static uint64_t one_spike(uint32_t n)
{
    static uint32_t i;
    return n * 10000000 + (i++ % 8 == 0 ? 900000000 : 0);
}

static void noise_decides_nothing(void **state)
{
    (void)state;
    uint32_t n_tokens;
    assert_int_equal(run(8, 0, disturbed, &n_tokens), 8);
    assert_int_equal(run(8, 0, one_spike, &n_tokens), 4);
    struct tn_thread_tuner c;
    tn_thread_tuner_start(&c, 2, 0);
    for (int i = 0; !tn_thread_tuner_is_done(&c); i++)
        tn_thread_tuner_feed(&c, i % 4 ? 1000 : 2000);
    assert_true(c.is_noisy);
}

/* One thread seems as fast as two at first, but only the clock rose. */
static void a_rising_clock_decides_nothing(void **state)
{
    (void)state;
    struct tn_thread_tuner c;
    tn_thread_tuner_start(&c, 2, 0);
    for (uint32_t i = 0; !tn_thread_tuner_is_done(&c); i++) {
        uint64_t work = i < TN_THREAD_TUNER_TOKENS ? 2200 : 1500;
        tn_thread_tuner_feed(&c, tn_thread_tuner_threads(&c) == 1 ? 1500 : work / 2 + 400);
    }
    assert_int_equal(tn_thread_tuner_threads(&c), 2);
    assert_true(c.is_noisy);
    tn_thread_tuner_start(&c, 1, 2); /* the same for the rounded-up quota */
    for (uint32_t i = 0; !tn_thread_tuner_is_done(&c); i++)
        tn_thread_tuner_feed(&c, i < TN_THREAD_TUNER_TOKENS ? 1500 : 1000);
    assert_int_equal(tn_thread_tuner_threads(&c), 1);
    assert_true(c.is_noisy);
}

static void costs_few_tokens(void **state)
{
    (void)state;
    uint32_t n_tokens;
    run(8, 0, saturates_at_4, &n_tokens); /* 8, 6, 4, and 8 again to confirm 4 */
    assert_int_equal(n_tokens, 4 * TN_THREAD_TUNER_TOKENS);
    run(8, 0, scales, &n_tokens); /* 6 is 33 % and 4 is 100 % slower: two tokens each */
    assert_int_equal(n_tokens, TN_THREAD_TUNER_TOKENS + 4);
    assert_int_equal(run(1, 0, scales, &n_tokens), 1);
    assert_int_equal(n_tokens, 0);
}

static uint64_t ceiling_4_percent(uint32_t n)
{
    return n == 2 ? 9600 : 10000;
}

static uint64_t ceiling_2_percent(uint32_t n)
{
    return n == 2 ? 9800 : 10000;
}

static void ceiling_must_be_clearly_better(void **state)
{
    (void)state;
    uint32_t n_tokens;
    assert_int_equal(run(1, 2, ceiling_4_percent, &n_tokens), 2);
    assert_int_equal(run(1, 2, ceiling_2_percent, &n_tokens), 1);
    assert_int_equal(run(4, 5, scales, &n_tokens), 5);
    assert_int_equal(run(4, 5, gets_worse, &n_tokens), 2);
}

static uint64_t three_percent(uint32_t n)
{
    return n == 4 ? 10000 : n == 3 ? 10300 : 10301;
}

static void three_percent_is_exact(void **state)
{
    (void)state;
    uint32_t n_tokens;
    assert_int_equal(run(4, 0, three_percent, &n_tokens), 3);
}

/* ---- the file ---- */

static const char path[] = TERN_BUILD_DIR "/test_thread_tuner.cache";

static void write_text(const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

static void file_remembers(void **state)
{
    (void)state;
    tn_file_remove(path);
    assert_int_equal(tn_thread_cache_load(path, 1, 256), 0);
    tn_thread_cache_save(path, 1, 6);
    tn_thread_cache_save(path, UINT64_MAX, 256);
    tn_thread_cache_save(path, 1, 4); /* replaces the line */
    assert_int_equal(tn_thread_cache_load(path, 1, 256), 4);
    assert_int_equal(tn_thread_cache_load(path, 1, 3), 0); /* more than currently allowed */
    assert_int_equal(tn_thread_cache_load(path, UINT64_MAX, 256), 256);
    assert_int_equal(tn_thread_cache_load(path, 2, 256), 0);
    /* The oldest lines are dropped. */
    for (uint64_t key = 100; key < 200; key++)
        tn_thread_cache_save(path, key, 2);
    assert_int_equal(tn_thread_cache_load(path, 1, 256), 0);
    assert_int_equal(tn_thread_cache_load(path, 136, 256), 2);
    assert_int_equal(tn_thread_cache_load(path, 135, 256), 0);
    tn_terminal_note_interrupt(); /* a Ctrl-C loses none of the other lines */
    tn_thread_cache_save(path, 1, 3);
    tn_interrupt_clear();
    assert_int_equal(tn_thread_cache_load(path, 190, 256), 2);
    tn_file_remove(path);
    tn_thread_cache_save(NULL, 1, 6);
    assert_int_equal(tn_thread_cache_load(NULL, 1, 256), 0);
}

static void damaged_files_are_ignored(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "tern threads 2\n0000000000000001 6\n",
        "tern threads 1\n0000000000000001 0\n",
        "tern threads 1\n0000000000000001 257\n",
        "tern threads 1\n0000000000000001 99999999999999999999\n",
        "tern threads 1\n0000000000000001 -6\n",
        "tern threads 1\n0000000000000001 6",
        "tern threads 1\n000000000000001 6\n",
        "tern threads 1\n000000000000000G 6\n",
    };
    for (size_t i = 0; i < TN_COUNT_OF(texts); i++) {
        write_text(texts[i]);
        assert_int_equal(tn_thread_cache_load(path, 1, 256), 0);
        tn_thread_cache_save(path, 1, 5);
        assert_int_equal(tn_thread_cache_load(path, 1, 256), 5);
    }
    tn_file_remove(path);
}

static void keys_distinguish_machines(void **state)
{
    (void)state;
    static struct tern_sysinfo machine;
    static struct tern_plan plan;
    snprintf(machine.cpu_name, sizeof machine.cpu_name, "Example CPU");
    machine.n_cores = 2;
    plan.cpu_level = "avx2";
    plan.n_threads_decode = 2;
    uint64_t key = tn_thread_cache_key(&machine, &plan, 7);
    assert_true(key == tn_thread_cache_key(&machine, &plan, 7));
    assert_true(key != tn_thread_cache_key(&machine, &plan, 8));
    machine.quota_millicpus = 1500;
    assert_true(key != tn_thread_cache_key(&machine, &plan, 7));
    machine.quota_millicpus = 0;
    machine.cores[1].os_cpu = 3;
    assert_true(key != tn_thread_cache_key(&machine, &plan, 7));
    machine.cores[1].os_cpu = 0;
    plan.cpu_level = "ref";
    assert_true(key != tn_thread_cache_key(&machine, &plan, 7));
    plan.cpu_level = "avx2";
    assert_true(key == tn_thread_cache_key(&machine, &plan, 7));
}

static void cache_can_be_switched_off(void **state)
{
    (void)state;
#if defined(_WIN32)
    _putenv_s("TERN_CACHE", "off");
#else
    setenv("TERN_CACHE", "off", 1);
#endif
    assert_null(tn_thread_cache_path());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_the_smallest_that_is_fast),
        cmocka_unit_test(noise_decides_nothing),
        cmocka_unit_test(a_rising_clock_decides_nothing),
        cmocka_unit_test(costs_few_tokens),
        cmocka_unit_test(ceiling_must_be_clearly_better),
        cmocka_unit_test(three_percent_is_exact),
        cmocka_unit_test(file_remembers),
        cmocka_unit_test(damaged_files_are_ignored),
        cmocka_unit_test(keys_distinguish_machines),
        cmocka_unit_test(cache_can_be_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

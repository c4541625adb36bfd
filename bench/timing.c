/* SPDX-License-Identifier: MIT
 *
 * Runs a function repeatedly and computes median, spread and best of the times.  The spread is the
 * interquartile range, which a single interrupted run does not change.
 */
#include "bench/timing.h"

#include <stdint.h>
#include <stdlib.h>

#include "plat/plat.h"

#define N_RUNS 21u
#define RUN_NS 1500000u

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct tn_timing tn_time_call(void (*call)(void *arg), void *arg)
{
    double t[N_RUNS];
    call(arg);
    for (unsigned i = 0; i < N_RUNS; i++) {
        unsigned n = 0;
        const uint64_t begin = tn_now_ns();
        uint64_t end;
        do {
            call(arg);
            n++;
            end = tn_now_ns();
        } while (end - begin < RUN_NS);
        t[i] = (double)(end - begin) * 1e-9 / n;
    }
    qsort(t, N_RUNS, sizeof t[0], by_value);
    return (struct tn_timing){t[N_RUNS / 2], t[0],
                              (t[N_RUNS * 3 / 4] - t[N_RUNS / 4]) / t[N_RUNS / 2]};
}

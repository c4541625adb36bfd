/* SPDX-License-Identifier: MIT
 *
 * Processor time, for tests that tell linear algorithms from quadratic ones, even on a machine that
 * is busy with other work.
 */
#ifndef TN_TESTS_CPU_SECONDS_H
#define TN_TESTS_CPU_SECONDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plat/plat.h"

/* Processor time of this process.  clock() is not used: on Windows it counts elapsed time. */
static inline double cpu_seconds(void)
{
    struct tn_cpu_time now;
    assert_true(tn_cpu_time_now(&now));
    return (double)now.own_ns * 1e-9;
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * Measures the time of a call repeatedly, and its spread.  Shared by the files of bench_kern, whose
 * results it makes comparable.
 */
#ifndef TN_BENCH_TIMING_H
#define TN_BENCH_TIMING_H

/* Seconds of one call. */
struct tn_timing {
    double median;
    double best;
    double spread; /* between the quartiles, relative to the median */
};

/* Of 21 runs; a run repeats call(arg) for at least 1.5 ms. */
struct tn_timing tn_time_call(void (*call)(void *arg), void *arg);

#endif

/* SPDX-License-Identifier: MIT
 *
 * Measures whether the time of rejecting a wrong key reveals how much of it is right. usage:
 * bench_guard [MEASUREMENTS]      (default 200000)
 *
 * Two classes of keys in random order, one with a wrong first byte and one with a wrong last byte,
 * go through the guard of the server.  Welch's t of their times, without the slowest tenth, shows
 * whether they differ: beyond 4.5 they do (as in "dudect", Reparaz et al., 2017).  The same is
 * measured for a comparison that stops at the first difference, which shows the sensitivity of the
 * test. Prints one line of JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "plat/plat.h"
#include "server/guard.h"

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
#define REPEATS 16 /* checks per measurement, because clocks have a coarse resolution */

static const struct tn_guard guard = {.key = KEY};
static struct tn_http_request requests[2]; /* wrong in the first byte, wrong in the last */

static void check_request(uint32_t class)
{
    struct tn_guard_result result;
    tn_guard_look(&guard, &requests[class], &result);
    if (result.status != 401)
        abort();
}

static bool is_same_early(const char *key, const char *given, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (*(const volatile char *)(key + i) != given[i])
            return false;
    return true;
}

static void compare_early(uint32_t class)
{
    struct tn_http_text field = tn_http_field(&requests[class], "authorization", NULL);
    if (is_same_early(KEY, field.data + 7, sizeof KEY - 1))
        abort();
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct sample {
    double n, mean, m2;
};

static void add(struct sample *s, double x)
{
    const double delta = x - s->mean;
    s->n++;
    s->mean += delta / s->n;
    s->m2 += delta * (x - s->mean);
}

/* Welch's t, and the nanoseconds by which the second class takes longer. */
static double t_of(const double *ns, const uint8_t *classes, size_t n, double limit, double *longer)
{
    struct sample s[2] = {{0}};
    for (size_t i = 0; i < n; i++)
        if (ns[i] <= limit)
            add(&s[classes[i]], ns[i]);
    double variance = 0;
    for (int c = 0; c < 2; c++)
        variance += s[c].m2 / (s[c].n - 1) / s[c].n;
    *longer = s[1].mean - s[0].mean;
    return *longer / sqrt(variance);
}

static double measure(void (*call)(uint32_t), size_t n, double *longer)
{
    struct tn_rng rng;
    double *ns = malloc(2 * n * sizeof *ns), *sorted = ns + n;
    uint8_t *classes = malloc(n);
    if (!ns || !classes)
        exit(3);
    tn_rng_seed(&rng, 1);
    for (size_t i = 0; i < n; i++) {
        classes[i] = (uint8_t)(tn_rng_next(&rng) >> 63);
        const uint64_t began = tn_now_ns();
        for (int k = 0; k < REPEATS; k++)
            call(classes[i]);
        ns[i] = (double)(tn_now_ns() - began) / REPEATS;
    }
    memcpy(sorted, ns, n * sizeof *ns);
    qsort(sorted, n, sizeof *sorted, by_value);
    const double t = t_of(ns, classes, n, sorted[n * 9 / 10], longer);
    free(ns);
    free(classes);
    return t;
}

int main(int argc, char **argv)
{
    const size_t n = argc > 1 ? (size_t)atol(argv[1]) : 200000;
    static char heads[2][sizeof HEAD KEY "\r\n\r\n"];
    double longer, longer_early;
    if (n < 1000) {
        fputs("usage: bench_guard [MEASUREMENTS], 1000 or more\n", stderr);
        return 2;
    }
    for (int c = 0; c < 2; c++) {
        memcpy(heads[c], HEAD KEY "\r\n\r\n", sizeof heads[c]);
        heads[c][sizeof HEAD - 1 + (c ? sizeof KEY - 2 : 0)] ^= 1;
        tn_http_feed(&requests[c], heads[c], sizeof heads[c] - 1);
    }
    const double t = measure(check_request, n, &longer);
    const double t_early = measure(compare_early, n, &longer_early);
    printf("{\"measurements\":%zu,\"t\":%.2f,\"ns\":%.2f,\"t_early_exit\":%.2f,"
           "\"ns_early_exit\":%.2f}\n", n, t, longer, t_early, longer_early);
    for (int c = 0; c < 2; c++)
        tn_http_fini(&requests[c]);
    return 0;
}

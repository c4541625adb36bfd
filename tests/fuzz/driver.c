/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target without libFuzzer.
 *
 *   TARGET [--seconds N] [--first I] [--count N] [FILES...]
 *
 * Runs every seed (FILES, then those of the target), then mutations of them.  Input number I
 * depends on the seeds and I only.  I is kept in TARGET.last while it runs, so that after a crash
 * `--first I --count 1` repeats it.
 */
#include "fuzz/fuzz.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "plat/plat.h"

#define MAX_SEEDS 256
#define MAX_INPUT ((size_t)256 << 10)

static struct {
    uint8_t *bytes;
    size_t n;
} seeds[MAX_SEEDS];
static size_t n_seeds;

static void add_seed(const void *bytes, size_t n)
{
    if (n_seeds == MAX_SEEDS || n > MAX_INPUT)
        return;
    seeds[n_seeds].bytes = tn_alloc(n);
    seeds[n_seeds].n = n;
    if (!seeds[n_seeds].bytes)
        exit(3);
    if (n)
        memcpy(seeds[n_seeds].bytes, bytes, n);
    n_seeds++;
}

static void add_seed_file(const char *path)
{
    char *data;
    size_t n;
    struct tern_error err;
    if (tn_file_read_all(&data, &n, path, MAX_INPUT, &err)) {
        fprintf(stderr, "%s\n", err.detail);
        exit(5);
    }
    add_seed(data, n);
    tn_free(data);
}

static void add_made_seeds(void)
{
    uint8_t *bytes = tn_alloc(MAX_INPUT);
    size_t n;
    if (!bytes)
        exit(3);
    for (uint32_t i = 0; (n = fuzz_seed(i, bytes, MAX_INPUT)) > 0; i++)
        add_seed(bytes, n);
    tn_free(bytes);
}

/* ---- mutations ---- */

struct input {
    uint8_t *bytes; /* [MAX_INPUT] */
    size_t n;
};

static size_t below(struct tn_rng *rng, size_t n)
{
    return n ? (size_t)(tn_rng_next(rng) % n) : 0;
}

/* A length that is usually small. */
static size_t some_length(struct tn_rng *rng, size_t max)
{
    size_t mostly = (size_t)1 << below(rng, 13);
    return below(rng, TN_MIN(max, mostly) + 1);
}

/* Writes a number that often breaks parsers: 0, 1, -1, powers of two and their neighbours. */
static void put_number(struct tn_rng *rng, struct input *in)
{
    size_t n_bytes = (size_t)1 << below(rng, 4);
    uint64_t value = (uint64_t)1 << below(rng, 64);
    value += tn_rng_next(rng) % 5 - 2;
    if (in->n < n_bytes)
        return;
    size_t at = below(rng, in->n - n_bytes + 1);
    if (below(rng, 4))
        at -= at % n_bytes;
    if (below(rng, 4) == 0) { /* close to the present value */
        memcpy(&value, in->bytes + at, n_bytes);
        value += tn_rng_next(rng) % 9 - 4;
    }
    memcpy(in->bytes + at, &value, n_bytes);
}

static void insert(struct tn_rng *rng, struct input *in, const uint8_t *bytes, size_t n)
{
    size_t at = below(rng, in->n + 1);
    if (n > MAX_INPUT - in->n)
        return;
    memmove(in->bytes + at + n, in->bytes + at, in->n - at);
    if (bytes)
        memmove(in->bytes + at, bytes, n);
    else
        memset(in->bytes + at, (int)below(rng, 256), n);
    in->n += n;
}

static void insert_part_of_seed(struct tn_rng *rng, struct input *in)
{
    size_t i = below(rng, n_seeds);
    size_t n = some_length(rng, seeds[i].n);
    insert(rng, in, seeds[i].bytes + below(rng, seeds[i].n - n + 1), n);
}

static void overwrite_with_part_of_input(struct tn_rng *rng, struct input *in)
{
    size_t n = some_length(rng, in->n);
    size_t from = below(rng, in->n - n + 1), to = below(rng, in->n - n + 1);
    memmove(in->bytes + to, in->bytes + from, n);
}

static void cut_out(struct tn_rng *rng, struct input *in)
{
    size_t n = some_length(rng, in->n);
    size_t at = below(rng, in->n - n + 1);
    memmove(in->bytes + at, in->bytes + at + n, in->n - at - n);
    in->n -= n;
}

static void mutate(struct tn_rng *rng, struct input *in)
{
    static const char text[] = "\"\\{}[]():,.<|>-+/ \n\t0129aezAZ\x00\x7f\x80\xc3\xa9\xe2\xff";
    switch (below(rng, 9)) {
    case 0:
        if (in->n)
            in->bytes[below(rng, in->n)] ^= (uint8_t)(1u << below(rng, 8));
        break;
    case 1:
        if (in->n)
            in->bytes[below(rng, in->n)] = (uint8_t)text[below(rng, sizeof text - 1)];
        break;
    case 2:
    case 3:
        put_number(rng, in);
        break;
    case 4:
        insert(rng, in, NULL, some_length(rng, MAX_INPUT));
        break;
    case 5:
        insert_part_of_seed(rng, in);
        break;
    case 6:
        overwrite_with_part_of_input(rng, in);
        break;
    case 7:
        cut_out(rng, in);
        break;
    default:
        if (below(rng, 8) == 0)
            in->n = below(rng, in->n + 1);
        break;
    }
}

/* Input number i: one of the seeds, or a mutation of one. */
static void make_input(struct input *in, uint64_t i)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, i);
    size_t i_seed = i < n_seeds ? (size_t)i : below(&rng, n_seeds);
    in->n = seeds[i_seed].n;
    if (in->n)
        memcpy(in->bytes, seeds[i_seed].bytes, in->n);
    for (size_t n = i < n_seeds ? 0 : (size_t)1 << below(&rng, 5); n > 0; n--)
        mutate(&rng, in);
}

/* Passes memory of exactly n bytes, so that a sanitizer detects every read past the end. */
static void run_input(const struct input *in)
{
    uint8_t *copy = tn_alloc(in->n);
    if (!copy)
        exit(3);
    if (in->n)
        memcpy(copy, in->bytes, in->n);
    LLVMFuzzerTestOneInput(copy, in->n);
    tn_free(copy);
}

/* Runs inputs first, first + 1, ... for the given time or count. */
static void run_inputs(const char *last_path, uint64_t first, uint64_t count, uint64_t seconds)
{
    struct tn_file *last = NULL;
    struct tern_error err;
    struct input in = {.bytes = tn_alloc(MAX_INPUT)};
    if (!in.bytes || tn_file_create(&last, last_path, &err))
        exit(4);
    uint64_t start = tn_now_ns(), i = first;
    for (; i - first < count && (i < n_seeds || tn_now_ns() - start < seconds * 1000000000u); i++) {
        char text[24] = "";
        snprintf(text, sizeof text, "%-20" PRIu64 "\n", i);
        (void)tn_file_write_at(last, 0, text, strlen(text), &err);
        make_input(&in, i);
        run_input(&in);
    }
    printf("%" PRIu64 " inputs from %zu seeds in %.1f s\n", i - first, n_seeds,
           (double)(tn_now_ns() - start) / 1e9);
    tn_file_close(last);
    tn_file_remove(last_path);
    tn_free(in.bytes);
}

int main(int argc, char **argv)
{
    uint64_t first = 0, count = UINT64_MAX, seconds = 10;
    tn_process_init(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (has_value && strcmp(argv[i], "--seconds") == 0)
            seconds = strtoull(argv[++i], NULL, 10);
        else if (has_value && strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[++i], NULL, 10);
        else if (has_value && strcmp(argv[i], "--count") == 0)
            count = strtoull(argv[++i], NULL, 10);
        else
            add_seed_file(argv[i]);
    }
    add_made_seeds();
    if (n_seeds == 0)
        add_seed("", 0);
    char last_path[1024];
    snprintf(last_path, sizeof last_path, "%s.last", argv[0]);
    run_inputs(last_path, first, count, seconds);
    for (size_t i = 0; i < n_seeds; i++)
        tn_free(seeds[i].bytes);
    return 0;
}

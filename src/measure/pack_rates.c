/* SPDX-License-Identifier: MIT
 *
 * Measures how fast this machine multiplies ternary weights in T2 and T5, and reads memory; `tern
 * convert --pack auto` chooses by these rates.
 *
 * Every thread multiplies the same band of rows from its own caches.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "engine/engine.h"
#include "measure/bench.h"
#include "plat/plat.h"

#define STREAM_BYTES ((size_t)128 << 20)
#define ROWS TERN_T2_BAND_ROWS
#define COLS 4096u
#define N_RUNS (ROWS / TERN_T2_TILE_ROWS * (COLS / TERN_T2_COL_ALIGN))
#define N_PASSES 64u
#define N_BEST 5

/* A band of weights: the time does not depend on their values. */
struct band {
    const struct tn_kernels *kernels;
    bool int8_inputs;
    uint32_t layout;
    uint8_t *weights; /* enough for either layout */
    uint16_t *scales;
    uint8_t *input;   /* in the format its kernel expects */
    float *dst;       /* [threads][ROWS] */
};

static void multiply(const struct band *b, float *dst)
{
    const struct tn_scaled_ternary m = {.w = {b->weights, ROWS, COLS, b->layout},
                                        .scales = b->scales,
                                        .group = 128,
                                        .is_f16 = true};
    if (b->int8_inputs)
        b->kernels->gemv_t2_i8((int32_t *)dst, &m.w, 0, ROWS, b->input);
    else
        b->kernels->gemv_t2_x16(dst, ROWS, &m, 0, ROWS, b->input, 1);
}

static void multiply_item(void *arg, uint32_t i_item, uint32_t i_thread)
{
    const struct band *b = arg;
    (void)i_item;
    for (uint32_t i = 0; i < N_PASSES; i++)
        multiply(b, b->dst + (size_t)i_thread * ROWS);
}

/* 10^9 weights per second, the best of a few passes. */
static double rate_of(struct band *b, struct tn_team *team, uint32_t layout)
{
    const uint32_t n = tn_team_n_threads(team);
    double best = 0;
    b->layout = layout;
    for (int i = 0; i < N_BEST; i++) {
        const uint64_t start = tn_now_ns();
        tn_team_for(team, n, multiply_item, b);
        const double ns = (double)TN_MAX(tn_now_ns() - start, (uint64_t)1);
        best = TN_MAX(best, (double)n * N_PASSES * ROWS * COLS / ns);
    }
    return best;
}

static void prepare_input(struct band *b)
{
    static const _Alignas(64) float ones[COLS] = {1, 1, 1, 1};
    static const _Alignas(64) int8_t x[COLS];
    if (b->int8_inputs)
        b->kernels->lut_t2(b->input, x, COLS);
    else
        b->kernels->quant_x16(b->input, ones, COLS);
}

static void *take(unsigned char **next, size_t n_bytes)
{
    void *part = *next;
    *next += tn_align_up(n_bytes, 64);
    return part;
}

static size_t layout(struct band *b, unsigned char *memory, uint32_t n_threads)
{
    unsigned char *next = memory;
    b->weights = take(&next, (size_t)N_RUNS * TERN_T2_RUN_BYTES);
    b->scales = take(&next, (size_t)ROWS * (COLS / 128) * sizeof *b->scales);
    b->input = take(&next, TN_MAX(TN_LUT_BYTES(COLS), TN_X16_BYTES(COLS)));
    b->dst = take(&next, (size_t)n_threads * ROWS * sizeof *b->dst);
    return (size_t)(next - memory);
}

tern_status tern_measure_packs(struct tern_pack_rates *out, struct tern_engine *engine,
                               bool int8_inputs, struct tern_error *err)
{
    const uint32_t n_threads = tn_team_n_threads(engine->team);
    struct band b = {.kernels = &engine->kernels, .int8_inputs = int8_inputs};
    const size_t n_bytes = STREAM_BYTES + layout(&b, NULL, n_threads);
    unsigned char *memory = tn_pages_reserve(n_bytes);
    *out = (struct tern_pack_rates){0};
    tn_ok(err);
    if (!memory || !tn_pages_commit(memory, n_bytes)) {
        if (memory)
            tn_pages_release(memory, n_bytes);
        return tn_fail(err, TERN_MEMORY, "no memory for %zu MiB to measure the stream rate",
                       n_bytes >> 20);
    }
    memset(memory, 0x55, n_bytes); /* touches real pages, not the zero page; valid codes */
    layout(&b, memory + STREAM_BYTES, n_threads);
    prepare_input(&b);
    struct tn_bench_stream stream = {.data = memory, .n_bytes = STREAM_BYTES};
    out->stream_gb_s = tn_bench_stream_rate(&stream, engine->team);
    out->fast_gw_s = rate_of(&b, engine->team, TERN_LAYOUT_T2);
    out->small_gw_s = rate_of(&b, engine->team, TERN_LAYOUT_T5);
    tn_pages_release(memory, n_bytes);
    return TERN_OK;
}

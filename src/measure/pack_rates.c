/* SPDX-License-Identifier: MIT
 *
 * Measures how fast this machine multiplies ternary weights in T2 and T5 from memory; `tern convert
 * --pack auto` chooses by these rates.
 */
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "engine/engine.h"
#include "measure/bench.h"
#include "plat/plat.h"

#define ROWS (512u * TERN_T2_BAND_ROWS)
#define COLS 4096u
#define GROUP 128u
#define N_RUNS (ROWS / TERN_T2_TILE_ROWS * (COLS / TERN_T2_COL_ALIGN))
#define N_ROUNDS 5

/* A matrix of 128 MiB in T2.  The time does not depend on its values. */
struct product {
    const struct tn_kernels *kernels;
    bool int8_inputs;
    uint32_t layout;
    uint8_t *weights; /* enough for either layout */
    uint16_t *scales;
    uint8_t *input;   /* in the format its kernel expects */
    float *dst;       /* [threads][TERN_T2_BAND_ROWS] */
};

static void multiply_bands(void *arg, uint32_t begin, uint32_t end, uint32_t i_thread)
{
    const struct product *p = arg;
    const struct tn_scaled_ternary m = {.w = {p->weights, ROWS, COLS, p->layout},
                                        .scales = p->scales,
                                        .group = GROUP,
                                        .is_f16 = true};
    float *dst = p->dst + (size_t)i_thread * TERN_T2_BAND_ROWS;
    for (uint32_t row = begin * TERN_T2_BAND_ROWS; row < end * TERN_T2_BAND_ROWS;
         row += TERN_T2_BAND_ROWS)
        if (p->int8_inputs)
            p->kernels->gemv_t2_i8((int32_t *)dst, &m.w, row, row + TERN_T2_BAND_ROWS, p->input);
        else
            p->kernels->gemv_t2_x16(dst, TERN_T2_BAND_ROWS, &m, row, row + TERN_T2_BAND_ROWS,
                                    p->input, 1);
}

/* 10^9 weights per second. */
static double rate_of(struct product *p, struct tn_team *team, uint32_t layout)
{
    p->layout = layout;
    const uint64_t start = tn_now_ns();
    tn_team_for_runs(team, ROWS / TERN_T2_BAND_ROWS, 1, multiply_bands, p);
    return (double)ROWS * COLS / (double)TN_MAX(tn_now_ns() - start, (uint64_t)1);
}

static void prepare_input(struct product *p)
{
    static const _Alignas(64) float ones[COLS] = {1, 1, 1, 1};
    static const _Alignas(64) int8_t x[COLS];
    if (p->int8_inputs)
        p->kernels->lut_t2(p->input, x, COLS);
    else
        p->kernels->quant_x16(p->input, ones, COLS);
}

static void layout(struct product *p, struct tn_arena *arena, uint32_t n_threads)
{
    p->weights = tn_arena_take(arena, (size_t)N_RUNS * TERN_T2_RUN_BYTES);
    p->scales = tn_arena_take(arena, (size_t)ROWS * (COLS / GROUP) * sizeof *p->scales);
    p->input = tn_arena_take(arena, TN_MAX(TN_LUT_BYTES(COLS), TN_X16_BYTES(COLS)));
    p->dst = tn_arena_take(arena, (size_t)n_threads * TERN_T2_BAND_ROWS * sizeof *p->dst);
}

tern_status tern_measure_packs(struct tern_pack_rates *out, struct tern_engine *engine,
                               bool int8_inputs, struct tern_error *err)
{
    const uint32_t n_threads = tn_team_n_threads(engine->team);
    struct product p = {.kernels = &engine->kernels, .int8_inputs = int8_inputs};
    struct tn_arena arena = {0};
    layout(&p, &arena, n_threads);
    const size_t n_bytes = arena.used;
    arena = (struct tn_arena){.base = tn_pages_reserve(n_bytes), .capacity = n_bytes};
    *out = (struct tern_pack_rates){0};
    tn_ok(err);
    if (!arena.base || !tn_pages_commit(arena.base, n_bytes)) {
        tn_pages_release(arena.base, n_bytes);
        return tn_fail(err, TERN_MEMORY, "no memory for %zu MiB to measure products",
                       n_bytes >> 20);
    }
    memset(arena.base, 0x55, n_bytes); /* touches real pages, not the zero page; valid codes */
    layout(&p, &arena, n_threads);
    prepare_input(&p);
    for (int i = 0; i < N_ROUNDS; i++) { /* the best of a few, in turn */
        out->fast_gw_s = TN_MAX(out->fast_gw_s, rate_of(&p, engine->team, TERN_LAYOUT_T2));
        out->small_gw_s = TN_MAX(out->small_gw_s, rate_of(&p, engine->team, TERN_LAYOUT_T5));
    }
    tn_pages_release(arena.base, n_bytes);
    return TERN_OK;
}

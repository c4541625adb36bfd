/* SPDX-License-Identifier: MIT
 *
 * Measures products of matrices in blocks: GB/s of one input from the second-level cache and from
 * memory, multiply-adds per second of several inputs from cache.  Dimensions of Qwen3-4B: 2560
 * columns.
 */
#include "bench/bench_blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peak.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "kern/blocks_source.h"
#include "plat/plat.h"

#define ARENA_BYTES ((size_t)512 << 20) /* larger than the last-level cache */

enum { COLS = 2560, CACHE_ROWS = 256, MEMORY_ROWS = 4096, MAX_TOKENS = 512 };

struct work {
    const struct tn_kernel_row *row;
    struct tn_blocks w;
    uint8_t *arena;
    size_t offset, matrix_bytes;
    bool from_memory;
    uint8_t *x8, *x16;
    float *f32, *y;
    void *scratch;
    uint32_t n_tokens;
};

static void *pages(size_t n_bytes)
{
    void *p = tn_pages_reserve(n_bytes);
    if (!p || !tn_pages_commit(p, n_bytes)) {
        fputs("bench_kern: out of memory\n", stderr);
        exit(3);
    }
    tn_pages_advise_huge(p, n_bytes);
    return p;
}

static void allocate(struct work *w)
{
    w->arena = pages(ARENA_BYTES);
    w->x8 = pages(MAX_TOKENS * TN_X8_BYTES(COLS));
    w->x16 = pages(MAX_TOKENS * TN_X16_BYTES(COLS));
    w->f32 = pages(COLS * sizeof(float));
    w->y = pages((size_t)MAX_TOKENS * (TN_GEMM_ROWS + 16) * sizeof(float));
    w->scratch = pages(TN_KERNEL_SCRATCH_BYTES);
    struct tn_rng rng;
    tn_rng_seed(&rng, 3);
    for (uint32_t t = 0; t < MAX_TOKENS; t++) {
        for (uint32_t c = 0; c < COLS; c++)
            w->f32[c] = tn_rng_f32(&rng) - 0.5f;
        tn_quant_x8_ref(w->x8 + t * TN_X8_BYTES(COLS), w->f32, COLS);
        tn_quant_x16_ref(w->x16 + t * TN_X16_BYTES(COLS), w->f32, COLS);
    }
}

/* Makes a matrix of n_rows random rows; from memory: consecutive ones, as many as fit the arena. */
static void set_matrix(struct work *w, const struct blocks_type *type, uint32_t n_rows)
{
    enum { SOURCE_ROWS = 16 };
    const size_t row_bytes = tn_blocks_source_bytes(type->layout, COLS);
    uint8_t *source = malloc(SOURCE_ROWS * row_bytes);
    struct tn_rng rng;
    if (!source)
        exit(3);
    tn_rng_seed(&rng, 1);
    blocks_fill(source, type, SOURCE_ROWS * (COLS / type->block), FILL_BLOCKS_RANDOM, &rng);
    w->w = (struct tn_blocks){w->arena, n_rows, COLS, type->layout};
    w->matrix_bytes = tn_blocks_bytes(type->layout, n_rows, COLS);
    w->offset = 0;
    const size_t tile_bytes = tn_blocks_bytes(type->layout, SOURCE_ROWS, COLS);
    tn_blocks_pack(w->arena, type->layout, source, SOURCE_ROWS, COLS);
    for (size_t at = tile_bytes; at + tile_bytes <= ARENA_BYTES; at += tile_bytes) {
        memcpy(w->arena + at, w->arena, tile_bytes);
        if (!w->from_memory && at > w->matrix_bytes)
            break;
    }
    free(source);
}

static void call(void *arg)
{
    struct work *w = arg;
    const char *op = w->row->op;
    const bool is_16 = strstr(op, "x16") != NULL;
    const void *x = is_16 ? w->x16 : w->x8;
    if (w->from_memory) {
        w->offset += w->matrix_bytes;
        if (w->offset + w->matrix_bytes > ARENA_BYTES)
            w->offset = 0;
        w->w.data = w->arena + w->offset;
    }
    for (uint32_t row = 0; row < w->w.rows; row += TN_GEMM_ROWS) {
        if (!strncmp(op, "gemm", 4))
            ((tn_gemm_blocks_fn *)w->row->fn)(w->y, TN_GEMM_ROWS + 16, &w->w, row,
                                              row + TN_GEMM_ROWS, x, w->n_tokens, w->scratch);
        else if (strstr(op, "f32"))
            ((tn_gemv_blocks_f32_fn *)w->row->fn)(w->y, &w->w, row, row + TN_GEMM_ROWS, w->f32);
        else
            ((tn_gemv_blocks_fn *)w->row->fn)(w->y, &w->w, row, row + TN_GEMM_ROWS, x);
    }
}

static void bench_gemv(struct work *w, const struct blocks_type *type, double stream_gbs)
{
    for (int memory = tn_bench_first_place(); memory < 2; memory++) {
        w->from_memory = memory;
        set_matrix(w, type, memory ? MEMORY_ROWS : CACHE_ROWS);
        const struct tn_timing t = tn_time_call(call, w);
        const double gbs = (double)w->matrix_bytes / t.median * 1e-9;
        if (memory && !tn_bench_add_rate(gbs))
            continue;
        printf("%-15s %-8s %-6s %-6s %8.1f us +-%3.0f %%  %6.2f GB/s %6.1f Gw/s  %3.0f %% of the "
               "stream\n",
               w->row->op, w->row->isa, type->name, memory ? "memory" : "cache", t.median * 1e6,
               t.spread * 100, gbs, (double)w->w.rows * COLS / t.median * 1e-9,
               gbs / stream_gbs * 100);
    }
}

static void bench_gemm(struct work *w, const struct blocks_type *type)
{
    static const uint32_t n_tokens[] = {2, 4, 8, 64, MAX_TOKENS};
    const double peak = tn_peak_macs(w->row->isa) / (strstr(w->row->op, "x16") ? 2 : 1);
    w->from_memory = false;
    for (size_t i = 0; i < TN_COUNT_OF(n_tokens); i++) {
        w->n_tokens = n_tokens[i];
        set_matrix(w, type, CACHE_ROWS);
        const struct tn_timing t = tn_time_call(call, w);
        const double macs = (double)w->w.rows * COLS * n_tokens[i] * 1e-9 / t.median;
        printf("%-15s %-8s %-6s %4u tokens %8.1f us +-%3.0f %%  %6.1f G/s", w->row->op,
               w->row->isa, type->name, n_tokens[i], t.median * 1e6, t.spread * 100, macs);
        if (peak > 0)
            printf("  %3.0f %% of %.0f G multiply-adds/s", macs / peak * 100, peak);
        printf("\n");
    }
}

/* The most frequent types of published files: a sweep of all would take an hour. */
static bool is_swept(const char *name)
{
    return !strcmp(name, "Q8_0") || !strcmp(name, "Q4_K") || !strcmp(name, "Q6_K");
}

void tn_bench_blocks(const struct tn_kernel_row *row, double stream_gbs)
{
    static struct work work;
    if (!strstr(row->op, "_blocks_"))
        return;
    if (!work.arena)
        allocate(&work);
    work.row = row;
    for (size_t i = 0; i < N_BLOCKS_TYPES; i++) {
        if (tn_bench_report.is_sweep && !is_swept(blocks_types[i].name))
            continue;
        if (strncmp(row->op, "gemm", 4))
            bench_gemv(&work, &blocks_types[i], stream_gbs);
        else if (!tn_bench_report.only_memory)
            bench_gemm(&work, &blocks_types[i]);
        fflush(stdout);
    }
}

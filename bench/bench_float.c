/* SPDX-License-Identifier: MIT
 *
 * Measures the float kernels: head and attention in GB/s from the second-level cache and from
 * memory, the rest in nanoseconds per value.  Dimensions of BitNet 2B-4T.
 */
#include "bench/bench_float.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "plat/plat.h"

#define ARENA_BYTES ((size_t)256 << 20) /* larger than the last-level cache */

enum { HIDDEN = 2560, FFN = 6912, HEADS = 20, HEAD_DIM = 128, QUERIES = 4, BLOCK = TN_KV_BLOCK };
enum { ROTATED = 5120, ROTATED_BLOCK = 1024 };

struct work;
typedef void call_fn(struct work *w);

struct work {
    const struct tn_kernel_row *row;
    call_fn *call;
    bool from_memory;
    unsigned char *arena; /* weights or cached rows: normal numbers in f32, f16 and bf16 */
    size_t offset;        /* of the data that the call reads */
    size_t bytes;         /* that the call reads from the arena */
    uint32_t n_rows;      /* of the head */
    uint16_t *scales;
    float *x, *y;
    int32_t *sums;
    int8_t *q;
};

static void call_head(struct work *w)
{
    const void *rows = w->arena + w->offset;
    ((tn_gemv_f16_f32_fn *)w->row->fn)(w->y, w->n_rows, rows, w->n_rows, HIDDEN, w->x, HIDDEN, 1);
}

static void call_head_q8(struct work *w)
{
    const void *rows = w->arena + w->offset;
    ((tn_gemv_q8_f32_fn *)w->row->fn)(w->y, w->n_rows, rows, w->x, w->n_rows, HIDDEN, w->x, HIDDEN,
                                      1);
}

static void call_qk(struct work *w)
{
    ((tn_attn_qk_fn *)w->row->fn)(w->y, BLOCK, w->x, QUERIES, w->arena + w->offset, BLOCK,
                                  HEAD_DIM, 0.1f);
}

static void call_qk_q8(struct work *w)
{
    ((tn_attn_qk_q8_fn *)w->row->fn)(w->y, BLOCK, w->q, w->scales, QUERIES, w->arena + w->offset,
                                     w->scales, BLOCK, HEAD_DIM, 0.1f);
}

static void call_pv(struct work *w)
{
    ((tn_attn_pv_fn *)w->row->fn)(w->y, w->x, BLOCK, QUERIES, w->arena + w->offset, BLOCK,
                                  HEAD_DIM);
}

static void call_pv_q8(struct work *w)
{
    const uint8_t *v = w->arena + w->offset;
    ((tn_attn_pv_q8_fn *)w->row->fn)(w->y, w->x, BLOCK, QUERIES, v, w->scales, BLOCK, HEAD_DIM,
                                     v + BLOCK * HEAD_DIM);
}

static void call_quant(struct work *w)
{
    ((tn_quant_i8_fn *)w->row->fn)(w->q, w->x, FFN);
}

static void call_quant_x16(struct work *w)
{
    ((tn_quant_x16_fn *)w->row->fn)(w->y, w->x, FFN);
}

static void call_quant_x8(struct work *w)
{
    ((tn_quant_x8_fn *)w->row->fn)(w->y, w->x, FFN);
}

static void call_add_scaled(struct work *w)
{
    ((tn_add_scaled_f32_fn *)w->row->fn)(w->y, w->x, FFN, 0.0f);
}

static void call_norm(struct work *w)
{
    ((tn_rms_norm_f32_fn *)w->row->fn)(w->y, w->x, w->x, FFN, 1e-5f);
}

static void call_hadamard(struct work *w)
{
    ((tn_hadamard_f32_fn *)w->row->fn)(w->y, ROTATED, ROTATED_BLOCK);
}

static void call_norm_quant(struct work *w)
{
    ((tn_rms_norm_quant_fn *)w->row->fn)(w->q, w->x, w->x, FFN, 1e-5f);
}

/* Scale 0 keeps the sums of add_i32_f32 small over many calls. */
static void call_scale(struct work *w)
{
    ((tn_scale_i32_f32_fn *)w->row->fn)(w->y, w->sums, FFN, 0.0f);
}

static void call_relu2(struct work *w)
{
    ((tn_relu2_mul_f32_fn *)w->row->fn)(w->y, w->x, w->x, FFN);
}

static void call_silu(struct work *w)
{
    ((tn_silu_mul_f32_fn *)w->row->fn)(w->y, w->x, w->x, FFN);
}

static void call_cap(struct work *w)
{
    memcpy(w->y, w->x, BLOCK * sizeof(float));
    ((tn_cap_f32_fn *)w->row->fn)(w->y, BLOCK, 1.5f);
}

static void call_rope(struct work *w)
{
    memcpy(w->y, w->x, HEADS * HEAD_DIM * sizeof(float));
    ((tn_rope_f32_fn *)w->row->fn)(w->y, w->x, w->x, HEADS, HEAD_DIM, HEAD_DIM);
}

static void call_list_positive(struct work *w)
{
    float *x = w->y + FFN; /* a copy, because unlisted values become zero */
    memcpy(x, w->x, FFN * sizeof *x);
    w->sums[0] = (int32_t)((tn_list_positive_f32_fn *)w->row->fn)((uint32_t *)w->y, x, FFN);
}

static void call_list_nonzero(struct work *w)
{
    w->sums[0] = (int32_t)((tn_list_nonzero_i8_fn *)w->row->fn)((uint32_t *)w->y, w->q, FFN);
}

static void call_add_f64(struct work *w)
{
    ((tn_add_i32_f64_fn *)w->row->fn)((double *)(void *)w->y, w->sums, FFN, 16.0);
}

static void call_bound(struct work *w)
{
    const struct tn_bound_terms terms = {.factor = 1.0, .norm_x = 1.0, .slope = 1.0, .lost = 0.1};
    const struct tn_bound_rows rows = {w->x, w->x, w->x};
    ((tn_bound_logits_fn *)w->row->fn)(w->y, w->y + FFN, (const double *)(void *)w->x, FFN, &rows,
                                       &terms);
}

static void call_max(struct work *w)
{
    w->y[0] = ((tn_max_f32_fn *)w->row->fn)(w->x, BLOCK);
}

static void call_exp(struct work *w)
{
    memcpy(w->y, w->x, BLOCK * sizeof(float));
    w->y[BLOCK] = ((tn_exp_sum_f32_fn *)w->row->fn)(w->y, BLOCK, 2.0f);
}

static void call_store(struct work *w)
{
    ((tn_kv_store_fn *)w->row->fn)(w->y, w->scales, w->x, HEAD_DIM);
}

static void call_next(void *arg)
{
    struct work *w = arg;
    w->offset += w->from_memory ? w->bytes : 0;
    if (w->offset + w->bytes > ARENA_BYTES)
        w->offset = 0;
    w->call(w);
}

static struct tn_timing measure(call_fn *call, struct work *w, bool from_memory)
{
    w->call = call;
    w->from_memory = from_memory;
    w->offset = 0;
    return tn_time_call(call_next, w);
}

static const struct {
    const char *op;
    call_fn *call;
    uint32_t n_values; /* values per call; 0: it reads from the arena */
} benches[] = {
    {"quant_i8", call_quant, FFN},
    {"quant_x16", call_quant_x16, FFN},
    {"quant_x8", call_quant_x8, FFN},
    {"rms_norm_f32", call_norm, FFN},
    {"hadamard_f32", call_hadamard, ROTATED},
    {"rms_norm_quant", call_norm_quant, FFN},
    {"scale_i32_f32", call_scale, FFN},
    {"add_i32_f32", call_scale, FFN},
    {"add_scaled_f32", call_add_scaled, FFN},
    {"relu2_mul_f32", call_relu2, FFN},
    {"silu_mul_f32", call_silu, FFN},
    {"gelu_mul_f32", call_silu, FFN},
    {"cap_f32", call_cap, BLOCK},
    {"rope_f32", call_rope, HEADS * HEAD_DIM},
    {"list_positive_f32", call_list_positive, FFN},
    {"list_nonzero_i8", call_list_nonzero, FFN},
    {"add_i32_f64", call_add_f64, FFN},
    {"bound_logits", call_bound, FFN},
    {"gemv_q8_f32", call_head_q8, 0},
    {"gemv_f32_f32", call_head, 0},
    {"gemv_f16_f32", call_head, 0},
    {"gemv_bf16_f32", call_head, 0},
    {"attn_qk_f32", call_qk, 0},
    {"attn_qk_f16", call_qk, 0},
    {"attn_qk_q8", call_qk_q8, 0},
    {"attn_pv_f32", call_pv, 0},
    {"attn_pv_f16", call_pv, 0},
    {"attn_pv_q8", call_pv_q8, 0},
    {"max_f32", call_max, BLOCK},
    {"exp_sum_f32", call_exp, BLOCK},
    {"kv_store_f32", call_store, HEAD_DIM},
    {"kv_store_f16", call_store, HEAD_DIM},
    {"kv_store_q8", call_store, HEAD_DIM},
};
static_assert(TN_COUNT_OF(benches) == TN_BENCH_N_FLOAT, "the number in bench_float.h");

static void *pages(size_t n_bytes)
{
    void *p = tn_pages_reserve(n_bytes);
    if (!p || !tn_pages_commit(p, n_bytes)) {
        fputs("bench_kern: out of memory\n", stderr);
        exit(3);
    }
    return p;
}

static void prepare(struct work *w)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, 5);
    w->arena = pages(ARENA_BYTES);
    uint16_t *halves = (uint16_t *)(void *)w->arena;
    for (size_t i = 0; i < ARENA_BYTES / 2; i++)
        halves[i] = (uint16_t)(0x3C00 | (i * 40503 >> 5 & 0x3FF));
    w->scales = pages(BLOCK * 2 * sizeof *w->scales);
    for (size_t i = 0; i < BLOCK * 2; i++)
        w->scales[i] = 0x2000;
    const size_t n = (ARENA_BYTES >> 9) / HIDDEN * HIDDEN; /* rows of the head and more */
    w->x = pages(n * sizeof *w->x);
    for (size_t i = 0; i < n; i++)
        w->x[i] = tn_rng_f32(&rng) * 4.0f - 2.0f;
    w->y = pages(n * sizeof *w->y);
    w->sums = pages(FFN * sizeof *w->sums);
    w->q = pages(tn_kern_pad(FFN));
    for (uint32_t i = 0; i < FFN; i++)
        w->q[i] = (int8_t)(tn_rng_f32(&rng) * 1.2f); /* a sixth of them are ones */
}

/* Bytes per value of the operation's weights or cache. */
static uint32_t value_bytes(const char *op)
{
    return strstr(op, "q8") ? 1 : strstr(op, "f16") ? 2 : 4;
}

static void bench_reader(struct work *w, call_fn *call, double stream_gbs)
{
    for (int from_memory = tn_bench_first_place(); from_memory < 2; from_memory++) {
        uint32_t size = value_bytes(w->row->op);
        bool is_head = call == call_head || call == call_head_q8;
        w->n_rows = from_memory ? 4096 / size : 256 / size;
        w->bytes = (is_head ? (size_t)w->n_rows * HIDDEN : BLOCK * HEAD_DIM) * size;
        const struct tn_timing t = measure(call, w, from_memory);
        double gbs = (double)w->bytes / t.median * 1e-9;
        if (from_memory && !tn_bench_add_rate(gbs))
            continue;
        printf("%-14s %-7s %-6s %8.1f us +-%3.0f %%  %6.2f GB/s  %3.0f %% of the stream",
               w->row->op, w->row->isa, from_memory ? "memory" : "cache", t.median * 1e6,
               t.spread * 100, gbs, gbs / stream_gbs * 100);
        if (is_head)
            printf("\n");
        else
            printf("  %5.1f ns per position, %d heads\n", t.median * 1e9 / BLOCK, QUERIES);
    }
}

void tn_bench_float(const struct tn_kernel_row *row, double stream_gbs)
{
    static struct work w;
    for (size_t i = 0; i < TN_COUNT_OF(benches); i++) {
        if (strcmp(benches[i].op, row->op))
            continue;
        if (!w.arena)
            prepare(&w);
        w.row = row;
        if (benches[i].n_values == 0) {
            bench_reader(&w, benches[i].call, stream_gbs);
            return;
        }
        if (tn_bench_report.only_memory)
            return;
        w.bytes = 0;
        const struct tn_timing t = measure(benches[i].call, &w, false);
        printf("%-14s %-7s cache  %8.2f us +-%3.0f %%  %6.3f ns per value\n", row->op, row->isa,
               t.median * 1e6, t.spread * 100, t.median * 1e9 / benches[i].n_values);
    }
}

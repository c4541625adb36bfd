/* SPDX-License-Identifier: MIT
 *
 * Measures the float kernels: head and attention in GB/s from the second-level cache and from
 * memory, the rest in nanoseconds per value.  Dimensions of BitNet 2B-4T.
 *
 * measure/kernel_calls.h says how an operation is called; here are the dimensions and the memory.
 */
#include "bench/bench_float.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "plat/plat.h"

#define ARENA_BYTES ((size_t)256 << 20) /* larger than the last-level cache */
#define POOL_BYTES ((size_t)1 << 20)    /* the operands of one type, or all outputs */

enum { HIDDEN = 2560, FFN = 6912, HEADS = 20, HEAD_DIM = 128, QUERIES = 4, BLOCK = TN_KV_BLOCK };
enum { ROTATED = 5120, ROTATED_BLOCK = 1024 };

struct work {
    const struct tn_kernel_row *row;
    const struct tn_kernel_call_row *calls; /* NULL: bound_logits */
    struct tn_kernel_call call;
    unsigned char *arena;  /* weights or cached rows: normal numbers in f32, f16 and bf16 */
    bool from_memory;
    size_t offset;         /* of the data that the call reads */
    size_t bytes;          /* that the call reads from the arena */
    float *floats;         /* [-2, 2) */
    int32_t *ints;         /* 0 */
    int8_t *bytes_of_ones; /* a sixth of them are ones, the others 0 */
    uint16_t *halves;
    double *doubles;
    unsigned char *out;
};

/* ---- calls ---- */

static struct tn_call_dims dims_of(const char *op, uint32_t n_rows)
{
    struct tn_call_dims d = {.n = FFN, .eps = 1e-5f, .n_heads = HEADS, .head_dim = HEAD_DIM,
                             .head_stride = HEAD_DIM, .n_q = QUERIES, .n_pos = BLOCK,
                             .score_stride = BLOCK, .max = 2.0f};
    if (!strncmp(op, "gemv_", 5)) {
        d.n = HIDDEN;
        d.n_rows = n_rows;
        d.n_tokens = 1;
    } else if (!strncmp(op, "hadamard", 8)) {
        d.n = ROTATED;
        d.block = ROTATED_BLOCK;
    } else if (!strncmp(op, "attn_", 5)) {
        d.scale = 0.1f;
    } else if (!strncmp(op, "cap", 3)) {
        d.n = BLOCK;
        d.scale = 1.5f;
    } else if (!strncmp(op, "max", 3) || !strncmp(op, "exp", 3)) {
        d.n = BLOCK;
    }
    return d;
}

static void *input(const struct work *w, const struct tn_operand *o)
{
    switch (o->type) {
    case TN_OPERAND_I8:
        return w->bytes_of_ones;
    case TN_OPERAND_I32:
        return w->ints;
    case TN_OPERAND_F32:
        return w->floats;
    case TN_OPERAND_F64:
        return w->doubles;
    default:
        return w->halves;
    }
}

/* Gives all operands memory, rows in the arena.  Returns the rows, or NULL. */
static struct tn_operand *describe(struct work *w, uint32_t n_rows)
{
    struct tn_kernel_call *c = &w->call;
    struct tn_operand *rows = NULL;
    size_t n_out = 0;
    *c = (struct tn_kernel_call){.dims = dims_of(w->row->op, n_rows)};
    w->calls->run(c);
    for (uint32_t i = 0; i < c->n_operands; i++) {
        struct tn_operand *o = &c->operands[i];
        o->data = tn_operand_is_written(o) ? w->out + n_out : input(w, o);
        if (tn_operand_is_written(o)) {
            memcpy(o->data, input(w, o), tn_operand_bytes(o));
            n_out += tn_align_up(tn_operand_bytes(o), 64);
        }
        rows = o->use == TN_OPERAND_ROWS ? o : rows;
    }
    c->fn = w->row->fn;
    w->bytes = rows ? tn_operand_bytes(rows) : 0;
    return rows;
}

/* Reads the next rows of the arena, if from memory, and writes fresh values if the kernel changes
 * its input. */
static void call_next(void *arg)
{
    struct work *w = arg;
    struct tn_kernel_call *c = &w->call;
    w->offset += w->from_memory ? w->bytes : 0;
    if (w->offset + 2 * w->bytes > ARENA_BYTES)
        w->offset = 0;
    if (c->operands[1].use == TN_OPERAND_ROWS) {
        c->operands[1].data = w->arena + w->offset;
        c->dims.next = w->arena + w->offset + w->bytes;
    }
    if (c->operands[0].use == TN_OPERAND_CHANGED)
        memcpy(c->operands[0].data, input(w, &c->operands[0]), tn_operand_bytes(&c->operands[0]));
    c->n_operands = 0;
    w->calls->run(c);
}

static void call_bound(void *arg)
{
    struct work *w = arg;
    const struct tn_bound_terms terms = {.factor = 1.0, .norm_x = 1.0, .slope = 1.0, .lost = 0.1};
    const struct tn_bound_rows rows = {w->floats, w->floats, w->floats};
    float *low = (float *)(void *)w->out;
    ((tn_bound_logits_fn *)w->row->fn)(low, low + FFN, w->doubles, FFN, &rows, &terms);
}

/* ---- memory ---- */

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
    w->halves = pages(POOL_BYTES);
    for (size_t i = 0; i < POOL_BYTES / sizeof *w->halves; i++)
        w->halves[i] = 0x2000;
    w->floats = pages(POOL_BYTES);
    for (size_t i = 0; i < POOL_BYTES / sizeof *w->floats; i++)
        w->floats[i] = tn_rng_f32(&rng) * 4.0f - 2.0f;
    w->doubles = pages(POOL_BYTES);
    for (size_t i = 0; i < POOL_BYTES / sizeof *w->doubles; i++)
        w->doubles[i] = (double)w->floats[i];
    w->bytes_of_ones = pages(POOL_BYTES);
    for (size_t i = 0; i < POOL_BYTES; i++)
        w->bytes_of_ones[i] = (int8_t)(tn_rng_f32(&rng) * 1.2f);
    w->ints = pages(POOL_BYTES);
    w->out = pages(POOL_BYTES);
}

/* ---- lines ---- */

static void bench_reader(struct work *w, double stream_gbs)
{
    const bool is_head = w->call.dims.n_rows > 0;
    for (int from_memory = tn_bench_first_place(); from_memory < 2; from_memory++) {
        const uint32_t value_bytes = w->call.operands[1].align;
        describe(w, (from_memory ? 4096 : 256) / value_bytes);
        w->from_memory = from_memory;
        w->offset = 0;
        const struct tn_timing t = tn_time_call(call_next, w);
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

static void bench_vector(struct work *w)
{
    if (tn_bench_report.only_memory)
        return;
    w->from_memory = false;
    const struct tn_timing t = tn_time_call(w->calls ? call_next : call_bound, w);
    printf("%-14s %-7s cache  %8.2f us +-%3.0f %%  %6.3f ns per value\n", w->row->op, w->row->isa,
           t.median * 1e6, t.spread * 100,
           t.median * 1e9 / (w->calls ? (double)w->call.operands[0].n : FFN));
}

void tn_bench_float(const struct tn_kernel_row *row, double stream_gbs)
{
    static struct work w;
    w.row = row;
    w.calls = tn_kernel_call_find(row->op);
    if (!w.calls && strcmp(row->op, "bound_logits"))
        return;
    if (!w.arena)
        prepare(&w);
    if (w.calls && describe(&w, 1))
        bench_reader(&w, stream_gbs);
    else
        bench_vector(&w);
}

/* SPDX-License-Identifier: MIT
 *
 * Measures the kernels of ternary matrices and of the head's bit planes, with the dimensions of
 * BitNet 2B-4T.  If rows or columns are skipped, the stream rate is out of reach, and a plain loop
 * that skips as often is measured for comparison.
 */
#include "bench/bench_ternary.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/layout_spec.h"
#include "base/bits.h"
#include "base/rng.h"
#include "bench/loop_cost.h"
#include "bench/peak.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "kern/bit_planes.h"
#include "kern/guard.h"
#include "kern/pack.h"
#include "plat/plat.h"

/* Larger than the last-level cache even if only every sixth line is read. */
#define ARENA_BYTES ((size_t)1 << 30)

/* Dimensions of BitNet 2B-4T. */
#define HIDDEN 2560u
#define FFN 6912u
#define MAX_TOKENS 512u /* of a gemm */
/* In real text: rows of `up` with gate > 0, columns of `down` with nonzero inputs. */
#define UP_DENSITY 0.25
#define DOWN_DENSITY 0.16

struct bench {
    uint8_t *arena; /* ARENA_BYTES of packed weights, without code 3 */
    size_t offset;  /* of the current matrix */
    size_t matrix_bytes;
    bool from_memory;
    void (*call)(struct bench *);
    const struct tn_kernel_row *row;
    struct tn_ternary w;
    uint32_t *list; /* active rows or columns */
    uint8_t *takers; /* bit mask of inputs for each row */
    uint32_t n_list;
    int8_t *x;
    int16_t *x16;
    float *floats;   /* inputs before rounding */
    uint8_t *inputs, *inputs8; /* MAX_TOKENS inputs of quant_x16, of quant_x8 */
    struct tn_scaled_ternary m;
    uint16_t *scales;
    int32_t x_sum[MAX_TOKENS]; /* zeros suffice */
    uint8_t *table;
    int32_t *dst;
    uint32_t n_tokens;
    uint32_t n_inputs; /* for a bit plane */
    uint8_t *scratch;
    double stream_gbs;
};

static void *must(void *p)
{
    if (!p) {
        fputs("bench_kern: out of memory\n", stderr);
        exit(3);
    }
    return p;
}

static void *pages(size_t n_bytes)
{
    void *p = must(tn_pages_reserve(n_bytes));
    tn_pages_advise_huge(p, n_bytes);
    return must(tn_pages_commit(p, n_bytes) ? p : NULL);
}

static void fill_weights(uint8_t *data, size_t n_bytes)
{
    const size_t part = 1 << 20;
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    for (size_t i = 0; i < part; i += 8) {
        uint64_t v = tn_rng_next(&rng);
        v &= ~(v >> 1 & v & 0x5555555555555555u); /* code 3 becomes 2 */
        memcpy(data + i, &v, sizeof v);
    }
    for (size_t i = part; i < n_bytes; i += part)
        memcpy(data + i, data, part);
}

/* From memory: uses a matrix that is no longer in any cache. */
static void call_next(void *arg)
{
    struct bench *b = arg;
    if (b->from_memory) {
        b->offset += tn_align_up(b->matrix_bytes, 4096);
        if (b->offset + b->matrix_bytes > ARENA_BYTES)
            b->offset = 0;
        b->w.data = b->arena + b->offset;
    }
    b->call(b);
}

static struct tn_timing measure(void (*call)(struct bench *), struct bench *b)
{
    b->call = call;
    return tn_time_call(call_next, b);
}

static void call_lut_t2(struct bench *b)
{
    ((tn_lut_t2_fn *)b->row->fn)(b->table, b->x, b->w.cols);
}

static void call_prep_r2(struct bench *b)
{
    ((tn_prep_r2_fn *)b->row->fn)(b->table, b->x, b->w.cols);
}

static void call_sum_i8(struct bench *b)
{
    b->x_sum[0] = ((tn_sum_i8_fn *)b->row->fn)(b->x, tn_kern_pad(b->w.cols));
}

static void call_gemv_t2(struct bench *b)
{
    ((tn_gemv_t2_i8_fn *)b->row->fn)(b->dst, &b->w, 0, b->w.rows, b->table);
}

static void call_gemv_r2(struct bench *b)
{
    ((tn_gemv_r2_i8_fn *)b->row->fn)(b->dst, &b->w, b->list, b->n_list, b->table);
}

static void call_gemv_c2(struct bench *b)
{
    ((tn_gemv_c2_i8_fn *)b->row->fn)(b->dst, &b->w, 0, b->w.rows, b->list, b->x, b->n_list);
}

static void call_gemm(struct bench *b)
{
    const size_t dst_stride = b->w.rows + 16; /* as TN_SUM_STRIDE */
    ((tn_gemm_i8_fn *)b->row->fn)(b->dst, dst_stride, &b->w, 0, b->w.rows, b->x,
                                  tn_kern_pad(b->w.cols), b->x_sum, b->n_tokens, b->scratch);
}

static void call_gemv_x16(struct bench *b)
{
    b->m.w = b->w;
    ((tn_gemv_t2_x16_fn *)b->row->fn)((float *)b->dst, b->w.rows, &b->m, 0, b->w.rows, b->inputs,
                                      1);
}

static void call_gemm_x16(struct bench *b)
{
    const size_t dst_stride = b->w.rows + 16;
    b->m.w = b->w;
    ((tn_gemm_t2_x16_fn *)b->row->fn)((float *)b->dst, dst_stride, &b->m, 0, b->w.rows, b->inputs,
                                      b->n_tokens, b->scratch);
}

static void call_gemv_x8(struct bench *b)
{
    b->m.w = b->w;
    ((tn_gemv_t2_x8_fn *)b->row->fn)((float *)b->dst, b->w.rows, &b->m, 0, b->w.rows, b->inputs8,
                                     1);
}

static void call_gemm_x8(struct bench *b)
{
    const size_t dst_stride = b->w.rows + 16;
    b->m.w = b->w;
    ((tn_gemm_t2_x8_fn *)b->row->fn)((float *)b->dst, dst_stride, &b->m, 0, b->w.rows, b->inputs8,
                                     b->n_tokens, b->scratch);
}

static void call_gemv_f32(struct bench *b)
{
    b->m.w = b->w;
    ((tn_gemv_t2_f32_fn *)b->row->fn)((float *)b->dst, &b->m, 0, b->w.rows, b->floats);
}

static void call_few_r2(struct bench *b)
{
    ((tn_few_r2_i8_fn *)b->row->fn)(b->dst, b->n_list, &b->w, b->list, b->takers, b->n_list, b->x,
                                    tn_kern_pad(b->w.cols), b->x_sum);
}

static void call_dot_plane(struct bench *b)
{
    const int16_t *x[TN_PLANE_MAX_X];
    for (uint32_t t = 0; t < b->n_inputs; t++)
        x[t] = b->x16;
    const uint8_t *ones = b->w.data + (size_t)b->w.rows * tn_plane_row_bytes(HIDDEN, 4);
    const struct tn_plane_rows p = {
        .plane = {b->w.data, ones}, .n_rows = b->w.rows, .cols = b->w.cols};
    ((tn_dot_plane_fn *)b->row->fn)(b->dst, b->w.rows, &p, x, b->n_inputs, b->scratch);
}

/* Picks about `density` of n indices, ascending. */
static void pick_active(struct bench *b, uint32_t n, double density)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, 7);
    b->n_list = 0;
    for (uint32_t i = 0; i < n; i++)
        if ((double)tn_rng_f32(&rng) < density)
            b->list[b->n_list++] = i;
}

static void set_matrix(struct bench *b, uint32_t layout, uint32_t rows, uint32_t cols)
{
    b->w = (struct tn_ternary){b->arena, rows, cols, layout};
    b->matrix_bytes = (size_t)rows * cols / 4;
    b->offset = 0;
}

/* Prints a decode kernel that reads `bits` per weight. */
static void print_decode(struct bench *b, void (*call)(struct bench *), double bytes, double bits)
{
    const struct tn_timing t = measure(call, b);
    const double gbs = bytes / t.median * 1e-9, best = bytes / t.best * 1e-9;
    char place[32];
    if (b->from_memory && !tn_bench_add_rate(gbs))
        return;
    if (b->n_inputs > 1)
        snprintf(place, sizeof place, "%u rows", b->n_inputs);
    else
        snprintf(place, sizeof place, "%s", b->from_memory ? "memory" : "cache");
    printf("%-11s %-8s %-7s %4u x %-4u %8.1f us +-%3.0f %%  %6.2f GB/s (best %6.2f) %6.1f Gw/s  "
           "%3.0f %% of the stream\n",
           b->row->op, b->row->isa, place, b->w.rows, b->w.cols, t.median * 1e6, t.spread * 100,
           gbs, best, gbs * 8 / bits, gbs / b->stream_gbs * 100);
}

/* The first kernel of a pair prepares the table for the second. */
static void prepare(struct bench *b, const char *op)
{
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        const struct tn_kernel_row *row = &tn_kernel_rows[i];
        if (strcmp(row->op, op) == 0 && strcmp(row->isa, b->row->isa) == 0) {
            const struct tn_kernel_row *kept = b->row;
            b->row = row;
            (strcmp(op, "lut_t2") == 0 ? call_lut_t2 : call_prep_r2)(b);
            b->row = kept;
        }
    }
}

static void bench_table(struct bench *b, void (*call)(struct bench *))
{
    if (tn_bench_report.only_memory)
        return;
    b->from_memory = false;
    set_matrix(b, TERN_LAYOUT_T2, 64, HIDDEN);
    const struct tn_timing t = measure(call, b);
    printf("%-11s %-8s %-7s %11u %8.1f us +-%3.0f %%\n", b->row->op, b->row->isa, "cache", HIDDEN,
           t.median * 1e6, t.spread * 100);
}

static void bench_lut_t2(struct bench *b)
{
    bench_table(b, call_lut_t2);
}

static void bench_prep_r2(struct bench *b)
{
    bench_table(b, call_prep_r2);
}

static void bench_sum_i8(struct bench *b)
{
    bench_table(b, call_sum_i8);
}

static void bench_gemv_t2(struct bench *b)
{
    for (int memory = tn_bench_first_place(); memory < 2; memory++) {
        b->from_memory = memory;
        set_matrix(b, TERN_LAYOUT_T2, memory ? FFN : 512, HIDDEN);
        prepare(b, "lut_t2");
        print_decode(b, call_gemv_t2, (double)b->matrix_bytes, 2);
    }
}

static void bench_gemv_r2(struct bench *b)
{
    for (int memory = tn_bench_first_place(); memory < 2; memory++) {
        b->from_memory = memory;
        set_matrix(b, TERN_LAYOUT_R2, memory ? FFN : 512, HIDDEN);
        pick_active(b, b->w.rows, UP_DENSITY);
        prepare(b, "prep_r2");
        print_decode(b, call_gemv_r2, b->n_list * (HIDDEN / 4.0), 2);
    }
}

/* Picks rows of `up` for each of several inputs, and lists those that at least one needs. */
static void pick_takers(struct bench *b, uint32_t n)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, 7);
    b->n_list = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t takers = 0;
        for (uint32_t t = 0; t < b->n_inputs; t++)
            takers |= (uint32_t)((double)tn_rng_f32(&rng) < UP_DENSITY) << t;
        b->list[b->n_list] = i;
        b->takers[b->n_list] = (uint8_t)takers;
        b->n_list += takers != 0;
    }
}

static void bench_few_r2(struct bench *b)
{
    b->from_memory = true;
    for (b->n_inputs = 2; b->n_inputs <= 8; b->n_inputs *= 2) {
        set_matrix(b, TERN_LAYOUT_R2, FFN, HIDDEN);
        pick_takers(b, b->w.rows);
        print_decode(b, call_few_r2, b->n_list * (HIDDEN / 4.0), 2);
    }
    b->n_inputs = 1;
}

static void bench_gemv_c2(struct bench *b)
{
    for (int memory = tn_bench_first_place(); memory < 2; memory++) {
        b->from_memory = memory;
        set_matrix(b, TERN_LAYOUT_C2, HIDDEN, FFN);
        pick_active(b, b->w.cols, memory ? DOWN_DENSITY : DOWN_DENSITY / 2);
        print_decode(b, call_gemv_c2, b->n_list * (HIDDEN / 4.0), 2);
    }
}

/* With f16 scales of groups of 128, which are read in addition to the weights. */
static void bench_gemv_scaled(struct bench *b, void (*call)(struct bench *))
{
    for (int memory = tn_bench_first_place(); memory < 2; memory++) {
        b->from_memory = memory;
        set_matrix(b, TERN_LAYOUT_T2, memory ? FFN : 512, HIDDEN);
        const size_t n_scales = tn_n_scales(b->w.rows, HIDDEN, 128);
        print_decode(b, call, (double)(b->matrix_bytes + 2 * n_scales), 2);
    }
}

static void bench_gemv_x16(struct bench *b)
{
    bench_gemv_scaled(b, call_gemv_x16);
}

static void bench_gemv_x8(struct bench *b)
{
    bench_gemv_scaled(b, call_gemv_x8);
}

static void bench_gemv_f32(struct bench *b)
{
    bench_gemv_scaled(b, call_gemv_f32);
}

/* Both digits of an input are multiplied. */
static void bench_gemm_calls(struct bench *b, uint32_t layout, void (*call)(struct bench *),
                             unsigned n_digits)
{
    static const uint32_t n_tokens[] = {8, 64, 128, MAX_TOKENS};
    if (tn_bench_report.only_memory)
        return;
    const double peak = tn_peak_macs(b->row->isa) / n_digits;
    b->from_memory = false;
    for (size_t i = 0; i < TN_COUNT_OF(n_tokens); i++) {
        b->n_tokens = n_tokens[i];
        set_matrix(b, layout, TN_GEMM_ROWS, HIDDEN);
        const struct tn_timing t = measure(call, b);
        const double macs = (double)TN_GEMM_ROWS * HIDDEN * n_tokens[i] * 1e-9;
        printf("%-11s %-8s %-7s %4u tokens %8.1f us +-%3.0f %%  %6.1f G/s (best %6.1f)",
               b->row->op, b->row->isa, "cache", n_tokens[i], t.median * 1e6, t.spread * 100,
               macs / t.median, macs / t.best);
        if (peak > 0)
            printf("  %3.0f %% of %.0f G multiply-adds/s", macs / t.median / peak * 100, peak);
        printf("\n");
    }
}

static void bench_gemm(struct bench *b, uint32_t layout)
{
    bench_gemm_calls(b, layout, call_gemm, 1);
}

static void bench_gemm_x16(struct bench *b)
{
    bench_gemm_calls(b, TERN_LAYOUT_T2, call_gemm_x16, 2);
}

static void bench_gemm_x8(struct bench *b)
{
    bench_gemm_calls(b, TERN_LAYOUT_T2, call_gemm_x8, 1);
}

/* 2 to 8 inputs read each weight once, from memory; more from the cache. */
static void bench_gemm_t2(struct bench *b)
{
    b->from_memory = true;
    for (b->n_inputs = 2; b->n_inputs <= 8; b->n_inputs *= 2) {
        b->n_tokens = b->n_inputs;
        set_matrix(b, TERN_LAYOUT_T2, TN_GEMM_ROWS, HIDDEN);
        print_decode(b, call_gemm, (double)b->matrix_bytes, 2);
    }
    b->n_inputs = 1;
    bench_gemm(b, TERN_LAYOUT_T2);
}

static void bench_gemm_r2(struct bench *b)
{
    bench_gemm(b, TERN_LAYOUT_R2);
}

static void bench_gemm_c2(struct bench *b)
{
    bench_gemm(b, TERN_LAYOUT_C2);
}

/* Bit planes: all rows, as in the first stage of a search, for one input, then for several. */
static void bench_dot_plane(struct bench *b, uint32_t bits)
{
    static const uint32_t n_inputs[] = {1, 1, 2, 4, 8};
    for (size_t i = (size_t)tn_bench_first_place(); i < TN_COUNT_OF(n_inputs); i++) {
        const bool memory = i > 0;
        b->n_inputs = n_inputs[i];
        b->from_memory = memory;
        set_matrix(b, TERN_LAYOUT_Q8_PLANES, memory ? FFN : 512, HIDDEN);
        b->matrix_bytes = b->w.rows * tn_plane_row_bytes(HIDDEN, bits);
        print_decode(b, call_dot_plane, (double)b->matrix_bytes, bits);
    }
    b->n_inputs = 1;
}

static void bench_dot_u5(struct bench *b)
{
    bench_dot_plane(b, 5);
}

static void bench_dot_u4(struct bench *b)
{
    bench_dot_plane(b, 4);
}

static void bench_dot_u2(struct bench *b)
{
    bench_dot_plane(b, 2);
}

static void bench_dot_u1(struct bench *b)
{
    bench_dot_plane(b, 1);
}

/* All rows of a block of Q8_PLANES. */
static void call_unpack_planes(struct bench *b)
{
    static const uint8_t forms[TERN_PLANE_BLOCK_ROWS];
    const struct tn_bit_planes w = {.data = b->w.data, .offsets = b->x, .forms = forms,
                                    .rows = b->w.rows, .cols = HIDDEN, .n_planes = TN_MAX_PLANES};
    for (uint32_t r = 0; r < w.rows; r++)
        ((tn_unpack_planes_fn *)b->row->fn)((int8_t *)b->scratch, &w, r);
}

static void bench_unpack_planes(struct bench *b)
{
    for (int memory = tn_bench_first_place(); memory < 2; memory++) {
        b->from_memory = memory;
        set_matrix(b, TERN_LAYOUT_Q8_PLANES, memory ? TERN_PLANE_BLOCK_ROWS : 256, HIDDEN);
        b->matrix_bytes = (size_t)b->w.rows * HIDDEN;
        print_decode(b, call_unpack_planes, (double)b->matrix_bytes, 8);
    }
}

/* 128 columns of 256 rows per call. */
static void call_unpack_t5(struct bench *b)
{
    for (size_t at = 0; at + 4 * TERN_T5_RUN_BYTES <= b->matrix_bytes; at += 4 * TERN_T5_RUN_BYTES)
        ((tn_unpack_t5_fn *)b->row->fn)(b->scratch, TERN_T2_RUN_BYTES, b->w.data + at, 4);
}

static void bench_unpack_t5(struct bench *b)
{
    for (int memory = tn_bench_first_place(); memory < 2; memory++) {
        b->from_memory = memory;
        set_matrix(b, TERN_LAYOUT_T5, memory ? FFN : 512, HIDDEN);
        b->matrix_bytes = (size_t)tn_layout_size(TERN_LAYOUT_T5, b->w.rows, HIDDEN);
        print_decode(b, call_unpack_t5, (double)b->matrix_bytes, 13.0 / 8);
    }
}

static const struct {
    const char *op;
    void (*run)(struct bench *);
} benches[] = {
    {"lut_t2", bench_lut_t2},      {"gemv_t2_i8", bench_gemv_t2}, {"prep_r2", bench_prep_r2},
    {"gemv_r2_i8", bench_gemv_r2}, {"gemv_c2_i8", bench_gemv_c2}, {"sum_i8", bench_sum_i8},
    {"few_r2_i8", bench_few_r2},
    {"gemm_t2_i8", bench_gemm_t2}, {"gemm_r2_i8", bench_gemm_r2}, {"gemm_c2_i8", bench_gemm_c2},
    {"dot_u5_i16", bench_dot_u5},  {"dot_u4_i16", bench_dot_u4},
    {"dot_u2_i16", bench_dot_u2},  {"dot_u1_i16", bench_dot_u1},
    {"unpack_planes", bench_unpack_planes},
    {"gemv_t2_x16", bench_gemv_x16}, {"gemm_t2_x16", bench_gemm_x16},
    {"gemv_t2_x8", bench_gemv_x8}, {"gemm_t2_x8", bench_gemm_x8},
    {"gemv_t2_f32", bench_gemv_f32}, {"unpack_t5", bench_unpack_t5},
};

static_assert(TN_COUNT_OF(benches) == TN_BENCH_N_TERNARY, "the header has their number");

static void allocate(struct bench *b)
{
    b->arena = pages(ARENA_BYTES);
    fill_weights(b->arena, ARENA_BYTES);
    b->list = pages(FFN * sizeof *b->list);
    b->takers = must(malloc(FFN));
    b->x = pages((size_t)MAX_TOKENS * tn_kern_pad(FFN));
    struct tn_rng rng;
    tn_rng_seed(&rng, 3);
    for (size_t i = 0; i < (size_t)MAX_TOKENS * tn_kern_pad(FFN); i++)
        b->x[i] = (int8_t)((int)(tn_rng_next(&rng) % 255) - 127);
    b->n_inputs = 1;
    b->x16 = pages(HIDDEN * sizeof *b->x16);
    for (size_t i = 0; i < HIDDEN; i++) /* one digit, like nearly all columns of a hidden state */
        b->x16[i] = b->x[i];
    b->floats = pages(tn_kern_pad(HIDDEN) * sizeof *b->floats);
    for (size_t i = 0; i < HIDDEN; i++)
        b->floats[i] = b->x[i];
    b->inputs = pages(MAX_TOKENS * TN_X16_BYTES(HIDDEN));
    b->inputs8 = pages(MAX_TOKENS * TN_X8_BYTES(HIDDEN));
    for (size_t i = 0; i < MAX_TOKENS; i++) {
        tn_quant_x16_ref(b->inputs + i * TN_X16_BYTES(HIDDEN), b->floats, HIDDEN);
        tn_quant_x8_ref(b->inputs8 + i * TN_X8_BYTES(HIDDEN), b->floats, HIDDEN);
    }
    const size_t n_scales = tn_n_scales(FFN, HIDDEN, 128);
    b->scales = pages(n_scales * sizeof *b->scales);
    for (size_t i = 0; i < n_scales; i++)
        b->scales[i] = 0x2000;
    b->m = (struct tn_scaled_ternary){.scales = b->scales, .group = 128, .is_f16 = true};
    b->table = pages(TN_LUT_BYTES(FFN));
    b->dst = pages((size_t)MAX_TOKENS * FFN * sizeof *b->dst);
    b->scratch = pages(TN_KERNEL_SCRATCH_BYTES);
}

static void print_ceilings(struct bench *b)
{
    const double up = tn_peak_rows(b->arena, ARENA_BYTES, HIDDEN / 4, UP_DENSITY, 5);
    const double down = tn_peak_rows(b->arena, ARENA_BYTES, HIDDEN / 4, DOWN_DENSITY, 5);
    printf("reading memory, 1 thread: stream %.1f GB/s; a plain loop over rows of %u bytes: %.1f "
           "at a density of %.2f, %.1f at %.2f\n",
           b->stream_gbs, HIDDEN / 4, up, UP_DENSITY, down, DOWN_DENSITY);
    tn_bench_loop_cost(1);
    tn_bench_loop_cost(2);
}

static struct bench bench;

double tn_bench_ternary_init(void)
{
    allocate(&bench);
    bench.stream_gbs = tn_peak_stream(bench.arena, ARENA_BYTES, 5);
    print_ceilings(&bench);
    return bench.stream_gbs;
}

void tn_bench_ternary(const struct tn_kernel_row *row)
{
    bench.row = row;
    for (size_t k = 0; k < TN_COUNT_OF(benches); k++)
        if (strcmp(benches[k].op, row->op) == 0)
            benches[k].run(&bench);
}

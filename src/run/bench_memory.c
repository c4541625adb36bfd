/* SPDX-License-Identifier: MIT
 *
 * How fast this machine reads memory, and how near each kernel comes to it.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/stream.h"
#include "run/bench.h"
#include "run/session.h"
#include "tern/sysinfo.h"

#define STREAM_BYTES ((size_t)256 << 20)
#define SLICE_BYTES ((size_t)1 << 20)
#define N_BEST 3

/* ---- stream ---- */

struct stream {
    const unsigned char *data;
    uint64_t sink; /* so that reading is not optimised away */
};

static void read_slice(void *arg, uint32_t i_slice, uint32_t i_thread)
{
    (void)i_thread;
    struct stream *s = arg;
    uint64_t all = tn_read_stream(s->data + (size_t)i_slice * SLICE_BYTES, SLICE_BYTES);
    if (all == 0x5D1F0C3A9B7E2468u) /* practically never */
        s->sink = all;
}

static tern_status stream_once(double *gb_s, struct stream *s, uint32_t n_slices,
                               uint32_t n_threads, struct tern_error *err)
{
    struct tn_team *team;
    tern_status status = tn_team_create(&team, n_threads, NULL, err);
    if (status != TERN_OK)
        return status;
    *gb_s = 0;
    for (int i = 0; i < N_BEST; i++) {
        uint64_t start = tn_now_ns();
        tn_team_for(team, n_slices, read_slice, s);
        double rate = (double)n_slices * (double)SLICE_BYTES / (double)(tn_now_ns() - start);
        *gb_s = TN_MAX(*gb_s, rate);
    }
    tn_team_free(team);
    return TERN_OK;
}

tern_status tn_bench_check_memory(const struct tern_model *model, struct tern_error *err)
{
    uint64_t available;
    tern_status status = tn_memory_available(&available, err);
    if (status != TERN_OK || model->file.header->data.bytes >= STREAM_BYTES ||
        available >= STREAM_BYTES)
        return status;
    return tn_fail(err, TERN_MEMORY,
                   "measuring the stream rate needs 256 MiB of memory, %.1f MiB are available",
                   (double)available / 0x1p20);
}

tern_status tn_bench_stream(double *gb_s, const struct tern_model *model, const uint32_t *threads,
                            uint32_t n, struct tern_error *err)
{
    size_t n_bytes = model->file.header->data.bytes;
    struct stream s = {.data = model->file.map.data + model->file.header->data.offset};
    unsigned char *own = NULL;
    if (n_bytes < STREAM_BYTES) {
        n_bytes = STREAM_BYTES;
        own = tn_pages_reserve(n_bytes);
        if (!own || !tn_pages_commit(own, n_bytes)) {
            tn_pages_release(own, n_bytes);
            return tn_fail(err, TERN_MEMORY, "no memory for 256 MiB to measure the stream rate");
        }
        memset(own, 1, n_bytes); /* real pages, not the zero page */
        s.data = own;
    }
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < n && status == TERN_OK; i++)
        status = stream_once(&gb_s[i], &s, (uint32_t)(n_bytes / SLICE_BYTES) - 1, threads[i], err);
    if (own)
        tn_pages_release(own, n_bytes);
    return status;
}

/* ---- kernels ---- */

struct bench_memory {
    int8_t *x;       /* rounded input, [widest] */
    float *xf;       /* the same as f32 */
    int16_t *x16;    /* and as int16 */
    uint32_t *index; /* 0, 1, 2, ... */
    void *prepared;
    int32_t *sum;
    float *logits;   /* [vocab] */
};

static void bench_memory_fini(struct bench_memory *m)
{
    tn_free_aligned(m->x);
    tn_free_aligned(m->xf);
    tn_free_aligned(m->x16);
    tn_free_aligned(m->index);
    tn_free_aligned(m->prepared);
    tn_free_aligned(m->sum);
    tn_free_aligned(m->logits);
}

static bool bench_memory_init(struct bench_memory *m, const struct tern_file_config *c)
{
    uint32_t widest = tn_kern_pad(TN_MAX(TN_MAX(c->hidden, c->ffn), c->n_head * c->head_dim));
    struct tn_rng rng;
    *m = (struct bench_memory){
        .x = tn_alloc_aligned(widest, 64),
        .xf = tn_alloc_aligned(widest * sizeof(float), 64),
        .x16 = tn_alloc_aligned(widest * sizeof(int16_t), 64),
        .index = tn_alloc_aligned(widest * sizeof(uint32_t), 64),
        .prepared = tn_alloc_aligned(TN_LUT_BYTES(widest), 64),
        .sum = tn_alloc_aligned((size_t)widest * sizeof(int32_t), 64),
        .logits = tn_alloc_aligned(c->vocab * sizeof(float), 64),
    };
    if (!m->x || !m->xf || !m->x16 || !m->index || !m->prepared || !m->sum || !m->logits)
        return false;
    tn_rng_seed(&rng, 1);
    for (uint32_t i = 0; i < widest; i++) {
        m->x[i] = (int8_t)((int)(tn_rng_next(&rng) >> 57) - 63);
        m->xf[i] = m->x[i];
        m->x16[i] = m->x[i];
        m->index[i] = i;
    }
    return true;
}

/* Multiplies one matrix of every layer; returns bytes read. */
typedef uint64_t pass_fn(const struct tn_kernels *k, const struct tern_model *model,
                         struct bench_memory *m);

static uint64_t pass_t2(const struct tn_kernels *k, const struct tern_model *model,
                        struct bench_memory *m)
{
    uint64_t bytes = 0;
    k->lut_t2(m->prepared, m->x, model->file.config->hidden);
    for (uint32_t i = 0; i < model->file.config->n_layer; i++) {
        const struct tn_ternary *w = &model->weights.layers[i].gate.w;
        k->gemv_t2_i8(m->sum, w, 0, (uint32_t)tn_align_up(w->rows, TERN_T2_TILE_ROWS),
                      m->prepared);
        bytes += (uint64_t)w->rows * w->cols / 4;
    }
    return bytes;
}

static uint64_t pass_r2(const struct tn_kernels *k, const struct tern_model *model,
                        struct bench_memory *m)
{
    uint64_t bytes = 0;
    k->prep_r2(m->prepared, m->x, model->file.config->hidden);
    for (uint32_t i = 0; i < model->file.config->n_layer; i++) {
        const struct tn_ternary *w = &model->weights.layers[i].up.w;
        if (w->layout != TERN_LAYOUT_R2)
            return 0;
        k->gemv_r2_i8(m->sum, w, m->index, w->rows, m->prepared);
        bytes += (uint64_t)w->rows * w->cols / 4;
    }
    return bytes;
}

static uint64_t pass_c2(const struct tn_kernels *k, const struct tern_model *model,
                        struct bench_memory *m)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < model->file.config->n_layer; i++) {
        const struct tn_ternary *w = &model->weights.layers[i].down.w;
        if (w->layout != TERN_LAYOUT_C2)
            return 0;
        uint32_t rows = (uint32_t)tn_align_up(w->rows, TERN_C2_ROW_ALIGN);
        for (uint32_t row = 0; row < rows; row += TN_C2_MAX_ROWS)
            k->gemv_c2_i8(m->sum, w, row, TN_MIN(row + TN_C2_MAX_ROWS, rows), m->index, m->x,
                          w->cols);
        bytes += (uint64_t)w->rows * w->cols / 4;
    }
    return bytes;
}

static uint64_t pass_q8(const struct tn_kernels *k, const struct tern_model *model,
                        struct bench_memory *m)
{
    const struct tn_table *head = &model->weights.head;
    if (head->layout != TERN_LAYOUT_Q8)
        return 0;
    k->gemv_q8_f32(m->logits, head->rows, head->data, head->scales, head->rows, head->cols, m->xf,
                   head->cols, 1);
    return (uint64_t)head->rows * head->cols;
}

/* The high bits of the head: the first stage of a search. */
static uint64_t pass_u4(const struct tn_kernels *k, const struct tern_model *model,
                        struct bench_memory *m)
{
    const struct tn_planes *w = &model->weights.head.planes;
    if (w->n_planes == 0)
        return 0;
    for (uint32_t row = 0; row < w->rows; row += TERN_PLANE_BLOCK_ROWS)
        k->dot_u4_i16((int32_t *)m->logits + row, tn_planes_block(w, row, 0), NULL,
                      TN_MIN(TERN_PLANE_BLOCK_ROWS, w->rows - row), NULL, w->cols, m->x16);
    return w->rows * (uint64_t)tn_plane_row(w->cols, 0);
}

static const struct {
    const char *op;
    pass_fn *pass;
} passes[] = {
    {"gemv_t2_i8", pass_t2},
    {"gemv_r2_i8", pass_r2},
    {"gemv_c2_i8", pass_c2},
    {"gemv_q8_f32", pass_q8},
    {"dot_u4_i16", pass_u4},
};

/* Best of a few passes, in GB/s; 0 when the model has no such matrix. */
static double time_pass(pass_fn *pass, const struct tn_kernels *k, const struct tern_model *model,
                        struct bench_memory *m)
{
    double best = 0;
    for (int i = 0; i < N_BEST; i++) {
        uint64_t start = tn_now_ns();
        uint64_t bytes = pass(k, model, m);
        best = TN_MAX(best, (double)bytes / (double)(tn_now_ns() - start));
    }
    return best;
}

tern_status tn_bench_kernels(struct tern_bench_result *result, const struct tern_model *model,
                             struct tern_error *err)
{
    struct bench_memory m = {0};
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    double stream;
    const uint32_t one = 1;
    tern_status status = tn_bench_stream(&stream, model, &one, 1, err);
    if (status == TERN_OK && (!machine || !bench_memory_init(&m, model->file.config)))
        status = tn_fail(err, TERN_MEMORY, "no memory to time kernels");
    if (status == TERN_OK)
        tern_sysinfo_read(machine);
    for (uint32_t i = 1; i < tn_n_cpu_levels && status == TERN_OK; i++) {
        if (tn_cpu_levels[i].features & ~machine->cpu_features)
            continue;
        struct tn_kernels k;
        tn_kernels_select(&k, tn_cpu_levels[i].features);
        for (size_t j = 0; j < TN_COUNT_OF(passes); j++) {
            double gb_s = time_pass(passes[j].pass, &k, model, &m);
            if (gb_s > 0 && result->n_kernels < TERN_BENCH_MAX_KERNELS)
                result->kernels[result->n_kernels++] = (struct tern_bench_kernel){
                    passes[j].op, tn_cpu_levels[i].name, gb_s, gb_s / stream};
        }
    }
    bench_memory_fini(&m);
    tn_free(machine);
    return status;
}

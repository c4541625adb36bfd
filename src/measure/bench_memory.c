/* SPDX-License-Identifier: MIT
 *
 * Measures memory bandwidth, and how close each kernel comes to it.
 *
 * Kernels run on the model's own matrices and on random caches, one thread, all levels in turn.
 */
#include <string.h>

#include "base/error.h"
#include "base/stream.h"
#include "engine/cpu_level.h"
#include "engine/workspace.h"
#include "measure/bench.h"
#include "measure/kernel_cases.h"

#define STREAM_BYTES ((size_t)256 << 20)
#define SLICE_BYTES ((size_t)1 << 20)
#define N_BEST 3
#define N_ROUNDS 8 /* idle processors need some tenths of a second to reach full clock */
#define CACHE_BYTES ((size_t)64 << 20) /* keys and values: exceeds the caches of most processors */

tern_status tn_bench_check_stop(const struct tern_bench_params *p, struct tern_error *err)
{
    if (!p->should_stop || !p->should_stop(p->arg))
        return TERN_OK;
    return tn_fail(err, TERN_INTERRUPTED, "interrupted while measuring");
}

/* ---- stream ---- */

static void read_slice(void *arg, uint32_t i_slice, uint32_t i_thread)
{
    (void)i_thread;
    struct tn_bench_stream *s = arg;
    uint64_t all = tn_read_stream(s->data + (size_t)i_slice * SLICE_BYTES, SLICE_BYTES);
    if (all == 0x5D1F0C3A9B7E2468u) /* practically never true */
        s->sink = all;
}

double tn_bench_stream_rate(struct tn_bench_stream *stream, struct tn_team *team)
{
    uint32_t n_slices = (uint32_t)(stream->n_bytes / SLICE_BYTES) - 1;
    double best = 0;
    for (int i = 0; i < N_BEST; i++) {
        uint64_t start = tn_now_ns();
        if (team)
            tn_team_for(team, n_slices, read_slice, stream);
        else
            for (uint32_t k = 0; k < n_slices; k++)
                read_slice(stream, k, 0);
        double rate = (double)n_slices * (double)SLICE_BYTES / (double)(tn_now_ns() - start);
        best = TN_MAX(best, rate);
    }
    return best;
}

static tern_status check_memory(size_t need, struct tern_error *err)
{
    uint64_t available;
    tern_status status = tn_memory_available(&available, err);
    if (status != TERN_OK || available >= need)
        return status;
    return tn_fail(err, TERN_MEMORY,
                   "measuring the stream rate needs %zu MiB of memory, %.1f MiB are available",
                   need >> 20, (double)available / 0x1p20);
}

tern_status tn_bench_check_memory(const struct tern_model *model, struct tern_error *err)
{
    const size_t own = model->file.header->data.bytes < STREAM_BYTES ? STREAM_BYTES : 0;
    return check_memory(own + CACHE_BYTES, err);
}

/* Allocates a buffer and touches it, so that it has real pages instead of the zero page. */
static tern_status take_memory(struct tn_bench_stream *out, struct tern_error *err)
{
    out->own = tn_pages_reserve(STREAM_BYTES);
    if (!out->own || !tn_pages_commit(out->own, STREAM_BYTES)) {
        tn_bench_stream_close(out);
        return tn_fail(err, TERN_MEMORY, "no memory for 256 MiB to measure the stream rate");
    }
    tn_pages_advise_huge(out->own, STREAM_BYTES); /* as mapped models have */
    memset(out->own, 1, STREAM_BYTES);
    out->data = out->own;
    out->n_bytes = STREAM_BYTES;
    return TERN_OK;
}

tern_status tn_bench_stream_open(struct tn_bench_stream *out, const struct tern_model *model,
                                 struct tern_error *err)
{
    *out = (struct tn_bench_stream){
        .data = model->file.map.data + model->file.header->data.offset,
        .n_bytes = model->file.header->data.bytes,
    };
    return out->n_bytes >= STREAM_BYTES ? TERN_OK : take_memory(out, err);
}

void tn_bench_stream_close(struct tn_bench_stream *stream)
{
    if (stream->own)
        tn_pages_release(stream->own, STREAM_BYTES);
    *stream = (struct tn_bench_stream){0};
}

tern_status tern_stream_rate(double *gb_s, uint32_t n_threads, struct tern_error *err)
{
    struct tn_bench_stream stream = {0};
    struct tn_team *team = NULL;
    *gb_s = 0;
    tern_status status = check_memory(2 * STREAM_BYTES, err); /* leave half for other programs */
    if (status == TERN_OK)
        status = take_memory(&stream, err);
    if (status == TERN_OK)
        status = tn_team_create(&team, n_threads, NULL, err);
    for (int i = 0; i < N_ROUNDS && status == TERN_OK; i++)
        *gb_s = TN_MAX(*gb_s, tn_bench_stream_rate(&stream, team));
    tn_team_free(team);
    tn_bench_stream_close(&stream);
    return status == TERN_OK ? tn_ok(err) : status;
}

/* ---- kernels ---- */

/* Minimum time of a pass over cached data; shorter ones are repeated. */
#define MIN_PASS_NS 1000000u

/* Bytes per nanosecond over at least MIN_PASS_NS, the best of a few; 0: the model has no data for
 * it. */
static double time_case(const struct tn_kernel_case *c, struct tn_case_work *w,
                        const struct tn_kernels *kernels)
{
    double best = 0;
    for (int i = 0; i < N_BEST && !(w->should_stop && w->should_stop(w->arg)); i++) {
        uint64_t start = tn_now_ns(), ns = 0, bytes = 0, once;
        do {
            once = c->run(w, kernels);
            bytes += once;
            ns = tn_now_ns() - start;
        } while (once > 0 && ns < MIN_PASS_NS);
        best = TN_MAX(best, (double)bytes / (double)TN_MAX(ns, 1u));
    }
    return best;
}

static bool has_kernel(const char *op, const char *level)
{
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (strcmp(tn_kernel_rows[i].op, op) == 0 && strcmp(tn_kernel_rows[i].isa, level) == 0)
            return true;
    return false;
}

static tern_status time_level(struct tern_bench_result *result, struct tn_case_work *w,
                              const struct tn_cpu_level *level,
                              const struct tern_bench_params *params,
                              struct tn_bench_stream *stream, struct tern_error *err)
{
    const double stream_gb_s = tn_bench_stream_rate(stream, NULL);
    struct tn_kernels kernels;
    tn_kernels_select(&kernels, level->features);
    for (uint32_t i = 0; i < tn_n_kernel_cases; i++) {
        const struct tn_kernel_case *c = &tn_kernel_cases[i];
        if (!has_kernel(c->op, level->name))
            continue;
        const double gb_s = time_case(c, w, &kernels);
        tern_status status = tn_bench_check_stop(params, err);
        if (status != TERN_OK)
            return status;
        if (gb_s > 0 && result->n_kernels < TERN_BENCH_MAX_KERNELS)
            result->kernels[result->n_kernels++] =
                (struct tern_bench_kernel){c->op, level->name, gb_s, gb_s / stream_gb_s};
    }
    return TERN_OK;
}

tern_status tn_bench_kernels(struct tern_bench_result *result, const struct tern_model *model,
                             const struct tern_bench_params *params,
                             struct tn_bench_stream *stream, struct tern_error *err)
{
    static const struct tn_case_size size = {.n_rows = UINT32_MAX,
                                             .n_layers = UINT32_MAX,
                                             .n_gemm = 1,
                                             .n_tokens = TN_CASE_MAX_TOKENS,
                                             .n_pos = TN_KV_BLOCK,
                                             .cache_bytes = CACHE_BYTES};
    struct tn_case_work w;
    tern_status status = tn_case_work_init(&w, model, &size, err);
    if (status != TERN_OK)
        return status;
    w.should_stop = params->should_stop;
    w.arg = params->arg;
    for (uint32_t i = 1; i < tn_n_cpu_levels && status == TERN_OK; i++)
        if ((tn_cpu_levels[i].features & ~params->machine->cpu_features) == 0)
            status = time_level(result, &w, &tn_cpu_levels[i], params, stream, err);
    tn_case_work_fini(&w);
    return status;
}

/* SPDX-License-Identifier: MIT
 *
 * Memory for evaluations.
 *
 * Two ranges of address space are reserved at creation: scratch memory, committed at once, and the
 * key/value cache, committed 256 positions at a time.  Pages use memory only once touched.
 */
#include "engine/workspace.h"

#include <assert.h>

#include "base/bits.h"
#include "base/error.h"
#include "plat/plat.h"
#include "tern/sysinfo.h"

static_assert((int)TERN_KV_F32 == TN_KV_F32 && (int)TERN_KV_F16 == TN_KV_F16 &&
                  (int)TERN_KV_Q8 == TN_KV_Q8,
              "the cache types of the API and of the model layer are the same numbers");
static_assert((int)TERN_INPUTS_AS_MODEL == TN_INPUTS_AS_MODEL &&
                  (int)TERN_INPUTS_AS_F32 == TN_INPUTS_AS_F32 &&
                  (int)TERN_INPUTS_AS_16 == TN_INPUTS_AS_16 &&
                  (int)TERN_INPUTS_AS_8 == TN_INPUTS_AS_8,
              "and so are the activation precisions");

const char *tern_kv_text(enum tern_kv kv)
{
    return kv == TERN_KV_F32 ? "f32" : kv == TERN_KV_F16 ? "f16" : "q8";
}

/* Reserves address space for scratch (committed), cache and checkpoints (not yet committed). */
static bool reserve_memory(struct tn_workspace *w)
{
    w->scratch_bytes = tn_align_up(w->size.scratch_bytes, tn_page_bytes());
    w->scratch_base = tn_pages_reserve(w->scratch_bytes);
    return w->scratch_base && tn_pages_commit(w->scratch_base, w->scratch_bytes) &&
           tn_cache_pool_init(&w->pool, w->size.kv_block_bytes,
                              tn_div_ceil_u32(w->params.n_ctx, TN_KV_BLOCK) *
                                  w->params.n_sequences) &&
           (w->size.checkpoints_full_bytes == 0 ||
            tn_cache_pool_init(&w->checkpoints.pool, w->size.checkpoint_bytes,
                               w->params.n_checkpoints));
}

static bool should_stop(void *arg)
{
    const struct tn_workspace *w = arg;
    return w->params.should_stop(w->params.arg);
}

static void drop_layer(void *arg, const struct tn_layer *layer)
{
    const struct tn_workspace *w = arg;
    tn_map_advise(&w->model->file.map, layer->begin, layer->end - layer->begin,
                  TN_ADVICE_DONTNEED);
}

static bool after_layer(void *arg, const struct tn_layer *layer)
{
    struct tn_workspace *w = arg;
    if (w->params.drop_pages)
        drop_layer(w, layer);
    return !w->params.should_stop || !w->params.should_stop(w->params.arg);
}

static void advise(const struct tn_workspace *w, const void *weights, size_t n_bytes,
                   enum tn_advice advice)
{
    const struct tn_map *map = &w->model->file.map;
    tn_map_advise(map, (size_t)((const unsigned char *)weights - map->data), n_bytes, advice);
}

static void drop_head_rows(void *arg, const void *rows, size_t n_bytes)
{
    advise(arg, rows, n_bytes, TN_ADVICE_DONTNEED);
}

static void read_expert_ahead(void *arg, const void *matrix, size_t n_bytes)
{
    advise(arg, matrix, n_bytes, TN_ADVICE_WILLNEED);
}

static void wire(struct tn_workspace *w, const struct tn_workspace_input *input)
{
    struct tn_arena arena = {.base = w->scratch_base, .capacity = w->scratch_bytes};
    struct tn_forward *f = &w->forward;
    const struct tn_state_input state_input = tn_workspace_state_input(input);
    tn_scratch_layout(&f->s, &arena, &w->model->weights, input);
    tn_state_plan_make(&w->states, f->s.state_layers, &w->model->weights, &state_input);
    f->weights = &w->model->weights;
    f->kernels = &w->engine->kernels;
    f->team = w->engine->team;
    f->kv_type = input->kv;
    f->states = &w->states;
    f->now_ns = tn_now_ns;
    f->after_layer = after_layer;
    f->after_layer_arg = w;
    if (w->params.should_stop)
        f->should_stop = should_stop;
    if (w->params.drop_pages) {
        f->after_mixer = drop_layer;
        f->after_head_rows = drop_head_rows;
    }
    f->inputs = (enum tn_inputs_as)w->engine->inputs;
    tn_forward_prepare(f);
    w->pool.refs = f->s.block_refs;
    w->pool.free = f->s.free_blocks;
    w->checkpoints.list = f->s.checkpoints;
    w->checkpoints.pool.refs = f->s.checkpoint_refs;
    w->checkpoints.pool.free = f->s.free_checkpoints;
    w->pool.may_grow = w->checkpoints.pool.may_grow = w->params.may_grow;
    w->pool.arg = w->checkpoints.pool.arg = w->params.arg;
}

tern_status tn_memory_available(uint64_t *n_bytes, struct tern_error *err)
{
    struct tern_monitor *monitor;
    struct tern_monitor_sample now;
    *n_bytes = 0;
    tern_status status = tern_monitor_open(&monitor, NULL, err);
    if (status != TERN_OK)
        return status;
    tern_monitor_read(monitor, &now);
    tern_monitor_close(monitor);
    *n_bytes = now.available_bytes;
    return tn_ok(err);
}

/* A plan and a watch guard growth through may_grow; without them memory is checked here, before any
 * is taken. */
static tern_status check_available(const struct tn_workspace *w, struct tern_error *err)
{
    const uint64_t need = tn_workspace_bytes_full(w);
    uint64_t available;
    if (w->params.may_grow)
        return tn_ok(err);
    tern_status status = tn_memory_available(&available, err);
    if (status != TERN_OK || need <= available)
        return status;
    return tn_fail(err, TERN_MEMORY,
                   "a context of %u needs %.1f MiB of memory beside the model, %.1f MiB are "
                   "available; a smaller context or --kv q8 needs less",
                   w->params.n_ctx, (double)need / 0x1p20, (double)available / 0x1p20);
}

tern_status tn_workspace_init(struct tn_workspace *w, struct tern_engine *engine,
                              const struct tern_model *model,
                              const struct tn_workspace_params *params, struct tern_error *err)
{
    const struct tn_workspace_input input = {
        .n_ctx = params->n_ctx,
        .n_batch = params->n_batch,
        .n_threads = tn_team_n_threads(engine->team),
        .kv = (enum tn_kv_type)params->kv,
        .n_sequences = params->n_sequences,
        .n_logits = params->n_logits,
        .inputs = (enum tn_inputs_as)engine->inputs,
        .n_checkpoints = params->n_checkpoints,
        .has_drafts = params->has_drafts,
    };
    tern_status status = tn_engine_check_inputs(engine, model, err);
    if (status != TERN_OK)
        return status;
    w->engine = engine;
    w->model = model;
    w->params = *params;
    tn_workspace_size_make(&w->size, &model->weights, &input);
    if (!reserve_memory(w))
        return tn_fail(err, TERN_MEMORY,
                       "the system refuses address space for a context of %u: %.0f MiB for the "
                       "%s cache and %.0f MiB beside it; a smaller --ctx needs less",
                       params->n_ctx, (double)w->size.kv_full_bytes / 0x1p20,
                       tern_kv_text(params->kv), (double)w->size.scratch_bytes / 0x1p20);
    status = check_available(w, err);
    if (status == TERN_OK)
        wire(w, &input);
    return status;
}

void tn_workspace_fini(struct tn_workspace *w)
{
    if (w->scratch_base)
        tn_pages_release(w->scratch_base, w->scratch_bytes);
    tn_cache_pool_fini(&w->pool);
    tn_cache_pool_fini(&w->checkpoints.pool);
}

struct tn_sequence tn_workspace_sequence(struct tn_workspace *w, uint32_t i)
{
    const struct tn_sequence_scratch *memory = &w->forward.s.sequences[i];
    return (struct tn_sequence){.pool = &w->pool,
                                .states = &w->states,
                                .checkpoints = &w->checkpoints,
                                .number = i,
                                .ids = memory->ids,
                                .blocks = memory->blocks,
                                .state = memory->state};
}

static void set_threads(const struct tn_workspace *w, const struct tn_batch *batch)
{
    const struct tern_engine *engine = w->engine;
    /* bound by memory bandwidth, like a single row */
    const bool is_few = batch->n_rows <= TN_FEW_TOKENS;
    tn_team_set_active(engine->team, is_few ? engine->n_decode : engine->n_prefill);
}

bool tn_workspace_eval_draft(struct tn_workspace *w, const struct tn_batch *batch,
                             const float *states, float *last)
{
    set_threads(w, batch);
    return tn_forward_draft(&w->forward, batch, states, last);
}

tern_status tn_workspace_eval(struct tn_workspace *w, const struct tn_batch *batch,
                              struct tern_error *err)
{
    set_threads(w, batch);
    w->forward.before_expert = w->model->pages_experts ? read_expert_ahead : NULL;
    if (!tn_forward_eval(&w->forward, batch))
        return tn_fail(err, TERN_INTERRUPTED, "interrupted after %u positions",
                       batch->spans[0].position);
    /* nothing computed from a changed file is kept */
    return tern_model_check_unchanged(w->model, err);
}

tern_status tn_workspace_fail_growth(const struct tn_workspace *w, uint32_t n_past,
                                     struct tern_error *err)
{
    return tn_fail(err, TERN_MEMORY,
                   "context limited by memory: %u positions are in use and %.1f MiB for the next "
                   "%u are not free",
                   n_past, (double)w->states.bytes.block / 0x1p20, TN_KV_BLOCK);
}

uint64_t tn_workspace_bytes(const struct tn_workspace *w)
{
    return w->scratch_bytes + (uint64_t)w->pool.block_bytes * w->pool.n_ready +
           (uint64_t)w->checkpoints.pool.block_bytes * w->checkpoints.pool.n_ready;
}

uint64_t tn_workspace_bytes_full(const struct tn_workspace *w)
{
    return w->scratch_bytes + w->size.kv_full_bytes + w->size.checkpoints_full_bytes;
}

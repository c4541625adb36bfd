/* SPDX-License-Identifier: MIT
 *
 * A session: one conversation's memory, and evaluation in batches.
 *
 * Two ranges of address space are reserved at creation: scratch memory, usable
 * at once, and the key/value cache, made usable 256 positions at a time.  Pages
 * cost memory only when they are touched.
 */
#include "run/session.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/log.h"
#include "kern/trig.h"
#include "tern/sysinfo.h"

#define MAX_BATCH 512u

static_assert((int)TERN_KV_F32 == TN_KV_F32 && (int)TERN_KV_F16 == TN_KV_F16 &&
                  (int)TERN_KV_Q8 == TN_KV_Q8,
              "the cache types of the API and of the model layer are the same numbers");

const char *tern_kv_text(enum tern_kv kv)
{
    return kv == TERN_KV_F32 ? "f32" : kv == TERN_KV_F16 ? "f16" : "q8";
}

void tern_session_params_default(struct tern_session_params *out)
{
    *out = (struct tern_session_params){.kv = TERN_KV_F16};
}

/* ---- creation ---- */

static tern_status check_params(const struct tern_session_params *p,
                                const struct tern_file_config *c, struct tern_error *err)
{
    if (p->n_ctx > c->context)
        return tn_fail(err, TERN_USAGE, "context %u is more than the model's %u", p->n_ctx,
                       c->context);
    if (p->n_batch > MAX_BATCH)
        return tn_fail(err, TERN_USAGE, "batch %u is more than %u", p->n_batch, MAX_BATCH);
    if ((unsigned)p->kv > TERN_KV_Q8)
        return tn_fail(err, TERN_USAGE, "cache type %d is unknown", (int)p->kv);
    return tn_ok(err);
}

/* Address space for scratch (usable) and cache (not yet). */
static bool reserve_memory(struct tern_session *s)
{
    s->scratch_bytes = tn_align_up(s->memplan.scratch_bytes, tn_page_bytes());
    s->scratch_base = tn_pages_reserve(s->scratch_bytes);
    if (!s->scratch_base || !tn_pages_commit(s->scratch_base, s->scratch_bytes))
        return false;
    s->kv.base = tn_pages_reserve(s->kv.block_bytes * s->kv.n_blocks);
    if (s->kv.base)
        tn_pages_advise_huge(s->kv.base, s->kv.block_bytes * s->kv.n_blocks);
    return s->kv.base != NULL;
}

static bool after_layer(void *arg, const struct tn_layer *layer)
{
    struct tern_session *s = arg;
    if (s->params.drop_pages)
        tn_map_advise(&s->model->file.map, layer->begin, layer->end - layer->begin,
                      TN_ADVICE_DONTNEED);
    return !s->params.should_stop || !s->params.should_stop(s->params.arg);
}

static void drop_head_rows(void *arg, const void *rows, size_t n_bytes)
{
    struct tern_session *s = arg;
    const struct tn_map *map = &s->model->file.map;
    tn_map_advise(map, (size_t)((const unsigned char *)rows - map->data), n_bytes,
                  TN_ADVICE_DONTNEED);
}

static void wire(struct tern_session *s, const struct tn_memplan_input *input)
{
    const struct tern_file_config *c = s->model->file.config;
    struct tn_arena arena = {.base = s->scratch_base, .capacity = s->scratch_bytes};
    tn_scratch_layout(&s->forward.s, &arena, c, input);
    tn_rope_inv_freq(s->forward.s.inv_freq, c->head_dim, c->rope_theta);
    s->forward.weights = &s->model->weights;
    s->forward.kernels = &s->engine->kernels;
    s->forward.team = s->engine->team;
    s->forward.kv = &s->kv;
    s->forward.now_ns = tn_now_ns;
    s->forward.after_layer = after_layer;
    s->forward.after_layer_arg = s;
    if (s->params.drop_pages)
        s->forward.after_head_rows = drop_head_rows;
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

/* A plan and a watch stand behind may_grow; without them memory is looked at here, before any of it
 * is taken. */
static tern_status check_available(const struct tern_session *s, struct tern_error *err)
{
    uint64_t need = tern_session_bytes_full(s);
    uint64_t available;
    if (s->params.may_grow)
        return tn_ok(err);
    tern_status status = tn_memory_available(&available, err);
    if (status != TERN_OK || need <= available)
        return status;
    return tn_fail(err, TERN_MEMORY,
                   "a context of %u needs %.1f MiB of memory beside the model, %.1f MiB are "
                   "available; a smaller context or --kv q8 needs less",
                   s->n_ctx, (double)need / 0x1p20, (double)available / 0x1p20);
}

tern_status tern_session_create(struct tern_session **out, struct tern_engine *engine,
                                const struct tern_model *model,
                                const struct tern_session_params *params, struct tern_error *err)
{
    const struct tern_file_config *c = model->file.config;
    struct tern_session_params defaults;
    *out = NULL;
    tern_session_params_default(&defaults);
    if (!params)
        params = &defaults;
    tern_status status = check_params(params, c, err);
    if (status != TERN_OK)
        return status;

    struct tern_session *s = tn_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tn_fail(err, TERN_MEMORY, "no memory for a session");
    s->engine = engine;
    s->model = model;
    s->params = *params;
    s->n_ctx = params->n_ctx ? params->n_ctx : c->context;
    s->n_batch = params->n_batch ? params->n_batch : TN_MIN(TN_DEFAULT_BATCH, s->n_ctx);
    struct tn_memplan_input input = {
        .n_ctx = s->n_ctx,
        .n_batch = s->n_batch,
        .n_threads = tn_team_n_threads(engine->team),
        .kv = (enum tn_kv_type)params->kv,
    };
    tn_memplan_make(&s->memplan, c, &input);
    tn_kvcache_plan(&s->kv, c, input.kv, s->n_ctx);
    if (!reserve_memory(s)) {
        status = tn_fail(err, TERN_MEMORY,
                         "the system refuses address space for a context of %u: %.0f MiB for the "
                         "%s cache and %.0f MiB beside it; a smaller --ctx needs less",
                         s->n_ctx, (double)s->memplan.kv_full_bytes / 0x1p20,
                         tern_kv_text(params->kv), (double)s->memplan.scratch_bytes / 0x1p20);
        tern_session_free(s);
        return status;
    }
    status = check_available(s, err);
    if (status != TERN_OK) {
        tern_session_free(s);
        return status;
    }
    wire(s, &input);
    *out = s;
    return tn_ok(err);
}

void tern_session_free(struct tern_session *s)
{
    if (!s)
        return;
    if (s->scratch_base)
        tn_pages_release(s->scratch_base, s->scratch_bytes);
    if (s->kv.base)
        tn_pages_release(s->kv.base, s->kv.block_bytes * s->kv.n_blocks);
    tn_free(s);
}

/* ---- state ---- */

uint32_t tern_session_n_ctx(const struct tern_session *s)
{
    return s->n_ctx;
}

uint32_t tern_session_n_past(const struct tern_session *s)
{
    return s->n_past;
}

const uint32_t *tern_session_ids(const struct tern_session *s)
{
    return s->forward.s.ids;
}

void tern_session_truncate(struct tern_session *s, uint32_t n_keep)
{
    if (n_keep < s->n_past) {
        s->n_past = n_keep;
        s->has_logits = false;
    }
}

uint64_t tern_session_bytes(const struct tern_session *s)
{
    return s->scratch_bytes + (uint64_t)s->kv.block_bytes * s->kv.n_ready;
}

uint64_t tern_session_bytes_full(const struct tern_session *s)
{
    return s->scratch_bytes + s->memplan.kv_full_bytes;
}

const float *tern_session_logits(const struct tern_session *s)
{
    return s->has_logits ? s->forward.s.logits : NULL;
}

/* ---- evaluation ---- */

void tn_session_need(struct tern_session *s, const struct tn_head_need *need)
{
    s->forward.need = need ? *need : (struct tn_head_need){0};
}

tern_status tn_session_grow(struct tern_session *s, uint32_t n, struct tern_error *err)
{
    uint32_t n_blocks = tn_div_ceil_u32(n, TN_KV_BLOCK);
    while (s->kv.n_ready < n_blocks) {
        unsigned char *block = s->kv.base + (size_t)s->kv.n_ready * s->kv.block_bytes;
        if ((s->params.may_grow && !s->params.may_grow(s->params.arg, s->kv.block_bytes)) ||
            !tn_pages_commit(block, s->kv.block_bytes))
            return tn_fail(err, TERN_MEMORY,
                           "context limited by memory: %u positions are in use and %.1f MiB for "
                           "the next %u are not free",
                           s->n_past, (double)s->kv.block_bytes / 0x1p20, TN_KV_BLOCK);
        s->kv.n_ready++;
    }
    return TERN_OK;
}

static tern_status eval_batch(struct tern_session *s, const uint32_t *ids, uint32_t n,
                              float *logits, bool all_rows, struct tern_error *err)
{
    tern_status status = tn_session_grow(s, s->n_past + n, err);
    if (status != TERN_OK)
        return status;
    tn_team_set_active(s->engine->team, n == 1 ? s->engine->n_decode : s->engine->n_prefill);
    if (!tn_forward_eval(&s->forward, ids, n, s->n_past, logits, all_rows))
        return tn_fail(err, TERN_INTERRUPTED, "interrupted after %u positions", s->n_past);
    memcpy(s->forward.s.ids + s->n_past, ids, n * sizeof *ids);
    s->n_past += n;
    return TERN_OK;
}

tern_status tn_session_check_ids(const struct tern_session *s, const uint32_t *ids, size_t n,
                                 struct tern_error *err)
{
    uint32_t vocab = s->model->file.config->vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= vocab)
            return tn_fail(err, TERN_USAGE, "id %u is beyond the vocabulary of %u", ids[i], vocab);
    return TERN_OK;
}

static tern_status check_eval(const struct tern_session *s, const uint32_t *ids, size_t n,
                              struct tern_error *err)
{
    if (n > s->n_ctx - s->n_past)
        return tn_fail(err, TERN_LIMIT, "%zu ids do not fit a context of %u with %u in use", n,
                       s->n_ctx, s->n_past);
    return tn_session_check_ids(s, ids, n, err);
}

tern_status tern_session_eval(struct tern_session *s, const uint32_t *ids, size_t n,
                              float *all_logits, struct tern_error *err)
{
    size_t vocab = s->model->file.config->vocab;
    tern_status status = check_eval(s, ids, n, err);
    if (n > 0 && status == TERN_OK)
        s->has_logits = false;
    for (size_t i = 0; i < n && status == TERN_OK;) {
        uint32_t n_batch = (uint32_t)TN_MIN(n - i, (size_t)s->n_batch);
        bool last = i + n_batch == n;
        float *logits = all_logits ? all_logits + i * vocab : last ? s->forward.s.logits : NULL;
        status = eval_batch(s, ids + i, n_batch, logits, all_logits != NULL, err);
        i += n_batch;
        if (last && status == TERN_OK) {
            if (all_logits)
                memcpy(s->forward.s.logits, all_logits + (n - 1) * vocab, vocab * sizeof(float));
            s->has_logits = true;
        }
    }
    return status == TERN_OK ? tn_ok(err) : status;
}

/* ---- counters ---- */

const char *tern_counter_region(uint32_t i)
{
    static const char *const names[] = {"qkv", "attention", "o", "gate", "up", "down", "head"};
    static_assert(TN_COUNT_OF(names) == TN_N_REGIONS && TN_N_REGIONS == TERN_N_REGIONS,
                  "one name per region");
    return i < TN_COUNT_OF(names) ? names[i] : NULL;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 1.0;
}

void tern_session_get_counters(const struct tern_session *s, struct tern_counters *out)
{
    const struct tn_counters *c = &s->forward.counters;
    *out = (struct tern_counters){
        .n_decoded = c->n_decoded,
        .n_prefilled = c->n_prefilled,
        .decode_weight_bytes = c->decode_weight_bytes,
        .up_density = share(c->up_active, c->up_rows),
        .down_density = share(c->down_active, c->down_cols),
        .head_density = share(c->head_exact, c->head_rows),
    };
    for (uint32_t i = 0; i < TERN_N_REGIONS; i++) {
        out->decode_s[i] = (double)c->decode_ns[i] * 1e-9;
        out->prefill_s[i] = (double)c->prefill_ns[i] * 1e-9;
    }
}

void tern_session_reset_counters(struct tern_session *s)
{
    s->forward.counters = (struct tn_counters){0};
}

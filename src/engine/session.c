/* SPDX-License-Identifier: MIT
 *
 * A session: one sequence with a workspace of its own, and its evaluation in batches.
 */
#include "engine/session.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "grammar/token_mask.h"
#include "tern/sysinfo.h"

void tern_session_params_default(struct tern_session_params *out, const struct tern_model *model)
{
    *out = (struct tern_session_params){.kv = tern_model_config(model)->kv};
}

/* ---- creation ---- */

tern_status tn_session_check_params(const struct tern_session_params *p,
                                    const struct tern_file_config *c, struct tern_error *err)
{
    if (p->n_ctx > c->context)
        return tn_fail(err, TERN_USAGE, "context %u is more than the model's %u", p->n_ctx,
                       c->context);
    if (p->n_draft > TERN_MAX_DRAFT)
        return tn_fail(err, TERN_USAGE, "%u drafted ids are more than %u", p->n_draft,
                       TERN_MAX_DRAFT);
    if (p->n_batch > TN_MAX_BATCH)
        return tn_fail(err, TERN_USAGE, "batch %u is more than %u", p->n_batch, TN_MAX_BATCH);
    if (p->n_checkpoints > TN_MAX_CHECKPOINTS)
        return tn_fail(err, TERN_USAGE, "%u checkpoints are more than %u", p->n_checkpoints,
                       TN_MAX_CHECKPOINTS);
    if ((unsigned)p->kv > TERN_KV_Q8)
        return tn_fail(err, TERN_USAGE, "cache type %d is unknown", (int)p->kv);
    return tn_ok(err);
}

tern_status tern_session_create(struct tern_session **out, struct tern_engine *engine,
                                const struct tern_model *model,
                                const struct tern_session_params *params, struct tern_error *err)
{
    const struct tern_file_config *c = model->file.spec.config;
    struct tern_session_params defaults;
    *out = NULL;
    tern_session_params_default(&defaults, model);
    if (!params)
        params = &defaults;
    tern_status status = tn_session_check_params(params, c, err);
    if (status != TERN_OK)
        return status;

    struct tern_session *s = tn_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tn_fail(err, TERN_MEMORY, "no memory for a session");
    s->engine = engine;
    s->model = model;
    s->n_ctx = params->n_ctx ? params->n_ctx : c->context;
    s->n_batch = params->n_batch ? params->n_batch : TN_MIN(TN_DEFAULT_BATCH, s->n_ctx);
    const struct tn_workspace_params wp = {.n_ctx = s->n_ctx,
                                           .n_batch = s->n_batch,
                                           .n_sequences = 1,
                                           .n_logits = 1 + params->n_draft,
                                           .n_checkpoints = params->n_checkpoints
                                                                ? params->n_checkpoints
                                                                : TN_DEFAULT_CHECKPOINTS,
                                           .kv = params->kv,
                                           .drop_pages = params->drop_pages,
                                           .may_grow = params->may_grow,
                                           .should_stop = params->should_stop,
                                           .arg = params->arg};
    status = tn_workspace_init(&s->work, engine, model, &wp, err);
    if (status != TERN_OK) {
        tern_session_free(s);
        return status;
    }
    s->sequence = tn_workspace_sequence(&s->work, 0);
    *out = s;
    return tn_ok(err);
}

void tern_session_free(struct tern_session *s)
{
    if (!s)
        return;
    tn_workspace_fini(&s->work);
    tn_token_list_free(s->tokens);
    tn_free(s);
}

/* ---- state ---- */

uint32_t tern_session_n_ctx(const struct tern_session *s)
{
    return s->n_ctx;
}

uint32_t tern_session_n_past(const struct tern_session *s)
{
    return s->sequence.n_past;
}

const uint32_t *tern_session_ids(const struct tern_session *s)
{
    return s->sequence.ids;
}

uint32_t tern_session_truncate(struct tern_session *s, uint32_t n_keep)
{
    if (n_keep < s->sequence.n_past) {
        (void)tn_sequence_truncate(&s->sequence, n_keep);
        s->has_logits = false;
    }
    return s->sequence.n_past;
}

bool tern_session_has_state(const struct tern_session *s)
{
    return s->sequence.state != NULL;
}

uint64_t tern_session_bytes(const struct tern_session *s)
{
    return sizeof *s + tn_workspace_bytes(&s->work);
}

uint64_t tern_session_bytes_full(const struct tern_session *s)
{
    return sizeof *s + tn_workspace_bytes_full(&s->work);
}

const float *tern_session_logits(const struct tern_session *s)
{
    return s->has_logits ? s->work.forward.s.logits : NULL;
}

/* ---- evaluation ---- */

void tn_session_need(struct tern_session *s, const struct tn_head_need *need)
{
    s->need = need ? *need : (struct tn_head_need){0};
}

tern_status tn_session_grow(struct tern_session *s, uint32_t n, struct tern_error *err)
{
    if (tn_sequence_grow(&s->sequence, n))
        return TERN_OK;
    return tn_workspace_fail_growth(&s->work, s->sequence.n_past, err);
}

unsigned char *tn_session_block(const struct tern_session *s, uint32_t i)
{
    return s->sequence.blocks[i];
}

size_t tn_session_block_bytes(const struct tern_session *s)
{
    return s->work.states.bytes.block;
}

void tn_session_restore(struct tern_session *s, const uint32_t *ids, uint32_t n)
{
    if (n > 0)
        memcpy(s->sequence.ids, ids, n * sizeof *ids);
    s->sequence.n_past = n;
    if (n == 0 || s->sequence.state)
        (void)tn_sequence_truncate(&s->sequence, n);
    s->has_logits = false;
}

/* What evaluating a batch of the session leaves behind; each may be NULL. */
struct outputs {
    float *last_logits; /* [vocab], as the session needs them */
    float *all_logits;  /* [n][vocab] */
    float *states;      /* [n][hidden] */
};

static tern_status eval_batch(struct tern_session *s, const uint32_t *ids, uint32_t n,
                              const struct outputs *out, struct tern_error *err)
{
    struct tn_sequence *q = &s->sequence;
    struct tn_logits_row *wanted = s->work.forward.s.wanted;
    tern_status status = tn_session_grow(s, q->n_past + n, err);
    if (status != TERN_OK)
        return status;
    wanted[0] = (struct tn_logits_row){n - 1, s->need};
    /* More rows than can be searched together need all logits. */
    for (uint32_t i = 0; i < n && out->all_logits; i++)
        wanted[i] = (struct tn_logits_row){
            i, n <= s->work.params.n_logits ? s->need : (struct tn_head_need){0}};
    const struct tn_span span = {
        .blocks = q->blocks, .state = q->state, .position = q->n_past, .n_rows = n};
    const struct tn_batch batch = {
        .ids = ids,
        .n_rows = n,
        .spans = &span,
        .n_spans = 1,
        .wanted = wanted,
        .n_wanted = out->all_logits    ? n
                    : out->last_logits ? 1
                                       : 0,
        .logits = out->all_logits ? out->all_logits : out->last_logits,
        .states = out->states,
    };
    status = tn_workspace_eval(&s->work, &batch, err);
    if (status != TERN_OK) {
        if (q->state)
            (void)tn_sequence_truncate(q, q->n_past); /* some layers may have gone on */
        return status;
    }
    memcpy(q->ids + q->n_past, ids, n * sizeof *ids);
    q->n_past += n;
    tn_sequence_checkpoint_spaced(q);
    return TERN_OK;
}

tern_status tn_check_ids(const struct tern_model *model, const uint32_t *ids, size_t n,
                         struct tern_error *err)
{
    uint32_t vocab = model->file.spec.config->vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= vocab)
            return tn_fail(err, TERN_USAGE, "id %u is beyond the vocabulary of %u", ids[i], vocab);
    return TERN_OK;
}

tern_status tn_check_prompt(const struct tern_model *model, uint32_t n_ctx, const uint32_t *ids,
                            size_t n, struct tern_error *err)
{
    if (n == 0)
        return tn_fail(err, TERN_USAGE, "the prompt is empty: the model needs at least one token");
    if (n > n_ctx)
        return tn_fail(err, TERN_LIMIT,
                       "the prompt has %zu tokens, the context %u; shorten it or raise --ctx "
                       "(this model: up to %u)",
                       n, n_ctx, model->file.spec.config->context);
    return tn_check_ids(model, ids, n, err);
}

tern_status tn_check_head(const struct tern_model *model, struct tern_error *err)
{
    if (model->weights.head.format)
        return TERN_OK;
    return tn_fail(err, TERN_UNSUPPORTED,
                   "\"%s\" is an embedding model: it has no head and gives neither logits nor text",
                   model->path);
}

static tern_status check_eval(const struct tern_session *s, const uint32_t *ids, size_t n,
                              struct tern_error *err)
{
    const uint32_t n_past = s->sequence.n_past;
    if (n > s->n_ctx - n_past)
        return tn_fail(err, TERN_LIMIT, "%zu ids do not fit a context of %u with %u in use", n,
                       s->n_ctx, n_past);
    return tn_check_ids(s->model, ids, n, err);
}

tern_status tern_session_eval(struct tern_session *s, const uint32_t *ids, size_t n,
                              float *all_logits, struct tern_error *err)
{
    size_t vocab = s->model->file.spec.config->vocab;
    tern_status status = check_eval(s, ids, n, err);
    if (status == TERN_OK)
        status = tn_check_head(s->model, err);
    if (n > 0 && status == TERN_OK)
        s->has_logits = false;
    for (size_t i = 0; i < n && status == TERN_OK;) {
        uint32_t n_batch = (uint32_t)TN_MIN(n - i, (size_t)s->n_batch);
        bool last = i + n_batch == n;
        const struct outputs outputs = {
            .last_logits = last ? s->work.forward.s.logits : NULL,
            .all_logits = all_logits ? all_logits + i * vocab : NULL,
        };
        status = eval_batch(s, ids + i, n_batch, &outputs, err);
        i += n_batch;
        if (last && status == TERN_OK) {
            if (all_logits)
                memcpy(s->work.forward.s.logits, all_logits + (n - 1) * vocab,
                       vocab * sizeof(float));
            s->has_logits = true;
        }
    }
    return status == TERN_OK ? tn_ok(err) : status;
}

tern_status tern_session_eval_states(struct tern_session *s, const uint32_t *ids, size_t n,
                                     float *states, struct tern_error *err)
{
    const size_t hidden = s->model->file.spec.config->hidden;
    tern_status status = check_eval(s, ids, n, err);
    if (n > 0 && status == TERN_OK)
        s->has_logits = false;
    for (size_t i = 0; i < n && status == TERN_OK;) {
        const uint32_t n_batch = (uint32_t)TN_MIN(n - i, (size_t)s->n_batch);
        const struct outputs outputs = {.states = states + i * hidden};
        status = eval_batch(s, ids + i, n_batch, &outputs, err);
        i += n_batch;
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
    const struct tn_counters *c = &s->work.forward.counters;
    *out = (struct tern_counters){
        .n_decoded = c->n_decoded,
        .n_prefilled = c->n_prefilled,
        .decode_weight_bytes = c->decode_weight_bytes,
        .up_density = share(c->up_active, c->up_rows),
        .down_density = share(c->down_active, c->down_cols),
        .head_density = share(c->head_exact, c->head_rows),
        .n_experts_read = c->n_experts_read,
    };
    for (uint32_t i = 0; i < TERN_N_REGIONS; i++) {
        out->decode_s[i] = (double)c->decode_ns[i] * 1e-9;
        out->prefill_s[i] = (double)c->prefill_ns[i] * 1e-9;
    }
}

void tern_session_reset_counters(struct tern_session *s)
{
    s->work.forward.counters = (struct tn_counters){0};
}

/* SPDX-License-Identifier: MIT
 *
 * Plans memory: the reserve for other programs, and the longest context that fits.  The cache type
 * is an input: memory must not decide it, because answers depend on it.
 *
 *   anonymous(C) = process + threads * (stack + scratch) + model + sampler + session + C * position
 *                  + cache(C) + rings(C) + checkpoints(C)
 *   must:   anonymous(C) <= available - reserve       else a shorter context, then refusal
 *   want:   anonymous(C) + file <= available - reserve   else it runs, but pages from disk
 *   rlimit: anonymous(C) + file <= RLIMIT_AS, because mappings count there
 *
 * The cache grows by whole blocks, so C is planned in blocks.  Models with windows have a piecewise
 * linear cost: a long context keeps rings instead of some of the blocks.
 */
#include "engine/plan.h"

#include "base/bits.h"
#include "base/error.h"
#include "engine/draft.h"

/* ---- reserve ---- */

static uint64_t whole_memory(const struct tern_sysinfo *m, uint64_t available)
{
    return m->limit_bytes != TERN_UNKNOWN   ? m->limit_bytes
           : m->total_bytes != TERN_UNKNOWN ? m->total_bytes
                                            : available;
}

/* The fixed upper bound of the reserve, if the total memory is known. */
static uint64_t fixed_reserve(const struct tern_sysinfo *m, uint64_t available)
{
    return TN_MAX(192 * TN_PLAN_MIB, TN_MIN(whole_memory(m, available) / 10, TN_PLAN_GIB));
}

void tn_plan_reserve(struct tern_plan *plan, const struct tern_sysinfo *m)
{
    uint64_t whole = whole_memory(m, plan->available_bytes);
    uint64_t tenth = fixed_reserve(m, plan->available_bytes);
    uint64_t share = plan->available_bytes / 100 * 15 + plan->available_bytes % 100 * 15 / 100;
    plan->reserve_bytes = TN_MIN(tenth, share);
    struct tn_plan_size size;
    tn_plan_reason(plan, "reserve", plan->reserve_bytes, NULL, share < tenth ? "available" : "rule",
                   share < tenth ? "15 %% of %s available"
                                 : "10 %% of %s, within 192 MiB and 1 GiB",
                   tn_plan_size_text(&size, share < tenth ? plan->available_bytes : whole));
}

/* ---- costs ---- */

/* Memory of one choice of threads and cache type. */
struct cost {
    uint64_t fixed_bytes; /* independent of the context */
    uint64_t block_bytes; /* per block of positions */
};

static bool has_rings(const struct tern_plan_model *model, uint32_t n_ctx)
{
    return model->rings.above > 0 && n_ctx > model->rings.above;
}

static uint64_t kv_block_bytes(const struct tern_plan_model *model, enum tern_kv kv, uint32_t n_ctx)
{
    return has_rings(model, n_ctx) ? model->rings.kv_block_bytes[kv] : model->kv_block_bytes[kv];
}

static uint64_t ring_bytes(const struct tern_plan_model *model, enum tern_kv kv, uint32_t n_ctx)
{
    return has_rings(model, n_ctx) ? model->rings.state_bytes[kv] : 0;
}

static uint64_t checkpoint_bytes(const struct tern_plan_model *model, enum tern_kv kv,
                                 uint32_t n_ctx)
{
    return has_rings(model, n_ctx) ? model->rings.checkpoint_bytes[kv] : model->checkpoint_bytes;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return tn_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t mul_saturated(uint64_t a, uint64_t b)
{
    uint64_t product;
    return tn_mul_u64(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Adds what drafts need: rows of logits in the session, and a copy of the text. */
static struct tern_plan_model with_drafts(const struct tern_plan_model *model, uint32_t n_draft)
{
    struct tern_plan_model all = *model;
    if (n_draft == 0)
        return all;
    all.base_bytes = add_saturated(all.base_bytes, mul_saturated(model->draft_bytes, n_draft));
    all.base_bytes = add_saturated(all.base_bytes, model->draft_head_bytes);
    all.base_bytes = add_saturated(all.base_bytes, tn_matcher_bytes(0));
    all.position_bytes =
        add_saturated(all.position_bytes, tn_matcher_bytes(1) - tn_matcher_bytes(0));
    return all;
}

/* Valid for contexts on the same side of rings.above as n_ctx. */
static struct cost cost_of(const struct tern_plan_model *model, uint32_t n_threads, enum tern_kv kv,
                           uint32_t n_ctx)
{
    uint64_t per_thread = add_saturated(model->thread_bytes, TN_PLAN_STACK_BYTES);
    struct cost c;
    uint64_t one_thread = add_saturated(TN_PLAN_PROCESS_BYTES, model->base_bytes);
    one_thread = add_saturated(one_thread, add_saturated(model->model_bytes, model->sampler_bytes));
    one_thread = add_saturated(one_thread, ring_bytes(model, kv, n_ctx));
    one_thread = add_saturated(one_thread, mul_saturated(checkpoint_bytes(model, kv, n_ctx),
                                                         TN_PLAN_MIN_CHECKPOINTS));
    c.fixed_bytes = add_saturated(one_thread, mul_saturated(per_thread, n_threads));
    c.block_bytes = add_saturated(kv_block_bytes(model, kv, n_ctx),
                                  mul_saturated(model->position_bytes, TERN_PLAN_KV_BLOCK));
    return c;
}

static uint64_t anonymous_bytes(const struct tern_plan_model *model, uint32_t n_threads,
                                enum tern_kv kv, uint32_t n_ctx)
{
    const struct cost c = cost_of(model, n_threads, kv, n_ctx);
    uint32_t n_blocks = tn_div_ceil_u32(n_ctx, TERN_PLAN_KV_BLOCK);
    return add_saturated(c.fixed_bytes, mul_saturated(c.block_bytes, n_blocks));
}

uint64_t tern_plan_context_bytes(const struct tern_plan_model *model, enum tern_kv kv,
                                 uint32_t n_ctx)
{
    const uint64_t n_blocks = tn_div_ceil_u32(n_ctx, TERN_PLAN_KV_BLOCK);
    const uint64_t positions = mul_saturated(model->position_bytes, TERN_PLAN_KV_BLOCK);
    const uint64_t block = add_saturated(kv_block_bytes(model, kv, n_ctx), positions);
    return add_saturated(ring_bytes(model, kv, n_ctx), mul_saturated(block, n_blocks));
}

/* The longest context up to `want` that costs at most `budget` on one side of rings.above; 0: none.
 */
static uint32_t longest_of(struct cost c, uint64_t budget, uint32_t want)
{
    uint64_t room = minus(budget, c.fixed_bytes);
    uint64_t n_blocks = c.block_bytes ? room / c.block_bytes : UINT32_MAX;
    uint64_t n = mul_saturated(n_blocks, TERN_PLAN_KV_BLOCK);
    return n < want ? (uint32_t)n : c.fixed_bytes <= budget ? want : 0;
}

static uint32_t longest_context(const struct tern_plan_model *model, uint32_t n_threads,
                                enum tern_kv kv, uint64_t budget, uint32_t want)
{
    if (has_rings(model, want)) {
        const uint32_t n = longest_of(cost_of(model, n_threads, kv, want), budget, want);
        if (has_rings(model, n))
            return n;
        want = model->rings.above;
    }
    return longest_of(cost_of(model, n_threads, kv, want), budget, want);
}

/* Threads that may exist at once. */
static uint32_t team_size(const struct tern_plan *plan)
{
    return TN_MAX(plan->n_threads_ceil, TN_MAX(plan->n_threads_decode, plan->n_threads_prefill));
}

/* ---- refusal ---- */

/* The minimum available memory that grants `need` anonymous bytes: the reserve is the minimum of a
 * fixed part and 15 %, and RLIMIT_AS also counts the file. */
static uint64_t least_available(const struct tern_plan *plan, const struct tern_sysinfo *machine,
                                const struct tern_plan_model *model, uint64_t need)
{
    uint64_t share = mul_saturated(need / 85 + 1, 100);
    uint64_t beside = add_saturated(need, fixed_reserve(machine, UINT64_MAX));
    uint64_t mapped = plan->limited_by == TERN_BOUND_RLIMIT_AS
                          ? add_saturated(need, model->file_bytes)
                          : 0;
    return TN_MAX(TN_MIN(share, beside), mapped);
}

static tern_status refuse(const struct tern_plan *plan, const struct tern_sysinfo *machine,
                          const struct tern_plan_model *model,
                          const struct tern_plan_limits *limits, uint64_t budget, uint32_t want,
                          uint32_t least_ctx, struct tern_error *err)
{
    struct tn_plan_size need, have, enough;
    uint64_t need_bytes = anonymous_bytes(model, team_size(plan), plan->kv, least_ctx);
    const char *type = plan->kv == TERN_KV_Q8 && !limits->has_kv ? "" : "--kv q8 ";
    tn_plan_size_directed(&need, need_bytes, true);
    tn_plan_size_directed(&have, budget, false);
    const struct {
        uint32_t n_threads;
        const char *flag;
    } smaller[] = {
        {team_size(plan), ""},
        {1, " --threads 1"},
    };
    for (uint32_t i = 0; i < TN_COUNT_OF(smaller); i++) {
        uint32_t n_ctx = longest_context(model, smaller[i].n_threads, TERN_KV_Q8, budget, want);
        if (n_ctx >= least_ctx)
            return tn_fail(err, TERN_MEMORY,
                           "a context of %u needs %s of memory beside the model, %s are left "
                           "(limited by %s, less a reserve); this would work: %s--ctx %u%s",
                           least_ctx, need.text, have.text, tern_bound_text(plan->limited_by), type,
                           n_ctx, smaller[i].flag);
    }
    uint64_t least = anonymous_bytes(model, 1, TERN_KV_Q8, least_ctx);
    tn_plan_size_directed(&enough, least_available(plan, machine, model, least), true);
    return tn_fail(err, TERN_MEMORY,
                   "a context of %u needs %s of memory beside the model, %s are left (limited by "
                   "%s, less a reserve); with %s available %s--ctx %u --threads 1 would work: "
                   "close other programs, raise the limit, or take a smaller model",
                   least_ctx, need.text, have.text, tern_bound_text(plan->limited_by), enough.text,
                   type, least_ctx);
}

/* ---- context ---- */

static tern_status check_prompt(const struct tern_plan_limits *limits, uint32_t want,
                                const struct tern_plan_model *model, struct tern_error *err)
{
    if (limits->n_prompt <= want)
        return tn_ok(err);
    return tn_fail(err, TERN_LIMIT, "the prompt has %u tokens, the context %u (%s); shorten it%s",
                   limits->n_prompt, want, want < model->n_ctx ? "--ctx" : "of the model",
                   want < model->n_ctx ? " or raise --ctx" : "");
}

static void note_context(struct tern_plan *plan, const struct tern_plan_model *model,
                         const struct tern_plan_limits *limits, uint32_t want, uint64_t budget)
{
    struct tn_plan_size size;
    if (plan->n_ctx < want) {
        tn_plan_reason(plan, "context", plan->n_ctx, NULL, "memory",
                       "%u do not fit into the %s left beside the reserve", want,
                       tn_plan_size_text(&size, budget));
        tn_plan_notice(plan, "the context is limited by memory: %u of %u tokens", plan->n_ctx,
                       want);
    } else if (want < model->n_ctx) {
        tn_plan_reason(plan, "context", plan->n_ctx, NULL, "user", "--ctx %u", want);
    } else {
        tn_plan_reason(plan, "context", plan->n_ctx, NULL, "model", "the model's context");
    }
    if (limits->n_ctx > model->n_ctx)
        tn_plan_notice(plan, "--ctx %u is more than the model's %u: planned with %u", limits->n_ctx,
                       model->n_ctx, plan->n_ctx);
}

static void note_cache(struct tern_plan *plan, const struct tern_plan_limits *limits)
{
    const char *name = tern_kv_text(plan->kv);
    if (limits->has_kv)
        tn_plan_reason(plan, "kv", 0, name, "user", "--kv %s", name);
    else if (plan->kv == TERN_KV_Q8)
        tn_plan_reason(plan, "kv", 0, name, "default", "whatever the memory; --kv replaces it");
    else
        tn_plan_reason(plan, "kv", 0, name, "model",
                       "the file says so: q8 was measured at conversion and costs too much");
}

/* Plans more than the minimum if the file then still fits in memory. */
static void plan_checkpoints(struct tern_plan *plan, const struct tern_plan_model *model,
                             uint64_t budget)
{
    struct tn_plan_size size;
    const uint64_t one = checkpoint_bytes(model, plan->kv, plan->n_ctx);
    const uint64_t used = add_saturated(
        anonymous_bytes(model, team_size(plan), plan->kv, plan->n_ctx), model->file_bytes);
    if (one == 0)
        return;
    const uint64_t more = TN_MIN(minus(budget, used) / one,
                                 (uint64_t)TN_PLAN_CHECKPOINTS - TN_PLAN_MIN_CHECKPOINTS);
    plan->n_checkpoints = TN_PLAN_MIN_CHECKPOINTS + (uint32_t)more;
    tn_plan_reason(plan, "checkpoints", plan->n_checkpoints, NULL,
                   plan->n_checkpoints < TN_PLAN_CHECKPOINTS ? "memory" : "rule",
                   "copies of the model's state, %s each, to go back to",
                   tn_plan_size_text(&size, one));
}

static void predict_parts(struct tern_plan *plan, const struct tern_plan_model *model)
{
    uint64_t n_blocks = tn_div_ceil_u32(plan->n_ctx, TERN_PLAN_KV_BLOCK);
    uint64_t positions = mul_saturated(model->position_bytes, n_blocks * TERN_PLAN_KV_BLOCK);
    uint64_t threads = mul_saturated(model->thread_bytes, team_size(plan));
    plan->memory = (struct tern_plan_memory){
        .process_bytes = TN_PLAN_PROCESS_BYTES + team_size(plan) * TN_PLAN_STACK_BYTES,
        .model_bytes = model->model_bytes,
        .sampler_bytes = model->sampler_bytes,
        .scratch_bytes = add_saturated(model->base_bytes, add_saturated(threads, positions)),
        .cache_bytes =
            add_saturated(ring_bytes(model, plan->kv, plan->n_ctx),
                          mul_saturated(kv_block_bytes(model, plan->kv, plan->n_ctx), n_blocks)),
        .checkpoint_bytes = mul_saturated(checkpoint_bytes(model, plan->kv, plan->n_ctx),
                                          plan->n_checkpoints),
    };
}

static void predict(struct tern_plan *plan, const struct tern_plan_model *model)
{
    struct tn_plan_size hot, room, experts;
    predict_parts(plan, model);
    uint64_t free_bytes = minus(plan->available_bytes, plan->reserve_bytes);
    plan->predicted_anonymous_bytes = add_saturated(
        anonymous_bytes(model, team_size(plan), plan->kv, plan->n_ctx),
        mul_saturated(checkpoint_bytes(model, plan->kv, plan->n_ctx),
                      minus(plan->n_checkpoints, TN_PLAN_MIN_CHECKPOINTS)));
    plan->predicted_hot_bytes = add_saturated(plan->predicted_anonymous_bytes, model->file_bytes);
    plan->will_page = plan->predicted_hot_bytes > free_bytes;
    plan->n_ctx_resident =
        plan->will_page ? longest_context(model, team_size(plan), plan->kv,
                                          minus(free_bytes, model->file_bytes), plan->n_ctx)
                        : plan->n_ctx;
    plan->unread_bytes = model->unread_bytes;
    if (plan->will_page && minus(plan->predicted_hot_bytes, model->unread_bytes) <= free_bytes)
        tn_plan_notice(plan, "%s must stay in memory, where %s are left; of the experts, %s, some "
                             "stay on the disk, and tokens that choose them are slower",
                       tn_plan_size_text(&hot, minus(plan->predicted_hot_bytes,
                                                     model->unread_bytes)),
                       tn_plan_size_text(&room, free_bytes),
                       tn_plan_size_text(&experts, model->unread_bytes));
    else if (plan->will_page && plan->n_ctx_resident > 0)
        tn_plan_notice(plan, "model and cache want %s with the context filled, %s are left: beyond "
                             "%u tokens it may read from the disk, which is slow",
                       tn_plan_size_text(&hot, plan->predicted_hot_bytes),
                       tn_plan_size_text(&room, free_bytes), plan->n_ctx_resident);
    else if (plan->will_page)
        tn_plan_notice(plan, "model and cache want %s, %s are left: it may read from the disk "
                             "while running, which is slow",
                       tn_plan_size_text(&hot, plan->predicted_hot_bytes),
                       tn_plan_size_text(&room, free_bytes));
}

tern_status tn_plan_memory(struct tern_plan *plan, const struct tern_sysinfo *machine,
                           const struct tern_plan_model *without_drafts,
                           const struct tern_plan_limits *limits, struct tern_error *err)
{
    const struct tern_plan_model sizes = with_drafts(without_drafts, limits->n_draft);
    const struct tern_plan_model *model = &sizes;
    uint32_t want = limits->n_ctx ? TN_MIN(limits->n_ctx, model->n_ctx) : model->n_ctx;
    if (limits->has_kv && (unsigned)limits->kv > TERN_KV_Q8)
        return tn_fail(err, TERN_USAGE, "cache type %d is unknown", (int)limits->kv);
    if (limits->n_draft > TERN_MAX_DRAFT)
        return tn_fail(err, TERN_USAGE, "%u drafted ids are more than %u", limits->n_draft,
                       TERN_MAX_DRAFT);
    tern_status status = check_prompt(limits, want, model, err);
    if (status != TERN_OK)
        return status;
    uint64_t budget = minus(plan->available_bytes, plan->reserve_bytes);
    if (machine->rlimit_as_left_bytes != TERN_UNKNOWN)
        budget = TN_MIN(budget, minus(machine->rlimit_as_left_bytes, model->file_bytes));
    budget = TN_MIN(budget, machine->commit_left_bytes);

    plan->kv = limits->has_kv ? limits->kv : model->kv;
    plan->n_ctx = longest_context(model, team_size(plan), plan->kv, budget, want);
    uint32_t least_ctx = (uint32_t)TN_MIN((uint64_t)limits->n_prompt + TN_PLAN_MIN_NEW, want);
    if (plan->n_ctx < least_ctx)
        return refuse(plan, machine, model, limits, budget, want, least_ctx, err);
    plan->has_model = true;
    note_context(plan, model, limits, want, budget);
    note_cache(plan, limits);
    plan_checkpoints(plan, model, budget);
    predict(plan, model);
    return tn_ok(err);
}

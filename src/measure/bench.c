/* SPDX-License-Identifier: MIT
 *
 * Measures the speed of a model on this machine, and checks that speed did not cost correctness:
 * runs at equal depth must generate the same ids at every kernel level and thread count.  The hash
 * of the ids is part of the result.
 *
 * Deep contexts are not computed token by token: the cache is filled with pseudo-random rows, which
 * take as long to read.
 *
 * Memory bandwidth varies (other machines share the memory, clocks change), so every repeat
 * measures the stream rate again, and shares are computed within a repeat.
 */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "engine/cpu_level.h"
#include "engine/session.h"
#include "measure/bench.h"
#include "model/attn.h"
#include "tern/plan.h"

/* Announces the next measurement.  TERN_INTERRUPTED: the caller wants to stop. */
static tern_status announce(const struct tern_bench_params *p, const char *what,
                            struct tern_error *err)
{
    if (!p->on_progress || p->on_progress(p->arg, what))
        return TERN_OK;
    return tn_fail(err, TERN_INTERRUPTED, "interrupted before measuring: %s", what);
}

/* ---- one workload ---- */

static uint32_t best_id(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* Fills a layer's cache with pseudo-random rows at positions [0, depth). */
static tern_status fill_layer(struct tern_session *s, uint32_t i_layer, uint32_t depth,
                              struct tn_rng *rng, struct tern_error *err)
{
    const struct tn_layer_dims *dims = &s->model->weights.layers[i_layer].dims;
    const uint32_t dim = tn_kv_dim(dims->head_dim);
    const struct tn_span span = {.blocks = s->sequence.blocks, .state = s->sequence.state};
    float *row = tn_alloc_zeroed(dim, sizeof *row);
    if (!row)
        return tn_fail(err, TERN_MEMORY, "no memory for a row of %u values", dim);
    for (uint32_t g = 0; g < dims->n_kv_head; g++)
        for (uint32_t position = 0; position < depth; position++) {
            for (uint32_t d = 0; d < dims->head_dim; d++)
                row[d] = tn_rng_f32(rng) - 0.5f;
            tn_kv_store_row(&s->work.forward, &span, i_layer, g, position, row, row);
        }
    tn_free(row);
    return TERN_OK;
}

/* Fills the caches of all attention layers. */
static tern_status fill_cache(struct tern_session *s, const struct tern_bench_params *p,
                              uint32_t depth, struct tern_error *err)
{
    struct tn_rng rng;
    tern_status status = tn_session_grow(s, depth, err);
    if (status != TERN_OK)
        return status;
    tn_rng_seed(&rng, depth);
    for (uint32_t i = 0; i < s->model->file.spec.config->n_layer && status == TERN_OK; i++) {
        status = tn_bench_check_stop(p, err);
        if (status == TERN_OK && s->model->file.spec.layers[i].mixer == TERN_MIXER_ATTENTION)
            status = fill_layer(s, i, depth, &rng, err);
    }
    tn_state_pretend(&s->work.states, s->sequence.state, depth);
    s->sequence.n_past = depth;
    return status;
}

struct one_run {
    struct tn_samples prefill, decode, tokens_per_step;
    struct tn_samples share; /* relative to the stream rate of the same repeat */
    struct tn_samples region_share[TN_N_REGIONS];
    uint64_t hash;       /* ids of the last decode */
    bool hashes_differ;  /* repeats produced different ids */
    uint64_t weight_bytes;
    double last_tok_s;   /* rate of the last decode */
};

static void add_decode(struct one_run *run, double tok_s, uint64_t hash)
{
    run->hashes_differ = run->hashes_differ || (run->decode.n > 0 && run->hash != hash);
    run->hash = hash;
    run->last_tok_s = tok_s;
    tn_samples_add(&run->decode, tok_s);
}

static tern_status decode_run(struct tern_session *s, uint32_t first, uint32_t n_new,
                              struct one_run *run, struct tern_error *err)
{
    uint32_t vocab = s->model->file.spec.config->vocab, id = first;
    tern_session_reset_counters(s);
    uint64_t start = tn_now_ns();
    for (uint32_t i = 0; i < n_new; i++) {
        tern_status status = tern_session_eval(s, &id, 1, NULL, err);
        if (status != TERN_OK)
            return status;
        id = best_id(tern_session_logits(s), vocab);
    }
    double seconds = tn_seconds_since(start);
    uint64_t hash = XXH3_64bits(s->sequence.ids + s->sequence.n_past - n_new, n_new * sizeof id);
    add_decode(run, n_new / seconds, hash);
    run->weight_bytes = s->work.forward.counters.decode_weight_bytes / n_new;
    return TERN_OK;
}

/* One row of the result table. */
struct workload {
    uint32_t n_prompt; /* prefill this many tokens, or */
    uint32_t depth;    /* decode after this many random rows */
    bool decodes;
    uint32_t n_draft; /* with up to this many drafts, taken from the previous workload's output */
};

/* Average bytes of cache read per decoded token. */
static uint64_t cache_bytes(const struct tern_session *s, uint32_t depth, uint32_t n_new)
{
    return s->work.size.kv_bytes_per_token * (depth + (uint64_t)n_new / 2);
}

static uint32_t subject_depth(const struct workload *workload)
{
    return workload->n_prompt ? workload->n_prompt : workload->depth;
}

/* Bytes of weights and cache read per token. */
static uint64_t decode_bytes(const struct tern_session *s, const struct tern_bench_params *p,
                             const struct workload *workload, const struct one_run *run)
{
    return run->weight_bytes + cache_bytes(s, subject_depth(workload), p->n_new);
}

/* Adds the shares of the last decode: weights, and the cache for attention. */
static void add_region_shares(struct one_run *run, const struct tern_session *s, uint32_t depth,
                              uint32_t n_new, double stream_gb_s)
{
    const struct tn_counters *c = &s->work.forward.counters;
    for (uint32_t i = 0; i < TN_N_REGIONS; i++) {
        const uint64_t cache =
            i == TN_REGION_ATTENTION ? cache_bytes(s, depth, n_new) * n_new : 0;
        const double bytes = (double)(c->decode_bytes[i] + cache), ns = (double)c->decode_ns[i];
        tn_samples_add(&run->region_share[i], ns > 0 ? bytes / ns / stream_gb_s : 0);
    }
}

/* State shared by all runs of a benchmark. */
struct bench {
    const struct tern_bench_params *params;
    const struct tern_model *model;
    struct tn_bench_stream stream;
    uint32_t *prompt;
    uint32_t *answer; /* [2][n_new] decoded after the first prompt, without and with drafts */
    struct tern_bench_result *result;
};

/* The previous workload was the same without drafts; its output is still in the session. */
static tern_status decode_drafts(struct bench *b, struct tern_session *s,
                                 const struct workload *workload, struct one_run *run,
                                 struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    const struct tn_bench_answer answer = {
        .ids = b->answer, .room = b->answer + p->n_new, .n = p->n_new,
        .n_draft = workload->n_draft, .wrong = p->draft_wrong};
    struct tn_bench_replayed out;
    memcpy(b->answer, s->sequence.ids + workload->n_prompt, p->n_new * sizeof *b->answer);
    tern_status status = tn_bench_replay(&out, s, b->prompt, workload->n_prompt, &answer, err);
    if (status != TERN_OK)
        return status;
    add_decode(run, out.tok_s, out.hash);
    tn_samples_add(&run->tokens_per_step, out.tokens_per_step);
    return TERN_OK;
}

/* Brings the session to the workload's position; *first: the next id. */
static tern_status begin_workload(struct bench *b, struct tern_session *s,
                                 const struct workload *workload, struct one_run *run,
                                 uint32_t *first, struct tern_error *err)
{
    const uint32_t vocab = s->model->file.spec.config->vocab;
    const struct tn_head_need greedy = {.n_best = 1, .n_allowed = vocab};
    tn_session_need(s, &greedy);
    tern_session_truncate(s, 0);
    *first = 1;
    if (!workload->n_prompt)
        return fill_cache(s, b->params, workload->depth, err);
    const uint64_t start = tn_now_ns();
    tern_status status = tern_session_eval(s, b->prompt, workload->n_prompt, NULL, err);
    if (status != TERN_OK)
        return status;
    tn_samples_add(&run->prefill, workload->n_prompt / tn_seconds_since(start));
    *first = best_id(tern_session_logits(s), vocab);
    return TERN_OK;
}

static tern_status repeat_once(struct bench *b, struct tern_session *s,
                               const struct workload *workload, double stream_gb_s,
                               struct one_run *run, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    uint32_t first;
    if (workload->n_draft)
        return decode_drafts(b, s, workload, run, err);
    tern_status status = begin_workload(b, s, workload, run, &first, err);
    if (status != TERN_OK || !workload->decodes)
        return status;
    status = decode_run(s, first, p->n_new, run, err);
    if (status != TERN_OK)
        return status;
    tn_samples_add(&run->share, run->last_tok_s * 1e-9 / stream_gb_s *
                                    (double)decode_bytes(s, p, workload, run));
    add_region_shares(run, s, subject_depth(workload), p->n_new, stream_gb_s);
    return TERN_OK;
}

/* Runs after the same prompt, or after equally many random rows, must produce the same ids. */
static void compare_hashes(struct tern_bench_result *result, const struct tern_bench_run *run)
{
    for (const struct tern_bench_run *other = result->runs; other < run; other++)
        if (other->depth == run->depth && other->decode.median > 0 &&
            other->is_filled == run->is_filled && other->output_hash != run->output_hash)
            result->hashes_agree = false;
}

/* Appends a row to the result, with the fields common to all rows. */
static struct tern_bench_run *add_row(struct tern_bench_result *result,
                                      const struct tern_engine *engine, uint32_t depth,
                                      const struct tn_samples *stream,
                                      const struct tn_samples *decode, uint64_t output_hash)
{
    struct tern_bench_run *row = &result->runs[result->n_runs++];
    *row = (struct tern_bench_run){.kernel = engine->level,
                                   .n_threads = tern_engine_n_threads(engine),
                                   .depth = depth,
                                   .decode = tn_samples_rate(decode),
                                   .stream_gb_s = tn_samples_rate(stream).median,
                                   .output_hash = output_hash};
    return row;
}

/* Appends the row of a workload. */
static void add_result(struct tern_bench_result *result, const struct tern_session *s,
                       const struct tern_bench_params *p, const struct workload *workload,
                       const struct tn_samples *stream, const struct one_run *run)
{
    const uint32_t depth = subject_depth(workload);
    struct tern_bench_run *out =
        add_row(result, s->engine, depth, stream, &run->decode, run->hash);
    out->is_filled = workload->n_prompt == 0;
    out->prefill = tn_samples_rate(&run->prefill);
    result->hashes_agree = result->hashes_agree && !run->hashes_differ;
    if (!workload->decodes)
        return;
    compare_hashes(result, out);
    if (workload->n_draft) { /* how many weight bytes several rows share is not counted */
        out->n_draft = workload->n_draft;
        out->draft_wrong = p->draft_wrong;
        out->tokens_per_step = tn_samples_rate(&run->tokens_per_step).median;
        return;
    }
    out->decode_bytes_per_token = decode_bytes(s, p, workload, run);
    out->decode_share = tn_samples_rate(&run->share).median;
    for (uint32_t i = 0; i < TN_N_REGIONS; i++)
        out->region_share[i] = tn_samples_rate(&run->region_share[i]).median;
    out->decode_gb_s = (double)out->decode_bytes_per_token * out->decode.median * 1e-9;
}

static uint32_t deepest(const struct tern_bench_params *p)
{
    return TN_MAX(tn_bench_largest(p->prompts, p->n_prompts),
                  tn_bench_largest(p->depths, p->n_depths));
}

/* Lists the workloads of p in dst.  Returns their number. */
static uint32_t list_workloads(struct workload *dst, const struct tern_bench_params *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_prompts; i++) {
        dst[n++] = (struct workload){.n_prompt = p->prompts[i], .decodes = i == 0};
        if (i == 0 && p->n_draft)
            dst[n++] = (struct workload){
                .n_prompt = p->prompts[i], .decodes = true, .n_draft = p->n_draft};
    }
    for (uint32_t i = 0; i < p->n_depths; i++)
        dst[n++] = (struct workload){.depth = p->depths[i], .decodes = true};
    return n;
}

/* Measures the stream rate with the decoding threads. */
static double stream_rate(struct bench *b, const struct tern_session *s)
{
    tn_team_set_active(s->engine->team, s->engine->n_decode);
    return tn_bench_stream_rate(&b->stream, s->engine->team);
}

/* One repeat: the stream rate, then every workload in turn. */
static tern_status repeat_all(struct bench *b, struct tern_session *s, uint32_t i_repeat,
                              const struct workload *workloads, struct one_run *runs, uint32_t n,
                              struct tn_samples *stream, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    const uint32_t n_threads = tern_engine_n_threads(s->engine);
    char what[96];
    snprintf(what, sizeof what, "%s, %u thread%s, run %u of %u", s->engine->level, n_threads,
             n_threads == 1 ? "" : "s", i_repeat + 1, p->n_repeats);
    tern_status status = announce(p, what, err);
    const double stream_gb_s = status == TERN_OK ? stream_rate(b, s) : 0;
    tn_samples_add(stream, stream_gb_s);
    for (uint32_t k = 0; k < n && status == TERN_OK; k++)
        status = repeat_once(b, s, &workloads[k], stream_gb_s, &runs[k], err);
    return status;
}

/* Interleaves the workloads within each repeat, so that compared numbers are measured side by side.
 */
static tern_status measure_session(struct bench *b, struct tern_session *s,
                                   struct tn_samples *stream, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    struct workload workloads[TN_COUNT_OF(p->prompts) + 1 + TN_COUNT_OF(p->depths)];
    const uint32_t n = list_workloads(workloads, p);
    struct one_run *runs = tn_alloc_zeroed(n, sizeof *runs);
    if (!runs)
        return tn_fail(err, TERN_MEMORY, "no memory for %u rates", n);
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < p->n_repeats && status == TERN_OK; i++)
        status = repeat_all(b, s, i, workloads, runs, n, stream, err);
    for (uint32_t k = 0; k < n && status == TERN_OK; k++)
        add_result(b->result, s, p, &workloads[k], stream, &runs[k]);
    tn_free(runs);
    return status;
}

/* Measures sequences that decode together. */
static tern_status measure_together(struct bench *b, struct tern_engine *engine,
                                    const struct tn_samples *stream, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    struct tern_bench_result *result = b->result;
    struct tn_bench_together *together = tn_alloc_zeroed(p->n_together, sizeof *together);
    if (!together)
        return tn_fail(err, TERN_MEMORY, "no memory for %u rates", p->n_together);
    tern_status status = announce(p, "sequences that decode together", err);
    if (status == TERN_OK)
        status = tn_bench_together(together, engine, b->model, p, err);
    for (uint32_t i = 0; i < p->n_together && status == TERN_OK; i++) {
        const struct tn_bench_together *t = &together[i];
        struct tern_bench_run *out =
            add_row(result, engine, p->prompts[0], stream, &t->decode, t->hashes[0]);
        out->n_together = t->n;
        memcpy(out->hashes, t->hashes, sizeof out->hashes);
        result->hashes_agree = result->hashes_agree && !t->hashes_differ;
        compare_hashes(result, out);
    }
    tn_free(together);
    return status;
}

/* Measures all workloads of one sequence. */
static tern_status measure_one(struct bench *b, struct tern_engine *engine,
                               struct tn_samples *stream, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    struct tern_session *session = NULL;
    struct tern_session_params sp = {.n_ctx = deepest(p) + p->n_new,
                                     .kv = p->kv,
                                     .n_draft = p->n_draft,
                                     .should_stop = p->should_stop,
                                     .arg = p->arg};
    tern_status status = tern_session_create(&session, engine, b->model, &sp, err);
    if (status == TERN_OK)
        status = measure_session(b, session, stream, err);
    tern_session_free(session);
    return status;
}

/* Measures everything at one level and thread count; *stream: rates of the repeats. */
static tern_status measure_engine(struct bench *b, const char *level, uint32_t n_threads,
                                  struct tn_samples *stream, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    struct tern_engine *engine = NULL;
    const struct tern_engine_params ep = {
        .n_threads = n_threads, .cpu_level = level, .inputs = p->inputs};
    tern_status status = tern_engine_create(&engine, p->machine, &ep, err);
    if (status == TERN_OK) {
        b->result->inputs = tern_engine_inputs(engine, b->model);
        status = measure_one(b, engine, stream, err);
    }
    if (status == TERN_OK && p->n_together)
        status = measure_together(b, engine, stream, err);
    tern_engine_free(engine);
    return status;
}

/* ---- whole benchmark ---- */

void tern_bench_params_default(struct tern_bench_params *out, const struct tern_sysinfo *machine,
                               const struct tern_model *model)
{
    *out = (struct tern_bench_params){.machine = machine,
                                      .prompts = {128},
                                      .n_prompts = 1,
                                      .n_new = 32,
                                      .kv = tern_model_config(model)->kv,
                                      .n_repeats = 3,
                                      .threads = {1},
                                      .n_threads = 1};
}

static tern_status check_levels(const struct tern_bench_params *p, struct tern_error *err)
{
    const struct tn_cpu_level *level;
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < p->n_levels && status == TERN_OK; i++)
        status = tn_cpu_level_choose(&level, p->levels[i], p->machine->cpu_features, err);
    return status;
}

static tern_status check_params(const struct tern_bench_params *p, const struct tern_model *model,
                                struct tern_error *err)
{
    uint32_t context = model->file.spec.config->context;
    uint32_t n_levels = TN_MAX(p->n_levels, 1u);
    if (!p->machine)
        return tn_fail(err, TERN_USAGE, "no description of the machine; see tern_sysinfo_read");
    if (p->n_prompts == 0 || p->n_prompts > TN_COUNT_OF(p->prompts) || p->n_new == 0 ||
        p->n_repeats == 0 || p->n_repeats > TN_BENCH_MAX_REPEATS)
        return tn_fail(err, TERN_USAGE, "1 to %zu prompts, new tokens at least 1, repeats 1 to %u",
                       TN_COUNT_OF(p->prompts), TN_BENCH_MAX_REPEATS);
    for (uint32_t i = 0; i < p->n_prompts; i++)
        if (p->prompts[i] == 0)
            return tn_fail(err, TERN_USAGE, "a prompt has at least 1 token");
    for (uint32_t i = 0; i < TN_MIN(p->n_threads, TERN_BENCH_MAX_THREADS); i++)
        if (p->threads[i] == 0 || p->threads[i] > TERN_PLAN_MAX_THREADS)
            return tn_fail(err, TERN_USAGE, "%u threads: 1 to %d", p->threads[i],
                           TERN_PLAN_MAX_THREADS);
    if (p->n_threads == 0 || p->n_threads > TERN_BENCH_MAX_THREADS ||
        p->n_levels > TN_COUNT_OF(p->levels) || p->n_depths > TN_COUNT_OF(p->depths) ||
        p->n_together > TN_COUNT_OF(p->together) ||
        n_levels * p->n_threads *
                (p->n_prompts + (p->n_draft > 0) + p->n_depths + p->n_together) >
            TERN_BENCH_MAX_RUNS)
        return tn_fail(err, TERN_USAGE, "too many combinations of levels, threads and depths");
    for (uint32_t i = 0; i < p->n_together; i++)
        if (p->together[i] == 0 || p->together[i] > TERN_BENCH_MAX_TOGETHER)
            return tn_fail(err, TERN_USAGE, "%u sequences together: 1 to %d", p->together[i],
                           TERN_BENCH_MAX_TOGETHER);
    if (p->n_together > 0 && p->n_new < 2)
        return tn_fail(err, TERN_USAGE, "sequences together need answers of at least 2 tokens");
    if (p->n_draft > TERN_MAX_DRAFT)
        return tn_fail(err, TERN_USAGE, "%u drafted ids are more than %u", p->n_draft,
                       TERN_MAX_DRAFT);
    if ((p->n_draft > 0 && p->n_new < 2) || (p->n_draft == 0 && p->draft_wrong > 0))
        return tn_fail(err, TERN_USAGE, "drafts need an answer of at least 2 tokens, wrong ones "
                                        "need drafts");
    if (deepest(p) > context || p->n_new > context - deepest(p))
        return tn_fail(err, TERN_LIMIT, "depth %u and %u new tokens exceed the model's context %u",
                       deepest(p), p->n_new, context);
    return check_levels(p, err);
}

/* Measures every level with every thread count; the stream rate of a thread count is the median
 * over the levels. */
static tern_status measure_levels(struct bench *b, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    struct tn_samples *streams = tn_alloc_zeroed(TERN_BENCH_MAX_THREADS, sizeof *streams);
    tern_status status =
        streams ? TERN_OK : tn_fail(err, TERN_MEMORY, "no memory for the stream rates");
    for (uint32_t i = 0; i < TN_MAX(p->n_levels, 1u) && status == TERN_OK; i++)
        for (uint32_t j = 0; j < p->n_threads && status == TERN_OK; j++) {
            struct tn_samples stream = {0};
            status = measure_engine(b, p->n_levels ? p->levels[i] : NULL, p->threads[j], &stream,
                                    err);
            tn_samples_add(&streams[j], tn_samples_rate(&stream).median);
        }
    for (uint32_t j = 0; streams && j < p->n_threads; j++)
        b->result->stream_gb_s[j] = tn_samples_rate(&streams[j]).median;
    tn_free(streams);
    return status;
}

static tern_status measure_all(struct bench *b, struct tern_error *err)
{
    uint32_t n_prompt = tn_bench_largest(b->params->prompts, b->params->n_prompts);
    b->prompt = tn_alloc(n_prompt * sizeof *b->prompt);
    if (!b->prompt)
        return tn_fail(err, TERN_MEMORY, "no memory for %u ids", n_prompt);
    tn_bench_prompt(b->prompt, n_prompt, 0, b->model->file.spec.config->vocab);
    b->answer = tn_alloc(2 * (size_t)b->params->n_new * sizeof *b->answer);
    tern_status status = b->answer ? measure_levels(b, err)
                                   : tn_fail(err, TERN_MEMORY, "no memory for %u ids",
                                             b->params->n_new);
    tn_free(b->answer);
    tn_free(b->prompt);
    return status;
}

/* Records the peak memory, less the buffer of the stream rate if the model's data was not used for
 * it. */
static void note_usage(struct bench *b, uint64_t peak_before)
{
    struct tn_usage usage;
    tn_usage_now(&usage);
    uint64_t own = b->stream.own ? b->stream.n_bytes : 0;
    uint64_t peak = usage.peak_rss_bytes > own ? usage.peak_rss_bytes - own : 0;
    b->result->peak_rss_bytes = TN_MAX(peak, peak_before);
    b->result->major_faults = usage.major_faults;
}

/* Runs with an open model and checked parameters. */
static tern_status measure(struct bench *b, const char *model_path, struct tern_error *err)
{
    const struct tern_bench_params *p = b->params;
    tern_status status = announce(p, "loading", err);
    if (status == TERN_OK)
        status = tn_bench_loads(b->result, model_path, p, err);
    struct tn_usage before;
    tn_usage_now(&before);
    if (status == TERN_OK)
        status = tn_bench_stream_open(&b->stream, b->model, err);
    if (status == TERN_OK)
        status = measure_all(b, err);
    note_usage(b, before.peak_rss_bytes);
    if (status == TERN_OK)
        status = announce(p, "kernels", err);
    if (status == TERN_OK)
        status = tn_bench_kernels(b->result, b->model, p, &b->stream, err);
    tn_bench_stream_close(&b->stream);
    return status;
}

/* Share of busy processors above which a warning is due; a quiet system has about two percent. */
#define MAX_OTHER_LOAD 0.05

static void judge_load(struct tern_bench_result *result, const struct tn_cpu_time *start)
{
    struct tn_cpu_time end;
    result->other_load = -1;
    if (!tn_cpu_time_now(&end) || start->total_ns == 0 || end.total_ns <= start->total_ns)
        return;
    const double total = (double)(end.total_ns - start->total_ns);
    const double busy = (double)(end.busy_ns - start->busy_ns);
    const double own = (double)(end.own_ns - start->own_ns);
    result->other_load = busy > own ? (busy - own) / total : 0;
    result->disturbed = result->other_load > MAX_OTHER_LOAD;
}

tern_status tern_bench(const char *model_path, const struct tern_bench_params *p,
                       struct tern_bench_result *result, struct tern_error *err)
{
    struct tern_model *model = NULL;
    struct tn_cpu_time start = {0};
    *result = (struct tern_bench_result){.hashes_agree = true, .other_load = -1};
    tern_status status = tern_model_open(&model, model_path, err);
    if (status == TERN_OK)
        status = check_params(p, model, err);
    if (status == TERN_OK)
        status = tn_bench_check_memory(model, err);
    (void)tn_cpu_time_now(&start);
    if (status == TERN_OK) {
        struct bench b = {.params = p, .model = model, .result = result};
        status = measure(&b, model_path, err);
    }
    judge_load(result, &start);
    /* A model file that changed meanwhile explains any other failure. */
    const tern_status changed = model ? tern_model_check_unchanged(model, NULL) : TERN_OK;
    if (changed != TERN_OK)
        status = tern_model_check_unchanged(model, err);
    tern_model_free(model);
    return status == TERN_OK ? tn_ok(err) : status;
}

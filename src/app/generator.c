/* SPDX-License-Identifier: MIT
 *
 * Streams answers: creates session and sampler from flags and plan, runs one answer, reports why it
 * ended, and prints statistics.
 */
#include "generator.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "banner.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"

bool tn_generator_should_stop(const struct tn_generator *g)
{
    return tn_stop_requested() || (g->is_cancelled && g->is_cancelled(g->is_cancelled_arg));
}

static bool should_stop(void *arg)
{
    tn_progress_tick();
    return tn_generator_should_stop(arg);
}

static bool may_grow(void *arg, uint64_t n_bytes)
{
    return tern_steering_may_grow(((struct tn_generator *)arg)->steering, n_bytes);
}

static tern_status create_session(struct tn_generator *g, struct tern_error *err)
{
    const struct tern_plan *plan = &g->planned->plan;
    struct tern_session_params params = {
        .n_ctx = plan->n_ctx,
        .kv = plan->kv,
        .n_draft = (uint32_t)g->o->draft,
        .n_checkpoints = plan->n_checkpoints,
        .may_grow = may_grow,
        .should_stop = should_stop,
        .arg = g,
    };
    tern_status status = tn_planned_create_engine(&g->engine, g->planned, err);
    if (status == TERN_OK)
        status = tern_steering_create(&g->steering, g->engine, g->opened->model,
                                      g->planned->machine, plan, err);
    if (status == TERN_OK)
        status = tern_session_create(&g->session, g->engine, g->opened->model, &params, err);
    return status;
}

/* Reads the file from the disk, with progress if that takes long. */
static tern_status prefetch(const struct tern_model *model, struct tern_error *err)
{
    tn_progress_start("loading", TN_PROGRESS_BYTES, false);
    tern_status status = tern_model_prefetch(model, tn_progress_callback, NULL, err);
    tn_progress_end();
    return status;
}

#define IN_FORCE(o, member)                                                                        \
    (float)tn_penalty_in_force((o), offsetof(struct tn_options, member))

double tn_penalty_in_force(const struct tn_options *o, size_t slot)
{
    const bool is_plain = o->temperature == 0.0 || tn_options_has_format(o);
    if (is_plain && !tn_options_given_slot(o, slot))
        return slot == offsetof(struct tn_options, repeat_penalty) ? 1 : 0;
    return *(const double *)(const void *)((const char *)o + slot);
}

static tern_status create_sampler(struct tern_sampler **out, const struct tn_generator *g,
                                  struct tern_error *err)
{
    const struct tn_options *o = g->o;
    const struct tern_sampler_params params = {
        .temperature = (float)o->temperature,
        .top_k = (uint32_t)o->top_k,
        .top_p = (float)o->top_p,
        .min_p = (float)o->min_p,
        .repeat_penalty = IN_FORCE(o, repeat_penalty),
        .presence_penalty = IN_FORCE(o, presence_penalty),
        .frequency_penalty = IN_FORCE(o, frequency_penalty),
        .penalty_last = (uint32_t)o->penalty_last,
        .seed = g->seed,
    };
    return tern_sampler_create(out, &params, tern_model_config(g->opened->model)->vocab, err);
}

tern_status tn_generator_renew_sampler(struct tn_generator *g, struct tern_error *err)
{
    struct tern_sampler *sampler;
    const uint64_t seed = g->seed;
    if (tn_options_given(g->o, seed))
        g->seed = g->o->seed;
    tern_status status = create_sampler(&sampler, g, err);
    if (status != TERN_OK) {
        g->seed = seed;
        return status;
    }
    tern_sampler_free(g->sampler);
    g->sampler = sampler;
    return TERN_OK;
}

tern_status tn_generator_init(struct tn_generator *g, const struct tn_options *o,
                              const struct tn_opened *opened, size_t n_prompt,
                              const struct tern_grammar *grammar, struct tern_error *err)
{
    uint64_t start = tn_now_ns();
    *g = (struct tn_generator){.o = o, .opened = opened, .grammar = grammar};
    /* Short enough for a user to type. */
    g->seed = tn_options_given(o, seed) ? o->seed : tn_random_seed() >> 32;
    uint32_t limit = tern_model_config(opened->model)->context;
    if (o->ctx > limit)
        return tn_fail(err, TERN_USAGE, "--ctx %" PRIu64 ": this model has a context of %u", o->ctx,
                       limit);
    tern_status status = tn_planned_make(&g->planned, o, opened, n_prompt, grammar, err);
    if (status == TERN_OK && g->planned->plan.will_page)
        tern_model_page_experts(opened->model);
    if (status == TERN_OK)
        status = create_session(g, err);
    if (status == TERN_OK && !g->planned->plan.will_page)
        status = prefetch(opened->model, err);
    if (status == TERN_OK)
        status = create_sampler(&g->sampler, g, err);
    g->load_s = opened->load_s + tn_seconds_since(start);
    if (status == TERN_OK)
        tn_banner(o, opened->model, g->planned);
    else
        tn_generator_fini(g);
    return status;
}

uint32_t tn_generator_max_tokens(const struct tn_generator *g)
{
    const struct tern_plan *plan = &g->planned->plan;
    uint32_t requested = g->o->max_tokens ? (uint32_t)g->o->max_tokens : plan->default_new_tokens;
    return TN_MIN(requested, TN_MIN(plan->cap_new_tokens, plan->n_ctx));
}

void tn_generator_fini(struct tn_generator *g)
{
    tern_sampler_free(g->sampler);
    tern_session_free(g->session);
    tern_steering_free(g->steering);
    tern_engine_free(g->engine);
    tn_free(g->planned);
    *g = (struct tn_generator){0};
}

/* ---- one answer ---- */

static bool on_text(void *arg, const char *text, size_t n)
{
    (void)arg;
    tn_progress_end();
    return tn_out_answer(text, n);
}

static void on_prefill(void *arg, size_t n_done, size_t n_total)
{
    (void)arg;
    tn_progress_update(n_done, n_total);
}

/* Does not repeat what the plan's notices announced: a cap, a context too short for -n. */
static void say_why_it_ended(const struct tn_generator *g,
                             const struct tern_generate_result *result)
{
    bool is_chat = g->o->command == TN_CMD_CHAT;
    bool is_announced = g->planned->plan.context_cuts && !is_chat;
    bool is_requested = tn_options_given(g->o, max_tokens), is_watched = tn_is_terminal(TN_STDERR);
    if (result->stop == TERN_STOP_CONTEXT && !is_announced)
        tn_note_say("the context of %u tokens is full; the answer ends here%s",
                    tern_session_n_ctx(g->session), is_chat ? "; /continue continues it" : "");
    else if (result->stop == TERN_STOP_LENGTH && is_chat && (is_watched || !is_requested))
        tn_note_say("the answer ends after %u new tokens; /continue continues it, /tokens N sets "
                    "the limit",
                    result->n_new);
    else if (result->stop == TERN_STOP_LENGTH && !is_requested)
        tn_note_say("the answer ends after %u new tokens; -n raises the limit", result->n_new);
    else if (result->stop == TERN_STOP_MEMORY)
        tn_note_say("context limited by memory: the cache cannot grow; the answer ends here");
}

void tn_generator_show_ids(const struct tn_generator *g, const uint32_t *ids, size_t n)
{
    struct tn_buf out = {0};
    if (g->o->level <= 0)
        return;
    tn_buf_append_text(&out, "ids:");
    for (size_t i = 0; i < n; i++)
        tn_buf_printf(&out, " %u", ids[i]);
    tn_buf_append_text(&out, "\n");
    (void)tn_write_stream(TN_STDERR, out.data, out.n_bytes);
    tn_buf_fini(&out);
}

void tn_generator_params(struct tn_generator *g, struct tern_generate_params *out)
{
    *out = (struct tern_generate_params){
        .sampler = g->sampler,
        .steering = g->steering,
        .max_tokens = tn_generator_max_tokens(g),
        .ignore_eos = g->o->ignore_eos,
        .n_draft = (uint32_t)g->o->draft,
        .stop_strings = g->o->stop.items,
        .n_stop_strings = g->o->stop.n,
        .grammar = g->grammar,
        .on_text = on_text,
        .on_prefill = on_prefill,
        .arg = g,
    };
}

void tn_generator_begin(struct tn_generator *g)
{
    tern_session_reset_counters(g->session);
    tn_progress_start("prompt", TN_PROGRESS_TOKENS, false);
}

void tn_generator_end(struct tn_generator *g, tern_status status,
                      const struct tern_generate_result *result)
{
    tn_progress_end();
    tn_out_end_line();
    if (status == TERN_OK)
        say_why_it_ended(g, result);
}

tern_status tn_generator_answer(struct tn_generator *g, const struct tern_ids *ids,
                                struct tern_generate_result *result, struct tern_error *err)
{
    struct tern_generate_params params;
    tn_generator_params(g, &params);
    tn_generator_begin(g);
    tn_progress_update(0, ids->n);
    tn_generator_show_ids(g, ids->ids, ids->n);
    tern_status status = tern_generate(g->session, ids->ids, ids->n, &params, result, err);
    tn_generator_end(g, status, result);
    return status;
}

/* ---- keys and values in a file ---- */

void tn_generator_load_cache(struct tn_generator *g, const char *path)
{
    struct tern_error err;
    if (tn_path_kind(path) != TN_PATH_ABSENT &&
        tern_session_load_cache(g->session, path, &err) != TERN_OK)
        tn_note_say("the prompt is computed again: %s", err.detail);
}

tern_status tn_generator_save_cache(struct tn_generator *g, const char *path, uint32_t n_keep,
                                    struct tern_error *err)
{
    tern_session_truncate(g->session, n_keep);
    return tern_session_save_cache(g->session, path, err);
}

/* ---- statistics ---- */

const char *tn_generator_stop_text(const struct tn_generator *g,
                                   const struct tern_generate_result *r)
{
    bool capped = r->stop == TERN_STOP_LENGTH && g->planned->plan.capped;
    return capped ? "cap" : tern_stop_text(r->stop);
}

/* Ids of the prompt that were already in the cache. */
static uint32_t n_cached(const struct tern_generate_result *r)
{
    return r->n_prompt - r->n_prompt_evaluated;
}

static void append_rate(struct tn_buf *out, uint64_t n, double seconds)
{
    tn_buf_printf(out, "%" PRIu64 " tokens in %.3f s", n, seconds);
    if (n > 0 && seconds > 0)
        tn_buf_printf(out, ", %.1f tok/s", (double)n / seconds);
}

/* What a decoded token reads and skips, and where its time goes. */
static void append_counters_text(struct tn_buf *out, const struct tern_model *model,
                                 const struct tern_counters *c)
{
    struct tern_model_info info;
    if (c->n_decoded == 0)
        return;
    tern_model_get_info(model, &info);
    tn_buf_printf(out,
                  "\nread        %s of %s per token: %.0f %% of up, %.0f %% of down, %.2f %% of "
                  "the head exactly\n",
                  tn_size_decimal((double)c->decode_weight_bytes / (double)c->n_decoded).text,
                  tn_size_decimal((double)info.bytes_per_token).text, 100 * c->up_density,
                  100 * c->down_density, 100 * c->head_density);
    if (info.n_experts > 0)
        tn_buf_printf(out, "experts     %.1f read per token, of all layers\n",
                      (double)c->n_experts_read / (double)c->n_decoded);
    tn_buf_append_text(out, "time        ");
    for (uint32_t i = 0; i < TERN_N_REGIONS; i++)
        tn_buf_printf(out, "%s%s %.2f", i ? ", " : "", tern_counter_region(i),
                      1e3 * c->decode_s[i] / (double)c->n_decoded);
    tn_buf_append_text(out, " ms per token");
}

static void append_counters_json(struct tn_buf *out, const struct tern_counters *c)
{
    double n = c->n_decoded ? (double)c->n_decoded : 1.0;
    tn_buf_printf(out,
                  ",\"up_density\":%.6f,\"down_density\":%.6f,\"head_density\":%.6f,"
                  "\"experts_per_token\":%.4f,\"token_s\":{",
                  c->up_density, c->down_density, c->head_density,
                  (double)c->n_experts_read / n);
    for (uint32_t i = 0; i < TERN_N_REGIONS; i++)
        tn_buf_printf(out, "%s\"%s\":%.9f", i ? "," : "", tern_counter_region(i),
                      c->decode_s[i] / n);
    tn_buf_append_text(out, "}}\n");
}

/* Of evaluations after the prompt: each gives an id, and one more per accepted draft. */
static double tokens_per_step(const struct tern_generate_result *r)
{
    return r->n_steps > 0 ? 1.0 + (double)r->n_accepted / r->n_steps : 1.0;
}

static void append_stats_text(struct tn_buf *out, const struct tn_generator *g,
                              const struct tern_generate_result *r,
                              const struct tern_counters *counters, uint64_t peak_bytes)
{
    tn_buf_printf(out, "load        %.3f s\nprompt      ", g->load_s);
    append_rate(out, r->n_prompt_evaluated, r->prompt_s);
    if (r->n_prompt_evaluated < r->n_prompt)
        tn_buf_printf(out, " (%u more from the cache)", n_cached(r));
    tn_buf_append_text(out, "\ngeneration  ");
    append_rate(out, r->n_new, r->decode_s);
    if (counters->n_decoded > 0 && r->decode_s > 0 && r->n_drafted == 0)
        tn_buf_printf(out, ", %.2f GB/s",
                      (double)counters->decode_weight_bytes / r->decode_s * 1e-9);
    uint32_t n_threads = tern_engine_n_threads(g->engine);
    tn_buf_printf(out, ", %u thread%s", n_threads, n_threads == 1 ? "" : "s");
    if (g->o->draft > 0)
        tn_buf_printf(out, "\ndrafts      %u tokens drafted, %u accepted, %.2f tokens per step",
                      r->n_drafted, r->n_accepted, tokens_per_step(r));
    append_counters_text(out, g->opened->model, counters);
    tn_buf_printf(out, "\nmemory      %s at the peak\ncache       kv %s\ninputs      %s\n",
                  tn_size_binary((double)peak_bytes).text, tern_kv_text(g->planned->plan.kv),
                  tern_engine_inputs(g->engine, g->opened->model));
    tn_buf_printf(out, "seed        %" PRIu64 "\nstop        %s\n", g->seed,
                  tn_generator_stop_text(g, r));
}

static void append_stats_json(struct tn_buf *out, const struct tn_generator *g,
                              const struct tern_generate_result *r,
                              const struct tern_counters *counters, uint64_t peak_bytes)
{
    tn_buf_printf(out,
                  "{\"prompt_tokens\":%u,\"cached_tokens\":%u,\"prompt_s\":%.6f,"
                  "\"new_tokens\":%u,\"decode_s\":%.6f,"
                  "\"drafted\":%u,\"accepted\":%u,\"tokens_per_step\":%.4f,"
                  "\"load_s\":%.6f,\"peak_rss_bytes\":%" PRIu64 ",\"seed\":%" PRIu64
                  ",\"stop\":\"%s\",\"kv\":\"%s\",\"inputs\":\"%s\",\"threads\":%u,"
                  "\"bytes_per_token\":",
                  r->n_prompt_evaluated, n_cached(r), r->prompt_s, r->n_new, r->decode_s,
                  r->n_drafted, r->n_accepted, tokens_per_step(r), g->load_s, peak_bytes,
                  g->seed, tn_generator_stop_text(g, r),
                  tern_kv_text(g->planned->plan.kv),
                  tern_engine_inputs(g->engine, g->opened->model),
                  tern_engine_n_threads(g->engine));
    if (counters->n_decoded > 0)
        tn_buf_printf(out, "%" PRIu64, counters->decode_weight_bytes / counters->n_decoded);
    else
        tn_buf_append_text(out, "null");
    append_counters_json(out, counters);
}

void tn_generator_print_stats(const struct tn_generator *g,
                              const struct tern_generate_result *result)
{
    struct tern_counters counters;
    struct tn_usage usage;
    struct tn_buf out = {0};
    if (g->o->stats == TN_STATS_NONE || tn_out_has_failed())
        return;
    tern_session_get_counters(g->session, &counters);
    tn_usage_now(&usage);
    if (g->o->stats == TN_STATS_JSON)
        append_stats_json(&out, g, result, &counters, usage.peak_rss_bytes);
    else
        append_stats_text(&out, g, result, &counters, usage.peak_rss_bytes);
    (void)tn_write_stream(TN_STDERR, out.data, out.n_bytes);
    tn_buf_fini(&out);
}

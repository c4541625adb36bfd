/* SPDX-License-Identifier: MIT
 *
 * tern bench: speed, its distance from the memory rate, and whether all kernel levels and thread
 * counts generate the same tokens.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/error.h"
#include "idlist.h"
#include "json_io.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"
#include "tern/measure.h"
#include "tern/plan.h"

/* ---- parameters ---- */

/* "1,2,4" into dst; at most n_max numbers of at least `low`. */
static tern_status parse_list(uint32_t *dst, uint32_t *n, uint32_t n_max, uint32_t low,
                              const char *text, const char *flag, struct tern_error *err)
{
    struct tern_ids list = {0};
    bool is_good = tn_idlist_parse(&list, text, strlen(text), flag, err) == TERN_OK &&
                   list.n >= 1 && list.n <= n_max;
    for (size_t i = 0; i < list.n && is_good; i++) {
        is_good = list.ids[i] >= low;
        dst[(*n)++] = list.ids[i];
    }
    tern_ids_free(&list);
    return is_good ? tn_ok(err)
                   : tn_fail(err, TERN_USAGE, "%s \"%s\": 1 to %u numbers of at least %u", flag,
                             text, n_max, low);
}

/* Parses "avx2,avx512", cutting a copy at its commas. */
static tern_status parse_levels(struct tern_bench_params *p, char *copy, struct tern_error *err)
{
    for (char *word = strtok(copy, ", "); word; word = strtok(NULL, ", ")) {
        if (p->n_levels == TN_COUNT_OF(p->levels))
            return tn_fail(err, TERN_USAGE, "--cpu: at most %u levels", p->n_levels);
        p->levels[p->n_levels++] = word;
    }
    if (p->n_levels == 0)
        return tn_fail(err, TERN_USAGE, "--cpu: no level is named");
    return TERN_OK;
}

/* Steps that tern_bench announces: loading, kernels, and for each level and thread count its
 * repeats and the sequences that decode together. */
static uint64_t count_steps(const struct tern_bench_params *p)
{
    const uint64_t n_engines = (uint64_t)TN_MAX(p->n_levels, 1u) * p->n_threads;
    return 2 + n_engines * (p->n_repeats + (p->n_together > 0));
}

static uint64_t n_steps_done;

static bool show_step(void *arg, const char *what)
{
    const struct tern_bench_params *p = arg;
    if (tn_message_level() > 0)
        tn_info_say("measuring: %s", what);
    tn_progress_name_step(what);
    tn_progress_update(n_steps_done++, count_steps(p));
    return !tn_stop_requested();
}

/* One thread, and one per core. */
static tern_status default_threads(struct tern_bench_params *p, struct tern_error *err)
{
    struct tern_plan *plan = tn_alloc(sizeof *plan);
    if (!plan)
        return tn_fail(err, TERN_MEMORY, "no memory for a plan");
    tern_status status = tern_plan_make(plan, p->machine, NULL, NULL, err);
    p->threads[p->n_threads++] = 1;
    if (status == TERN_OK && plan->n_threads_decode > 1)
        p->threads[p->n_threads++] = plan->n_threads_decode;
    tn_free(plan);
    return status;
}

/* Depths that show the cost of a long context, as far as the model's context allows. */
static void default_depths(struct tern_bench_params *p, uint32_t context)
{
    static const uint32_t depths[] = {512, 2048, 4000};
    for (size_t i = 0; i < TN_COUNT_OF(depths); i++)
        if (depths[i] + p->n_new <= context)
            p->depths[p->n_depths++] = depths[i];
}

static tern_status make_params(struct tern_bench_params *p, const struct tn_options *o,
                               const struct tn_opened *opened, char *levels,
                               struct tern_error *err)
{
    tern_status status;
    tern_bench_params_default(p, opened->machine, opened->model);
    p->n_prompts = p->n_threads = 0; /* the lists below fill them */
    if (o->kv >= 0)
        p->kv = (enum tern_kv)o->kv;
    p->inputs = (enum tern_inputs_as)o->inputs;
    p->n_new = (uint32_t)o->n_new;
    p->n_repeats = (uint32_t)o->repeats;
    p->n_draft = (uint32_t)o->draft;
    p->draft_wrong = (uint32_t)o->draft_wrong;
    p->on_progress = show_step;
    p->should_stop = tn_should_stop;
    p->arg = p;
    status = parse_list(p->prompts, &p->n_prompts, TN_COUNT_OF(p->prompts), 1, o->prompt_list,
                        "--prompt", err);
    if (status == TERN_OK && o->thread_list)
        status = parse_list(p->threads, &p->n_threads, TERN_BENCH_MAX_THREADS, 1, o->thread_list,
                            "--threads", err);
    else if (status == TERN_OK)
        status = default_threads(p, err);
    if (status == TERN_OK && o->depth_list)
        status = parse_list(p->depths, &p->n_depths, TN_COUNT_OF(p->depths), 0, o->depth_list,
                            "--depths", err);
    else if (status == TERN_OK)
        default_depths(p, tern_model_config(opened->model)->context);
    if (status == TERN_OK && o->parallel_list)
        status = parse_list(p->together, &p->n_together, TN_COUNT_OF(p->together), 1,
                            o->parallel_list, "--parallel", err);
    if (status == TERN_OK && levels)
        status = parse_levels(p, levels, err);
    return status;
}

/* ---- text output ---- */

static void print_rate(const struct tern_bench_rate *rate)
{
    if (rate->median > 0)
        tn_out_printf("  %8.2f +-%3.0f %%", rate->median, 50 * rate->spread);
    else
        tn_out_printf("  %8s %6s", "-", "");
}

/* Prints what decoding read, the effect of drafts, or the number of sequences. */
static void print_decode(const struct tern_bench_run *run)
{
    if (run->n_draft)
        tn_out_printf("  %u drafts, %.2f ids/step  ", run->n_draft, run->tokens_per_step);
    else if (run->n_together)
        tn_out_printf("  %2u together, their sum ", run->n_together);
    else
        tn_out_printf("  %8.1f %6.1f  %7.0f %%", (double)run->decode_bytes_per_token * 1e-6,
                      run->decode_gb_s, 100 * run->decode_share);
    tn_out_printf("  %016" PRIx64, run->output_hash);
}

/* Prints where the time of a token goes: the part with the lowest share is the slowest. */
static void print_regions(const struct tern_bench_result *r)
{
    tn_out_text("\nkernel   threads  depth    of the stream, by part of a token\n");
    for (uint32_t i = 0; i < r->n_runs; i++) {
        const struct tern_bench_run *run = &r->runs[i];
        if (!run->decode_bytes_per_token)
            continue;
        tn_out_printf("%-8s %7u %6u  ", run->kernel, run->n_threads, run->depth);
        for (uint32_t k = 0; k < TERN_N_REGIONS; k++)
            if (run->region_share[k] > 0)
                tn_out_printf("  %s %.0f %%", tern_counter_region(k), 100 * run->region_share[k]);
        tn_out_text("\n");
    }
}

static void print_table(const struct tern_bench_params *p, const struct tern_bench_result *r)
{
    tn_out_printf("load        cold %.3f s, warm %.3f s (opening to the first token)\n",
                  r->load_cold_s, r->load_warm_s);
    for (uint32_t i = 0; i < p->n_threads; i++)
        tn_out_printf("stream      %.1f GB/s with %u thread%s (plain reading, in every repeat)\n",
                      r->stream_gb_s[i], p->threads[i], p->threads[i] == 1 ? "" : "s");
    tn_out_text("\nkernel   threads  depth    prefill tok/s    decode tok/s      MB/token   GB/s  "
                "of stream  output\n");
    for (uint32_t i = 0; i < r->n_runs; i++) {
        const struct tern_bench_run *run = &r->runs[i];
        tn_out_printf("%-8s %7u %6u", run->kernel, run->n_threads, run->depth);
        print_rate(&run->prefill);
        print_rate(&run->decode);
        if (run->decode.median > 0)
            print_decode(run);
        tn_out_text("\n");
    }
    print_regions(r);
    tn_out_text("\noperation         level      GB/s  of the stream rate (one thread; data in "
                "caches exceeds it)\n");
    for (uint32_t i = 0; i < r->n_kernels; i++)
        tn_out_printf("%-17s %-8s %6.1f  %4.0f %%\n", r->kernels[i].op, r->kernels[i].isa,
                      r->kernels[i].gb_s, 100 * r->kernels[i].share);
    tn_out_printf("\nmemory      %s at the peak, mapped pages counted; %" PRIu64 " major faults\n",
                  tn_size_binary((double)r->peak_rss_bytes).text, r->major_faults);
    tn_out_printf("output      %s\n", r->hashes_agree
                                          ? "the same tokens at every level and thread count"
                                          : "DIFFERENT tokens in runs of the same kind");
    if (r->disturbed)
        tn_out_printf("disturbed   others used %.0f %% of the processors meanwhile: these are not "
                      "the speeds of this machine\n",
                      100 * r->other_load);
}

/* ---- JSON ---- */

static json_t *integer(uint64_t n)
{
    return json_integer((json_int_t)n);
}

/* Sets <name>_tok_s, <name>_best_tok_s and <name>_spread; null if not measured. */
static void set_rate(json_t *row, const char *name, const struct tern_bench_rate *rate)
{
    const struct {
        const char *suffix;
        double value;
    } fields[] = {{"tok_s", rate->median}, {"best_tok_s", rate->best}, {"spread", rate->spread}};
    char key[32];
    for (size_t i = 0; i < TN_COUNT_OF(fields); i++) {
        snprintf(key, sizeof key, "%s_%s", name, fields[i].suffix);
        json_object_set_new(row, key, rate->median > 0 ? json_real(fields[i].value) : json_null());
    }
}

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

static json_t *hashes_json(const struct tern_bench_run *run)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < run->n_together; i++)
        json_array_append_new(list, hash_json(run->hashes[i]));
    return list;
}

/* A region that reads nothing has no share. */
static json_t *regions_json(const struct tern_bench_run *run)
{
    json_t *shares = json_object();
    for (uint32_t i = 0; i < TERN_N_REGIONS; i++) {
        const double share = run->region_share[i];
        json_object_set_new(shares, tern_counter_region(i),
                            share > 0 ? json_real(share) : json_null());
    }
    return shares;
}

static json_t *run_json(const struct tern_bench_run *run)
{
    json_t *row = json_object();
    json_object_set_new(row, "kernel", json_string(run->kernel));
    json_object_set_new(row, "threads", integer(run->n_threads));
    json_object_set_new(row, "depth", integer(run->depth));
    json_object_set_new(row, "parallel",
                        run->n_together ? integer(run->n_together) : json_null());
    json_object_set_new(row, "hashes", run->n_together ? hashes_json(run) : json_null());
    json_object_set_new(row, "draft", run->n_draft ? integer(run->n_draft) : json_null());
    json_object_set_new(row, "draft_wrong",
                        run->draft_wrong ? integer(run->draft_wrong) : json_null());
    json_object_set_new(row, "tokens_per_step",
                        run->n_draft ? json_real(run->tokens_per_step) : json_null());
    set_rate(row, "prefill", &run->prefill);
    set_rate(row, "decode", &run->decode);
    const bool decoded = run->decode.median > 0, is_counted = run->decode_bytes_per_token > 0;
    json_object_set_new(row, "decode_bytes_per_token",
                        is_counted ? integer(run->decode_bytes_per_token) : json_null());
    json_object_set_new(row, "decode_gb_s", is_counted ? json_real(run->decode_gb_s) : json_null());
    json_object_set_new(row, "stream_gb_s", json_real(run->stream_gb_s));
    json_object_set_new(row, "decode_share",
                        is_counted ? json_real(run->decode_share) : json_null());
    json_object_set_new(row, "region_share", is_counted ? regions_json(run) : json_null());
    json_object_set_new(row, "output_hash", decoded ? hash_json(run->output_hash) : json_null());
    return row;
}

static json_t *make_json(const char *model, const struct tern_bench_params *p,
                         const struct tern_bench_result *r)
{
    json_t *root = json_object(), *stream = json_object();
    json_t *runs = json_array(), *kernels = json_array();
    char threads[12];
    for (uint32_t i = 0; i < p->n_threads; i++) {
        snprintf(threads, sizeof threads, "%u", p->threads[i]);
        json_object_set_new(stream, threads, json_real(r->stream_gb_s[i]));
    }
    for (uint32_t i = 0; i < r->n_runs; i++)
        json_array_append_new(runs, run_json(&r->runs[i]));
    for (uint32_t i = 0; i < r->n_kernels; i++) {
        json_t *row = json_object();
        json_object_set_new(row, "op", json_string(r->kernels[i].op));
        json_object_set_new(row, "isa", json_string(r->kernels[i].isa));
        json_object_set_new(row, "gb_s", json_real(r->kernels[i].gb_s));
        json_object_set_new(row, "share", json_real(r->kernels[i].share));
        json_array_append_new(kernels, row);
    }
    json_object_set_new(root, "model", json_string(model));
    json_object_set_new(root, "kv", json_string(tern_kv_text(p->kv)));
    json_object_set_new(root, "inputs", json_string(r->inputs));
    json_object_set_new(root, "prompt_tokens", integer(p->prompts[0])); /* before new_tokens */
    json_object_set_new(root, "new_tokens", integer(p->n_new));
    json_object_set_new(root, "stream_gb_s", stream);
    json_object_set_new(root, "runs", runs);
    json_object_set_new(root, "load_cold_s", json_real(r->load_cold_s));
    json_object_set_new(root, "load_warm_s", json_real(r->load_warm_s));
    json_object_set_new(root, "peak_rss_bytes", integer(r->peak_rss_bytes));
    json_object_set_new(root, "major_faults", integer(r->major_faults));
    json_object_set_new(root, "disturbed",
                        r->other_load < 0 ? json_null() : json_boolean(r->disturbed));
    json_object_set_new(root, "other_load",
                        r->other_load < 0 ? json_null() : json_real(r->other_load));
    json_object_set_new(root, "kernels", kernels);
    return root;
}

static tern_status bench(const struct tn_options *o, const struct tn_opened *opened,
                         struct tern_bench_result *r, struct tern_error *err)
{
    struct tern_bench_params p;
    struct tern_model_info info;
    char *levels = NULL;
    if (o->cpu && (levels = tn_copy_text(o->cpu)) == NULL)
        return tn_fail(err, TERN_MEMORY, "no memory for --cpu");
    tern_status status = make_params(&p, o, opened, levels, err);
    if (status == TERN_OK) {
        tn_progress_start("measuring", TN_PROGRESS_STEPS, false);
        status = tern_bench(tern_model_path(opened->model), &p, r, err);
        tn_progress_end();
    }
    if (status == TERN_OK) {
        tern_model_get_info(opened->model, &info);
        if (o->json)
            status = tn_json_io_print(make_json(info.name, &p, r), err);
        else
            print_table(&p, r);
        if (status == TERN_OK && !r->hashes_agree)
            status = tn_fail(err, TERN_INTERNAL,
                             "runs of the same kind generated different tokens");
    }
    tn_free(levels);
    return status;
}

int tn_cmd_bench(const struct tn_options *o)
{
    struct tn_opened opened;
    struct tern_error err = {0};
    struct tern_bench_result *r = tn_alloc(sizeof *r);
    if (!r)
        return tn_error_say(TERN_MEMORY, "no memory for the results");
    tern_status status = tn_open(&opened, o, tn_first_argument(o), TN_OPEN_MACHINE, &err);
    if (status == TERN_OK) {
        status = bench(o, &opened, r, &err);
        tn_close(&opened);
    }
    tn_free(r);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}

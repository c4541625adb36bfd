/* SPDX-License-Identifier: MIT
 *
 * Estimates memory and speed of a model before it is downloaded.
 *
 * Memory is planned as for an open model, from the sizes in the catalogue.  A decoded token reads
 * token_bytes once: at a share of this machine's memory rate, or as fast as its threads multiply,
 * whichever is slower.  Share and limits come from bench/README.md.
 */
#include <string.h>

#include "base/compiler.h"
#include "pull.h"
#include "tern/measure.h"
#include "tern/plan.h"

#define CONTEXT 4096u
#define SESSION_BYTES ((uint64_t)48 << 20) /* scratch memory of a session, and memory of an open
                                            * model */
#define READING_TOK_S 5.0
#define STREAM_SHARE 0.72 /* the share of the stream rate that decoding reaches: 67 to 86 % */

/* GB/s of weights that one thread of a Zen 5 multiplies, for levels where this may be below its
 * memory rate.  Other levels were not measured enough for a limit. */
static const struct {
    const char *level;
    double int8, bits16;
} products[] = {{"avx2", 22, 16}, {"avxvnni", 22, 16}, {"avx512", 34, 31}, {"amx", 34, 31}};

void tn_pull_machine_read(struct tn_pull_machine *out)
{
    struct tern_plan plan;
    *out = (struct tn_pull_machine){.n_threads = 1, .cpu_level = ""};
    tern_sysinfo_read(&out->info);
    if (tern_plan_make(&plan, &out->info, NULL, NULL, NULL) == TERN_OK) {
        out->n_threads = plan.n_threads_decode;
        out->cpu_level = plan.cpu_level;
    }
    if (tern_stream_rate(&out->stream_gb_s, out->n_threads, NULL) != TERN_OK)
        out->stream_gb_s = 0;
}

static void make_sizes(struct tern_plan_model *out, const struct tn_catalogue_model *model)
{
    const uint64_t block = model->kv_bytes * TERN_PLAN_KV_BLOCK;
    *out = (struct tern_plan_model){
        .n_ctx = model->context && model->context < CONTEXT ? model->context : CONTEXT,
        .file_bytes = model->tern_bytes,
        .base_bytes = SESSION_BYTES,
        .kv_block_bytes = {[TERN_KV_F32] = 4 * block, [TERN_KV_F16] = 2 * block,
                           [TERN_KV_Q8] = block},
        .kv = TERN_KV_Q8,
    };
}

/* GB/s at which a token's weights are read and multiplied. */
static double decode_rate(const struct tn_pull_machine *machine,
                          const struct tn_catalogue_model *model)
{
    double rate = STREAM_SHARE * machine->stream_gb_s;
    for (size_t i = 0; i < TN_COUNT_OF(products); i++)
        if (strcmp(products[i].level, machine->cpu_level) == 0)
            rate = TN_MIN(rate, machine->n_threads * (model->has_int8_inputs ? products[i].int8
                                                                             : products[i].bits16));
    return rate;
}

void tn_pull_estimate(struct tn_pull_estimate *out, const struct tn_pull_machine *machine,
                      const struct tn_catalogue_model *model)
{
    struct tern_plan_model sizes;
    struct tern_plan plan;
    make_sizes(&sizes, model);
    *out = (struct tn_pull_estimate){
        .memory_bytes =
            sizes.file_bytes + sizes.base_bytes + model->kv_bytes * (uint64_t)sizes.n_ctx,
    };
    out->fits = tern_plan_make(&plan, &machine->info, &sizes, NULL, NULL) == TERN_OK &&
                !plan.will_page;
    out->tok_s = decode_rate(machine, model) * 1e9 / (double)model->token_bytes;
}

uint32_t tn_pull_best(const struct tn_pull_estimate *estimates)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++) {
        const struct tn_catalogue_model *model = &tn_catalogue_models[i];
        if (model->pooling[0] || !estimates[i].fits)
            continue;
        if (estimates[i].tok_s >= READING_TOK_S || estimates[i].tok_s == 0)
            return i; /* rows are sorted by rank */
        if (best == UINT32_MAX || estimates[i].tok_s > estimates[best].tok_s)
            best = i;
    }
    return best;
}

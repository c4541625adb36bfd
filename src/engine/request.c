/* SPDX-License-Identifier: MIT
 *
 * Checks, copies and frees requests.
 *
 * A request is copied into one block of memory at submission, so that the scheduler's steps
 * allocate nothing.
 */
#include "engine/request.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "engine/session.h"
#include "grammar/token_mask.h"

static tern_status check_prompt(const struct tern_model *model, uint32_t n_ctx, const uint32_t *ids,
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

tern_status tn_request_check(const struct tern_request *asked, const struct tern_model *model,
                             uint32_t n_ctx, struct tern_error *err)
{
    if (asked->n_logprobs > TERN_MAX_LOGPROBS)
        return tn_fail(err, TERN_USAGE, "%u log-probabilities for each token: at most %d",
                       asked->n_logprobs, TERN_MAX_LOGPROBS);
    if (asked->n_draft > TERN_MAX_DRAFT)
        return tn_fail(err, TERN_USAGE, "%u drafted ids are more than %u", asked->n_draft,
                       TERN_MAX_DRAFT);
    if (asked->grammar && !model->tokenizer)
        return tn_fail(err, TERN_USAGE, "a grammar needs a model with a tokenizer");
    if (asked->fits_gap && !model->tokenizer)
        return tn_fail(err, TERN_USAGE, "filling a gap needs a model with a tokenizer");
    for (size_t i = 0; i < asked->n_stop_strings; i++)
        if (asked->stop_strings[i][0] == '\0')
            return tn_fail(err, TERN_USAGE, "stop string %zu is empty", i);
    return check_prompt(model, n_ctx, asked->ids, asked->n_ids, err);
}

/* Copies all members into an arena; without memory it only counts bytes. */
static void copy_asked(struct tern_request *out, struct tn_arena *arena,
                       const struct tern_request *asked)
{
    uint32_t *ids = tn_arena_take(arena, asked->n_ids * sizeof *ids);
    uint32_t *ends = tn_arena_take(arena, asked->n_end_ids * sizeof *ends);
    const char **stops = tn_arena_take(arena, asked->n_stop_strings * sizeof *stops);
    if (ids)
        memcpy(ids, asked->ids, asked->n_ids * sizeof *ids);
    if (ends && asked->n_end_ids)
        memcpy(ends, asked->end_ids, asked->n_end_ids * sizeof *ends);
    for (size_t i = 0; i < asked->n_stop_strings; i++) {
        const size_t n = strlen(asked->stop_strings[i]) + 1;
        char *stop = tn_arena_take(arena, n);
        if (stop)
            stops[i] = memcpy(stop, asked->stop_strings[i], n);
    }
    *out = *asked;
    out->ids = ids;
    out->end_ids = ends;
    out->stop_strings = stops;
}

/* Rows of log-probabilities that a step may produce. */
static uint32_t n_logprob_rows(const struct tern_request *asked)
{
    if (asked->prompt_logprobs)
        return 1 + TN_MAX(TN_PROMPT_LOGPROB_ROWS, TERN_MAX_DRAFT);
    return asked->n_logprobs ? 1 + asked->n_draft : 0;
}

static bool take_memory(struct tn_request *r, const struct tern_request *asked)
{
    const uint32_t n_rows = n_logprob_rows(asked);
    struct tn_arena arena = {0};
    copy_asked(&r->asked, &arena, asked);
    r->memory = tn_alloc_aligned(arena.used, 64);
    if (!r->memory)
        return false;
    arena = (struct tn_arena){.base = r->memory, .capacity = arena.used};
    copy_asked(&r->asked, &arena, asked);
    if (n_rows == 0)
        return true;
    r->logprobs = tn_alloc_zeroed((size_t)n_rows * tn_request_n_logprobs(r), sizeof *r->logprobs);
    return r->logprobs != NULL;
}

static tern_status start_drafts(struct tn_request *r, uint32_t n_ctx, struct tern_error *err)
{
    const struct tern_request *asked = &r->asked;
    const size_t longest = TN_MIN((size_t)n_ctx + 1, asked->n_ids + asked->max_tokens);
    return tn_drafter_init(&r->drafter, asked->ids, asked->n_ids, (uint32_t)longest, err);
}

tern_status tn_request_init(struct tn_request *r, const struct tern_model *model, uint32_t n_ctx,
                            struct tern_error *err)
{
    struct tn_generation *g = &r->generation;
    g->model = model;
    g->stop_strings = r->asked.stop_strings;
    g->n_stop_strings = r->asked.n_stop_strings;
    g->end_ids = r->asked.end_ids;
    g->n_end_ids = r->asked.n_end_ids;
    g->fits_gap = r->asked.fits_gap;
    g->max_tokens = r->asked.max_tokens;
    g->ignore_eos = r->asked.ignore_eos;
    r->result.n_prompt = (uint32_t)r->asked.n_ids;
    tern_status status = tn_generation_init(g, err);
    if (status == TERN_OK && r->drafter.n_draft > 0)
        status = start_drafts(r, n_ctx, err);
    return status;
}

void tn_request_fini(struct tn_request *r)
{
    tn_constraint_free(r->generation.constraint);
    tn_generation_fini(&r->generation);
    tn_drafter_fini(&r->drafter);
}

tern_status tn_request_create(struct tn_request **out, const struct tern_request *asked,
                              const struct tern_model *model, uint32_t n_ctx,
                              struct tern_error *err)
{
    *out = NULL;
    struct tn_request *r = tn_alloc_zeroed(1, sizeof *r);
    if (!r || !take_memory(r, asked)) {
        tn_request_free(r);
        return tn_fail(err, TERN_MEMORY, "no memory for a request of %zu tokens", asked->n_ids);
    }
    /* No drafts: `adjust` may depend on the events before a choice, and a grammar's ids on the
     * choices. */
    r->drafter.n_draft = asked->adjust || asked->grammar ? 0 : asked->n_draft;
    tern_status status = tn_request_init(r, model, n_ctx, err);
    if (status == TERN_OK)
        *out = r;
    else
        tn_request_free(r);
    return status;
}

/* Up to this share of the vocabulary is computed row by row: half the cost of searching a head in
 * planes. */
#define LISTED_PART 32u

static uint32_t max_listed(uint32_t n_ids)
{
    return TN_MAX(n_ids / LISTED_PART, 1);
}

uint64_t tern_model_grammar_bytes(const struct tern_model *model,
                                  const struct tern_grammar *grammar)
{
    const uint32_t n_ids = model->n_allowed;
    if (!grammar || !model->tokenizer)
        return 0;
    return tern_grammar_bytes(grammar) +
           tn_token_list_need(model->tokenizer, n_ids, model->is_control) +
           tn_constraint_bytes(grammar, n_ids, max_listed(n_ids));
}

tern_status tn_request_bind(struct tn_request *r, const struct tern_model *model,
                            struct tn_token_list **tokens, struct tern_error *err)
{
    tern_status status = tn_ok(err);
    if (!r->asked.grammar)
        return status;
    if (!*tokens)
        status = tn_token_list_create(tokens, model->tokenizer, model->n_allowed,
                                      model->is_control, model->public_config.stop_ids,
                                      model->public_config.n_stop_ids, err);
    if (status != TERN_OK)
        return status;
    return tn_constraint_create(&r->generation.constraint, r->asked.grammar, *tokens,
                                max_listed((*tokens)->n_ids), err);
}

void tn_request_free(struct tn_request *r)
{
    if (!r)
        return;
    tn_request_fini(r);
    tn_free(r->logprobs);
    tn_free_aligned(r->memory);
    tn_free(r);
}

/* SPDX-License-Identifier: MIT
 *
 * Checking, copying and freeing requests.
 */
#include "run/request.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "run/session.h"

tern_status tn_request_check(const struct tern_request *asked, const struct tern_model *model,
                             uint32_t n_ctx, struct tern_error *err)
{
    if (asked->n_logprobs > TERN_MAX_LOGPROBS)
        return tn_fail(err, TERN_USAGE, "%u log-probabilities for each token: at most %d",
                       asked->n_logprobs, TERN_MAX_LOGPROBS);
    tern_status status = tn_generation_check_stops(asked->stop_strings, asked->n_stop_strings, err);
    if (status == TERN_OK)
        status = tn_sampler_check(&asked->sampler, err);
    if (status == TERN_OK)
        status = tn_check_prompt(model, n_ctx, asked->ids, asked->n_ids, err);
    return status;
}

/* Copies everything into an arena; without memory it only counts. */
static void copy_asked(struct tern_request *out, struct tn_arena *arena,
                       const struct tern_request *asked)
{
    uint32_t *ids = tn_arena_take(arena, asked->n_ids * sizeof *ids);
    const char **stops = tn_arena_take(arena, asked->n_stop_strings * sizeof *stops);
    if (ids)
        memcpy(ids, asked->ids, asked->n_ids * sizeof *ids);
    for (size_t i = 0; i < asked->n_stop_strings; i++) {
        const size_t n = strlen(asked->stop_strings[i]) + 1;
        char *stop = tn_arena_take(arena, n);
        if (stop)
            stops[i] = memcpy(stop, asked->stop_strings[i], n);
    }
    *out = *asked;
    out->ids = ids;
    out->stop_strings = stops;
}

static bool take_memory(struct tn_request *r, const struct tern_request *asked)
{
    const uint32_t n_rows = asked->prompt_logprobs ? TN_PROMPT_LOGPROB_ROWS + 1
                            : asked->n_logprobs    ? 1
                                                   : 0;
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

tern_status tn_request_create(struct tn_request **out, const struct tern_request *asked,
                              const struct tern_model *model, struct tern_error *err)
{
    *out = NULL;
    struct tn_request *r = tn_alloc_zeroed(1, sizeof *r);
    if (!r || !take_memory(r, asked)) {
        tn_request_free(r);
        return tn_fail(err, TERN_MEMORY, "no memory for a request of %zu tokens", asked->n_ids);
    }
    r->generation = (struct tn_generation){.model = model,
                                           .stop_strings = r->asked.stop_strings,
                                           .n_stop_strings = r->asked.n_stop_strings,
                                           .max_tokens = asked->max_tokens,
                                           .ignore_eos = asked->ignore_eos};
    r->result.n_prompt = (uint32_t)asked->n_ids;
    tern_status status = tn_generation_init(&r->generation, err);
    if (status == TERN_OK)
        *out = r;
    else
        tn_request_free(r);
    return status;
}

void tn_request_free(struct tn_request *r)
{
    if (!r)
        return;
    tn_generation_fini(&r->generation);
    tn_free(r->logprobs);
    tn_free_aligned(r->memory);
    tn_free(r);
}

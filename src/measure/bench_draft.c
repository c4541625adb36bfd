/* SPDX-License-Identifier: MIT
 *
 * Decodes with drafts from a recorded answer, so that the acceptance is known: position p is wrong
 * when p mod M = 0.
 *
 * The number of rows per step follows measured times and acceptance, as in any session.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/compiler.h"
#include "base/error.h"
#include "engine/session.h"
#include "measure/bench.h"

struct replay {
    const struct tn_bench_answer *answer;
    uint32_t vocab;
    uint32_t n; /* number of ids so far */
};

static void on_token(void *arg, uint32_t id)
{
    struct replay *r = arg;
    r->answer->room[r->n++] = id;
}

static uint32_t on_draft(void *arg, uint32_t *ids, uint32_t n_max)
{
    const struct replay *r = arg;
    const struct tn_bench_answer *a = r->answer;
    const uint32_t n = TN_MIN(n_max, a->n - TN_MIN(r->n, a->n));
    for (uint32_t i = 0; i < n; i++) {
        const bool is_wrong = a->wrong > 0 && (r->n + i) % a->wrong == 0;
        ids[i] = (a->ids[r->n + i] + is_wrong) % r->vocab;
    }
    return n;
}

tern_status tn_bench_replay(struct tn_bench_replayed *out, struct tern_session *s,
                            const uint32_t *prompt, uint32_t n_prompt,
                            const struct tn_bench_answer *answer, struct tern_error *err)
{
    struct replay replay = {.answer = answer, .vocab = s->model->file.spec.config->vocab};
    const struct tern_sampler_params greedy = {.top_p = 1.0f, .repeat_penalty = 1.0f};
    struct tern_generate_params params = {.max_tokens = answer->n,
                                          .ignore_eos = true,
                                          .n_draft = answer->n_draft,
                                          .on_token = on_token,
                                          .on_draft = on_draft,
                                          .arg = &replay};
    struct tern_generate_result result;
    tern_status status = tern_sampler_create(&params.sampler, &greedy, replay.vocab, err);
    if (status == TERN_OK)
        status = tern_generate(s, prompt, n_prompt, &params, &result, err);
    tern_sampler_free(params.sampler);
    if (status != TERN_OK)
        return status;
    if (result.n_new < answer->n) /* stopped by should_stop */
        return tn_fail(err, TERN_INTERRUPTED, "interrupted after %u tokens", result.n_new);
    *out = (struct tn_bench_replayed){
        .tok_s = (answer->n - 1) / result.decode_s,
        .tokens_per_step = 1.0 + (double)result.n_accepted / result.n_steps,
        .hash = XXH3_64bits(answer->room, answer->n * sizeof *answer->room),
    };
    return TERN_OK;
}

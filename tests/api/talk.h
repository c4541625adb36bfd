/* SPDX-License-Identifier: MIT
 *
 * Helpers for tests of models with recurrent state: sessions that continue, interruptions, and
 * answers with drafts of which every fifth id is wrong.
 */
#ifndef TEST_TALK_H
#define TEST_TALK_H

#include "demo.h"
#include "tern/tern.h"

/* Returns true once, after *(uint32_t *)arg calls. */
static inline bool stops_once(void *arg)
{
    return (*(uint32_t *)arg)-- == 0;
}

/* Evaluates ids from the session's position up to n. */
static inline void session_go_to(struct tern_session *s, const uint32_t *ids, uint32_t n)
{
    const uint32_t n_past = tern_session_n_past(s);
    assert_ok(tern_session_eval(s, ids + n_past, n - n_past, NULL, &e));
}

/* An answer; the caller sets `vocab`. */
struct talk {
    uint32_t ids[128];
    uint32_t n;
    struct tern_generate_result result;
    const struct talk *recorded; /* source of the drafts; NULL: none */
    uint32_t vocab;
};

static inline void talk_on_token(void *arg, uint32_t id)
{
    struct talk *t = arg;
    t->ids[t->n++] = id;
}

static inline uint32_t talk_on_draft(void *arg, uint32_t *draft, uint32_t n_max)
{
    const struct talk *t = arg;
    uint32_t n = 0;
    for (; n < n_max && t->n + n < t->recorded->n; n++)
        draft[n] = (t->recorded->ids[t->n + n] + ((t->n + n) % 5 == 0)) % t->vocab;
    return n;
}

/* Generates an answer to ids[0, n) greedily, with drafts from `recorded` if there is one. */
static inline void talk_answer(struct talk *out, struct tern_session *s, const uint32_t *ids,
                               uint32_t n, uint32_t max_tokens, float repeat_penalty,
                               const struct talk *recorded)
{
    struct tern_sampler *sampler;
    struct tern_sampler_params sp;
    tern_sampler_params_default(&sp);
    sp.repeat_penalty = repeat_penalty;
    sp.temperature = 0;
    out->n = 0;
    out->recorded = recorded;
    assert_ok(tern_sampler_create(&sampler, &sp, out->vocab, &e));
    const struct tern_generate_params p = {.sampler = sampler, .max_tokens = max_tokens,
                                           .ignore_eos = true,
                                           .n_draft = recorded ? TERN_MAX_DRAFT : 0,
                                           .verify_all = true, .on_token = talk_on_token,
                                           .arg = out,
                                           .on_draft = recorded ? talk_on_draft : NULL};
    assert_ok(tern_generate(s, ids, n, &p, &out->result, &e));
    tern_sampler_free(sampler);
}

#endif

/* SPDX-License-Identifier: MIT
 *
 * The filter between the sampler's distribution and the choice, with the rules and constants of
 * llama.cpp's sampler "infill":
 *
 *   1. If 3 n times the probability of the ends exceeds that of the n candidates' rest: an end.
 *   2. A candidate whose text begins that of another: the more likely one takes both probabilities.
 *   3. Others below 0.2 are dropped; without any left: an end.
 *   4. Others below 1 / (1 + their number) are dropped.
 */
#include "engine/fill_choice.h"

#include <string.h>

#include "base/compiler.h"
#include "engine/sampler.h"

#define MAX_CANDIDATES 128u /* top-k is usually 40; later ones are unlikely */
#define MIN_PROBABILITY 0.2f

struct candidates {
    uint32_t ids[MAX_CANDIDATES];
    float p[MAX_CANDIDATES]; /* 0: dropped */
    bool is_end[MAX_CANDIDATES];
    uint32_t n;
};

static float sum_of(const struct candidates *c, bool ends)
{
    float sum = 0.0f;
    for (uint32_t i = 0; i < c->n; i++)
        sum += c->is_end[i] == ends ? c->p[i] : 0.0f;
    return sum;
}

static float sum_of_all(const struct candidates *c)
{
    return sum_of(c, true) + sum_of(c, false);
}

/* Drops others than ends below a probability.  Returns the number of the remaining ones. */
static uint32_t drop_below(struct candidates *c, float limit)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (!c->is_end[i] && c->p[i] < limit)
            c->p[i] = 0.0f;
        n += !c->is_end[i] && c->p[i] > 0.0f;
    }
    return n;
}

static bool begins(const struct tern_tokenizer *tokenizer, uint32_t a, uint32_t b)
{
    size_t n_a, n_b;
    const char *text_a = tern_tokenizer_token_bytes(tokenizer, a, &n_a);
    const char *text_b = tern_tokenizer_token_bytes(tokenizer, b, &n_b);
    return n_a > 0 && n_a <= n_b && memcmp(text_a, text_b, n_a) == 0;
}

static void merge(struct candidates *c, const struct tern_tokenizer *tokenizer)
{
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t j = 0; j < c->n && c->p[i] > 0.0f; j++) {
            if (i == j || c->p[j] == 0.0f || c->is_end[i] || c->is_end[j] ||
                !begins(tokenizer, c->ids[i], c->ids[j]))
                continue;
            const uint32_t to = c->p[j] > c->p[i] ? j : i, from = to == i ? j : i;
            c->p[to] += c->p[from];
            c->p[from] = 0.0f;
        }
}

/* An id that ends the text, a candidate if possible. */
static uint32_t end_of(const struct tn_generation *g, const struct candidates *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->is_end[i])
            return c->ids[i];
    if (g->model->public_config.n_stop_ids > 0)
        return g->model->public_config.stop_ids[0];
    return g->n_end_ids > 0 ? g->end_ids[0] : c->ids[0];
}

/* Draws one of the remaining candidates. */
static uint32_t draw(const struct candidates *c, float random)
{
    const float target = random * sum_of_all(c);
    float sum = 0.0f;
    uint32_t id = c->ids[0];
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->p[i] == 0.0f)
            continue;
        id = c->ids[i];
        sum += c->p[i];
        if (sum > target)
            break;
    }
    return id;
}

tern_status tn_fill_choose(struct tn_generation *g, const float *logits, uint32_t *id,
                           struct tern_error *err)
{
    struct candidates c = {.n = 0};
    *id = TERN_NO_ID;
    tern_status status =
        tn_sampler_first(g->sampler, logits, g->model->file.spec.config->vocab,
                         g->model->n_allowed, MAX_CANDIDATES, c.ids, c.p, &c.n, err);
    if (status != TERN_OK)
        return status;
    const float random = tn_sampler_random(g->sampler);
    for (uint32_t i = 0; i < c.n; i++)
        c.is_end[i] = !g->ignore_eos && tn_generation_ends(g, c.ids[i]);
    if (3.0f * sum_of(&c, true) * (float)c.n > sum_of(&c, false)) {
        (void)drop_below(&c, 2.0f);
    } else {
        merge(&c, g->model->tokenizer);
        const uint32_t n = drop_below(&c, MIN_PROBABILITY);
        if (n == 0 && !g->ignore_eos) {
            *id = end_of(g, &c);
            return TERN_OK;
        }
        (void)drop_below(&c, sum_of_all(&c) / (float)(n + 1));
    }
    *id = draw(&c, random);
    return TERN_OK;
}

/* SPDX-License-Identifier: MIT
 *
 * log softmax(l)[i] = l[i] - max - ln(sum over j of exp(l[j] - max)).
 *
 * Sums are in double precision and in a fixed order, so the numbers do not depend on the kernel
 * level.
 */
#include "engine/logprobs.h"

#include <math.h>

#include "base/compiler.h"
#include "kern/exp.h"

static double log_sum(const float *logits, uint32_t n)
{
    float max = logits[0];
    double sum = 0;
    for (uint32_t i = 1; i < n; i++)
        max = TN_MAX(max, logits[i]);
    for (uint32_t i = 0; i < n; i++)
        sum += (double)tn_exp_f32(logits[i] - max);
    return (double)max + log(sum);
}

/* The n >= 1 largest logits, unmodified.  Ids are visited in ascending order, so equal logits rank
 * by id. */
static uint32_t find_best(struct tern_token_logprob *best, uint32_t n, const float *logits,
                          uint32_t n_vocab)
{
    uint32_t n_best = 0;
    for (uint32_t id = 0; id < n_vocab; id++) {
        const float v = logits[id];
        if (n_best == n && !(v > best[n - 1].logprob))
            continue;
        uint32_t i = n_best < n ? n_best++ : n - 1;
        for (; i > 0 && best[i - 1].logprob < v; i--)
            best[i] = best[i - 1];
        best[i] = (struct tern_token_logprob){id, v};
    }
    return n_best;
}

uint32_t tn_logprobs(struct tern_token_logprob *out, uint32_t n, const float *logits,
                     uint32_t n_vocab, uint32_t id)
{
    const double whole = log_sum(logits, n_vocab);
    const uint32_t n_best = n > 1 ? find_best(out + 1, n - 1, logits, n_vocab) : 0;
    out[0] = (struct tern_token_logprob){id, (float)((double)logits[id] - whole)};
    for (uint32_t i = 1; i <= n_best; i++)
        out[i].logprob = (float)((double)out[i].logprob - whole);
    return 1 + n_best;
}

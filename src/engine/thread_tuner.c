/* SPDX-License-Identifier: MIT
 *
 * The measurement of thread counts: a state machine without clock or threads.
 */
#include "engine/thread_tuner.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void add_candidate(struct tn_calibrate *c, uint32_t n)
{
    for (uint32_t i = 0; i < c->n_candidates; i++)
        if (c->candidates[i] == n)
            return;
    c->candidates[c->n_candidates++] = n;
}

void tn_calibrate_start(struct tn_calibrate *c, uint32_t n, uint32_t n_ceil)
{
    memset(c, 0, sizeof *c);
    add_candidate(c, n);
    add_candidate(c, n / 4 * 3 + (n % 4 * 3 + 2) / 4);
    add_candidate(c, n / 2 + n % 2);
    uint32_t n_before = c->n_candidates;
    if (n_ceil > 0)
        add_candidate(c, n_ceil);
    c->has_ceiling = c->n_candidates > n_before;
    c->choice = n;
    if (c->n_candidates == 1)
        c->current = 1;
}

bool tn_calibrate_is_done(const struct tn_calibrate *c)
{
    return c->current == c->n_candidates && !c->is_confirming;
}

uint32_t tn_calibrate_threads(const struct tn_calibrate *c)
{
    return c->is_confirming           ? c->candidates[0]
           : tn_calibrate_is_done(c) ? c->choice
                                     : c->candidates[c->current];
}

static void sort(uint64_t *sorted, const uint64_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
}

/* The median of the candidate that ran. Two slow tokens in eight are somebody else's doing: such a
 * measurement may not decide anything. */
static uint64_t take_median(struct tn_calibrate *c)
{
    uint64_t sorted[TN_CALIBRATE_TOKENS] = {0};
    sort(sorted, c->token_ns, c->n_fed);
    uint64_t median = sorted[c->n_fed / 2];
    if (c->n_fed == TN_CALIBRATE_TOKENS && sorted[c->n_fed - 2] > median + median / 2)
        c->is_noisy = true;
    c->n_fed = 0;
    return median;
}

/* slower <= faster * 1.03 */
static bool within_3_percent(uint64_t slower, uint64_t faster)
{
    return slower <= faster || slower - faster <= faster / 100 * 3 + faster % 100 * 3 / 100;
}

/* The smallest count within 3 % of the best; the ceiling of a quota only if it is clearly better,
 * since too many threads stop each other. Noise leaves the plan's. */
static void choose(struct tn_calibrate *c)
{
    uint32_t n_plain = c->n_candidates - c->has_ceiling, best = 0;
    for (uint32_t i = 1; i < n_plain; i++)
        if (c->median_ns[i] < c->median_ns[best])
            best = i;
    if (c->is_noisy)
        return;
    uint32_t chosen = best, last = c->n_candidates - 1;
    for (uint32_t i = 0; i < n_plain; i++)
        if (c->candidates[i] < c->candidates[chosen] &&
            within_3_percent(c->median_ns[i], c->median_ns[best]))
            chosen = i;
    if (c->has_ceiling && !within_3_percent(c->median_ns[best], c->median_ns[last]))
        chosen = last;
    c->choice = c->candidates[chosen];
    c->choice_ns = c->median_ns[chosen];
    c->is_confirming = chosen != 0;
}

/* The first candidate ran once more: does the choice hold? */
static void confirm(struct tn_calibrate *c)
{
    uint64_t again = take_median(c);
    bool holds = c->choice > c->candidates[0] ? !within_3_percent(again, c->choice_ns)
                                              : within_3_percent(c->choice_ns, again);
    c->is_confirming = false;
    if (holds && !c->is_noisy)
        return;
    c->is_noisy = true;
    c->choice = c->candidates[0];
}

/* Two tokens that both take a quarter longer than the first candidate's: not worth six more. */
static bool is_hopeless(const struct tn_calibrate *c)
{
    uint64_t limit = c->median_ns[0] + c->median_ns[0] / 4;
    return c->current > 0 && !c->is_confirming && c->n_fed == 2 && c->token_ns[0] > limit &&
           c->token_ns[1] > limit;
}

void tn_calibrate_feed(struct tn_calibrate *c, uint64_t token_ns)
{
    if (tn_calibrate_is_done(c))
        return;
    c->token_ns[c->n_fed++] = token_ns;
    if (c->n_fed < TN_CALIBRATE_TOKENS && !is_hopeless(c))
        return;
    if (c->is_confirming) {
        confirm(c);
        return;
    }
    c->median_ns[c->current] = take_median(c);
    if (++c->current == c->n_candidates)
        choose(c);
}

uint64_t tn_calibrate_key(const struct tern_sysinfo *m, const struct tern_plan *plan,
                          uint64_t model_hash)
{
    struct {
        char cpu_name[64];
        char level[16];
        uint64_t model_hash, quota_millicpus;
        uint32_t counts[8];
        uint64_t cores_hash;
    } facts;
    memset(&facts, 0, sizeof facts); /* padding too: it is hashed */
    memcpy(facts.cpu_name, m->cpu_name, sizeof facts.cpu_name);
    strncpy(facts.level, plan->cpu_level, sizeof facts.level - 1);
    facts.model_hash = model_hash;
    facts.quota_millicpus = m->quota_millicpus;
    const uint32_t counts[8] = {m->n_physical, m->n_logical,           m->n_allowed,
                                m->n_kinds,    m->n_packages,          m->n_numa,
                                plan->eco,     plan->n_threads_decode};
    memcpy(facts.counts, counts, sizeof counts);
    facts.cores_hash = XXH3_64bits(m->cores, m->n_cores * sizeof m->cores[0]);
    return XXH3_64bits(&facts, sizeof facts);
}

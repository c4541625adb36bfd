/* SPDX-License-Identifier: MIT
 *
 * The sampling chain: penalties, top-k, temperature, top-p, min-p, one draw.
 *
 *   logits -> scores [n_vocab]      penalised copy; not finite = minus infinity
 *          -> candidates [n_vocab]  survivors of top-k as a heap, most likely on top
 *          -> popped one by one to the end of the same array: the survivors in rank order
 *
 * Nothing is sorted as a whole: a draw pops only as far as it walks.  Dividing by the temperature
 * keeps the order, so top-k may come first.  The same token on every machine: logits are compared
 * as exact floats, exp is our own, sums are double in a fixed order.  Rank is by falling score,
 * then rising id, so there are no ties.
 */
#include "engine/sampler.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "kern/exp.h"
#include "model/head.h"
#include "tern/model_format.h"

struct candidate {
    float score;
    uint32_t id;
};

struct tern_sampler {
    struct tern_sampler_params params;
    struct tn_rng rng;
    uint32_t n_vocab;
    const unsigned char *exempt;  /* [n_vocab], borrowed, or NULL */
    const uint64_t *bits;         /* [n_vocab] allowed ids, borrowed, or NULL */
    float *scores;                /* [n_vocab] */
    struct candidate *candidates; /* [n_vocab] */
    uint32_t *counts;             /* [n_vocab] occurrences of each id in the window */
    uint32_t *window;             /* [window_capacity] ring of the last penalty_last ids */
    uint32_t window_capacity;
    uint32_t n_window;
    uint32_t i_window; /* index of the next entry */
};

/* State of a draw: candidates[0, n_heap) are a heap; survivors popped from it are at the end of
 * candidates[0, n_all), the best one last. */
struct draw {
    struct candidate *candidates;
    uint32_t n_all;
    uint32_t n_heap;
    uint32_t n_survivors;
    float max;
    float temperature;
    double total; /* sum of the survivors' weights */
};

/* ---- creation ---- */

void tern_sampler_params_default(struct tern_sampler_params *out)
{
    *out = (struct tern_sampler_params){
        .temperature = 0.7f,
        .top_k = 40,
        .top_p = 0.95f,
        .repeat_penalty = 1.1f,
        .presence_penalty = 0.6f,
        .penalty_last = 64,
    };
}

/* Also false for NaN. */
static bool is_between(float value, float low, float high)
{
    return value >= low && value <= high;
}

tern_status tn_sampler_check(const struct tern_sampler_params *p, struct tern_error *err)
{
    if (!is_between(p->temperature, 0.0f, FLT_MAX))
        return tn_fail(err, TERN_USAGE, "temperature %g: must be 0 or more",
                       (double)p->temperature);
    if (!is_between(p->top_p, 0.0f, 1.0f))
        return tn_fail(err, TERN_USAGE, "top_p %g: must be 0 to 1", (double)p->top_p);
    if (!is_between(p->min_p, 0.0f, 1.0f))
        return tn_fail(err, TERN_USAGE, "min_p %g: must be 0 to 1", (double)p->min_p);
    if (!is_between(p->repeat_penalty, FLT_MIN, FLT_MAX))
        return tn_fail(err, TERN_USAGE, "repeat_penalty %g: must be above 0",
                       (double)p->repeat_penalty);
    if (!is_between(p->presence_penalty, -FLT_MAX, FLT_MAX))
        return tn_fail(err, TERN_USAGE, "presence_penalty %g: must be finite",
                       (double)p->presence_penalty);
    if (!is_between(p->frequency_penalty, -FLT_MAX, FLT_MAX))
        return tn_fail(err, TERN_USAGE, "frequency_penalty %g: must be finite",
                       (double)p->frequency_penalty);
    if (p->penalty_last > TERN_MAX_CONTEXT)
        return tn_fail(err, TERN_USAGE, "penalty_last %u: at most %u", p->penalty_last,
                       TERN_MAX_CONTEXT);
    return TERN_OK;
}

/* A choice at a temperature above 0 draws one number. */
static void seed_rng(struct tn_rng *rng, const struct tern_sampler_params *params)
{
    tn_rng_seed(rng, params->seed);
    for (uint32_t i = 0; i < params->n_drawn; i++)
        (void)tn_rng_next(rng);
}

tern_status tern_sampler_create(struct tern_sampler **out, const struct tern_sampler_params *params,
                                uint32_t n_vocab, struct tern_error *err)
{
    *out = NULL;
    tern_status status = tn_sampler_check(params, err);
    if (status != TERN_OK)
        return status;
    if (n_vocab == 0 || n_vocab > TERN_MAX_VOCAB)
        return tn_fail(err, TERN_USAGE, "vocabulary of %u: must be 1 to %u", n_vocab,
                       TERN_MAX_VOCAB);
    struct tern_sampler *s = tn_alloc_zeroed(1, sizeof *s);
    if (!s)
        return tn_fail(err, TERN_MEMORY, "no memory for the sampler");
    s->params = *params;
    s->n_vocab = n_vocab;
    s->scores = tn_alloc_zeroed(n_vocab, sizeof *s->scores);
    s->candidates = tn_alloc_zeroed(n_vocab, sizeof *s->candidates);
    s->counts = tn_alloc_zeroed(n_vocab, sizeof *s->counts);
    s->window = tn_alloc_zeroed(params->penalty_last, sizeof *s->window);
    s->window_capacity = params->penalty_last;
    if (!s->scores || !s->candidates || !s->counts || !s->window) {
        tern_sampler_free(s);
        return tn_fail(err, TERN_MEMORY, "no memory for the sampler of %u tokens", n_vocab);
    }
    seed_rng(&s->rng, params);
    *out = s;
    return tn_ok(err);
}

uint64_t tern_sampler_bytes(uint32_t n_vocab, uint32_t penalty_last)
{
    const struct tern_sampler *s;
    const uint64_t per_id = sizeof *s->scores + sizeof *s->candidates + sizeof *s->counts;
    return sizeof *s + n_vocab * per_id + penalty_last * (uint64_t)sizeof *s->window;
}

void tern_sampler_free(struct tern_sampler *sampler)
{
    if (!sampler)
        return;
    tn_free(sampler->scores);
    tn_free(sampler->candidates);
    tn_free(sampler->counts);
    tn_free(sampler->window);
    tn_free(sampler);
}

void tern_sampler_reseed(struct tern_sampler *sampler, uint64_t seed)
{
    sampler->params.seed = seed;
    tn_rng_seed(&sampler->rng, seed);
}

void tn_sampler_set_bits(struct tern_sampler *sampler, const uint64_t *bits)
{
    sampler->bits = bits;
}

void tn_sampler_configure(struct tern_sampler *sampler, const struct tern_sampler_params *params)
{
    tern_sampler_clear_history(sampler);
    sampler->params = *params;
    sampler->params.penalty_last = TN_MIN(params->penalty_last, sampler->window_capacity);
    seed_rng(&sampler->rng, params);
}

/* ---- history and penalties ---- */

void tern_sampler_set_exempt(struct tern_sampler *sampler, const unsigned char *exempt)
{
    sampler->exempt = exempt;
}

void tern_sampler_accept(struct tern_sampler *sampler, uint32_t id)
{
    uint32_t capacity = sampler->params.penalty_last;
    if (capacity == 0 || id >= sampler->n_vocab)
        return;
    if (sampler->n_window == capacity)
        sampler->counts[sampler->window[sampler->i_window]]--;
    else
        sampler->n_window++;
    sampler->window[sampler->i_window] = id;
    sampler->counts[id]++;
    sampler->i_window = (sampler->i_window + 1) % capacity;
}

void tern_sampler_clear_history(struct tern_sampler *sampler)
{
    for (uint32_t i = 0; i < sampler->n_window; i++)
        sampler->counts[sampler->window[i]] = 0;
    sampler->n_window = 0;
    sampler->i_window = 0;
}

static float penalise(const struct tern_sampler_params *p, float score, uint32_t count)
{
    float v = score >= 0.0f ? score / p->repeat_penalty : score * p->repeat_penalty;
    v -= p->frequency_penalty * (float)count;
    v -= p->presence_penalty;
    /* An overflow keeps its sign; infinity minus infinity keeps the logit. */
    return v > FLT_MAX ? FLT_MAX : v < -FLT_MAX ? -FLT_MAX : v == v ? v : score;
}

/* Marks an id whose penalty is already applied; real counts stay below it. */
#define COUNT_DONE 0x80000000u

/* Applies the penalty once per distinct id, however often it occurs. */
static void apply_penalties(struct tern_sampler *s, uint32_t n)
{
    for (uint32_t i = 0; i < s->n_window; i++) {
        uint32_t id = s->window[i];
        if (s->counts[id] & COUNT_DONE)
            continue;
        if (id < n && isfinite(s->scores[id]) && !(s->exempt && s->exempt[id]))
            s->scores[id] = penalise(&s->params, s->scores[id], s->counts[id]);
        s->counts[id] |= COUNT_DONE;
    }
    for (uint32_t i = 0; i < s->n_window; i++)
        s->counts[s->window[i]] &= ~COUNT_DONE;
}

/* ---- inputs of a choice ---- */

uint32_t tn_sampler_n_vocab(const struct tern_sampler *s)
{
    return s->n_vocab;
}

uint32_t tn_sampler_n_best(const struct tern_sampler *s)
{
    if (s->params.temperature == 0.0f)
        return 1;
    return s->params.top_k <= TN_HEAD_MAX_BEST ? s->params.top_k : 0;
}

static bool has_penalties(const struct tern_sampler_params *p)
{
    return p->repeat_penalty != 1.0f || p->frequency_penalty != 0.0f ||
           p->presence_penalty != 0.0f;
}

/* Inserts id into n ascending ids. */
static void insert_sorted(uint32_t *ids, uint32_t n, uint32_t id)
{
    for (; n > 0 && ids[n - 1] > id; n--)
        ids[n] = ids[n - 1];
    ids[n] = id;
}

bool tn_sampler_penalised(struct tern_sampler *s, uint32_t *ids, uint32_t capacity, uint32_t *n)
{
    bool fits = true;
    *n = 0;
    for (uint32_t i = 0; i < s->n_window && has_penalties(&s->params); i++) {
        uint32_t id = s->window[i];
        if (s->counts[id] & COUNT_DONE)
            continue;
        s->counts[id] |= COUNT_DONE;
        fits = fits && *n < capacity;
        if (fits)
            insert_sorted(ids, (*n)++, id);
    }
    for (uint32_t i = 0; i < s->n_window; i++)
        s->counts[s->window[i]] &= ~COUNT_DONE;
    return fits;
}

/* ---- rank, heap ---- */

static bool ranks_before(struct candidate a, struct candidate b)
{
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/* Restores the heap below i; the top is the first in rank, or the last if `last_on_top`. */
static void sift_down(struct candidate *heap, uint32_t n, uint32_t i, bool last_on_top)
{
    struct candidate moved = heap[i];
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && ranks_before(heap[child + 1], heap[child]) != last_on_top)
            child++;
        if (ranks_before(heap[child], moved) == last_on_top)
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static void heapify(struct candidate *heap, uint32_t n, bool last_on_top)
{
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i, last_on_top);
}

/* ---- the chain ---- */

/* Copies logits to scores, with minus infinity for values that are not finite.  Returns the number
 * of finite ones. */
static uint32_t copy_finite(float *restrict scores, const float *restrict logits, uint32_t n)
{
    uint32_t n_finite = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bool is_finite = fabsf(logits[i]) <= FLT_MAX;
        scores[i] = is_finite ? logits[i] : -INFINITY;
        n_finite += is_finite;
    }
    return n_finite;
}

/* Removes ids that are not allowed.  Returns the number of remaining finite scores. */
static uint32_t keep_bits(float *scores, const uint64_t *bits, uint32_t n)
{
    uint32_t n_finite = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!(bits[i / 64] >> i % 64 & 1))
            scores[i] = -INFINITY;
        n_finite += scores[i] > -INFINITY;
    }
    return n_finite;
}

/* Scores tested together, because few exceed the limit. */
#define SCORE_RUN 64u

/* Index of the first score at or after i that is not below limit; n: none. */
static uint32_t next_score(const float *scores, uint32_t i, uint32_t n, float limit)
{
    for (; i + SCORE_RUN <= n; i += SCORE_RUN) {
        uint32_t n_found = 0;
        for (uint32_t j = 0; j < SCORE_RUN; j++)
            n_found += scores[i + j] >= limit;
        if (n_found)
            break;
    }
    while (i < n && !(scores[i] >= limit))
        i++;
    return i;
}

/* Selects the k first in rank and all others equal to the k-th; k must be below the number of
 * finite scores.  Returns their number. */
static uint32_t select_top_k(struct tern_sampler *s, uint32_t n, uint32_t k)
{
    struct candidate *heap = s->candidates;
    uint32_t i = 0;
    for (uint32_t n_heap = 0; n_heap < k; i++) {
        i = next_score(s->scores, i, n, -FLT_MAX);
        heap[n_heap++] = (struct candidate){s->scores[i], i};
    }
    heapify(heap, k, true);
    for (; (i = next_score(s->scores, i, n, heap[0].score)) < n; i++) {
        /* An equal score with a higher id ranks after the k-th. */
        if (s->scores[i] > heap[0].score) {
            heap[0] = (struct candidate){s->scores[i], i};
            sift_down(heap, k, 0, true);
        }
    }
    struct candidate kth = heap[0];
    uint32_t n_heap = k;
    for (i = kth.id + 1; (i = next_score(s->scores, i, n, kth.score)) < n; i++)
        if (s->scores[i] == kth.score)
            heap[n_heap++] = (struct candidate){kth.score, i};
    return n_heap;
}

static uint32_t select_all(struct tern_sampler *s, uint32_t n)
{
    uint32_t n_heap = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->scores[i] > -INFINITY)
            s->candidates[n_heap++] = (struct candidate){s->scores[i], i};
    return n_heap;
}

/* Proportional to the probability; 1 for the most likely.  The difference is taken first, so that
 * large scores and low temperatures neither overflow nor lose digits. */
static double weight(const struct draw *d, struct candidate c)
{
    return (double)tn_exp_f32((c.score - d->max) / d->temperature);
}

/* The candidate of a rank, popped from the heap on first use. */
static struct candidate candidate_at(struct draw *d, uint32_t rank)
{
    uint32_t place = d->n_all - 1 - rank;
    while (d->n_heap > place) {
        struct candidate best = d->candidates[0];
        d->candidates[0] = d->candidates[--d->n_heap];
        sift_down(d->candidates, d->n_heap, 0, false);
        d->candidates[d->n_heap] = best;
    }
    return d->candidates[place];
}

/* Top-p and min-p: walks down the ranks until one of them cuts off the rest. */
static void cut_tail(struct draw *d, const struct tern_sampler_params *p)
{
    double all = 0.0;
    for (uint32_t i = 0; i < d->n_all; i++)
        all += weight(d, d->candidates[i]);
    heapify(d->candidates, d->n_all, false);
    d->n_survivors = d->n_all;
    d->total = all;
    if (p->top_p >= 1.0f && p->min_p <= 0.0f)
        return;
    double limit = p->top_p < 1.0f ? (double)p->top_p * all : INFINITY;
    double sum = 1.0; /* the most likely one always stays */
    uint32_t rank = 1;
    for (; rank < d->n_all && sum < limit; rank++) {
        double w = weight(d, candidate_at(d, rank));
        if (w < (double)p->min_p)
            break;
        sum += w;
    }
    d->n_survivors = rank;
    d->total = sum;
}

/* The whole chain except the draw. */
static tern_status run_chain(struct tern_sampler *s, const float *logits, uint32_t n,
                             uint32_t n_allowed, struct draw *d, struct tern_error *err)
{
    if (n > s->n_vocab)
        return tn_fail(err, TERN_USAGE, "%u logits, but the sampler was made for %u", n,
                       s->n_vocab);
    n = TN_MIN(n, n_allowed);
    uint32_t n_finite = copy_finite(s->scores, logits, n);
    if (s->bits)
        n_finite = keep_bits(s->scores, s->bits, n);
    if (n_finite == 0)
        return tn_fail(err, TERN_INTERNAL, "no logit is finite; is the model file intact?");
    apply_penalties(s, n); /* finite scores stay finite */
    const struct tern_sampler_params *p = &s->params;
    bool greedy = p->temperature == 0.0f;
    uint32_t k = greedy ? 1 : p->top_k;
    *d = (struct draw){.candidates = s->candidates, .temperature = p->temperature};
    d->n_all = k > 0 && k < n_finite ? select_top_k(s, n, k) : select_all(s, n);
    d->n_heap = d->n_all;
    d->max = -FLT_MAX;
    for (uint32_t i = 0; i < d->n_all; i++)
        d->max = TN_MAX(d->max, d->candidates[i].score);
    if (!greedy) {
        cut_tail(d, p);
        return tn_ok(err);
    }
    heapify(d->candidates, d->n_all, false);
    d->temperature = 1.0f;
    d->n_survivors = 1;
    d->total = 1.0;
    return tn_ok(err);
}

tern_status tern_sampler_sample(struct tern_sampler *sampler, const float *logits, uint32_t n,
                                uint32_t n_allowed, uint32_t *id, struct tern_error *err)
{
    struct draw d;
    *id = TERN_NO_ID;
    tern_status status = run_chain(sampler, logits, n, n_allowed, &d, err);
    if (status != TERN_OK)
        return status;
    *id = candidate_at(&d, 0).id;
    if (sampler->params.temperature == 0.0f)
        return TERN_OK;
    double target = (double)tn_rng_f32(&sampler->rng) * d.total;
    double sum = 0.0;
    for (uint32_t rank = 0; rank < d.n_survivors; rank++) {
        struct candidate c = candidate_at(&d, rank);
        double w = weight(&d, c);
        sum += w;
        if (w > 0.0)
            *id = c.id;
        if (sum > target)
            break;
    }
    return TERN_OK;
}

float tn_sampler_random(struct tern_sampler *sampler)
{
    return tn_rng_f32(&sampler->rng);
}

tern_status tn_sampler_first(struct tern_sampler *sampler, const float *logits, uint32_t n,
                             uint32_t n_allowed, uint32_t max, uint32_t *ids, float *probabilities,
                             uint32_t *n_out, struct tern_error *err)
{
    struct draw d;
    *n_out = 0;
    tern_status status = run_chain(sampler, logits, n, n_allowed, &d, err);
    if (status != TERN_OK)
        return status;
    *n_out = TN_MIN(d.n_survivors, max);
    for (uint32_t rank = 0; rank < *n_out; rank++) {
        struct candidate c = candidate_at(&d, rank);
        ids[rank] = c.id;
        probabilities[rank] = (float)(weight(&d, c) / d.total);
    }
    return TERN_OK;
}

tern_status tern_sampler_distribution(struct tern_sampler *sampler, const float *logits, uint32_t n,
                                      uint32_t n_allowed, uint32_t *ids, float *probabilities,
                                      uint32_t *n_out, struct tern_error *err)
{
    return tn_sampler_first(sampler, logits, n, n_allowed, UINT32_MAX, ids, probabilities, n_out,
                            err);
}

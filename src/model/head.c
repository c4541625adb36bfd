/* SPDX-License-Identifier: MIT
 *
 * The search for the best rows of a head in planes.  head.h explains the stages and derives the
 * bound; embed_head.c runs the stages on threads.
 */
#include "model/head.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "kern/bound_logit.h"

/* Columns beyond this many times the root mean square of x get a second digit (bit_planes_*.c). */
#define ONE_DIGIT 4.0

/* The rounding of x to x16. */
struct rounding {
    double unit, sum_x16;
    double norm_x, lost, slack; /* terms of the bound */
};

static bool round_x(struct rounding *out, const struct tn_head_search *s)
{
    const uint32_t cols = s->w->cols;
    double largest = 0.0, squares = 0.0, sum = 0.0, lost = 0.0;
    for (uint32_t c = 0; c < cols; c++) {
        largest = TN_MAX(largest, fabs((double)s->x[c]));
        squares += (double)s->x[c] * (double)s->x[c];
    }
    out->norm_x = sqrt(squares);
    if (!(out->norm_x < 1e30)) /* also for infinities and NaN */
        return false;
    /* 31 * limit * cols < 2^31, so that the sums of 5 bits fit int32. */
    double limit = (double)TN_MIN(TN_PLANE_X_MAX, 0x7FFFFFFFu / (31u * cols));
    out->unit = TN_MAX(largest / limit, out->norm_x / sqrt((double)cols) * (ONE_DIGIT / 127.0));
    double per_unit = largest > 0.0 ? 1.0 / out->unit : 0.0;
    memset(s->x16, 0, tn_plane_row_bytes(cols, 8) * sizeof s->x16[0]);
    for (uint32_t c = 0; c < cols; c++) {
        double v = ((double)s->x[c] * per_unit + 0x1.8p52) - 0x1.8p52; /* rounds to the nearest
                                                                        * integer */
        v = TN_MAX(-limit, TN_MIN(limit, v));
        double d = (double)s->x[c] - v * out->unit;
        s->x16[c] = (int16_t)v;
        sum += v;
        lost += d * d;
    }
    out->sum_x16 = sum;
    out->lost = sqrt(lost);
    double rounding = (cols / 16.0 + 16.0) * 0x1p-24;
    out->slack =
        (tn_bit_planes_max(s->w->n_planes) + 1) * sqrt((double)cols) * out->norm_x * rounding;
    return true;
}

/* ---- bounds ---- */

/* Bits that a stage leaves unread. */
static uint32_t open_bits(const struct tn_bit_planes *w, uint32_t stage)
{
    return tn_bit_planes_bits(w->n_planes) - tn_bit_planes_bits(stage + 1);
}

/* The number of values t to try in the bound, multiples of an eighth of the root mean square of
 * x. */
#define N_LIMITS 32u

struct limit {
    double t;
    double n_above, sum_above; /* over the |x_c| >= t */
    double squares_below;
};

static void sort_into_limits(struct limit limits[N_LIMITS], const struct tn_head_search *s,
                             double norm_x)
{
    const double step = norm_x / sqrt((double)s->w->cols) / 8.0;
    const double per_step = step > 0.0 ? 1.0 / step : 0.0;
    struct limit bins[N_LIMITS + 1] = {{0}}; /* bin i: from t_i = i * step on */
    for (uint32_t c = 0; c < s->w->cols; c++) {
        const double x = fabs((double)s->x[c]);
        struct limit *bin = &bins[(uint32_t)TN_MIN(x * per_step, (double)N_LIMITS)];
        bin->n_above += 1.0;
        bin->sum_above += x;
        bin->squares_below += x * x;
    }
    for (uint32_t i = N_LIMITS; i-- > 0;) {
        bins[i].n_above += bins[i + 1].n_above;
        bins[i].sum_above += bins[i + 1].sum_above;
    }
    double squares = 0.0;
    for (uint32_t i = 1; i <= N_LIMITS; i++) {
        squares += bins[i - 1].squares_below;
        limits[i - 1] = (struct limit){i * step, bins[i].n_above, bins[i].sum_above, squares};
    }
}

/* The base and slope for |e_c| <= h that are best for |e| = typical. */
static void choose_limit(struct tn_bound_terms *out, const struct limit limits[N_LIMITS], double h,
                         double typical)
{
    double best = INFINITY;
    for (uint32_t i = 0; i < N_LIMITS && h > 0.0 && limits[i].t > 0.0; i++) {
        const struct limit *l = &limits[i];
        double base = h * (l->sum_above - 0.5 * l->t * l->n_above) +
                      h * l->squares_below / (2.0 * l->t);
        double slope = l->t / (2.0 * h);
        if (base + slope * typical * typical < best) {
            best = base + slope * typical * typical;
            out->base = base;
            out->slope = slope;
        }
    }
}

static void prepare_terms(struct tn_head_search *s, const struct rounding *x)
{
    const struct tn_bit_planes *w = s->w;
    const double bias = tn_bit_planes_max(w->n_planes) + 1;
    struct limit limits[N_LIMITS];
    sort_into_limits(limits, s, x->norm_x);
    double offset = 0.0;
    for (uint32_t c = 0; c < w->cols; c++)
        offset += (double)w->offsets[c] * (double)s->x[c];
    for (uint32_t stage = 0; stage < w->n_planes; stage++)
        for (uint32_t form = 0; form < TN_HEAD_FORMS; form++) {
            struct tn_bound_terms *terms = &s->terms[stage][form];
            const double one = 1u << (form & TERN_PLANE_SHIFT), all = 1u << open_bits(w, stage);
            const double middle = TN_MAX(all - one, 0.0) * 0.5;
            *terms = (struct tn_bound_terms){
                .norm_x = x->norm_x,
                .lost = x->lost,
                .slack = x->slack,
                .factor = x->unit / one,
                .add = x->unit / one * (middle - bias) * x->sum_x16 +
                       (form & TERN_PLANE_CENTRED ? offset : 0.0),
            };
            /* The |e| of uniformly distributed bits: the variance of multiples of `one` below
             * `all`. */
            const double variance = TN_MAX(all * all - one * one, 0.0) / 12.0;
            choose_limit(terms, limits, middle / one, sqrt(variance * w->cols) / one);
        }
}

/* Rows from `row` on, with the bits that stage `stage` has read. */
static struct tn_bound_rows rows_from(const struct tn_bit_planes *w, uint32_t stage, uint32_t row)
{
    return (struct tn_bound_rows){
        .scales = w->scales + row,
        .norms = w->norms + row,
        .open = stage + 1 < w->n_planes ? w->open + (size_t)stage * w->rows + row : NULL,
    };
}

static uint32_t form_of(const struct tn_bit_planes *w, uint32_t row)
{
    return w->forms[row] % TN_HEAD_FORMS;
}

void tn_head_bounds(const struct tn_head_search *s, uint32_t stage, uint32_t row, double sum,
                    float *low, float *high)
{
    const struct tn_bound_rows r = rows_from(s->w, stage, row);
    tn_bound_logit(low, high, sum, (double)r.scales[0], (double)r.norms[0],
                   r.open ? (double)r.open[0] : 0.0, &s->terms[stage][form_of(s->w, row)]);
}

/* The end of the run of rows with the form of row `begin`, at most `end`. */
static uint32_t form_end(const struct tn_bit_planes *w, uint32_t begin, uint32_t end)
{
    const uint8_t *forms = w->forms;
    if (memcmp(forms + begin, forms + begin + 1, end - begin - 1) == 0) /* the usual case */
        return end;
    uint32_t i = begin + 1;
    while (i < end && forms[i] == forms[begin]) /* tests `end`, because forms are in the mapped file
                                                 * and may change */
        i++;
    return i;
}

/* Bounds of the n rows from `begin` on. */
static void bound_rows(const struct tn_head_search *s, uint32_t stage, uint32_t begin, uint32_t n,
                       float *low, float *high)
{
    for (uint32_t r = begin, end; r < begin + n; r = end) {
        end = form_end(s->w, r, begin + n);
        const struct tn_bound_rows rows = rows_from(s->w, stage, r);
        s->kernels->bound_logits(low + (r - begin), high + (r - begin), s->sums + r, end - r, &rows,
                                 &s->terms[stage][form_of(s->w, r)]);
    }
}

/* ---- items ---- */

static uint32_t n_items(const struct tn_head_search *s)
{
    return tn_div_ceil_u32(s->n_allowed, TN_HEAD_ITEM_ROWS);
}

static uint32_t n_groups(const struct tn_head_search *s)
{
    return tn_div_ceil_u32(s->n_allowed, TN_HEAD_GROUP_ROWS);
}

bool tn_head_search_begin(struct tn_head_search *s)
{
    struct rounding x;
    s->threshold = -INFINITY;
    memset(s->n_rows, 0, sizeof s->n_rows);
    for (uint32_t r = s->n_allowed; r < s->w->rows; r++)
        s->logits[r] = -INFINITY;
    if (s->n_best <= TN_HEAD_MAX_BEST && s->n_best <= n_groups(s) && round_x(&x, s)) {
        prepare_terms(s, &x);
        return true;
    }
    for (uint32_t r = 0; r < s->n_allowed; r++)
        s->logits[r] = INFINITY;
    for (uint32_t i = 0; i < n_items(s); i++)
        s->counts[i].n_alive = TN_HEAD_ITEM_ROWS;
    return false;
}

/* Rows that are examined one by one only if one of them is alive. */
#define LOOK_ROWS 32u

/* The rows of an item that are still alive, relative to `begin`, except those without open bits;
 * dead ones become minus infinity.  open NULL: all rows that are alive. */
static uint32_t survivors(const struct tn_head_search *s, uint32_t begin, uint32_t end,
                          const float *open, uint32_t rows[TN_HEAD_ITEM_ROWS], uint32_t *n_alive)
{
    const float threshold = s->threshold;
    uint32_t n = 0;
    *n_alive = 0;
    for (uint32_t look = begin; look < end; look += LOOK_ROWS) {
        const uint32_t look_end = TN_MIN(look + LOOK_ROWS, end);
        const bool all_dead = s->kernels->max_f32(s->logits + look, look_end - look) < threshold;
        for (uint32_t r = look; r < look_end && all_dead; r++)
            s->logits[r] = -INFINITY;
        for (uint32_t r = look; r < look_end && !all_dead; r++) { /* no branches: they would be
                                                                   * unpredictable */
            const bool is_alive = s->logits[r] >= threshold;
            const bool is_open = !open || open[r] > 0.0f;
            rows[n] = r - begin;
            n += is_alive & is_open;
            *n_alive += is_alive;
            s->logits[r] = is_alive ? s->logits[r] : -INFINITY;
        }
    }
    return n;
}

static bool counts(const struct tn_head_search *s, uint32_t row)
{
    return !s->bits || s->bits[row / 64] >> row % 64 & 1;
}

/* The index of the first entry of `always` that is at least row. */
static uint32_t first_always(const struct tn_head_search *s, uint32_t row)
{
    uint32_t i = 0;
    while (i < s->n_always && s->always[i] < row)
        i++;
    return i;
}

/* Whether row is in `always`, for ascending rows; *i starts as first_always of the first row. */
static bool is_always(const struct tn_head_search *s, uint32_t row, uint32_t *i)
{
    while (*i < s->n_always && s->always[*i] < row)
        ++*i;
    return *i < s->n_always && s->always[*i] == row;
}

/* The kernel for codes of `bits` bits. */
static tn_dot_plane_fn *dot_plane_of(const struct tn_head_search *s, uint32_t bits)
{
    const struct tn_kernels *k = s->kernels;
    switch (bits) {
    case 5:
        return k->dot_u5_i16;
    case 4:
        return k->dot_u4_i16;
    case 2:
        return k->dot_u2_i16;
    default:
        return k->dot_u1_i16;
    }
}

/* Searches that read the first planes together. */
struct search_group {
    struct tn_head_search *const *s; /* [n] the same matrix, n_first and n_allowed */
    const int16_t *x16[TN_PLANE_MAX_X];
    uint32_t n; /* 1 ... TN_PLANE_MAX_X */
};

/* Planes that stage 0 reads together with plane i_plane. */
static uint32_t n_with(const struct tn_head_search *s, uint32_t i_plane)
{
    return i_plane == 0 && s->n_first > 1 ? 2 : 1;
}

/* Adds the sums of the planes that are read with i_plane, for the n rows of the block at `begin`.
 * Prefetches the next plane, then the next block, unless another thread has taken that. */
static void read_planes(const struct search_group *g, uint32_t i_plane, uint32_t begin, uint32_t n,
                        void *scratch)
{
    const struct tn_head_search *s = g->s[0];
    const uint32_t n_planes = n_with(s, i_plane);
    const bool is_last = i_plane + n_planes == s->n_first;
    const uint32_t next_row = is_last ? begin + TERN_PLANE_BLOCK_ROWS : begin;
    const uint32_t next = is_last ? 0 : i_plane + n_planes;
    struct tn_plane_rows rows = {.n_rows = n, .cols = s->w->cols};
    uint32_t bits = 0;
    for (uint32_t k = 0; k < n_planes; k++) {
        bits += tn_plane_bits(i_plane + k);
        rows.plane[k] = tn_bit_planes_block(s->w, begin, i_plane + k);
        if (next_row < s->n_allowed && k < n_with(s, next))
            rows.next[k] = tn_bit_planes_block(s->w, next_row, next + k);
    }
    const double weight = (double)(1u << open_bits(s->w, i_plane + n_planes - 1));
    int32_t dots[TN_PLANE_MAX_X][TN_HEAD_ITEM_ROWS];
    dot_plane_of(s, bits)(dots[0], TN_HEAD_ITEM_ROWS, &rows, g->x16, g->n, scratch);
    for (uint32_t t = 0; t < g->n; t++)
        s->kernels->add_i32_f64(g->s[t]->sums + begin, dots[t], n, weight);
}

/* Turns the sums of the first planes of the n rows at `begin` into bounds. */
static void bound_first(struct tn_head_search *s, uint32_t begin, uint32_t n)
{
    float low[TN_HEAD_ITEM_ROWS];
    bound_rows(s, s->n_first - 1, begin, n, low, s->logits + begin);
    for (uint32_t i = first_always(s, begin); i < s->n_always && s->always[i] < begin + n; i++)
        low[s->always[i] - begin] = -INFINITY;
    for (uint32_t i = 0; i < n && s->bits; i++)
        if (!counts(s, begin + i))
            low[i] = s->logits[begin + i] = -INFINITY;
    for (uint32_t g = 0; g < n; g += TN_HEAD_GROUP_ROWS)
        s->group_best[(begin + g) / TN_HEAD_GROUP_ROWS] =
            s->kernels->max_f32(low + g, TN_MIN(TN_HEAD_GROUP_ROWS, n - g));
}

/* Reads the first planes of the n rows of the block at `begin`. */
static void read_first(struct search_group *g, uint32_t begin, uint32_t n, void *scratch)
{
    for (uint32_t t = 0; t < g->n; t++) {
        g->x16[t] = g->s[t]->x16;
        memset(g->s[t]->sums + begin, 0, n * sizeof(double));
    }
    for (uint32_t i = 0; i < g->s[0]->n_first; i += n_with(g->s[0], i))
        read_planes(g, i, begin, n, scratch);
    for (uint32_t t = 0; t < g->n; t++)
        bound_first(g->s[t], begin, n);
}

/* Reads one more plane of n rows of the block at `begin`; rows are relative to the block. */
static void read_more(struct tn_head_search *s, uint32_t stage, uint32_t begin, uint32_t n,
                      const uint32_t *rows, void *scratch)
{
    int32_t dots[TN_HEAD_ITEM_ROWS];
    const struct tn_plane_rows p = {.plane = {tn_bit_planes_block(s->w, begin, stage)},
                                    .rows = rows, .n_rows = n, .cols = s->w->cols};
    const int16_t *x = s->x16;
    dot_plane_of(s, tn_plane_bits(stage))(dots, n, &p, &x, 1, scratch);
    const double weight = (double)(1u << open_bits(s->w, stage));
    uint32_t i_always = first_always(s, begin);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t r = begin + rows[i];
        float *best = &s->group_best[r / TN_HEAD_GROUP_ROWS], low;
        s->sums[r] += weight * (double)dots[i];
        tn_head_bounds(s, stage, r, s->sums[r], &low, &s->logits[r]);
        const bool is_left_out = is_always(s, r, &i_always) || !counts(s, r);
        *best = is_left_out ? *best : TN_MAX(low, *best);
    }
}

/* ---- exact logits ---- */

/* The rows are far apart in memory: prefetches all of them before the first is used. */
static void prefetch_rows(const struct tn_bit_planes *w, uint32_t begin, const uint32_t *rows,
                          uint32_t n)
{
    for (uint32_t k = 0; k < TN_MIN(n, TN_HEAD_UNPACK_ROWS); k++)
        for (uint32_t i = 0; i < w->n_planes; i++) {
            const uint8_t *row = tn_bit_planes_row(w, begin + rows[k], i);
            for (size_t at = 0; at < tn_plane_row(w->cols, i); at += 64)
                TN_PREFETCH(row + at);
        }
}

void tn_head_score(const struct tn_head_search *s, uint32_t begin, const uint32_t *rows, uint32_t n,
                   int8_t *unpacked)
{
    const struct tn_bit_planes *w = s->w;
    float scales[TN_HEAD_UNPACK_ROWS], logits[TN_HEAD_UNPACK_ROWS];
    prefetch_rows(w, begin, rows, n);
    while (n > 0) {
        const uint32_t m = TN_MIN(n, TN_HEAD_UNPACK_ROWS);
        prefetch_rows(w, begin, rows + m, n - m);
        for (uint32_t k = 0; k < m; k++) {
            s->kernels->unpack_planes(unpacked + (size_t)k * w->cols, w, begin + rows[k]);
            scales[k] = w->scales[begin + rows[k]];
        }
        s->kernels->gemv_q8_f32(logits, m, unpacked, scales, m, w->cols, s->x, w->cols, 1);
        for (uint32_t k = 0; k < m; k++)
            s->logits[begin + rows[k]] = logits[k];
        rows += m;
        n -= m;
    }
}

/* ---- stages ---- */

/* Stage 0 for one item. */
static void first_item(struct search_group *g, uint32_t i_item, void *scratch)
{
    const uint32_t begin = i_item * TN_HEAD_ITEM_ROWS, n_allowed = g->s[0]->n_allowed;
    if (begin >= n_allowed)
        return;
    const uint32_t n = TN_MIN(TN_HEAD_ITEM_ROWS, n_allowed - begin);
    for (uint32_t t = 0; t < g->n; t++)
        g->s[t]->counts[i_item] = (struct tn_head_count){n, n};
    read_first(g, begin, n, scratch);
}

/* A later stage for one item. */
static void later_item(struct tn_head_search *s, uint32_t stage, uint32_t i_item,
                       const struct tn_head_scratch *scratch)
{
    uint32_t begin = i_item * TN_HEAD_ITEM_ROWS;
    uint32_t end = TN_MIN(begin + TN_HEAD_ITEM_ROWS, s->n_allowed);
    uint32_t rows[TN_HEAD_ITEM_ROWS];
    struct tn_head_count *count = &s->counts[i_item];
    bool is_last = stage == s->w->n_planes;
    if (begin >= end)
        return;
    count->n_read = 0;
    for (uint32_t i = first_always(s, begin);
         is_last && i < s->n_always && s->always[i] < end; i++) {
        s->logits[s->always[i]] = INFINITY;
        count->n_alive++;
    }
    if (count->n_alive == 0)
        return;
    const float *open = is_last ? NULL : s->w->open + (size_t)(stage - 1) * s->w->rows;
    count->n_read = survivors(s, begin, end, open, rows, &count->n_alive);
    if (is_last)
        tn_head_score(s, begin, rows, count->n_read, scratch->unpacked);
    else if (count->n_read > 0)
        read_more(s, stage, begin, count->n_read, rows, scratch->kernel);
}

void tn_head_search_items(struct tn_head_search *const *s, uint32_t n, uint32_t stage,
                          uint32_t i_item, const struct tn_head_scratch *scratch)
{
    for (uint32_t i = 0; i < n && stage > 0; i++)
        later_item(s[i], stage, i_item, scratch);
    for (uint32_t i = 0; i < n && stage == 0;) {
        struct search_group g = {.s = s + i};
        while (g.n < TN_PLANE_MAX_X && i < n && s[i]->n_allowed == g.s[0]->n_allowed) {
            g.n++;
            i++;
        }
        first_item(&g, i_item, scratch->kernel);
    }
}

/* ---- the threshold ---- */

/* The n_best-th largest of the groups' best lower bounds: at least n_best rows are not below it. */
static float nth_best(const struct tn_head_search *s)
{
    float top[TN_HEAD_MAX_BEST]; /* descending */
    uint32_t n = 0;
    for (uint32_t g = 0; g < n_groups(s); g++) {
        float v = s->group_best[g];
        if (n == s->n_best && v <= top[n - 1])
            continue;
        uint32_t i = n < s->n_best ? n++ : n - 1;
        for (; i > 0 && top[i - 1] < v; i--)
            top[i] = top[i - 1];
        top[i] = v;
    }
    return top[s->n_best - 1];
}

/* The row of a group with the largest upper bound, among the rows that count and are not in
 * `always`; n_allowed: none. */
static uint32_t most_promising(const struct tn_head_search *s, uint32_t group)
{
    const uint32_t begin = group * TN_HEAD_GROUP_ROWS;
    const uint32_t end = TN_MIN(begin + TN_HEAD_GROUP_ROWS, s->n_allowed);
    uint32_t best = s->n_allowed, i_always = first_always(s, begin);
    for (uint32_t r = begin; r < end; r++)
        if (!is_always(s, r, &i_always) && counts(s, r) &&
            (best == s->n_allowed || s->logits[r] > s->logits[best]))
            best = r;
    return best;
}

/* Replaces a lower bound in each of the n_best best groups by an exact logit: few rows, which raise
 * the threshold by about the width of a bound, and so rule out most others. */
static void score_leaders(struct tn_head_search *s, float threshold, int8_t *unpacked)
{
    uint32_t rows[TN_HEAD_MAX_BEST] = {0}, n = 0;
    for (uint32_t g = 0; g < n_groups(s) && n < s->n_best; g++) {
        const uint32_t r = s->group_best[g] >= threshold ? most_promising(s, g) : s->n_allowed;
        if (r < s->n_allowed)
            rows[n++] = r;
    }
    tn_head_score(s, 0, rows, n, unpacked);
    for (uint32_t i = 0; i < n; i++) {
        float *best = &s->group_best[rows[i] / TN_HEAD_GROUP_ROWS];
        *best = TN_MAX(s->logits[rows[i]], *best);
    }
    s->n_rows[s->w->n_planes] += n;
}

void tn_head_search_end(struct tn_head_search *s, uint32_t stage, int8_t *unpacked)
{
    for (uint32_t i = 0; i < n_items(s); i++)
        s->n_rows[stage] += s->counts[i].n_read;
    for (uint32_t plane = 1; stage == 0 && plane < s->n_first; plane++)
        s->n_rows[plane] = s->n_rows[0];
    if (stage < s->w->n_planes) {
        score_leaders(s, nth_best(s), unpacked);
        s->threshold = TN_MAX(s->threshold, nth_best(s));
    }
}

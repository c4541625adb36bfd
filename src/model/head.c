/* SPDX-License-Identifier: MIT
 *
 * The search for the best rows of a head in planes.
 */
#include "model/head.h"

#include <math.h>
#include <string.h>

static bool round_x(struct tn_head_search *s)
{
    const uint32_t cols = s->w->cols;
    double largest = 0.0, squares = 0.0, lost = 0.0;
    for (uint32_t c = 0; c < cols; c++) {
        largest = TN_MAX(largest, fabs((double)s->x[c]));
        squares += (double)s->x[c] * (double)s->x[c];
    }
    s->norm_x = sqrt(squares);
    if (!(s->norm_x < 1e30)) /* infinities and NaN too */
        return false;
    /* 15 * limit * cols < 2^31: the sums of u4 fit into int32. */
    double limit = (double)TN_MIN(TN_PLANE_X_MAX, 0x7FFFFFFFu / (15u * cols));
    s->unit = largest > 0.0 ? largest / limit : 1.0;
    s->sum_x16 = 0.0;
    memset(s->x16, 0, tn_plane_row_bytes(cols, 8) * sizeof s->x16[0]);
    for (uint32_t c = 0; c < cols; c++) {
        double v = ((double)s->x[c] / s->unit + 0x1.8p52) - 0x1.8p52; /* to the nearest integer */
        v = TN_MAX(-limit, TN_MIN(limit, v));
        double d = (double)s->x[c] - v * s->unit;
        s->x16[c] = (int16_t)v;
        s->sum_x16 += v;
        lost += d * d;
    }
    double root = sqrt((double)cols);
    double rounding = (cols / 16.0 + 16.0) * 0x1p-24;
    double most = tn_planes_max(s->w->n_planes) + 1;
    s->slack = most * root * sqrt(lost) + most * root * s->norm_x * rounding;
    return true;
}

static uint32_t n_items(const struct tn_head_search *s)
{
    return (s->n_allowed + TN_HEAD_ITEM_ROWS - 1) / TN_HEAD_ITEM_ROWS;
}

static uint32_t n_groups(const struct tn_head_search *s)
{
    return (s->n_allowed + TN_HEAD_GROUP_ROWS - 1) / TN_HEAD_GROUP_ROWS;
}

bool tn_head_search_begin(struct tn_head_search *s)
{
    s->threshold = -INFINITY;
    memset(s->n_rows, 0, sizeof s->n_rows);
    for (uint32_t r = 0; r < s->w->rows; r++)
        s->logits[r] = r < s->n_allowed ? INFINITY : -INFINITY;
    return s->n_best <= TN_HEAD_MAX_BEST && s->n_best <= n_groups(s) && round_x(s);
}

/* Bits that a stage has not read. */
static uint32_t open_bits(const struct tn_planes *w, uint32_t stage)
{
    return 2 * (w->n_planes - 1 - stage);
}

/* What the bounds of a stage have in common. */
struct stage_terms {
    double unit, norm_x, slack;
    double shift;        /* of a sum: the middle of the open bits less the bias, times the sum of x16 */
    const float *scales; /* [rows] */
    const float *open;   /* [rows] norms of what is open; NULL: nothing */
};

static struct stage_terms terms_of(const struct tn_head_search *s, uint32_t stage)
{
    const struct tn_planes *w = s->w;
    double middle = ((1 << open_bits(w, stage)) - 1) * 0.5;
    double bias = tn_planes_max(w->n_planes) + 1;
    bool is_whole = stage + 1 == w->n_planes;
    return (struct stage_terms){
        .unit = s->unit,
        .norm_x = s->norm_x,
        .slack = s->slack,
        .shift = (middle - bias) * s->sum_x16,
        .scales = w->scales,
        .open = is_whole ? NULL : w->scales + (size_t)(stage + 1) * w->rows,
    };
}

static inline void bound_row(const struct stage_terms *t, uint32_t row, double sum, float *low,
                             float *high)
{
    double scale = (double)t->scales[row];
    double open = t->open ? (double)t->open[row] : 0.0;
    double estimate = t->unit * (sum + t->shift) * scale;
    double wide = fabs(scale) * (open * t->norm_x + t->slack);
    double around = (fabs(estimate) + wide) * 1e-6 + 1e-37;
    *low = (float)(estimate - wide - around);
    *high = (float)(estimate + wide + around);
}

void tn_head_bounds(const struct tn_head_search *s, uint32_t stage, uint32_t row, double sum,
                    float *low, float *high)
{
    struct stage_terms terms = terms_of(s, stage);
    bound_row(&terms, row, sum, low, high);
}

/* The rows of an item that are still alive, counted from `begin`; the others become minus
 * infinity. */
static uint32_t survivors(const struct tn_head_search *s, uint32_t begin, uint32_t end,
                          uint32_t rows[TN_HEAD_ITEM_ROWS])
{
    uint32_t n = 0;
    for (uint32_t r = begin; r < end; r++) { /* without branches: nobody can predict them */
        bool is_alive = s->logits[r] >= s->threshold;
        rows[n] = r - begin;
        n += is_alive;
        s->logits[r] = is_alive ? s->logits[r] : -INFINITY;
    }
    return n;
}

/* First of `always` at or behind row. */
static uint32_t first_always(const struct tn_head_search *s, uint32_t row)
{
    uint32_t i = 0;
    while (i < s->n_always && s->always[i] < row)
        i++;
    return i;
}

/* The best lower bound of each group, `always` left out. */
static void raise_group_best(struct tn_head_search *s, uint32_t begin, uint32_t n,
                             const uint32_t *rows, const float *low)
{
    uint32_t i_always = first_always(s, begin);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = begin + rows[i];
        while (i_always < s->n_always && s->always[i_always] < r)
            i_always++;
        float *best = &s->group_best[r / TN_HEAD_GROUP_ROWS];
        if (low[i] > *best && !(i_always < s->n_always && s->always[i_always] == r))
            *best = low[i];
    }
}

/* Reads one more plane of n rows of the block at `begin`; rows are numbers inside the block. */
static void narrow(struct tn_head_search *s, uint32_t stage, uint32_t begin, uint32_t n,
                   const uint32_t *rows)
{
    const struct tn_planes *w = s->w;
    const uint8_t *plane = tn_planes_block(w, begin, stage);
    int32_t dots[TN_HEAD_ITEM_ROWS];
    if (stage == 0)
        s->kernels->dot_u4_i16(dots, plane, NULL, n, w->cols, s->x16);
    else
        s->kernels->dot_u2_i16(dots, plane, rows, n, w->cols, s->x16);
    struct stage_terms terms = terms_of(s, stage);
    double weight = (double)(1u << open_bits(w, stage));
    float low[TN_HEAD_ITEM_ROWS];
    if (stage == 0) {
        /* All rows of the block, side by side: a loop that the compiler makes vectors of. */
        for (uint32_t i = 0; i < n; i++) {
            s->sums[begin + i] = weight * (double)dots[i];
            bound_row(&terms, begin + i, s->sums[begin + i], &low[i], &s->logits[begin + i]);
        }
    } else {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t r = begin + rows[i];
            s->sums[r] += weight * (double)dots[i];
            bound_row(&terms, r, s->sums[r], &low[i], &s->logits[r]);
        }
    }
    raise_group_best(s, begin, n, rows, low);
}

static void score(const struct tn_head_search *s, uint32_t r, int8_t *row)
{
    tn_planes_unpack_row(row, s->w, r);
    s->kernels->gemv_q8_f32(&s->logits[r], 1, row, &s->w->scales[r], 1, s->w->cols, s->x,
                            s->w->cols, 1);
}

void tn_head_search_item(struct tn_head_search *s, uint32_t stage, uint32_t i_item, int8_t *row)
{
    uint32_t begin = i_item * TN_HEAD_ITEM_ROWS;
    uint32_t end = TN_MIN(begin + TN_HEAD_ITEM_ROWS, s->n_allowed);
    uint32_t rows[TN_HEAD_ITEM_ROWS];
    uint32_t n = survivors(s, begin, end, rows);
    s->n_read[i_item] = n;
    if (stage < s->w->n_planes) {
        for (uint32_t r = begin; r < end; r += TN_HEAD_GROUP_ROWS)
            s->group_best[r / TN_HEAD_GROUP_ROWS] = -INFINITY;
        narrow(s, stage, begin, n, rows);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        score(s, begin + rows[i], row);
    for (uint32_t i = first_always(s, begin); i < s->n_always && s->always[i] < end; i++)
        score(s, s->always[i], row);
}

/* The n_best-th largest of the groups' best: at least n_best rows are not below it. */
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

void tn_head_search_end(struct tn_head_search *s, uint32_t stage)
{
    for (uint32_t i = 0; i < n_items(s); i++)
        s->n_rows[stage] += s->n_read[i];
    if (stage < s->w->n_planes) {
        float best = nth_best(s);
        s->threshold = TN_MAX(s->threshold, best);
    }
}

/* SPDX-License-Identifier: MIT
 *
 * Decides whether a matrix of floats is ternary.  Counts units of some columns that are ternary,
 * that would be except for a few weights, and that are not; units of zeros are ignored.  If all
 * are, so is the matrix.  If most are not, it is dense, and its values are kept.  Anything between
 * is a damaged or rounded ternary matrix, which must not become a dense one: it is refused.
 *
 * Scales come in tiles: one for the matrix, one per row (or per block of rows, or per shard of a
 * tensor-parallel training), or one per group of columns.  The widest tiling that fits all rows is
 * kept.
 */
#include "convert/survey.h"

#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/half.h"
#include "convert/ternarise.h"
#include "convert/trits.h"
#include "kern/pack.h"

#define FINE_UNIT 16u /* columns; dense weights never share one magnitude over that many */

/* ---- tilings ---- */

static void try_group(struct tn_scale_survey *s, uint32_t width)
{
    if (width == 0 || width >= s->cols || width % 64 || width % s->unit ||
        s->n_groups == TN_SURVEY_MAX_GROUPS)
        return;
    uint32_t at = 0;
    while (at < s->n_groups && s->groups[at] > width)
        at++;
    if (at < s->n_groups && s->groups[at] == width)
        return;
    memmove(s->groups + at + 1, s->groups + at, (s->n_groups - at) * sizeof *s->groups);
    s->groups[at] = width;
    s->n_groups++;
}

void tn_scale_survey_init(struct tn_scale_survey *out, uint32_t cols, uint32_t unit)
{
    *out = (struct tn_scale_survey){.cols = cols,
                                    .unit = unit,
                                    .n_units = tn_div_ceil_u32(cols, unit),
                                    .is_one = true,
                                    .row_fits = true,
                                    .are_f16 = true};
    for (uint32_t width = 64; width < cols && width <= 4096; width *= 2)
        try_group(out, width);
    for (uint32_t n_shards = 2; n_shards <= 8; n_shards++) /* of models trained in parallel */
        if (cols % n_shards == 0)
            try_group(out, cols / n_shards);
    for (uint32_t i = 0; i < out->n_groups; i++)
        out->group_fits[i] = true;
}

/* Whether the units [0, n) share a scale.  0 is compatible with any. */
static bool is_constant(const float *scales, uint32_t n)
{
    float value = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (scales[i] == 0)
            continue;
        if (value != 0 && scales[i] != value)
            return false;
        value = scales[i];
    }
    return true;
}

static bool groups_fit(const struct tn_scale_survey *s, const float *scales, uint32_t width)
{
    const uint32_t n = width / s->unit;
    if (n == 1)
        return true;
    for (uint32_t u = 0; u < s->n_units; u += n)
        if (!is_constant(scales + u, TN_MIN(n, s->n_units - u)))
            return false;
    return true;
}

static bool is_f16(float value)
{
    const uint32_t bits = tn_f32_to_bits(value);
    /* 2^-14 to 65504 with 10 bits after the point: the usual case. */
    if ((bits & 0x1FFFu) == 0 && bits >= 0x38800000u && bits < 0x47800000u)
        return true;
    return tn_f16_to_f32(tn_f32_to_f16(value)) == value;
}

void tn_scale_survey_row(struct tn_scale_survey *s, const float *scales)
{
    for (uint32_t u = 0; u < s->n_units; u++) {
        if (scales[u] == 0)
            continue;
        s->value = s->has_value ? s->value : scales[u];
        s->has_value = true;
        s->is_one = s->is_one && scales[u] == s->value;
        s->are_f16 = s->are_f16 && is_f16(scales[u]);
    }
    s->row_fits = s->row_fits && is_constant(scales, s->n_units);
    for (uint32_t i = 0; i < s->n_groups; i++)
        s->group_fits[i] = s->group_fits[i] && groups_fit(s, scales, s->groups[i]);
}

bool tn_scale_survey_result(struct tn_scale_facts *out, const struct tn_scale_survey *s)
{
    *out = (struct tn_scale_facts){.is_one = s->is_one,
                                   .value = s->has_value ? s->value : 1.0f,
                                   .group = s->row_fits ? s->cols : 0,
                                   .are_f16 = s->are_f16};
    for (uint32_t i = 0; i < s->n_groups && out->group == 0; i++)
        if (s->group_fits[i])
            out->group = s->groups[i];
    return out->group != 0;
}

/* ---- one tensor ---- */

struct outcome {
    struct tn_distance worst; /* value 0: ternary */
    bool has_tiles;
    bool is_dense;
};

static bool is_dense(const struct tn_trit_reader *r)
{
    return r->n_far > r->n_exact + r->n_near;
}

/* stops_early: at the first weight that is not ternary; else once most are not. */
static tern_status survey_rows(struct tn_trit_reader *r, struct tn_scale_survey *survey,
                               bool stops_early, struct tern_error *err)
{
    const struct tern_file_tensor *f = &r->tensor->file;
    const uint32_t n_step = TN_MIN(TN_PACK_ROWS, f->rows);
    const bool has_codes = r->tensor->kind == TN_TENSOR_CODED;
    int8_t *trits = tn_stream_take(&r->stream->trits, (size_t)n_step * f->cols, err);
    float *scales =
        tn_stream_take(&r->stream->scales, (size_t)n_step * r->n_units * sizeof *scales, err);
    if (!trits || !scales)
        return TERN_MEMORY;
    for (uint32_t row = 0; row < f->rows; row += n_step) {
        const uint32_t n = TN_MIN(n_step, f->rows - row);
        /* Codes are trits; no tiling depends on the order of rows. */
        tern_status status = has_codes ? tn_trit_reader_scales(r, scales, row, n, err)
                                       : tn_trit_reader_rows(r, trits, scales, row, n, err);
        if (status != TERN_OK)
            return status;
        if (stops_early ? r->worst.value > 0 : is_dense(r))
            return TERN_OK;
        for (uint32_t i = 0; i < n; i++)
            tn_scale_survey_row(survey, scales + (size_t)i * r->n_units);
    }
    return TERN_OK;
}

static tern_status survey_tensor(struct outcome *out, struct tn_streamer *stream,
                                 struct tn_tensor_plan_row *t, bool stops_early,
                                 struct tern_error *err)
{
    struct tn_trit_reader reader;
    struct tn_scale_survey survey;
    *out = (struct outcome){.has_tiles = true};
    tern_status status = tn_trit_reader_init(&reader, stream, t, err);
    if (status != TERN_OK)
        return status;
    tn_scale_survey_init(&survey, t->file.cols, reader.unit);
    status = survey_rows(&reader, &survey, stops_early, err);
    out->worst = reader.worst;
    out->is_dense = is_dense(&reader);
    t->is_zero = t->kind == TN_TENSOR_EXACT && !survey.has_value && out->worst.value == 0;
    if (status == TERN_OK && out->worst.value == 0)
        out->has_tiles = tn_scale_survey_result(&t->scales, &survey);
    tn_trit_reader_fini(&reader);
    return status;
}

/* A table becomes ternary if its floats are. */
static tern_status survey_table(struct tn_streamer *stream, struct tn_tensor_plan_row *t,
                                struct tern_error *err)
{
    struct outcome outcome;
    t->kind = TN_TENSOR_EXACT;
    tern_status status = survey_tensor(&outcome, stream, t, true, err);
    if (outcome.worst.value > 0 || !outcome.has_tiles)
        t->kind = TN_TENSOR_TABLE;
    return status;
}

/* ---- a head next to tied embeddings ---- */

/* n rows of plain floats from `row` on. */
static tern_status read_floats(float **out, struct tn_stream_buffer *buffer, struct tn_streamer *s,
                               const struct tn_source_tensor *t, uint32_t row, uint32_t n,
                               uint32_t cols, struct tern_error *err)
{
    const size_t row_bytes = cols * tn_source_float_bytes(t);
    void *raw = tn_stream_take(&s->raw, n * row_bytes, err);
    *out = tn_stream_take(buffer, (size_t)n * cols * sizeof **out, err);
    if (!raw || !*out)
        return TERN_MEMORY;
    tern_status status = tn_stream_read(s, t, row * (uint64_t)row_bytes, raw, n * row_bytes, err);
    if (status == TERN_OK)
        tn_floats_load(*out, t->dtype, raw, (size_t)n * cols);
    return status;
}

/* transformers ignores such a head before version 5 and uses it from then on: if its numbers differ
 * from the embeddings, one folder contains two models. */
static tern_status check_twin(struct tn_streamer *s, const struct tn_tensor_plan *plan,
                              struct tern_error *err)
{
    const struct tn_tensor_plan_row *embed = tn_tensor_plan_embed(plan);
    const uint32_t rows = embed->file.rows, cols = embed->file.cols;
    for (uint32_t row = 0; row < rows; row += TN_PACK_ROWS) {
        const uint32_t n = TN_MIN(TN_PACK_ROWS, rows - row);
        float *table, *head;
        tern_status status = read_floats(&table, &s->floats, s, embed->weight, row, n, cols, err);
        if (status == TERN_OK)
            status = read_floats(&head, &s->scales, s, plan->twin, row, n, cols, err);
        if (status != TERN_OK)
            return status;
        for (size_t i = 0; i < (size_t)n * cols; i++)
            if (table[i] != head[i])
                return tn_fail(err, TERN_INPUT,
                               "tensor \"%s\" is %g at row %u, column %u, the embedding %g, but "
                               "config.json ties them; \"tie_word_embeddings\": false makes it the "
                               "head",
                               plan->twin->name, (double)head[i], row + (uint32_t)(i / cols),
                               (uint32_t)(i % cols), (double)table[i]);
    }
    return TERN_OK;
}

/* ---- the model ---- */

static bool needs_reading(const struct tn_tensor_plan_row *t)
{
    return tn_tensor_is_ternary(t) && !tn_trit_scale_is_stated(t);
}

uint64_t tn_survey_cost(const struct tn_tensor_plan *plan)
{
    uint64_t n = plan->twin ? plan->twin->bytes + tn_tensor_plan_embed(plan)->weight->bytes : 0;
    for (uint32_t i = 0; i < plan->n_tensors; i++)
        n += needs_reading(&plan->tensors[i]) ? tn_trit_reader_cost(&plan->tensors[i]) : 0;
    return n;
}

static tern_status fail_tiles(const struct tn_tensor_plan_row *t, struct tern_error *err)
{
    return tn_fail(err, TERN_UNSUPPORTED,
                   "tensor \"%s\": its scales change at columns that are not a multiple of 64; "
                   "tern has one scale for 64 columns or more",
                   t->weight->name);
}

/* For floats that are not ternary in tiles of 64 columns: whether they are in smaller ones. */
static tern_status has_finer_tiles(bool *out, struct tn_streamer *stream,
                                   const struct tn_tensor_plan_row *t, struct tern_error *err)
{
    struct tn_trit_reader reader;
    struct tn_scale_survey survey;
    *out = false;
    if (t->kind != TN_TENSOR_EXACT || t->file.cols % FINE_UNIT)
        return TERN_OK;
    tern_status status = tn_trit_reader_init(&reader, stream, t, err);
    if (status != TERN_OK)
        return status;
    reader.unit = FINE_UNIT;
    reader.n_units = t->file.cols / FINE_UNIT;
    tn_scale_survey_init(&survey, t->file.cols, FINE_UNIT);
    status = survey_rows(&reader, &survey, true, err);
    *out = status == TERN_OK && reader.worst.value == 0;
    tn_trit_reader_fini(&reader);
    return status;
}

/* A tensor that prevents the conversion, and its worst weight. */
struct offender {
    const struct tn_tensor_plan_row *tensor; /* NULL: none */
    struct tn_distance worst;
    bool is_dense;
};

static tern_status fail_worst(struct tn_streamer *stream, const struct offender *o,
                              struct tern_error *err)
{
    bool is_finer;
    tern_status status = has_finer_tiles(&is_finer, stream, o->tensor, err);
    if (status != TERN_OK || is_finer)
        return is_finer ? fail_tiles(o->tensor, err) : status;
    return tn_fail(err, TERN_UNSUPPORTED,
                   "%s: in tensor \"%s\" the weight at row %u, column %u is %.3g of its scale away "
                   "from -1, 0 and +1",
                   o->is_dense ? "this model was not trained ternary, or its file is rounded"
                               : "most weights of a matrix are ternary and some are not: the file "
                                 "is rounded or damaged",
                   o->tensor->weight->name, o->worst.row, o->worst.col, o->worst.value);
}

/* ---- floats that are kept ---- */

/* The 16-bit types that can represent every value so far. */
struct fits {
    bool bf16, f16;
};

static void narrow(struct fits *fits, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fits->bf16 = fits->bf16 && (tn_f32_to_bits(values[i]) & 0xFFFFu) == 0;
        fits->f16 = fits->f16 && is_f16(values[i]);
    }
}

/* Sets narrow_layout of floats in F32. */
static tern_status find_narrow(struct tn_streamer *s, struct tn_tensor_plan_row *t,
                               struct tern_error *err)
{
    const uint32_t rows = t->file.rows, cols = t->file.cols;
    struct fits fits = {true, true};
    if (t->weight->dtype != TN_DTYPE_F32)
        return TERN_OK;
    float *values = tn_stream_take(&s->floats, (size_t)TN_PACK_ROWS * cols * sizeof *values, err);
    if (!values)
        return TERN_MEMORY;
    for (uint32_t row = 0; row < rows && (fits.bf16 || fits.f16); row += TN_PACK_ROWS) {
        const uint32_t n = TN_MIN(TN_PACK_ROWS, rows - row);
        tern_status status =
            tn_stream_read_rows(s, t, (uint8_t *)values, cols * sizeof *values, row, n, err);
        if (status != TERN_OK)
            return status;
        narrow(&fits, values, (size_t)n * cols);
    }
    t->narrow_layout = fits.bf16 ? TERN_LAYOUT_BF16 : fits.f16 ? TERN_LAYOUT_F16 : 0;
    return TERN_OK;
}

/* A matrix of zeros counts as ternary among ternary ones, and as dense among dense ones. */
static void settle_zeros(struct tn_tensor_plan *plan)
{
    bool has_trits = false, has_dense = false;
    for (uint32_t i = 0; i < plan->n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &plan->tensors[i];
        has_trits = has_trits || (tn_tensor_is_ternary(t) && !t->is_zero);
        has_dense = has_dense || tn_tensor_is_dense(t);
    }
    for (uint32_t i = 0; i < plan->n_tensors && has_dense && !has_trits; i++)
        if (plan->tensors[i].is_zero)
            plan->tensors[i].kind = TN_TENSOR_FLOATS;
}

/* The matrices of a stack share one layout: floats if any of them needs that. */
static void settle_stacks(struct tn_tensor_plan *plan)
{
    struct tn_tensor_plan_row *t = plan->tensors;
    for (uint32_t i = 0, n; i < plan->n_tensors; i += n) {
        bool has_dense = false;
        n = TN_MAX(t[i].file.n_stacked, 1u);
        for (uint32_t k = 0; k < n; k++)
            has_dense = has_dense || tn_tensor_is_dense(&t[i + k]);
        for (uint32_t k = 0; k < n && has_dense; k++)
            t[i + k].kind = TN_TENSOR_FLOATS;
    }
}

static tern_status keep_floats(struct tn_streamer *stream, struct tn_tensor_plan *plan,
                               struct tern_error *err)
{
    tern_status status = TERN_OK;
    settle_zeros(plan);
    settle_stacks(plan);
    const bool has_ternary = tn_tensor_plan_has_ternary(plan);
    for (uint32_t i = 0; i < plan->n_tensors && status == TERN_OK; i++) {
        struct tn_tensor_plan_row *t = &plan->tensors[i];
        const bool is_dense = tn_tensor_is_dense(t);
        if (is_dense || (t->kind == TN_TENSOR_TABLE && !has_ternary))
            status = find_narrow(stream, t, err);
    }
    return status;
}

/* ---- all tensors ---- */

static tern_status survey_one(struct offender *offender, struct tn_streamer *stream,
                              const struct tn_tensor_plan *plan, struct tn_tensor_plan_row *t,
                              struct tern_error *err)
{
    const uint64_t n_before = stream->n_done;
    struct outcome outcome = {.has_tiles = true};
    tern_status status = TERN_OK;
    t->scales = (struct tn_scale_facts){.is_one = true, .value = 1, .group = t->file.cols};
    if (t->kind == TN_TENSOR_TABLE && t->may_be_ternary)
        status = survey_table(stream, t, err);
    else if (needs_reading(t))
        status = survey_tensor(&outcome, stream, t, false, err);
    if (status != TERN_OK)
        return status;
    if (!outcome.has_tiles)
        return fail_tiles(t, err);
    if (outcome.is_dense) /* the first rows show it */
        stream->n_done = n_before + tn_trit_reader_cost(t);
    if (outcome.is_dense && !plan->says_ternary)
        t->kind = TN_TENSOR_FLOATS;
    else if (outcome.worst.value > offender->worst.value)
        *offender = (struct offender){t, outcome.worst, outcome.is_dense};
    return TERN_OK;
}

tern_status tn_survey(struct tn_streamer *stream, struct tn_tensor_plan *plan,
                      struct tern_error *err)
{
    struct offender offender = {0};
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < plan->n_tensors && status == TERN_OK; i++)
        status = survey_one(&offender, stream, plan, &plan->tensors[i], err);
    if (status != TERN_OK)
        return status;
    if (offender.tensor)
        return fail_worst(stream, &offender, err);
    status = keep_floats(stream, plan, err);
    return status == TERN_OK && plan->twin ? check_twin(stream, plan, err) : status;
}

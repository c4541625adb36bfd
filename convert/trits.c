/* SPDX-License-Identifier: MIT
 *
 * Reads the rows of a ternary matrix (trits.h): one function per kind of matrix that fills trits
 * and scales of some source rows, then the reordering of rows within heads.
 */
#include "convert/trits.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/gguf/gguf.h"
#include "convert/ternarise.h"

#define PIECE_BYTES (1u << 20) /* read at a time if rows do not matter; a multiple of 64 */
#define EXACT_UNIT 64u

/* ---- the whole matrix ---- */

/* The mean of |w| over the whole tensor; all weights must be finite. */
static tern_status read_absmean(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                double *mean, struct tern_error *err)
{
    const struct tn_source_tensor *w = t->weight;
    const size_t n_value = tn_source_float_bytes(w);
    void *raw = tn_stream_take(&s->raw, PIECE_BYTES, err);
    if (!raw)
        return TERN_MEMORY;
    struct tn_absmean sum = {{0}, 0};
    for (uint64_t at = 0; at < w->bytes; at += PIECE_BYTES) {
        const size_t n_bytes = (size_t)TN_MIN(w->bytes - at, (uint64_t)PIECE_BYTES);
        tern_status status = tn_stream_read(s, w, at, raw, n_bytes, err);
        if (status == TERN_OK)
            status = tn_stream_check_finite(w, raw, n_bytes / n_value, at / n_value, t->file.cols,
                                            err);
        if (status != TERN_OK)
            return status;
        tn_absmean_add(&sum, w->dtype, raw, n_bytes / n_value);
    }
    *mean = tn_absmean_get(&sum);
    return TERN_OK;
}

static tern_status check_scale(const struct tn_source_tensor *t, float scale,
                               struct tern_error *err)
{
    if (isfinite(scale) && scale > 0)
        return TERN_OK;
    return tn_fail(err, TERN_INPUT, "tensor \"%s\" is %g, a scale must be finite and above 0",
                   t->name, tn_shown_number((double)scale));
}

/* Reads a tensor of one value. */
static tern_status read_scalar(struct tn_streamer *s, const struct tn_source_tensor *t, float *out,
                               struct tern_error *err)
{
    unsigned char raw[4] = {0};
    tern_status status = tn_stream_read(s, t, 0, raw, (size_t)t->bytes, err);
    if (status != TERN_OK)
        return status;
    tn_floats_load(out, t->dtype, raw, 1);
    return check_scale(t, *out, err);
}

/* The scale of I2_S follows its codes. */
static tern_status read_i2s_scale(struct tn_streamer *s, const struct tn_source_tensor *t,
                                  float *out, struct tern_error *err)
{
    unsigned char raw[4] = {0};
    tern_status status = tn_stream_read(s, t, t->bytes - 32, raw, sizeof raw, err);
    *out = tn_f32_from_bits(tn_load_u32(raw));
    if (status == TERN_OK && !(isfinite(*out) && *out > 0))
        status = tn_fail(err, TERN_INPUT,
                         "tensor \"%s\": its scale is %g, but must be finite and above 0", t->name,
                         tn_shown_number((double)*out));
    return status;
}

static tern_status read_row_scales(struct tn_trit_reader *r, struct tern_error *err)
{
    const struct tn_source_tensor *t = r->tensor->scale;
    const uint32_t rows = (uint32_t)t->shape[0];
    void *raw = tn_stream_take(&r->stream->raw, (size_t)t->bytes, err);
    r->row_scales = tn_alloc(rows * sizeof *r->row_scales);
    if (!raw || !r->row_scales)
        return tn_fail(err, TERN_MEMORY, "no memory for the scales of %u rows", rows);
    tern_status status = tn_stream_read(r->stream, t, 0, raw, (size_t)t->bytes, err);
    if (status != TERN_OK)
        return status;
    tn_floats_load(r->row_scales, t->dtype, raw, rows);
    for (uint32_t i = 0; i < rows && status == TERN_OK; i++)
        status = check_scale(t, r->row_scales[i], err);
    return status;
}

static bool is_i2s(const struct tn_source_tensor *t)
{
    return t->encoding && t->encoding->type == TN_GGML_I2_S;
}

bool tn_trit_scale_is_stated(const struct tn_tensor_plan_row *tensor)
{
    return tensor->kind == TN_TENSOR_LATENT || tensor->kind == TN_TENSOR_PACKED ||
           (tensor->kind == TN_TENSOR_CODED && is_i2s(tensor->weight));
}

static uint32_t unit_of(const struct tn_tensor_plan_row *t)
{
    const uint32_t cols = t->file.cols;
    if (t->kind == TN_TENSOR_EXACT)
        return cols % EXACT_UNIT == 0 ? EXACT_UNIT : cols;
    if (t->kind == TN_TENSOR_CODED && !is_i2s(t->weight))
        return tn_encoding_unit(t->weight->encoding, cols);
    return cols;
}

static tern_status read_whole(struct tn_trit_reader *r, struct tern_error *err)
{
    const struct tn_tensor_plan_row *t = r->tensor;
    double mean;
    tern_status status = TERN_OK;
    if (t->kind == TN_TENSOR_ROUNDED)
        return read_row_scales(r, err);
    if (t->kind == TN_TENSOR_LATENT) {
        status = read_absmean(r->stream, t, &mean, err);
        if (status == TERN_OK) {
            r->factor = (float)mean;
            r->threshold = tn_trit_threshold(t->weight->dtype, mean);
        }
        return status;
    }
    if (is_i2s(t->weight))
        status = read_i2s_scale(r->stream, t->weight, &r->factor, err);
    float scale = 1;
    if (t->scale && status == TERN_OK)
        status = read_scalar(r->stream, t->scale, &scale, err);
    if (status == TERN_OK)
        r->factor = t->scale_divides ? 1.0f / scale : r->factor * scale;
    if (status == TERN_OK && !(isfinite(r->factor) && r->factor > 0))
        status = tn_fail(err, TERN_INPUT,
                         "tensor \"%s\": the scale %g beside it makes %g of its weights",
                         t->weight->name, (double)scale, (double)r->factor);
    return status;
}

tern_status tn_trit_reader_init(struct tn_trit_reader *out, struct tn_streamer *stream,
                                const struct tn_tensor_plan_row *tensor, struct tern_error *err)
{
    *out = (struct tn_trit_reader){.stream = stream, .tensor = tensor, .factor = 1};
    out->unit = unit_of(tensor);
    out->n_units = tn_div_ceil_u32(tensor->file.cols, out->unit);
    tern_status status = read_whole(out, err);
    if (status != TERN_OK)
        tn_trit_reader_fini(out);
    return status;
}

void tn_trit_reader_fini(struct tn_trit_reader *reader)
{
    tn_free(reader->row_scales);
    reader->row_scales = NULL;
}

/* ---- rows of the source, by kind ---- */

static tern_status fail_code(const struct tn_tensor_plan_row *t, const uint8_t *raw, uint32_t i_row,
                             uint32_t shift, struct tern_error *err)
{
    size_t i = 0;
    while ((raw[i] >> shift & 3) != 3)
        i++;
    return tn_fail(err, TERN_INPUT,
                   "tensor \"%s\": code 3, which no ternary weight has, in bits %u-%u of row %llu, "
                   "column %llu",
                   t->weight->name, shift, shift + 1,
                   (unsigned long long)(i_row + i / t->file.cols),
                   (unsigned long long)(i % t->file.cols));
}

/* Logical row i * R + r is in packed row r, bits 2i and 2i + 1, where R = rows / 4. */
static tern_status packed_rows(struct tn_trit_reader *r, int8_t *trits, uint32_t row, uint32_t n,
                               struct tern_error *err)
{
    const struct tn_tensor_plan_row *t = r->tensor;
    const uint32_t cols = t->file.cols;
    const uint32_t n_packed_rows = t->file.rows / 4;
    uint8_t *raw = tn_stream_take(&r->stream->raw, (size_t)n * cols, err);
    if (!raw)
        return TERN_MEMORY;
    while (n > 0) {
        const uint32_t first = row % n_packed_rows;
        const uint32_t shift = row / n_packed_rows * 2;
        const uint32_t n_run = TN_MIN(n, n_packed_rows - first);
        const size_t n_bytes = (size_t)n_run * cols;
        tern_status status =
            tn_stream_read(r->stream, t->weight, (uint64_t)first * cols, raw, n_bytes, err);
        if (status != TERN_OK)
            return status;
        if (!tn_trits_from_codes(trits, raw, n_bytes, shift))
            return fail_code(t, raw, first, shift, err);
        trits += n_bytes;
        row += n_run;
        n -= n_run;
    }
    return TERN_OK;
}

/* Reads raw bytes of rows of floats. */
static tern_status float_rows(struct tn_trit_reader *r, void **raw, uint32_t row, uint32_t n,
                              bool are_checked, struct tern_error *err)
{
    const struct tn_tensor_plan_row *t = r->tensor;
    const size_t row_bytes = t->file.cols * tn_source_float_bytes(t->weight);
    *raw = tn_stream_take(&r->stream->raw, n * row_bytes, err);
    if (!*raw)
        return TERN_MEMORY;
    tern_status status = tn_stream_read(r->stream, t->weight, row * (uint64_t)row_bytes, *raw,
                                        n * row_bytes, err);
    if (status == TERN_OK && !are_checked)
        status = tn_stream_check_finite(t->weight, *raw, (size_t)n * t->file.cols,
                                        (uint64_t)row * t->file.cols, t->file.cols, err);
    return status;
}

static tern_status latent_rows(struct tn_trit_reader *r, int8_t *trits, uint32_t row, uint32_t n,
                               struct tern_error *err)
{
    void *raw;
    tern_status status = float_rows(r, &raw, row, n, true, err); /* checked together with the
                                                                  * mean */
    if (status == TERN_OK)
        tn_trits_from_floats(trits, r->tensor->weight->dtype, raw, (size_t)n * r->tensor->file.cols,
                             r->threshold);
    return status;
}

static tern_status rounded_rows(struct tn_trit_reader *r, int8_t *trits, uint32_t row, uint32_t n,
                                struct tern_error *err)
{
    const enum tn_dtype dtype = r->tensor->weight->dtype;
    void *raw;
    tern_status status = float_rows(r, &raw, row, n, false, err);
    if (status == TERN_OK)
        tn_trits_from_floats(trits, dtype, raw, (size_t)n * r->tensor->file.cols,
                             tn_trit_threshold(dtype, 1.0));
    return status;
}

static void note_distance(struct tn_trit_reader *r, const void *raw, uint32_t row, uint32_t col)
{
    size_t at;
    const double d = tn_trits_distance(r->tensor->weight->dtype, raw, r->unit, &at);
    if (d > r->worst.value)
        r->worst = (struct tn_distance){d, row, col + (uint32_t)at};
}

/* Only ternary weights have one magnitude over a run this long. */
#define SHORT_RUN 16u

/* Whether a unit that is not ternary would be except for a few weights, or with more scales. */
static bool is_near(const struct tn_trit_reader *r, const unsigned char *src)
{
    const enum tn_dtype dtype = r->tensor->weight->dtype;
    const size_t n_value = tn_source_float_bytes(r->tensor->weight);
    size_t n_far = 0;
    for (uint32_t c = 0; c < r->unit; c += SHORT_RUN)
        n_far += tn_trits_count_far(dtype, src + c * n_value, TN_MIN(SHORT_RUN, r->unit - c));
    return n_far <= r->unit / 8;
}

static tern_status exact_rows(struct tn_trit_reader *r, int8_t *trits, float *scales, uint32_t row,
                              uint32_t n, struct tern_error *err)
{
    const struct tn_source_tensor *w = r->tensor->weight;
    const size_t n_bytes = r->unit * tn_source_float_bytes(w);
    void *raw;
    tern_status status = float_rows(r, &raw, row, n, false, err);
    if (status != TERN_OK)
        return status;
    const unsigned char *src = raw;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t u = 0; u < r->n_units; u++, src += n_bytes, trits += r->unit, scales++) {
            if (tn_trits_exact(trits, scales, w->dtype, src, r->unit)) {
                r->n_exact += *scales != 0;
                continue;
            }
            note_distance(r, src, row + i, u * r->unit);
            *(is_near(r, src) ? &r->n_near : &r->n_far) += 1;
        }
    return TERN_OK;
}

/* Reports an error in the unit at `src`, whose first weight is `weight`. */
static tern_status fail_unit(const struct tn_trit_reader *r, const uint8_t *src, uint64_t weight,
                             struct tern_error *err)
{
    const struct tn_source_tensor *t = r->tensor->weight;
    const struct tn_encoding *e = t->encoding;
    const uint64_t cols = r->tensor->file.cols;
    float scale;
    const bool is_code = e->scale == TN_NO_SCALE || tn_encoding_scales(e, &scale, src, 1, 0) == 1;
    return tn_fail(err, is_code && e->has_four_values ? TERN_UNSUPPORTED : TERN_INPUT,
                   "tensor \"%s\": the %s block at row %llu, column %llu holds %s", t->name,
                   e->name, (unsigned long long)(weight / cols),
                   (unsigned long long)(weight % cols),
                   !is_code             ? "a scale that is not finite"
                   : e->has_four_values ? "code 3, twice its scale: the weights are not ternary"
                                        : "code 3, which no ternary weight has");
}

/* Units may cross ends of rows (I2_S): if they contain other rows, too, they are decoded to a
 * separate buffer. */
static tern_status coded_rows(struct tn_trit_reader *r, int8_t *trits, float *scales, uint32_t row,
                              uint32_t n, struct tern_error *err)
{
    const struct tn_tensor_plan_row *t = r->tensor;
    const struct tn_encoding *e = t->weight->encoding;
    const uint64_t cols = t->file.cols;
    const uint32_t unit = tn_encoding_unit(e, t->file.cols);
    const uint32_t unit_bytes = tn_encoding_unit_bytes(e, t->file.cols);
    const uint64_t first = row * cols / unit, last = ((row + n) * cols + unit - 1) / unit;
    const size_t n_units = (size_t)(last - first);
    const uint64_t skip = row * cols - first * unit;
    const bool fits = n_units * unit == n * cols;
    void *raw = tn_stream_take(&r->stream->raw, n_units * unit_bytes, err);
    int8_t *dst = fits ? trits : tn_stream_take(&r->stream->spare, n_units * unit, err);
    if (!raw || !dst)
        return TERN_MEMORY;
    tern_status status = tn_stream_read(r->stream, t->weight, first * unit_bytes, raw,
                                        n_units * unit_bytes, err);
    if (status != TERN_OK)
        return status;
    const size_t n_good = e->trits(dst, scales, raw, n_units, unit);
    if (n_good < n_units)
        return fail_unit(r, (uint8_t *)raw + n_good * unit_bytes, (first + n_good) * unit, err);
    if (!fits)
        memcpy(trits, dst + skip, (size_t)(n * cols));
    return TERN_OK;
}

/* Multiplies scales by the factor of the tensor, which may underflow or overflow. */
static tern_status multiply_scales(const struct tn_trit_reader *r, float *scales, size_t n,
                                   struct tern_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const float scale = scales[i] * r->factor;
        if (!isfinite(scale) || (scale == 0 && scales[i] != 0))
            return tn_fail(err, TERN_INPUT,
                           "tensor \"%s\": a scale of %g and the scale %g beside it make %g",
                           r->tensor->weight->name, (double)scales[i], (double)r->factor,
                           (double)scale);
        scales[i] = scale;
    }
    return TERN_OK;
}

/* Rows are numbered as in the source. */
static tern_status source_scales(struct tn_trit_reader *r, float *scales, uint32_t row, uint32_t n,
                                 struct tern_error *err)
{
    const struct tn_tensor_plan_row *t = r->tensor;
    const struct tn_encoding *e = t->weight->encoding;
    const uint32_t unit_bytes = tn_encoding_unit_bytes(e, t->file.cols);
    const uint64_t first = (uint64_t)row * r->n_units;
    const size_t n_units = (size_t)n * r->n_units;
    void *raw = tn_stream_take(&r->stream->raw, n_units * unit_bytes, err);
    if (!raw)
        return TERN_MEMORY;
    tern_status status = tn_stream_read(r->stream, t->weight, first * unit_bytes, raw,
                                        n_units * unit_bytes, err);
    if (status != TERN_OK)
        return status;
    const size_t n_good = tn_encoding_scales(e, scales, raw, n_units, unit_bytes);
    if (n_good < n_units)
        return fail_unit(r, (uint8_t *)raw + n_good * unit_bytes, (first + n_good) * r->unit, err);
    return multiply_scales(r, scales, n_units, err);
}

static void fill(float *scales, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        scales[i] = value;
}

/* Rows are numbered as in the source. */
static tern_status source_rows(struct tn_trit_reader *r, int8_t *trits, float *scales, uint32_t row,
                               uint32_t n, struct tern_error *err)
{
    const size_t n_scales = (size_t)n * r->n_units;
    fill(scales, n_scales, 1.0f);
    tern_status status;
    switch (r->tensor->kind) {
    case TN_TENSOR_PACKED:
        status = packed_rows(r, trits, row, n, err);
        break;
    case TN_TENSOR_LATENT:
        status = latent_rows(r, trits, row, n, err);
        break;
    case TN_TENSOR_ROUNDED:
        status = rounded_rows(r, trits, row, n, err);
        memcpy(scales, r->row_scales + row, n * sizeof *scales);
        break;
    case TN_TENSOR_EXACT:
        status = exact_rows(r, trits, scales, row, n, err);
        break;
    default:
        assert(r->tensor->kind == TN_TENSOR_CODED);
        status = coded_rows(r, trits, scales, row, n, err);
    }
    return status == TERN_OK ? multiply_scales(r, scales, n_scales, err) : status;
}

/* ---- row order ---- */

/* The number of rows of [row, row + n) that are consecutive in the source from *first on. */
static uint32_t next_run(const struct tn_trit_reader *r, uint32_t row, uint32_t n, uint32_t *first)
{
    uint32_t n_run;
    *first = tn_row_order_run(&r->tensor->order, row, &n_run);
    return TN_MIN(n, n_run);
}

tern_status tn_trit_reader_scales(struct tn_trit_reader *r, float *scales, uint32_t row, uint32_t n,
                                  struct tern_error *err)
{
    assert(r->tensor->kind == TN_TENSOR_CODED && r->unit * r->n_units == r->tensor->file.cols);
    tern_status status = TERN_OK;
    while (n > 0 && status == TERN_OK) {
        uint32_t first;
        const uint32_t n_run = next_run(r, row, n, &first);
        status = source_scales(r, scales, first, n_run, err);
        scales += (size_t)n_run * r->n_units;
        row += n_run;
        n -= n_run;
    }
    return status;
}

/* Reads rows of the tensor, ignoring the permutation of heads. */
static tern_status plain_rows(struct tn_trit_reader *r, int8_t *trits, float *scales, uint32_t row,
                              uint32_t n, struct tern_error *err)
{
    tern_status status = TERN_OK;
    while (n > 0 && status == TERN_OK) {
        uint32_t first;
        const uint32_t n_run = next_run(r, row, n, &first);
        status = source_rows(r, trits, scales, first, n_run, err);
        trits += (size_t)n_run * r->tensor->file.cols;
        scales += (size_t)n_run * r->n_units;
        row += n_run;
        n -= n_run;
    }
    return status;
}

/* Reads whole heads, and picks the rows from them. */
static tern_status permuted_rows(struct tn_trit_reader *r, int8_t *trits, float *scales,
                                 uint32_t row, uint32_t n, struct tern_error *err)
{
    const struct tn_row_order *order = &r->tensor->order;
    const uint32_t dim = order->head_dim, cols = r->tensor->file.cols;
    const uint32_t first = row / dim * dim;
    const uint32_t n_read = tn_div_ceil_u32(row + n, dim) * dim - first;
    int8_t *all = tn_stream_take(&r->stream->heads, (size_t)n_read * cols, err);
    float *all_scales =
        tn_stream_take(&r->stream->head_scales, (size_t)n_read * r->n_units * sizeof *scales, err);
    if (!all || !all_scales)
        return TERN_MEMORY;
    tern_status status = plain_rows(r, all, all_scales, first, n_read, err);
    for (uint32_t i = 0; i < n && status == TERN_OK; i++) {
        const size_t from = tn_permuted_row(order, row + i) - first;
        memcpy(trits + (size_t)i * cols, all + from * cols, cols);
        memcpy(scales + (size_t)i * r->n_units, all_scales + from * r->n_units,
               r->n_units * sizeof *scales);
    }
    return status;
}

tern_status tn_trit_reader_rows(struct tn_trit_reader *reader, int8_t *trits, float *scales,
                                uint32_t row, uint32_t n, struct tern_error *err)
{
    return reader->tensor->order.permuted_dim ? permuted_rows(reader, trits, scales, row, n, err)
                                              : plain_rows(reader, trits, scales, row, n, err);
}

uint64_t tn_trit_reader_cost(const struct tn_tensor_plan_row *t)
{
    const struct tn_source_tensor *w = t->weight;
    const uint64_t scale_bytes = t->scale ? t->scale->bytes : 0;
    switch (t->kind) {
    case TN_TENSOR_LATENT: /* mean of the whole tensor, then trits */
        return w->bytes + w->bytes / w->shape[0] * t->file.rows;
    case TN_TENSOR_PACKED: /* once for each row block */
        return 4 * w->bytes + scale_bytes;
    default: /* the rows of this part; the rest is a scale that follows them */
        return w->bytes / tn_source_rows(w) * t->file.rows + w->bytes % tn_source_rows(w) +
               scale_bytes;
    }
}

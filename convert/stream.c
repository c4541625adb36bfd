/* SPDX-License-Identifier: MIT
 *
 * One function per kind of tensor: norm, table, latent matrix, packed matrix.
 */
#include "stream.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/half.h"
#include "base/log.h"
#include "file/mfile.h"
#include "kern/pack.h"
#include "kern/planes.h"
#include "ternarise.h"

#define PIECE_BYTES (1u << 20) /* read at a time where rows do not matter; a multiple of 64 */

/* ---- buffers and progress ---- */

static void *take(struct tn_stream_buffer *buffer, size_t n_bytes, struct tern_error *err)
{
    if (n_bytes <= buffer->capacity)
        return buffer->data;
    tn_free(buffer->data);
    buffer->capacity = 0;
    buffer->data = tn_alloc(n_bytes);
    if (buffer->data)
        buffer->capacity = n_bytes;
    else
        tn_fail(err, TERN_MEMORY, "no memory for %zu bytes of a tensor", n_bytes);
    return buffer->data;
}

static void drop(struct tn_stream_buffer *buffer)
{
    tn_free(buffer->data);
    *buffer = (struct tn_stream_buffer){NULL, 0};
}

void tn_stream_drop_buffers(struct tn_streamer *s)
{
    drop(&s->raw);
    drop(&s->trits);
    drop(&s->packed);
    drop(&s->floats);
    drop(&s->scales);
}

tern_status tn_stream_progress(struct tn_streamer *s, uint64_t n, struct tern_error *err)
{
    s->n_done += n;
    const struct tern_convert_params *p = s->params;
    if (p->on_progress && !p->on_progress(p->arg, s->n_done, s->n_total))
        return tn_fail(err, TERN_INTERRUPTED, "conversion stopped; nothing was written");
    return TERN_OK;
}

static tern_status read_piece(struct tn_streamer *s, const struct tn_source_tensor *t,
                              uint64_t begin, void *dst, size_t n, struct tern_error *err)
{
    tern_status status = tn_source_read(s->source, t, begin, dst, n, err);
    return status == TERN_OK ? tn_stream_progress(s, n, err) : status;
}

static size_t float_bytes(const struct tn_source_tensor *t)
{
    return t->dtype == TN_DTYPE_F32 ? 4 : 2;
}

static tern_status fail_nonfinite(const struct tn_source_tensor *t, uint64_t i, uint64_t cols,
                                  struct tern_error *err)
{
    return tn_fail(err, TERN_INPUT,
                   "tensor \"%s\": the value at row %llu, column %llu is not a finite number",
                   t->name, (unsigned long long)(i / cols), (unsigned long long)(i % cols));
}

/* TERN_INPUT if one of n values, the first of which is element `first`, is NaN or infinite. */
static tern_status check_finite(const struct tn_source_tensor *t, const void *raw, size_t n,
                                uint64_t first, uint64_t cols, struct tern_error *err)
{
    const size_t i = tn_floats_find_nonfinite(t->dtype, raw, n);
    return i == n ? TERN_OK : fail_nonfinite(t, first + i, cols, err);
}

/* ---- norms ---- */

static tern_status stream_norm(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                               uint32_t i_tensor, struct tern_error *err)
{
    const size_t n = t->file.cols;
    void *raw = take(&s->raw, (size_t)t->weight->bytes, err);
    float *values = take(&s->floats, n * sizeof *values, err);
    if (!raw || !values)
        return TERN_MEMORY;
    tern_status status = read_piece(s, t->weight, 0, raw, (size_t)t->weight->bytes, err);
    if (status == TERN_OK)
        status = check_finite(t->weight, raw, n, 0, n, err);
    if (status != TERN_OK)
        return status;
    tn_floats_load(values, t->weight->dtype, raw, n);
    return tn_mwriter_append(s->writer, i_tensor, values, n * sizeof *values, err);
}

/* ---- embedding and head ---- */

/* One row as f16 or bf16. */
static tern_status encode_halves(uint16_t *dst, const float *src,
                                 const struct tn_tensor_plan_row *t, uint32_t row,
                                 struct tern_error *err)
{
    const bool f16 = t->file.layout == TERN_LAYOUT_F16;
    for (uint32_t i = 0; i < t->file.cols; i++) {
        dst[i] = f16 ? tn_f32_to_f16(src[i]) : tn_f32_to_bf16(src[i]);
        const bool fits = f16 ? fabsf(src[i]) <= 65504.0f : (dst[i] & 0x7FFF) < 0x7F80;
        if (!fits)
            return tn_fail(err, TERN_INPUT,
                           "tensor \"%s\": the value %g in row %u is too large for %s; use "
                           "--head q8",
                           t->weight->name, (double)src[i], row, f16 ? "f16" : "bf16");
    }
    return TERN_OK;
}

/* What stream_table works with: one block of rows at a time. */
struct table_buffers {
    char *raw;      /* source bytes of a block */
    char *rows;     /* the block as integers or halves, [n][cols] */
    char *packed;   /* integers: the block in planes */
    float *values;  /* [cols] */
    float *scales;  /* [rows], then what planes need, as in the file */
};

/* The columns' offsets, from rows spread over the whole table.  A row that holds no finite numbers
 * is refused later; here it counts as zeros. */
static tern_status sample_offsets(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                  const struct table_buffers *b, uint32_t n,
                                  struct tern_error *err)
{
    const uint32_t cols = t->file.cols, rows = t->file.rows;
    const uint32_t n_planes = tn_layout_planes(t->file.layout);
    const size_t src_row = cols * float_bytes(t->weight);
    int8_t *q = (int8_t *)b->rows;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t row = (uint64_t)rows * i / n;
        tern_status status = tn_source_read(s->source, t->weight, row * src_row, b->raw, src_row,
                                            err);
        if (status != TERN_OK)
            return status;
        tn_floats_load(b->values, t->weight->dtype, b->raw, cols);
        if (tn_floats_find_nonfinite(t->weight->dtype, b->raw, cols) != cols)
            memset(b->values, 0, cols * sizeof *b->values);
        tn_round_row(q + (size_t)i * cols, b->values, cols, tn_planes_max(n_planes));
    }
    tn_planes_offsets(tn_planes_place_offsets(b->scales, rows, n_planes), q, n, cols);
    return TERN_OK;
}

/* Rows [row, row + n) of the source, encoded and written. */
static tern_status stream_table_block(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                      uint32_t i_tensor, const struct table_buffers *b,
                                      uint32_t row, uint32_t n, struct tern_error *err)
{
    const uint32_t cols = t->file.cols, rows = t->file.rows;
    const uint32_t n_planes = tn_layout_planes(t->file.layout);
    const size_t src_row = cols * float_bytes(t->weight);
    const size_t dst_row = cols * (n_planes ? (size_t)1 : (size_t)2);
    tern_status status =
        read_piece(s, t->weight, row * (uint64_t)src_row, b->raw, n * src_row, err);
    if (status == TERN_OK)
        status = check_finite(t->weight, b->raw, (size_t)n * cols, (uint64_t)row * cols, cols, err);
    for (uint32_t i = 0; i < n && status == TERN_OK; i++) {
        void *dst = b->rows + i * dst_row;
        tn_floats_load(b->values, t->weight->dtype, b->raw + i * src_row, cols);
        if (n_planes)
            b->scales[row + i] = tn_round_row(dst, b->values, cols, tn_planes_max(n_planes));
        else
            status = encode_halves(dst, b->values, t, row + i, err);
    }
    if (status != TERN_OK)
        return status;
    if (!n_planes)
        return tn_mwriter_append(s->writer, i_tensor, b->rows, n * dst_row, err);
    tn_planes_pack((uint8_t *)b->packed, b->scales, (const int8_t *)b->rows, row, n, rows, cols,
                   n_planes);
    return tn_mwriter_append(s->writer, i_tensor, b->packed,
                             tn_planes_block_bytes(n, cols, n_planes), err);
}

static tern_status stream_table(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                uint32_t i_tensor, struct tern_error *err)
{
    const uint32_t rows = t->file.rows, cols = t->file.cols;
    const uint32_t n_planes = tn_layout_planes(t->file.layout);
    const uint32_t n_step = TN_MIN(TERN_PLANE_BLOCK_ROWS, rows);
    const size_t scale_bytes = (size_t)tn_layout_scale_bytes(t->file.layout, rows, cols);
    const struct table_buffers b = {
        .raw = take(&s->raw, n_step * cols * float_bytes(t->weight), err),
        .rows = take(&s->trits, n_step * cols * (n_planes ? (size_t)1 : (size_t)2), err),
        .packed = take(&s->packed, tn_planes_block_bytes(n_step, cols, TN_MAX(n_planes, 1u)), err),
        .values = take(&s->floats, cols * sizeof(float), err),
        .scales = take(&s->scales, TN_MAX(scale_bytes, 1u), err),
    };
    if (!b.raw || !b.rows || !b.packed || !b.values || !b.scales)
        return TERN_MEMORY;
    tern_status sampled = n_planes ? sample_offsets(s, t, &b, n_step, err) : TERN_OK;
    if (sampled != TERN_OK)
        return sampled;
    for (uint32_t row = 0; row < rows; row += n_step) {
        tern_status status =
            stream_table_block(s, t, i_tensor, &b, row, TN_MIN(n_step, rows - row), err);
        if (status != TERN_OK)
            return status;
    }
    if (t->file.scale_kind != TERN_SCALE_ROW)
        return TERN_OK;
    return tn_mwriter_append_scales(s->writer, i_tensor, b.scales, scale_bytes, err);
}

/* ---- ternary matrices ---- */

/* Fills trits with rows [row, row + n). */
typedef tern_status read_trits_fn(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                  uint32_t threshold, int8_t *trits, uint32_t row, uint32_t n,
                                  struct tern_error *err);

/* Packs the matrix block of rows by block of rows; columns (C2) are complete only at the end. */
static tern_status stream_matrix(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                 uint32_t i_tensor, read_trits_fn *read_trits, uint32_t threshold,
                                 uint64_t *n_zero, struct tern_error *err)
{
    const struct tern_file_tensor *f = &t->file;
    const bool whole = f->layout == TERN_LAYOUT_C2;
    const uint32_t n_step = TN_MIN(TN_PACK_ROWS, f->rows);
    const uint64_t n_packed = tn_pack_bytes(f->layout, whole ? f->rows : n_step, f->cols);
    if (n_packed > SIZE_MAX)
        return tn_fail(err, TERN_MEMORY, "tensor \"%s\" is too large for this system",
                       t->weight->name);
    int8_t *trits = take(&s->trits, (size_t)n_step * f->cols, err);
    uint8_t *packed = take(&s->packed, (size_t)n_packed, err);
    if (!trits || !packed)
        return TERN_MEMORY;
    *n_zero = 0;
    for (uint32_t r = 0; r < f->rows; r += n_step) {
        const uint32_t n = TN_MIN(n_step, f->rows - r);
        tern_status status = read_trits(s, t, threshold, trits, r, n, err);
        if (status != TERN_OK)
            return status;
        *n_zero += tn_trits_count_zeros(trits, (size_t)n * f->cols);
        if (whole) {
            tn_pack_rows(packed, f->layout, f->rows, f->cols, r, n, trits);
            continue;
        }
        tn_pack_rows(packed, f->layout, n, f->cols, 0, n, trits);
        status = tn_mwriter_append(s->writer, i_tensor, packed,
                                   (size_t)tn_pack_bytes(f->layout, n, f->cols), err);
        if (status != TERN_OK)
            return status;
    }
    return whole ? tn_mwriter_append(s->writer, i_tensor, packed, (size_t)n_packed, err) : TERN_OK;
}

static tern_status read_latent_trits(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                     uint32_t threshold, int8_t *trits, uint32_t row, uint32_t n,
                                     struct tern_error *err)
{
    const size_t row_bytes = t->file.cols * float_bytes(t->weight);
    void *raw = take(&s->raw, n * row_bytes, err);
    if (!raw)
        return TERN_MEMORY;
    tern_status status = read_piece(s, t->weight, row * (uint64_t)row_bytes, raw, n * row_bytes,
                                    err);
    if (status == TERN_OK)
        tn_trits_from_floats(trits, t->weight->dtype, raw, (size_t)n * t->file.cols, threshold);
    return status;
}

/* Mean of |w| over the whole tensor, all of which is finite. */
static tern_status read_absmean(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                double *mean, struct tern_error *err)
{
    const struct tn_source_tensor *w = t->weight;
    void *raw = take(&s->raw, PIECE_BYTES, err);
    if (!raw)
        return TERN_MEMORY;
    struct tn_absmean sum = {{0}, 0};
    for (uint64_t at = 0; at < w->bytes; at += PIECE_BYTES) {
        const size_t n_bytes = (size_t)TN_MIN(w->bytes - at, (uint64_t)PIECE_BYTES);
        tern_status status = read_piece(s, w, at, raw, n_bytes, err);
        if (status == TERN_OK)
            status = check_finite(w, raw, n_bytes / float_bytes(w), at / float_bytes(w),
                                  t->file.cols, err);
        if (status != TERN_OK)
            return status;
        tn_absmean_add(&sum, w->dtype, raw, n_bytes / float_bytes(w));
    }
    *mean = tn_absmean_get(&sum);
    return TERN_OK;
}

static tern_status stream_latent(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                 uint32_t i_tensor, struct tn_stream_facts *facts,
                                 struct tern_error *err)
{
    double mean;
    tern_status status = read_absmean(s, t, &mean, err);
    if (status != TERN_OK)
        return status;
    facts->scale = (float)mean;
    return stream_matrix(s, t, i_tensor, read_latent_trits,
                         tn_trit_threshold(t->weight->dtype, mean), &facts->n_zero, err);
}

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

/* Logical row i * R + r lies in packed row r, bits 2i and 2i + 1, where R = rows / 4. */
static tern_status read_packed_trits(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                     uint32_t threshold, int8_t *trits, uint32_t row, uint32_t n,
                                     struct tern_error *err)
{
    (void)threshold;
    const uint32_t cols = t->file.cols;
    const uint32_t n_packed_rows = t->file.rows / 4;
    uint8_t *raw = take(&s->raw, (size_t)n * cols, err);
    if (!raw)
        return TERN_MEMORY;
    while (n > 0) {
        const uint32_t first = row % n_packed_rows;
        const uint32_t shift = row / n_packed_rows * 2;
        const uint32_t n_run = TN_MIN(n, n_packed_rows - first);
        const size_t n_bytes = (size_t)n_run * cols;
        tern_status status = read_piece(s, t->weight, (uint64_t)first * cols, raw, n_bytes, err);
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

static tern_status stream_packed(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                 uint32_t i_tensor, struct tn_stream_facts *facts,
                                 struct tern_error *err)
{
    unsigned char raw[4];
    tern_status status = read_piece(s, t->scale, 0, raw, (size_t)t->scale->bytes, err);
    if (status != TERN_OK)
        return status;
    tn_floats_load(&facts->scale, t->scale->dtype, raw, 1);
    if (!isfinite(facts->scale) || facts->scale <= 0)
        return tn_fail(err, TERN_INPUT, "tensor \"%s\" is %g, a scale must be finite and above 0",
                       t->scale->name, (double)facts->scale);
    return stream_matrix(s, t, i_tensor, read_packed_trits, 0, &facts->n_zero, err);
}

/* ---- interface ---- */

uint64_t tn_stream_cost(const struct tn_tensor_plan_row *t)
{
    switch (t->kind) {
    case TN_TENSOR_LATENT: /* mean, then trits */
        return 2 * t->weight->bytes;
    case TN_TENSOR_PACKED: /* once for each row block */
        return 4 * t->weight->bytes + t->scale->bytes;
    default:
        return t->weight->bytes;
    }
}

tern_status tn_stream_tensor(struct tn_streamer *stream, const struct tn_tensor_plan_row *tensor,
                             uint32_t i_tensor, struct tn_stream_facts *facts,
                             struct tern_error *err)
{
    memset(facts, 0, sizeof *facts);
    tern_status status;
    switch (tensor->kind) {
    case TN_TENSOR_NORM:
        return stream_norm(stream, tensor, i_tensor, err);
    case TN_TENSOR_TABLE:
        return stream_table(stream, tensor, i_tensor, err);
    case TN_TENSOR_LATENT:
        status = stream_latent(stream, tensor, i_tensor, facts, err);
        break;
    default:
        status = stream_packed(stream, tensor, i_tensor, facts, err);
    }
    if (status == TERN_OK)
        tn_mwriter_set_tensor_facts(stream->writer, i_tensor, facts->scale, facts->n_zero);
    return status;
}

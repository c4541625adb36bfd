/* SPDX-License-Identifier: MIT
 *
 * Streams embedding, head and matrices of floats: rows rounded to integers in planes of bits, or
 * kept as floats.
 */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/half.h"
#include "convert/stream.h"
#include "convert/ternarise.h"
#include "kern/bit_planes.h"

/* Bytes per value before packing. */
static size_t value_bytes(uint32_t layout)
{
    return tn_layout_planes(layout) ? 1 : layout == TERN_LAYOUT_F32 ? 4 : 2;
}

/* Encodes one row as f16 or bf16. */
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

/* The buffers of stream_table: one block of rows at a time. */
struct table_buffers {
    char *raw;      /* source bytes of a block */
    char *rows;     /* the block as integers or halves, [n][cols] */
    char *packed;   /* integers: the block in planes */
    float *values;  /* [cols] */
    float *scales;  /* [rows], then the other scales of planes, in the file's layout */
};

/* Computes the columns' offsets from rows spread over the whole table.  A row with non-finite
 * numbers is refused later; here it counts as zeros. */
static tern_status sample_offsets(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                  const struct table_buffers *b, uint32_t n,
                                  struct tern_error *err)
{
    const uint32_t cols = t->file.cols, rows = t->file.rows;
    const uint32_t n_planes = tn_layout_planes(t->file.layout);
    const size_t src_row = (size_t)tn_stream_row_bytes(t->weight, cols);
    int8_t *q = (int8_t *)b->rows;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t row = (uint64_t)rows * i / n;
        tern_status status = tn_source_read(s->source, t->weight, row * src_row, b->raw, src_row,
                                            err);
        if (status != TERN_OK)
            return status;
        tn_stream_load_row(b->values, t->weight, b->raw, cols);
        if (tn_floats_find_nonfinite(TN_DTYPE_F32, b->values, cols) != cols)
            memset(b->values, 0, cols * sizeof *b->values);
        tn_round_row(q + (size_t)i * cols, b->values, cols, tn_bit_planes_max(n_planes));
    }
    tn_bit_planes_offsets(tn_bit_planes_place_offsets(b->scales, rows, n_planes), q, n, cols);
    return TERN_OK;
}

/* Encodes and writes rows [row, row + n) of the source. */
static tern_status stream_table_block(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                      const struct table_buffers *b, uint32_t row, uint32_t n,
                                      struct tern_error *err)
{
    const uint32_t cols = t->file.cols, rows = t->file.rows;
    const uint32_t n_planes = tn_layout_planes(t->file.layout);
    const size_t src_row = (size_t)tn_stream_row_bytes(t->weight, cols);
    const size_t dst_row = cols * value_bytes(t->file.layout);
    tern_status status =
        tn_stream_read_rows(s, t, (uint8_t *)b->raw, src_row, row, n, err);
    for (uint32_t i = 0; i < n && status == TERN_OK; i++) {
        void *dst = b->rows + i * dst_row;
        tn_stream_load_row(b->values, t->weight, b->raw + i * src_row, cols);
        status = tn_stream_check_row(t->weight, b->values, tn_row_order_get(&t->order, row + i),
                                     cols, err);
        if (status != TERN_OK)
            break;
        if (n_planes)
            b->scales[row + i] = tn_round_row(dst, b->values, cols, tn_bit_planes_max(n_planes));
        else if (t->file.layout == TERN_LAYOUT_F32)
            memcpy(dst, b->values, dst_row);
        else
            status = encode_halves(dst, b->values, t, row + i, err);
    }
    if (status != TERN_OK)
        return status;
    if (!n_planes)
        return tn_mwriter_append(s->writer, t->i_tensor, b->rows, n * dst_row, err);
    tn_bit_planes_pack((uint8_t *)b->packed, b->scales, (const int8_t *)b->rows, row, n, rows, cols,
                       n_planes);
    return tn_mwriter_append(s->writer, t->i_tensor, b->packed,
                             tn_bit_planes_block_bytes(n, cols, n_planes), err);
}

tern_status tn_stream_table(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                            struct tern_error *err)
{
    const uint32_t rows = t->file.rows, cols = t->file.cols;
    const uint32_t n_planes = tn_layout_planes(t->file.layout);
    const uint32_t n_step = TN_MIN(TERN_PLANE_BLOCK_ROWS, rows);
    const size_t scale_bytes = (size_t)tn_layout_scale_bytes(t->file.layout, rows, cols);
    const size_t packed_bytes = tn_bit_planes_block_bytes(n_step, cols, TN_MAX(n_planes, 1u));
    const struct table_buffers b = {
        .raw = tn_stream_take(&s->raw, n_step * (size_t)tn_stream_row_bytes(t->weight, cols), err),
        .rows = tn_stream_take(&s->trits, n_step * cols * value_bytes(t->file.layout), err),
        .packed = tn_stream_take(&s->packed, packed_bytes, err),
        .values = tn_stream_take(&s->floats, cols * sizeof(float), err),
        .scales = tn_stream_take(&s->scales, TN_MAX(scale_bytes, 1u), err),
    };
    if (!b.raw || !b.rows || !b.packed || !b.values || !b.scales)
        return TERN_MEMORY;
    tern_status sampled = n_planes ? sample_offsets(s, t, &b, n_step, err) : TERN_OK;
    if (sampled != TERN_OK)
        return sampled;
    for (uint32_t row = 0; row < rows; row += n_step) {
        tern_status status =
            stream_table_block(s, t, &b, row, TN_MIN(n_step, rows - row), err);
        if (status != TERN_OK)
            return status;
    }
    if (t->file.scale_kind != TERN_SCALE_ROW)
        return tn_mwriter_pad_matrix(s->writer, t->i_tensor, t->i_matrix, err);
    return tn_mwriter_append_scales(s->writer, t->i_tensor, b.scales, scale_bytes, err);
}

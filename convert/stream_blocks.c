/* SPDX-License-Identifier: MIT
 *
 * Streams matrices in the block types of GGUF files: rows in the model's order, in blocks of the
 * layout, packed without changing a value.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "convert/gguf/gguf.h"
#include "convert/stream.h"
#include "kern/blocks.h"

#define STEP_ROWS 256u

/* Names the first bad block of a row that has one. */
static tern_status fail_scale(const struct tn_tensor_plan_row *t, const uint8_t *raw, uint32_t row,
                              struct tern_error *err)
{
    const uint32_t layout = t->file.layout, cols = tn_block_shape(layout).block;
    uint32_t block = 0;
    while (tn_blocks_are_finite(raw + block * tn_blocks_source_bytes(layout, cols), layout, 1,
                                cols))
        block++;
    if (t->weight->encoding->type == TN_GGML_MXFP4)
        return tn_fail(err, TERN_UNSUPPORTED,
                       "tensor \"%s\": the scale of block %u of row %u is not in 2^-24 to 2^15, as "
                       "tern needs it for %s",
                       t->weight->name, block, tn_row_order_get(&t->order, row), t->weight->type);
    return tn_fail(err, TERN_INPUT,
                   "tensor \"%s\": a scale of block %u of row %u is not a finite number",
                   t->weight->name, block, tn_row_order_get(&t->order, row));
}

static tern_status check_scales(const struct tn_tensor_plan_row *t, const uint8_t *raw,
                                size_t row_bytes, uint32_t row, uint32_t n, struct tern_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (!tn_blocks_are_finite(raw + i * row_bytes, t->file.layout, 1, t->file.cols))
            return fail_scale(t, raw + i * row_bytes, row + i, err);
    return TERN_OK;
}

/* Reads rows as blocks of the layout, row_bytes each, to dst. */
static tern_status read_blocks(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                               uint8_t *dst, size_t row_bytes, uint32_t row, uint32_t n,
                               struct tern_error *err)
{
    const struct tn_encoding *e = t->weight->encoding;
    if (!e->recode)
        return tn_stream_read_rows(s, t, dst, row_bytes, row, n, err);
    const size_t source_bytes = (size_t)tn_stream_row_bytes(t->weight, t->file.cols);
    uint8_t *units = tn_stream_take(&s->spare, n * source_bytes, err);
    tern_status status = units ? tn_stream_read_rows(s, t, units, source_bytes, row, n, err)
                               : TERN_MEMORY;
    if (status == TERN_OK)
        e->recode(dst, units, (size_t)n * (t->file.cols / e->unit));
    return status;
}

tern_status tn_stream_blocks(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                             struct tern_error *err)
{
    const struct tern_file_tensor *f = &t->file;
    const uint32_t n_step = TN_MIN(STEP_ROWS, f->rows);
    const size_t row_bytes = tn_blocks_source_bytes(f->layout, f->cols);
    uint8_t *raw = tn_stream_take(&s->raw, n_step * row_bytes, err);
    uint8_t *packed =
        tn_stream_take(&s->packed, (size_t)tn_blocks_bytes(f->layout, n_step, f->cols), err);
    tern_status status = raw && packed ? TERN_OK : TERN_MEMORY;
    for (uint32_t row = 0; row < f->rows && status == TERN_OK; row += n_step) {
        const uint32_t n = TN_MIN(n_step, f->rows - row);
        status = read_blocks(s, t, raw, row_bytes, row, n, err);
        if (status == TERN_OK)
            status = check_scales(t, raw, row_bytes, row, n, err);
        if (status != TERN_OK)
            return status;
        tn_blocks_pack(packed, f->layout, raw, n, f->cols);
        status = tn_mwriter_append(s->writer, t->i_tensor, packed,
                                   (size_t)tn_blocks_bytes(f->layout, n, f->cols), err);
    }
    return status != TERN_OK ? status
                             : tn_mwriter_pad_matrix(s->writer, t->i_tensor, t->i_matrix, err);
}

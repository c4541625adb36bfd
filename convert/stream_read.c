/* SPDX-License-Identifier: MIT
 *
 * Shared by the files that stream one kind of tensor: buffers, progress, reading rows of the source
 * in the model's order, and errors that name an invalid value.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/stream.h"
#include "convert/ternarise.h"

void *tn_stream_take(struct tn_stream_buffer *buffer, size_t n_bytes, struct tern_error *err)
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
    drop(&s->all_scales);
    drop(&s->spare);
    drop(&s->columns);
    drop(&s->heads);
    drop(&s->head_scales);
}

bool tn_stream_report(const struct tn_streamer *s)
{
    const struct tern_convert_params *p = s->params;
    const double share = s->n_done < s->n_total ? (double)s->n_done / (double)s->n_total : 1.0;
    return !p->on_progress ||
           p->on_progress(p->arg, (uint64_t)(share * (double)s->n_source), s->n_source);
}

tern_status tn_stream_progress(struct tn_streamer *s, uint64_t n, struct tern_error *err)
{
    s->n_done += n;
    if (!tn_stream_report(s))
        return tn_fail(err, TERN_INTERRUPTED, "stopped");
    return TERN_OK;
}

tern_status tn_stream_read(struct tn_streamer *s, const struct tn_source_tensor *t, uint64_t begin,
                           void *dst, size_t n, struct tern_error *err)
{
    tern_status status = tn_source_read(s->source, t, begin, dst, n, err);
    return status == TERN_OK ? tn_stream_progress(s, n, err) : status;
}

/* The same if rows are columns of the source: reads a part of each of its rows. */
static tern_status read_columns(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                uint8_t *dst, size_t row_bytes, uint32_t row, uint32_t n,
                                struct tern_error *err)
{
    const size_t n_value = tn_source_float_bytes(t->weight);
    const uint64_t source_row = t->weight->shape[1] * n_value;
    uint8_t *part = tn_stream_take(&s->columns, n * n_value, err);
    tern_status status = part ? TERN_OK : TERN_MEMORY;
    for (uint32_t col = 0; col < t->file.cols && status == TERN_OK; col++)
        for (uint32_t i = 0, n_run; i < n && status == TERN_OK; i += n_run) {
            const uint64_t first = tn_row_order_run(&t->order, row + i, &n_run);
            n_run = TN_MIN(n - i, n_run);
            status = tn_stream_read(s, t->weight, col * source_row + first * n_value, part,
                                    n_run * n_value, err);
            for (uint32_t k = 0; k < n_run && status == TERN_OK; k++)
                memcpy(dst + (i + k) * row_bytes + col * n_value, part + k * n_value, n_value);
        }
    return status;
}

tern_status tn_stream_read_rows(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                uint8_t *dst, size_t row_bytes, uint32_t row, uint32_t n,
                                struct tern_error *err)
{
    tern_status status = TERN_OK;
    if (t->is_transposed)
        return read_columns(s, t, dst, row_bytes, row, n, err);
    for (uint32_t end = row + n, n_run; row < end && status == TERN_OK; row += n_run) {
        (void)tn_row_order_run(&t->order, row, &n_run);
        n_run = t->order.permuted_dim ? 1 : TN_MIN(end - row, n_run);
        status = tn_stream_read(s, t->weight,
                                tn_row_order_get(&t->order, row) * (uint64_t)row_bytes, dst,
                                n_run * row_bytes, err);
        dst += n_run * row_bytes;
    }
    return status;
}

uint64_t tn_stream_row_bytes(const struct tn_source_tensor *t, uint32_t cols)
{
    if (t->encoding)
        return (uint64_t)cols / t->encoding->unit * t->encoding->unit_bytes;
    return cols * tn_source_float_bytes(t);
}

void tn_stream_load_row(float *dst, const struct tn_source_tensor *t, const void *raw,
                        uint32_t cols)
{
    if (t->encoding)
        tn_encoding_floats(t->encoding, dst, raw, cols / t->encoding->unit);
    else
        tn_floats_load(dst, t->dtype, raw, cols);
}

tern_status tn_stream_check_finite(const struct tn_source_tensor *t, const void *raw, size_t n,
                                   uint64_t first, uint64_t cols, struct tern_error *err)
{
    const size_t i = tn_floats_find_nonfinite(t->dtype, raw, n);
    if (i == n)
        return TERN_OK;
    return tn_fail(err, TERN_INPUT,
                   "tensor \"%s\": the value at row %llu, column %llu is not a finite number",
                   t->name, (unsigned long long)((first + i) / cols),
                   (unsigned long long)((first + i) % cols));
}

tern_status tn_stream_check_row(const struct tn_source_tensor *t, const float *values,
                                uint32_t row, uint32_t cols, struct tern_error *err)
{
    const size_t i = tn_floats_find_nonfinite(TN_DTYPE_F32, values, cols);
    if (i == cols)
        return TERN_OK;
    return tn_fail(err, TERN_INPUT,
                   "tensor \"%s\": the value at row %u, column %zu is not a finite number",
                   t->name, row, i);
}

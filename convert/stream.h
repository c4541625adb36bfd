/* SPDX-License-Identifier: MIT
 *
 * Streams the data of the tensors from the source through trits.h and kern/pack.h into the file, a
 * few hundred rows at a time, so that memory does not grow with the model.
 */
#ifndef TN_STREAM_H
#define TN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convert/source.h"
#include "convert/tensor_plan.h"
#include "file/model_file_writer.h"
#include "tern/convert.h"

/* A buffer that keeps its memory for the next tensor. */
struct tn_stream_buffer {
    void *data;
    size_t capacity;
};

struct tn_streamer {
    const struct tn_source *source;
    struct tn_mwriter *writer;
    const struct tern_convert_params *params; /* for on_progress */
    uint64_t n_done;   /* bytes read; those that are read twice count twice */
    uint64_t n_total;
    uint64_t n_source; /* bytes of the source */
    const float *factors; /* rotary frequency factors, for FACTORS */
    struct tn_stream_buffer raw;    /* source bytes of some rows */
    struct tn_stream_buffer trits;  /* int8 [rows][cols] */
    struct tn_stream_buffer packed; /* of some rows; layout C2: of the whole matrix */
    struct tn_stream_buffer floats; /* f32 [cols]; scales of some rows, in groups */
    struct tn_stream_buffer scales; /* for a table, in the file's layout; else of some rows, in
                                     * units */
    struct tn_stream_buffer all_scales;         /* of a matrix, in the file's layout */
    struct tn_stream_buffer columns;            /* columns of the source that become rows of a
                                                 * transposed matrix */
    struct tn_stream_buffer spare;              /* trits of the whole blocks that contain some
                                                 * rows */
    struct tn_stream_buffer heads, head_scales; /* the whole heads that contain some rows */
};

/* Facts that are known once a tensor has been read. */
struct tn_stream_facts {
    float scale;
    uint64_t n_zero;
};

/* Bytes that tn_stream_tensor will read, for progress. */
uint64_t tn_stream_cost(const struct tn_tensor_plan_row *tensor);

/* Writes a tensor and its facts.  TERN_INPUT names tensor and position of a value that
 * cannot be converted; TERN_INTERRUPTED if on_progress returned false. */
tern_status tn_stream_tensor(struct tn_streamer *stream, const struct tn_tensor_plan_row *tensor,
                             struct tn_stream_facts *facts, struct tern_error *err);

/* Calls on_progress with the bytes of the source done and in total.  False: stop. */
bool tn_stream_report(const struct tn_streamer *stream);

/* Counts n bytes as read and reports progress.  TERN_INTERRUPTED if that returns false. */
tern_status tn_stream_progress(struct tn_streamer *stream, uint64_t n, struct tern_error *err);

/* ---- for the files that stream one kind of tensor ---- */

/* Memory for at least n_bytes, valid until the next call with this buffer; NULL: TERN_MEMORY in
 * err. */
void *tn_stream_take(struct tn_stream_buffer *buffer, size_t n_bytes, struct tern_error *err);
/* Reads bytes and counts them. */
tern_status tn_stream_read(struct tn_streamer *stream, const struct tn_source_tensor *t,
                           uint64_t begin, void *dst, size_t n, struct tern_error *err);
/* Reads rows [row, row + n) in the model's order; rows that are adjacent in the source are read
 * together. */
tern_status tn_stream_read_rows(struct tn_streamer *stream, const struct tn_tensor_plan_row *t,
                                uint8_t *dst, size_t row_bytes, uint32_t row, uint32_t n,
                                struct tern_error *err);
/* TERN_INPUT if one of n plain floats, the first of which is element `first`, is not finite. */
tern_status tn_stream_check_finite(const struct tn_source_tensor *t, const void *raw, size_t n,
                                   uint64_t first, uint64_t cols, struct tern_error *err);
/* Bytes per row of floats of any non-ternary type. */
uint64_t tn_stream_row_bytes(const struct tn_source_tensor *t, uint32_t cols);
void tn_stream_load_row(float *dst, const struct tn_source_tensor *t, const void *raw,
                        uint32_t cols);
tern_status tn_stream_check_row(const struct tn_source_tensor *t, const float *values,
                                uint32_t row, uint32_t cols, struct tern_error *err);
/* stream_table.c, stream_blocks.c */
tern_status tn_stream_table(struct tn_streamer *stream, const struct tn_tensor_plan_row *t,
                            struct tern_error *err);
tern_status tn_stream_blocks(struct tn_streamer *stream, const struct tn_tensor_plan_row *t,
                             struct tern_error *err);

/* Frees the buffers; the next tensor allocates new ones. */
void tn_stream_drop_buffers(struct tn_streamer *stream);

#endif

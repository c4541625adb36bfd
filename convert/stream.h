/* SPDX-License-Identifier: MIT
 *
 * The data of the tensors, from the source through ternarise.h and kern/pack.h
 * into the file, some hundred rows at a time.
 */
#ifndef TN_STREAM_H
#define TN_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "file/mfile_write.h"
#include "source.h"
#include "tensor_plan.h"
#include "tern/convert.h"

/* A buffer that keeps its size for the next tensor. */
struct tn_stream_buffer {
    void *data;
    size_t capacity;
};

struct tn_streamer {
    const struct tn_source *source;
    struct tn_mwriter *writer;
    const struct tern_convert_params *params; /* for on_progress */
    uint64_t n_done;  /* bytes read */
    uint64_t n_total;
    struct tn_stream_buffer raw;    /* source bytes of some rows */
    struct tn_stream_buffer trits;  /* int8 [rows][cols] */
    struct tn_stream_buffer packed; /* of some rows; layout C2: of the whole matrix */
    struct tn_stream_buffer floats; /* f32 [cols] */
    struct tn_stream_buffer scales; /* of a table, as in the file */
};

/* What is known of a tensor once it was read. */
struct tn_stream_facts {
    float scale;
    uint64_t n_zero;
};

/* Bytes that tn_stream_tensor will read, for progress. */
uint64_t tn_stream_cost(const struct tn_tensor_plan_row *tensor);

/* Writes tensor i_tensor and its facts. TERN_INPUT names tensor and position of a value that cannot
 * be converted; TERN_INTERRUPTED when on_progress said so. */
tern_status tn_stream_tensor(struct tn_streamer *stream, const struct tn_tensor_plan_row *tensor,
                             uint32_t i_tensor, struct tn_stream_facts *facts,
                             struct tern_error *err);

/* Counts n bytes as read and calls on_progress. */
tern_status tn_stream_progress(struct tn_streamer *stream, uint64_t n, struct tern_error *err);

/* Frees the buffers; the next tensor makes new ones. */
void tn_stream_drop_buffers(struct tn_streamer *stream);

#endif

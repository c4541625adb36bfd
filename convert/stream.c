/* SPDX-License-Identifier: MIT
 *
 * Streams vectors and ternary matrices from the source into the file; tables and block types have
 * separate files, stream_table.c and stream_blocks.c.
 */
#include "convert/stream.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/ternarise.h"
#include "convert/trits.h"
#include "kern/pack.h"

/* ---- vectors ---- */

static uint32_t n_values(const struct tn_source_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return (uint32_t)n; /* the plan has checked the shape */
}

/* A decay must be below 0: an unconverted A_log would make states grow. */
static tern_status check_decays(const struct tn_tensor_plan_row *t, const float *values, uint32_t n,
                                struct tern_error *err)
{
    for (uint32_t i = 0; i < n && t->file.role == TERN_ROLE_DELTA_DECAY; i++)
        if (values[i] > 0)
            return tn_fail(err, TERN_INPUT,
                           "tensor \"%s\": value %u is %g, but a decay, -exp(A_log), is below 0",
                           t->weight->name, i, (double)values[i]);
    return TERN_OK;
}

static tern_status stream_vector(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                 struct tern_error *err)
{
    const uint32_t n = t->file.cols, n_source = n_values(t->weight);
    void *raw = tn_stream_take(&s->raw, (size_t)t->weight->bytes, err);
    float *values = tn_stream_take(&s->floats, n_source * sizeof *values, err);
    float *ordered = tn_stream_take(&s->spare, n * sizeof *ordered, err);
    if (!raw || !values || !ordered)
        return TERN_MEMORY;
    tern_status status = tn_stream_read(s, t->weight, 0, raw, (size_t)t->weight->bytes, err);
    if (status != TERN_OK)
        return status;
    tn_stream_load_row(values, t->weight, raw, n_source);
    status = tn_stream_check_row(t->weight, values, 0, n_source, err);
    if (status != TERN_OK)
        return status;
    for (uint32_t i = 0; i < n; i++)
        ordered[i] = values[tn_row_order_get(&t->order, i)];
    for (uint32_t i = 0; t->adds_one && i < n; i++)
        ordered[i] += 1.0f;
    for (uint32_t i = 0; t->is_log && i < n; i++)
        ordered[i] = (float)-exp((double)ordered[i]);
    status = tn_stream_check_row(t->weight, ordered, 0, n, err); /* exp may overflow */
    if (status == TERN_OK)
        status = check_decays(t, ordered, n, err);
    if (status != TERN_OK)
        return status;
    return tn_mwriter_append(s->writer, t->i_tensor, ordered, n * sizeof *ordered, err);
}

/* ---- ternary matrices ---- */

struct matrix {
    struct tn_trit_reader reader;
    const struct tern_file_tensor *file;
    int8_t *trits;       /* [TN_PACK_ROWS][cols] */
    float *scales;       /* [TN_PACK_ROWS][units of the source] */
    uint8_t *packed;     /* packed form of these rows; layout C2: of the whole matrix */
    void *all_scales;    /* in the file's layout; NULL if the matrix has one scale; the scales of
                          * previous matrices of a stack come first */
    float *groups;       /* [TN_PACK_ROWS][groups of the file] */
    size_t scale_bytes;
    size_t stride;       /* distance between matrices of a stack */
    bool is_whole;       /* columns (C2) are complete only at the end */
};

static tern_status take_buffers(struct matrix *m, struct tn_streamer *s, struct tern_error *err)
{
    const struct tern_file_tensor *f = m->file;
    const uint32_t n_step = TN_MIN(TN_PACK_ROWS, f->rows);
    const uint64_t n_packed = tn_layout_size(f->layout, m->is_whole ? f->rows : n_step, f->cols);
    if (n_packed > SIZE_MAX)
        return tn_fail(err, TERN_MEMORY, "tensor \"%s\" is too large for this system",
                       m->reader.tensor->weight->name);
    m->trits = tn_stream_take(&s->trits, (size_t)n_step * f->cols, err);
    m->packed = tn_stream_take(&s->packed, (size_t)n_packed, err);
    m->scales = tn_stream_take(&s->scales, (size_t)n_step * m->reader.n_units * sizeof(float), err);
    if (!m->trits || !m->packed || !m->scales)
        return TERN_MEMORY;
    if (!tn_is_col_group(f->scale_kind))
        return TERN_OK;
    const size_t n_value = f->scale_kind == TERN_SCALE_COL_GROUP_F16 ? 2 : 4;
    m->scale_bytes = tn_n_scales(f->rows, f->cols, f->scale_group) * n_value;
    m->stride = f->n_stacked ? tn_align_up(m->scale_bytes, TERN_FILE_ALIGN) : m->scale_bytes;
    char *of_stack = tn_stream_take(&s->all_scales, m->stride * TN_MAX(f->n_stacked, 1u), err);
    m->all_scales = of_stack ? of_stack + m->stride * m->reader.tensor->i_matrix : NULL;
    if (of_stack)
        memset(m->all_scales, 0, m->stride); /* includes the padding */
    m->groups = tn_stream_take(
        &s->floats, (size_t)n_step * tn_n_groups(f->cols, f->scale_group) * sizeof(float), err);
    return m->all_scales && m->groups ? TERN_OK : TERN_MEMORY;
}

/* Combines the scales of source units into groups of the file; the survey has checked that the
 * units of a group are equal, or 0 for units of zeros. */
static void pack_scales(struct matrix *m, uint32_t row, uint32_t n)
{
    const struct tern_file_tensor *f = m->file;
    const uint32_t n_groups = tn_n_groups(f->cols, f->scale_group);
    const uint32_t n_units = m->reader.n_units;
    const uint32_t per_group = tn_div_ceil_u32(f->scale_group, m->reader.unit);
    for (uint32_t i = 0; i < n; i++) {
        const float *units = m->scales + (size_t)i * n_units;
        float *groups = m->groups + (size_t)i * n_groups;
        for (uint32_t g = 0; g < n_groups; g++)
            groups[g] = 0;
        for (uint32_t u = 0; u < n_units; u++)
            if (units[u] != 0)
                groups[u / per_group] = units[u];
    }
    tn_pack_scales(m->all_scales, f->scale_kind == TERN_SCALE_COL_GROUP_F16, f->rows, f->cols,
                   f->scale_group, row, n, m->groups);
}

static tern_status stream_rows(struct matrix *m, struct tn_streamer *s, uint32_t row, uint32_t n,
                               struct tern_error *err)
{
    const struct tern_file_tensor *f = m->file;
    if (m->all_scales)
        pack_scales(m, row, n);
    if (m->is_whole) {
        tn_pack_rows(m->packed, f->layout, f->rows, f->cols, row, n, m->trits);
        return TERN_OK;
    }
    tn_pack_rows(m->packed, f->layout, n, f->cols, 0, n, m->trits);
    return tn_mwriter_append(s->writer, m->reader.tensor->i_tensor, m->packed,
                             (size_t)tn_layout_size(f->layout, n, f->cols), err);
}

/* Writes the padding of a stack's matrix; the scales of all of them follow the last one. */
static tern_status finish_matrix(struct matrix *m, struct tn_streamer *s, struct tern_error *err)
{
    const struct tn_tensor_plan_row *t = m->reader.tensor;
    const uint32_t n = TN_MAX(m->file->n_stacked, 1u), i = t->i_matrix;
    tern_status status = tn_mwriter_pad_matrix(s->writer, t->i_tensor, i, err);
    if (status != TERN_OK || !m->all_scales || i + 1 < n)
        return status;
    return tn_mwriter_append_scales(s->writer, t->i_tensor, (char *)m->all_scales - m->stride * i,
                                    m->stride * n, err);
}

static tern_status stream_all_rows(struct matrix *m, struct tn_streamer *s, uint64_t *n_zero,
                                   struct tern_error *err)
{
    const struct tern_file_tensor *f = m->file;
    tern_status status = TERN_OK;
    for (uint32_t row = 0; row < f->rows && status == TERN_OK; row += TN_PACK_ROWS) {
        const uint32_t n = TN_MIN(TN_PACK_ROWS, f->rows - row);
        status = tn_trit_reader_rows(&m->reader, m->trits, m->scales, row, n, err);
        if (status == TERN_OK && m->reader.worst.value > 0)
            status = tn_fail(err, TERN_INPUT, "tensor \"%s\" changed while it was read",
                             m->reader.tensor->weight->name);
        if (status == TERN_OK)
            status = stream_rows(m, s, row, n, err);
        *n_zero += tn_trits_count_zeros(m->trits, (size_t)n * f->cols);
    }
    if (status == TERN_OK && m->is_whole)
        status = tn_mwriter_append(s->writer, m->reader.tensor->i_tensor, m->packed,
                                   (size_t)tn_layout_size(f->layout, f->rows, f->cols), err);
    return status == TERN_OK ? finish_matrix(m, s, err) : status;
}

/* The scale of a matrix with one scale: stated by the source, or found in its units by the
 * survey. */
static float matrix_scale(const struct tn_trit_reader *r)
{
    return tn_trit_scale_is_stated(r->tensor) ? r->factor : r->tensor->scales.value;
}

static tern_status stream_matrix(struct tn_streamer *s, const struct tn_tensor_plan_row *t,
                                 struct tn_stream_facts *facts, struct tern_error *err)
{
    struct matrix m = {.file = &t->file,
                       .is_whole = tn_layout_find(t->file.layout)->is_by_columns};
    tern_status status = tn_trit_reader_init(&m.reader, s, t, err);
    if (status != TERN_OK)
        return status;
    status = take_buffers(&m, s, err);
    if (status == TERN_OK)
        status = stream_all_rows(&m, s, &facts->n_zero, err);
    facts->scale = tn_is_col_group(t->file.scale_kind) ? 0 : matrix_scale(&m.reader);
    if (status == TERN_OK)
        tn_mwriter_add_tensor_facts(s->writer, t->i_tensor, facts->scale, facts->n_zero);
    tn_trit_reader_fini(&m.reader);
    return status;
}

/* ---- interface ---- */

uint64_t tn_stream_cost(const struct tn_tensor_plan_row *t)
{
    if (t->kind == TN_TENSOR_FACTORS)
        return 0;
    if (t->kind == TN_TENSOR_BLOCKS || t->kind == TN_TENSOR_FLOATS)
        return t->file.rows * tn_stream_row_bytes(t->weight, t->file.cols);
    return tn_tensor_is_ternary(t) ? tn_trit_reader_cost(t) : t->weight->bytes;
}

tern_status tn_stream_tensor(struct tn_streamer *stream, const struct tn_tensor_plan_row *tensor,
                             struct tn_stream_facts *facts, struct tern_error *err)
{
    memset(facts, 0, sizeof *facts);
    switch (tensor->kind) {
    case TN_TENSOR_VECTOR:
        return stream_vector(stream, tensor, err);
    case TN_TENSOR_FACTORS:
        return tn_mwriter_append(stream->writer, tensor->i_tensor, stream->factors,
                                 tensor->file.cols * sizeof(float), err);
    case TN_TENSOR_TABLE:
    case TN_TENSOR_FLOATS:
        return tn_stream_table(stream, tensor, err);
    case TN_TENSOR_BLOCKS:
        return tn_stream_blocks(stream, tensor, err);
    default:
        return stream_matrix(stream, tensor, facts, err);
    }
}

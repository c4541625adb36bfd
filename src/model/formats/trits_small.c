/* SPDX-License-Identifier: MIT
 *
 * The format of ternary matrices in T5, with the results of T2, whose products are used.  Those of
 * one input and of few with scales unpack a run of columns at a time.  For the others the tiles of
 * a call are unpacked to a band of T2 in a thread's memory, which they then read from the cache.
 */
#include "base/bits.h"
#include "kern/pack.h"
#include "model/formats/formats.h"
#include "model/workspace_size.h"

static uint32_t n_runs_of(uint32_t cols)
{
    return tn_div_ceil_u32(cols, TERN_T2_COL_ALIGN);
}

/* Tiles of 64 rows in the band that contains a row. */
static uint32_t n_tiles_of(const struct tn_matrix *w, uint32_t band)
{
    return tn_div_ceil_u32(TN_MIN(w->rows - band, TERN_T2_BAND_ROWS), TERN_T2_TILE_ROWS);
}

static const void *scales_of_band(const struct tn_matrix *w, uint32_t band)
{
    const size_t n_bytes = w->t.is_f16 ? sizeof(uint16_t) : sizeof(float);
    return w->t.scales ? (const char *)w->t.scales +
                             (size_t)band * tn_n_groups(w->cols, w->t.group) * n_bytes
                       : NULL;
}

/* Makes out the band of rows [row, row + n_rows) as a matrix in T2, in which only the tiles of
 * these rows are valid.  Returns its first row. */
static uint32_t unpack_band(struct tn_matrix *out, const struct tn_matrix *w, uint32_t row,
                            uint32_t n_rows, const struct tn_worker *worker)
{
    const uint32_t band = row / TERN_T2_BAND_ROWS * TERN_T2_BAND_ROWS;
    const uint32_t n_runs = n_runs_of(w->cols), n_tiles = n_tiles_of(w, band);
    const uint32_t end = tn_div_ceil_u32(row + n_rows, TERN_T2_TILE_ROWS);
    uint8_t *data = (uint8_t *)worker->scratch->unpacked;
    for (uint32_t tile = row / TERN_T2_TILE_ROWS; tile < end; tile++)
        worker->kernels->unpack_t5(
            data + (tile - band / TERN_T2_TILE_ROWS) * (size_t)TERN_T2_RUN_BYTES,
            (size_t)n_tiles * TERN_T2_RUN_BYTES,
            w->data + (size_t)tile * n_runs * TERN_T5_RUN_BYTES, n_runs);
    *out = *w;
    out->data = data;
    out->layout = TERN_LAYOUT_T2;
    out->rows = TN_MIN(w->rows - band, TERN_T2_BAND_ROWS);
    out->t.w = (struct tn_ternary){data, out->rows, w->cols, TERN_LAYOUT_T2};
    out->t.scales = scales_of_band(w, band);
    return band;
}

/* A product of T5 from the product of T2 for the same inputs. */
#define PRODUCT(name, of_t2)                                                                       \
    static void name(const struct tn_mul *m)                                                       \
    {                                                                                              \
        struct tn_matrix band;                                                                     \
        struct tn_mul in_band = *m;                                                                \
        in_band.row -= unpack_band(&band, m->w, m->row, m->n_rows, m->worker);                     \
        in_band.w = &band;                                                                         \
        of_t2(&in_band);                                                                           \
    }

PRODUCT(mul_i8, tn_format_t2_i8.mul_panel)
PRODUCT(mul_x16, tn_format_t2_x16.mul_panel)
PRODUCT(mul_x8, tn_format_t2_x16.coarse->mul_panel)
PRODUCT(mul_f32, tn_format_t2_x16.exact->mul_one)

/* A product of T2 that takes T5, too. */
#define SAME_PRODUCT(name, of_t2)                                                                  \
    static void name(const struct tn_mul *m)                                                       \
    {                                                                                              \
        of_t2(m);                                                                                  \
    }

SAME_PRODUCT(mul_i8_one, tn_format_t2_i8.mul_one)
SAME_PRODUCT(mul_x16_few, tn_format_t2_x16.mul_few)
SAME_PRODUCT(mul_x8_few, tn_format_t2_x16.coarse->mul_few)

static void unpack_row(float *dst, const struct tn_matrix *w, uint32_t row,
                       const struct tn_worker *worker)
{
    struct tn_matrix band;
    const uint32_t first = unpack_band(&band, w, row, 1, worker);
    if (w->t.scales) {
        tn_unpack_row_f32(dst, &band.t, row - first);
        return;
    }
    int8_t *trits = worker->scratch->unpacked +
                    (size_t)TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS * n_runs_of(w->cols) *
                        TERN_T2_RUN_BYTES;
    tn_unpack_rows(trits, band.data, TERN_LAYOUT_T2, band.rows, w->cols, row - first, 1);
    for (uint32_t i = 0; i < w->cols; i++)
        dst[i] = (float)trits[i] * w->scale;
}

/* Memory for a band of T2 and the trits of a row. */
static size_t row_bytes(uint32_t cols)
{
    return (size_t)TERN_T2_BAND_ROWS / TERN_T2_TILE_ROWS * n_runs_of(cols) * TERN_T2_RUN_BYTES +
           cols;
}

/* Only the two groups of a run that are stored as in T2 can contain the unused code. */
static uint64_t find_bad(const void *data, uint64_t n_bytes, const struct tern_file_tensor *t)
{
    const uint8_t *bytes = data;
    const uint64_t n_coded = TERN_T5_RUN_BYTES - 2 * 64;
    for (uint64_t i = 0; i + TERN_T5_RUN_BYTES <= n_bytes; i += TERN_T5_RUN_BYTES) {
        const uint64_t bad = tn_find_code3(bytes + i + n_coded, 2 * 64, t);
        if (bad < 2 * 64)
            return i + n_coded + bad;
    }
    return n_bytes;
}

/* What all formats of the layout share. */
#define T5                                                                                         \
    .layout = TERN_LAYOUT_T5, .bind = tn_bind_ternary, .unpack_row = unpack_row,                   \
    .row_bytes = row_bytes, .find_bad = find_bad
#define T5_SCALED                                                                                  \
    T5, .scale_kinds = 1u << TERN_SCALE_COL_GROUP | 1u << TERN_SCALE_COL_GROUP_F16

const struct tn_format tn_format_t5_i8 = {
    T5,
    .scale_kinds = 1u << TERN_SCALE_TENSOR,
    .act = TN_ACT_I8,
    .mul_one = mul_i8_one,
    .mul_panel = mul_i8,
    .lut_bytes = tn_t2_lut_bytes,
};

static const struct tn_format t5_f32 = {
    T5_SCALED,
    .act = TN_ACT_F32,
    .mul_one = mul_f32,
    .mul_panel = mul_f32,
};

static const struct tn_format t5_x8 = {
    T5_SCALED,
    .act = TN_ACT_X8,
    .mul_one = mul_x8_few,
    .mul_few = mul_x8_few,
    .mul_panel = mul_x8,
    .n_few = TN_X8_FEW,
};

const struct tn_format tn_format_t5_x16 = {
    T5_SCALED,
    .act = TN_ACT_X16,
    .mul_one = mul_x16_few,
    .mul_few = mul_x16_few,
    .mul_panel = mul_x16,
    .n_few = TN_X16_FEW,
    .exact = &t5_f32,
    .coarse = &t5_x8,
};

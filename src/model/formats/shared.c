/* SPDX-License-Identifier: MIT
 *
 * Code that formats share: the destination of a product, the view of a ternary matrix, and the
 * search for values that no valid file contains.
 */
#include <string.h>

#include "arch/layout_spec.h"
#include "base/bits.h"
#include "model/acts.h"
#include "model/formats/formats.h"
#include "model/workspace_size.h"

/* ---- products ---- */

struct tn_sums tn_sums_of_tiles(const struct tn_mul *m)
{
    return (struct tn_sums){(float *)m->worker->scratch->sum, TN_SUM_STRIDE};
}

struct tn_sums tn_sums_or_dst(const struct tn_mul *m)
{
    return m->add == 0 ? (struct tn_sums){m->dst, m->dst_stride} : tn_sums_of_tiles(m);
}

void tn_sums_finish(const struct tn_sums *sums, const struct tn_mul *m)
{
    float *dst = m->dst;
    const float *y = sums->y;
    if (dst == y)
        return;
    for (uint32_t t = 0; t < m->x->n; t++, dst += m->dst_stride, y += sums->stride) {
        if (m->add != 0)
            m->worker->kernels->add_scaled_f32(dst, y, m->n_rows, m->add);
        else
            memcpy(dst, y, m->n_rows * sizeof *y);
    }
}

void tn_bind_ternary(struct tn_matrix *w, const struct tern_file_tensor *t)
{
    w->t = (struct tn_scaled_ternary){
        .w = {w->data, w->rows, w->cols, w->layout},
        .scales = t->scale_group ? w->scales : NULL,
        .group = t->scale_group,
        .is_f16 = t->scale_kind == TERN_SCALE_COL_GROUP_F16,
    };
}

/* ---- invalid values ---- */

uint64_t tn_find_bad_f32(const void *data, uint64_t n_bytes, const struct tern_file_tensor *t)
{
    (void)t;
    const float *x = data;
    for (uint64_t i = 0; i < n_bytes / sizeof *x; i++)
        if ((tn_f32_to_bits(x[i]) & 0x7F800000u) == 0x7F800000u)
            return i * sizeof *x;
    return n_bytes;
}

/* exponent: the bits that are all set in NaN and infinities. */
static uint64_t find_bad_halves(const uint16_t *x, uint64_t n_bytes, uint16_t exponent)
{
    for (uint64_t i = 0; i < n_bytes / sizeof *x; i++)
        if ((x[i] & exponent) == exponent)
            return i * sizeof *x;
    return n_bytes;
}

uint64_t tn_find_bad_f16(const void *data, uint64_t n_bytes, const struct tern_file_tensor *t)
{
    (void)t;
    return find_bad_halves(data, n_bytes, 0x7C00u);
}

uint64_t tn_find_bad_bf16(const void *data, uint64_t n_bytes, const struct tern_file_tensor *t)
{
    (void)t;
    return find_bad_halves(data, n_bytes, 0x7F80u);
}

uint64_t tn_find_code3(const void *data, uint64_t n_bytes, const struct tern_file_tensor *t)
{
    (void)t;
    const uint8_t *bytes = data;
    uint64_t i = 0;
    for (; i + 8 <= n_bytes; i += 8) {
        const uint64_t w = tn_load_u64(bytes + i);
        if (w & w >> 1 & 0x5555555555555555u)
            break;
    }
    for (; i < n_bytes; i++)
        if (bytes[i] & bytes[i] >> 1 & 0x55)
            break;
    return i;
}

bool tn_scales_are_finite(const struct tern_file_tensor *t, const void *scales)
{
    uint64_t n_bytes = t->scale_bytes;
    if (t->scale_kind == TERN_SCALE_COL_GROUP_F16)
        return tn_find_bad_f16(scales, n_bytes, t) == n_bytes;
    if (t->scale_kind == TERN_SCALE_ROW)
        n_bytes = (uint64_t)t->rows * tn_layout_scales(t->layout) * sizeof(float);
    return tn_find_bad_f32(scales, n_bytes, t) == n_bytes;
}

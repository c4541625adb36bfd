/* SPDX-License-Identifier: MIT
 *
 * The list of formats, one file for those that are alike.  A new one is a line here, its file, and
 * the lines of its layout in tern/matrix_layouts.h and arch/layouts.h.
 */
#ifndef TN_FORMATS_H
#define TN_FORMATS_H

#include "base/bits.h"
#include "model/format.h"

#define TN_FORMAT_LIST(X)                                                                          \
    X(t2_i8)                                                                                       \
    X(r2_i8)                                                                                       \
    X(c2_i8)                                                                                       \
    X(t2_x16)                                                                                      \
    X(t5_i8)                                                                                       \
    X(t5_x16)                                                                                      \
    X(f32)                                                                                         \
    X(f16)                                                                                         \
    X(bf16)                                                                                        \
    X(q8_rows)                                                                                     \
    X(q8_planes)                                                                                   \
    X(q6_planes)                                                                                   \
    X(q4_planes)                                                                                   \
    X(q8_0)                                                                                        \
    X(q4_0)                                                                                        \
    X(q4_1)                                                                                        \
    X(q5_0)                                                                                        \
    X(q5_1)                                                                                        \
    X(iq4_nl)                                                                                      \
    X(iq4_xs)                                                                                      \
    X(q2_k)                                                                                        \
    X(q3_k)                                                                                        \
    X(q4_k)                                                                                        \
    X(q5_k)                                                                                        \
    X(q6_k)                                                                                        \
    X(iq2_s)                                                                                       \
    X(iq3_xxs)                                                                                     \
    X(iq3_s)

#define TN_FORMAT_DECLARE(name) extern const struct tn_format tn_format_##name;
TN_FORMAT_LIST(TN_FORMAT_DECLARE)
#undef TN_FORMAT_DECLARE

/* ---- shared by formats ---- */

/* The memory to which a kernel writes y [n][stride]. */
struct tn_sums {
    float *y;
    size_t stride;
};
/* m->dst itself if nothing is added, else scratch->sum. */
struct tn_sums tn_sums_or_dst(const struct tn_mul *m);
/* scratch->sum, for kernels that write all rows of a tile. */
struct tn_sums tn_sums_of_tiles(const struct tn_mul *m);
/* Completes a product: m->dst becomes y, or += add * y. */
void tn_sums_finish(const struct tn_sums *sums, const struct tn_mul *m);

/* The row after the last tile of `align` rows that a product needs. */
static inline uint32_t tn_mul_end(const struct tn_mul *m, uint32_t align)
{
    return m->row + (uint32_t)tn_align_up(m->n_rows, align);
}

/* bind of ternary matrices: sets w->t. */
void tn_bind_ternary(struct tn_matrix *w, const struct tern_file_tensor *t);

/* Memory for the look-up tables of an input of T2. */
size_t tn_t2_lut_bytes(uint32_t cols);

/* find_bad of values in these types: NaN and infinities.  The tensor argument is ignored. */
tn_find_bad_fn tn_find_bad_f32, tn_find_bad_f16, tn_find_bad_bf16;
/* find_bad of ternary layouts, the unused code; the tensor argument is ignored. */
tn_find_bad_fn tn_find_code3;

#endif

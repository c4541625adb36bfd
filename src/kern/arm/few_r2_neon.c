/* SPDX-License-Identifier: MIT
 *
 * Rows of R2 times selected inputs for NEON: `smlal` multiplies the codes of one field of 8 bytes
 * with 8 inputs.  The four fields of the lines of a block add at most 16 * 254 to an int16, so that
 * 8 blocks fit before they are widened.
 */
#include <arm_neon.h>

#include "kern/few_r2.h"

#define CHUNK_BLOCKS 8u
_Static_assert(CHUNK_BLOCKS * 4 * 4 * 254 <= 32767, "the sums of a chunk fit int16");

/* Adds one line of 16 bytes; `at` is the column of its first byte. */
static TN_ALWAYS_INLINE void add_line(int16x8_t (*sum)[2], const uint8_t *line,
                                      const int8_t *const *x, size_t at, const uint32_t n)
{
    uint8x16_t bytes = vld1q_u8(line);
    for (uint32_t i = 0; i < 4; i++, bytes = vshrq_n_u8(bytes, 2)) {
        const int8x16_t codes = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(3)));
        for (uint32_t k = 0; k < n; k++) {
            const int8x16_t v = vld1q_s8(x[k] + at + 64 * i);
            sum[k][0] = vmlal_s8(sum[k][0], vget_low_s8(codes), vget_low_s8(v));
            sum[k][1] = vmlal_high_s8(sum[k][1], codes, v);
        }
    }
}

static TN_ALWAYS_INLINE void sum_row(int32_t *sums, const struct few_r2_row *row,
                                     const int8_t *const *x, const uint32_t n)
{
    int32x4_t sum[FEW_R2_MOST];
    for (uint32_t k = 0; k < n; k++)
        sum[k] = vdupq_n_s32(0);
    for (uint32_t begin = 0, b = 0; begin < row->n_blocks; begin += CHUNK_BLOCKS) {
        int16x8_t part[FEW_R2_MOST][2];
        for (uint32_t k = 0; k < n; k++)
            part[k][0] = part[k][1] = vdupq_n_s16(0);
        for (; b < TN_MIN(begin + CHUNK_BLOCKS, row->n_blocks); b++) {
            tn_request_l1(row->near + 64 * b, TN_PREFETCH_OF(R2_FEW));
            for (uint32_t j = 0; j < 64; j += 16)
                add_line(part, row->row + 64 * b + j, x, 256 * b + j, n);
        }
        for (uint32_t k = 0; k < n; k++)
            sum[k] = vpadalq_s16(vpadalq_s16(sum[k], part[k][0]), part[k][1]);
    }
    for (uint32_t k = 0; k < n; k++)
        sums[k] = vaddvq_s32(sum[k]);
}

FEW_R2_DEFINE(neon, sum_row)

/* SPDX-License-Identifier: MIT
 *
 * Listed rows of R2 times the selected ones of up to 8 inputs, in portable C: the specification of
 * few_r2_i8 (kern.h).
 */
#include "kern/few_r2.h"

static void sum_row(int32_t *sums, const struct few_r2_row *row, const int8_t *const *x,
                    uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const uint8_t *bytes = row->row;
        const int8_t *v = x[k];
        int32_t sum = 0;
        for (uint32_t b = 0; b < row->n_blocks; b++, bytes += 64, v += 256)
            for (uint32_t j = 0; j < 256; j++)
                sum += (bytes[j % 64] >> j / 64 * 2 & 3) * v[j];
        sums[k] = sum;
    }
}

FEW_R2_DEFINE(ref, sum_row)
